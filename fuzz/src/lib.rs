//! What a fuzzer's bytes mean to the targets, and the comparisons they make.
//! tests/fuzz.rs takes this file too, so that `make check` runs them a little.

pub mod input;

#[path = "../../tests/common/cases.rs"]
pub mod cases;
#[path = "../../tests/common/host.rs"]
mod host;
#[path = "../../tests/common/rand.rs"]
pub mod rand;
#[path = "../../tests/common/ways.rs"]
pub mod ways;

use std::ffi::c_int;

use cases::{Entry, Subject};
use colibri_sampler::oracle::{
    LIBRARY, ORIGINAL, Prepared, REFERENCE, Sampler as Oracle, reference_filtered,
};
use colibri_sampler::{Params, Sampler, Workspace};
use input::Input;
use rand::{RAND_MAX, scripted};

fn oracles() -> impl Iterator<Item = Oracle> {
    [REFERENCE].into_iter().chain(ORIGINAL)
}

/// Draws by the C function and in every way that the library has, each compared
/// with the oracles: for the input's own `rand()`, both ends of its range, and
/// the two values between which the pick leaves a token of the nucleus.
pub fn compare_draws(entry: Entry, input: &Input) {
    let Input {
        logits,
        temperature,
        top_p,
        ..
    } = input;
    let is_greedy = entry == Entry::ServeSample && *temperature <= 0.0;
    let calls = usize::from(!is_greedy);
    let ask = |subject: &dyn Subject, raw| {
        scripted(raw, || subject.draw(entry, logits, *temperature, *top_p))
    };
    let check = |raw: c_int, expected: c_int| {
        let expected = (expected, calls);
        let ours = ask(&LIBRARY, raw);
        assert_eq!(ours, expected, "the library, rand() {raw}: {input:?}");
        for way in ways::all() {
            let ours = ask(&way, raw);
            assert_eq!(ours, expected, "{}, rand() {raw}: {input:?}", way.name());
        }
    };

    let own = ask(&REFERENCE, input.raw).0;
    for oracle in oracles() {
        let theirs = ask(&oracle, input.raw);
        assert_eq!(theirs, (own, calls), "{}: {input:?}", oracle.name);
    }
    check(input.raw, own);
    if is_greedy {
        return;
    }
    // One sort answers the others.
    let prepared = Prepared::new(logits, *temperature, *top_p);
    for raw in [0, RAND_MAX] {
        check(raw, prepared.pick(raw));
    }
    if let Some(last) = prepared.nucleus().checked_sub(1) {
        let position = usize::from(input.position).min(last);
        if let Some(raw) = prepared.first_draw_behind(position) {
            check(raw, prepared.pick(raw));
            if raw > 0 {
                check(raw - 1, prepared.pick(raw - 1));
            }
        }
    }
}

/// The argmax of the input's logits, from each alignment of four bytes.
pub fn compare_argmax(input: &Input) {
    const ALIGNMENTS: usize = 16;
    let mut buffer = vec![f32::INFINITY; input.logits.len() + 2 * ALIGNMENTS];
    let aligned = buffer.as_ptr().align_offset(64);
    let offset = aligned + usize::from(input.position) % ALIGNMENTS;
    let values = &mut buffer[offset..][..input.logits.len()];
    values.copy_from_slice(&input.logits);
    let values = &*values;

    let expected = REFERENCE.argmax_first(values);
    for oracle in oracles() {
        assert_eq!(
            oracle.argmax_first(values),
            expected,
            "{}: {input:?}",
            oracle.name
        );
    }
    assert_eq!(
        LIBRARY.argmax_first(values),
        expected,
        "the library: {input:?}"
    );
    for way in ways::all() {
        let ours = way.argmax_first(values);
        assert_eq!(ours, expected, "{}: {input:?}", way.name());
    }
}

/// The re-entrant surface: what is accepted, and then token, nucleus and sums.
pub fn compare_sampler(input: &Input) {
    let logits = &input.logits;
    let params = Params {
        temperature: input.temperature,
        top_p: input.top_p,
        top_k: input.top_k,
        min_p: input.min_p,
    };
    let uniform = f64::from(input.raw) / f64::from(RAND_MAX);
    let answer = Sampler::new(params).and_then(|sampler| sampler.sample(logits, uniform));
    if !is_accepted(input, uniform) {
        assert!(answer.is_err(), "{answer:?}: {input:?}");
        return;
    }
    let sampler = Sampler::new(params).expect("accepted");
    let sample = sampler.sample_with_info(logits, uniform).expect("accepted");
    let expected = if params.temperature == 0.0 {
        REFERENCE.argmax_first(logits)
    } else {
        let (token, found) = reference_filtered(logits, &params, uniform);
        let info = sample.info;
        let ours = (
            info.nucleus,
            info.kept.to_bits(),
            info.total_weight.to_bits(),
        );
        let theirs = (
            found.nucleus as usize,
            found.kept.to_bits(),
            found.total_weight.to_bits(),
        );
        assert_eq!(ours, theirs, "{input:?}");
        token
    };
    assert_eq!(answer, Ok(expected), "{input:?}");
    assert_eq!(sample.token, expected, "with info: {input:?}");
    let mut workspace = Workspace::new(logits.len()).expect("memory for a test");
    let bare = sampler.sample_in(&mut workspace, logits, uniform);
    assert_eq!(bare, Ok(expected), "in a workspace: {input:?}");
}

/// What docs/api.md accepts.
fn is_accepted(input: &Input, uniform: f64) -> bool {
    let logits = &input.logits;
    input.temperature >= 0.0
        && input.temperature.is_finite()
        && input.top_k >= 0
        && (0.0..=1.0).contains(&input.min_p)
        && (0.0..=1.0).contains(&uniform)
        && logits.iter().all(|&logit| logit < f32::INFINITY)
        && logits.iter().any(|&logit| logit > f32::NEG_INFINITY)
}
