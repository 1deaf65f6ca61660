//! How much is weighed, sorted and looked at again, over shapes of all kinds, as
//! recorded in tests/cases/work.txt: a change of the guesses, or of a bound,
//! costs or saves time without changing a token, and must not do so unseen.
//!
//! `UPDATE_WORK=1 cargo test --test work` records anew.

mod common;

use std::fmt::{self, Write};
use std::{env, fs};

use colibri_sampler::Request;
use colibri_sampler::oracle::Prepared;
use colibri_sampler::trace::{self, Route, Settings, Tier};
use common::host::{self, Function};
use common::shapes::{Kind, SHAPES, Shape, find};

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/work.txt");

/// Vocabulary sizes, and vectors of each.
const SIZES: [(usize, u64); 3] = [(700, 3), (5_003, 2), (40_000, 1)];

/// The one where the last resort is asked, too.
const EXACT_SIZE: usize = 2_000;

const PARAMETERS: [(f32, f32); 6] = [
    (0.7, 0.9),
    (1.0, 1.0),
    (1.0, 0.999),
    (2.0, 0.5),
    (0.3, 0.95),
    (1.0, 0.05),
];

const UNIFORMS: [f64; 8] = [0.0, 0.03, 0.37, 0.5, 0.81, 0.95, 0.9999, 1.0];

#[derive(Default)]
struct Work {
    draws: usize,
    certified: usize,
    refined: usize,
    rounds: usize,
    candidates: usize,
    weighed: usize,
    sorted: usize,
}

impl Work {
    fn of(shape: &Shape, vocab_size: usize, seeds: u64, tier: Tier, certify: bool) -> Work {
        let mut work = Work::default();
        let settings = Settings {
            tier,
            certify,
            twin: true,
        };
        // Blocks begin at multiples of 64 bytes, so the place counts: 20 bytes
        // behind one.
        let mut memory = vec![0.0_f32; vocab_size + 32];
        let place = memory.as_ptr().align_offset(64) + 5;
        let logits = &mut memory[place..][..vocab_size];
        for seed in 0..seeds {
            shape.fill(seed, logits);
            for (temperature, top_p) in PARAMETERS {
                let request = Request::new(logits, temperature, top_p).expect("logits");
                for uniform in UNIFORMS {
                    let report = trace::sample_with(&request, uniform, settings).expect("memory");
                    work.draws += 1;
                    work.certified += usize::from(report.route == Route::Certified);
                    work.refined += usize::from(report.route == Route::Refined);
                    work.rounds += report.refined as usize;
                    work.candidates += report.candidates;
                    work.weighed += report.weighed;
                    work.sorted += report.sorted;
                }
            }
        }
        work
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} draws: {} certified, {} refined in {} rounds; {} candidates, {} weighed, {} sorted",
            self.draws,
            self.certified,
            self.refined,
            self.rounds,
            self.candidates,
            self.weighed,
            self.sorted,
        )
    }
}

fn lines(tier: Tier) -> String {
    let mut lines = String::new();
    for shape in SHAPES.iter().filter(|shape| shape.kind != Kind::NotFinite) {
        for (vocab_size, seeds) in SIZES {
            let work = Work::of(shape, vocab_size, seeds, tier, true);
            writeln!(lines, "{} {vocab_size}, {work}", shape.name).expect("a String grows");
        }
        let work = Work::of(shape, EXACT_SIZE, 1, tier, false);
        writeln!(
            lines,
            "{} {EXACT_SIZE} by the exact path, {work}",
            shape.name
        )
        .expect("it grows");
    }
    lines
}

/// The certified path begins above 512 tokens, where its proof holds.
#[test]
fn short_vocabularies_are_sorted() {
    let mut logits = vec![-1.0_f32; 513];
    logits[7] = 0.0;
    for (len, route) in [(512, Route::Exact), (513, Route::Certified)] {
        let request = Request::new(&logits[..len], 1.0, 0.9).expect("logits");
        let report = trace::sample(&request, 0.5).expect("memory");
        let has_twin = Settings::default().twin;
        assert!(report.route == route || !has_twin, "{len}: {report:?}");
    }
}

/// Of the last resort: the certified path does not count it.
#[test]
fn the_nucleus_is_the_references() {
    let settings = Settings {
        certify: false,
        ..Settings::default()
    };
    for name in ["gumbel", "normal", "ties", "flat", "spike"] {
        let logits = find(name).expect("a shape").logits(1, 900);
        for (temperature, top_p) in PARAMETERS {
            let request = Request::new(&logits, temperature, top_p).expect("logits");
            let report = trace::sample_with(&request, 0.5, settings).expect("memory");
            let reference = Prepared::new(&logits, temperature, top_p);
            assert_eq!(report.route, Route::Exact);
            assert_eq!(
                report.nucleus,
                reference.nucleus(),
                "{name}, {temperature}, {top_p}"
            );
        }
    }
}

#[test]
fn the_work_is_the_recorded_work() {
    // Another expf may also refuse the certified path; other logs and roots make
    // other shapes.
    if !host::is_recorded(Function::Expf) || !host::is_recorded(Function::Logf) {
        println!("work: recorded for another expf or logf, not on this host");
        return;
    }
    let now = lines(Tier::Portable);
    if env::var_os("UPDATE_WORK").is_some() {
        fs::write(RECORDED, &now).expect("tests/cases/work.txt is written");
    }
    let recorded = fs::read_to_string(RECORDED).expect("tests/cases/work.txt");
    for (now, recorded) in now.lines().zip(recorded.lines()) {
        assert_eq!(now, recorded, "other work than recorded");
    }
    assert_eq!(now.lines().count(), recorded.lines().count());
    // Tiers add in another order, and a last bit may tip a guess.
    for tier in trace::tiers() {
        let lines = lines(tier);
        let differing = lines
            .lines()
            .zip(now.lines())
            .filter(|(a, b)| a != b)
            .count();
        assert!(
            differing <= 3,
            "{tier:?}: {differing} lines differ:\n{lines}"
        );
    }
}
