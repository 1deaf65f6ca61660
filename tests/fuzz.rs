//! The fuzz targets' comparisons without a fuzzer, so that they do not rot: over
//! their seeds, and over seeds with some bytes changed. `make fuzz` has the
//! fuzzer.

#[path = "../fuzz/src/lib.rs"]
#[allow(dead_code, reason = "the fuzz targets take the rest")]
mod fuzz;

use std::path::PathBuf;
use std::{env, fs};

use fuzz::cases::{self, Entry, Expectation};
use fuzz::input::Input;

/// Above it a case is left to the other tests: the fuzzer wants quick inputs.
const LONGEST: usize = 4_096;

/// The cases of tests/cases, an input for each of their draws.
fn seeds() -> Vec<Vec<u8>> {
    let cases = cases::reports().into_iter();
    let short = cases.filter(|case| case.logits.len() <= LONGEST);
    short
        .flat_map(|case| {
            let expectations = case.expectations.into_iter().enumerate();
            let seed = |(number, expectation): (usize, Expectation)| {
                let (temperature, top_p) = expectation.parameters();
                let raw = match expectation {
                    Expectation::Draw { raw, .. } => raw,
                    _ => i32::MAX / 2,
                };
                let input = Input {
                    temperature,
                    top_p,
                    raw,
                    top_k: (number % 4) as i32,
                    min_p: 0.0,
                    position: number as u16,
                    logits: case.logits.clone(),
                };
                input.encode()
            };
            expectations.map(seed).collect::<Vec<_>>()
        })
        .collect()
}

fn compare(bytes: &[u8]) -> bool {
    let Some(input) = Input::decode(bytes) else {
        return false;
    };
    fuzz::compare_draws(Entry::ServeSample, &input);
    fuzz::compare_draws(Entry::ServeSampleSorted, &input);
    fuzz::compare_argmax(&input);
    fuzz::compare_sampler(&input);
    true
}

#[test]
fn the_seeds_agree() {
    let seeds = seeds();
    assert!(seeds.len() > 300, "{} seeds", seeds.len());
    for seed in &seeds {
        assert!(compare(seed));
    }
}

#[test]
fn changed_seeds_agree() {
    const INPUTS: usize = 3_000;
    let mut seeds = seeds();
    seeds.retain(|seed| seed.len() < 600);
    let mut random = fastrand::Rng::with_seed(1);
    let mut compared = 0;
    for _ in 0..INPUTS {
        let mut bytes = seeds[random.usize(..seeds.len())].clone();
        // The coding, half of the time: bytes as logits, copies of them.
        if random.bool() {
            bytes[22] = random.u8(..);
        }
        for _ in 0..random.usize(..4) {
            let place = random.usize(..bytes.len());
            bytes[place] = random.u8(..);
        }
        compared += usize::from(compare(&bytes));
    }
    assert_eq!(compared, INPUTS);
}

/// `make fuzz` has the seeds written.
#[test]
#[ignore = "writes into the folder that SEEDS names"]
fn write_seeds() {
    let folder: PathBuf = env::var_os("SEEDS").expect("SEEDS names a folder").into();
    let seeds = seeds();
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(folder.join(format!("case-{number}")), seed).expect("a seed is written");
    }
    println!("{} seeds", seeds.len());
}
