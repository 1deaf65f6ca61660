//! The bare maximum scan: the least that any sampler does, which is to read all
//! logits once. Written as fast as this CPU lets one core read.
//!
//! Eight independent maxima, so that no load waits for a maximum; whole cache
//! lines only, so that no load crosses one; the ragged ends one by one. NaN is
//! not looked for.

#![allow(dead_code, reason = "each bench takes what it needs")]

/// A cache line of floats.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct Line(pub [f32; Line::LEN]);

impl Line {
    pub const LEN: usize = 16;
}

/// The maximum of `values`, which hold no NaN; -inf for none.
pub fn maximum(values: &[f32]) -> f32 {
    // SAFETY: any sixteen floats are a Line.
    let (head, body, tail) = unsafe { values.align_to::<Line>() };
    let body = widest(body);
    head.iter()
        .chain(tail)
        .fold(body, |max, &value| max.max(value))
}

/// The instructions that the scan runs on here.
pub fn instructions() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            return "AVX-512";
        }
        if is_x86_feature_detected!("avx2") {
            return "AVX2";
        }
    }
    "as the compiler vectorises it"
}

fn widest(body: &[Line]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: detected.
            return unsafe { avx512(body) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: detected.
            return unsafe { avx2(body) };
        }
    }
    let mut lanes = [f32::NEG_INFINITY; Line::LEN];
    for line in body {
        for (lane, &value) in lanes.iter_mut().zip(&line.0) {
            *lane = if value > *lane { value } else { *lane };
        }
    }
    lanes.into_iter().fold(f32::NEG_INFINITY, f32::max)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn avx512(body: &[Line]) -> f32 {
    use std::arch::x86_64::*;
    let mut maxima = [_mm512_set1_ps(f32::NEG_INFINITY); 8];
    let (groups, rest) = body.as_chunks::<8>();
    for group in groups {
        for (max, line) in maxima.iter_mut().zip(group) {
            // SAFETY: a Line is sixteen floats at a multiple of 64.
            *max = _mm512_max_ps(*max, unsafe { _mm512_load_ps(line.0.as_ptr()) });
        }
    }
    for line in rest {
        // SAFETY: as above.
        maxima[0] = _mm512_max_ps(maxima[0], unsafe { _mm512_load_ps(line.0.as_ptr()) });
    }
    let all = maxima.into_iter().reduce(|a, b| _mm512_max_ps(a, b));
    _mm512_reduce_max_ps(all.expect("eight of them"))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(body: &[Line]) -> f32 {
    use std::arch::x86_64::*;
    /// Half 0 or 1 of a line.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn half(line: &Line, half: usize) -> __m256 {
        // SAFETY: the caller's promise; a Line is aligned to 64 bytes.
        unsafe { _mm256_load_ps(line.0.as_ptr().add(8 * half)) }
    }
    let mut maxima = [_mm256_set1_ps(f32::NEG_INFINITY); 8];
    let (groups, rest) = body.as_chunks::<4>();
    for group in groups {
        for (i, max) in maxima.iter_mut().enumerate() {
            // SAFETY: half a Line, eight floats at a multiple of 32.
            *max = _mm256_max_ps(*max, unsafe { half(&group[i / 2], i % 2) });
        }
    }
    for line in rest {
        for (i, max) in maxima.iter_mut().take(2).enumerate() {
            // SAFETY: as above.
            *max = _mm256_max_ps(*max, unsafe { half(line, i) });
        }
    }
    let all = maxima.into_iter().reduce(|a, b| _mm256_max_ps(a, b));
    let mut lanes = [0.0_f32; 8];
    // SAFETY: eight floats to write to.
    unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), all.expect("eight of them")) };
    lanes.into_iter().fold(f32::NEG_INFINITY, f32::max)
}
