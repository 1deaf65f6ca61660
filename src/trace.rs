//! A draw with a record of how it was answered, for tests, benches and replays.

use crate::kernels::Engine;
pub use crate::kernels::Tier;
use crate::request::{Rejection, Request};
use crate::sample::{self, Way};

/// The path that gave the token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Route {
    /// The argmax: no number was drawn.
    #[default]
    Greedy,
    /// The certified path at its first try.
    Certified,
    /// The certified path, after looking closer.
    Refined,
    /// Every weight exactly, and a sort of the heaviest.
    Exact,
    /// Exponent buckets, then a sort of what they let through.
    Buckets,
    /// Exponent buckets whose candidates ran out below the cutoff, and then the
    /// full sort.
    FellBack,
    /// A sort of the whole vocabulary.
    FullSort,
}

/// A token and how it came about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The token id.
    pub token: i32,
    /// The path that gave it.
    pub route: Route,
    /// Tokens that the pick was looked for among; on the bucket path those that
    /// the buckets let through, before any fallback. 0 for greedy.
    pub candidates: usize,
    /// Tokens in the nucleus. 0 for greedy and for a NaN cutoff, and on the
    /// certified path, which has no need to know.
    pub nucleus: usize,
    /// Exact weights that were computed.
    pub weighed: usize,
    /// Tokens that were sorted.
    pub sorted: usize,
    /// How often the certified path had to look closer.
    pub refined: u32,
}

/// How a draw is to be answered. Each way gives the same token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The tier to run at. One that this CPU lacks is lowered to one that it has.
    pub tier: Tier,
    /// Whether to try the certified path before the exact ones.
    pub certify: bool,
    /// Whether weights may come from the twin of the host's expf. Without it
    /// there is no certified path.
    pub twin: bool,
}

impl Settings {
    fn way(self) -> Way {
        let mut engine = Engine::at(self.tier);
        if !self.twin {
            engine.rounding = None;
        }
        Way {
            engine,
            certify: self.certify,
        }
    }
}

impl Default for Settings {
    /// What `serve_sample` does in this process.
    fn default() -> Self {
        let engine = Engine::of_process();
        Settings {
            tier: engine.tier,
            certify: true,
            twin: engine.rounding.is_some(),
        }
    }
}

/// The tiers that this CPU has, rising.
pub fn tiers() -> Vec<Tier> {
    Tier::ALL
        .into_iter()
        .filter(|&tier| Engine::at(tier).tier == tier)
        .collect()
}

/// What `serve_sample` does with `uniform` as its draw (`rand() / RAND_MAX`).
pub fn sample(request: &Request<'_>, uniform: f64) -> Result<Report, Rejection> {
    sample::sample(request, || uniform, Way::of_process())
}

/// The same in a given way.
pub fn sample_with(
    request: &Request<'_>,
    uniform: f64,
    settings: Settings,
) -> Result<Report, Rejection> {
    sample::sample(request, || uniform, settings.way())
}

/// What `serve_sample_sorted` does, in a given way.
pub fn sample_sorted_with(
    request: &Request<'_>,
    uniform: f64,
    settings: Settings,
) -> Result<Report, Rejection> {
    sample::sample_nucleus(request, uniform, settings.way())
}

/// What the exponent buckets do, whatever path `serve_sample` would take.
pub fn by_buckets(request: &Request<'_>, uniform: f64) -> Result<Report, Rejection> {
    sample::by_buckets(request, uniform, Way::of_process())
}

/// What the full sort does, whatever path `serve_sample` would take.
pub fn by_full_sort(request: &Request<'_>, uniform: f64) -> Result<Report, Rejection> {
    sample::by_full_sort(request, uniform, Way::of_process())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_are_those_of_the_cpu() {
        let available: Vec<Tier> = Tier::ALL
            .into_iter()
            .filter(|tier| tier.is_available())
            .collect();
        // Where the twin was refused all of them end at the portable one.
        if Settings::default().twin {
            assert_eq!(tiers(), available);
        }
        assert_eq!(tiers()[0], Tier::Portable);
    }
}
