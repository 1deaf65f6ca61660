//! Inputs made to sit on the boundaries of the contract, where the certified
//! path has to look closer or give up: cutoffs on a kept sum or beside it, draws
//! on a cumulative sum, ties across the cut and across the path's own
//! thresholds. Every tier, against the C reference and against the definition
//! in plain Rust, which takes any uniform.

mod common;

use std::fmt;

use colibri_sampler::Request;
use colibri_sampler::oracle::{LIBRARY, Prepared, REFERENCE};
use colibri_sampler::trace::{self, Route, Settings};
use common::cases::{Entry, Subject};
use common::host;
use common::rand::{EDGES, RAND_MAX, scripted};
use common::shapes;
use common::ways::{self, Way};

struct Input {
    what: String,
    logits: Vec<f32>,
    temperature: f32,
    top_p: f32,
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, V {}, temperature {:#010x}, top_p {:#010x}",
            self.what,
            self.logits.len(),
            self.temperature.to_bits(),
            self.top_p.to_bits(),
        )
    }
}

fn of<T: Copy, const N: usize>(random: &mut fastrand::Rng, choices: [T; N]) -> T {
    choices[random.usize(..N)]
}

fn weight(logit: f32, max_logit: f32, temperature: f32) -> f32 {
    host::expf((logit - max_logit) / temperature)
}

/// Steps 2 to 7 of the contract, for finite weights.
struct Definition {
    order: Vec<usize>,
    weights: Vec<f32>,
    cumulative: Vec<f64>,
    cutoff: f64,
    kept: f64,
    nucleus: usize,
}

impl Definition {
    fn of(input: &Input) -> Self {
        let logits = &input.logits;
        let max_logit = logits.iter().copied().fold(logits[0], f32::max);
        let weights: Vec<f32> = logits
            .iter()
            .map(|&logit| weight(logit, max_logit, input.temperature))
            .collect();
        let total: f64 = weights.iter().fold(0.0, |sum, &w| sum + f64::from(w));
        let cutoff = match 0.0 < input.top_p && input.top_p < 1.0 {
            true => f64::from(input.top_p) * total,
            false => total,
        };
        let mut order: Vec<usize> = (0..weights.len()).collect();
        // Stable, so that ties keep their ids' order.
        order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
        let mut mass = 0.0;
        let cumulative: Vec<f64> = order
            .iter()
            .map(|&id| {
                mass += f64::from(weights[id]);
                mass
            })
            .collect();
        let nucleus = cumulative.partition_point(|&mass| mass < cutoff) + 1;
        let nucleus = nucleus.min(order.len());
        Definition {
            kept: cumulative[nucleus - 1],
            weights: order.iter().map(|&id| weights[id]).collect(),
            order,
            cumulative,
            cutoff,
            nucleus,
        }
    }

    /// Steps 8 and 9.
    fn pick(&self, uniform: f64) -> i32 {
        let target = uniform * self.kept;
        let kept = &self.cumulative[..self.nucleus];
        let position = kept.partition_point(|&mass| mass < target);
        self.order[position % self.nucleus] as i32
    }

    /// Positions of the nucleus worth a look: its ends, the ends of crowds of
    /// equal weights, and any.
    fn positions(&self, count: usize, random: &mut fastrand::Rng) -> Vec<usize> {
        let last = self.nucleus - 1;
        let mut positions = vec![0, 1.min(last), last, last.saturating_sub(1)];
        while positions.len() < count {
            let any = random.usize(..self.nucleus);
            let weights = &self.weights[..self.nucleus];
            let first = weights.partition_point(|&weight| weight > weights[any]);
            let behind = weights.partition_point(|&weight| weight >= weights[any]);
            positions.extend([any, first, behind - 1, first.saturating_sub(1)]);
        }
        positions.truncate(count);
        positions
    }

    /// Uniforms whose targets are the cumulative sum of `position` and what lies
    /// next to it.
    fn uniforms(&self, position: usize) -> impl Iterator<Item = f64> {
        let nearest = self.cumulative[position] / self.kept;
        let below = nearest.next_down();
        let above = nearest.next_up();
        [below.next_down(), below, nearest, above, above.next_up()]
            .into_iter()
            .filter(|uniform| (0.0..=1.0).contains(uniform))
    }
}

/// What the inputs have reached.
#[derive(Debug, Default)]
struct Tally {
    inputs: usize,
    /// Of them: the cutoff is a kept sum, exactly.
    on_the_cut: usize,
    /// Of them: within 1e-12, relative.
    beside_the_cut: usize,
    /// Draws by `rand()`, and by uniforms of our own.
    draws: usize,
    uniforms: usize,
    /// Of them: the target is a cumulative sum, exactly.
    on_a_sum: usize,
    certified: usize,
    /// Of them: found in a crowd of equal weights, without sorting any.
    by_crowd: usize,
    refined: usize,
    last_resort: usize,
}

impl Tally {
    fn print(&self, what: &str) {
        println!(
            "boundary: {} draws compared with the C reference, 0 different",
            self.draws
        );
        println!("boundary: {what}: {self:?}");
    }
}

/// Whether this host has a certified path at all.
fn is_certified() -> bool {
    let has_twin = Settings::default().twin;
    if !has_twin {
        println!("boundary: the host's expf has no twin: no certified path, not on this host");
    }
    has_twin
}

struct Checker {
    ways: Vec<Way>,
    random: fastrand::Rng,
    tally: Tally,
    positions: usize,
}

impl Checker {
    fn new(seed: u64, positions: usize) -> Self {
        Checker {
            ways: ways::all(),
            random: fastrand::Rng::with_seed(seed),
            tally: Tally::default(),
            positions,
        }
    }

    fn check(&mut self, input: &Input) {
        let definition = Definition::of(input);
        let prepared = Prepared::new(&input.logits, input.temperature, input.top_p);
        assert_eq!(definition.nucleus, prepared.nucleus(), "{input}");
        self.tally.inputs += 1;
        let (cutoff, kept) = (definition.cutoff, definition.kept);
        let short = match definition.nucleus {
            1 => 0.0,
            nucleus => definition.cumulative[nucleus - 2],
        };
        let beside = (cutoff - short).min(kept - cutoff) <= 1e-12 * cutoff;
        self.tally.on_the_cut += usize::from(cutoff == kept);
        self.tally.beside_the_cut += usize::from(beside);

        let positions = definition.positions(self.positions, &mut self.random);
        self.by_rand(input, &definition, &prepared, &positions);
        let mut uniforms = vec![0.0, -0.0, 1.0, f64::MIN_POSITIVE, 1.0_f64.next_down()];
        uniforms.extend((0..4).map(|_| self.random.f64()));
        for &position in &positions {
            uniforms.extend(definition.uniforms(position));
        }
        self.by_uniforms(input, &definition, &uniforms);
    }

    /// Draws by `rand()`: its ends and what lies outside, and the values on both
    /// sides of the borders of positions.
    fn by_rand(
        &mut self,
        input: &Input,
        definition: &Definition,
        prepared: &Prepared,
        positions: &[usize],
    ) {
        let borders = positions.iter().step_by(3);
        let raws = borders
            .filter_map(|&position| prepared.first_draw_behind(position))
            .flat_map(|raw| [raw, raw - 1]);
        for (index, raw) in EDGES.into_iter().chain(raws).enumerate() {
            let token = prepared.pick(raw);
            let uniform = f64::from(raw) / f64::from(RAND_MAX);
            assert_eq!(token, definition.pick(uniform), "{input}, rand() {raw}");
            for entry in Entry::BOTH {
                let draw = |who: &dyn Subject| {
                    scripted(raw, || {
                        who.draw(entry, &input.logits, input.temperature, input.top_p)
                    })
                };
                let got = draw(&LIBRARY);
                assert_eq!(got, (token, 1), "library: {input}, {entry:?}, rand() {raw}");
                if index == 0 {
                    let got = draw(&REFERENCE);
                    assert_eq!(got, (token, 1), "reference: {input}, {entry:?}");
                }
                self.tally.draws += 1;
            }
        }
    }

    fn by_uniforms(&mut self, input: &Input, definition: &Definition, uniforms: &[f64]) {
        let request = Request::new(&input.logits, input.temperature, input.top_p).unwrap();
        for (index, &uniform) in uniforms.iter().enumerate() {
            let token = definition.pick(uniform);
            let target = uniform * definition.kept;
            let is_on_a_sum = definition
                .cumulative
                .binary_search_by(|mass| mass.total_cmp(&target));
            self.tally.on_a_sum += usize::from(is_on_a_sum.is_ok());
            self.tally.uniforms += 1;
            for way in &self.ways {
                if way.is_exact() && index % 12 > 0 {
                    continue;
                }
                let report = trace::sample_with(&request, uniform, way.settings).unwrap();
                assert_eq!(
                    report.token,
                    token,
                    "{}: {input}, uniform {:#018x}: {report:?}",
                    way.name(),
                    uniform.to_bits(),
                );
                if way.is_exact() {
                    continue;
                }
                match report.route {
                    Route::Certified => self.tally.certified += 1,
                    Route::Refined => self.tally.refined += 1,
                    _ => self.tally.last_resort += 1,
                }
                let is_settled = matches!(report.route, Route::Certified | Route::Refined);
                let by_crowd = is_settled && report.candidates > FEW && report.sorted == 0;
                self.tally.by_crowd += usize::from(by_crowd);
            }
        }
    }
}

/// Up to so many candidates are sorted and summed one by one.
const FEW: usize = 512;

/// A logit below 0 that weighs exactly `wanted` beside a maximum of 0 at
/// temperature 1, if there is one.
fn logit_of(wanted: f32) -> Option<f32> {
    let near = f64::from(wanted).ln() as f32;
    (-200..=200)
        .map(|step| f32::from_bits(near.to_bits().wrapping_add_signed(step)))
        .find(|&logit| logit <= 0.0 && host::expf(logit) == wanted)
}

/// The largest weight that is not above `mass`, as a logit.
fn logit_below(mass: f64, temperature: f32) -> f32 {
    let mut logit = (mass.ln() * f64::from(temperature)) as f32;
    while f64::from(weight(logit, 0.0, temperature)) > mass {
        logit = logit.next_down();
    }
    logit
}

/// Towers of powers of two: all sums are exact, so that cutoffs and targets fall
/// on sums to the bit.
#[test]
fn towers_of_powers_of_two() {
    let levels: Vec<f32> = (0..40).filter_map(|k| logit_of(2.0_f32.powi(-k))).collect();
    assert!(levels.len() >= 6, "{} powers of two", levels.len());
    let mut checker = Checker::new(1, 14);
    let random = &mut fastrand::Rng::with_seed(101);
    for seed in 0..260 {
        let mut logits = Vec::new();
        let depth = 2 + random.usize(..levels.len() - 1);
        for &logit in &levels[..depth] {
            let most = of(random, [3, 40, 900]);
            logits.extend(std::iter::repeat_n(logit, 1 + random.usize(..most)));
        }
        while logits.len() <= FEW {
            logits.push([f32::NEG_INFINITY, -200.0, levels[depth - 1]][random.usize(..3)]);
        }
        random.shuffle(&mut logits);
        let top_p = of(random, [0.5, 0.25, 0.75, 0.875, 0.125, 1.0]);
        checker.check(&Input {
            what: format!("towers {seed}"),
            logits,
            temperature: 1.0,
            top_p,
        });
    }
    let tally = checker.tally;
    tally.print("towers of powers of two");
    assert!(tally.on_the_cut >= 40 && tally.on_a_sum > 2_000);
    if is_certified() {
        assert!(tally.certified > 0 && tally.by_crowd > 0);
    }
}

/// A head, and a tail so light and so tuned that the cutoff misses a kept sum of
/// the head by as little as wanted.
fn tuned(random: &mut fastrand::Rng, what: String, head: usize) -> Option<Input> {
    let temperature = of(random, [1.0, 0.7]);
    let spread = of(random, [0.5, 4.0, 12.0]);
    let quantum = of(random, [0.0, 1.0 / 16.0, 1.0]);
    let mut logits = vec![0.0];
    while logits.len() < head {
        let mut logit = -spread * random.f32();
        if quantum > 0.0 {
            logit = (logit / quantum).round() * quantum;
        }
        logits.push(logit);
    }
    let mut weights: Vec<f32> = logits
        .iter()
        .map(|&logit| weight(logit, 0.0, temperature))
        .collect();
    weights.sort_by(|a, b| b.total_cmp(a));
    let lightest = f64::from(weights[head - 1]);
    let mut mass = 0.0;
    let cumulative: Vec<f64> = weights
        .iter()
        .map(|&weight| {
            mass += f64::from(weight);
            mass
        })
        .collect();
    // A place where a float below the share of the sum is near it.
    let share = 10.0_f64.powf(-5.0 - 4.0 * random.f64());
    let (top_p, kept) = (0..4_000)
        .map(|_| {
            let kept = cumulative[random.usize(head / 8..head - 1)];
            let top_p = (kept / mass * (1.0 - share)) as f32;
            (top_p, kept)
        })
        .filter(|&(top_p, kept)| kept / f64::from(top_p) > mass * (1.0 + share / 4.0))
        .min_by(|a, b| (a.1 / f64::from(a.0)).total_cmp(&(b.1 / f64::from(b.0))))?;
    let miss = of(
        random,
        [0.0, 1e-16, 3e-16, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10],
    );
    let miss = if random.bool() { miss } else { -miss };
    let wanted = kept / f64::from(top_p) * (1.0 + miss);

    // Most of the tail anywhere, the rest behind all others, where it moves the
    // contract's sum last.
    let tail = 1 + {
        let most = of(random, [4, 100, 3_000]);
        random.usize(..most)
    };
    let tail = tail.max((FEW + 8).saturating_sub(head));
    let rest = wanted - mass;
    for _ in 0..tail {
        let each = rest * 0.99 / tail as f64 * (0.5 + 0.9 * random.f64());
        logits.push(logit_below(each.min(lightest * 0.9), temperature));
    }
    random.shuffle(&mut logits);
    let sum = |sum: f64, logit: f32| sum + f64::from(weight(logit, 0.0, temperature));
    let mut total = logits.iter().fold(0.0, |total, &logit| sum(total, logit));
    for _ in 0..12 {
        let missing = wanted - total;
        if missing <= total * f64::EPSILON / 4.0 {
            break;
        }
        logits.push(logit_below(missing.min(lightest * 0.9), temperature));
        total = sum(total, logits[logits.len() - 1]);
    }
    Some(Input {
        what,
        logits,
        temperature,
        top_p,
    })
}

#[test]
fn cutoffs_beside_a_kept_sum() {
    let mut checker = Checker::new(2, 10);
    let random = &mut fastrand::Rng::with_seed(102);
    for seed in 0..420 {
        let head = [8, 60, 400, 513, 900, 2_500][seed % 6];
        let what = format!("tuned {seed}, head {head}");
        if let Some(input) = tuned(random, what, head) {
            checker.check(&input);
        }
    }
    let tally = checker.tally;
    tally.print("cutoffs beside a kept sum");
    assert!(tally.inputs > 300 && tally.beside_the_cut > 150);
    assert!(tally.on_the_cut > 20);
    if is_certified() {
        assert!(tally.certified > 0 && tally.refined > 0 && tally.last_resort > 0);
    }
}

/// Different logits that round to one weight, around zero: the maximum is such
/// that a threshold of the path falls there, between equal weights.
#[test]
fn ties_across_a_threshold() {
    let mut checker = Checker::new(3, 24);
    let random = &mut fastrand::Rng::with_seed(103);
    for seed in 0..300 {
        let temperature = of(random, [1.0, 0.7, 1e-3, 300.0]);
        let level = 1 + seed % 30;
        // As the path places its thresholds.
        let max_logit = level as f32 * temperature / (2.0 * std::f32::consts::LOG2_E);
        let mut logits = vec![max_logit];
        let above = of(random, [0, 5, 300, 800]);
        logits.extend((0..above).map(|_| max_logit * random.f32()));
        // So little that max_logit swallows it.
        let crowd = of(random, [3, 40, 700, 2_000]);
        let width = max_logit * of(random, [1e-12, 1e-9, 1e-20]);
        logits.extend((0..crowd).map(|_| width * (random.f32() - 0.5)));
        let below = of(random, [0, 50, 1_500]);
        let depth = temperature * of(random, [1.0, 6.0, 25.0]);
        logits.extend((0..below).map(|_| -depth * random.f32()));
        while logits.len() <= FEW {
            logits.push(-depth * (1.0 + random.f32()));
        }
        random.shuffle(&mut logits);
        let top_p = of(random, [0.1, 0.5, 0.9, 0.99, 0.999_999_94, 1.0]);
        checker.check(&Input {
            what: format!("ties {seed}, level {level}"),
            logits,
            temperature,
            top_p,
        });
    }
    let tally = checker.tally;
    tally.print("ties across a threshold");
    if is_certified() {
        assert!(tally.certified > 0 && tally.refined > 0 && tally.by_crowd > 0);
    }
}

/// A crowd across a threshold that the path believes to lie below the pick: it
/// estimates counts from the maxima of columns, and here a whole crowd hides in
/// a few of them. Picked among its members that are above the threshold, the
/// token would be another one.
#[test]
fn crowds_that_the_estimate_does_not_see() {
    let mut checker = Checker::new(8, 20);
    let random = &mut fastrand::Rng::with_seed(108);
    for seed in 0..28 {
        let level = 4 + seed % 7;
        let temperature = of(random, [1.0, 0.7, 2.0]);
        let per_level = temperature / (2.0 * std::f32::consts::LOG2_E);
        let max_logit = level as f32 * temperature / (2.0 * std::f32::consts::LOG2_E);
        // The upper half of the mass, spread, and the crowd, side by side.
        let above = 150 + random.usize(..300);
        let crowd = above * 2 + random.usize(..2_000);
        let vocab_size = 8_000 + random.usize(..12_000);
        // Then a floor that weighs a twentieth or so.
        let floor = (vocab_size as f32 / above as f32 * 8.0).log2() * -2.0 * per_level;
        let mut logits: Vec<f32> = (0..vocab_size)
            .map(|_| floor - per_level * random.f32())
            .collect();
        for _ in 0..above {
            logits[random.usize(..vocab_size)] = per_level * (1.1 + 0.8 * random.f32());
        }
        let first = random.usize(..vocab_size - crowd);
        let width = max_logit * of(random, [1e-9, 1e-12]);
        for logit in &mut logits[first..first + crowd] {
            *logit = width * (random.f32() - 0.5);
        }
        logits[of(random, [0, vocab_size - 1])] = max_logit;
        checker.check(&Input {
            what: format!("unseen {seed}, level {level}"),
            logits,
            temperature,
            top_p: of(random, [1.0, 1.0, 0.9]),
        });
    }
    let tally = checker.tally;
    tally.print("crowds that the estimate does not see");
    if is_certified() {
        assert!(tally.refined > 0 && tally.by_crowd > 0);
    }
}

/// Every hard shape that leaves weights finite, with draws on the sums.
#[test]
fn draws_on_the_sums_of_hard_shapes() {
    let mut checker = Checker::new(4, 10);
    let random = &mut fastrand::Rng::with_seed(104);
    let names = [
        "ties",
        "masks",
        "subnormal",
        "crowded",
        "octaves",
        "absorbed",
        "heavy-head",
        "near-fallback",
        "cliff",
        "wide",
        "late-maximum",
        "normal",
        "bf16",
        "int8",
        "tail",
        "half-masked",
        "gumbel-steps",
        "flat",
        "plateau",
    ];
    for (index, name) in names.iter().cycle().take(names.len() * 16).enumerate() {
        let seed = index as u64;
        let vocab_size = of(random, [513, 514, 600, 1_031, 2_600, 6_000]);
        checker.check(&Input {
            what: format!("{name} {seed}"),
            logits: shapes::find(name).unwrap().logits(seed, vocab_size),
            temperature: of(random, [1.0, 0.7, 0.2, 2.0, 1e-18, 1e18]),
            top_p: of(random, [0.9, 0.95, 0.3, 0.999, 0.999_999_94, 1.0, 1e-6]),
        });
    }
    let tally = checker.tally;
    tally.print("draws on the sums of hard shapes");
    if is_certified() {
        assert!(tally.certified > 0 && tally.refined > 0);
    }
}

/// What the arithmetic of the path could trip over: distances that overflow,
/// temperatures at the ends of its range and beyond, zeros of both signs,
/// vectors of one value or of neighbours.
#[test]
fn ends_of_every_range() {
    let mut checker = Checker::new(5, 8);
    let random = &mut fastrand::Rng::with_seed(105);
    let temperatures = [
        1e-18_f32,
        1e-18_f32.next_down(),
        1e18,
        1e18_f32.next_up(),
        1e-30,
        1e30,
        f32::MIN_POSITIVE,
        f32::MAX,
        1.0,
    ];
    let next = |value: f32, steps: i32| f32::from_bits(value.to_bits().wrapping_add_signed(steps));
    for seed in 0..180 {
        let temperature = temperatures[seed % temperatures.len()];
        let kind = seed / temperatures.len() % 8;
        let len = FEW + 1 + random.bool() as usize * random.usize(..700);
        let one = of(random, [0.0, 1.0, -3.0, 3e38, -3e38, 1e-40]);
        let logits: Vec<f32> = (0..len)
            .map(|_| match kind {
                0 => of(random, [f32::MAX, f32::MIN, 0.0, 1e38]),
                1 => one,
                2 => next(one, random.i32(0..3)),
                3 => of(random, [0.0, -0.0]),
                4 => of(random, [-0.0, 0.0, -1e-45, -1e-38]),
                5 => f32::from_bits(random.u32(0..0x7f80_0000) | random.u32(..) << 31),
                6 => of(random, [f32::NEG_INFINITY, f32::MIN, one]),
                _ => one - temperature * 20.0 * random.f32(),
            })
            .map(|logit| {
                if logit == f32::INFINITY {
                    f32::MAX
                } else {
                    logit
                }
            })
            .collect();
        if logits.iter().all(|&logit| logit == f32::NEG_INFINITY) {
            continue;
        }
        checker.check(&Input {
            what: format!("ends {seed}, kind {kind}"),
            logits,
            temperature,
            top_p: of(random, [0.9, 0.5, 0.999_999_94, 1.0, f32::MIN_POSITIVE]),
        });
    }
    let tally = checker.tally;
    tally.print("ends of every range");
    if is_certified() {
        assert!(tally.certified > 0);
    }
}

/// Broad vectors whose sampled tokens say nothing about the others, so that
/// pivots guessed from a sample make no headway and the halving of bits has to.
#[test]
fn samples_that_mislead() {
    /// Where the path's sample of `len` weights looks.
    fn stride(len: usize) -> usize {
        len / 256 + 1
    }
    let mut checker = Checker::new(6, 16);
    let random = &mut fastrand::Rng::with_seed(106);
    for seed in 0..24 {
        let width = of(random, [0.1, 0.01, 1.0]);
        let crowd = 520 + random.usize(..900);
        let mut logits: Vec<f32> = (0..crowd).map(|_| -2.0 - width * random.f32()).collect();
        // Each round puts one value, above all others so far, where a sample
        // would look.
        for round in 0..8 {
            let value = -1.9 + 0.1 * round as f32;
            let mut len = logits.len();
            while len < logits.len() + len.div_ceil(stride(len)) {
                len += 1;
            }
            let mut others = logits.into_iter();
            logits = (0..len)
                .map(|index| match index % stride(len) {
                    0 => value,
                    _ => others.next().unwrap_or(value),
                })
                .collect();
            logits.extend(others);
        }
        logits.insert(1, 0.0);
        checker.check(&Input {
            what: format!("misleading {seed}"),
            logits,
            temperature: 1.0,
            top_p: of(random, [0.9, 0.97, 1.0]),
        });
    }
    let tally = checker.tally;
    tally.print("samples that mislead");
    if is_certified() {
        assert!(tally.certified > 0);
    }
}

/// More tokens than a float counts exactly: ids, counts and ranks are integers,
/// and sums of ones are doubles.
#[test]
#[ignore = "16.8 million tokens: make check-exhaustive"]
fn exhaustive_more_tokens_than_a_float_counts() {
    let mut checker = Checker::new(7, 4);
    checker.ways.retain(|way| !way.is_exact());
    let len = (1 << 24) + 37;
    for (what, one) in [("flat", 0.0), ("two values", -0.5)] {
        let logits = (0..len)
            .map(|id| if id % 3 == 1 { one } else { 0.0 })
            .collect();
        checker.check(&Input {
            what: what.to_owned(),
            logits,
            temperature: 1.0,
            top_p: 0.999_999_94,
        });
    }
    checker.tally.print("more tokens than a float counts");
}
