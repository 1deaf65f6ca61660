//! The one order of tokens: by weight, heaviest first, then by id.

use std::cmp::Ordering;
use std::ffi::{c_int, c_void};

use crate::kernels::mode;

/// A weight and its token id.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SampleProb {
    /// The weight: exp((logit - max_logit) / temperature), not normalised.
    pub p: f32,
    /// The token id.
    pub id: c_int,
}

/// The contract's order. A NaN differs from everything and is greater than
/// nothing, so it compares equal whatever the ids: with a NaN among the weights
/// this is no order, and only the host's qsort knows what comes out of it.
pub(crate) fn compare(a: &SampleProb, b: &SampleProb) -> Ordering {
    if a.p != b.p {
        (b.p > a.p).cmp(&(a.p > b.p))
    } else {
        a.id.cmp(&b.id)
    }
}

/// Sorts `tokens`, given in token-id order. `nan` tells whether a weight is NaN.
pub(crate) fn sort(tokens: &mut [SampleProb], nan: bool) {
    if nan {
        host_qsort(tokens);
    } else if mode::is_default() {
        // The same order on integers, which is quicker: no weight is negative.
        // (Where subnormals count as zero, these tie and bits do not.)
        tokens.sort_unstable_by_key(|token| u64::from(!token.p.to_bits()) << 32 | token.id as u64);
    } else {
        tokens.sort_unstable_by(compare);
    }
}

unsafe extern "C" fn compare_for_qsort(a: *const c_void, b: *const c_void) -> c_int {
    // SAFETY: qsort passes pointers to elements of the array that host_qsort
    // gave it, and those are SampleProb.
    let (a, b) = unsafe { (&*a.cast::<SampleProb>(), &*b.cast::<SampleProb>()) };
    compare(a, b) as c_int
}

/// What the C code gets when the comparator is no order: whatever the host's
/// qsort makes of the same array.
fn host_qsort(tokens: &mut [SampleProb]) {
    // SAFETY: base, count and size describe the slice, and the comparator reads
    // its elements only.
    unsafe {
        libc::qsort(
            tokens.as_mut_ptr().cast(),
            tokens.len(),
            size_of::<SampleProb>(),
            Some(compare_for_qsort),
        );
    }
}
