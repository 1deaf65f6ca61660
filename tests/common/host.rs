//! The host's own functions, and whether they are those that the recorded
//! tokens hold for.
//!
//! The promise is agreement with the C code on the same host, so a comparison
//! with an oracle holds everywhere. A recorded token holds only where expf,
//! logf and qsort are those of the machine it was recorded on: glibc on x86-64
//! with FMA. The probes ask the functions themselves, and not for a version.

#![allow(dead_code, reason = "each binary takes what it needs")]

use std::ffi::{c_float, c_int, c_void};
use std::hint::black_box;

use colibri_sampler::SampleProb;

unsafe extern "C" {
    #[link_name = "expf"]
    fn c_expf(x: c_float) -> c_float;
    #[link_name = "logf"]
    fn c_logf(x: c_float) -> c_float;
}

/// A function of the host that tokens can depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Expf,
    Logf,
    Qsort,
}

/// The host's expf. Its argument is hidden: compilers fold it for a constant,
/// and to another value.
pub fn expf(x: f32) -> f32 {
    // SAFETY: a pure function of any float.
    unsafe { c_expf(black_box(x)) }
}

/// The host's logf.
pub fn logf(x: f32) -> f32 {
    // SAFETY: a pure function of any float.
    unsafe { c_logf(black_box(x)) }
}

/// The host's qsort with the contract's comparator, written here once more so
/// that no test takes the library's word for it.
pub fn qsort(tokens: &mut [SampleProb]) {
    unsafe extern "C" fn compare(a: *const c_void, b: *const c_void) -> c_int {
        // SAFETY: qsort passes pointers to elements of its array.
        let (a, b) = unsafe { (*a.cast::<SampleProb>(), *b.cast::<SampleProb>()) };
        if a.p != b.p {
            c_int::from(b.p > a.p) - c_int::from(a.p > b.p)
        } else {
            c_int::from(a.id > b.id) - c_int::from(a.id < b.id)
        }
    }
    // SAFETY: base, count and size are the slice's.
    unsafe {
        libc::qsort(
            tokens.as_mut_ptr().cast(),
            tokens.len(),
            size_of::<SampleProb>(),
            Some(compare),
        );
    }
}

/// Whether `function` is the one that the recorded tokens hold for.
pub fn is_recorded(function: Function) -> bool {
    match function {
        Function::Expf => EXPF.iter().all(|&(x, y)| is(expf(float(x)), y)),
        Function::Logf => LOGF.iter().all(|&(x, y)| is(logf(x), y)),
        Function::Qsort => qsort_order() == QSORT,
    }
}

fn float(bits: u32) -> f32 {
    f32::from_bits(bits)
}

fn is(value: f32, bits: u32) -> bool {
    value.to_bits() == bits
}

/// Bits of arguments and values. The first is where the version without FMA
/// differs, the second one where a correctly rounded exp does.
const EXPF: &[(u32, u32)] = &[
    (0xc27c_65d9, 0x11fa_2993),
    (0xbaf7_76c4, 0x3f7f_8463),
    (0xc036_db6e, 0x3d6b_3e76),
    (0xc2ae_0000, 0x00b3_3687),
    (0xc2ce_0000, 0x0000_0001),
    (0xbf80_0000, 0x3ebc_5ab2),
];

/// Arguments, all that the cases use, and bits of values.
const LOGF: &[(f32, u32)] = &[
    (0.5, 0xbf31_7218),
    (0.3, 0xbf9a_1bc8),
    (0.15, 0xbff2_d4d4),
    (0.05, 0xc03f_ba14),
    (0.35, 0xbf86_6092),
    (0.1, 0xc013_5d8e),
];

/// The ids of 24 weights, every third of them NaN, as the recorded qsort leaves
/// them: a merge sort of halves.
const QSORT: [c_int; 24] = [
    6, 12, 0, 1, 2, 3, 4, 5, 7, 9, 8, 10, 11, 13, 15, 18, 14, 16, 17, 19, 20, 21, 22, 23,
];

fn qsort_order() -> [c_int; 24] {
    let mut tokens: [SampleProb; 24] = std::array::from_fn(|i| SampleProb {
        p: if i % 3 == 1 {
            f32::NAN
        } else {
            ((i * 7 + 3) % 24) as f32
        },
        id: i as c_int,
    });
    qsort(&mut tokens);
    tokens.map(|token| token.id)
}
