//! Every draw of the library against the C oracles, with `rand()` scripted.
//!
//! A mismatch prints a line that the ignored test `replay` takes back:
//! `COLIBRI_REPLAY='...' cargo test --test differential replay -- --ignored`.

mod common;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use colibri_sampler::Request;
use colibri_sampler::oracle::{self, LIBRARY, ORIGINAL, Prepared, REFERENCE, Sampler};
use colibri_sampler::trace::{self, Report, Route, Settings};
use common::cases::{Entry, Subject};
use common::rand::{self, EDGES, RAND_MAX, scripted};
use common::shapes::{self, SHAPES, Shape};
use common::ways;

/// Every size up to here.
const SMALL: usize = 4_099;
/// Vocabularies of models.
const LARGE: [usize; 4] = [32_000, 50_257, 151_936, 248_320];

const USUAL: [(f32, f32); 12] = [
    (0.7, 0.9),
    (1.0, 0.95),
    (0.7, 0.8),
    (1.0, 1.0),
    (0.2, 0.3),
    (2.0, 0.99),
    (1.0, 0.5),
    (0.7, 1.0),
    (1.3, 0.999),
    (0.6, 0.95),
    (5.0, 0.7),
    (1.0, 0.999_999_94),
];

/// Temperatures and `top_p` at and outside the ends of their ranges.
const TEMPERATURES: [f32; 14] = [
    1.0,
    0.7,
    1e-4,
    1e-38,
    1.4e-45,
    65_504.0,
    1e9,
    f32::MAX,
    f32::INFINITY,
    f32::NAN,
    0.0,
    -0.0,
    -1.0,
    f32::NEG_INFINITY,
];
const TOP_PS: [f32; 13] = [
    0.9,
    0.5,
    1e-6,
    f32::MIN_POSITIVE,
    1e-45,
    0.999_999_94,
    1.0,
    1.5,
    f32::INFINITY,
    0.0,
    -0.0,
    -0.5,
    f32::NAN,
];

/// One vector and its parameters.
#[derive(Clone, Copy)]
struct Setting {
    shape: &'static Shape,
    seed: u64,
    vocab_size: usize,
    temperature: f32,
    top_p: f32,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} {} {:#010x} {:#010x}",
            self.shape.name,
            self.seed,
            self.vocab_size,
            self.temperature.to_bits(),
            self.top_p.to_bits(),
        )
    }
}

/// A draw on which two implementations do not agree.
struct Mismatch {
    setting: Setting,
    entry: Entry,
    raw: i32,
    /// Who, the token and the calls of `rand()`.
    answers: [(String, i32, usize); 2],
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let setting = &self.setting;
        writeln!(
            f,
            "{:?} differs: {} seed {}, V {}, temperature {} (bits {:#010x}), top_p {} (bits \
             {:#010x}), rand() {}",
            self.entry,
            setting.shape.name,
            setting.seed,
            setting.vocab_size,
            setting.temperature,
            setting.temperature.to_bits(),
            setting.top_p,
            setting.top_p.to_bits(),
            self.raw,
        )?;
        let logits = setting.shape.logits(setting.seed, setting.vocab_size);
        for (name, token, calls) in &self.answers {
            let logit = usize::try_from(*token).ok().and_then(|id| logits.get(id));
            let bits = logit.map(|logit| logit.to_bits());
            writeln!(
                f,
                "  {name}: token {token} (logit {logit:?}, bits {bits:#x?}), {calls} calls of rand()"
            )?;
        }
        writeln!(f, "  COLIBRI_REPLAY='{setting} {}'", self.raw)
    }
}

/// How many draws were compared.
#[derive(Debug, PartialEq, Eq)]
struct Tally {
    /// Draws of each subject, all equal to the prepared reference's.
    draws: Vec<usize>,
    /// Draws for which a plain call of the C reference gave the same.
    plain: usize,
    /// And the original.
    original: usize,
}

impl Tally {
    fn new(subjects: Subjects<'_>) -> Self {
        Tally {
            draws: vec![0; subjects.len()],
            plain: 0,
            original: 0,
        }
    }

    fn add(&mut self, other: Tally) {
        for (draws, others) in self.draws.iter_mut().zip(other.draws) {
            *draws += others;
        }
        self.plain += other.plain;
        self.original += other.original;
    }
}

/// Which draws are asked of the C functions themselves; all are asked of the
/// prepared reference.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Plain {
    Every,
    First,
}

/// Raw values for a setting: the edges, those at the borders between tokens of
/// the order, and any. The number does not depend on the host.
fn raws(prepared: &Prepared, count: usize, random: &mut fastrand::Rng) -> Vec<i32> {
    let mut raws = Vec::with_capacity(count);
    let edges = random.usize(..EDGES.len());
    raws.extend(EDGES.iter().cycle().skip(edges).take(count.div_ceil(3)));
    while raws.len() < count {
        // The head of the order has the wide borders; all of it has to come.
        let border = match prepared.nucleus() {
            0 => None,
            nucleus if random.bool() => Some(random.usize(..nucleus)),
            nucleus => Some(random.usize(..nucleus.min(8))),
        };
        let border = border.and_then(|position| prepared.first_draw_behind(position));
        match border {
            Some(raw) if random.u8(..) < 170 => raws.push(raw - i32::from(random.bool())),
            _ => raws.push(random.i32(0..=RAND_MAX)),
        }
    }
    raws
}

/// What is compared with the oracles: all of them draw by draw, so that one
/// full sort serves for all.
type Subjects<'a> = &'a [Candidate<'a>];

/// One of them. How it is asked depends on what it costs.
struct Candidate<'a> {
    subject: &'a (dyn Subject + Sync),
    /// As dear as C: asked for one draw in four, of a large vocabulary for one.
    is_exact: bool,
}

/// Asks every subject for `draws_asked` draws of both functions and compares.
fn compare(
    subjects: Subjects<'_>,
    setting: Setting,
    draws_asked: usize,
    plain: Plain,
) -> Result<Tally, Box<Mismatch>> {
    let Setting {
        temperature, top_p, ..
    } = setting;
    let logits = setting.shape.logits(setting.seed, setting.vocab_size);
    let mut random = fastrand::Rng::with_seed(setting.seed ^ (setting.vocab_size as u64) << 32);
    let prepared = Prepared::new(&logits, temperature, top_p);
    let greedy = temperature <= 0.0;
    let mut tally = Tally::new(subjects);
    for (k, raw) in raws(&prepared, draws_asked, &mut random)
        .into_iter()
        .enumerate()
    {
        for entry in Entry::BOTH {
            // The full sort costs as much as its oracle: now and then will do.
            if entry == Entry::ServeSampleSorted && plain == Plain::First && k % 4 > 0 {
                continue;
            }
            let ask = |who: &dyn Subject| {
                let draw = || who.draw(entry, &logits, temperature, top_p);
                scripted(raw, draw)
            };
            let (token, calls) = match entry {
                Entry::ServeSample if greedy => (REFERENCE.argmax_first(&logits), 0),
                _ => (prepared.pick(raw), 1),
            };
            let check = |who: &dyn Subject| {
                let got = ask(who);
                if got == (token, calls) {
                    return Ok(());
                }
                Err(Box::new(Mismatch {
                    setting,
                    entry,
                    raw,
                    answers: [
                        (who.name().to_owned(), got.0, got.1),
                        ("prepared reference".to_owned(), token, calls),
                    ],
                }))
            };
            if k == 0 || plain == Plain::Every {
                check(&REFERENCE)?;
                tally.plain += 1;
                if let Some(original) = &ORIGINAL {
                    check(original)?;
                    tally.original += 1;
                }
            }
            for (candidate, draws) in subjects.iter().zip(&mut tally.draws) {
                let often = if plain == Plain::Every {
                    4
                } else {
                    draws_asked
                };
                if candidate.is_exact && k % often > 0 {
                    continue;
                }
                check(candidate.subject)?;
                *draws += 1;
            }
        }
    }
    Ok(tally)
}

/// A setting, the draws made of it, and how many of them go to plain C.
type Job = (Setting, usize, Plain);

/// Few draws of every small size, the shapes and parameters in turn.
fn every_small_size() -> impl Iterator<Item = Job> {
    (1..=SMALL).flat_map(|vocab_size| {
        (0..2).map(move |turn| {
            let k = vocab_size * 2 + turn;
            let (temperature, top_p) = USUAL[k % USUAL.len()];
            let setting = Setting {
                shape: &SHAPES[k % SHAPES.len()],
                seed: k as u64,
                vocab_size,
                temperature,
                top_p,
            };
            (setting, 6, Plain::First)
        })
    })
}

/// Every shape under every temperature and top_p, the odd ones too, at sizes
/// around the widths of vectors.
fn every_parameter() -> impl Iterator<Item = Job> {
    const SIZES: [usize; 12] = [1, 3, 16, 17, 127, 512, 513, 514, 528, 777, 1_027, 2_047];
    let odd = TEMPERATURES
        .into_iter()
        .flat_map(|temperature| TOP_PS.map(|top_p| (temperature, top_p)));
    let parameters: Vec<_> = USUAL.into_iter().chain(odd).collect();
    SHAPES.iter().flat_map(move |shape| {
        let parameters = parameters.clone();
        (0..).zip(parameters).map(move |(k, (temperature, top_p))| {
            let setting = Setting {
                shape,
                seed: k,
                vocab_size: SIZES[k as usize % SIZES.len()],
                temperature,
                top_p,
            };
            (setting, 12, Plain::Every)
        })
    })
}

/// Many draws from a few small vectors, most of them at the borders of tokens.
fn many_draws() -> impl Iterator<Item = Job> {
    SHAPES.iter().flat_map(|shape| {
        [48, 513, 1_500].into_iter().flat_map(move |vocab_size| {
            (0..).zip(USUAL).map(move |(k, (temperature, top_p))| {
                let setting = Setting {
                    shape,
                    seed: 1_000 + k,
                    vocab_size,
                    temperature,
                    top_p,
                };
                (setting, 60, Plain::Every)
            })
        })
    })
}

/// The vocabularies of models: every shape, two settings each.
fn every_large_size() -> impl Iterator<Item = Job> {
    LARGE.into_iter().flat_map(|vocab_size| {
        SHAPES.iter().enumerate().flat_map(move |(s, shape)| {
            (0..2).map(move |turn| {
                let (temperature, top_p) = USUAL[(s + turn * 4) % USUAL.len()];
                let setting = Setting {
                    shape,
                    seed: (s + turn) as u64,
                    vocab_size,
                    temperature,
                    top_p,
                };
                (setting, 5, Plain::First)
            })
        })
    })
}

fn jobs() -> Vec<Job> {
    every_large_size()
        .chain(every_small_size())
        .chain(every_parameter())
        .chain(many_draws())
        .collect()
}

/// All jobs, on all cores.
fn compare_all(subjects: Subjects<'_>, jobs: &[Job]) -> Result<Tally, Box<Mismatch>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut tally = Tally::new(subjects);
        while let Some(&(setting, draws, plain)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            match compare(subjects, setting, draws, plain) {
                Ok(compared) => tally.add(compared),
                Err(mismatch) => {
                    // The others need not go on.
                    next.store(jobs.len(), Ordering::Relaxed);
                    return Err(mismatch);
                }
            }
        }
        Ok(tally)
    };
    let cores = thread::available_parallelism().map_or(1, |n| n.get());
    thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let mut total = Tally::new(subjects);
        for worker in workers {
            total.add(worker.join().expect("a worker does not panic")?);
        }
        Ok(total)
    })
}

/// Draws of the library that [`jobs`] make, and of plain C.
const DRAWS: usize = 291_384;
const PLAIN: usize = 241_196;
const _: () = assert!(DRAWS >= 200_000);

#[test]
fn every_draw_equals_the_oracles() {
    let jobs = jobs();
    let ways = ways::all();
    let mut subjects = vec![Candidate {
        subject: &LIBRARY,
        is_exact: false,
    }];
    subjects.extend(ways.iter().map(|way| Candidate {
        subject: way,
        is_exact: way.is_exact(),
    }));
    let tally = compare_all(&subjects, &jobs).unwrap_or_else(|mismatch| panic!("{mismatch}"));
    for (candidate, draws) in subjects.iter().zip(&tally.draws) {
        println!(
            "differential: {}: {draws} draws compared with the C reference, 0 different",
            candidate.subject.name(),
        );
        assert!(candidate.is_exact || *draws == DRAWS, "{draws} draws");
        assert!(*draws > DRAWS / 5, "{draws} draws");
    }
    println!(
        "differential: {} vectors; {} answers of the prepared reference compared with plain calls",
        jobs.len(),
        tally.plain,
    );
    assert_eq!(tally.plain, PLAIN);
    match ORIGINAL {
        Some(_) => {
            println!(
                "differential: {} of them compared with the original",
                tally.original
            );
            assert_eq!(tally.original, PLAIN);
        }
        None => println!("differential: the original is not in vendor/: not compared with it"),
    }
}

/// One draw, from the line that a mismatch prints.
#[test]
#[ignore = "replays the line of a mismatch, given in COLIBRI_REPLAY"]
fn replay() {
    let line = std::env::var("COLIBRI_REPLAY").expect("COLIBRI_REPLAY='SHAPE SEED V T P RAW'");
    let words: Vec<&str> = line.split_whitespace().collect();
    let [shape, seed, vocab_size, temperature, top_p, raw] = words[..] else {
        panic!("COLIBRI_REPLAY: six words, not {}", words.len());
    };
    let bits = |word: &str| {
        let digits = word.trim_start_matches("0x");
        f32::from_bits(u32::from_str_radix(digits, 16).expect("bits of a float"))
    };
    let (temperature, top_p) = (bits(temperature), bits(top_p));
    let raw: i32 = raw.parse().expect("a raw value of rand()");
    let logits = shapes::find(shape).expect("the name of a shape").logits(
        seed.parse().expect("a seed"),
        vocab_size.parse().expect("a size"),
    );
    let mut answers = Vec::new();
    for entry in Entry::BOTH {
        for sampler in [LIBRARY, REFERENCE].into_iter().chain(ORIGINAL) {
            let draw = || sampler.draw(entry, &logits, temperature, top_p);
            let answer = scripted(raw, draw);
            println!("{entry:?} of {}: {answer:?}", sampler.name);
            answers.push((entry, answer));
        }
    }
    let request = Request::new(&logits, temperature, top_p).unwrap();
    for way in ways::all() {
        let draw = || way.draw(Entry::ServeSample, &logits, temperature, top_p);
        answers.push((Entry::ServeSample, scripted(raw, draw)));
        let report = trace::sample_with(&request, uniform(raw), way.settings);
        println!("{}: {report:?}", way.name());
    }
    println!("{:?}", trace::by_buckets(&request, uniform(raw)));
    println!("{:?}", trace::by_full_sort(&request, uniform(raw)));
    answers.sort_by_key(|&(entry, _)| entry == Entry::ServeSampleSorted);
    for pair in answers.windows(2) {
        assert!(pair[0].0 != pair[1].0 || pair[0].1 == pair[1].1);
    }
}

/// What the library makes of a raw value.
fn uniform(raw: i32) -> f64 {
    f64::from(raw) / f64::from(RAND_MAX)
}

fn by_buckets(setting: Setting, raw: i32) -> (Report, i32, oracle::reference_trace) {
    let logits = setting.shape.logits(setting.seed, setting.vocab_size);
    let request = Request::new(&logits, setting.temperature, setting.top_p).unwrap();
    let report = trace::by_buckets(&request, uniform(raw)).unwrap();
    let traced = || oracle::reference_trace(&logits, setting.temperature, setting.top_p);
    let ((token, reference), _) = scripted(raw, traced);
    (report, token, reference)
}

fn published(name: &str, top_p: f32) -> Setting {
    Setting {
        shape: shapes::find(name).unwrap(),
        seed: 0,
        vocab_size: 4_096,
        temperature: 0.7,
        top_p,
    }
}

#[test]
fn candidates_equal_the_published_table() {
    // Without its margin the last row would have 250.
    for (name, top_p, candidates) in [
        ("flat", 0.9, 4_096),
        ("spike", 0.9, 1),
        ("spike", 1.0, 4_096),
        ("plateau", 0.9, 50),
        ("tail", 0.9, 300),
    ] {
        let setting = published(name, top_p);
        let (report, token, reference) = by_buckets(setting, RAND_MAX / 2);
        assert_eq!(reference.candidates, candidates, "reference: {setting}");
        if top_p < 1.0 {
            assert_eq!(report.candidates, candidates as usize, "{setting}");
            assert_eq!(report.route, Route::Buckets, "{setting}");
        } else {
            let logits = setting.shape.logits(0, 4_096);
            let request = Request::new(&logits, 0.7, top_p).unwrap();
            let report = trace::sample(&request, 0.5).unwrap();
            // Whichever path answered, the full sort takes them all.
            let sorted = trace::by_full_sort(&request, 0.5).unwrap();
            assert_eq!(sorted.candidates, candidates as usize, "{setting}");
            assert_eq!(report.token, sorted.token, "{setting}");
        }
        assert_eq!(
            (report.token, report.nucleus),
            (token, reference.nucleus as usize)
        );
        println!("differential: {name} at {top_p}: {candidates} candidates");
    }
    assert_eq!(by_buckets(published("tail", 0.9), 0).0.nucleus, 244);
    assert_eq!(by_buckets(published("flat", 0.9), 0).0.nucleus, 3_687);
}

#[test]
fn thirty_six_picks_equal_the_full_sorts() {
    let mut picks = 0;
    for name in ["flat", "spike", "plateau", "tail"] {
        for top_p in [0.3, 0.9, 1.0] {
            let setting = published(name, top_p);
            let logits = setting.shape.logits(0, 4_096);
            for raw in [0, RAND_MAX / 2, RAND_MAX] {
                let ask = |sampler: Sampler, entry| {
                    scripted(raw, || sampler.draw(entry, &logits, 0.7, top_p))
                };
                let pick = ask(LIBRARY, Entry::ServeSample);
                for sampler in [LIBRARY, REFERENCE].into_iter().chain(ORIGINAL) {
                    let sorted = ask(sampler, Entry::ServeSampleSorted);
                    assert_eq!(pick, sorted, "{setting}, rand() {raw}, {}", sampler.name);
                }
                picks += 1;
            }
        }
    }
    println!("differential: {picks} of 36 picks equal the full sort's");
    assert_eq!(picks, 36);
}

#[test]
fn ties_end_where_published() {
    let logits = [0.0; 4_096];
    for sampler in [LIBRARY, REFERENCE].into_iter().chain(ORIGINAL) {
        for (raw, token) in [(0, 0), (RAND_MAX, 3_686)] {
            let draw = || sampler.serve_sample(&logits, 0.7, 0.9);
            assert_eq!(scripted(raw, draw), (token, 1), "{}", sampler.name);
        }
    }
}

/// The buckets let the same tokens through as the reference's, on every shape.
#[test]
fn traces_equal_the_references() {
    let (mut compared, mut fell_back) = (0, 0);
    let cut = |&(setting, ..): &Job| {
        let in_range = setting.top_p > 0.0 && setting.top_p < 1.0;
        // Greedy calls have no trace, and large ones are dear.
        let greedy = setting.temperature <= 0.0;
        in_range && !greedy && setting.vocab_size <= SMALL
    };
    let near = (0..4_000).map(|seed| {
        let setting = Setting {
            shape: shapes::find("near-fallback").unwrap(),
            seed,
            vocab_size: 100 + (seed as usize * 37) % 1_500,
            temperature: 1.0,
            top_p: 0.999_999_94,
        };
        (setting, 1, Plain::First)
    });
    for (setting, ..) in jobs().into_iter().filter(cut).chain(near) {
        let raw = (setting.seed as i32).wrapping_mul(0x9e37_79b9_u32 as i32) & RAND_MAX;
        let (report, token, reference) = by_buckets(setting, raw);
        let ours = (
            report.token,
            report.candidates,
            report.nucleus,
            report.route == Route::FellBack,
        );
        let theirs = (
            token,
            reference.candidates as usize,
            reference.nucleus as usize,
            reference.fell_back == 1,
        );
        assert_eq!(ours, theirs, "COLIBRI_REPLAY='{setting} {raw}'");
        fell_back += usize::from(ours.3);
        compared += 1;
    }
    println!("differential: {compared} traces compared, {fell_back} of them of a fallback");
    assert!(fell_back > 0, "no vector made the candidates run out");
}

/// The paths that answered, by how often: that nothing differs would say little
/// of a path that nobody took.
#[test]
fn every_path_answers() {
    let mut routes: HashMap<Route, usize> = HashMap::new();
    for (setting, ..) in jobs() {
        // The same by certainty or not; a large vocabulary has no other paths.
        if setting.vocab_size > SMALL {
            continue;
        }
        let logits = setting.shape.logits(setting.seed, setting.vocab_size);
        let request = Request::new(&logits, setting.temperature, setting.top_p).unwrap();
        for raw in EDGES {
            let report = trace::sample(&request, uniform(raw)).unwrap();
            *routes.entry(report.route).or_default() += 1;
        }
    }
    println!("differential: paths {routes:?}");
    let mut wanted = vec![Route::Greedy, Route::Exact, Route::Buckets, Route::FullSort];
    if Settings::default().twin {
        wanted.extend([Route::Certified, Route::Refined]);
    } else {
        println!("differential: the host's expf has no twin: no certified path on this host");
    }
    for route in wanted {
        assert!(
            routes.contains_key(&route),
            "no draw was answered by {route:?}"
        );
    }
}

/// The library and its oracles are not one code under two names.
#[test]
fn oracles_are_other_code() {
    let samplers: Vec<Sampler> = [LIBRARY, REFERENCE].into_iter().chain(ORIGINAL).collect();
    let mut addresses: Vec<usize> = samplers
        .iter()
        .flat_map(|sampler| {
            [
                sampler.serve_sample as usize,
                sampler.serve_sample_sorted as usize,
                sampler.argmax_first as usize,
            ]
        })
        .collect();
    let count = addresses.len();
    addresses.sort_unstable();
    addresses.dedup();
    assert_eq!(addresses.len(), count, "{samplers:?}");
}

/// The library, but for the draws of one raw value by one function.
struct Planted {
    entry: Entry,
    raw: i32,
}

impl Subject for Planted {
    fn name(&self) -> &str {
        "planted"
    }

    fn draw(&self, entry: Entry, logits: &[f32], temperature: f32, top_p: f32) -> i32 {
        let token = LIBRARY.draw(entry, logits, temperature, top_p);
        let here = entry == self.entry && rand::scripted_value() == Some(self.raw);
        token + i32::from(here)
    }

    fn argmax_first(&self, values: &[f32]) -> i32 {
        LIBRARY.argmax_first(values)
    }
}

fn only(subject: &(dyn Subject + Sync)) -> [Candidate<'_>; 1] {
    [Candidate {
        subject,
        is_exact: false,
    }]
}

/// A difference in one draw of one function is found, and told in full.
#[test]
fn a_planted_difference_is_found() {
    let setting = Setting {
        shape: shapes::find("gumbel").unwrap(),
        seed: 7,
        vocab_size: 500,
        temperature: 0.7,
        top_p: 0.9,
    };
    assert!(compare(&only(&LIBRARY), setting, 30, Plain::Every).is_ok());
    for entry in Entry::BOTH {
        let raw = RAND_MAX;
        let planted = Planted { entry, raw };
        let Err(found) = compare(&only(&planted), setting, 30, Plain::Every) else {
            panic!("a difference in {entry:?} was not found");
        };
        assert_eq!((found.entry, found.raw), (entry, raw));
        let told = found.to_string();
        for part in [
            "gumbel",
            "seed 7",
            "V 500",
            "0x3f333333",
            "0x3f666666",
            "2147483647",
        ] {
            assert!(told.contains(part), "{part} is not in: {told}");
        }
    }
}
