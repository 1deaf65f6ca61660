//! Logits of every kind, of any vocabulary size, deterministic from a seed.
//!
//! Every test, bench and campaign takes its vectors from here: the name of a
//! shape, a seed and a size say all about a vector. Seeds replay as long as the
//! generator does, whose version Cargo.lock holds; `ln` and `sqrt` of the host
//! may move a last bit between hosts.

#![allow(dead_code, reason = "each binary takes what it needs")]

use std::f64::consts::LN_2;

/// What a shape is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Does not depend on the seed; published figures hold for these.
    Fixed,
    /// What engines produce.
    Model,
    /// Finite (or masked by -inf), and made to be hard.
    Hard,
    /// Weights can be NaN, and then the host's qsort decides.
    NotFinite,
}

/// A family of vectors.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// By which [`find`] finds it.
    pub name: &'static str,
    /// What it is good for.
    pub kind: Kind,
    fill: fn(&mut Random, &mut [f32]),
}

impl Shape {
    /// The vector of `vocab_size` logits for `seed`.
    pub fn logits(&self, seed: u64, vocab_size: usize) -> Vec<f32> {
        let mut logits = vec![0.0; vocab_size];
        self.fill(seed, &mut logits);
        logits
    }

    /// The same into a slice of the caller's, for a given alignment or to reuse
    /// memory.
    pub fn fill(&self, seed: u64, logits: &mut [f32]) {
        let mut random = Random::new(seed, self.name, logits.len());
        (self.fill)(&mut random, logits);
    }
}

const fn shape(name: &'static str, kind: Kind, fill: fn(&mut Random, &mut [f32])) -> Shape {
    Shape { name, kind, fill }
}

/// Every shape.
pub const SHAPES: &[Shape] = &[
    shape("flat", Kind::Fixed, flat),
    shape("spike", Kind::Fixed, spike),
    shape("plateau", Kind::Fixed, plateau),
    shape("tail", Kind::Fixed, tail),
    shape("gumbel", Kind::Model, gumbel),
    shape("gumbel-steps", Kind::Model, gumbel_steps),
    shape("normal", Kind::Model, normal),
    shape("normal-raised", Kind::Model, normal_raised),
    shape("bf16", Kind::Model, bf16),
    shape("int8", Kind::Model, int8),
    shape("half-masked", Kind::Model, half_masked),
    shape("ties", Kind::Hard, ties),
    shape("masks", Kind::Hard, masks),
    shape("subnormal", Kind::Hard, subnormal),
    shape("crowded", Kind::Hard, crowded),
    shape("octaves", Kind::Hard, octaves),
    shape("absorbed", Kind::Hard, absorbed),
    shape("heavy-head", Kind::Hard, heavy_head),
    shape("near-fallback", Kind::Hard, near_fallback),
    shape("cliff", Kind::Hard, cliff),
    shape("wide", Kind::Hard, wide),
    shape("late-maximum", Kind::Hard, late_maximum),
    shape("not-finite", Kind::NotFinite, not_finite),
    shape("all-masked", Kind::NotFinite, all_masked),
    shape("any-bits", Kind::NotFinite, any_bits),
];

/// The shape of that name.
pub fn find(name: &str) -> Option<&'static Shape> {
    SHAPES.iter().find(|shape| shape.name == name)
}

/// Numbers for the shapes.
struct Random {
    source: fastrand::Rng,
    seed: u64,
}

impl Random {
    fn new(seed: u64, name: &str, vocab_size: usize) -> Self {
        // FNV-1a, so that no two shapes or sizes share their numbers.
        let mixed = name
            .bytes()
            .chain(seed.to_le_bytes())
            .chain((vocab_size as u64).to_le_bytes())
            .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
            });
        Random {
            source: fastrand::Rng::with_seed(mixed),
            seed,
        }
    }

    /// On (0, 1).
    fn uniform(&mut self) -> f64 {
        // The middles of 2^32 equal parts: never an end.
        (f64::from(self.source.u32(..)) + 0.5) / 4_294_967_296.0
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    fn index(&mut self, len: usize) -> usize {
        self.source.usize(..len)
    }

    /// True once in `n`.
    fn one_in(&mut self, n: u32) -> bool {
        self.source.u32(..n) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())]
    }

    /// Standard normal, in pairs by Marsaglia's polar method.
    fn normals(&mut self) -> [f64; 2] {
        loop {
            let (x, y) = (self.between(-1.0, 1.0), self.between(-1.0, 1.0));
            let square = x * x + y * y;
            if square < 1.0 {
                let scale = (-2.0 * square.ln() / square).sqrt();
                return [x * scale, y * scale];
            }
        }
    }

    /// Raises 25 tokens, fewer in a small vocabulary, ever less.
    fn raise(&mut self, logits: &mut [f32]) {
        let height = (2 + self.seed % 11) as f64 * 2.5;
        for k in 0..25.min(logits.len()) {
            let token = self.index(logits.len());
            logits[token] += (height * (1.0 - k as f64 / 30.0)) as f32;
        }
    }
}

fn flat(_: &mut Random, logits: &mut [f32]) {
    logits.fill(0.0);
}

/// One token stands out.
fn spike(_: &mut Random, logits: &mut [f32]) {
    logits.fill(-100.0);
    let token = 1_337 % logits.len();
    logits[token] = 20.0;
}

/// Fifty tokens share the top.
fn plateau(_: &mut Random, logits: &mut [f32]) {
    logits.fill(-100.0);
    for k in 0..50 {
        let token = (k * 79 + 11) % logits.len();
        logits[token] = 20.0;
    }
}

/// 83 values, again and again.
fn tail(_: &mut Random, logits: &mut [f32]) {
    for (i, logit) in logits.iter_mut().enumerate() {
        *logit = -((i % 83) as f32) / 3.0;
    }
}

/// A long tail with 25 tokens raised: what a language model's head gives.
fn gumbel(random: &mut Random, logits: &mut [f32]) {
    for logit in logits.iter_mut() {
        *logit = (-2.0 * (-random.uniform().ln()).ln()) as f32;
    }
    random.raise(logits);
}

/// The same in steps of a half, so that ties abound.
fn gumbel_steps(random: &mut Random, logits: &mut [f32]) {
    gumbel(random, logits);
    for logit in logits {
        *logit = (*logit * 2.0).round() / 2.0;
    }
}

/// Normal, standard deviation 2.2.
fn normal(random: &mut Random, logits: &mut [f32]) {
    for pair in logits.chunks_mut(2) {
        for (logit, value) in pair.iter_mut().zip(random.normals()) {
            *logit = (2.2 * value) as f32;
        }
    }
}

fn normal_raised(random: &mut Random, logits: &mut [f32]) {
    normal(random, logits);
    random.raise(logits);
}

/// Rounded to bf16, as a head computed in it gives them.
fn bf16(random: &mut Random, logits: &mut [f32]) {
    normal(random, logits);
    for logit in logits {
        let bits = logit.to_bits();
        let to_even = 0x7fff + (bits >> 16 & 1);
        *logit = f32::from_bits((bits + to_even) & 0xffff_0000);
    }
}

/// In 255 steps, as an int8 head gives them.
fn int8(random: &mut Random, logits: &mut [f32]) {
    normal(random, logits);
    let top = logits
        .iter()
        .fold(0.0_f32, |top, logit| top.max(logit.abs()));
    let step = (top / 127.0).max(f32::MIN_POSITIVE);
    for logit in logits {
        *logit = (*logit / step).round() * step;
    }
}

/// Half of a Gumbel tail masked by -inf, one token never.
fn half_masked(random: &mut Random, logits: &mut [f32]) {
    gumbel(random, logits);
    let spared = random.index(logits.len());
    for (i, logit) in logits.iter_mut().enumerate() {
        if i != spared && random.one_in(2) {
            *logit = f32::NEG_INFINITY;
        }
    }
}

/// A handful of values for the whole vocabulary.
fn ties(random: &mut Random, logits: &mut [f32]) {
    let count = 1 + random.index(12);
    let values: Vec<f32> = (0..count)
        .map(|_| random.between(-9.0, 3.0) as f32)
        .collect();
    for logit in logits {
        *logit = random.of(&values);
    }
}

/// All but a few masked, by -inf and by the finite values that engines use.
fn masks(random: &mut Random, logits: &mut [f32]) {
    let mask = random.of(&[f32::NEG_INFINITY, f32::MIN, -1e9, -65_504.0, -1e4]);
    logits.fill(mask);
    for _ in 0..1 + random.index(8) {
        let token = random.index(logits.len());
        logits[token] = random.between(-4.0, 4.0) as f32;
    }
}

/// Weights around and below the smallest normal float, at temperature 1.
fn subnormal(random: &mut Random, logits: &mut [f32]) {
    for logit in logits.iter_mut() {
        *logit = -random.between(85.0, 105.0) as f32;
    }
    let token = random.index(logits.len());
    logits[token] = 0.0;
}

/// Logits so close that different ones round to one weight.
fn crowded(random: &mut Random, logits: &mut [f32]) {
    let width = random.of(&[1e-9, 2e-7, 1e-6, 1e-3]);
    for logit in logits {
        *logit = -random.between(0.0, width) as f32;
    }
}

/// Weights at powers of two, a few ulps to either side: the edges of the
/// exponent buckets.
fn octaves(random: &mut Random, logits: &mut [f32]) {
    let depth = 1 + random.index(130);
    for logit in logits {
        let edge = -LN_2 * random.index(depth) as f64;
        *logit = (edge + random.between(-3e-7, 3e-7) * edge.abs().max(1.0)) as f32;
    }
}

/// Weights too small to move the double sum, or nearly: sums depend on their
/// order.
fn absorbed(random: &mut Random, logits: &mut [f32]) {
    let middle = random.between(18.0, 40.0);
    for logit in logits.iter_mut() {
        *logit = -(middle + random.between(-3.0, 3.0)) as f32;
    }
    for _ in 0..1 + random.index(3) {
        let token = random.index(logits.len());
        logits[token] = -random.between(0.0, 1.0) as f32;
    }
}

/// One heavy token over a flat floor.
fn heavy_head(random: &mut Random, logits: &mut [f32]) {
    logits.fill(0.0);
    let token = random.index(logits.len());
    logits[token] = random.between(1.0, 40.0) as f32;
}

/// A head, a shelf in one exponent bucket, an empty bucket as the margin, and a
/// deeper shelf whose mass is what a `top_p` of 0.99999994 leaves out at
/// temperature 1, as near as floats can say it: now and then the buckets reach
/// the cutoff and the sorted walk, rounding otherwise, does not. Needs some 300
/// tokens; with fewer it is a shape like others.
fn near_fallback(random: &mut Random, logits: &mut [f32]) {
    let weight = |logit: f32| f64::from(logit).exp();
    let shelf = (4 + random.index(28)).min(logits.len() - 1);
    let (head, deep) = logits.split_at_mut(1 + shelf);
    head[0] = 0.0;
    for logit in &mut head[1..] {
        *logit = -(LN_2 * random.between(30.01, 30.99)) as f32;
    }
    let Some((last, deep)) = deep.split_last_mut() else {
        return;
    };
    let kept: f64 = head.iter().copied().map(weight).sum();
    let left_out = 2.0_f64.powi(-24);
    let wanted = kept * left_out / (1.0 - left_out);
    let each = wanted / (deep.len() + 1) as f64;
    for logit in deep.iter_mut() {
        *logit = (each * random.between(0.85, 1.15)).ln() as f32;
    }
    let rest = wanted - deep.iter().copied().map(weight).sum::<f64>();
    *last = rest.max(each / 64.0).ln() as f32;
}

/// A broad top, nothing in between, and a broad floor.
fn cliff(random: &mut Random, logits: &mut [f32]) {
    let drop = random.between(2.0, 30.0);
    let every = 1 + random.source.u32(..40);
    for logit in logits {
        let top = random.one_in(every);
        *logit = (random.between(0.0, 0.5) - if top { 0.0 } else { drop }) as f32;
    }
}

/// Finite logits over the whole range of the type.
fn wide(random: &mut Random, logits: &mut [f32]) {
    for logit in logits {
        let magnitude = random.between(-40.0, 38.5);
        let sign = random.of(&[1.0, -1.0]);
        *logit = (sign * 10.0_f64.powf(magnitude)) as f32;
    }
}

/// Ever larger, so that the maximum is the last one found, with ties at the top.
fn late_maximum(random: &mut Random, logits: &mut [f32]) {
    let len = logits.len();
    let top = random.between(1.0, 30.0);
    let ties = 1 + random.index(3.min(len));
    for (i, logit) in logits.iter_mut().enumerate() {
        let share = (i + ties).min(len) as f64 / len as f64;
        *logit = (top * share) as f32;
    }
}

/// Some NaNs and infinities of both signs among ordinary values.
fn not_finite(random: &mut Random, logits: &mut [f32]) {
    normal(random, logits);
    let specials: &[f32] = random.of(&[
        &[f32::NAN][..],
        &[-f32::NAN],
        &[f32::INFINITY],
        &[f32::NAN, f32::INFINITY, f32::NEG_INFINITY],
        &[f32::INFINITY, f32::NEG_INFINITY],
    ]);
    for _ in 0..1 + random.index(1 + logits.len() / 7) {
        let token = random.index(logits.len());
        logits[token] = random.of(specials);
    }
    // At index 0 a NaN is the maximum.
    if random.one_in(4) {
        logits[0] = random.of(specials);
    }
}

fn all_masked(_: &mut Random, logits: &mut [f32]) {
    logits.fill(f32::NEG_INFINITY);
}

/// Every bit pattern there is.
fn any_bits(random: &mut Random, logits: &mut [f32]) {
    for logit in logits {
        *logit = f32::from_bits(random.source.u32(..));
    }
}
