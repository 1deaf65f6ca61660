//! The head of the order without weighing the vocabulary, for a small `top_k`.
//!
//! ```text
//! maxima   the largest logit of each block, in one pass
//! bound    the count-th heaviest of them: so many tokens weigh as much at least
//! gather   from the blocks that reach the bound, the tokens that do
//! ```
//!
//! Weights fall with logits where the host's expf is one of those that the
//! kernels know, so a logit below which no token can reach the bound saves most
//! weights.

use std::mem::MaybeUninit;

use crate::kernels::rows::{Blocks, Row};
use crate::kernels::{self, Engine, Scale};
use crate::order::{self, SampleProb};
use crate::request::{self, DrawRequest, Rejection};
use crate::weight;
use crate::workspace::Parts;

/// Rows in a block.
const ROWS: usize = 32;

/// Blocks for each token that is wanted, so that the bound is a good one.
const BLOCKS_PER_TOKEN: usize = 4;

/// The head of the order.
pub(crate) struct Head<'w> {
    /// The first `top_k` tokens, in order.
    pub(crate) tokens: &'w mut [SampleProb],
    /// The sum of their weights in token-id order.
    pub(crate) total: f64,
}

/// The head that `draw` is made from. None where it is too long for this way,
/// or too much of the vocabulary weighs the same.
pub(crate) fn head<'w>(
    draw: &DrawRequest<'_>,
    parts: Parts<'w>,
    engine: Engine,
) -> Result<Option<Head<'w>>, Rejection> {
    let logits = draw.request.logits();
    let blocks = Blocks::new(logits, ROWS);
    let count = draw.top_k;
    if engine.rounding.is_none() || count > blocks.len() / BLOCKS_PER_TOKEN {
        return Ok(None);
    }
    let Some(maxima) = parts.rows.get_mut(..blocks.len()) else {
        return Ok(None);
    };
    for row in maxima.iter_mut() {
        row.write(Row::splat(f32::NEG_INFINITY));
    }
    // SAFETY: each was written.
    let maxima = unsafe { maxima.assume_init_mut() };
    let last = maxima.len() - 1;
    let kernels = engine.kernels;
    let mut nan = kernels.column_maxima(blocks.body(), ROWS, &mut maxima[1..last]);
    for end in [0, last] {
        nan |= kernels.column_maxima(blocks.block(end), ROWS, &mut maxima[end..=end]);
    }
    let scale = Scale {
        max_logit: kernels::greatest(maxima),
        temperature: draw.request.temperature(),
    };
    request::check_scan(logits, scale.max_logit, nan)?;

    let largest = |block: usize| kernels::greatest(&maxima[block..=block]);
    let (heaviest, _) = write(
        (0..maxima.len()).map(|block| token(block, largest(block), scale)),
        parts.tokens,
    );
    order::sort(heaviest, false);
    let SampleProb { p: bound, id } = heaviest[count - 1];
    let Some(lowest) = below(bound, largest(id as usize), scale) else {
        return Ok(None);
    };

    let reaching = (0..maxima.len())
        .filter(|&block| largest(block) >= lowest)
        .flat_map(|block| (blocks.first_id(block)..).zip(blocks.floats(block)))
        .filter(|&(_, &logit)| logit >= lowest)
        .map(|(id, &logit)| token(id, logit, scale))
        .filter(|token| token.p >= bound);
    let (by_id, rest) = write(reaching, parts.tokens);
    let Some(room) = rest.get_mut(..by_id.len()) else {
        return Ok(None);
    };
    let (sorted, _) = write(by_id.iter().copied(), room);
    order::sort(sorted, false);
    let tokens = &mut sorted[..count];
    let total = by_id
        .iter()
        .filter(|token| order::compare(token, &tokens[count - 1]).is_le())
        .map(|token| f64::from(token.p))
        .sum();
    Ok(Some(Head { tokens, total }))
}

fn token(id: usize, logit: f32, scale: Scale) -> SampleProb {
    SampleProb {
        p: weight::weight(logit, scale),
        id: id as i32,
    }
}

/// A logit below which no token weighs as much as `bound`, the weight of
/// `logit`. None for a weight of 0, which every token has.
fn below(bound: f32, logit: f32, scale: Scale) -> Option<f32> {
    if bound <= 0.0 {
        return None;
    }
    let mut step = f32::EPSILON * logit.abs().max(f32::MIN_POSITIVE);
    loop {
        // At last -inf, which weighs 0.
        let lowest = logit - step;
        if weight::weight(lowest, scale) < bound {
            return Some(lowest);
        }
        step *= 2.0;
    }
}

/// Writes `tokens` to the front of `room`, which has a place for each; these,
/// and what is left of it.
fn write(
    tokens: impl Iterator<Item = SampleProb>,
    room: &mut [MaybeUninit<SampleProb>],
) -> (&mut [SampleProb], &mut [MaybeUninit<SampleProb>]) {
    let mut len = 0;
    for token in tokens {
        room[len].write(token);
        len += 1;
    }
    let (written, rest) = room.split_at_mut(len);
    // SAFETY: the first `len` were written.
    (unsafe { written.assume_init_mut() }, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Tier;
    use crate::request::Params;
    use crate::workspace;

    /// Only just below, so that few tokens are weighed.
    #[test]
    fn a_logit_that_weighs_less_is_close() {
        let scale = Scale {
            max_logit: 20.0,
            temperature: 1.0,
        };
        for logit in [20.0, 19.5, 3.0, 1e-3, -40.0] {
            let bound = weight::weight(logit, scale);
            let lowest = below(bound, logit, scale).expect("a weight above 0");
            assert!(weight::weight(lowest, scale) < bound, "{logit}");
            assert!(logit - lowest <= 1e-5, "{logit}: {lowest}");
        }
        assert_eq!(below(0.0, -200.0, scale), None);
    }

    /// It answers for a small `top_k` and leaves a large one to the sort.
    #[test]
    fn a_small_top_k_is_selected() {
        let engine = Engine::at(Tier::Portable);
        let vocab_size = 20_000;
        let logits: Vec<f32> = (0..vocab_size)
            .map(|id| (id * 7_919 % 20_011) as f32)
            .collect();
        let mut memory = vec![MaybeUninit::uninit(); workspace::bytes(vocab_size)];
        for (top_k, is_selected) in [(5, true), (vocab_size as i32 - 1, false)] {
            let params = Params {
                top_k,
                ..Params::default()
            };
            let draw = DrawRequest::new(&logits, &params, 0.5).expect("accepted");
            let parts = workspace::parts(&mut memory, vocab_size).expect("large enough");
            let found = head(&draw, parts, engine).expect("accepted");
            let has_twin = engine.rounding.is_some();
            assert_eq!(found.is_some(), is_selected && has_twin, "{top_k}");
        }
    }
}
