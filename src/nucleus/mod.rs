//! The nucleus: the fewest tokens, taken in order, whose mass reaches the
//! cutoff. `full_sort` says what that means and `bucket` sorts fewer tokens, for
//! any input. For ordinary ones `head` is the same sooner, and `certified` finds
//! the pick without weighing most tokens. `filtered` is the nucleus under the
//! filters that only the `colibri_` functions have, `top` what is sooner for a
//! small `top_k`.

pub(crate) mod bucket;
pub(crate) mod certified;
pub(crate) mod filtered;
pub(crate) mod full_sort;
pub(crate) mod head;
pub(crate) mod top;

use std::ops::Deref;

use crate::order::SampleProb;

/// The head of the order that the nucleus was taken from, in any kind of memory.
pub(crate) struct Nucleus<O = Vec<SampleProb>> {
    /// Tokens in order: at least one, the nucleus and what was sorted beside it.
    pub(crate) order: O,
    /// How many of them make the nucleus. 0 when the cutoff is NaN.
    pub(crate) len: usize,
    /// Their mass.
    pub(crate) kept: f64,
    /// The cutoff was reached.
    pub(crate) reached: bool,
}

impl<O: Deref<Target = [SampleProb]>> Nucleus<O> {
    /// Walks `order` until the mass reaches `cutoff`. `!(kept < cutoff)`, so
    /// that a NaN cutoff ends the walk at once.
    pub(crate) fn walk(order: O, cutoff: f64) -> Self {
        let mut kept = 0.0;
        let mut len = 0;
        while kept < cutoff && len < order.len() {
            kept += f64::from(order[len].p);
            len += 1;
        }
        Nucleus {
            order,
            len,
            kept,
            reached: !matches!(kept.partial_cmp(&cutoff), Some(std::cmp::Ordering::Less)),
        }
    }
}
