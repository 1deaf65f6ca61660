//! The maximum, the float weights by the host's expf, and their double sum.

use std::ffi::c_float;

use crate::kernels;
use crate::request::{Rejection, Request};

unsafe extern "C" {
    fn expf(x: c_float) -> c_float;
}

/// The host C library's expf: the weights that decide a token come from it and
/// from nothing else, since another library's differs in the last bit.
pub(crate) fn host_expf(x: f32) -> f32 {
    // SAFETY: expf is a pure function of its argument, whatever the bits.
    unsafe { expf(x) }
}

/// The weight of one token. Subtraction, division and exponential are each
/// rounded to float.
pub(crate) fn weight(logit: f32, max_logit: f32, temperature: f32) -> f32 {
    host_expf((logit - max_logit) / temperature)
}

/// The weights of a vocabulary, by token id.
pub(crate) struct Weights {
    pub(crate) by_id: Vec<f32>,
    /// Their sum in double, taken in token-id order.
    pub(crate) total: f64,
}

impl Weights {
    pub(crate) fn of(request: &Request<'_>) -> Result<Self, Rejection> {
        let logits = request.logits();
        let max_logit = kernels::max_logit(logits);
        let mut by_id = Vec::new();
        reserve(&mut by_id, logits.len())?;
        let mut total = 0.0;
        for &logit in logits {
            let weight = weight(logit, max_logit, request.temperature());
            total += f64::from(weight);
            by_id.push(weight);
        }
        Ok(Weights { by_id, total })
    }
}

/// Room for `n` values, or the reason why not.
pub(crate) fn reserve<T>(values: &mut Vec<T>, n: usize) -> Result<(), Rejection> {
    values
        .try_reserve_exact(n)
        .map_err(|_| Rejection::OutOfMemory)
}
