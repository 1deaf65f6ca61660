//! The last resort of ordinary inputs: every weight exactly and the contract's
//! own sums, but only the head of the order sorted.
//!
//! Tokens from some weight on are the head of the order, so walking them is
//! walking the order, and when they reach the cutoff nothing is left to know.
//! Only weights are sorted: ties keep their ids' order, so a weight and its rank
//! among its equals tell the id.

use crate::kernels::Engine;
use crate::kernels::rows::Buffer;
use crate::order;
use crate::request::{Rejection, Request};
use crate::weight::Weights;

/// Where in the order the draw landed.
pub(crate) struct Landed {
    pub(crate) token: i32,
    /// Tokens in the nucleus.
    pub(crate) nucleus: usize,
    /// Tokens sorted.
    pub(crate) sorted: usize,
}

/// Weights from which on the head is tried, falling, the last being the least
/// positive one: tokens that weigh nothing change no sum.
const TRIES: [f32; 4] = [
    1.0 / 64.0,
    1.0 / 16_384.0,
    1.0 / 16_777_216.0,
    f32::from_bits(1),
];

/// The token of `request` by its `weights`, none of which is NaN or infinite.
pub(crate) fn sample(
    request: &Request<'_>,
    weights: &Weights,
    uniform: f64,
    engine: Engine,
) -> Result<Landed, Rejection> {
    let cutoff = request.cutoff(weights.total);
    let tries = if request.is_cut() {
        &TRIES[..]
    } else {
        &TRIES[TRIES.len() - 1..]
    };
    let mut head = Buffer::default();
    head.reserve(weights.by_id().len())?;
    let mut scratch = Vec::new();
    let mut landed = None;
    for &least in tries {
        head.clear();
        let rows = weights.rows();
        engine
            .kernels
            .extract(rows, least, f32::INFINITY, Some(&mut head));
        let order = head.as_mut_slice();
        order::sort_weights(order, &mut scratch)?;
        let mut kept = 0.0;
        let mut len = 0;
        while kept < cutoff && len < order.len() {
            kept += f64::from(order[len]);
            len += 1;
        }
        if kept >= cutoff || least == f32::from_bits(1) {
            landed = Some((len, kept));
            break;
        }
    }
    let (len, kept) = landed.expect("the last try ends the search");
    let order = head.as_slice();
    let target = uniform * kept;
    let mut cumulative = 0.0;
    // Falls through to the first token, as the draw of the definition does.
    let position = order[..len]
        .iter()
        .position(|&weight| {
            cumulative += f64::from(weight);
            cumulative >= target
        })
        .unwrap_or(0);
    let weight = order[position];
    let equals = order[..position].iter().rev();
    let rank = equals.take_while(|&&equal| equal == weight).count();
    Ok(Landed {
        token: weights.nth(weight, rank, engine) as i32,
        nucleus: if kept >= cutoff {
            len
        } else {
            weights.by_id().len()
        },
        sorted: order.len(),
    })
}
