//! The choice of a path. All of them give the token of the full sort.

use crate::draw;
use crate::greedy;
use crate::nucleus::{bucket, full_sort};
use crate::request::{Rejection, Request};
use crate::trace::{Report, Route};
use crate::weight::Weights;

/// The token of `request`. `uniform` is called once, unless the answer is
/// greedy.
pub(crate) fn sample(
    request: &Request<'_>,
    uniform: impl FnOnce() -> f64,
) -> Result<Report, Rejection> {
    if request.is_greedy() {
        return Ok(Report {
            token: greedy::argmax_first(request.logits()) as i32,
            route: Route::Greedy,
            ..Report::default()
        });
    }
    sample_nucleus(request, uniform())
}

/// The token of `request` whatever its temperature: there is no greedy branch.
pub(crate) fn sample_nucleus(request: &Request<'_>, uniform: f64) -> Result<Report, Rejection> {
    if request.is_cut() {
        by_buckets(request, uniform)
    } else {
        by_full_sort(request, uniform)
    }
}

pub(crate) fn by_buckets(request: &Request<'_>, uniform: f64) -> Result<Report, Rejection> {
    let weights = Weights::of(request)?;
    let nucleus = bucket::nucleus(request, &weights)?;
    let candidates = nucleus.order.len();
    if !nucleus.reached && candidates < weights.by_id.len() {
        drop(nucleus);
        let nucleus = full_sort::nucleus(request, &weights)?;
        return Ok(Report {
            token: draw::pick(&nucleus, uniform),
            route: Route::FellBack,
            candidates,
            nucleus: nucleus.len,
        });
    }
    Ok(Report {
        token: draw::pick(&nucleus, uniform),
        route: Route::Buckets,
        candidates,
        nucleus: nucleus.len,
    })
}

pub(crate) fn by_full_sort(request: &Request<'_>, uniform: f64) -> Result<Report, Rejection> {
    let weights = Weights::of(request)?;
    let nucleus = full_sort::nucleus(request, &weights)?;
    Ok(Report {
        token: draw::pick(&nucleus, uniform),
        route: Route::FullSort,
        candidates: nucleus.order.len(),
        nucleus: nucleus.len,
    })
}
