//! Single calls under criterion: `argmax_first` beside the argminmax crate and
//! the bare scan, and draws from some shapes, at each tier.
//!
//! `cargo bench --bench kernels`, for looking closely at one thing. What is
//! promised is measured by `benches/paired`, over fresh vectors and beside C;
//! here one vector is read again and again, which the caches and the branch
//! predictor like.

use std::hint::black_box;

use argminmax::ArgMinMax;
use colibri_sampler::trace::{self, Settings};
use colibri_sampler::{Request, oracle};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

#[path = "paired/scan.rs"]
mod scan;
#[path = "../tests/common/shapes.rs"]
mod shapes;

/// A vocabulary that fits into a level-2 cache, and the one of Qwen3.6.
const SIZES: [usize; 2] = [32_000, 248_320];

/// Each costs the fast path something else: one candidate, hundreds, a wide
/// head, ties without end.
const SHAPES: [&str; 5] = ["spike", "gumbel", "normal", "int8", "flat"];

const SETTINGS: [(f32, f32); 3] = [(0.7, 0.9), (1.0, 0.95), (1.0, 1.0)];

/// A draw in the middle.
const UNIFORM: f64 = 0.5;

fn logits(name: &str, vocab_size: usize) -> Vec<f32> {
    // Raises its tokens to a middling height.
    const SEED: u64 = 5;
    let shape = shapes::find(name).expect("a shape of tests/common/shapes.rs");
    shape.logits(SEED, vocab_size)
}

/// Every tier of this CPU, as a process would run that has no higher one.
fn tiers() -> impl Iterator<Item = Settings> {
    trace::tiers().into_iter().map(|tier| Settings {
        tier,
        ..Settings::default()
    })
}

fn argmax(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("argmax");
    for vocab_size in SIZES {
        let logits = &logits("normal", vocab_size)[..];
        group.throughput(Throughput::Bytes(size_of_val(logits) as u64));
        let expected = oracle::REFERENCE.argmax_first(logits);
        assert_eq!(logits.argmax() as i32, expected);
        assert_eq!(scan::maximum(logits), logits[expected as usize]);
        group.bench_function(BenchmarkId::new("bare scan", vocab_size), |bencher| {
            bencher.iter(|| scan::maximum(black_box(logits)));
        });
        group.bench_function(BenchmarkId::new("argminmax", vocab_size), |bencher| {
            bencher.iter(|| black_box(logits).argmax());
        });
        for settings in tiers() {
            let greedy = || {
                let request = Request::new(black_box(logits), 0.0, 1.0).expect("logits");
                trace::sample_with(&request, f64::NAN, settings).expect("nothing to fail")
            };
            assert_eq!(greedy().token, expected);
            let id = BenchmarkId::new(settings.tier.name(), vocab_size);
            group.bench_function(id, |bencher| bencher.iter(greedy));
        }
    }
    group.finish();
}

fn serve_sample(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("serve_sample");
    let vocab_size = SIZES[1];
    group.throughput(Throughput::Elements(vocab_size as u64));
    for name in SHAPES {
        let logits = &logits(name, vocab_size)[..];
        for (temperature, top_p) in SETTINGS {
            let request =
                || Request::new(black_box(logits), temperature, top_p).expect("some logits");
            let expected = trace::by_full_sort(&request(), UNIFORM)
                .expect("memory")
                .token;
            for settings in tiers() {
                let draw = || trace::sample_with(&request(), UNIFORM, settings).expect("memory");
                assert_eq!(draw().token, expected);
                let id = BenchmarkId::new(
                    settings.tier.name(),
                    format!("{name} {temperature:?}/{top_p:?}"),
                );
                group.bench_function(id, |bencher| bencher.iter(draw));
            }
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    // A hundred measurements of half a second: a minute for all.
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_millis(1000));
    targets = argmax, serve_sample
}
criterion_main!(benches);
