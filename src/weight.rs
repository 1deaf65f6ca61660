//! The maximum, the float weights by the host's expf, and their double sum.

use crate::kernels::rows::{self, Row};
use crate::kernels::{self, Engine, Scale, exp, mode};
use crate::request::{Rejection, Request};

/// The weights of a vocabulary, by token id.
pub(crate) struct Weights {
    rows: Vec<Row>,
    vocab_size: usize,
    /// Their sum in double, taken in token-id order. NaN exactly when one of
    /// them is: none is negative.
    pub(crate) total: f64,
    /// They are as most are: finite, the greatest 1, and made and summed in the
    /// default floating-point mode.
    pub(crate) ordinary: bool,
}

impl Weights {
    pub(crate) fn of(request: &Request<'_>, engine: Engine) -> Result<Self, Rejection> {
        let logits = request.logits();
        let vocab_size = logits.len();
        let mut rows = Vec::new();
        reserve(&mut rows, vocab_size.div_ceil(Row::LEN))?;
        rows.resize(vocab_size.div_ceil(Row::LEN), Row::splat(f32::NEG_INFINITY));
        rows::floats_mut(&mut rows)[..vocab_size].copy_from_slice(logits);

        let scan = kernels::scan(logits, engine.kernels);
        let scale = Scale {
            max_logit: scan.max_logit,
            temperature: request.temperature(),
        };
        let ordinary = weigh(&mut rows, vocab_size, scale, scan.nan, engine);
        let total = total(&rows::floats(&rows)[..vocab_size]);
        Ok(Weights {
            rows,
            vocab_size,
            total,
            ordinary: ordinary && mode::is_default(),
        })
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The id of the `rank`-th token (from 0, by id) that weighs `weight`.
    pub(crate) fn nth(&self, weight: f32, rank: usize, engine: Engine) -> usize {
        engine
            .kernels
            .nth_between(&self.rows, weight, weight, rank)
            .expect("a token has the weight")
    }

    pub(crate) fn by_id(&self) -> &[f32] {
        &rows::floats(&self.rows)[..self.vocab_size]
    }
}

/// Turns the logits in `rows`, `vocab_size` of them and -inf behind, into
/// weights, and tells whether these are finite and the greatest 1. `nan` tells
/// whether one of the logits is NaN.
pub(crate) fn weigh(
    rows: &mut [Row],
    vocab_size: usize,
    scale: Scale,
    nan: bool,
    engine: Engine,
) -> bool {
    // Then no argument is NaN or positive, as the twins of expf want it.
    let ordinary = !nan
        && scale.max_logit.is_finite()
        && scale.temperature > 0.0
        && scale.temperature.is_finite();
    match engine.rounding {
        Some(rounding) if ordinary => {
            engine.kernels.weigh(rows, scale, rounding);
        }
        _ => {
            for value in &mut rows::floats_mut(rows)[..vocab_size] {
                *value = weight(*value, scale);
            }
        }
    }
    ordinary
}

/// The sum of `weights` in double, in the order given.
pub(crate) fn total(weights: &[f32]) -> f64 {
    weights
        .iter()
        .fold(0.0, |total, &weight| total + f64::from(weight))
}

/// The weight of one token. Subtraction, division and exponential are each
/// rounded to float.
pub(crate) fn weight(logit: f32, scale: Scale) -> f32 {
    exp::host_expf((logit - scale.max_logit) / scale.temperature)
}

/// Room for `n` values, or the reason why not.
pub(crate) fn reserve<T>(values: &mut Vec<T>, n: usize) -> Result<(), Rejection> {
    values
        .try_reserve_exact(n)
        .map_err(|_| Rejection::OutOfMemory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Tier;
    use crate::kernels::exp::Rounding;

    /// The twin and not the host's expf, which takes many times as long: told by
    /// the one float where the twin that is not the host's gives another weight.
    #[test]
    fn a_known_expf_is_computed_by_the_kernels() {
        let mut engine = Engine::at(Tier::Avx512);
        if engine.rounding != Some(Rounding::Fused) {
            return;
        }
        // Hidden, since compilers fold an expf of a constant, and to another value.
        let logits = std::hint::black_box([0.0, f32::from_bits(0xc27c_65d9)]);
        let request = Request::new(&logits, 1.0, 0.9).expect("logits");
        let weights = |engine| {
            Weights::of(&request, engine)
                .expect("memory")
                .by_id()
                .to_vec()
        };
        let hosts = weights(engine);
        assert_eq!(hosts[1], exp::host_expf(logits[1]));
        engine.rounding = Some(Rounding::Separate);
        assert_ne!(weights(engine)[1], hosts[1]);
        engine.rounding = None;
        assert_eq!(weights(engine), hosts);
    }
}
