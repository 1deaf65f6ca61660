//! The nucleus under `top_k`, `top_p` and `min_p`, by sorting in the caller's
//! memory what can be in it. `docs/api.md` has the definition:
//!
//! ```text
//! top_k   the first top_k tokens of the order are left
//! total   the sum of their weights, in token-id order
//! top_p   the cutoff, and the walk along the order, as ever
//! min_p   the nucleus ends before the first token that weighs less
//! ```

use std::mem::MaybeUninit;

use super::{Nucleus, bucket};
use crate::order::{self, SampleProb};
use crate::request::DrawRequest;

/// How the nucleus was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// By exponent buckets.
    Buckets,
    /// By exponent buckets whose tokens ran out, then by a full sort.
    FellBack,
    /// By sorting the whole vocabulary.
    FullSort,
    /// By selecting what `top_k` or `min_p` leaves.
    Selection,
}

/// The nucleus of `draw` among `weights`, of which none is NaN and the largest
/// is 1. `total_weight` is their sum in token-id order, asked for only if needed.
/// `tokens` has room for one token each.
pub(crate) fn nucleus<'w>(
    draw: &DrawRequest<'_>,
    weights: &[f32],
    total_weight: impl FnOnce() -> f64,
    tokens: &'w mut [MaybeUninit<SampleProb>],
) -> (Nucleus<&'w mut [SampleProb]>, Search) {
    let request = &draw.request;
    if draw.top_k < weights.len() {
        let head = head(weights, draw.top_k, tokens);
        let total = total(weights, &head[draw.top_k - 1]);
        return (from_head(draw, head, total), Search::Selection);
    }
    let cutoff = request.cutoff(total_weight());
    if draw.min_p > 0.0 {
        // The order's tokens that are heavy enough come before all others, so
        // the walk through these ends where the longer one is cut off.
        let heavy = gather(weights, |weight| weight >= draw.min_p, tokens);
        order::sort(heavy, false);
        return (Nucleus::walk(heavy, cutoff), Search::Selection);
    }
    let mut search = Search::FullSort;
    if request.is_cut() {
        let wanted = buckets_wanted(weights, cutoff);
        let candidates = gather(weights, |weight| bucket::bucket(weight) < wanted, tokens);
        let count = candidates.len();
        order::sort(candidates, false);
        let walked = Nucleus::walk(&mut *candidates, cutoff);
        let (len, kept, reached) = (walked.len, walked.kept, walked.reached);
        if reached || count == weights.len() {
            let order = initialised(&mut tokens[..count]);
            let nucleus = Nucleus {
                order,
                len,
                kept,
                reached,
            };
            return (nucleus, Search::Buckets);
        }
        search = Search::FellBack;
    }
    let all = gather(weights, |_| true, tokens);
    order::sort(all, false);
    (Nucleus::walk(all, cutoff), search)
}

/// The nucleus of `draw` in the tokens that `top_k` leaves, in order, with the
/// sum of their weights.
pub(crate) fn from_head<'w>(
    draw: &DrawRequest<'_>,
    head: &'w mut [SampleProb],
    total: f64,
) -> Nucleus<&'w mut [SampleProb]> {
    let heavy = head.partition_point(|token| token.p >= draw.min_p);
    Nucleus::walk(&mut head[..heavy], draw.request.cutoff(total))
}

/// The first `count` tokens of the order, at least one and at most all.
pub(crate) fn head<'w>(
    weights: &[f32],
    count: usize,
    tokens: &'w mut [MaybeUninit<SampleProb>],
) -> &'w mut [SampleProb] {
    let mut counts = [0_usize; bucket::BUCKETS];
    for &weight in weights {
        counts[bucket::bucket(weight)] += 1;
    }
    let mut held = 0;
    let mut wanted = 0;
    while held < count {
        held += counts[wanted];
        wanted += 1;
    }
    let candidates = gather(weights, |weight| bucket::bucket(weight) < wanted, tokens);
    order::sort(candidates, false);
    &mut candidates[..count]
}

/// The sum of the weights from the order's first token to `last`, in token-id
/// order.
fn total(weights: &[f32], last: &SampleProb) -> f64 {
    (0..)
        .zip(weights)
        .map(|(id, &p)| SampleProb { p, id })
        .filter(|token| order::compare(token, last).is_le())
        .map(|token| f64::from(token.p))
        .sum()
}

fn buckets_wanted(weights: &[f32], cutoff: f64) -> usize {
    let mut masses = [0.0; bucket::BUCKETS];
    for &weight in weights {
        masses[bucket::bucket(weight)] += f64::from(weight);
    }
    bucket::buckets_wanted(&masses, cutoff)
}

/// The tokens whose weight is `wanted`, in token-id order.
fn gather<'w>(
    weights: &[f32],
    wanted: impl Fn(f32) -> bool,
    tokens: &'w mut [MaybeUninit<SampleProb>],
) -> &'w mut [SampleProb] {
    let mut len = 0;
    for (id, &p) in (0..).zip(weights) {
        if wanted(p) {
            tokens[len].write(SampleProb { p, id });
            len += 1;
        }
    }
    initialised(&mut tokens[..len])
}

/// Tokens that `gather` wrote.
fn initialised(tokens: &mut [MaybeUninit<SampleProb>]) -> &mut [SampleProb] {
    // SAFETY: called by `gather` and `nucleus` with tokens from the first on
    // that `gather` has written, one after the other.
    unsafe { tokens.assume_init_mut() }
}
