//! The ways in which the library can answer a draw: its kernel tiers, and the
//! exact paths behind the certified one. Each gives the same token.

#![allow(dead_code, reason = "each binary takes what it needs")]

use colibri_sampler::Request;
use colibri_sampler::trace::{self, Report, Settings};

use super::cases::{Entry, Subject};
use super::rand::RAND_MAX;

/// The library, made to answer in one way.
#[derive(Clone, Debug)]
pub struct Way {
    name: String,
    pub settings: Settings,
}

impl Way {
    /// Whether it answers by the exact paths alone, which cost as much as C.
    pub fn is_exact(&self) -> bool {
        !self.settings.certify || !self.settings.twin
    }

    fn report(&self, entry: Entry, logits: &[f32], temperature: f32, top_p: f32) -> Report {
        let request = Request::new(logits, temperature, top_p).expect("a test has logits");
        let answer = match entry {
            // Greedy must not draw.
            Entry::ServeSample if request.is_greedy() => {
                trace::sample_with(&request, f64::NAN, self.settings)
            }
            Entry::ServeSample => trace::sample_with(&request, uniform(), self.settings),
            Entry::ServeSampleSorted => {
                trace::sample_sorted_with(&request, uniform(), self.settings)
            }
        };
        answer.expect("memory for a test")
    }
}

/// The scripted `rand()`, as the library takes it.
fn uniform() -> f64 {
    // SAFETY: rand takes nothing and returns an int.
    f64::from(unsafe { libc::rand() }) / f64::from(RAND_MAX)
}

impl Subject for Way {
    fn name(&self) -> &str {
        &self.name
    }

    fn draw(&self, entry: Entry, logits: &[f32], temperature: f32, top_p: f32) -> i32 {
        self.report(entry, logits, temperature, top_p).token
    }

    fn argmax_first(&self, values: &[f32]) -> i32 {
        self.report(Entry::ServeSample, values, 0.0, 1.0).token
    }
}

/// Every way: each tier of this CPU with the certified path, then without it,
/// and one with the host's expf for every weight, where the tier says little.
pub fn all() -> Vec<Way> {
    let mut ways = Vec::new();
    for (label, certify, twin) in [
        ("certified", true, true),
        ("exact", false, true),
        ("by the host's expf", false, false),
    ] {
        let tiers = trace::tiers();
        let tiers = if twin { &tiers[..] } else { &tiers[..1] };
        for &tier in tiers {
            let settings = Settings {
                tier,
                certify,
                twin,
            };
            ways.push(Way {
                name: format!("{} {label}", tier.name()),
                settings,
            });
        }
    }
    ways
}
