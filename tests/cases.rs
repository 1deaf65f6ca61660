//! Every case of `tests/cases/reports.txt`, on the library, the C reference and,
//! where it is vendored, the original.

mod common;

use colibri_sampler::Request;
use colibri_sampler::oracle::{self, LIBRARY, ORIGINAL, Prepared, REFERENCE, Sampler};
use colibri_sampler::trace::{self, Route};
use common::cases::{self, Case, Entry, Expectation, Subject};
use common::host;
use common::rand::{RAND_MAX, scripted, spread};
use common::ways;

/// Expectations in the file, "any" draws counted one by one and each function
/// by itself.
const CASES: usize = 37;
const EXPECTATIONS: usize = 583;
const TRACED: usize = 7;

/// Whether the recorded tokens of `case` hold on this host.
fn is_recorded_here(case: &Case) -> bool {
    case.depends.is_none_or(host::is_recorded)
}

#[test]
fn every_case_gives_the_recorded_tokens() {
    let cases = cases::reports();
    let ways = ways::all();
    let mut subjects: Vec<&dyn Subject> = vec![&LIBRARY, &REFERENCE];
    subjects.extend(ORIGINAL.iter().map(|original| original as &dyn Subject));
    subjects.extend(ways.iter().map(|way| way as &dyn Subject));
    if ORIGINAL.is_none() {
        println!("cases: the original is not in vendor/: not compared with it");
    }
    let mut total = 0;
    let mut by_reference = Vec::new();
    for case in &cases {
        total += case.draws();
        if is_recorded_here(case) {
            for &subject in &subjects {
                let held = cases::check(case, subject).unwrap_or_else(|e| panic!("{e}"));
                assert_eq!(held, case.draws(), "{}", case.name);
            }
        } else {
            by_reference.push(case);
        }
    }
    let compared: usize = by_reference.iter().map(|case| case.draws()).sum();
    if !by_reference.is_empty() {
        let functions: Vec<_> = by_reference
            .iter()
            .filter_map(|case| case.depends)
            .collect();
        println!(
            "cases: {compared} of {total} expectations compared with the C reference alone: \
             this host's {functions:?} are not those of the recorded tokens"
        );
    }
    println!(
        "cases: {} cases, {total} expectations compared with each of {:?}",
        cases.len(),
        subjects
            .iter()
            .map(|subject| subject.name())
            .collect::<Vec<_>>()
    );
    assert_eq!((cases.len(), total), (CASES, EXPECTATIONS));
}

/// What holds on any host, recorded tokens or not.
#[test]
fn every_case_gives_the_references_tokens() {
    let mut compared = 0;
    for case in &cases::reports() {
        for expectation in &case.expectations {
            let (temperature, top_p) = expectation.parameters();
            let raws: Vec<i32> = match *expectation {
                Expectation::Draw { raw, .. } => vec![raw, 0, RAND_MAX],
                _ => spread(5).collect(),
            };
            for raw in raws {
                for entry in Entry::BOTH {
                    let ask = |sampler: &Sampler| {
                        scripted(raw, || {
                            sampler.draw(entry, &case.logits, temperature, top_p)
                        })
                    };
                    let (ours, reference) = (ask(&LIBRARY), ask(&REFERENCE));
                    assert_eq!(ours, reference, "{}: {expectation:?}, {entry:?}", case.name);
                    compared += 1;
                }
            }
            assert_eq!(
                LIBRARY.argmax_first(&case.logits),
                REFERENCE.argmax_first(&case.logits),
                "{}",
                case.name
            );
        }
    }
    println!("cases: {compared} draws compared with the C reference, 0 different");
}

/// What the draws do not show: sizes of nuclei, and the fallback.
#[test]
fn every_case_keeps_the_recorded_nucleus() {
    let mut held = 0;
    for case in &cases::reports() {
        for expectation in &case.expectations {
            let (temperature, top_p) = expectation.parameters();
            let report = || {
                let request = Request::new(&case.logits, temperature, top_p).unwrap();
                trace::by_buckets(&request, 0.5).unwrap()
            };
            let reference = || {
                let traced = || oracle::reference_trace(&case.logits, temperature, top_p).1;
                scripted(0, traced).0
            };
            match *expectation {
                Expectation::Keeps { nucleus, .. } => {
                    let (ours, reference) = (report(), reference());
                    assert_eq!(ours.nucleus, reference.nucleus as usize, "{}", case.name);
                    let sorted = Prepared::new(&case.logits, temperature, top_p);
                    assert_eq!(ours.nucleus, sorted.nucleus(), "{}", case.name);
                    if is_recorded_here(case) {
                        assert_eq!(ours.nucleus, nucleus, "{}", case.name);
                    }
                }
                Expectation::FallsBack { .. } => {
                    let fell_back = report().route == Route::FellBack;
                    assert_eq!(fell_back, reference().fell_back == 1, "{}", case.name);
                    if is_recorded_here(case) {
                        assert!(fell_back, "{}", case.name);
                    }
                }
                _ => continue,
            }
            held += 1;
            if !is_recorded_here(case) {
                println!("cases: {}: by the C reference alone", case.name);
            }
        }
    }
    println!("cases: {held} nuclei and fallbacks");
    assert_eq!(held, TRACED);
}

/// The report behind "an approximate exp moves the draw": an error of one ulp in
/// one weight moves the draw at which the pick changes by 3 to 26, so a draw
/// there tells one exp from another.
#[test]
fn one_ulp_of_a_weight_moves_the_threshold() {
    let weights = [0.0, -0.7, -1.3, -2.1].map(|logit: f32| host::expf(logit / 0.7));
    // The last raw value that picks token 0, whose weight is 1 and whose
    // neighbour in the order comes behind it: 1 >= raw / RAND_MAX * kept.
    let threshold = |weights: [f32; 4]| {
        let kept: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
        let picks_first = |raw: i32| 1.0 >= f64::from(raw) / f64::from(RAND_MAX) * kept;
        let guess = (f64::from(RAND_MAX) / kept) as i32;
        (guess - 8..guess + 8)
            .rfind(|&raw| picks_first(raw))
            .expect("a threshold near the guess")
    };
    let exact = threshold(weights);
    let mut moves = Vec::new();
    for token in 1..4 {
        for neighbour in [f32::next_up, f32::next_down] {
            let mut wrong = weights;
            wrong[token] = neighbour(wrong[token]);
            moves.push((threshold(wrong) - exact).abs());
        }
    }
    println!("cases: one ulp moves the threshold {exact} by {moves:?} draws");
    assert_eq!(moves.len(), 6);
    assert!(moves.iter().all(|moved| (3..=26).contains(moved)));
}
