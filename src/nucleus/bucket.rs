//! The exponent-bucket path: a coarse filter in front of the full sort's walk,
//! so that a peaked distribution sorts a handful of tokens.

use super::Nucleus;
use crate::order::{self, SampleProb};
use crate::request::{Rejection, Request};
use crate::weight::{self, Weights};

pub(super) const BUCKETS: usize = 256;

/// The bucket of a weight: its exponent, larger weights in lower numbers. Zero
/// and subnormals share the last one, NaN and infinity the first.
pub(super) fn bucket(weight: f32) -> usize {
    255 - ((weight.to_bits() >> 23) & 255) as usize
}

/// The number of buckets, from the heaviest on, that hold the nucleus: those
/// whose mass reaches the cutoff, and one more as a margin for rounding. All of
/// them if the mass never reaches it.
pub(super) fn buckets_wanted(masses: &[f64; BUCKETS], cutoff: f64) -> usize {
    let mut mass = 0.0;
    for (bucket, bucket_mass) in masses.iter().enumerate() {
        mass += bucket_mass;
        if mass >= cutoff {
            return (bucket + 2).min(BUCKETS);
        }
    }
    BUCKETS
}

/// The nucleus from the tokens that the buckets let through. `reached` is false
/// when these ran out below the cutoff, which is when the full sort has to
/// answer: the buckets' sums and the sorted walk's round differently.
pub(crate) fn nucleus(request: &Request<'_>, weights: &Weights) -> Result<Nucleus, Rejection> {
    let cutoff = request.cutoff(weights.total);
    let mut masses = [0.0; BUCKETS];
    let mut counts = [0; BUCKETS];
    for &weight in weights.by_id() {
        masses[bucket(weight)] += f64::from(weight);
        counts[bucket(weight)] += 1;
    }
    let wanted = buckets_wanted(&masses, cutoff);
    let mut candidates = Vec::new();
    weight::reserve(&mut candidates, counts[..wanted].iter().sum())?;
    candidates.extend(
        (0..)
            .zip(weights.by_id())
            .filter(|&(_, &p)| bucket(p) < wanted)
            .map(|(id, &p)| SampleProb { p, id }),
    );
    order::sort(&mut candidates, weights.total.is_nan());
    Ok(Nucleus::walk(candidates, cutoff))
}
