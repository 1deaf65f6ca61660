//! The definition: every token sorted.

use super::Nucleus;
use crate::order::{self, SampleProb};
use crate::request::{Rejection, Request};
use crate::weight::{self, Weights};

pub(crate) fn nucleus(request: &Request<'_>, weights: &Weights) -> Result<Nucleus, Rejection> {
    let mut tokens = Vec::new();
    weight::reserve(&mut tokens, weights.by_id().len())?;
    tokens.extend(
        (0..)
            .zip(weights.by_id())
            .map(|(id, &p)| SampleProb { p, id }),
    );
    order::sort(&mut tokens, weights.total.is_nan());
    Ok(Nucleus::walk(tokens, request.cutoff(weights.total)))
}
