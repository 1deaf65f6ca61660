//! The ways in which the library is asked, each of which gives the same token.

use colibri_sampler::oracle::{LIBRARY, Sampler};
use colibri_sampler::trace::{self, Report, Route, Settings, Tier};
use colibri_sampler::{Rejection, Request};

use crate::plan::Plan;
use crate::rand::{RAND_MAX, scripted};

/// A function that draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    ServeSample,
    ServeSampleSorted,
}

impl Entry {
    pub fn name(self) -> &'static str {
        match self {
            Entry::ServeSample => "serve_sample",
            Entry::ServeSampleSorted => "serve_sample_sorted",
        }
    }
}

/// A draw from logits.
#[derive(Clone, Copy)]
pub struct Draw<'a> {
    pub logits: &'a [f32],
    pub temperature: f32,
    pub top_p: f32,
    pub raw: i32,
    pub entry: Entry,
}

impl Draw<'_> {
    pub fn is_greedy(&self) -> bool {
        self.entry == Entry::ServeSample && self.temperature <= 0.0
    }

    /// The token of one side of the C surface, and how often it called rand().
    pub fn of(&self, side: &Sampler) -> (i32, usize) {
        let function = match self.entry {
            Entry::ServeSample => Sampler::serve_sample,
            Entry::ServeSampleSorted => Sampler::serve_sample_sorted,
        };
        scripted(self.raw, || {
            function(side, self.logits, self.temperature, self.top_p)
        })
    }

    fn uniform(&self) -> f64 {
        if self.is_greedy() {
            // Whoever draws there notices.
            f64::NAN
        } else {
            f64::from(self.raw) / f64::from(RAND_MAX)
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    /// The C functions, at the tier of the process.
    Functions,
    /// One tier, with or without certainty and the twin of expf.
    Way(Settings),
    /// The exponent buckets or the full sort, whichever `top_p` asks for.
    Definition,
    /// Wrong on purpose, to see that it is found.
    Planted,
}

/// One way of asking.
pub struct Ask {
    pub name: String,
    kind: Kind,
}

/// What the library said.
pub struct Answer {
    pub token: i32,
    /// Calls of rand(), where that can be said.
    pub calls: Option<usize>,
    /// None where the C functions were called, which do not tell.
    pub route: Option<Route>,
}

impl Ask {
    pub fn answer(&self, draw: &Draw<'_>) -> Answer {
        let request =
            || Request::new(draw.logits, draw.temperature, draw.top_p).expect("a case has logits");
        let traced = |report: Result<Report, Rejection>| {
            let report = report.expect("memory for one vector");
            Answer {
                token: report.token,
                calls: None,
                route: Some(report.route),
            }
        };
        match self.kind {
            Kind::Functions => {
                let (token, calls) = draw.of(&LIBRARY);
                Answer {
                    token,
                    calls: Some(calls),
                    route: None,
                }
            }
            Kind::Way(settings) => {
                let sample = match draw.entry {
                    Entry::ServeSample => trace::sample_with,
                    Entry::ServeSampleSorted => trace::sample_sorted_with,
                };
                traced(sample(&request(), draw.uniform(), settings))
            }
            Kind::Definition if draw.is_greedy() => traced(trace::sample(&request(), f64::NAN)),
            Kind::Definition if request().is_cut() && draw.entry == Entry::ServeSample => {
                traced(trace::by_buckets(&request(), draw.uniform()))
            }
            Kind::Definition => traced(trace::by_full_sort(&request(), draw.uniform())),
            Kind::Planted => {
                let (token, calls) = draw.of(&LIBRARY);
                let wrong = draw.raw == RAND_MAX && draw.logits.len() >= 5 && calls == 1;
                Answer {
                    token: token + i32::from(wrong),
                    calls: Some(calls),
                    route: None,
                }
            }
        }
    }

    /// Whether the certified path may answer, and says so.
    pub fn certifies(&self) -> bool {
        matches!(self.kind, Kind::Way(Settings { certify: true, .. }))
    }
}

/// All ways, and how often each comes.
pub struct Asks {
    pub all: Vec<Ask>,
    functions: usize,
    certified: Vec<usize>,
    exact: Vec<usize>,
    host: usize,
    definition: usize,
}

impl Asks {
    /// Those of the given tiers.
    pub fn new(tiers: &[Tier], plant: bool) -> Self {
        let process = Settings::default();
        let mut all = Vec::new();
        let mut add = |name: String, kind| {
            all.push(Ask { name, kind });
            all.len() - 1
        };
        let way = |tier, certify, twin| {
            Kind::Way(Settings {
                tier,
                certify,
                twin: twin && process.twin,
            })
        };
        let functions = if plant {
            add("planted".to_owned(), Kind::Planted)
        } else {
            let name = format!("C functions ({})", process.tier.name());
            add(name, Kind::Functions)
        };
        let certified = tiers
            .iter()
            .map(|&tier| add(format!("{} certified", tier.name()), way(tier, true, true)))
            .collect();
        let exact = tiers
            .iter()
            .map(|&tier| add(format!("{} exact", tier.name()), way(tier, false, true)))
            .collect();
        let host = add("host's expf".to_owned(), way(Tier::Portable, false, false));
        let definition = add("definition".to_owned(), Kind::Definition);
        Asks {
            all,
            functions,
            certified,
            exact,
            host,
            definition,
        }
    }

    /// One of them, by number. The exact ones come less often to vectors where
    /// each of their draws costs as much as many.
    pub fn choose(&self, plan: &Plan, random: &mut fastrand::Rng) -> usize {
        // As many numbers, whatever tiers there are.
        let (kind, tier) = (random.u32(..1_024), random.usize(..1 << 16));
        let of = |list: &[usize]| list[tier % list.len()];
        let (exact, host, definition) = match plan.vocab_size {
            // Made for the definition's own fallback.
            ..4_100 if plan.shape().name == "near-fallback" => (64, 32, 128),
            ..4_100 => (64, 32, 24),
            _ => (16, 8, 4),
        };
        if kind < definition {
            self.definition
        } else if kind < definition + host {
            self.host
        } else if kind < definition + host + exact {
            of(&self.exact)
        } else if kind < definition + host + exact + 128 {
            self.functions
        } else {
            of(&self.certified)
        }
    }
}
