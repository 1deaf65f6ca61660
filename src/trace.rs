//! A draw with a record of how it was answered, for tests, benches and replays.

use crate::request::{Rejection, Request};
use crate::sample;

/// The path that gave the token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Route {
    /// The argmax: no number was drawn.
    #[default]
    Greedy,
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
    /// Tokens sorted; on the bucket path those that it let through, before any
    /// fallback. 0 for greedy.
    pub candidates: usize,
    /// Tokens in the nucleus. 0 for greedy and for a NaN cutoff.
    pub nucleus: usize,
}

/// What `serve_sample` does with `uniform` as its draw (`rand() / RAND_MAX`).
pub fn sample(request: &Request<'_>, uniform: f64) -> Result<Report, Rejection> {
    sample::sample(request, || uniform)
}

/// What the exponent buckets do, whatever path `serve_sample` would take.
pub fn by_buckets(request: &Request<'_>, uniform: f64) -> Result<Report, Rejection> {
    sample::by_buckets(request, uniform)
}

/// What the full sort does, whatever path `serve_sample` would take.
pub fn by_full_sort(request: &Request<'_>, uniform: f64) -> Result<Report, Rejection> {
    sample::by_full_sort(request, uniform)
}
