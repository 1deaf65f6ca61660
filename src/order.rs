//! The one order of tokens: by weight, heaviest first, then by id.

use std::cmp::{Ordering, Reverse};
use std::ffi::{c_int, c_void};

use crate::kernels::mode;
use crate::request::Rejection;
use crate::weight;

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
        return host_qsort(tokens);
    }
    if !mode::is_default() {
        // Where subnormals count as zero they tie with it, and bits do not.
        for token in tokens.iter_mut().filter(|token| token.p == 0.0) {
            token.p = 0.0;
        }
    }
    // The same order on integers, which is quicker: no weight is negative.
    tokens.sort_unstable_by_key(|token| u64::from(!token.p.to_bits()) << 32 | token.id as u64);
}

/// Below this a comparison sort is quicker than passes over all digits.
const MANY: usize = 1024;

/// Sorts weights, none of them negative, heaviest first. One instance of the
/// library's sort, which takes some kilobytes each, for all that sort few.
pub(crate) fn sort_few(weights: &mut [f32]) {
    weights.sort_unstable_by_key(|weight| Reverse(weight.to_bits()));
}

/// Sorts weights from 0 to 1, heaviest first. `scratch` is memory to use and to
/// use again.
pub(crate) fn sort_weights(weights: &mut [f32], scratch: &mut Vec<f32>) -> Result<(), Rejection> {
    if weights.len() < MANY {
        sort_few(weights);
        return Ok(());
    }
    // A crowd of equal weights would make every count wait for the one before.
    if weights.iter().all(|&weight| weight == weights[0]) {
        return Ok(());
    }
    scratch.clear();
    weight::reserve(scratch, weights.len())?;
    scratch.resize(weights.len(), 0.0);
    // From the lowest digit up, each pass keeping the order of equal digits. The
    // distance in bits from 1 rises as the weight falls, and has thirty bits.
    const BITS: u32 = 10;
    let digit = |weight: f32, pass: u32| {
        let distance = 1.0_f32.to_bits().wrapping_sub(weight.to_bits());
        (distance >> (pass * BITS)) as usize & ((1 << BITS) - 1)
    };
    let mut counts = [[0_u32; 1 << BITS]; 3];
    for &weight in weights.iter() {
        for (pass, counts) in (0..).zip(&mut counts) {
            counts[digit(weight, pass)] += 1;
        }
    }
    let (mut from, mut to) = (weights, &mut scratch[..]);
    let mut swapped = false;
    for (pass, counts) in (0..).zip(&mut counts) {
        if counts[digit(from[0], pass)] as usize == from.len() {
            continue;
        }
        let mut next = 0;
        for count in counts.iter_mut() {
            next += std::mem::replace(count, next);
        }
        for &weight in from.iter() {
            let place = &mut counts[digit(weight, pass)];
            to[*place as usize] = weight;
            *place += 1;
        }
        std::mem::swap(&mut from, &mut to);
        swapped = !swapped;
    }
    if swapped {
        to.copy_from_slice(from);
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways of sorting give the same order, and each is taken where it is the
    /// quicker one.
    #[test]
    fn few_weights_and_equal_ones_take_no_memory() {
        for (len, takes_memory) in [(1, false), (1_023, false), (1_024, true), (5_000, true)] {
            let mut weights: Vec<f32> = (0..len)
                .map(|id| ((id * 7_919) % 104_729) as f32 / 104_729.0)
                .collect();
            let mut sorted = weights.clone();
            sorted.sort_by(|a, b| b.total_cmp(a));
            let mut scratch = Vec::new();
            sort_weights(&mut weights, &mut scratch).expect("memory");
            assert_eq!(weights, sorted);
            assert_eq!(scratch.capacity() > 0, takes_memory, "{len}");
        }
        let mut scratch = Vec::new();
        sort_weights(&mut [0.5; 5_000], &mut scratch).expect("memory");
        assert_eq!(scratch.capacity(), 0, "equal weights are in order");
    }
}
