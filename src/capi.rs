//! The C surface: every exported function and every pointer of a caller. Here
//! are the functions of Colibri's own headers, in `request` ours.

pub mod request;

use std::ffi::{c_float, c_int, c_void};
use std::io::Write;
use std::slice;

use crate::greedy;
use crate::kernels::Engine;
use crate::order::{self, SampleProb};
use crate::request::{Rejection, Request};
use crate::sample::{self, Way};

/// Orders two `SampleProb` for `qsort`: the heavier weight first, equal weights
/// by ascending id. 0 where a weight is NaN. Only the sign counts.
///
/// # Safety
///
/// `a` and `b` must each point to a readable `SampleProb`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sample_prob_desc(a: *const c_void, b: *const c_void) -> c_int {
    // SAFETY: the caller's promise, stated above.
    let (a, b) = unsafe { (&*a.cast::<SampleProb>(), &*b.cast::<SampleProb>()) };
    order::compare(a, b) as c_int
}

/// Draws a token id from `V` logits `lo` at temperature `temp` out of the
/// nucleus of mass `top_p`. A `temp` of 0 or below is greedy and draws nothing;
/// every other one calls `rand()` once. A `top_p` outside the open interval
/// (0, 1) keeps the whole vocabulary.
///
/// `V` below 1 (unless greedy: 0) and a NULL `lo` end the process with a line on
/// stderr and status 1, as does a lack of memory.
///
/// # Safety
///
/// `lo` must point to `V` readable floats, aligned to 4 bytes.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the C header's name")]
pub unsafe extern "C" fn serve_sample(
    lo: *const c_float,
    V: c_int,
    temp: c_float,
    top_p: c_float,
) -> c_int {
    if temp <= 0.0 && V <= 1 {
        // As argmax_first: nothing is read, so `lo` may be anything.
        return 0;
    }
    // SAFETY: the caller's promise, stated above.
    let token = unsafe { logits(lo, V) }
        .and_then(|logits| Request::new(logits, temp, top_p))
        .and_then(|request| sample::sample(&request, host_uniform, Way::of_process()));
    or_exit("serve_sample", token.map(|report| report.token))
}

/// `serve_sample` by sorting the whole vocabulary, at every `temp` and `top_p`:
/// it has no greedy branch and calls `rand()` once.
///
/// `V` below 1 and a NULL `lo` end the process with a line on stderr and status
/// 1, as does a lack of memory.
///
/// # Safety
///
/// `lo` must point to `V` readable floats, aligned to 4 bytes.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the C header's name")]
pub unsafe extern "C" fn serve_sample_sorted(
    lo: *const c_float,
    V: c_int,
    temp: c_float,
    top_p: c_float,
) -> c_int {
    // SAFETY: the caller's promise, stated above.
    let token = unsafe { logits(lo, V) }
        .and_then(|logits| Request::new(logits, temp, top_p))
        .and_then(|request| sample::sample_nucleus(&request, host_uniform(), Way::of_process()));
    or_exit("serve_sample_sorted", token.map(|report| report.token))
}

/// The first index of the maximum of `n` floats `x`, as a scan by strict `>`
/// finds it: a NaN at index 0 stays, a later one never wins, and -0 ties with
/// +0. 0 for `n` of 1 or below, and then `x` is not read.
///
/// A NULL `x` with more than one float ends the process with a line on stderr
/// and status 1.
///
/// # Safety
///
/// `x` must point to `n` readable floats, aligned to 4 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn argmax_first(x: *const c_float, n: c_int) -> c_int {
    let Ok(len @ 2..) = usize::try_from(n) else {
        return 0;
    };
    if x.is_null() {
        return or_exit("argmax_first", Err(Rejection::Null("x")));
    }
    // SAFETY: not NULL, checked above; the rest is the caller's promise.
    let values = unsafe { slice::from_raw_parts(x, len) };
    greedy::argmax_first(values, Engine::of_process()) as c_int
}

/// The caller's logits.
///
/// # Safety
///
/// `lo`, unless NULL, points to `vocab_size` floats that nobody writes to while
/// the slice lives.
unsafe fn logits<'a>(lo: *const c_float, vocab_size: c_int) -> Result<&'a [f32], Rejection> {
    let len = usize::try_from(vocab_size).unwrap_or(0);
    if len == 0 {
        return Err(Rejection::VocabSize(vocab_size.into()));
    }
    if lo.is_null() {
        return Err(Rejection::Null("lo"));
    }
    // SAFETY: not NULL, checked above; the rest is the caller's promise.
    Ok(unsafe { slice::from_raw_parts(lo, len) })
}

/// The process's own `rand()`, on [0, 1].
fn host_uniform() -> f64 {
    // SAFETY: rand takes nothing and returns an int; a program that replaces it
    // has to keep to that.
    f64::from(unsafe { libc::rand() }) / f64::from(libc::RAND_MAX)
}

/// The value, or the end of the process: a C caller of these functions has no
/// way to hear of an error, and the original ends it too.
fn or_exit(function: &str, value: Result<c_int, Rejection>) -> c_int {
    value.unwrap_or_else(|rejection| {
        // A stderr that cannot be written to must not turn exit into panic.
        let _ = match rejection {
            Rejection::OutOfMemory => writeln!(std::io::stderr(), "{rejection}"),
            _ => writeln!(std::io::stderr(), "{function}: {rejection}"),
        };
        std::process::exit(1)
    })
}
