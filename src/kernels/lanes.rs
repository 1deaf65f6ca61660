//! What a tier has to be able to do: arithmetic on rows of sixteen floats. The
//! loops in `row_loops` are written once over it.

use super::exp::Rounding;
use super::rows::Row;

/// Rows of one tier. A value of an implementing type is the proof that the CPU
/// has its instructions, so the methods are safe to call.
///
/// All are lane by lane and IEEE: two tiers that fuse alike give the same bits.
pub(crate) trait Lanes: Copy {
    type F32: Copy;
    type F64: Copy;
    type Mask: Copy;

    fn splat(self, value: f32) -> Self::F32;
    fn load(self, row: &Row) -> Self::F32;
    fn store(self, values: Self::F32, row: &mut Row);

    /// The larger of `a` and `b`; `b` where either is NaN.
    fn max(self, a: Self::F32, b: Self::F32) -> Self::F32;
    fn add(self, a: Self::F32, b: Self::F32) -> Self::F32;
    fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32;
    fn div(self, a: Self::F32, b: Self::F32) -> Self::F32;

    /// `a >= b`; false where either is NaN.
    fn at_least(self, a: Self::F32, b: Self::F32) -> Self::Mask;
    /// Either is NaN.
    fn unordered(self, a: Self::F32, b: Self::F32) -> Self::Mask;
    fn and(self, a: Self::Mask, b: Self::Mask) -> Self::Mask;
    fn or(self, a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// Lane i in bit i.
    fn bits(self, mask: Self::Mask) -> u16;
    /// `values` where the mask is set, 0 elsewhere.
    fn keep(self, mask: Self::Mask, values: Self::F32) -> Self::F32;
    /// 0 where the mask is set, `values` elsewhere.
    fn drop(self, mask: Self::Mask, values: Self::F32) -> Self::F32;
    /// Writes the lanes that are set in `bits` to the front of `out`, in order.
    /// What then stands behind them is anything.
    fn compress(self, values: Self::F32, bits: u16, out: &mut [f32; Row::LEN]);

    /// The quick exponential (`exp::screen`) of distances that are not above 0
    /// and not below its lowest.
    fn screen_exp(self, distance: Self::F32, octaves: Self::F32) -> Self::F32;
    /// The host's expf of `x <= 0`, to the bit, when the host's was found to be
    /// `exp::twin` in this rounding.
    fn host_exp(self, x: Self::F32, rounding: Rounding) -> Self::F32;

    fn zero_f64(self) -> Self::F64;
    /// Adds each lane to the double of its lane.
    fn widen_add(self, sums: Self::F64, values: Self::F32) -> Self::F64;
    /// The sum of the sixteen doubles.
    fn total(self, sums: Self::F64) -> f64;
}
