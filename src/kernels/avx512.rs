//! The tier of x86-64 CPUs with AVX-512 F, BW, DQ and VL: a row is one vector of
//! sixteen floats, or two of eight doubles.

use std::arch::x86_64::*;

use super::exp::{Rounding, screen, twin};
use super::lanes::Lanes;
use super::rows::Row;

/// Proof that the CPU has the instructions.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

impl Avx512 {
    /// # Safety
    ///
    /// The CPU has AVX-512 F, BW, DQ and VL.
    pub(super) const unsafe fn new() -> Self {
        Avx512(())
    }
}

type F32 = __m512;
type F64 = [__m512d; 2];

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn splat(value: f32) -> F32 {
    _mm512_set1_ps(value)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn load(row: &Row) -> F32 {
    // SAFETY: a Row is sixteen floats, aligned to 64 bytes.
    unsafe { _mm512_load_ps(row.0.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn store(values: F32, row: &mut Row) {
    // SAFETY: as in `load`.
    unsafe { _mm512_store_ps(row.0.as_mut_ptr(), values) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn max(a: F32, b: F32) -> F32 {
    _mm512_max_ps(a, b)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn add(a: F32, b: F32) -> F32 {
    _mm512_add_ps(a, b)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn sub(a: F32, b: F32) -> F32 {
    _mm512_sub_ps(a, b)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn div(a: F32, b: F32) -> F32 {
    _mm512_div_ps(a, b)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn at_least(a: F32, b: F32) -> __mmask16 {
    _mm512_cmp_ps_mask::<_CMP_GE_OQ>(a, b)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn unordered(a: F32, b: F32) -> __mmask16 {
    _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, b)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn and(a: __mmask16, b: __mmask16) -> __mmask16 {
    a & b
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn or(a: __mmask16, b: __mmask16) -> __mmask16 {
    a | b
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn bits(mask: __mmask16) -> u16 {
    mask
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn keep_lanes(mask: __mmask16, values: F32) -> F32 {
    _mm512_maskz_mov_ps(mask, values)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn drop_lanes(mask: __mmask16, values: F32) -> F32 {
    _mm512_maskz_mov_ps(!mask, values)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn compress(values: F32, bits: u16, out: &mut [f32; Row::LEN]) {
    // Compressed in a register and stored whole: a compressing store is slow on
    // some CPUs.
    let front = _mm512_maskz_compress_ps(bits, values);
    // SAFETY: `out` is sixteen floats.
    unsafe { _mm512_storeu_ps(out.as_mut_ptr(), front) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn screen_exp(distance: F32, octaves: F32) -> F32 {
    let shift = _mm512_set1_ps(screen::SHIFT);
    let shifted = _mm512_fmadd_ps(distance, octaves, shift);
    let f = _mm512_fmsub_ps(distance, octaves, _mm512_sub_ps(shifted, shift));
    let [c0, c1, c2, c3, c4, c5] = screen::POLYNOMIAL;
    let square = _mm512_mul_ps(f, f);
    let low = _mm512_fmadd_ps(_mm512_set1_ps(c1), f, _mm512_set1_ps(c0));
    let middle = _mm512_fmadd_ps(_mm512_set1_ps(c3), f, _mm512_set1_ps(c2));
    let high = _mm512_fmadd_ps(_mm512_set1_ps(c5), f, _mm512_set1_ps(c4));
    let polynomial = _mm512_fmadd_ps(_mm512_fmadd_ps(high, square, middle), square, low);
    // Multiplying by 2^k is adding k to the exponent of a number near 1.
    let k = _mm512_slli_epi32::<23>(_mm512_castps_si512(shifted));
    _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(polynomial), k))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn halves(x: F32) -> [__m512d; 2] {
    [
        _mm512_cvtps_pd(_mm512_castps512_ps256(x)),
        _mm512_cvtps_pd(_mm512_extractf32x8_ps::<1>(x)),
    ]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn mul_add<const FUSED: bool>(a: __m512d, b: __m512d, c: __m512d) -> __m512d {
    if FUSED {
        _mm512_fmadd_pd(a, b, c)
    } else {
        _mm512_add_pd(_mm512_mul_pd(a, b), c)
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn twin_exp<const FUSED: bool>(x: __m512d) -> __m256 {
    let (scale, shift) = (_mm512_set1_pd(twin::SCALE), _mm512_set1_pd(twin::SHIFT));
    let shifted = mul_add::<FUSED>(x, scale, shift);
    let k = _mm512_castpd_si512(shifted);
    let whole = _mm512_sub_pd(shifted, shift);
    let r = if FUSED {
        _mm512_fmsub_pd(x, scale, whole)
    } else {
        _mm512_sub_pd(_mm512_mul_pd(x, scale), whole)
    };
    let index = _mm512_and_si512(k, _mm512_set1_epi64(31));
    // SAFETY: the indices are below 32, the length of the table.
    let entry = unsafe { _mm512_i64gather_epi64::<8>(index, twin::TABLE.as_ptr().cast()) };
    let power = _mm512_castsi512_pd(_mm512_add_epi64(entry, _mm512_slli_epi64::<47>(k)));
    let high = mul_add::<FUSED>(_mm512_set1_pd(twin::CUBIC), r, _mm512_set1_pd(twin::SQUARE));
    let low = mul_add::<FUSED>(_mm512_set1_pd(twin::LINEAR), r, _mm512_set1_pd(1.0));
    let polynomial = mul_add::<FUSED>(high, _mm512_mul_pd(r, r), low);
    _mm512_cvtpd_ps(_mm512_mul_pd(polynomial, power))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn host_exp(x: F32, rounding: Rounding) -> F32 {
    match rounding {
        Rounding::Fused => host_exp_16::<true>(x),
        Rounding::Separate => host_exp_16::<false>(x),
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn host_exp_16<const FUSED: bool>(x: F32) -> F32 {
    let [low, high] = halves(_mm512_max_ps(x, _mm512_set1_ps(twin::LOWEST)));
    let low = _mm512_castps256_ps512(twin_exp::<FUSED>(low));
    _mm512_insertf32x8::<1>(low, twin_exp::<FUSED>(high))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn zero_f64() -> F64 {
    [_mm512_setzero_pd(); 2]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn widen_add(sums: F64, values: F32) -> F64 {
    let [low, high] = halves(values);
    [_mm512_add_pd(sums[0], low), _mm512_add_pd(sums[1], high)]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn total(sums: F64) -> f64 {
    _mm512_reduce_add_pd(_mm512_add_pd(sums[0], sums[1]))
}

super::delegate_lanes!(Avx512, F32, F64, __mmask16);
