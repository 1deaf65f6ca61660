//! Every kernel of every tier of this CPU against its definition in plain code,
//! and the two exponentials against the host's expf and a double's exp2.
//!
//! The tests named `exhaustive_*` ask every float that the fast path relies on:
//! `make check-exhaustive`.

use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use crate::oracle;

use super::exp::screen::{self, Slope};
use super::exp::{self, Rounding, twin};
use super::lanes::Lanes;
use super::rows::{Blocks, Buffer, Row, floats, floats_mut};
use super::{
    Engine, Kernels, PORTABLE, Scale, Screen, Tier, mode, portable, probe, scan, tier_named,
};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};

/// Half the last place of a float, relative.
const UNIT: f64 = f32::EPSILON as f64 / 2.0;

/// Arguments as they are: exp((x - 0) / 1).
const PLAIN: Scale = Scale {
    max_logit: 0.0,
    temperature: 1.0,
};

fn tiers() -> Vec<(Tier, &'static Kernels)> {
    let available = Tier::ALL.into_iter().filter(|tier| tier.is_available());
    available.map(|tier| (tier, tier.table())).collect()
}

/// How the host's expf rounds, if the tier computes it.
fn rounding(kernels: &Kernels) -> Option<Rounding> {
    probe::rounding(exp::host_expf, kernels)
}

/// What wants to see the lanes of each tier themselves.
trait Visitor {
    fn visit<L: Lanes>(&mut self, tier: Tier, lanes: L);
}

fn visit_tiers(visitor: &mut impl Visitor) {
    visitor.visit(Tier::Portable, portable::Portable);
    #[cfg(target_arch = "x86_64")]
    {
        if Tier::Avx2.is_available() {
            // SAFETY: the CPU has the instructions, asked just above.
            visitor.visit(Tier::Avx2, unsafe { avx2::Avx2::new() });
        }
        if Tier::Avx512.is_available() {
            // SAFETY: the CPU has the instructions, asked just above.
            visitor.visit(Tier::Avx512, unsafe { avx512::Avx512::new() });
        }
    }
}

fn rows_of(values: &[f32], fill: f32) -> Vec<Row> {
    let mut rows = vec![Row::splat(fill); values.len().div_ceil(Row::LEN)];
    floats_mut(&mut rows)[..values.len()].copy_from_slice(values);
    rows
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// A buffer with `held` floats and room for all of `rows`.
fn buffer(held: usize, rows: &[Row]) -> Buffer {
    let mut buffer = Buffer::default();
    buffer
        .reserve(held + rows.len() * Row::LEN + Row::LEN)
        .unwrap();
    for _ in 0..held {
        buffer.spare()[0] = 7.5;
        buffer.grow(1);
    }
    buffer
}

/// Logits at and below a maximum, of a kind that `kind` says: what models give,
/// ties, masks, runs of one value, zeros of both signs, the ends of the range.
fn logits(random: &mut fastrand::Rng, kind: usize, len: usize) -> Vec<f32> {
    let mut held = 0.0;
    (0..len)
        .map(|index| match kind % 7 {
            0 => -20.0 * random.f32(),
            1 => -random.f32() * random.f32() * 120.0,
            2 => -f32::from(random.u8(..9)) / 4.0,
            3 if random.bool() => f32::NEG_INFINITY,
            3 => -5.0 * random.f32(),
            4 => {
                if index % Row::LEN == 0 || random.u8(..) == 0 {
                    held = [0.0, -0.0, -1.5, f32::NEG_INFINITY][random.usize(..4)];
                }
                held
            }
            5 => [0.0, -0.0, -1e-45, -f32::MIN_POSITIVE, f32::MIN, -1e30][random.usize(..6)],
            _ => f32::from_bits(random.u32(0x8000_0000..=0xff7f_ffff)),
        })
        .collect()
}

const KINDS: usize = 7;

#[test]
fn column_maxima_are_the_columns_maxima() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut checked = 0;
    for (tier, kernels) in tiers() {
        for len in (0..40).chain([63, 64, 65, 127, 200]) {
            for rows_per_block in (1..10).chain([16, 31, 32, 33, 64, usize::MAX]) {
                let kind = random.usize(..KINDS);
                let mut values = logits(&mut random, kind, len * Row::LEN);
                let planted = len > 0 && random.bool();
                if planted {
                    let nan = [f32::NAN, -f32::NAN, f32::from_bits(0x7f80_0001)];
                    let place = random.usize(..values.len());
                    values[place] = nan[random.usize(..3)];
                }
                let rows = rows_of(&values, 0.0);
                let mut maxima = vec![Row::splat(f32::NAN); len.div_ceil(rows_per_block)];
                let nan = kernels.column_maxima(&rows, rows_per_block, &mut maxima);
                assert_eq!(nan, planted, "{tier:?}: {len} rows by {rows_per_block}");
                for (block, maximum) in rows.chunks(rows_per_block).zip(&maxima) {
                    for lane in 0..Row::LEN {
                        let column = block.iter().map(|row| row.0[lane]);
                        let wanted =
                            column.fold(
                                f32::NEG_INFINITY,
                                |max, value| {
                                    if value > max { value } else { max }
                                },
                            );
                        // Zeros of either sign are one maximum.
                        assert!(
                            maximum.0[lane] == wanted,
                            "{tier:?}: {len} rows by {rows_per_block}, lane {lane}: {:#x} for {:#x}",
                            maximum.0[lane].to_bits(),
                            wanted.to_bits(),
                        );
                    }
                }
                checked += 1;
            }
        }
    }
    println!("kernels: column_maxima: {checked} runs of {:?}", names());
}

/// A NaN is seen in each place, as the first or the second of a pair of rows and
/// as the odd one out.
#[test]
fn a_nan_is_seen_in_every_place() {
    for (tier, kernels) in tiers() {
        for len in 1..=5 {
            let places = || 0..len * Row::LEN;
            // Two as well: one must not hide another.
            for (place, second) in places().flat_map(|a| places().map(move |b| (a, b))) {
                let mut rows = vec![Row::splat(f32::INFINITY); len];
                floats_mut(&mut rows)[place] = f32::from_bits(0xff80_0001);
                floats_mut(&mut rows)[second] = f32::NAN;
                let mut maxima = [Row::splat(0.0)];
                assert!(
                    kernels.column_maxima(&rows, len, &mut maxima),
                    "{tier:?}: places {place} and {second} of {len} rows"
                );
            }
        }
    }
}

/// The maximum in every place, and a NaN in every other one.
#[test]
fn scan_finds_the_maximum_and_a_nan() {
    for (tier, kernels) in tiers() {
        for len in (1..40).chain([511, 512, 513]) {
            for place in 0..len {
                let mut values = vec![-2.5_f32; len];
                values[place] = -1.5;
                let found = scan(&values, kernels);
                let what = || format!("{tier:?}, {place} of {len}");
                assert_eq!((found.max_logit, found.nan), (-1.5, false), "{}", what());
                let nan = (place + 1) % len;
                values[nan] = f32::NAN;
                let found = scan(&values, kernels);
                assert!(found.nan, "{}", what());
                match nan {
                    0 => assert!(found.max_logit.is_nan(), "{}", what()),
                    _ => assert_eq!(found.max_logit, -1.5, "{}", what()),
                }
            }
        }
    }
}

#[test]
fn nth_between_counts_in_order() {
    let mut random = fastrand::Rng::with_seed(2);
    let mut checked = 0;
    for (tier, kernels) in tiers() {
        for len in (0..6).chain([17, 40]) {
            for kind in 0..KINDS {
                let values = logits(&mut random, kind, len * Row::LEN);
                let rows = rows_of(&values, 0.0);
                let mut end = || match random.usize(..4) {
                    0 => f32::INFINITY,
                    1 => f32::NEG_INFINITY,
                    _ if values.is_empty() => 0.0,
                    _ => values[random.usize(..values.len())],
                };
                let (low, high) = (end(), end());
                let places: Vec<usize> = (0..values.len())
                    .filter(|&index| low <= values[index] && values[index] <= high)
                    .collect();
                for nth in 0..places.len() + 2 {
                    let got = kernels.nth_between(&rows, low, high, nth);
                    assert_eq!(got, places.get(nth).copied(), "{tier:?}: {low} to {high}");
                    checked += 1;
                }
            }
        }
    }
    println!("kernels: nth_between: {checked} answers of {:?}", names());
}

#[test]
fn gather_keeps_what_is_at_least_the_threshold() {
    let mut random = fastrand::Rng::with_seed(3);
    for (tier, kernels) in tiers() {
        for round in 0..400 {
            let len = random.usize(..30);
            let values = logits(&mut random, round, len * Row::LEN);
            let rows = rows_of(&values, 0.0);
            let threshold = match values.is_empty() {
                true => 0.0,
                false => values[random.usize(..values.len())],
            };
            let held = random.usize(..40);
            let mut out = buffer(held, &rows);
            kernels.gather(&rows, threshold, &mut out);
            let wanted: Vec<f32> = std::iter::repeat_n(7.5, held)
                .chain(values.iter().copied().filter(|&value| value >= threshold))
                .collect();
            assert_eq!(bits(out.as_slice()), bits(&wanted), "{tier:?}: {threshold}");
        }
    }
}

struct EveryMask {
    compressed: usize,
}

impl Visitor for EveryMask {
    fn visit<L: Lanes>(&mut self, tier: Tier, lanes: L) {
        let row = Row(std::array::from_fn(|lane| lane as f32 - 3.0));
        for mask in 0..=u16::MAX {
            let wanted: Vec<f32> = (0..Row::LEN)
                .filter(|lane| mask >> lane & 1 == 1)
                .map(|lane| row.0[lane])
                .collect();
            let mut out = [0.0; Row::LEN];
            lanes.compress(lanes.load(&row), mask, &mut out);
            assert_eq!(out[..wanted.len()], wanted, "{tier:?}: {mask:#018b}");
            // The mask itself, from a comparison.
            let chosen = Row(std::array::from_fn(|lane| (mask >> lane & 1) as f32));
            let compared = lanes.at_least(lanes.load(&chosen), lanes.splat(0.5));
            assert_eq!(lanes.bits(compared), mask, "{tier:?}");
            let (mut kept, mut dropped) = (row, row);
            lanes.store(lanes.keep(compared, lanes.load(&row)), &mut kept);
            lanes.store(lanes.drop(compared, lanes.load(&row)), &mut dropped);
            for lane in 0..Row::LEN {
                let is_set = mask >> lane & 1 == 1;
                let (kept_wanted, dropped_wanted) = match is_set {
                    true => (row.0[lane], 0.0),
                    false => (0.0, row.0[lane]),
                };
                assert_eq!(
                    (kept.0[lane], dropped.0[lane]),
                    (kept_wanted, dropped_wanted)
                );
            }
            self.compressed += 1;
        }
        for odd in [f32::NAN, -f32::NAN] {
            let row = Row(std::array::from_fn(
                |lane| if lane % 2 == 0 { odd } else { 1.0 },
            ));
            let (values, one) = (lanes.load(&row), lanes.splat(1.0));
            assert_eq!(lanes.bits(lanes.at_least(values, one)), 0xaaaa, "{tier:?}");
            assert_eq!(lanes.bits(lanes.at_least(one, values)), 0xaaaa, "{tier:?}");
            assert_eq!(lanes.bits(lanes.unordered(values, one)), 0x5555, "{tier:?}");
            assert_eq!(lanes.bits(lanes.unordered(one, values)), 0x5555, "{tier:?}");
        }
    }
}

#[test]
fn compress_moves_the_lanes_of_every_mask() {
    let mut masks = EveryMask { compressed: 0 };
    visit_tiers(&mut masks);
    assert_eq!(masks.compressed, 65_536 * tiers().len());
    println!(
        "kernels: compress: {} masks of {:?}",
        masks.compressed,
        names()
    );
}

fn names() -> Vec<&'static str> {
    tiers().into_iter().map(|(tier, _)| tier.name()).collect()
}

/// The mass of the logits that `keep` wants, by the host's expf.
fn mass(values: &[f32], scale: Scale, keep: impl Fn(f32) -> bool) -> f64 {
    let kept = values.iter().filter(|&&logit| keep(logit));
    kept.map(|&logit| f64::from(host_weight(logit, scale)))
        .sum()
}

fn host_weight(logit: f32, scale: Scale) -> f32 {
    exp::host_expf((logit - scale.max_logit) / scale.temperature)
}

/// Any temperature that the certified path takes.
fn temperature(random: &mut fastrand::Rng) -> f32 {
    match random.u8(..4) {
        0 => [1e-18, 1e18, 1.0, 0.7][random.usize(..4)],
        1 => 10.0_f32.powf(36.0 * random.f32() - 18.0).clamp(1e-18, 1e18),
        _ => 0.05 + 3.0 * random.f32(),
    }
}

/// The true mass lies within the documented bound of a screened sum.
#[track_caller]
fn check_screened(what: &str, sum: f64, truth: f64, tokens: usize) {
    let error = screen::ERROR + 3.0 * UNIT + (tokens + 64) as f64 * f64::EPSILON / 2.0;
    let far = tokens as f64 * screen::FAR;
    let (low, high) = (sum * (1.0 - error) - far, sum * (1.0 + error * 1.01) + far);
    assert!(
        low <= truth && truth <= high,
        "{what}: {truth} is not within {low} and {high}"
    );
}

#[test]
fn screened_sums_bound_the_true_ones() {
    let mut random = fastrand::Rng::with_seed(4);
    let mut checked = 0;
    for (tier, kernels) in tiers() {
        for round in 0..1_500 {
            let len = random.usize(..40);
            let scale = Scale {
                max_logit: [0.0, 30.0 * random.f32() - 15.0, 1e6 * random.f32()][random.usize(..3)],
                temperature: temperature(&mut random),
            };
            let values: Vec<f32> = logits(&mut random, round, len * Row::LEN)
                .into_iter()
                .map(|logit| match round / KINDS % 2 {
                    // In units of the temperature, or as they are.
                    0 => (scale.max_logit + logit * scale.temperature).min(scale.max_logit),
                    _ => (scale.max_logit + logit).min(scale.max_logit),
                })
                .collect();
            let rows = rows_of(&values, 0.0);
            let mut end = |other: f32| match random.usize(..4) {
                0 => other,
                _ if values.is_empty() => 0.0,
                _ => values[random.usize(..values.len())],
            };
            let threshold = end(f32::INFINITY);
            let deep = end(f32::INFINITY);
            let screen = Screen {
                max_logit: scale.max_logit,
                slope: Slope::of(scale.temperature),
                threshold,
                deep,
            };
            let held = random.usize(..40);
            let mut out = buffer(held, &rows);
            let screened = kernels.screen(&rows, screen, &mut out);
            let gathered: Vec<f32> = std::iter::repeat_n(7.5, held)
                .chain(values.iter().copied().filter(|&value| value >= threshold))
                .collect();
            assert_eq!(
                bits(out.as_slice()),
                bits(&gathered),
                "{tier:?}: {screen:?}"
            );
            let what = format!("{tier:?}: kind {}, {screen:?}", round % KINDS);
            let all = mass(&values, scale, |logit| logit < threshold);
            check_screened(&what, screened.all, all, values.len());
            if deep < threshold {
                let above = mass(&values, scale, |logit| deep <= logit && logit < threshold);
                check_screened(&what, screened.above, above, values.len());
            }
            checked += 1;
        }
    }
    println!("kernels: screen: {checked} sums of {:?}", names());
}

/// The screening exponential alone, for pairs of a distance and a temperature,
/// against the host's weight: what `screen::ERROR` and `screen::FAR` claim of
/// one token.
struct Tokens {
    asked: usize,
    /// The largest errors met: relative down to 32 octaves, and absolute below.
    relative: f64,
    absolute: f64,
}

impl Visitor for Tokens {
    fn visit<L: Lanes>(&mut self, tier: Tier, lanes: L) {
        let mut random = fastrand::Rng::with_seed(5);
        for round in 0..120_000 {
            let temperature = temperature(&mut random);
            let slope = Slope::of(temperature);
            // The last rounds stay where the error is largest.
            let (low, high) = [(0.0, 160.0), (0.0, 1.0), (31.0, 33.0), (100.0, 130.0)][round % 4];
            let distances: [f32; Row::LEN] = std::array::from_fn(|_| {
                let octaves: f32 = low + (high - low) * random.f32();
                -octaves * std::f32::consts::LN_2 * temperature
            });
            let clamped = lanes.max(lanes.load(&Row(distances)), lanes.splat(slope.lowest));
            let mut screened = Row::splat(0.0);
            let weights = lanes.screen_exp(clamped, lanes.splat(slope.octaves));
            lanes.store(weights, &mut screened);
            for (distance, screened) in distances.into_iter().zip(screened.0) {
                let weight = f64::from(exp::host_expf(distance / temperature));
                let error = (f64::from(screened) - weight).abs();
                let octaves = f64::from(distance) * f64::from(slope.octaves);
                let is_within = if octaves >= -32.0 {
                    self.relative = self.relative.max(error / weight);
                    error <= screen::ERROR * weight
                } else {
                    self.absolute = self.absolute.max(error);
                    error <= screen::FAR
                };
                assert!(
                    is_within,
                    "{tier:?}: distance {:#010x}, temperature {:#010x}: {screened:e} for {weight:e}",
                    distance.to_bits(),
                    temperature.to_bits(),
                );
                self.asked += 1;
            }
        }
    }
}

#[test]
fn a_screened_weight_is_within_its_bound() {
    let mut tokens = Tokens {
        asked: 0,
        relative: 0.0,
        absolute: 0.0,
    };
    visit_tiers(&mut tokens);
    println!(
        "kernels: screened weights: {} of {:?}, error {:.2e} relative ({:.1e} is claimed), {:.2e} far out ({:.0e})",
        tokens.asked,
        names(),
        tokens.relative,
        screen::ERROR,
        tokens.absolute,
        screen::FAR,
    );
}

#[test]
fn weigh_gives_the_hosts_weights() {
    let mut random = fastrand::Rng::with_seed(6);
    let mut weighed = 0;
    for (tier, kernels) in tiers() {
        let Some(rounding) = rounding(kernels) else {
            println!(
                "kernels: weigh: {} has no twin: not on this host",
                tier.name()
            );
            continue;
        };
        for round in 0..2_000 {
            let len = random.usize(..40);
            let scale = Scale {
                max_logit: [0.0, -0.0, 9.0, f32::MAX][random.usize(..4)],
                temperature: temperature(&mut random),
            };
            let values: Vec<f32> = logits(&mut random, round, len * Row::LEN)
                .into_iter()
                .map(|logit| (scale.max_logit + logit).min(scale.max_logit))
                .collect();
            let mut rows = rows_of(&values, 0.0);
            let sum = kernels.weigh(&mut rows, scale, rounding);
            let mut wanted = 0.0;
            for (&logit, &weight) in values.iter().zip(floats(&rows)) {
                let host = host_weight(logit, scale);
                assert_eq!(
                    weight.to_bits(),
                    host.to_bits(),
                    "{tier:?}: logit {:#010x}, {scale:?}",
                    logit.to_bits()
                );
                wanted += f64::from(host);
            }
            assert!(
                (sum - wanted).abs() <= (values.len() + 64) as f64 * f64::EPSILON * wanted,
                "{tier:?}: sum {sum} for {wanted}"
            );
            let threshold = match values.is_empty() {
                true => 0.0,
                false => values[random.usize(..values.len())],
            };
            let below = kernels.weigh_below(&rows_of(&values, 0.0), scale, rounding, threshold);
            let wanted = mass(&values, scale, |logit| logit < threshold);
            assert!(
                (below - wanted).abs() <= (values.len() + 64) as f64 * f64::EPSILON * wanted,
                "{tier:?}: below {threshold}: {below} for {wanted}"
            );
            weighed += values.len();
        }
    }
    println!("kernels: weigh: {weighed} weights of {:?}", names());
}

#[test]
fn extract_sums_counts_and_appends() {
    let mut random = fastrand::Rng::with_seed(7);
    for (tier, kernels) in tiers() {
        for round in 0..2_000 {
            let len = random.usize(..500);
            let kind = random.usize(..4);
            let values: Vec<f32> = (0..len)
                .map(|_| match kind {
                    0 => random.f32(),
                    1 => f32::from(random.u8(..5)) / 4.0,
                    2 => exp::host_expf(-110.0 * random.f32()),
                    _ => [0.0, 1.0, f32::MIN_POSITIVE, 1e-45][random.usize(..4)],
                })
                .collect();
            // Padded as `Buffer::padded` does for this kernel.
            let rows = rows_of(&values, -1.0);
            let mut end = || match values.is_empty() {
                true => 0.5,
                false => values[random.usize(..len)],
            };
            let (a, b) = (end(), end());
            let (low, high) = match round % 4 {
                0 => (0.0, a),
                1 => (a, a),
                _ => (a.min(b), a.max(b)),
            };
            let within: Vec<f32> = values
                .iter()
                .copied()
                .filter(|&value| low <= value && value <= high)
                .collect();
            let sum = |values: &mut dyn Iterator<Item = f32>| values.map(f64::from).sum::<f64>();
            let above = sum(&mut values.iter().copied().filter(|&value| value > high));
            let within_sum = sum(&mut within.iter().copied());
            let held = random.usize(..40);
            let mut out = buffer(held, &rows);
            let wants_out = random.bool();
            let found = kernels.extract(&rows, low, high, wants_out.then_some(&mut out));
            let what = format!("{tier:?}: {low} to {high} of {len}");
            assert_eq!(found.count, within.len(), "{what}");
            for (got, wanted) in [(found.above, above), (found.within, within_sum)] {
                let slack = (len + 64) as f64 * f64::EPSILON * wanted;
                assert!((got - wanted).abs() <= slack, "{what}: {got} for {wanted}");
            }
            let mut wanted = vec![7.5; held];
            if wants_out {
                wanted.extend(within);
            }
            assert_eq!(bits(out.as_slice()), bits(&wanted), "{what}");
        }
    }
    println!("kernels: extract: 2000 runs of each of {:?}", names());
}

/// Blocks cover the logits, in order, once, whatever the alignment.
#[test]
fn blocks_cover_every_length_at_every_alignment() {
    const LONGEST: usize = 600;
    let memory: Vec<f32> = (0..LONGEST + 32).map(|index| index as f32).collect();
    let line = memory.as_ptr().align_offset(64);
    let mut covered = 0;
    for offset in 0..Row::LEN {
        for len in 0..=LONGEST {
            let logits = &memory[line + offset..][..len];
            for rows in [1, 2, 3, 4, 7, usize::MAX] {
                let blocks = Blocks::new(logits, rows);
                let mut next = 0;
                for block in 0..blocks.len() {
                    let block_rows = blocks.block(block);
                    assert!(block_rows.len() <= rows);
                    assert_eq!(blocks.first_id(block), next, "{offset}, {len} by {rows}");
                    let values = floats(block_rows);
                    let is_ragged = block == 0 || block == blocks.len() - 1;
                    let count = values.iter().filter(|value| value.is_finite()).count();
                    // Padding stands behind, and only at the ends.
                    assert!(is_ragged || count == values.len());
                    assert!(
                        values[count..]
                            .iter()
                            .all(|&value| value == f32::NEG_INFINITY)
                    );
                    assert_eq!(values[..count], logits[next..next + count]);
                    next += count;
                }
                assert_eq!(next, len, "{offset}, {len} by {rows}");
                covered += 1;
            }
            let blocks = Blocks::new(logits, 4);
            assert_eq!(blocks.body().as_ptr().addr() % 64, 0);
        }
    }
    assert_eq!(covered, 16 * 601 * 6);
    println!("kernels: blocks: {covered} splits");
}

thread_local! {
    /// The arguments that a fake host was asked, and the one that it answers
    /// with a wrong bit.
    static ASKED: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    static WRONG_AT: Cell<Option<u32>> = const { Cell::new(None) };
    static WRONG_BIT: Cell<u32> = const { Cell::new(0) };
}

fn recording(x: f32) -> f32 {
    ASKED.with_borrow_mut(|asked| asked.push(x.to_bits()));
    exp::host_expf(x)
}

fn wrong_somewhere(x: f32) -> f32 {
    let value = exp::host_expf(x);
    if WRONG_AT.get() == Some(x.to_bits()) {
        f32::from_bits(value.to_bits() ^ 1 << WRONG_BIT.get())
    } else {
        value
    }
}

/// Correctly rounded, as a later C library might be; but for ties, which no
/// double comes near enough to.
fn rounds_correctly(x: f32) -> f32 {
    f64::from(x).exp() as f32
}

/// One wrong bit at any one of the probed points refuses the twin.
#[test]
fn the_probe_refuses_a_wrong_bit() {
    for (tier, kernels) in tiers() {
        let Some(rounding) = rounding(kernels) else {
            println!(
                "kernels: probe: {} has no twin: not on this host",
                tier.name()
            );
            continue;
        };
        ASKED.with_borrow_mut(Vec::clear);
        assert_eq!(probe::rounding(recording, kernels), Some(rounding));
        let mut points = ASKED.with_borrow(Vec::clone);
        points.sort_unstable();
        points.dedup();
        assert!(points.len() >= 4_000, "{} points", points.len());
        for (index, &point) in points.iter().enumerate() {
            WRONG_AT.set(Some(point));
            WRONG_BIT.set(if index % 3 == 0 { 0 } else { index as u32 % 32 });
            let answer = probe::rounding(wrong_somewhere, kernels);
            assert_eq!(answer, None, "{tier:?}: {point:#010x}");
        }
        WRONG_AT.set(None);
        assert_eq!(probe::rounding(wrong_somewhere, kernels), Some(rounding));
        println!(
            "kernels: probe: {} refuses a wrong bit at each of {} points",
            tier.name(),
            points.len()
        );
    }
}

/// The scalar twin alone being right is not enough.
#[test]
fn the_probe_asks_the_kernels_too() {
    fn wrong_in_one_lane(rows: &mut [Row], scale: Scale, rounding: Rounding) -> f64 {
        let sum = PORTABLE.weigh(rows, scale, rounding);
        let last = &mut rows[0].0[Row::LEN - 1];
        *last = last.next_up();
        sum
    }
    let wrong = Kernels {
        weigh: wrong_in_one_lane,
        ..PORTABLE
    };
    assert_eq!(probe::rounding(exp::host_expf, &wrong), None);
}

#[test]
fn the_probe_tells_hosts_apart() {
    fn separate(x: f32) -> f32 {
        twin::exp(x, Rounding::Separate)
    }
    fn fused(x: f32) -> f32 {
        twin::exp(x, Rounding::Fused)
    }
    for (tier, kernels) in tiers() {
        assert_eq!(probe::rounding(rounds_correctly, kernels), None, "{tier:?}");
        let answer = probe::rounding(separate, kernels);
        assert_eq!(answer, Some(Rounding::Separate), "{tier:?}");
        // The portable tier leaves the fused one to the host itself.
        if tier != Tier::Portable {
            assert_eq!(
                probe::rounding(fused, kernels),
                Some(Rounding::Fused),
                "{tier:?}"
            );
        }
    }
}

thread_local! {
    static IN_A_MODE: Cell<fn()> = const { Cell::new(|| ()) };
}

/// Runs `body` in the floating-point mode; false where the CPU has it not.
fn in_mode(mode: oracle::reference_mode, body: fn()) -> bool {
    extern "C" fn run(_: *const f32, _: c_int, _: f32, _: f32) -> c_int {
        IN_A_MODE.get()();
        0
    }
    IN_A_MODE.set(body);
    let mut ignored = 0;
    // SAFETY: run reads no logits, and the token is written while the call runs.
    let is_there = unsafe {
        let nothing = std::ptr::null();
        oracle::reference_in_mode(mode, Some(run), nothing, 0, 0.0, 0.0, &mut ignored)
    };
    is_there == 1
}

#[test]
fn arithmetic_shows_the_mode_that_the_register_says() {
    thread_local! {
        static SEEN: Cell<[bool; 2]> = const { Cell::new([false; 2]) };
    }
    let mut modes = 0;
    for index in 0..16 {
        let mode = oracle::reference_mode {
            rounding: index / 4,
            flush_results: index % 2,
            flush_operands: index / 2 % 2,
        };
        let there = in_mode(mode, || {
            SEEN.set([mode::is_default(), mode::arithmetic_is_default()]);
        });
        if there {
            assert_eq!(SEEN.get(), [index == 0; 2], "{mode:?}");
            modes += 1;
        }
    }
    assert!(modes == 16 || cfg!(not(target_arch = "x86_64")));
}

/// A program whose first draw is made in another mode must not be answered from
/// it ever after.
#[test]
fn the_probe_waits_for_the_default_mode() {
    static KNOWN: AtomicU8 = AtomicU8::new(0);
    let downward = oracle::reference_mode {
        rounding: 1,
        flush_results: 0,
        flush_operands: 0,
    };
    let rounds = in_mode(downward, || {
        // Else it need not wait: there, one rounding passes for the other.
        let separate = |x| twin::exp(x, Rounding::Separate);
        for (tier, kernels) in tiers() {
            let answer = probe::rounding(separate, kernels);
            assert_ne!(answer, Some(Rounding::Separate), "{tier:?}");
        }
        let engine = Engine::known_at(Tier::Avx512, &KNOWN);
        assert_eq!(
            (engine.tier, engine.rounding),
            (tiers().pop().unwrap().0, None)
        );
        assert_eq!(KNOWN.load(Ordering::Relaxed), 0, "the question is open");
    });
    assert!(rounds || cfg!(not(target_arch = "x86_64")));
    let engine = Engine::known_at(Tier::Avx512, &KNOWN);
    assert_eq!(engine.rounding, Engine::at(Tier::Avx512).rounding);
    assert_ne!(KNOWN.load(Ordering::Relaxed), 0);
}

#[test]
fn a_tier_goes_by_its_name() {
    let names = Tier::ALL.map(Tier::name);
    assert_eq!(names, ["portable", "avx2", "avx512"]);
    for tier in Tier::ALL {
        assert_eq!(tier_named(tier.name().as_bytes()), tier);
    }
    for name in ["", "AVX2", "avx", "avx2 ", "best"] {
        assert_eq!(tier_named(name.as_bytes()), Tier::Avx512, "{name:?}");
    }
}

#[test]
fn an_engine_fits_in_a_byte() {
    for tier in Tier::ALL {
        for rounding in Engine::ROUNDINGS {
            let engine = Engine::decode(Engine::new(tier, rounding).encode()).unwrap();
            assert_eq!((engine.tier, engine.rounding), (tier, rounding));
        }
    }
    assert!(Engine::decode(0).is_none(), "0 is for unknown");
}

/// Arguments where a twin would show its first fault: all exponents, all entries
/// of the table, both sides of where k steps, the known discriminator, and any.
fn directed() -> Vec<f32> {
    let mut points = vec![0.0, -0.0, f32::NEG_INFINITY, f32::MIN, -104.0, -103.972_08];
    let mut around = |centre: f32, reach: i32| {
        for step in -reach..=reach {
            let x = f32::from_bits(centre.to_bits().wrapping_add_signed(step));
            if x <= 0.0 {
                points.push(x);
            }
        }
    };
    around(f32::from_bits(0xc27c_65d9), 1_000);
    for exponent in 0..=255 {
        for mantissa in (0..1 << 23).step_by(40_013) {
            around(f32::from_bits(1 << 31 | exponent << 23 | mantissa), 1);
        }
    }
    // k runs from 0 to -104 * 32 / ln 2, and steps at the halves.
    for halves in 0..=9_700 {
        let x = -0.5 * f64::from(halves) * std::f64::consts::LN_2 / 32.0;
        around(x as f32, 40);
    }
    // Around each subnormal weight's middle, and the smallest normal one.
    around(-87.336_55, 3_000);
    let mut random = fastrand::Rng::with_seed(8);
    for _ in 0..1_500_000 {
        points.push(-105.0 * random.f32());
        points.push(f32::from_bits(random.u32(0xb000_0000..=0xc2d0_0000)));
    }
    points.truncate(points.len() / Row::LEN * Row::LEN);
    points
}

#[test]
fn twins_equal_the_hosts_expf_at_directed_points() {
    let points = directed();
    let hosts: Vec<u32> = points
        .iter()
        .map(|&x| exp::host_expf(x).to_bits())
        .collect();
    let fused_twin = rounding(&PORTABLE);
    for (tier, kernels) in tiers() {
        for rounding in [Rounding::Fused, Rounding::Separate] {
            let mut rows = rows_of(&points, 0.0);
            kernels.weigh(&mut rows, PLAIN, rounding);
            let is_hosts = fused_twin == Some(rounding);
            for ((&x, &host), vector) in points.iter().zip(&hosts).zip(floats(&rows)) {
                let scalar = twin::exp(x, rounding).to_bits();
                // The portable tier leaves the fused one to the host.
                if tier != Tier::Portable || rounding == Rounding::Separate {
                    assert_eq!(vector.to_bits(), scalar, "{tier:?}, {rounding:?}: {x:e}");
                }
                if is_hosts {
                    let x = x.to_bits();
                    assert_eq!(vector.to_bits(), host, "{tier:?}, {rounding:?}: {x:#010x}");
                    assert_eq!(scalar, host, "{rounding:?}: {x:#010x}");
                }
            }
        }
    }
    match fused_twin {
        Some(rounding) => println!(
            "kernels: twins: {} arguments, {rounding:?}, equal to the host's expf on {:?}",
            points.len(),
            names()
        ),
        None => println!("kernels: twins: the host's expf has none: not on this host"),
    }
}

/// Tiers that fuse multiply and add give the same bits for the same products.
struct Screened {
    distances: Vec<Row>,
    octaves: Vec<f32>,
    first: Option<(Tier, Vec<u32>)>,
    largest: f64,
}

impl Visitor for Screened {
    fn visit<L: Lanes>(&mut self, tier: Tier, lanes: L) {
        let mut weights = vec![Row::splat(0.0); self.distances.len()];
        for ((distance, octaves), weight) in
            self.distances.iter().zip(&self.octaves).zip(&mut weights)
        {
            lanes.store(
                lanes.screen_exp(lanes.load(distance), lanes.splat(*octaves)),
                weight,
            );
            for (distance, weight) in distance.0.iter().zip(weight.0) {
                // The product of two floats is exact in double.
                let y = f64::from(*distance) * f64::from(*octaves);
                let rounded = match tier {
                    Tier::Portable => UNIT * y.abs() * std::f64::consts::LN_2,
                    _ => 0.0,
                };
                let error = (f64::from(weight) / y.exp2() - 1.0).abs();
                self.largest = self.largest.max(error - rounded);
                assert!(
                    error <= screen::POLYNOMIAL_ERROR + F_ROUNDED + rounded * 1.001,
                    "{tier:?}: {:#010x} * {:#010x}: {error:e}",
                    distance.to_bits(),
                    octaves.to_bits(),
                );
            }
        }
        if tier == Tier::Portable {
            return;
        }
        let weights = bits(floats(&weights));
        match &self.first {
            None => self.first = Some((tier, weights)),
            Some((other, wanted)) => assert!(*wanted == weights, "{tier:?} and {other:?} differ"),
        }
    }
}

/// Where y is not rounded to float, f = y - k is: at most half a last place
/// below 1/2, 2^-26, in the exponent.
const F_ROUNDED: f64 = std::f64::consts::LN_2 / 67_108_864.0 * 1.001;

#[test]
fn screened_exponentials_of_products_are_within_the_polynomials_error() {
    let mut random = fastrand::Rng::with_seed(9);
    let octaves: Vec<f32> = (0..150_000)
        .map(|index| match index % 3 {
            0 => 1.0 + f32::EPSILON * random.f32() * 64.0,
            1 => 0.5 + random.f32(),
            _ => 10.0_f32.powf(random.f32() * 36.0 - 18.0),
        })
        .collect();
    let distances = octaves
        .iter()
        .map(|octaves| {
            Row(std::array::from_fn(|_| {
                // Now and then next to a whole number or to the middle of two.
                let y = match random.u8(..4) {
                    0 => -f32::from(random.u8(..250)) / 2.0 * (1.0 - f32::EPSILON * random.f32()),
                    _ => -124.9 * random.f32(),
                };
                y.max(-124.99) / octaves
            }))
        })
        .collect();
    let mut screened = Screened {
        distances,
        octaves,
        first: None,
        largest: 0.0,
    };
    visit_tiers(&mut screened);
    println!(
        "kernels: screen_exp: {} products of each of {:?}, error {:.3e}",
        150_000 * Row::LEN,
        names(),
        screened.largest
    );
}

/// The floats with bits in `all`, in parts of whole rows on all cores; what
/// `check` returns for each part.
fn on_all_cores<T: Send>(
    all: RangeInclusive<u32>,
    check: impl Fn(RangeInclusive<u32>) -> T + Sync,
) -> Vec<T> {
    let cores = thread::available_parallelism().map_or(1, |n| n.get()) as u64;
    let (first, last) = (u64::from(*all.start()), u64::from(*all.end()));
    let part = (last - first + 1).div_ceil(cores).next_multiple_of(16);
    let check = &check;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..cores)
            .map(|core| (first + core * part, last.min(first + (core + 1) * part - 1)))
            .filter(|(from, to)| from <= to)
            .map(|(from, to)| scope.spawn(move || check(from as u32..=to as u32)))
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("a worker does not panic"))
            .collect()
    })
}

const MINUS_ZERO: u32 = 0x8000_0000;
const MINUS_INFINITY: u32 = 0xff80_0000;
/// The floats from -0 down to -inf.
const NEGATIVE: u64 = 2_139_095_041;

/// The twins of every tier, and the scalar one, against the host's expf on every
/// float that the path gives them.
#[test]
#[ignore = "every float: make check-exhaustive"]
fn exhaustive_twins_equal_the_hosts_expf() {
    const ROWS: usize = 64;
    let Some(rounding) = rounding(&PORTABLE) else {
        println!("exhaustive: the host's expf has no twin, so that none is used: not on this host");
        return;
    };
    let tiers = tiers();
    let asked: u64 = on_all_cores(MINUS_ZERO..=MINUS_INFINITY, |part| {
        let mut asked = 0;
        let mut hosts = [0_u32; ROWS * Row::LEN];
        let mut first = u64::from(*part.start());
        let last = u64::from(*part.end());
        while first <= last {
            let len = (last - first + 1).min((ROWS * Row::LEN) as u64) as usize;
            let mut arguments = [Row::splat(f32::NEG_INFINITY); ROWS];
            let each = floats_mut(&mut arguments)[..len].iter_mut().zip(&mut hosts);
            for (bits, (x, host)) in (first as u32..).zip(each) {
                *x = f32::from_bits(bits);
                *host = exp::host_expf(*x).to_bits();
                let scalar = twin::exp(*x, rounding).to_bits();
                assert_eq!(scalar, *host, "scalar twin: {bits:#010x}");
            }
            for (tier, kernels) in &tiers {
                let mut rows = arguments;
                kernels.weigh(&mut rows, PLAIN, rounding);
                let vector = &floats(&rows)[..len];
                if vector
                    .iter()
                    .zip(&hosts)
                    .any(|(x, host)| x.to_bits() != *host)
                {
                    let lane = (0..len).find(|&lane| vector[lane].to_bits() != hosts[lane]);
                    panic!("{tier:?}: {:#010x}", first + lane.unwrap() as u64);
                }
            }
            asked += len as u64;
            first += len as u64;
        }
        asked
    })
    .into_iter()
    .sum();
    // The maximum's own argument.
    for (tier, kernels) in &tiers {
        let mut rows = [Row::splat(0.0)];
        kernels.weigh(&mut rows, PLAIN, rounding);
        assert_eq!(rows[0], Row::splat(exp::host_expf(0.0)), "{tier:?}");
    }
    let positive = u64::from(f32::INFINITY.to_bits());
    let nan = 2 * ((1 << 23) - 1);
    println!(
        "exhaustive: twins ({rounding:?}; scalar, {}) equal the host's expf on {} floats: -0 to -inf, and +0",
        names().join(", "),
        asked + 1
    );
    println!(
        "exhaustive: the other {} of 2^32 are never given to them: {positive} above 0 (no logit is \
         above the maximum, the temperature is positive) and {nan} NaN (a NaN logit, an infinite \
         maximum or temperature leave the path)",
        positive + nan
    );
    assert_eq!(asked, NEGATIVE);
    assert_eq!(asked + 1 + positive + nan, 1 << 32);
}

/// What one visit of the screening exponential's floats finds.
struct EveryExponent {
    part: RangeInclusive<u32>,
    exact: Vec<f64>,
    largest: f64,
    asked: u64,
}

impl Visitor for EveryExponent {
    fn visit<L: Lanes>(&mut self, tier: Tier, lanes: L) {
        let one = lanes.splat(1.0);
        let first = *self.part.start();
        for (row, exact) in self.exact.chunks(Row::LEN).enumerate() {
            let y = Row(std::array::from_fn(|lane| {
                f32::from_bits(first + ((row * Row::LEN + lane) as u32).min(self.part_len() - 1))
            }));
            let mut weights = Row::splat(0.0);
            lanes.store(lanes.screen_exp(lanes.load(&y), one), &mut weights);
            for ((y, weight), exact) in y.0.iter().zip(weights.0).zip(exact) {
                let error = (f64::from(weight) / exact - 1.0).abs();
                if error > self.largest {
                    self.largest = error;
                    assert!(
                        error <= screen::POLYNOMIAL_ERROR,
                        "{tier:?}: {:#010x}: {weight:e} for {exact:e}",
                        y.to_bits()
                    );
                }
                self.asked += 1;
            }
        }
    }
}

impl EveryExponent {
    fn part_len(&self) -> u32 {
        self.part.end() - self.part.start() + 1
    }
}

/// The polynomial on every float of [LOWEST, 1/2]: below 0 with every k, and
/// above it for every f that a product can leave.
#[test]
#[ignore = "every float: make check-exhaustive"]
fn exhaustive_screening_is_within_the_polynomials_error() {
    const CHUNK: u32 = 1 << 14;
    let lowest = screen::LOWEST.to_bits();
    let (mut asked, mut largest) = (0, 0.0_f64);
    for all in [MINUS_ZERO..=lowest, 0..=0.5_f32.to_bits()] {
        let parts = on_all_cores(all, |part| {
            let (mut asked, mut largest) = (0, 0.0_f64);
            let mut first = *part.start();
            loop {
                let last = (*part.end()).min(first.saturating_add(CHUNK - 1));
                let exact = (first..=last).map(|bits| f64::from(f32::from_bits(bits)).exp2());
                let mut every = EveryExponent {
                    part: first..=last,
                    exact: exact.collect(),
                    largest,
                    asked: 0,
                };
                visit_tiers(&mut every);
                (asked, largest) = (asked + every.asked, every.largest);
                if last == *part.end() {
                    return (asked, largest);
                }
                first = last + 1;
            }
        });
        for (part_asked, part_largest) in parts {
            asked += part_asked;
            largest = largest.max(part_largest);
        }
    }
    let wanted = u64::from(lowest - MINUS_ZERO) + 1 + u64::from(0.5_f32.to_bits()) + 1;
    println!(
        "exhaustive: screening exponential of {}: {wanted} floats each, error {largest:.4e} ({:.0e} is claimed)",
        names().join(", "),
        screen::POLYNOMIAL_ERROR
    );
    assert_eq!(wanted, 2_180_644_866);
    assert_eq!(asked, wanted * tiers().len() as u64);
}

/// The host's expf never falls while its argument rises, and is within what the
/// screening allows it.
#[test]
#[ignore = "every float: make check-exhaustive"]
fn exhaustive_the_hosts_expf_is_monotone_and_close() {
    struct Found {
        asked: u64,
        measured: u64,
        relative: f64,
        ulps: f64,
    }
    let parts = on_all_cores(MINUS_ZERO..=MINUS_INFINITY, |part| {
        let mut found = Found {
            asked: 0,
            measured: 0,
            relative: 0.0,
            ulps: 0.0,
        };
        // The float above this part's first; above -0 there is none.
        let mut above = match *part.start() {
            MINUS_ZERO => 1.0,
            first => exp::host_expf(f32::from_bits(first - 1)),
        };
        for bits in part {
            let x = f32::from_bits(bits);
            let value = exp::host_expf(x);
            assert!(value <= above, "{bits:#010x}: {value:e} below {above:e}");
            above = value;
            found.asked += 1;
            // Below, the value is 0.
            if x < -104.0 {
                assert_eq!(value.to_bits(), 0, "{bits:#010x}");
                continue;
            }
            let exact = f64::from(x).exp();
            let error = (f64::from(value) - exact).abs();
            let last_place = f64::from(f32::from_bits((exact as f32).to_bits() & 0x7f80_0000))
                .max(f64::from(f32::MIN_POSITIVE))
                * f64::from(f32::EPSILON);
            found.ulps = found.ulps.max(error / last_place);
            if value >= f32::MIN_POSITIVE {
                found.relative = found.relative.max(error / exact);
            }
            found.measured += 1;
        }
        found
    });
    let asked: u64 = parts.iter().map(|found| found.asked).sum();
    let measured: u64 = parts.iter().map(|found| found.measured).sum();
    let ulps = parts.iter().map(|found| found.ulps).fold(0.0, f64::max);
    let relative = parts.iter().map(|found| found.relative).fold(0.0, f64::max);
    println!(
        "exhaustive: the host's expf is monotone over {asked} floats, and within {ulps:.5} ulp and \
         {:.5} * 2^-24 relative over {measured}",
        relative / UNIT
    );
    assert_eq!(asked, NEGATIVE);
    assert_eq!(measured, u64::from((-104.0_f32).to_bits() - MINUS_ZERO) + 1);
    assert!(ulps <= 0.502 && relative <= 1.01 * UNIT);
}
