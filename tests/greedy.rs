//! argmax_first is the scan by strict `>`, to the index, on everything that
//! makes vectors of compares go wrong: NaN, zeros of both signs, ties, every
//! length around their widths, every alignment.

mod common;

use colibri_sampler::oracle::{LIBRARY, ORIGINAL, REFERENCE, Sampler};
use common::cases::Subject;
use common::rand::scripted;
use common::shapes::SHAPES;
use common::ways::{self, Way};

/// A float's distance from a 64-byte boundary, in floats.
const ALIGNMENTS: usize = 16;

fn oracles() -> impl Iterator<Item = Sampler> {
    [REFERENCE].into_iter().chain(ORIGINAL)
}

/// Compares the argmax of `values`, and `serve_sample` at temperature 0, which
/// draws nothing.
#[track_caller]
fn check(values: &[f32]) -> i32 {
    let ours = LIBRARY.argmax_first(values);
    for oracle in oracles() {
        let theirs = oracle.argmax_first(values);
        if ours != theirs {
            let bits: Vec<String> = values
                .iter()
                .map(|value| format!("{:#010x}", value.to_bits()))
                .collect();
            panic!("{} {theirs}, library {ours}: {bits:?}", oracle.name);
        }
    }
    thread_local! {
        static WAYS: Vec<Way> = ways::all();
    }
    WAYS.with(|ways| {
        for way in ways {
            let theirs = way.argmax_first(values);
            assert_eq!(ours, theirs, "{}: {values:?}", way.name());
        }
    });
    let greedy = || LIBRARY.serve_sample(values, 0.0, f32::NAN);
    assert_eq!(scripted(0, greedy), (ours, 0));
    ours
}

/// `len` floats that begin `offset` floats behind a 64-byte boundary.
fn aligned(buffer: &mut [f32], offset: usize, len: usize) -> &mut [f32] {
    let start = buffer.as_ptr().align_offset(64) + offset;
    &mut buffer[start..start + len]
}

/// Two equal maxima, or one and a NaN, at every two places of every length.
#[test]
fn every_two_places() {
    const LONGEST: usize = 70;
    let mut checked = 0;
    let mut buffer = vec![f32::INFINITY; LONGEST + 64];
    for len in 1..=LONGEST {
        for first in 0..len {
            for second in first..len {
                let offset = (len + first + second) % ALIGNMENTS;
                let values = aligned(&mut buffer, offset, len);
                for [a, b, rest] in [
                    [1.0, 1.0, 0.5],
                    [0.0, -0.0, -1.0],
                    [-0.0, 0.0, -1.0],
                    [f32::NAN, 1.0, 0.5],
                    [1.0, f32::NAN, 0.5],
                    [f32::NAN, f32::NAN, f32::NEG_INFINITY],
                    [f32::INFINITY, f32::INFINITY, f32::NAN],
                    [f32::NEG_INFINITY, f32::NEG_INFINITY, f32::NEG_INFINITY],
                ] {
                    values.fill(rest);
                    values[second] = b;
                    values[first] = a;
                    check(values);
                    checked += 1;
                }
                values.fill(f32::INFINITY);
            }
        }
    }
    println!("greedy: {checked} pairs of places equal the scan");
    assert_eq!(checked, 477_120);
}

/// Values from a small set, so that most vectors have ties, at every length and
/// alignment. Outside the slice lies what would win.
#[test]
fn every_length_and_alignment() {
    const SETS: [&[f32]; 5] = [
        &[0.0, -0.0, 1.0, -1.0],
        &[0.0, -0.0],
        &[f32::NAN, 1.0, 2.0, f32::NEG_INFINITY],
        &[f32::NAN, -f32::NAN, f32::INFINITY, f32::MAX],
        &[f32::MIN_POSITIVE, 1e-45, -1e-45, 0.0, -0.0],
    ];
    let mut random = fastrand::Rng::with_seed(1);
    let mut checked = 0;
    let mut buffer = vec![f32::INFINITY; 600 + 64];
    for len in (1..=200).chain([255, 256, 257, 511, 512, 513, 600 - ALIGNMENTS]) {
        for offset in 0..ALIGNMENTS {
            for set in SETS {
                let values = aligned(&mut buffer, offset, len);
                for value in values.iter_mut() {
                    *value = set[random.usize(..set.len())];
                }
                check(values);
                values.fill(f32::INFINITY);
                checked += 1;
            }
        }
    }
    println!("greedy: {checked} short vectors equal the scan");
    assert_eq!(checked, 16_560);
}

#[test]
fn every_shape() {
    let mut checked = 0;
    for shape in SHAPES {
        for vocab_size in [1, 2, 17, 4_099, 50_257, 248_320] {
            let mut buffer = vec![f32::INFINITY; vocab_size + 64];
            let values = aligned(&mut buffer, checked % ALIGNMENTS, vocab_size);
            shape.fill(checked as u64, values);
            check(values);
            checked += 1;
        }
    }
    println!("greedy: {checked} vectors of {} shapes", SHAPES.len());
}

#[test]
fn named_oddities() {
    let mut values = [0.0; 64];
    values[17] = 3.0;
    values[32] = 3.0;
    assert_eq!(check(&values), 17);
    assert_eq!(check(&[-1.0, -0.0, 0.0]), 1);
    assert_eq!(check(&[f32::NAN, 2.0, f32::INFINITY]), 0);
    assert_eq!(check(&[1.0, f32::NAN, 3.0, 2.0]), 2);
    assert_eq!(check(&[f32::NEG_INFINITY, f32::NAN, f32::NEG_INFINITY]), 0);
}

/// With one value or none nothing is read.
#[test]
fn nothing_to_read() {
    for n in [1, 0, -1, i32::MIN] {
        // SAFETY: the contract: x is not read when n is 1 or below.
        let index = unsafe { colibri_sampler::argmax_first(std::ptr::null(), n) };
        assert_eq!(index, 0);
    }
    for vocab_size in [0, -1, i32::MIN] {
        for temperature in [0.0, -0.0, -1.0, f32::NEG_INFINITY] {
            let greedy = || {
                // SAFETY: the contract: greedy without a vocabulary reads nothing.
                unsafe {
                    colibri_sampler::serve_sample(std::ptr::null(), vocab_size, temperature, 0.9)
                }
            };
            assert_eq!(scripted(0, greedy), (0, 0));
        }
    }
}
