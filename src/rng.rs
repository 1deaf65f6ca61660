//! A generator for the draws of one request.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng as _;

/// A seedable generator: PCG64 (XSL RR 128/64), after M. E. O'Neill, "PCG: A
/// Family of Simple Fast Space-Efficient Statistically Good Algorithms for
/// Random Number Generation", 2014. Plain data: a copy of it goes on as the
/// original does, on every machine, and any numbers in the fields are a state.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rng {
    /// The upper half of the state.
    pub state_high: u64,
    /// The lower half of the state.
    pub state_low: u64,
    /// The upper half of the stream's number, the highest bit of which counts
    /// for nothing.
    pub stream_high: u64,
    /// The lower half of the stream's number.
    pub stream_low: u64,
}

impl Rng {
    /// The generator that the PCG library's `pcg64_srandom_r` makes of `seed`
    /// and `stream`.
    ///
    /// ```
    /// use colibri_sampler::Rng;
    ///
    /// let mut rng = Rng::new(42, 54);
    /// let uniform = rng.uniform();
    /// assert!((0.0..1.0).contains(&uniform));
    ///
    /// // A copy goes on as the original does.
    /// let mut saved = rng;
    /// assert_eq!(saved.uniform(), rng.uniform());
    /// ```
    pub fn new(seed: u64, stream: u64) -> Self {
        Pcg64::new(seed.into(), stream.into()).into()
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let join = |high, low| u128::from(high) << 64 | u128::from(low);
        let mut generator = Pcg64::from_state(
            join(self.state_high, self.state_low),
            join(self.stream_high, self.stream_low),
        );
        let value = generator.next_u64();
        *self = generator.into();
        value
    }

    /// The next number of [0, 1): the upper 53 of the next 64 bits, over 2^53.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

impl From<Pcg64> for Rng {
    fn from(generator: Pcg64) -> Self {
        let (state, stream) = (generator.state(), generator.stream());
        Rng {
            state_high: (state >> 64) as u64,
            state_low: state as u64,
            stream_high: (stream >> 64) as u64,
            stream_low: stream as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bit_of_a_generator_is_lost() {
        let mut generator = Pcg64::new(1, 5 << 64 | 3);
        let mut copy = Rng::from(generator.clone());
        assert_eq!((copy.stream_high, copy.stream_low), (5, 3));
        for _ in 0..10 {
            assert_eq!(copy.next_u64(), generator.next_u64());
        }
    }
}
