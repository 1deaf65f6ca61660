//! The request API, in Rust and through its C surface: every status, filters
//! against the C reference, batches against single calls, and no allocation in a
//! workspace.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr;

use colibri_sampler::ffi::{
    Batch, Error, Memory, Status, colibri_params_default, colibri_rng_seed, colibri_rng_uniform,
    colibri_sample, colibri_sample_batch, colibri_sampler_version, colibri_strerror,
    colibri_top_logprobs, colibri_workspace_size,
};
use colibri_sampler::oracle::{LIBRARY, REFERENCE, reference_filtered, reference_trace};
use colibri_sampler::{
    BatchRow, Info, Params, Path, Rejection, Rng, Sampler, Workspace, sample_batch, top_logprobs,
};
use common::rand::{RAND_MAX, scripted};
use common::shapes::{self, Kind, SHAPES};

/// Counts the allocations of each thread, and refuses all from some number on.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    static REFUSED_FROM: Cell<usize> = const { Cell::new(usize::MAX) };
}

// SAFETY: the system's allocator, and a number beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let number = ALLOCATIONS.get();
        ALLOCATIONS.set(number + 1);
        if number >= REFUSED_FROM.get() {
            return ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations_of<T>(call: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATIONS.get();
    let result = call();
    (result, ALLOCATIONS.get() - before)
}

/// `call`, while memory runs out after `granted` allocations.
fn starved<T>(granted: usize, call: impl FnOnce() -> T) -> T {
    REFUSED_FROM.set(ALLOCATIONS.get() + granted);
    let result = call();
    REFUSED_FROM.set(usize::MAX);
    result
}

const UNSET: i32 = -77;

fn no_info() -> Info {
    Info {
        logprob: -77.0,
        nucleus_logprob: -77.0,
        total_weight: -77.0,
        kept: -77.0,
        nucleus: 77,
        candidates: 77,
        path: Path::Greedy,
    }
}

fn no_error() -> Error {
    Error {
        status: Status::Ok,
        row: 77,
        index: 77,
    }
}

/// `colibri_sample` with everything that it can be given.
fn call(logits: &[f32], params: Params, uniform: f64) -> (Status, i32, Info, Error) {
    let (mut token, mut info, mut error) = (UNSET, no_info(), no_error());
    // SAFETY: all pointers are to what they say.
    let status = unsafe {
        colibri_sample(
            logits.as_ptr(),
            logits.len(),
            &params,
            uniform,
            ptr::null(),
            &mut token,
            &mut info,
            &mut error,
        )
    };
    (status, token, info, error)
}

fn plain(temperature: f32, top_p: f32) -> Params {
    Params {
        temperature,
        top_p,
        ..Params::default()
    }
}

/// Asserts that a call is refused with `status` for the logit `index`, with and
/// without info, and writes nothing else.
fn refused(logits: &[f32], params: Params, uniform: f64, wanted: Status, index: usize) {
    let (status, token, info, error) = call(logits, params, uniform);
    assert_eq!(status, wanted, "{params:?}, draw {uniform}");
    let row = 0;
    assert_eq!(error, Error { status, row, index });
    assert_eq!((token, info), (UNSET, no_info()));
    // The certified path judges for itself.
    let draw = Sampler::new(params).and_then(|sampler| sampler.sample(logits, uniform));
    let rejection = draw.expect_err("refused with info");
    assert_eq!(Error::from(rejection), error);
}

#[test]
fn parameters_out_of_range_are_refused() {
    let logits = [0.0, 1.0];
    let params = Params::default();
    for temperature in [f32::NAN, -1.0, -1e-45, f32::INFINITY, f32::NEG_INFINITY] {
        let params = plain(temperature, 0.9);
        refused(&logits, params, 0.5, Status::BadTemperature, 0);
    }
    for top_k in [-1, i32::MIN] {
        let params = Params { top_k, ..params };
        refused(&logits, params, 0.5, Status::BadTopK, 0);
    }
    for min_p in [f32::NAN, -1e-45, 1.000_000_1, f32::INFINITY] {
        let params = Params { min_p, ..params };
        refused(&logits, params, 0.5, Status::BadMinP, 0);
    }
    for uniform in [f64::NAN, -1e-300, 1.0 + f64::EPSILON, f64::INFINITY] {
        refused(&logits, params, uniform, Status::BadUniform, 0);
        refused(&logits, plain(0.0, 1.0), uniform, Status::BadUniform, 0);
    }
    refused(&[], params, 0.5, Status::Empty, 0);
}

#[test]
fn bad_logits_are_refused_by_their_first_index() {
    for vocab_size in [1, 2, 17, 600, 5_000] {
        for temperature in [0.0, 1.0] {
            for (top_p, top_k) in [(0.9, 0), (1.0, 0), (0.9, 1)] {
                let params = Params {
                    top_k,
                    ..plain(temperature, top_p)
                };
                let mut logits = vec![0.5; vocab_size];
                for bad in [f32::NAN, -f32::NAN, f32::INFINITY] {
                    for index in [0, 1, vocab_size / 2, vocab_size - 1] {
                        if index >= vocab_size {
                            continue;
                        }
                        logits[index] = bad;
                        refused(&logits, params, 0.5, Status::BadLogit, index);
                        // A later one of the other kind is not the first.
                        logits[vocab_size - 1] = f32::INFINITY;
                        refused(&logits, params, 0.5, Status::BadLogit, index);
                        logits.fill(0.5);
                    }
                }
                logits.fill(f32::NEG_INFINITY);
                refused(&logits, params, 0.5, Status::AllMasked, 0);
                logits[vocab_size - 1] = f32::NAN;
                refused(&logits, params, 0.5, Status::BadLogit, vocab_size - 1);
            }
        }
    }
}

#[test]
fn pointers_lengths_and_workspaces_are_checked() {
    let logits = [0.0_f32, 1.0];
    let params = Params::default();
    let mut token = UNSET;
    let mut error = no_error();
    let none = ptr::null_mut::<i32>();
    let mut single = |logits: *const f32, n, params: *const Params, workspace, token| {
        // SAFETY: what is not NULL is what it says; a length that is too large
        // is refused before it is used.
        let status = unsafe {
            let info = ptr::null_mut();
            colibri_sample(logits, n, params, 0.5, workspace, token, info, &mut error)
        };
        assert!(status == Status::Ok || error.status == status);
        status
    };
    let (some, null) = (logits.as_ptr(), ptr::null());
    let nowhere = ptr::null::<Memory>();
    assert_eq!(single(null, 2, &params, nowhere, &mut token), Status::Null);
    assert_eq!(
        single(some, 2, null.cast(), nowhere, &mut token),
        Status::Null
    );
    assert_eq!(single(some, 2, &params, nowhere, none), Status::Null);
    assert_eq!(single(some, 0, &params, nowhere, &mut token), Status::Empty);
    assert_eq!(single(null, 0, &params, nowhere, &mut token), Status::Empty);
    for n in [i32::MAX as usize + 1, usize::MAX] {
        assert_eq!(
            single(some, n, &params, nowhere, &mut token),
            Status::TooLong
        );
    }
    let mut bytes = vec![0_u8; colibri_workspace_size(2)];
    let mut workspace = Memory {
        memory: ptr::null_mut(),
        size: bytes.len(),
    };
    assert_eq!(
        single(some, 2, &params, &workspace, &mut token),
        Status::Null
    );
    workspace.memory = bytes.as_mut_ptr().cast();
    workspace.size -= 1;
    let small = Status::WorkspaceTooSmall;
    assert_eq!(single(some, 2, &params, &workspace, &mut token), small);
    let greedy = plain(0.0, 1.0);
    assert_eq!(single(some, 2, &greedy, &workspace, &mut token), small);
    workspace.size = usize::MAX;
    assert_eq!(single(some, 2, &params, &workspace, &mut token), small);
    assert_eq!(token, UNSET);
    workspace.size = bytes.len();
    assert_eq!(single(some, 2, &params, &workspace, &mut token), Status::Ok);
    assert_eq!(token, 1);
    assert_eq!(colibri_workspace_size(0), 0);
    assert_eq!(colibri_workspace_size(i32::MAX as usize + 1), 0);

    let (mut ids, mut logprobs) = ([UNSET; 2], [0.0; 2]);
    let best = |n, temperature, k, ids: *mut i32, logprobs: *mut f64| {
        // SAFETY: as above.
        unsafe {
            let error = ptr::null_mut();
            colibri_top_logprobs(some, n, temperature, k, nowhere, ids, logprobs, error)
        }
    };
    let (id, logprob) = (ids.as_mut_ptr(), logprobs.as_mut_ptr());
    assert_eq!(best(2, 1.0, 1, none, logprob), Status::Null);
    assert_eq!(best(2, 1.0, 1, id, ptr::null_mut()), Status::Null);
    assert_eq!(best(0, 1.0, 1, id, logprob), Status::Empty);
    assert_eq!(best(2, 1.0, 0, id, logprob), Status::BadTopK);
    assert_eq!(best(2, 1.0, 3, id, logprob), Status::BadTopK);
    for temperature in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        assert_eq!(best(2, temperature, 1, id, logprob), Status::BadTemperature);
    }
    assert_eq!(ids, [UNSET; 2]);
    assert_eq!(best(2, 1.0, 2, id, logprob), Status::Ok);
    assert_eq!(ids, [1, 0]);
}

#[test]
fn without_memory_every_call_says_so() {
    let mut refusals = 0;
    // Of the certified path too, which allocates several times.
    for (vocab_size, shape) in [(9, 0), (600, 4), (20_000, 0), (20_000, 4), (20_000, 6)] {
        let input = Rows::of(vec![SHAPES[shape].logits(1, vocab_size); 3]);
        let logits = input.row(0);
        for top_p in [0.9, 1.0] {
            for top_k in [0, 5] {
                let params = Params {
                    top_k,
                    ..plain(0.7, top_p)
                };
                let sampler = Sampler::new(params).unwrap();
                let wanted = sampler.sample(logits, 0.5);
                for granted in 0.. {
                    let result = starved(granted, || sampler.sample(logits, 0.5));
                    if result == wanted {
                        break;
                    }
                    assert_eq!(result, Err(Rejection::OutOfMemory));
                    refusals += 1;
                }
                let (status, token, info, error) = starved(0, || call(logits, params, 0.5));
                assert_eq!((status, error.status), (Status::NoMemory, Status::NoMemory));
                assert_eq!((token, info), (UNSET, no_info()));
            }
        }
        let (mut ids, mut logprobs) = ([UNSET; 2], [0.0; 2]);
        let best = starved(0, || top_logprobs(logits, 1.0, &mut ids, &mut logprobs));
        assert_eq!((best, ids), (Err(Rejection::OutOfMemory), [UNSET; 2]));
        let mut out = Outputs::new(3);
        let batch = input.batch(1, &mut out);
        // SAFETY: every field is as long as the batch has rows.
        let status = starved(0, || unsafe { colibri_sample_batch(&batch, ptr::null()) });
        assert_eq!(status, Status::BadRows);
        assert!(
            out.errors
                .iter()
                .all(|error| error.status == Status::NoMemory)
        );
        assert_eq!(out.tokens, [UNSET; 3]);
    }
    let rows = [BatchRow {
        logits: &[0.0],
        params: Params::default(),
        uniform: 0.5,
    }];
    let batch = starved(0, || sample_batch(&rows, 1));
    assert_eq!(batch, Err(Rejection::OutOfMemory));
    println!("api: {refusals} draws refused for want of memory");
    assert!(refusals >= 40, "{refusals}");
}

#[test]
fn every_status_has_a_text_of_its_own() {
    let text = |status| {
        // SAFETY: never NULL, and static.
        unsafe { CStr::from_ptr(colibri_strerror(status)) }
            .to_str()
            .unwrap()
    };
    let known: Vec<&str> = (0..=Status::BadRows as i32).map(text).collect();
    for (status, line) in known.iter().enumerate() {
        assert!(!line.is_empty() && !line.ends_with('.') && *line != "unknown status");
        assert!(!known[..status].contains(line), "{line}");
    }
    for unknown in [-1, 14, i32::MIN, i32::MAX] {
        assert_eq!(text(unknown), "unknown status");
    }
    // SAFETY: as above.
    let version = unsafe { CStr::from_ptr(colibri_sampler_version()) };
    assert_eq!(version.to_str(), Ok(env!("CARGO_PKG_VERSION")));
}

/// What the PCG C library prints for check-pcg64, seed 42 and stream 54.
const PCG64: [u64; 6] = [
    0x86b1_da1d_7206_2b68,
    0x1304_aa46_c985_3d39,
    0xa367_0e9e_0dd5_0358,
    0xf909_0e52_9a7d_ae00,
    0xc85b_9fd8_3799_6f2c,
    0x6061_21f8_e391_9196,
];

#[test]
fn the_generator_is_pcg64() {
    let mut rng = Rng::new(42, 54);
    assert_eq!(std::array::from_fn(|_| rng.next_u64()), PCG64);
    // SAFETY: rng is one; NULL is allowed.
    unsafe {
        assert_eq!(colibri_rng_seed(&mut rng, 42, 54), Status::Ok);
        for value in PCG64 {
            let uniform = colibri_rng_uniform(&mut rng);
            assert_eq!(uniform, (value >> 11) as f64 * 2.0_f64.powi(-53));
        }
        assert_eq!(colibri_rng_seed(ptr::null_mut(), 1, 2), Status::Null);
        assert!(colibri_rng_uniform(ptr::null_mut()).is_nan());
    }
    // Any numbers are a state, all bits set or none.
    for word in [0, u64::MAX] {
        let mut rng = Rng {
            state_high: word,
            state_low: word,
            stream_high: word,
            stream_low: word,
        };
        let first = rng;
        assert!((0.0..1.0).contains(&rng.uniform()));
        assert_ne!(rng, first);
    }
}

#[test]
fn a_generator_restored_in_mid_stream_gives_the_same_tokens() {
    let logits = SHAPES[0].logits(0, 2_000);
    let sampler = Sampler::new(Params {
        top_k: 40,
        ..plain(0.8, 0.95)
    })
    .unwrap();
    let draw = |rng: &mut Rng| sampler.sample(&logits, rng.uniform()).unwrap();
    let mut rng = Rng::new(9, 1);
    for _ in 0..100 {
        draw(&mut rng);
    }
    let mut bytes = [0_u8; size_of::<Rng>()];
    // SAFETY: both are of that size, and Rng has no padding.
    unsafe {
        ptr::copy_nonoverlapping(ptr::from_ref(&rng).cast(), bytes.as_mut_ptr(), bytes.len())
    };
    let tokens: Vec<i32> = (0..200).map(|_| draw(&mut rng)).collect();
    let mut restored = MaybeUninit::<Rng>::uninit();
    // SAFETY: the bytes of an Rng.
    let mut restored = unsafe {
        ptr::copy_nonoverlapping(bytes.as_ptr(), restored.as_mut_ptr().cast(), bytes.len());
        restored.assume_init()
    };
    let again: Vec<i32> = (0..200).map(|_| draw(&mut restored)).collect();
    assert_eq!(tokens, again);
    assert!(tokens.iter().any(|token| *token != tokens[0]));
}

/// Shapes whose logits are accepted.
fn accepted() -> impl Iterator<Item = &'static common::shapes::Shape> {
    SHAPES.iter().filter(|shape| shape.kind != Kind::NotFinite)
}

#[test]
fn without_filters_it_draws_as_serve_sample() {
    let (mut draws, mut rng) = (0_u64, Rng::new(2026, 5));
    // Few draws where each costs a lot, many where it costs little.
    for (vocab_size, seeds, each) in [
        (1, 2, 120),
        (7, 6, 240),
        (64, 10, 480),
        (257, 5, 240),
        (600, 3, 160),
        (4_096, 1, 60),
    ] {
        let mut workspace = Workspace::new(vocab_size).unwrap();
        for shape in accepted() {
            for seed in 0..seeds {
                let logits = shape.logits(seed, vocab_size);
                for (temperature, top_p) in [
                    (1.0, 1.0),
                    (0.7, 0.9),
                    (2.0, 0.3),
                    (0.2, 0.999),
                    (1.3, 0.0),
                    (0.0, 0.9),
                    (0.9, f32::NAN),
                ] {
                    let sampler = Sampler::new(plain(temperature, top_p)).unwrap();
                    for draw in 0..each {
                        let raw = match draw {
                            0 => 0,
                            1 => RAND_MAX,
                            _ => (rng.next_u64() >> 33) as i32,
                        };
                        let uniform = f64::from(raw) / f64::from(RAND_MAX);
                        let call = || LIBRARY.serve_sample(&logits, temperature, top_p);
                        let (wanted, _) = scripted(raw, call);
                        let got = match draw % 3 {
                            0 => sampler.sample(&logits, uniform).unwrap(),
                            1 => sampler.sample_in(&mut workspace, &logits, uniform).unwrap(),
                            _ => sampler.sample_with_info(&logits, uniform).unwrap().token,
                        };
                        assert_eq!(
                            got, wanted,
                            "{} {vocab_size} seed {seed}, {temperature} {top_p}, draw {raw}",
                            shape.name
                        );
                        draws += 1;
                    }
                }
            }
        }
    }
    println!("api: {draws} unfiltered draws compared with serve_sample");
    assert!(draws >= 1_000_000, "{draws}");
}

#[test]
fn a_large_vocabulary_draws_as_serve_sample() {
    let vocab_size = 248_320;
    for shape in accepted() {
        let logits = shape.logits(1, vocab_size);
        for (raw, top_p) in [(1 << 30, 0.9), (RAND_MAX, 0.3), (12_345, 1.0)] {
            let uniform = f64::from(raw) / f64::from(RAND_MAX);
            let (wanted, _) = scripted(raw, || LIBRARY.serve_sample(&logits, 0.7, top_p));
            let sampler = Sampler::new(plain(0.7, top_p)).unwrap();
            assert_eq!(sampler.sample(&logits, uniform), Ok(wanted));
            let (reference, _) = scripted(raw, || REFERENCE.serve_sample(&logits, 0.7, top_p));
            let sample = sampler.sample_with_info(&logits, uniform).unwrap();
            assert_eq!(sample.token, reference, "{}", shape.name);
        }
    }
}

/// Random parameters of every kind.
fn random_params(rng: &mut Rng, vocab_size: usize) -> Params {
    let mut of = |count: usize| (rng.next_u64() >> 16) as usize % count;
    let temperature = [0.3, 0.7, 1.0, 1.0, 1.5, 5.0][of(6)];
    let top_p = [0.1, 0.5, 0.9, 0.95, 0.999_999_94, 1.0, 1.0, 0.0, f32::NAN][of(9)];
    let top_k = match of(6) {
        0 => 0,
        1 => 1,
        2 => 1 + of(30),
        3 => vocab_size - 1,
        4 => vocab_size + of(3),
        _ => 1 + of(vocab_size),
    };
    let min_p = match of(5) {
        0 | 1 => 0.0,
        2 => 1.0,
        3 => 0.05,
        _ => (of(1 << 20) as f32 / (1 << 20) as f32).powi(1 + of(8) as i32),
    };
    Params {
        temperature,
        top_p,
        top_k: top_k as i32,
        min_p,
    }
}

#[test]
fn filters_are_the_references() {
    let (mut cases, mut cut) = (0, [0; 3]);
    let mut rng = Rng::new(7, 7);
    for (vocab_size, seeds, each) in [
        (1, 2, 20),
        (5, 20, 40),
        (90, 40, 40),
        (1_000, 20, 20),
        (9_000, 2, 20),
    ] {
        let mut workspace = Workspace::new(vocab_size).unwrap();
        for shape in accepted() {
            for seed in 0..seeds {
                let logits = shape.logits(seed, vocab_size);
                for draw in 0..each {
                    let params = random_params(&mut rng, vocab_size);
                    let uniform = match draw % 5 {
                        0 => 0.0,
                        1 => 1.0,
                        _ => rng.uniform(),
                    };
                    let (wanted, found) = reference_filtered(&logits, &params, uniform);
                    let context = || {
                        format!(
                            "{} {vocab_size} seed {seed}, {params:?}, draw {uniform:e}",
                            shape.name
                        )
                    };
                    let sampler = Sampler::new(params).unwrap();
                    let sample = sampler.sample_with_info(&logits, uniform).unwrap();
                    assert_eq!(sample.token, wanted, "{}", context());
                    let info = sample.info;
                    assert_eq!(info.nucleus, found.nucleus as usize, "{}", context());
                    assert_eq!(info.kept, found.kept, "{}", context());
                    assert_eq!(info.total_weight, found.total_weight, "{}", context());
                    assert!(info.candidates >= info.nucleus);
                    let bare = sampler.sample_in(&mut workspace, &logits, uniform);
                    assert_eq!(bare, Ok(wanted), "{}", context());
                    assert_eq!(
                        sampler.sample(&logits, uniform),
                        Ok(wanted),
                        "{}",
                        context()
                    );
                    cases += 1;
                    cut[0] += usize::from(params.top_k > 0 && found.nucleus == params.top_k);
                    cut[1] +=
                        usize::from(params.min_p > 0.0 && (found.nucleus as usize) < vocab_size);
                    cut[2] += usize::from(info.path == Path::Buckets);
                }
            }
        }
    }
    println!("api: {cases} filtered draws compared with the reference");
    assert!(
        cases > 60_000 && cut.iter().all(|count| *count > 1_000),
        "{cases} {cut:?}"
    );
}

#[test]
fn a_small_top_k_of_a_large_vocabulary_is_the_references() {
    let (mut cases, mut rng) = (0, Rng::new(8, 8));
    for vocab_size in [4_095, 60_000] {
        let mut workspace = Workspace::new(vocab_size).unwrap();
        for shape in accepted() {
            let logits = shape.logits(2, vocab_size);
            for top_k in [1, 2, 7, 20, 29] {
                let params = Params {
                    top_k,
                    ..random_params(&mut rng, vocab_size)
                };
                let sampler = Sampler::new(params).unwrap();
                for uniform in [rng.uniform(), 1.0] {
                    let (wanted, _) = reference_filtered(&logits, &params, uniform);
                    let got = sampler.sample_in(&mut workspace, &logits, uniform);
                    assert_eq!(got, Ok(wanted), "{} {params:?} {uniform:e}", shape.name);
                    cases += 1;
                }
            }
        }
    }
    println!("api: {cases} draws under a small top_k compared with the reference");
}

/// Log-probabilities by doubles all the way.
fn straightforward_logprobs(logits: &[f32], temperature: f32) -> Vec<f64> {
    let scaled = |logit: &f32| f64::from(*logit) / f64::from(temperature);
    let largest = logits.iter().map(scaled).fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = logits
        .iter()
        .map(|logit| (scaled(logit) - largest).exp())
        .sum();
    logits
        .iter()
        .map(|logit| scaled(logit) - largest - total.ln())
        .collect()
}

#[test]
fn log_probabilities_are_those_of_doubles() {
    let mut worst = 0.0_f64;
    let mut rng = Rng::new(1, 0);
    for vocab_size in [1, 30, 1_000, 20_000] {
        for shape in accepted() {
            let logits = shape.logits(11, vocab_size);
            // At a scale of 1e38 even a double's difference of logits is coarse.
            if shape.name == "wide" {
                continue;
            }
            for temperature in [0.5, 1.0, 1.7] {
                let wanted = straightforward_logprobs(&logits, temperature);
                let count = vocab_size.min(50);
                let (mut ids, mut logprobs) = (vec![0; count], vec![0.0; count]);
                top_logprobs(&logits, temperature, &mut ids, &mut logprobs).unwrap();
                for (place, (&id, &logprob)) in ids.iter().zip(&logprobs).enumerate() {
                    let wanted = wanted[id as usize];
                    let error = if wanted == logprob {
                        0.0
                    } else {
                        (wanted - logprob).abs()
                    };
                    worst = worst.max(error / wanted.abs().max(1.0));
                    assert!(!ids[..place].contains(&id));
                }
                for pair in ids.windows(2) {
                    let [before, after] = [pair[0], pair[1]].map(|id| wanted[id as usize]);
                    // Where weights are 0 the ids decide.
                    assert!(before > after - 1e-4 || before < -80.0);
                }
                for top_p in [0.6, 1.0] {
                    let sampler = Sampler::new(plain(temperature, top_p)).unwrap();
                    let sample = sampler.sample_with_info(&logits, rng.uniform()).unwrap();
                    let info = sample.info;
                    let wanted = wanted[sample.token as usize];
                    worst = worst.max((info.logprob - wanted).abs());
                    let share = info.kept / info.total_weight;
                    let within = wanted - share.ln();
                    worst = worst.max((info.nucleus_logprob - within).abs());
                    assert!(share >= f64::from(top_p.min(0.999_999)) && share <= 1.000_001);
                }
            }
        }
    }
    println!("api: log-probabilities within {worst:e} of those by doubles");
    assert!(worst < 1e-5, "{worst:e}");
}

#[test]
fn greedy_tells_that_it_was() {
    let (status, token, info, error) = call(&[1.0, 5.0, 5.0], plain(-0.0, 0.5), 1.0);
    assert_eq!((status, token, error), (Status::Ok, 1, no_error()));
    assert_eq!(info.path, Path::Greedy);
    assert_eq!((info.logprob, info.nucleus_logprob), (0.0, 0.0));
    assert_eq!((info.kept, info.total_weight, info.nucleus), (1.0, 1.0, 1));
    // SAFETY: takes nothing.
    assert_eq!(colibri_params_default(), Params::default());
}

#[test]
fn a_workspace_leaves_nothing_to_allocate() {
    for vocab_size in [3, 600, 50_000] {
        let logits = SHAPES[4].logits(5, vocab_size);
        let mut workspace = Workspace::new(vocab_size).unwrap();
        let size = colibri_workspace_size(vocab_size);
        let mut bytes = vec![0xa5_u8; size + 64];
        let (mut ids, mut logprobs) = ([0; 3], [0.0; 3]);
        for (temperature, top_p) in [(0.0, 1.0), (1.0, 1.0), (0.7, 0.9)] {
            for (top_k, min_p) in [(0, 0.0), (20, 0.0), (0, 0.1), (20, 0.1)] {
                let params = Params {
                    temperature,
                    top_p,
                    top_k,
                    min_p,
                };
                let sampler = Sampler::new(params).unwrap();
                let draw = || {
                    let token = sampler.sample_in(&mut workspace, &logits, 0.6);
                    let sample = sampler.sample_with_info_in(&mut workspace, &logits, 0.6);
                    assert_eq!(token, sample.map(|sample| sample.token));
                    token
                };
                let (token, allocations) = allocations_of(draw);
                assert_eq!(allocations, 0, "{params:?}");
                // And at any alignment of the caller's memory.
                for offset in [0, 1, 4, 63] {
                    bytes.fill(0xa5);
                    let memory = Memory {
                        memory: bytes[offset..].as_mut_ptr().cast(),
                        size,
                    };
                    let mut in_c = UNSET;
                    // SAFETY: all pointers are to what they say.
                    let (status, allocations) = allocations_of(|| unsafe {
                        let (none, nowhere) = (ptr::null_mut(), ptr::null_mut());
                        let first = logits.as_ptr();
                        colibri_top_logprobs(
                            first,
                            vocab_size,
                            1.0,
                            3,
                            &memory,
                            ids.as_mut_ptr(),
                            logprobs.as_mut_ptr(),
                            nowhere,
                        );
                        colibri_sample(
                            first, vocab_size, &params, 0.6, &memory, &mut in_c, none, nowhere,
                        )
                    });
                    assert_eq!((status, allocations), (Status::Ok, 0));
                    assert_eq!(Ok(in_c), token);
                    assert!(bytes[..offset].iter().all(|byte| *byte == 0xa5));
                    assert!(bytes[offset + size..].iter().all(|byte| *byte == 0xa5));
                }
            }
        }
    }
    // The counter counts.
    let sampler = Sampler::new(plain(1.0, 0.5)).unwrap();
    assert_ne!(allocations_of(|| sampler.sample(&[0.0; 9], 0.5)).1, 0);
}

/// Rows of all kinds, some bad, with all that `colibri_sample_batch` is given.
struct Rows {
    vocab_size: usize,
    stride: usize,
    logits: Vec<f32>,
    params: Vec<Params>,
    uniforms: Vec<f64>,
}

impl Rows {
    fn new(rows: usize, vocab_size: usize, stride: usize) -> Self {
        let mut rng = Rng::new(rows as u64, vocab_size as u64);
        // What stands between rows is nobody's business.
        let mut logits = vec![f32::NAN; rows * stride];
        let shapes: Vec<_> = accepted().collect();
        let mut params = Vec::new();
        let mut uniforms = Vec::new();
        for row in 0..rows {
            let logits = &mut logits[row * stride..][..vocab_size];
            shapes[row % shapes.len()].fill(row as u64, logits);
            params.push(random_params(&mut rng, vocab_size));
            uniforms.push(rng.uniform());
            match row % 11 {
                3 => logits[row % vocab_size] = f32::NAN,
                5 => logits.fill(f32::NEG_INFINITY),
                7 => params[row].temperature = -1.0,
                8 => uniforms[row] = 2.0,
                9 => params[row].temperature = 0.0,
                10 => params[row] = plain(0.8, 0.9),
                _ => {}
            }
        }
        Rows {
            vocab_size,
            stride,
            logits,
            params,
            uniforms,
        }
    }

    /// Rows under parameters without filters.
    fn of(rows: Vec<Vec<f32>>) -> Self {
        Rows {
            vocab_size: rows[0].len(),
            stride: rows[0].len(),
            params: vec![plain(0.7, 0.9); rows.len()],
            uniforms: vec![0.5; rows.len()],
            logits: rows.concat(),
        }
    }

    fn row(&self, row: usize) -> &[f32] {
        &self.logits[row * self.stride..][..self.vocab_size]
    }

    fn batch(&self, threads: u32, out: &mut Outputs) -> Batch {
        Batch {
            logits: self.logits.as_ptr(),
            rows: self.params.len(),
            vocab_size: self.vocab_size,
            stride: self.stride,
            params: self.params.as_ptr(),
            uniforms: self.uniforms.as_ptr(),
            tokens: out.tokens.as_mut_ptr(),
            infos: out.infos.as_mut_ptr(),
            errors: out.errors.as_mut_ptr(),
            threads,
        }
    }

    /// The single call, row by row.
    fn singly(&self) -> Outputs {
        let mut out = Outputs::new(self.params.len());
        for row in 0..self.params.len() {
            let (status, token, info, error) =
                call(self.row(row), self.params[row], self.uniforms[row]);
            let index = if status == Status::Ok { 0 } else { error.index };
            out.tokens[row] = token;
            out.infos[row] = info;
            out.errors[row] = Error { status, row, index };
        }
        out
    }
}

#[derive(Debug, PartialEq)]
struct Outputs {
    tokens: Vec<i32>,
    infos: Vec<Info>,
    errors: Vec<Error>,
}

impl Outputs {
    fn new(rows: usize) -> Self {
        Outputs {
            tokens: vec![UNSET; rows],
            infos: vec![no_info(); rows],
            errors: vec![no_error(); rows],
        }
    }
}

#[test]
fn a_batch_is_its_rows_one_by_one() {
    for (rows, vocab_size, stride) in [
        (1, 5, 5),
        (40, 100, 103),
        (67, 700, 704),
        (24, 4_096, 4_096),
    ] {
        let input = Rows::new(rows, vocab_size, stride);
        let wanted = input.singly();
        let all_well = wanted.errors.iter().all(|error| error.status == Status::Ok);
        let status = if all_well {
            Status::Ok
        } else {
            Status::BadRows
        };
        for threads in [0, 1, 2, 3, 8, 1_000] {
            let mut out = Outputs::new(rows);
            let batch = input.batch(threads, &mut out);
            // SAFETY: every field is as long as the batch has rows.
            unsafe { assert_eq!(colibri_sample_batch(&batch, ptr::null()), status) };
            assert_eq!(out, wanted, "{rows} rows on {threads} threads");

            // Without infos, and in a workspace.
            let used = (threads.max(1) as usize).min(rows).min(256);
            let mut bytes = vec![0_u8; used * colibri_workspace_size(vocab_size)];
            let workspace = Memory {
                memory: bytes.as_mut_ptr().cast(),
                size: bytes.len(),
            };
            let mut out = Outputs::new(rows);
            let batch = Batch {
                infos: ptr::null_mut(),
                ..input.batch(threads, &mut out)
            };
            // SAFETY: as above.
            let (got, allocations) =
                allocations_of(|| unsafe { colibri_sample_batch(&batch, &workspace) });
            assert_eq!((got, allocations), (status, 0));
            assert_eq!(out.tokens, wanted.tokens);
            assert_eq!(out.errors, wanted.errors);

            // In Rust.
            let rows: Vec<BatchRow<'_>> = (0..rows)
                .map(|row| BatchRow {
                    logits: input.row(row),
                    params: input.params[row],
                    uniform: input.uniforms[row],
                })
                .collect();
            let results = sample_batch(&rows, threads as usize).unwrap();
            for (row, result) in results.into_iter().enumerate() {
                match result {
                    Ok(token) => assert_eq!(token, wanted.tokens[row]),
                    Err(rejection) => {
                        let error = Error::from(rejection);
                        assert_eq!(Error { row, ..error }, wanted.errors[row]);
                    }
                }
            }
        }
    }
}

#[test]
fn a_batch_as_a_whole_can_be_refused() {
    let input = Rows::new(3, 8, 9);
    let mut out = Outputs::new(3);
    let good = input.batch(2, &mut out);
    let refused = |batch: Batch, status| {
        // SAFETY: refused before anything is read or written.
        unsafe { assert_eq!(colibri_sample_batch(&batch, ptr::null()), status) };
    };
    let null = Status::Null;
    refused(
        Batch {
            logits: ptr::null(),
            ..good
        },
        null,
    );
    refused(
        Batch {
            params: ptr::null(),
            ..good
        },
        null,
    );
    refused(
        Batch {
            uniforms: ptr::null(),
            ..good
        },
        null,
    );
    refused(
        Batch {
            tokens: ptr::null_mut(),
            ..good
        },
        null,
    );
    refused(
        Batch {
            errors: ptr::null_mut(),
            ..good
        },
        null,
    );
    refused(
        Batch {
            vocab_size: 0,
            ..good
        },
        Status::Empty,
    );
    refused(
        Batch {
            vocab_size: 1 << 31,
            stride: 1 << 31,
            ..good
        },
        Status::TooLong,
    );
    refused(Batch { stride: 7, ..good }, Status::BadStride);
    refused(
        Batch {
            stride: usize::MAX / 2,
            ..good
        },
        Status::BadStride,
    );
    refused(
        Batch {
            rows: usize::MAX,
            ..good
        },
        Status::BadStride,
    );
    let mut bytes = vec![0_u8; 2 * colibri_workspace_size(8) - 1];
    let workspace = Memory {
        memory: bytes.as_mut_ptr().cast(),
        size: bytes.len(),
    };
    // SAFETY: as above; no rows need no pointers.
    unsafe {
        let small = Status::WorkspaceTooSmall;
        assert_eq!(colibri_sample_batch(&good, &workspace), small);
        assert_eq!(colibri_sample_batch(ptr::null(), ptr::null()), null);
        let none = Batch {
            rows: 0,
            logits: ptr::null(),
            params: ptr::null(),
            ..good
        };
        assert_eq!(colibri_sample_batch(&none, ptr::null()), Status::Ok);
    }
    assert_eq!(out, Outputs::new(3));
}

#[test]
fn a_batch_works_in_a_forked_child() {
    let input = Rows::new(50, 1_000, 1_000);
    let wanted = input.singly();
    let mut out = Outputs::new(50);
    let batch = input.batch(4, &mut out);
    // Threads before the fork, so that a pool would be left without any.
    // SAFETY: every field is as long as the batch has rows.
    unsafe { colibri_sample_batch(&batch, ptr::null()) };
    out = Outputs::new(50);
    let batch = input.batch(4, &mut out);
    // SAFETY: the child calls the library, compares, and ends by _exit.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // SAFETY: as above; a child that hangs is ended by its alarm.
        unsafe {
            libc::alarm(60);
            let status = colibri_sample_batch(&batch, ptr::null());
            let same = status == Status::BadRows && out.tokens == wanted.tokens;
            libc::_exit(if same { 40 } else { 41 });
        }
    }
    let mut status = 0;
    // SAFETY: our child.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert!(
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 40,
        "{status:#x}"
    );
}

#[test]
fn the_best_can_be_all_of_them() {
    let (mut ids, mut logprobs) = ([0; 4], [0.0; 4]);
    top_logprobs(&[1.0, 3.0, 2.0, 2.0], 1.0, &mut ids, &mut logprobs).unwrap();
    assert_eq!(ids, [1, 2, 3, 0]);
    let sum: f64 = logprobs.iter().map(|logprob| logprob.exp()).sum();
    assert!((sum - 1.0).abs() < 1e-6, "{sum}");
}

/// Without filters a record tells the buckets' own figures.
#[test]
fn a_record_tells_what_was_sorted() {
    for name in [
        "gumbel",
        "normal",
        "ties",
        "tail",
        "near-fallback",
        "half-masked",
    ] {
        for (temperature, top_p) in [(0.7, 0.9), (1.0, 0.5), (2.0, 0.999)] {
            let logits = shapes::find(name).unwrap().logits(3, 3_000);
            let sampler = Sampler::new(plain(temperature, top_p)).unwrap();
            let info = sampler.sample_with_info(&logits, 0.5).unwrap().info;
            let reference = || reference_trace(&logits, temperature, top_p).1;
            let (theirs, _) = scripted(RAND_MAX / 2, reference);
            let what = format!("{name}, {temperature}, {top_p}: {info:?}");
            assert_eq!((info.path, theirs.fell_back), (Path::Buckets, 0), "{what}");
            assert_eq!(info.candidates, theirs.candidates as usize, "{what}");
            assert_eq!(info.nucleus, theirs.nucleus as usize, "{what}");
        }
    }
}

#[test]
fn a_workspace_has_room_for_rows_and_tokens() {
    // 63 to begin at a cache line, 64 for each row of 16, 8 for each token.
    // None for a vocabulary that no call accepts.
    let refused = [(0, 0), (i32::MAX as usize + 1, 0)];
    let sizes = [(1, 135), (16, 255), (17, 327), (248_320, 2_979_903)];
    for (vocab_size, bytes) in refused.into_iter().chain(sizes) {
        assert_eq!(colibri_workspace_size(vocab_size), bytes, "{vocab_size}");
    }
}

#[test]
fn rejections_are_told_apart_in_rust() {
    assert_eq!(Sampler::new(plain(-1.0, 1.0)), Err(Rejection::Temperature));
    let params = plain(0.7, 0.5);
    assert_eq!(Sampler::new(params).unwrap().params(), &params);
    let sampler = Sampler::new(Params::default()).unwrap();
    let mut small = Workspace::new(2).unwrap();
    let needed = colibri_workspace_size(400);
    assert_eq!(
        sampler.sample_in(&mut small, &[0.0; 400], 0.5),
        Err(Rejection::Workspace(needed))
    );
    assert_eq!(
        top_logprobs(&[0.0], 1.0, &mut [0], &mut [0.0, 0.0]),
        Err(Rejection::TopK)
    );
    for (rejection, text) in [
        (Rejection::Logit(7), "logit 7 is NaN or +inf"),
        (Rejection::AllMasked, "every logit is -inf"),
        (Rejection::Uniform, "uniform is NaN or outside [0, 1]"),
        (Rejection::MinP, "min_p is NaN or outside [0, 1]"),
    ] {
        assert_eq!(rejection.to_string(), text);
    }
}
