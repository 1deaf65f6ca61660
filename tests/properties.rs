//! Properties over logits of all kinds, by the thousand: the library's functions
//! are the C reference's, wherever the slice lies in memory.

mod common;

use std::cmp::Ordering;
use std::ffi::c_void;

use colibri_sampler::oracle::{LIBRARY, ORIGINAL, REFERENCE};
use colibri_sampler::trace;
use colibri_sampler::{Request, SampleProb, sample_prob_desc};
use common::cases::{Entry, Subject};
use common::rand::{EDGES, RAND_MAX, scripted};
use common::shapes::SHAPES;
use common::ways;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Cases of each property.
const CASES: u32 = 4_096;

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: CASES,
        // A failure prints its vector; the suite writes no files.
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// One logit of the kinds that get mixed in a vector.
fn logit() -> impl Strategy<Value = f32> {
    prop_oneof![
        6 => -30.0..5.0_f32,
        3 => select(vec![0.0, -0.0, 1.0, -1.0, 0.5, 2.0]),
        2 => -106.0..-85.0_f32,
        2 => Just(f32::NEG_INFINITY),
        1 => select(vec![-65_504.0, -1e9, f32::MIN, f32::MAX, 1e-45, f32::MIN_POSITIVE]),
    ]
}

fn not_finite() -> impl Strategy<Value = f32> {
    prop_oneof![
        8 => logit(),
        1 => Just(f32::INFINITY),
        1 => Just(f32::NAN),
        1 => any::<u32>().prop_map(f32::from_bits),
    ]
}

/// Vectors: mixed, tied, near one another, of the shared shapes.
fn logits() -> BoxedStrategy<Vec<f32>> {
    let tied = (
        vec(logit(), 1..6),
        vec(any::<prop::sample::Index>(), 1..300),
    )
        .prop_map(|(values, places)| places.iter().map(|place| *place.get(&values)).collect());
    let near = (logit(), vec(-3..=3_i32, 1..120)).prop_map(|(value, steps)| {
        let step = |ulps: &i32| f32::from_bits(value.to_bits().wrapping_add_signed(*ulps));
        steps.iter().map(step).collect()
    });
    let shaped = (select(SHAPES), any::<u64>(), 1..2_500_usize)
        .prop_map(|(shape, seed, vocab_size)| shape.logits(seed, vocab_size));
    prop_oneof![
        4 => vec(logit(), 1..200),
        2 => vec(not_finite(), 1..80),
        2 => tied,
        1 => near,
        3 => shaped,
    ]
    .boxed()
}

fn temperature() -> impl Strategy<Value = f32> {
    prop_oneof![
        8 => 0.05..3.0_f32,
        3 => select(vec![1.0, 0.7]),
        1 => any::<u32>().prop_map(f32::from_bits),
        1 => select(vec![0.0, -0.0, -1.0, 1e-45, 1e-38, 1e9, f32::INFINITY, f32::NAN]),
    ]
}

fn top_p() -> impl Strategy<Value = f32> {
    prop_oneof![
        8 => 0.0..1.0_f32,
        2 => select(vec![0.9, 0.95, 1.0, 0.999_999_94, 1e-6, 1e-45]),
        1 => any::<u32>().prop_map(f32::from_bits),
        1 => select(vec![0.0, -0.0, -0.5, 1.5, f32::INFINITY, f32::NAN]),
    ]
}

fn raw() -> impl Strategy<Value = i32> {
    prop_oneof![
        4 => 0..=RAND_MAX,
        2 => select(&EDGES[..]),
    ]
}

/// `values` again, `offset` floats behind a 64-byte boundary, between floats
/// that would win if they were read.
fn with_moved<T>(values: &[f32], offset: usize, call: impl FnOnce(&[f32]) -> T) -> T {
    let mut buffer = vec![f32::INFINITY; values.len() + 48];
    let start = buffer.as_ptr().align_offset(64) + offset;
    let moved = start..start + values.len();
    buffer[moved.clone()].copy_from_slice(values);
    call(&buffer[moved])
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn draws_equal_the_references(
        logits in logits(),
        temperature in temperature(),
        top_p in top_p(),
        raw in raw(),
        offset in 0..16_usize,
    ) {
        for entry in Entry::BOTH {
            let ask = |who: &dyn Subject, logits: &[f32]| {
                scripted(raw, || who.draw(entry, logits, temperature, top_p))
            };
            let ours = with_moved(&logits, offset, |moved| ask(&LIBRARY, moved));
            for way in ways::all() {
                let theirs = with_moved(&logits, offset, |moved| ask(&way, moved));
                prop_assert_eq!(ours, theirs, "{:?}: {}", entry, way.name());
            }
            for oracle in [REFERENCE].iter().chain(&ORIGINAL) {
                prop_assert_eq!(ours, ask(oracle, &logits), "{:?} of {}", entry, oracle.name);
            }
        }
    }

    #[test]
    fn traced_paths_give_the_drawn_token(
        logits in logits(),
        temperature in 0.05..3.0_f32,
        top_p in top_p(),
        raw in raw(),
    ) {
        let uniform = f64::from(raw) / f64::from(RAND_MAX);
        let request = Request::new(&logits, temperature, top_p).unwrap();
        let (token, _) = scripted(raw, || LIBRARY.serve_sample(&logits, temperature, top_p));
        prop_assert_eq!(trace::sample(&request, uniform).unwrap().token, token);
        prop_assert_eq!(trace::by_full_sort(&request, uniform).unwrap().token, token);
        if request.is_cut() {
            prop_assert_eq!(trace::by_buckets(&request, uniform).unwrap().token, token);
        }
    }

    #[test]
    fn argmax_equals_the_scan(
        values in prop_oneof![logits(), vec(any::<u32>().prop_map(f32::from_bits), 1..300)],
        offset in 0..16_usize,
    ) {
        let ours = with_moved(&values, offset, |moved| LIBRARY.argmax_first(moved));
        for oracle in [REFERENCE].iter().chain(&ORIGINAL) {
            prop_assert_eq!(ours, oracle.argmax_first(&values), "{}", oracle.name);
        }
    }

    /// The comparator says what the contract says, for any two floats.
    #[test]
    fn comparator_keeps_the_contract(
        a in weight_and_id(),
        b in weight_and_id(),
    ) {
        let pointer = |token: &SampleProb| std::ptr::from_ref(token).cast::<c_void>();
        // SAFETY: both point to a SampleProb.
        let ours = unsafe { sample_prob_desc(pointer(&a), pointer(&b)) }.signum();
        let wanted = if a.p.is_nan() || b.p.is_nan() {
            Ordering::Equal
        } else {
            b.p.partial_cmp(&a.p).unwrap().then(a.id.cmp(&b.id))
        };
        prop_assert_eq!(ours, wanted as i32);
        if let Some(original) = ORIGINAL.and_then(|original| original.sample_prob_desc) {
            // SAFETY: as above.
            let theirs = unsafe { original(pointer(&a), pointer(&b)) }.signum();
            prop_assert_eq!(ours, theirs);
        }
    }
}

fn weight_and_id() -> impl Strategy<Value = SampleProb> {
    let weight = prop_oneof![
        select(vec![0.0, -0.0, 1.0, 0.5, f32::NAN, f32::INFINITY, 1e-45]),
        any::<u32>().prop_map(f32::from_bits),
    ];
    let id = prop_oneof![0..4_i32, any::<i32>()];
    (weight, id).prop_map(|(p, id)| SampleProb { p, id })
}
