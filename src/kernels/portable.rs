//! The tier for every CPU: plain arrays, which the compiler turns into the
//! vectors of the target's baseline (SSE2, NEON).

use super::exp::{self, Rounding, screen, twin};
use super::lanes::Lanes;
use super::rows::Row;

#[derive(Clone, Copy)]
pub(super) struct Portable;

type F32 = [f32; Row::LEN];
type Mask = [u32; Row::LEN];

#[inline(always)]
fn zip(a: F32, b: F32, f: impl Fn(f32, f32) -> f32) -> F32 {
    std::array::from_fn(|lane| f(a[lane], b[lane]))
}

#[inline(always)]
fn compare(a: F32, b: F32, f: impl Fn(f32, f32) -> bool) -> Mask {
    std::array::from_fn(|lane| if f(a[lane], b[lane]) { u32::MAX } else { 0 })
}

impl Lanes for Portable {
    type F32 = F32;
    type F64 = [f64; Row::LEN];
    type Mask = Mask;

    #[inline(always)]
    fn splat(self, value: f32) -> F32 {
        [value; Row::LEN]
    }

    #[inline(always)]
    fn load(self, row: &Row) -> F32 {
        row.0
    }

    #[inline(always)]
    fn store(self, values: F32, row: &mut Row) {
        row.0 = values;
    }

    #[inline(always)]
    fn max(self, a: F32, b: F32) -> F32 {
        zip(a, b, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    fn add(self, a: F32, b: F32) -> F32 {
        zip(a, b, |a, b| a + b)
    }

    #[inline(always)]
    fn sub(self, a: F32, b: F32) -> F32 {
        zip(a, b, |a, b| a - b)
    }

    #[inline(always)]
    fn div(self, a: F32, b: F32) -> F32 {
        zip(a, b, |a, b| a / b)
    }

    #[inline(always)]
    fn at_least(self, a: F32, b: F32) -> Mask {
        compare(a, b, |a, b| a >= b)
    }

    #[inline(always)]
    fn unordered(self, a: F32, b: F32) -> Mask {
        compare(a, b, |a, b| a.is_nan() || b.is_nan())
    }

    #[inline(always)]
    fn and(self, a: Mask, b: Mask) -> Mask {
        std::array::from_fn(|lane| a[lane] & b[lane])
    }

    #[inline(always)]
    fn or(self, a: Mask, b: Mask) -> Mask {
        std::array::from_fn(|lane| a[lane] | b[lane])
    }

    #[inline(always)]
    fn bits(self, mask: Mask) -> u16 {
        // Most rows have none or all: one test without a move per lane.
        let any = mask.iter().fold(0, |any, lane| any | lane);
        if any == 0 {
            return 0;
        }
        (0..Row::LEN).fold(0, |bits, lane| bits | (mask[lane] as u16 & 1) << lane)
    }

    #[inline(always)]
    fn keep(self, mask: Mask, values: F32) -> F32 {
        std::array::from_fn(|lane| f32::from_bits(values[lane].to_bits() & mask[lane]))
    }

    #[inline(always)]
    fn drop(self, mask: Mask, values: F32) -> F32 {
        std::array::from_fn(|lane| f32::from_bits(values[lane].to_bits() & !mask[lane]))
    }

    #[inline(always)]
    fn compress(self, values: F32, bits: u16, out: &mut [f32; Row::LEN]) {
        let mut next = 0;
        for (lane, value) in values.into_iter().enumerate() {
            out[next] = value;
            // Ends at 15 at most, since a sixteenth step would follow the last
            // write.
            next = (next + (bits >> lane & 1) as usize) % Row::LEN;
        }
    }

    #[inline(always)]
    fn screen_exp(self, distance: F32, octaves: F32) -> F32 {
        zip(distance, octaves, |distance, octaves| {
            let y = distance * octaves;
            let shifted = y + screen::SHIFT;
            let f = y - (shifted - screen::SHIFT);
            let [c0, c1, c2, c3, c4, c5] = screen::POLYNOMIAL;
            let polynomial = ((c5 * f + c4) * (f * f) + (c3 * f + c2)) * (f * f) + (c1 * f + c0);
            // Multiplying by 2^k is adding k to the exponent of a number near 1.
            let k = shifted.to_bits() << 23;
            f32::from_bits(polynomial.to_bits().wrapping_add(k))
        })
    }

    #[inline(always)]
    fn host_exp(self, x: F32, rounding: Rounding) -> F32 {
        match rounding {
            Rounding::Separate => zip(x, x, |x, _| twin::exp(x, Rounding::Separate)),
            // Without the instruction a fused multiply-add is a library call,
            // and the host's own expf is quicker.
            Rounding::Fused => zip(x, x, |x, _| exp::host_expf(x)),
        }
    }

    #[inline(always)]
    fn zero_f64(self) -> [f64; Row::LEN] {
        [0.0; Row::LEN]
    }

    #[inline(always)]
    fn widen_add(self, sums: [f64; Row::LEN], values: F32) -> [f64; Row::LEN] {
        std::array::from_fn(|lane| sums[lane] + f64::from(values[lane]))
    }

    #[inline(always)]
    fn total(self, sums: [f64; Row::LEN]) -> f64 {
        sums.iter().sum()
    }
}
