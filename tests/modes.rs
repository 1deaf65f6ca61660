//! Draws in other floating-point modes than the default one: the promise is the
//! token of the C code in the same mode, and the certified path, whose bounds
//! hold in the default mode only, keeps out of it.

mod common;

use std::cell::Cell;
use std::ffi::{c_float, c_int};
use std::slice;

use colibri_sampler::Request;
use colibri_sampler::oracle::{Draw, LIBRARY, REFERENCE, reference_in_mode, reference_mode};
use colibri_sampler::trace::{self, Report, Route, Settings};
use common::rand::{RAND_MAX, scripted};
use common::shapes;
use common::ways;

/// Every rounding with every treatment of subnormals; the first is the default.
fn modes() -> impl Iterator<Item = reference_mode> {
    (0..16).map(|index| reference_mode {
        rounding: index / 4,
        flush_results: index % 2,
        flush_operands: index / 2 % 2,
    })
}

struct Input {
    what: String,
    logits: Vec<f32>,
    temperature: f32,
    top_p: f32,
}

/// The token of `draw` in `mode` while `rand()` gives `raw`, and the calls of
/// `rand()`. None where the CPU lacks the mode.
fn in_mode(mode: reference_mode, draw: Draw, input: &Input, raw: c_int) -> Option<(c_int, usize)> {
    let mut token = -1;
    let (is_there, calls) = scripted(raw, || {
        // SAFETY: pointer and length are of one slice, and the token is written
        // while the call runs.
        unsafe {
            reference_in_mode(
                mode,
                Some(draw),
                input.logits.as_ptr(),
                input.logits.len() as c_int,
                input.temperature,
                input.top_p,
                &mut token,
            )
        }
    });
    (is_there == 1).then_some((token, calls))
}

/// The C functions' greedy scan, as a draw.
unsafe extern "C" fn argmax_of_library(x: *const c_float, n: c_int, _: f32, _: f32) -> c_int {
    // SAFETY: the caller's pointer and length.
    unsafe { (LIBRARY.argmax_first)(x, n) }
}

unsafe extern "C" fn argmax_of_reference(x: *const c_float, n: c_int, _: f32, _: f32) -> c_int {
    // SAFETY: the caller's pointer and length.
    unsafe { (REFERENCE.argmax_first)(x, n) }
}

thread_local! {
    static SETTINGS: Cell<Option<Settings>> = const { Cell::new(None) };
    static REPORT: Cell<Report> = const { Cell::new(Report {
        token: -1,
        route: Route::Greedy,
        candidates: 0,
        nucleus: 0,
        weighed: 0,
        sorted: 0,
        refined: 0,
    }) };
}

/// A draw in the way that SETTINGS name, with its record left in REPORT.
unsafe extern "C" fn traced(lo: *const c_float, len: c_int, temp: f32, top_p: f32) -> c_int {
    // SAFETY: the caller's pointer and length.
    let logits = unsafe { slice::from_raw_parts(lo, len as usize) };
    let request = Request::new(logits, temp, top_p).expect("a test has logits");
    // SAFETY: rand takes nothing and returns an int.
    let uniform = || f64::from(unsafe { libc::rand() }) / f64::from(RAND_MAX);
    let uniform = if request.is_greedy() { 0.0 } else { uniform() };
    let settings = SETTINGS.get().expect("settings for a traced draw");
    let report = trace::sample_with(&request, uniform, settings).expect("memory for a test");
    REPORT.set(report);
    report.token
}

fn inputs() -> Vec<Input> {
    let names = [
        "subnormal",
        "gumbel",
        "normal",
        "ties",
        "octaves",
        "absorbed",
        "crowded",
        "masks",
        "wide",
        "half-masked",
        "flat",
        "not-finite",
        "near-fallback",
    ];
    let parameters = [
        (1.0, 0.9),
        (0.7, 0.999_999_94),
        (1.0, 1.0),
        (1.3, 0.3),
        // Greedy where operands are flushed.
        (1e-40, 0.9),
        (1.0, 1e-40),
    ];
    let mut inputs = Vec::new();
    for (index, name) in names.iter().enumerate() {
        for (k, (temperature, top_p)) in parameters.into_iter().enumerate() {
            for vocab_size in [7, 300, 700, 2_100] {
                let seed = (index * 10 + k) as u64;
                inputs.push(Input {
                    what: format!("{name} {seed}"),
                    logits: shapes::find(name).unwrap().logits(seed, vocab_size),
                    temperature,
                    top_p,
                });
            }
        }
    }
    // Subnormal logits, which one mode takes for ties.
    for (seed, temperature) in [1.0, 1e-38, 1e-41, 0.0].into_iter().enumerate() {
        let mut random = fastrand::Rng::with_seed(seed as u64);
        let logits = (0..900)
            .map(|_| f32::from_bits(random.u32(0..0x0090_0000) | random.u32(..) << 31))
            .collect();
        inputs.push(Input {
            what: format!("subnormal logits {seed}"),
            logits,
            temperature,
            top_p: 0.9,
        });
    }
    inputs
}

#[test]
fn every_mode_gives_the_references_token() {
    let pairs: [(&str, Draw, Draw); 3] = [
        ("serve_sample", LIBRARY.serve_sample, REFERENCE.serve_sample),
        (
            "serve_sample_sorted",
            LIBRARY.serve_sample_sorted,
            REFERENCE.serve_sample_sorted,
        ),
        ("argmax_first", argmax_of_library, argmax_of_reference),
    ];
    let (mut draws, mut tried, mut differ) = (0, 0, 0);
    for input in inputs() {
        for raw in [0, RAND_MAX / 3, RAND_MAX - 1, RAND_MAX] {
            let ask = |mode, draw| in_mode(mode, draw, &input, raw);
            let plain = ask(modes().next().unwrap(), REFERENCE.serve_sample);
            for mode in modes() {
                for (name, ours, theirs) in pairs {
                    let Some(theirs) = ask(mode, theirs) else {
                        continue;
                    };
                    let ours = ask(mode, ours).unwrap();
                    assert_eq!(
                        ours,
                        theirs,
                        "{name}: {}, V {}, temperature {:e}, top_p {:e}, rand() {raw}, {mode:?}",
                        input.what,
                        input.logits.len(),
                        input.temperature,
                        input.top_p,
                    );
                    tried += 1;
                    differ += usize::from(name == "serve_sample" && Some(theirs) != plain);
                    draws += usize::from(name != "argmax_first");
                }
            }
        }
    }
    println!("modes: {draws} draws compared with the C reference, 0 different");
    println!("modes: {tried} calls in all, {differ} tokens are not those of the default mode");
    // Else nothing here would depend on a mode.
    assert!(differ > 100 || cfg!(not(target_arch = "x86_64")));
}

/// Each way takes the certified path in the default mode and in no other, and
/// gives the reference's token.
#[test]
fn the_certified_path_is_for_the_default_mode() {
    let mut reports = 0;
    for way in ways::all().into_iter().filter(|way| !way.is_exact()) {
        SETTINGS.set(Some(way.settings));
        for input in inputs() {
            let ordinary = input.temperature > 1e-18 && !input.what.starts_with("not-finite");
            if !ordinary || input.logits.len() <= 512 {
                continue;
            }
            for (index, mode) in modes().enumerate() {
                let Some(theirs) = in_mode(mode, REFERENCE.serve_sample, &input, RAND_MAX / 3)
                else {
                    continue;
                };
                let ours = in_mode(mode, traced, &input, RAND_MAX / 3);
                let report = REPORT.get();
                let what = &input.what;
                assert_eq!(ours, Some(theirs), "{what}, {mode:?}: {report:?}");
                let is_certified = matches!(report.route, Route::Certified | Route::Refined);
                assert!(!is_certified || index == 0, "{what}, {mode:?}: {report:?}");
                // In the default mode it is the path of all but the very hard.
                let is_easy = what.starts_with("gumbel") && input.top_p < 1.0;
                assert!(is_certified || index > 0 || !is_easy, "{what}: {report:?}");
                reports += 1;
            }
        }
    }
    println!("modes: {reports} reports of {:?}", trace::tiers());
}
