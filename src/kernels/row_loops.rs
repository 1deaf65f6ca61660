//! The loops over rows, written once. Each tier compiles them for itself.

use super::exp::Rounding;
use super::lanes::Lanes;
use super::rows::{Buffer, Row};
use super::{Extracted, Scale, Screen, Screened};

/// Writes, block by block, the maximum of each of the sixteen columns, and tells
/// whether a NaN was met. NaN does not take part in the maxima.
#[inline(always)]
pub(super) fn column_maxima<L: Lanes>(
    lanes: L,
    rows: &[Row],
    rows_per_block: usize,
    maxima: &mut [Row],
) -> bool {
    let lowest = lanes.splat(f32::NEG_INFINITY);
    let mut nan = lanes.unordered(lowest, lowest);
    for (block, maximum) in rows.chunks(rows_per_block).zip(maxima) {
        // Two maxima at a time, to hide the latency of max.
        let (mut even, mut odd) = (lowest, lowest);
        let (pairs, rest) = block.as_chunks::<2>();
        for [a, b] in pairs {
            let (a, b) = (lanes.load(a), lanes.load(b));
            nan = lanes.or(nan, lanes.unordered(a, b));
            even = lanes.max(a, even);
            odd = lanes.max(b, odd);
        }
        for a in rest {
            let a = lanes.load(a);
            nan = lanes.or(nan, lanes.unordered(a, a));
            even = lanes.max(a, even);
        }
        lanes.store(lanes.max(even, odd), maximum);
    }
    lanes.bits(nan) != 0
}

/// The index of the `nth` (from 0) value that is at least `low` and at most
/// `high`.
#[inline(always)]
pub(super) fn nth_between<L: Lanes>(
    lanes: L,
    rows: &[Row],
    low: f32,
    high: f32,
    mut nth: usize,
) -> Option<usize> {
    let (low, high) = (lanes.splat(low), lanes.splat(high));
    for (index, row) in rows.iter().enumerate() {
        let values = lanes.load(row);
        let within = lanes.and(lanes.at_least(values, low), lanes.at_least(high, values));
        let mut bits = lanes.bits(within);
        let count = bits.count_ones() as usize;
        if nth < count {
            for _ in 0..nth {
                bits &= bits - 1;
            }
            return Some(index * Row::LEN + bits.trailing_zeros() as usize);
        }
        nth -= count;
    }
    None
}

/// Appends the logits that are at least `threshold`. `out` has room for all.
#[inline(always)]
pub(super) fn gather<L: Lanes>(lanes: L, rows: &[Row], threshold: f32, out: &mut Buffer) {
    let threshold = lanes.splat(threshold);
    for row in rows {
        let logits = lanes.load(row);
        let bits = lanes.bits(lanes.at_least(logits, threshold));
        if bits != 0 {
            lanes.compress(logits, bits, out.spare());
            out.grow(bits.count_ones() as usize);
        }
    }
}

/// Rows whose screened weights are added in float before the double sums take
/// them: three additions, each with a relative error of 2^-24.
const FLOAT_SUM: usize = 4;

/// Appends the logits from `screen.threshold` on and sums the screened weights of
/// the others, and once more those of the ones that are at least `screen.deep`.
#[inline(always)]
pub(super) fn screen<L: Lanes>(
    lanes: L,
    rows: &[Row],
    screen: Screen,
    out: &mut Buffer,
) -> Screened {
    if screen.deep < screen.threshold {
        screen_apart::<L, true>(lanes, rows, screen, out)
    } else {
        screen_apart::<L, false>(lanes, rows, screen, out)
    }
}

#[inline(always)]
fn screen_apart<L: Lanes, const DEEP: bool>(
    lanes: L,
    rows: &[Row],
    screen: Screen,
    out: &mut Buffer,
) -> Screened {
    let (max_logit, threshold) = (lanes.splat(screen.max_logit), lanes.splat(screen.threshold));
    let (octaves, lowest) = (
        lanes.splat(screen.slope.octaves),
        lanes.splat(screen.slope.lowest),
    );
    let deep = lanes.splat(screen.deep);
    let (mut all_sums, mut above_sums) = (lanes.zero_f64(), lanes.zero_f64());
    for group in rows.chunks(FLOAT_SUM) {
        let (mut all_sum, mut above_sum) = (lanes.splat(0.0), lanes.splat(0.0));
        for row in group {
            let logits = lanes.load(row);
            let taken = lanes.at_least(logits, threshold);
            let bits = lanes.bits(taken);
            if bits == u16::MAX {
                *out.spare() = row.0;
                out.grow(Row::LEN);
                continue;
            }
            let distance = lanes.max(lanes.sub(logits, max_logit), lowest);
            let weights = lanes.drop(taken, lanes.screen_exp(distance, octaves));
            all_sum = lanes.add(all_sum, weights);
            if DEEP {
                let above = lanes.at_least(logits, deep);
                above_sum = lanes.add(above_sum, lanes.keep(above, weights));
            }
            if bits != 0 {
                lanes.compress(logits, bits, out.spare());
                out.grow(bits.count_ones() as usize);
            }
        }
        all_sums = lanes.widen_add(all_sums, all_sum);
        if DEEP {
            above_sums = lanes.widen_add(above_sums, above_sum);
        }
    }
    Screened {
        all: lanes.total(all_sums),
        above: lanes.total(above_sums),
    }
}

/// Turns logits into weights, in place, and sums them.
#[inline(always)]
pub(super) fn weigh<L: Lanes>(lanes: L, rows: &mut [Row], scale: Scale, rounding: Rounding) -> f64 {
    let (max_logit, temperature) = (lanes.splat(scale.max_logit), lanes.splat(scale.temperature));
    let mut sums = lanes.zero_f64();
    // A run of one value, as in a flat or masked vector, is weighed once.
    let mut last = f32::NAN;
    let mut last_weights = lanes.splat(0.0);
    for row in rows {
        let logits = lanes.load(row);
        let first = row.0[0];
        let same = lanes.and(
            lanes.at_least(logits, lanes.splat(last)),
            lanes.at_least(lanes.splat(last), logits),
        );
        if lanes.bits(same) != u16::MAX {
            let argument = lanes.div(lanes.sub(logits, max_logit), temperature);
            last_weights = lanes.host_exp(argument, rounding);
            last = first;
            let lane_0 = lanes.splat(first);
            let uniform = lanes.and(
                lanes.at_least(logits, lane_0),
                lanes.at_least(lane_0, logits),
            );
            if lanes.bits(uniform) != u16::MAX {
                last = f32::NAN;
            }
        }
        lanes.store(last_weights, row);
        sums = lanes.widen_add(sums, last_weights);
    }
    lanes.total(sums)
}

/// The sum of the weights of all logits below `threshold`.
#[inline(always)]
pub(super) fn weigh_below<L: Lanes>(
    lanes: L,
    rows: &[Row],
    scale: Scale,
    rounding: Rounding,
    threshold: f32,
) -> f64 {
    let (max_logit, temperature) = (lanes.splat(scale.max_logit), lanes.splat(scale.temperature));
    let threshold = lanes.splat(threshold);
    let mut sums = lanes.zero_f64();
    for row in rows {
        let logits = lanes.load(row);
        let taken = lanes.at_least(logits, threshold);
        if lanes.bits(taken) == u16::MAX {
            continue;
        }
        let argument = lanes.div(lanes.sub(logits, max_logit), temperature);
        let weights = lanes.drop(taken, lanes.host_exp(argument, rounding));
        sums = lanes.widen_add(sums, weights);
    }
    lanes.total(sums)
}

/// Sums the weights above `high`, and sums, counts and (unless `out` is None)
/// appends those from `low` to `high`.
#[inline(always)]
pub(super) fn extract<L: Lanes>(
    lanes: L,
    rows: &[Row],
    low: f32,
    high: f32,
    mut out: Option<&mut Buffer>,
) -> Extracted {
    let (low, high) = (lanes.splat(low), lanes.splat(high));
    let (mut above_sums, mut within_sums) = (lanes.zero_f64(), lanes.zero_f64());
    let mut count = 0;
    for row in rows {
        let weights = lanes.load(row);
        let not_above = lanes.at_least(high, weights);
        let within = lanes.and(not_above, lanes.at_least(weights, low));
        if lanes.bits(not_above) != u16::MAX {
            above_sums = lanes.widen_add(above_sums, lanes.drop(not_above, weights));
        }
        let bits = lanes.bits(within);
        if bits != 0 {
            within_sums = lanes.widen_add(within_sums, lanes.keep(within, weights));
            count += bits.count_ones() as usize;
            if let Some(out) = out.as_deref_mut() {
                lanes.compress(weights, bits, out.spare());
                out.grow(bits.count_ones() as usize);
            }
        }
    }
    Extracted {
        above: lanes.total(above_sums),
        within: lanes.total(within_sums),
        count,
    }
}
