//! The choice of a path. All of them give the token of the full sort.

use crate::draw;
use crate::greedy;
use crate::kernels::{Engine, mode};
use crate::nucleus::{bucket, certified, full_sort, head};
use crate::request::{Rejection, Request};
use crate::trace::{Report, Route};
use crate::weight::Weights;

/// Vocabularies that are not worth a search for what matters in them.
pub(crate) const SHORT: usize = 512;
// The proof of the certified path's search needs it.
const _: () = assert!(certified::FEW <= SHORT);

/// How a call is answered. Every way gives the same token.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) engine: Engine,
    /// Whether the certified path is tried before the exact ones.
    pub(crate) certify: bool,
}

impl Way {
    /// What this thread gets when nobody asks for anything else.
    pub(crate) fn of_process() -> Self {
        Way {
            engine: Engine::of_process(),
            certify: true,
        }
    }

    /// Weights as the calling thread's floating-point mode makes them: the
    /// twins of expf and the bounds hold in the default mode.
    pub(crate) fn in_mode(mut self) -> Self {
        if !mode::is_default() {
            self.engine.rounding = None;
        }
        self
    }
}

/// The token of `request`. `uniform` is called once, unless the answer is
/// greedy.
pub(crate) fn sample(
    request: &Request<'_>,
    uniform: impl FnOnce() -> f64,
    way: Way,
) -> Result<Report, Rejection> {
    if request.is_greedy() {
        return Ok(Report {
            token: greedy::argmax_first(request.logits(), way.engine) as i32,
            route: Route::Greedy,
            ..Report::default()
        });
    }
    sample_nucleus(request, uniform(), way)
}

/// The token of `request` whatever its temperature: there is no greedy branch.
pub(crate) fn sample_nucleus(
    request: &Request<'_>,
    uniform: f64,
    way: Way,
) -> Result<Report, Rejection> {
    let way = way.in_mode();
    if way.certify
        && request.logits().len() > SHORT
        && let Some(report) = certified::sample(request, uniform, way.engine)?
    {
        return Ok(report);
    }
    let weights = Weights::of(request, way.engine)?;
    if weights.ordinary {
        let vocab_size = request.logits().len();
        let landed = head::sample(request, &weights, uniform, way.engine)?;
        return Ok(Report {
            token: landed.token,
            route: Route::Exact,
            candidates: landed.sorted,
            nucleus: landed.nucleus,
            weighed: vocab_size,
            sorted: landed.sorted,
            refined: 0,
        });
    }
    if request.is_cut() {
        from_buckets(request, &weights, uniform)
    } else {
        from_full_sort(request, &weights, uniform)
    }
}

/// The token by exponent buckets and what they let through.
pub(crate) fn by_buckets(
    request: &Request<'_>,
    uniform: f64,
    way: Way,
) -> Result<Report, Rejection> {
    let weights = Weights::of(request, way.in_mode().engine)?;
    from_buckets(request, &weights, uniform)
}

fn from_buckets(
    request: &Request<'_>,
    weights: &Weights,
    uniform: f64,
) -> Result<Report, Rejection> {
    let vocab_size = request.logits().len();
    let mut nucleus = bucket::nucleus(request, weights)?;
    let candidates = nucleus.order.len();
    let fell_back = !nucleus.reached && candidates < vocab_size;
    if fell_back {
        drop(nucleus);
        nucleus = full_sort::nucleus(request, weights)?;
    }
    Ok(Report {
        token: draw::pick(&nucleus, uniform),
        route: if fell_back {
            Route::FellBack
        } else {
            Route::Buckets
        },
        candidates,
        nucleus: nucleus.len,
        weighed: vocab_size,
        sorted: nucleus.order.len(),
        refined: 0,
    })
}

/// The token by a sort of the whole vocabulary.
pub(crate) fn by_full_sort(
    request: &Request<'_>,
    uniform: f64,
    way: Way,
) -> Result<Report, Rejection> {
    let weights = Weights::of(request, way.in_mode().engine)?;
    from_full_sort(request, &weights, uniform)
}

fn from_full_sort(
    request: &Request<'_>,
    weights: &Weights,
    uniform: f64,
) -> Result<Report, Rejection> {
    let vocab_size = request.logits().len();
    let nucleus = full_sort::nucleus(request, weights)?;
    Ok(Report {
        token: draw::pick(&nucleus, uniform),
        route: Route::FullSort,
        candidates: vocab_size,
        nucleus: nucleus.len,
        weighed: vocab_size,
        sorted: vocab_size,
        refined: 0,
    })
}
