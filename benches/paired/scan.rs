//! The bare maximum scan: the least that any sampler does, which is to read all
//! logits once. Written as fast as this CPU lets one core read.
//!
//! Eight independent maxima, so that no load waits for a maximum. Whole cache
//! lines only, so that no load crosses one; the ragged ends one by one. Four
//! places at a time, each a quarter further on, since the CPU fetches ahead for
//! each: on an EPYC (Zen 1) 20 % faster out of the level-3 cache than one place,
//! and twice as fast out of memory. NaN is not looked for.

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

/// Four equal parts, in pairs of lines, and the few lines that are left.
#[cfg(target_arch = "x86_64")]
fn quarters(body: &[Line]) -> ([&[[Line; 2]]; 4], &[Line]) {
    let quarter = body.len() / 8;
    let (even, rest) = body.split_at(8 * quarter);
    let (pairs, _) = even.as_chunks::<2>();
    let parts = std::array::from_fn(|part| &pairs[part * quarter..(part + 1) * quarter]);
    (parts, rest)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn avx512(body: &[Line]) -> f32 {
    use std::arch::x86_64::*;
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn max(max: &mut __m512, line: &Line) {
        // SAFETY: a Line is sixteen floats at a multiple of 64.
        *max = _mm512_max_ps(*max, unsafe { _mm512_load_ps(line.0.as_ptr()) });
    }
    let mut maxima = [[_mm512_set1_ps(f32::NEG_INFINITY); 2]; 4];
    let ([a, b, c, d], rest) = quarters(body);
    for (((a, b), c), d) in a.iter().zip(b).zip(c).zip(d) {
        for (maxima, lines) in maxima.iter_mut().zip([a, b, c, d]) {
            max(&mut maxima[0], &lines[0]);
            max(&mut maxima[1], &lines[1]);
        }
    }
    for line in rest {
        max(&mut maxima[0][0], line);
    }
    let all = maxima.into_iter().flatten();
    let all = all.reduce(|a, b| _mm512_max_ps(a, b));
    _mm512_reduce_max_ps(all.expect("eight of them"))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2(body: &[Line]) -> f32 {
    use std::arch::x86_64::*;
    #[inline]
    #[target_feature(enable = "avx2")]
    fn max(maxima: &mut [__m256; 2], line: &Line) {
        let (halves, _) = line.0.as_chunks::<8>();
        // SAFETY: eight floats each, at a multiple of 32: a Line's halves.
        let halves = unsafe {
            [
                _mm256_load_ps(halves[0].as_ptr()),
                _mm256_load_ps(halves[1].as_ptr()),
            ]
        };
        maxima[0] = _mm256_max_ps(maxima[0], halves[0]);
        maxima[1] = _mm256_max_ps(maxima[1], halves[1]);
    }
    let mut maxima = [[_mm256_set1_ps(f32::NEG_INFINITY); 2]; 4];
    let ([a, b, c, d], rest) = quarters(body);
    for (((a, b), c), d) in a.iter().zip(b).zip(c).zip(d) {
        for (maxima, lines) in maxima.iter_mut().zip([a, b, c, d]) {
            max(maxima, &lines[0]);
            max(maxima, &lines[1]);
        }
    }
    for line in rest {
        max(&mut maxima[0], line);
    }
    let all = maxima.into_iter().flatten();
    let all = all.reduce(|a, b| _mm256_max_ps(a, b));
    let mut lanes = [0.0_f32; 8];
    // SAFETY: eight floats to write to.
    unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), all.expect("eight of them")) };
    lanes.into_iter().fold(f32::NEG_INFINITY, f32::max)
}
