//! A user's own logits, replayed: raw little-endian floats, one or many vectors.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use colibri_sampler::oracle::{LIBRARY, ORIGINAL, REFERENCE, Sampler};
use colibri_sampler::trace::{Report, Settings};
use colibri_sampler::{Rejection, Request, trace};
use serde::Serialize;

use crate::equal::{self, Equal, draw};
use crate::page::{self, Page};
use crate::rand::{RAND_MAX, scripted};
use crate::table::{Table, grouped};

/// The draws that every vector gets, before the seeded ones.
const FIXED_DRAWS: [i32; 3] = [0, RAND_MAX / 2, RAND_MAX];

/// How many seeded draws fit a line.
const SHOWN: usize = 6;

/// What to replay.
pub struct Setting {
    pub file: PathBuf,
    pub vocab_size: usize,
    pub temperature: f32,
    pub top_p: f32,
    pub draws: u32,
    pub seed: u64,
    /// One more draw, to be looked at closely.
    pub raw: Option<i32>,
    /// One vector as a page.
    pub html: Option<page::Wanted>,
}

#[derive(Serialize)]
struct Pick {
    raw_draw: i32,
    token: i32,
    equal: Equal,
}

#[derive(Serialize)]
struct Vector {
    /// Let through by the exponent buckets; all tokens where these are not
    /// used, none for greedy.
    candidates: usize,
    nucleus: usize,
    /// The paths that answered.
    routes: BTreeSet<String>,
    picks: Vec<Pick>,
    /// The reference counted as many candidates and as large a nucleus.
    reference_counts: bool,
    /// Paths that gave another token than the C reference, for the draw that is
    /// looked at closely.
    differing: Vec<String>,
}

/// The replay of a file.
#[derive(Serialize)]
pub struct Dump {
    ok: bool,
    original: bool,
    file: PathBuf,
    vocab_size: usize,
    temperature: f32,
    top_p: f32,
    seed: u64,
    raw: Option<i32>,
    html: Option<Page>,
    vectors: Vec<Vector>,
}

impl Dump {
    /// The replay, or one line that says which argument is wrong.
    pub fn replay(setting: Setting) -> Result<Self, String> {
        let mut file = Vectors::open(&setting.file, setting.vocab_size)?;
        let mut random = fastrand::Rng::with_seed(setting.seed);
        let mut vectors = Vec::new();
        let mut html = None;
        while let Some(logits) = file.next()? {
            let seeded = (0..setting.draws).map(|_| random.i32(0..=RAND_MAX));
            let draws = FIXED_DRAWS.into_iter().chain(seeded).chain(setting.raw);
            let mut vector = vector(&logits, setting.temperature, setting.top_p, draws);
            if let Some(raw) = setting.raw {
                vector.differing = differing(&logits, setting.temperature, setting.top_p, raw);
            }
            if let Some(wanted) = &setting.html
                && wanted.vector == vectors.len()
            {
                let request = Request::new(&logits, setting.temperature, setting.top_p);
                let request = request.expect("--vocab is a valid length");
                let draws = vector.picks.iter().map(|pick| pick.raw_draw);
                let file = setting.file.display().to_string();
                html = Some(page::write(wanted, &file, &request, &vector.routes, draws)?);
            }
            vectors.push(vector);
        }
        if let Some(wanted) = &setting.html
            && html.is_none()
        {
            return Err(format!(
                "--vector {}: FILE {} has {}, counted from 0",
                wanted.vector,
                setting.file.display(),
                vectors.len()
            ));
        }
        Ok(Dump {
            ok: vectors.iter().all(Vector::ok) && html.as_ref().is_none_or(|page| page.agrees),
            html,
            original: ORIGINAL.is_some(),
            file: setting.file,
            vocab_size: setting.vocab_size,
            temperature: setting.temperature,
            top_p: setting.top_p,
            seed: setting.seed,
            raw: setting.raw,
            vectors,
        })
    }

    pub fn ok(&self) -> bool {
        self.ok
    }
}

/// The vectors of a file, one after another: a dump can be larger than memory.
struct Vectors {
    path: PathBuf,
    reader: BufReader<File>,
    bytes: Vec<u8>,
    read: u64,
}

impl Vectors {
    fn open(path: &Path, vocab_size: usize) -> Result<Self, String> {
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = opened.map_err(|e| format!("FILE {}: {e}", path.display()))?;
        let vectors = Vectors {
            path: path.to_owned(),
            reader: BufReader::new(file),
            bytes: vec![0; 4 * vocab_size],
            read: 0,
        };
        // Before any work, where the length is known before the end.
        let length = metadata.len();
        if metadata.is_file() && (length == 0 || length % vectors.bytes.len() as u64 != 0) {
            return Err(vectors.wrong_length(length));
        }
        Ok(vectors)
    }

    fn wrong_length(&self, bytes: u64) -> String {
        format!(
            "FILE {}: {} bytes are not a whole number of vectors of --vocab {} floats, {} bytes each",
            self.path.display(),
            grouped(bytes),
            self.bytes.len() / 4,
            grouped(self.bytes.len()),
        )
    }

    /// The next vector; None at the end of the file.
    fn next(&mut self) -> Result<Option<Vec<f32>>, String> {
        let mut filled = 0;
        while filled < self.bytes.len() {
            match self.reader.read(&mut self.bytes[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(format!("FILE {}: {e}", self.path.display())),
            }
        }
        self.read += filled as u64;
        if filled == 0 && self.read > 0 {
            return Ok(None);
        }
        if filled < self.bytes.len() {
            return Err(self.wrong_length(self.read));
        }
        let floats = self.bytes.chunks_exact(4);
        Ok(Some(
            floats
                .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                .collect(),
        ))
    }
}

fn vector(
    logits: &[f32],
    temperature: f32,
    top_p: f32,
    draws: impl Iterator<Item = i32>,
) -> Vector {
    let request = Request::new(logits, temperature, top_p).expect("--vocab is a valid length");
    let mut routes = BTreeSet::new();
    let picks: Vec<Pick> = draws
        .map(|raw| {
            let of = |side: &Sampler| draw(side, logits, temperature, top_p, raw);
            let drawn = of(&LIBRARY);
            let uniform = f64::from(raw) / f64::from(RAND_MAX);
            let traced = trace::sample(&request, uniform).expect("memory for one vector");
            routes.insert(format!("{:?}", traced.route));
            Pick {
                raw_draw: raw,
                token: drawn.0,
                equal: Equal::of(|side| of(side) == drawn && traced.token == drawn.0),
            }
        })
        .collect();
    let counts = crate::count(&request);
    Vector {
        candidates: counts.candidates,
        nucleus: counts.nucleus,
        reference_counts: (counts.candidates, counts.nucleus) == crate::reference_counts(&request),
        routes,
        picks,
        differing: Vec::new(),
    }
}

/// A draw by every path at every tier, for both functions: what does not give
/// the C reference's token.
fn differing(logits: &[f32], temperature: f32, top_p: f32, raw: i32) -> Vec<String> {
    let request = Request::new(logits, temperature, top_p).expect("--vocab is a valid length");
    let uniform = f64::from(raw) / f64::from(RAND_MAX);
    let all = [(true, true), (false, true), (false, false)];
    let ways = trace::tiers().into_iter().flat_map(|tier| {
        all.map(|(certify, twin)| Settings {
            tier,
            certify,
            twin: twin && Settings::default().twin,
        })
    });
    let ways: Vec<Settings> = ways.collect();
    let mut differing = Vec::new();
    let functions: [(_, Drawn, Traced); 2] = [
        ("serve_sample", Sampler::serve_sample, trace::sample_with),
        (
            "serve_sample_sorted",
            Sampler::serve_sample_sorted,
            trace::sample_sorted_with,
        ),
    ];
    for (name, function, traced) in functions {
        let of = |side| scripted(raw, || function(side, logits, temperature, top_p)).0;
        let expected = of(&REFERENCE);
        let mut check = |who: String, token: i32| {
            if token != expected {
                differing.push(format!(
                    "{name}, {who}: token {token}, C reference {expected}"
                ));
            }
        };
        check("C function".to_owned(), of(&LIBRARY));
        for &settings in &ways {
            let token = traced(&request, uniform, settings).map(|report| report.token);
            check(
                format!("{settings:?}"),
                token.expect("memory for one vector"),
            );
        }
    }
    differing
}

type Drawn = fn(&Sampler, &[f32], f32, f32) -> i32;
type Traced = fn(&Request<'_>, f64, Settings) -> Result<Report, Rejection>;

impl Vector {
    fn ok(&self) -> bool {
        self.reference_counts
            && self.differing.is_empty()
            && self.picks.iter().all(|pick| pick.equal.all())
    }
}

impl Dump {
    pub fn text(&self) -> String {
        let picks = self.vectors.iter().flat_map(|vector| &vector.picks);
        let s = if self.vectors.len() == 1 { "" } else { "s" };
        let differing = self.vectors.iter().flat_map(|vector| &vector.differing);
        let differing: String = differing.map(|way| format!("DIFFERS: {way}\n")).collect();
        let page = self.html.as_ref().map(Page::line).unwrap_or_default();
        format!(
            "{}: {} vector{s} of {} tokens, temperature {}, top_p {}\n{}\n{page}{differing}{}",
            self.file.display(),
            grouped(self.vectors.len()),
            grouped(self.vocab_size),
            self.temperature,
            self.top_p,
            self.table(),
            equal::summary(picks.map(|pick| &pick.equal), self.ok),
        )
    }

    fn table(&self) -> Table {
        let greedy = self.temperature <= 0.0;
        let closer = usize::from(self.raw.is_some());
        let seeded = self.vectors[0].picks.len() - FIXED_DRAWS.len() - closer;
        let mut table = Table::new("vector,path", "candidates,nucleus");
        if greedy {
            table.header(&["token"]);
        } else {
            table.header(&["0", "RAND_MAX / 2", "RAND_MAX"]);
            if seeded > 0 {
                table.header(&[&format!("seed {}", self.seed)]);
            }
            if let Some(raw) = self.raw {
                table.header(&[&grouped(raw)]);
            }
        }
        table.header(equal::HEADER);
        for (i, vector) in self.vectors.iter().enumerate() {
            let counts = [vector.candidates, vector.nucleus];
            let mut cells = vec![
                grouped(i),
                Vec::from_iter(vector.routes.iter().map(String::as_str)).join(" + "),
            ];
            cells.extend(counts.map(|n| if greedy { "-".to_owned() } else { grouped(n) }));
            let mut tokens = vector.picks.iter().map(|pick| grouped(pick.token));
            cells.extend(
                tokens
                    .by_ref()
                    .take(if greedy { 1 } else { FIXED_DRAWS.len() }),
            );
            if seeded > 0 && !greedy {
                let rest = if seeded > SHOWN { " ..." } else { "" };
                let mut tokens = tokens.by_ref().take(seeded);
                let shown = Vec::from_iter(tokens.by_ref().take(SHOWN)).join(" ");
                tokens.for_each(drop);
                cells.push(shown + rest);
            }
            if !greedy {
                cells.extend(tokens);
            }
            let picks = vector.picks.iter().map(|pick| &pick.equal);
            let mut c_code: Vec<String> = equal::counts(picks).collect();
            if !vector.reference_counts {
                c_code[0] += ", COUNTS DIFFER";
            }
            cells.extend(c_code);
            table.row(cells);
        }
        table
    }
}
