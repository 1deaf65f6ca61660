//! What is published of the original's sampler, replayed: candidate counts,
//! comparisons with the full sort, the ends of a tie, greedy.

use colibri_sampler::Request;
use colibri_sampler::oracle::{LIBRARY, ORIGINAL, Sampler};
use serde::Serialize;

use crate::equal::{self, Equal, draw, tally, word};
use crate::rand::{RAND_MAX, scripted};
use crate::shapes;
use crate::table::{Table, grouped};

const VOCAB_SIZE: usize = 4096;
const TEMPERATURE: f32 = 0.7;

/// Shape, top_p, and the published number of candidates.
const PUBLISHED: [(&str, f32, usize); 5] = [
    ("flat", 0.9, 4096),
    ("spike", 0.9, 1),
    ("spike", 1.0, 4096),
    ("plateau", 0.9, 50),
    ("tail", 0.9, 300),
];

const SHAPES: [&str; 4] = ["flat", "spike", "plateau", "tail"];
const TOP_P: [f32; 3] = [0.3, 0.9, 1.0];
const RAW_DRAWS: [i32; 3] = [0, RAND_MAX / 2, RAND_MAX];

/// The tie of 4,096 equal tokens at top_p 0.9: the token of the least and of
/// the greatest draw.
const TIE_ENDS: [(i32, i32); 2] = [(0, 0), (RAND_MAX, 3686)];
const TIE_NUCLEUS: usize = 3687;

fn logits(shape: &str) -> Vec<f32> {
    let shape = shapes::find(shape).expect("a shape of tests/common/shapes.rs");
    shape.logits(0, VOCAB_SIZE)
}

#[derive(Serialize)]
struct Candidates {
    shape: &'static str,
    vocab_size: usize,
    temperature: f32,
    top_p: f32,
    candidates: usize,
    published: usize,
    /// The reference counted as many.
    reference: bool,
}

#[derive(Serialize)]
struct Comparison {
    shape: &'static str,
    top_p: f32,
    raw_draw: i32,
    token: i32,
    /// The library's own full sort gave the same.
    full_sort: bool,
    equal: Equal,
}

#[derive(Serialize)]
struct TieEnd {
    raw_draw: i32,
    token: i32,
    published: i32,
    equal: Equal,
}

#[derive(Serialize)]
struct Greedy {
    case: &'static str,
    token: i32,
    expected: i32,
    /// serve_sample and argmax_first agree, and no number was drawn.
    three_ways: bool,
    equal: Equal,
}

/// Everything published, and whether the library gives it.
#[derive(Serialize)]
pub struct Published {
    /// Nothing differs.
    ok: bool,
    /// The original is in vendor/ and was compared with.
    original: bool,
    candidates: Vec<Candidates>,
    comparisons: Vec<Comparison>,
    tie_nucleus: usize,
    tie_ends: Vec<TieEnd>,
    greedy: Vec<Greedy>,
}

impl Published {
    pub fn replay() -> Self {
        let candidates: Vec<_> = PUBLISHED.into_iter().map(candidates).collect();
        let comparisons = comparisons();
        let tie_nucleus = tie_nucleus();
        let tie_ends: Vec<_> = TIE_ENDS.into_iter().map(tie_end).collect();
        let greedy = greedy();
        let ok = candidates.iter().all(Candidates::ok)
            && comparisons.iter().all(|c| c.full_sort && c.equal.all())
            && tie_nucleus == TIE_NUCLEUS
            && tie_ends.iter().all(TieEnd::ok)
            && greedy.iter().all(Greedy::ok);
        Published {
            ok,
            original: ORIGINAL.is_some(),
            candidates,
            comparisons,
            tie_nucleus,
            tie_ends,
            greedy,
        }
    }

    pub fn ok(&self) -> bool {
        self.ok
    }
}

fn candidates((shape, top_p, published): (&'static str, f32, usize)) -> Candidates {
    let logits = logits(shape);
    let request = Request::new(&logits, TEMPERATURE, top_p).expect("4,096 tokens are a request");
    let candidates = crate::count(&request).candidates;
    Candidates {
        shape,
        vocab_size: VOCAB_SIZE,
        temperature: TEMPERATURE,
        top_p,
        candidates,
        published,
        reference: candidates == crate::reference_counts(&request).0,
    }
}

impl Candidates {
    fn ok(&self) -> bool {
        self.candidates == self.published && self.reference
    }
}

fn comparisons() -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    for shape in SHAPES {
        let logits = logits(shape);
        for top_p in TOP_P {
            for raw in RAW_DRAWS {
                let of = |side: &Sampler| draw(side, &logits, TEMPERATURE, top_p, raw);
                let drawn = of(&LIBRARY);
                let sorted = scripted(raw, || {
                    LIBRARY.serve_sample_sorted(&logits, TEMPERATURE, top_p)
                });
                comparisons.push(Comparison {
                    shape,
                    top_p,
                    raw_draw: raw,
                    token: drawn.0,
                    full_sort: sorted == drawn,
                    equal: Equal::of(|side| of(side) == drawn),
                });
            }
        }
    }
    comparisons
}

fn tie_nucleus() -> usize {
    let logits = logits("flat");
    let request = Request::new(&logits, TEMPERATURE, 0.9).expect("4,096 tokens are a request");
    crate::count(&request).nucleus
}

fn tie_end((raw, published): (i32, i32)) -> TieEnd {
    let logits = logits("flat");
    let of = |side: &Sampler| draw(side, &logits, TEMPERATURE, 0.9, raw);
    let drawn = of(&LIBRARY);
    TieEnd {
        raw_draw: raw,
        token: drawn.0,
        published,
        equal: Equal::of(|side| of(side) == drawn),
    }
}

impl TieEnd {
    fn ok(&self) -> bool {
        self.token == self.published && self.equal.all()
    }
}

/// Each case through serve_sample at temperature 0 and -1, which must not call
/// rand(), and through argmax_first.
fn greedy() -> Vec<Greedy> {
    const NAN: f32 = f32::NAN;
    const INF: f32 = f32::INFINITY;
    let mut tie = vec![0.0; 64];
    tie[17] = 2.0;
    tie[32] = 2.0;
    let cases: [(&'static str, Vec<f32>, i32); 8] = [
        ("equal maxima at 17 and 32", tie, 17),
        ("-0 before +0", vec![-1.0, -0.0, 0.0], 1),
        ("NaN behind the first token", vec![1.0, NAN, 3.0, 2.0], 2),
        ("NaN at the first token", vec![NAN, 1.0, 3.0, 2.0], 0),
        ("+inf", vec![0.0, INF, 1.0, INF], 1),
        ("all -inf", vec![-INF; 3], 0),
        ("one token", vec![-3.0], 0),
        ("4,096 tokens, one at 20", logits("spike"), 1337),
    ];
    let replay = |(case, logits, expected): (&'static str, Vec<f32>, i32)| {
        let of = |side: &Sampler| {
            [
                draw(side, &logits, 0.0, 0.9, 0),
                draw(side, &logits, -1.0, 0.9, 0),
                scripted(0, || side.argmax_first(&logits)),
            ]
        };
        let drawn = of(&LIBRARY);
        let token = drawn[0].0;
        Greedy {
            case,
            token,
            expected,
            three_ways: drawn == [(token, 0); 3],
            equal: Equal::of(|side| of(side) == drawn),
        }
    };
    cases.into_iter().map(replay).collect()
}

impl Greedy {
    fn ok(&self) -> bool {
        self.token == self.expected && self.three_ways && self.equal.all()
    }
}

impl Published {
    pub fn text(&self) -> String {
        let counted = self.candidates.iter().filter(|c| c.ok()).count();
        let full_sort = self.comparisons.iter().filter(|c| c.full_sort).count();
        format!(
            "Candidates that the exponent buckets let through\n{}\n\
             Tokens by draw, beside the full sort and the C code\n{}\n\
             Ends of the tie: flat, top_p 0.9, nucleus of {}, published {}\n{}\n\
             Greedy: temperature 0 and -1, and argmax_first\n{}\n\
             {} candidate counts as published\n\
             {} draws equal to the full sort\n{}",
            self.candidates_table(),
            self.comparisons_table(),
            grouped(self.tie_nucleus),
            grouped(TIE_NUCLEUS),
            self.tie_table(),
            self.greedy_table(),
            tally(counted, self.candidates.len()),
            tally(full_sort, self.comparisons.len()),
            equal::summary(self.comparisons.iter().map(|c| &c.equal), self.ok),
        )
    }

    fn candidates_table(&self) -> Table {
        let mut table = Table::new(
            "shape",
            "V,temperature,top_p,candidates,published,C reference",
        );
        for c in &self.candidates {
            table.row([
                c.shape.to_owned(),
                grouped(c.vocab_size),
                format!("{:.1}", c.temperature),
                format!("{:.1}", c.top_p),
                grouped(c.candidates),
                grouped(c.published),
                word(c.reference),
            ]);
        }
        table
    }

    fn comparisons_table(&self) -> Table {
        let mut table = Table::new("shape", "top_p,0,RAND_MAX / 2,RAND_MAX,full sort");
        table.header(equal::HEADER);
        for draws in self.comparisons.chunks(RAW_DRAWS.len()) {
            let full_sort = draws.iter().filter(|d| d.full_sort).count();
            let shape = [draws[0].shape.to_owned(), format!("{:.1}", draws[0].top_p)];
            let cells = shape.into_iter();
            let cells = cells.chain(draws.iter().map(|d| grouped(d.token)));
            let cells = cells.chain([tally(full_sort, draws.len())]);
            table.row(cells.chain(equal::counts(draws.iter().map(|d| &d.equal))));
        }
        table
    }

    fn tie_table(&self) -> Table {
        let mut table = Table::new("draw", "token,published");
        table.header(equal::HEADER);
        for end in &self.tie_ends {
            let draw = if end.raw_draw == 0 { "0" } else { "RAND_MAX" };
            let cells = [draw.to_owned(), grouped(end.token), grouped(end.published)];
            table.row(cells.into_iter().chain(end.equal.cells()));
        }
        table
    }

    fn greedy_table(&self) -> Table {
        let mut table = Table::new("logits", "token,expected,both agree");
        table.header(equal::HEADER);
        for case in &self.greedy {
            let cells = [
                case.case.to_owned(),
                grouped(case.token),
                grouped(case.expected),
                if case.three_ways { "yes" } else { "NO" }.to_owned(),
            ];
            table.row(cells.into_iter().chain(case.equal.cells()));
        }
        table
    }
}
