//! What argmax means: the first index of the maximum, by strict `>` in index
//! order. A NaN at index 0 stays, a later one never wins, and -0 ties with +0.

use crate::kernels;

/// The argmax of `values`; 0 for none or one.
pub(crate) fn argmax_first(values: &[f32]) -> usize {
    if values.len() <= 1 {
        return 0;
    }
    let max = kernels::max_logit(values);
    // Not found only when values[0] is NaN, which then is the maximum.
    values.iter().position(|&value| value == max).unwrap_or(0)
}
