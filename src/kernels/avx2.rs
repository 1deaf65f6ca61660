//! The tier of x86-64 CPUs with AVX2 and FMA: a row is two vectors of eight
//! floats, or four of four doubles.

use std::arch::x86_64::*;

use super::exp::{Rounding, screen, twin};
use super::lanes::Lanes;
use super::rows::Row;

/// Proof that the CPU has AVX2 and FMA.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    /// # Safety
    ///
    /// The CPU has AVX2 and FMA.
    pub(super) const unsafe fn new() -> Self {
        Avx2(())
    }
}

type F32 = [__m256; 2];
type F64 = [__m256d; 4];

/// The lanes to move to the front, for each mask of eight.
static COMPRESS: [[u8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut bits = 0;
    while bits < 256 {
        let (mut lane, mut next) = (0, 0);
        while lane < 8 {
            if bits >> lane & 1 == 1 {
                table[bits][next] = lane as u8;
                next += 1;
            }
            lane += 1;
        }
        bits += 1;
    }
    table
};

#[inline]
#[target_feature(enable = "avx2,fma")]
fn splat(value: f32) -> F32 {
    [_mm256_set1_ps(value); 2]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn load(row: &Row) -> F32 {
    let (halves, _) = row.0.as_chunks::<8>();
    // SAFETY: each half is eight floats; a Row is aligned to 64 bytes and its
    // halves so to 32.
    unsafe {
        [
            _mm256_load_ps(halves[0].as_ptr()),
            _mm256_load_ps(halves[1].as_ptr()),
        ]
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn store(values: F32, row: &mut Row) {
    let (halves, _) = row.0.as_chunks_mut::<8>();
    // SAFETY: as in `load`.
    unsafe {
        _mm256_store_ps(halves[0].as_mut_ptr(), values[0]);
        _mm256_store_ps(halves[1].as_mut_ptr(), values[1]);
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn max(a: F32, b: F32) -> F32 {
    [_mm256_max_ps(a[0], b[0]), _mm256_max_ps(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn add(a: F32, b: F32) -> F32 {
    [_mm256_add_ps(a[0], b[0]), _mm256_add_ps(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn sub(a: F32, b: F32) -> F32 {
    [_mm256_sub_ps(a[0], b[0]), _mm256_sub_ps(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn div(a: F32, b: F32) -> F32 {
    [_mm256_div_ps(a[0], b[0]), _mm256_div_ps(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn at_least(a: F32, b: F32) -> F32 {
    [
        _mm256_cmp_ps::<_CMP_GE_OQ>(a[0], b[0]),
        _mm256_cmp_ps::<_CMP_GE_OQ>(a[1], b[1]),
    ]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn unordered(a: F32, b: F32) -> F32 {
    [
        _mm256_cmp_ps::<_CMP_UNORD_Q>(a[0], b[0]),
        _mm256_cmp_ps::<_CMP_UNORD_Q>(a[1], b[1]),
    ]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn and(a: F32, b: F32) -> F32 {
    [_mm256_and_ps(a[0], b[0]), _mm256_and_ps(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn or(a: F32, b: F32) -> F32 {
    [_mm256_or_ps(a[0], b[0]), _mm256_or_ps(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn bits(mask: F32) -> u16 {
    (_mm256_movemask_ps(mask[0]) | _mm256_movemask_ps(mask[1]) << 8) as u16
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn keep_lanes(mask: F32, values: F32) -> F32 {
    and(mask, values)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn drop_lanes(mask: F32, values: F32) -> F32 {
    [
        _mm256_andnot_ps(mask[0], values[0]),
        _mm256_andnot_ps(mask[1], values[1]),
    ]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn to_front(values: __m256, bits: u8) -> __m256 {
    let lanes = u64::from_le_bytes(COMPRESS[bits as usize]);
    let lanes = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(lanes as i64));
    _mm256_permutevar8x32_ps(values, lanes)
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn compress(values: F32, bits: u16, out: &mut [f32; Row::LEN]) {
    let [low, high] = bits.to_le_bytes();
    let next = low.count_ones() as usize;
    // SAFETY: `next` is 8 at most, so both stores of eight floats end within
    // the sixteen of `out`.
    unsafe {
        _mm256_storeu_ps(out.as_mut_ptr(), to_front(values[0], low));
        _mm256_storeu_ps(out.as_mut_ptr().add(next), to_front(values[1], high));
    }
}

// Written out and not as `map`: a closure called from a function without the
// instructions is not inlined.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn screen_exp(distance: F32, octaves: F32) -> F32 {
    [
        screen_exp_8(distance[0], octaves[0]),
        screen_exp_8(distance[1], octaves[1]),
    ]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn screen_exp_8(distance: __m256, octaves: __m256) -> __m256 {
    let shift = _mm256_set1_ps(screen::SHIFT);
    let shifted = _mm256_fmadd_ps(distance, octaves, shift);
    let f = _mm256_fmsub_ps(distance, octaves, _mm256_sub_ps(shifted, shift));
    let [c0, c1, c2, c3, c4, c5] = screen::POLYNOMIAL;
    let square = _mm256_mul_ps(f, f);
    let low = _mm256_fmadd_ps(_mm256_set1_ps(c1), f, _mm256_set1_ps(c0));
    let middle = _mm256_fmadd_ps(_mm256_set1_ps(c3), f, _mm256_set1_ps(c2));
    let high = _mm256_fmadd_ps(_mm256_set1_ps(c5), f, _mm256_set1_ps(c4));
    let polynomial = _mm256_fmadd_ps(_mm256_fmadd_ps(high, square, middle), square, low);
    // Multiplying by 2^k is adding k to the exponent of a number near 1.
    let k = _mm256_slli_epi32::<23>(_mm256_castps_si256(shifted));
    _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(polynomial), k))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn halves(x: __m256) -> [__m256d; 2] {
    [
        _mm256_cvtps_pd(_mm256_castps256_ps128(x)),
        _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(x)),
    ]
}

/// `a * b + c`, rounded once or twice.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn mul_add<const FUSED: bool>(a: __m256d, b: __m256d, c: __m256d) -> __m256d {
    if FUSED {
        _mm256_fmadd_pd(a, b, c)
    } else {
        _mm256_add_pd(_mm256_mul_pd(a, b), c)
    }
}

/// `exp::twin` in four doubles.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn twin_exp<const FUSED: bool>(x: __m256d) -> __m128 {
    let (scale, shift) = (_mm256_set1_pd(twin::SCALE), _mm256_set1_pd(twin::SHIFT));
    let shifted = mul_add::<FUSED>(x, scale, shift);
    let k = _mm256_castpd_si256(shifted);
    let whole = _mm256_sub_pd(shifted, shift);
    let r = if FUSED {
        _mm256_fmsub_pd(x, scale, whole)
    } else {
        _mm256_sub_pd(_mm256_mul_pd(x, scale), whole)
    };
    let index = _mm256_and_si256(k, _mm256_set1_epi64x(31));
    // SAFETY: the indices are below 32, the length of the table.
    let entry = unsafe { _mm256_i64gather_epi64::<8>(twin::TABLE.as_ptr().cast(), index) };
    let power = _mm256_castsi256_pd(_mm256_add_epi64(entry, _mm256_slli_epi64::<47>(k)));
    let high = mul_add::<FUSED>(_mm256_set1_pd(twin::CUBIC), r, _mm256_set1_pd(twin::SQUARE));
    let low = mul_add::<FUSED>(_mm256_set1_pd(twin::LINEAR), r, _mm256_set1_pd(1.0));
    let polynomial = mul_add::<FUSED>(high, _mm256_mul_pd(r, r), low);
    _mm256_cvtpd_ps(_mm256_mul_pd(polynomial, power))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn host_exp(x: F32, rounding: Rounding) -> F32 {
    match rounding {
        Rounding::Fused => [host_exp_8::<true>(x[0]), host_exp_8::<true>(x[1])],
        Rounding::Separate => [host_exp_8::<false>(x[0]), host_exp_8::<false>(x[1])],
    }
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn host_exp_8<const FUSED: bool>(x: __m256) -> __m256 {
    let [low, high] = halves(_mm256_max_ps(x, _mm256_set1_ps(twin::LOWEST)));
    _mm256_set_m128(twin_exp::<FUSED>(high), twin_exp::<FUSED>(low))
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn zero_f64() -> F64 {
    [_mm256_setzero_pd(); 4]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn widen_add(sums: F64, values: F32) -> F64 {
    let ([a, b], [c, d]) = (halves(values[0]), halves(values[1]));
    [
        _mm256_add_pd(sums[0], a),
        _mm256_add_pd(sums[1], b),
        _mm256_add_pd(sums[2], c),
        _mm256_add_pd(sums[3], d),
    ]
}

#[inline]
#[target_feature(enable = "avx2,fma")]
fn total(sums: F64) -> f64 {
    let four = _mm256_add_pd(
        _mm256_add_pd(sums[0], sums[1]),
        _mm256_add_pd(sums[2], sums[3]),
    );
    let two = _mm_add_pd(
        _mm256_castpd256_pd128(four),
        _mm256_extractf128_pd::<1>(four),
    );
    _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
}

super::delegate_lanes!(Avx2, F32, F64, F32);
