//! The loops over logits.

/// Values compared side by side, so that the compiler keeps them in vectors.
const LANES: usize = 16;

/// The maximum by strict `>` from the first value on: a NaN there stays, a
/// later one never wins. Which of two zeros of unlike sign it gives is not
/// said: no weight and no index depends on it.
///
/// `values` is not empty.
pub(crate) fn max_logit(values: &[f32]) -> f32 {
    let first = values[0];
    if first.is_nan() {
        return first;
    }
    // From `first` in every lane: each lane's maximum is then one of the
    // scan's, and so is the largest lane.
    let mut lanes = [first; LANES];
    let mut chunks = values.chunks_exact(LANES);
    for chunk in &mut chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = if value > *lane { value } else { *lane };
        }
    }
    let rest = chunks.remainder();
    lanes
        .iter()
        .chain(rest)
        .fold(first, |max, &value| if value > max { value } else { max })
}
