//! From a uniform number to a token, by cumulative mass.

use std::ops::Deref;

use crate::nucleus::Nucleus;
use crate::order::SampleProb;

/// The pick: the first token of the nucleus whose cumulative mass reaches
/// `uniform * kept`. Falls through to the first token of the order when none
/// does: the nucleus is empty, the target NaN, or the uniform above 1 because
/// the program brings its own `rand`.
pub(crate) fn pick<O>(nucleus: &Nucleus<O>, uniform: f64) -> i32
where
    O: Deref<Target = [SampleProb]>,
{
    let target = uniform * nucleus.kept;
    let mut cumulative = 0.0;
    for token in &nucleus.order[..nucleus.len] {
        cumulative += f64::from(token.p);
        if cumulative >= target {
            return token.id;
        }
    }
    nucleus.order[0].id
}
