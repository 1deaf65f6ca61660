//! The fast path: the full sort's token without weighing and sorting all.
//!
//! ```text
//! scan        the maximum, and the maxima of columns of some 32 logits
//! guess       a threshold from a histogram of those; a bad one costs time only
//! gather      the logits at or above it: the candidates
//! bound       the mass below it: from the column maxima, or by screening all
//! weigh       the candidates, exactly
//! settle      bounds of total -> cutoff -> kept -> target -> the pick
//! accept      when every value within the bounds gives one and the same token
//! otherwise   screen, lower the threshold, weigh the rest; at last give up and
//!             leave it to the exact paths
//! ```
//!
//! What makes it sound, with the proofs in docs/exactness.md:
//!
//! 1. Weights fall with logits: subtraction, division and the host's expf are
//!    monotone, so a threshold in logits is one in weights.
//! 2. The candidates are the head of the order. Their weights are exact, and so
//!    are sums of few of them taken in order as the contract takes them.
//! 3. A sum in another order than the contract's is within (V - 1) 2^-53 of it,
//!    relative, and equal where all partial sums fit into 53 bits.
//! 4. Rounding is monotone, so bounds of the total go through multiplication and
//!    comparison to bounds of the pick.
//! 5. A token left out may tie with a candidate at the threshold only: a pick has
//!    to be heavier than any token left out.

use crate::kernels::exp::screen::{self, Slope};
use crate::kernels::exp::{self, Rounding};
use crate::kernels::rows::{Blocks, Buffer, Row};
use crate::kernels::{self, Engine, Kernels, Scale, Screen};
use crate::order;
use crate::request::{Rejection, Request};
use crate::trace::{Report, Route};
use crate::weight;

#[cfg(test)]
mod tests;

/// 2^-53, half a double's last place, relative: the error of one addition.
const UNIT: f64 = f64::from_bits(0x3ca0_0000_0000_0000);

/// Up to how many tokens are sorted and summed one by one. Not above the
/// shortest vocabulary that comes here: its error allowance covers those sums.
pub(crate) const FEW: usize = 512;

/// Temperatures for which arguments neither vanish nor overflow on the way.
const TEMPERATURES: std::ops::RangeInclusive<f32> = 1e-18..=1e18;

/// Bounds of a real number, both included.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Interval {
    low: f64,
    high: f64,
}

impl Interval {
    const ZERO: Interval = Interval {
        low: 0.0,
        high: 0.0,
    };

    fn point(value: f64) -> Self {
        Interval {
            low: value,
            high: value,
        }
    }

    /// The bounds of a positive sum whose relative error is below `error`.
    fn within(self, error: f64) -> Self {
        Interval {
            low: self.low * (1.0 - error),
            high: self.high * (1.0 + error),
        }
    }

    fn plus(self, other: Interval) -> Self {
        Interval {
            low: self.low + other.low,
            high: self.high + other.high,
        }
    }

    fn width(self) -> f64 {
        self.high - self.low
    }
}

/// A histogram of logits by their distance from the maximum, in halvings of
/// the squared weight: a token of level n weighs about 2^(-n/2).
struct Levels {
    counts: [u32; Levels::LEN],
    total: u32,
}

impl Levels {
    const LEN: usize = 96;

    fn of<'r>(rows: impl IntoIterator<Item = &'r Row>, scale: Scale) -> Self {
        let per_level = 2.0 * std::f32::consts::LOG2_E / scale.temperature;
        // Four histograms, since adding to the same number twice in a row waits
        // for the first.
        let mut counts = [[0_u32; Levels::LEN]; 4];
        let mut total = 0;
        for row in rows {
            let mut levels = [0_usize; Row::LEN];
            for (level, logit) in levels.iter_mut().zip(row.0) {
                let distance = (scale.max_logit - logit) * per_level;
                // So written, infinity and NaN give the last level too.
                let last = (Levels::LEN - 1) as f32;
                let distance = if distance < last { distance } else { last };
                // SAFETY: from 0, since no logit is above the maximum, to LEN - 1.
                *level = unsafe { distance.to_int_unchecked::<i32>() } as usize;
            }
            for (lane, level) in levels.into_iter().enumerate() {
                counts[lane % 4][level.min(Levels::LEN - 1)] += 1;
            }
            total += Row::LEN as u32;
        }
        Levels {
            counts: std::array::from_fn(|level| counts.iter().map(|count| count[level]).sum()),
            total,
        }
    }

    /// The logit at the upper edge of a level: at or above it are the levels
    /// before.
    fn logit(level: usize, scale: Scale) -> f32 {
        let distance = level as f32 * scale.temperature / (2.0 * std::f32::consts::LOG2_E);
        // Above -inf, so that no padding passes for a candidate.
        (scale.max_logit - distance).max(f32::MIN)
    }

    /// The weight at the upper edge of a level.
    fn weight(level: usize) -> f64 {
        let octaves = f64::from_bits((1023 - level as u64 / 2) << 52);
        if level.is_multiple_of(2) {
            octaves
        } else {
            octaves * std::f64::consts::FRAC_1_SQRT_2
        }
    }
}

/// Where the candidates end, and where the screening tells a heavier part of
/// the tail from a lighter one.
#[derive(Clone, Copy, Debug)]
struct Thresholds {
    candidates: f32,
    /// At or below `candidates`; +inf when the tail is not told apart.
    deep: f32,
}

/// What is known about the tokens that are no candidates.
#[derive(Clone, Copy, Debug)]
struct Tail {
    mass: Interval,
    /// No token weighs more. Below 0 when there are none.
    heaviest: f32,
    /// The mass of those at or above `Thresholds::deep`, and the most that a
    /// token below that weighs.
    deep: Option<(Interval, f32)>,
}

/// Why the bounds left more than one token possible.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Doubt {
    /// The candidates do not reach far enough down.
    Deeper,
    /// The tail's mass is not known well enough.
    Tighter,
}

/// The pick among the candidates: the `rank`-th (from 0) in id order of those
/// that weigh `weight`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pick {
    weight: f32,
    rank: usize,
}

/// Where in the order a target is reached.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The cumulative mass there.
    mass: Interval,
    /// The token, if the target's bounds leave one only.
    pick: Option<Pick>,
}

struct Sampler<'a> {
    request: &'a Request<'a>,
    uniform: f64,
    kernels: &'static Kernels,
    rounding: Rounding,
    blocks: Blocks<'a>,
    /// The column maxima of each block.
    maxima: Vec<Row>,
    scale: Scale,
    /// (V - 1) 2^-53 and the roundings of the bounds themselves.
    order_error: f64,
    /// The candidates, in id order: logits, then weights.
    candidates: Buffer,
    /// How many candidates stand before each block.
    starts: Vec<u32>,
    /// What selections by mass are left with.
    active: Buffer,
    spare: Buffer,
    /// The candidates' weights, summed in some order.
    sum: f64,
    weighed: usize,
    sorted: usize,
    refined: u32,
}

/// The token of `request`, or None when it could not be made certain.
pub(crate) fn sample(
    request: &Request<'_>,
    uniform: f64,
    engine: Engine,
) -> Result<Option<Report>, Rejection> {
    let Some(rounding) = engine.rounding else {
        return Ok(None);
    };
    if !(0.0..=1.0).contains(&uniform) || !TEMPERATURES.contains(&request.temperature()) {
        return Ok(None);
    }
    let Some(mut sampler) = Sampler::scan(request, uniform, engine.kernels, rounding)? else {
        return Ok(None);
    };
    let token = sampler.token()?;
    Ok(token.map(|token| Report {
        token,
        route: if sampler.refined == 0 {
            Route::Certified
        } else {
            Route::Refined
        },
        candidates: sampler.candidates.len(),
        nucleus: 0,
        weighed: sampler.weighed,
        sorted: sampler.sorted,
        refined: sampler.refined,
    }))
}

impl<'a> Sampler<'a> {
    /// One pass over the logits. None when a weight would not be finite.
    fn scan(
        request: &'a Request<'a>,
        uniform: f64,
        kernels: &'static Kernels,
        rounding: Rounding,
    ) -> Result<Option<Self>, Rejection> {
        let logits = request.logits();
        let blocks = Blocks::new(logits, rows_per_block(logits.len()));
        let mut maxima = Vec::new();
        weight::reserve(&mut maxima, blocks.len())?;
        maxima.resize(blocks.len(), Row::splat(f32::NEG_INFINITY));
        let last = blocks.len() - 1;
        let rows = blocks.rows_per_block();
        let mut nan = kernels.column_maxima(blocks.body(), rows, &mut maxima[1..last]);
        for end in [0, last] {
            nan |= kernels.column_maxima(blocks.block(end), 1, &mut maxima[end..=end]);
        }
        let max_logit = kernels::greatest(&maxima);
        if nan || !max_logit.is_finite() {
            return Ok(None);
        }
        Ok(Some(Sampler {
            request,
            uniform,
            kernels,
            rounding,
            maxima,
            scale: Scale {
                max_logit,
                temperature: request.temperature(),
            },
            order_error: (logits.len() as f64 + 64.0) * UNIT * 1.01,
            blocks,
            candidates: Buffer::default(),
            starts: Vec::new(),
            active: Buffer::default(),
            spare: Buffer::default(),
            sum: 0.0,
            weighed: 0,
            sorted: 0,
            refined: 0,
        }))
    }

    fn token(&mut self) -> Result<Option<i32>, Rejection> {
        let columns = Levels::of(&self.maxima, self.scale);
        if let Some(threshold) = self.peaked_threshold(&columns) {
            let tail = self.gather(threshold)?;
            self.weigh_candidates();
            if let Ok(pick) = self.settle(threshold, &tail)? {
                return Ok(Some(self.id(threshold, pick)));
            }
            self.refined += 1;
        }
        let guess = Guess::new(self, &columns);
        for attempt in 0..Guess::ATTEMPTS {
            let thresholds = guess.thresholds(attempt, self.scale);
            let threshold = thresholds.candidates;
            self.candidates.clear();
            self.candidates.reserve(guess.tokens(attempt))?;
            let mut tail = self.screen(thresholds)?;
            self.weigh_candidates();
            let mut settled = self.settle(threshold, &tail)?;
            if settled == Err(Doubt::Tighter) {
                self.refined += 1;
                tail.mass = self.weigh_tail(threshold);
                settled = self.settle(threshold, &tail)?;
            }
            match settled {
                Ok(pick) => return Ok(Some(self.id(threshold, pick))),
                Err(Doubt::Deeper) => self.refined += 1,
                Err(Doubt::Tighter) => break,
            }
        }
        Ok(None)
    }

    /// A threshold at which so little is left out that the column maxima bound
    /// it well enough. None where there is none.
    fn peaked_threshold(&self, columns: &Levels) -> Option<f32> {
        /// Columns at or above the threshold that still leave most blocks unread.
        const FEW_HOT: u32 = 96;
        /// Bounds of the tail, relative, that nothing is gained by tightening,
        /// that will mostly do, and that are worth a try.
        const NOTHING: f64 = 1e-8;
        const LITTLE: f64 = 1e-3;
        const SOME: f64 = 1e-2;

        let rows = self.blocks.rows_per_block() as f64;
        let mut mass_below: f64 = (0..Levels::LEN)
            .map(|level| f64::from(columns.counts[level]) * Levels::weight(level))
            .sum();
        // The upper edges overstate it by a quarter or so.
        let total = mass_below * 0.8;
        let mut hot = 0;
        let mut best = None;
        for level in 1..Levels::LEN {
            hot += columns.counts[level - 1];
            if hot > columns.total / 4 {
                break;
            }
            mass_below -= f64::from(columns.counts[level - 1]) * Levels::weight(level - 1);
            let left_out = rows * (mass_below + f64::from(hot) * Levels::weight(level));
            if left_out < SOME * total {
                best = Some(level);
            }
            if left_out < NOTHING * total || hot > FEW_HOT && left_out < LITTLE * total {
                break;
            }
        }
        best.map(|level| Levels::logit(level, self.scale))
    }

    /// Whether a block has a logit at or above `threshold`.
    fn is_hot(&self, block: usize, threshold: f32) -> bool {
        let maxima = self.maxima[block].0.iter();
        maxima.fold(false, |any, &max| any | (max >= threshold))
    }

    /// The exact weight of the heaviest token that a threshold can leave out.
    fn weight_below(&self, threshold: f32) -> f32 {
        self.weight(threshold.next_down())
    }

    fn weight(&self, logit: f32) -> f32 {
        exp::host_expf((logit - self.scale.max_logit) / self.scale.temperature)
    }

    /// Gathers and weighs the candidates; the tail is bounded by the column
    /// maxima: a column weighs at least as much as its maximum, and at most that
    /// times its length.
    fn gather(&mut self, threshold: f32) -> Result<Tail, Rejection> {
        // The maxima below the threshold are summed like logits.
        let screen = self.screen_at(Thresholds {
            candidates: threshold,
            deep: f32::INFINITY,
        });
        let (mut cold, mut hot_columns) = (0.0, 0);
        for maxima in self.maxima.chunks(64) {
            self.spare.clear();
            self.spare.reserve(maxima.len() * Row::LEN)?;
            cold += self.kernels.screen(maxima, screen, &mut self.spare).all;
            hot_columns += self.spare.len();
        }
        self.candidates.clear();
        self.starts.clear();
        weight::reserve(&mut self.starts, self.blocks.len())?;
        for block in 0..self.blocks.len() {
            self.starts.push(self.candidates.len() as u32);
            if self.is_hot(block, threshold) {
                let rows = self.blocks.block(block);
                self.candidates.reserve(rows.len() * Row::LEN)?;
                self.kernels.gather(rows, threshold, &mut self.candidates);
            }
        }
        let heaviest = self.weight_below(threshold);
        let mass = if heaviest == 0.0 {
            Interval::ZERO
        } else {
            let rows = self.blocks.rows_per_block() as f64;
            let cold = self.screened(cold, self.maxima.len() * Row::LEN);
            let in_hot = hot_columns as f64 * (rows - 1.0) * f64::from(heaviest);
            Interval {
                low: cold.low,
                high: (cold.high * rows + in_hot) * (1.0 + 8.0 * UNIT),
            }
        };
        Ok(Tail {
            mass,
            heaviest,
            deep: None,
        })
    }

    /// Gathers the candidates and screens all others.
    fn screen(&mut self, thresholds: Thresholds) -> Result<Tail, Rejection> {
        self.starts.clear();
        weight::reserve(&mut self.starts, self.blocks.len())?;
        let screen = self.screen_at(thresholds);
        let (mut all, mut above) = (0.0, 0.0);
        for block in 0..self.blocks.len() {
            self.starts.push(self.candidates.len() as u32);
            let rows = self.blocks.block(block);
            self.candidates.reserve(rows.len() * Row::LEN)?;
            let screened = self.kernels.screen(rows, screen, &mut self.candidates);
            all += screened.all;
            above += screened.above;
        }
        let heaviest = self.weight_below(thresholds.candidates);
        // With the padding of the two ragged rows.
        let tokens = self.request.logits().len() - self.candidates.len() + 2 * Row::LEN;
        let mass = if heaviest == 0.0 || tokens == 2 * Row::LEN {
            Interval::ZERO
        } else {
            self.screened(all, tokens)
        };
        let deep = (thresholds.deep < thresholds.candidates).then(|| {
            (
                self.screened(above, tokens),
                self.weight_below(thresholds.deep),
            )
        });
        Ok(Tail {
            mass,
            heaviest,
            deep,
        })
    }

    fn screen_at(&self, thresholds: Thresholds) -> Screen {
        Screen {
            max_logit: self.scale.max_logit,
            slope: Slope::of(self.scale.temperature),
            threshold: thresholds.candidates,
            deep: thresholds.deep,
        }
    }

    /// The true sum behind a sum of `tokens` screened weights.
    fn screened(&self, sum: f64, tokens: usize) -> Interval {
        /// The screening exponential's, three additions in float, and those in
        /// double.
        const ERROR: f64 = screen::ERROR + 4.0 * 6e-8;
        let error = ERROR + self.order_error;
        let far = tokens as f64 * screen::FAR;
        Interval {
            low: (sum * (1.0 - error) - far).max(0.0),
            // 1 / (1 - error), and more than the square of error to spare.
            high: sum * (1.0 + error * 1.01) + far,
        }
    }

    /// The tail's mass by exact weights: what is left is the order of the sum.
    fn weigh_tail(&mut self, threshold: f32) -> Interval {
        let mut sum = 0.0;
        for block in 0..self.blocks.len() {
            let rows = self.blocks.block(block);
            sum += self
                .kernels
                .weigh_below(rows, self.scale, self.rounding, threshold);
        }
        self.weighed += self.request.logits().len() - self.candidates.len();
        Interval::point(sum).within(self.order_error)
    }

    /// Turns the candidates' logits into their weights.
    fn weigh_candidates(&mut self) {
        self.weighed += self.candidates.len();
        let rows = self.candidates.padded(f32::NEG_INFINITY);
        self.sum = self.kernels.weigh(rows, self.scale, self.rounding);
    }

    /// Looks for the pick among the weighed candidates: total, cutoff, kept and
    /// target one after the other, each as an interval.
    fn settle(&mut self, threshold: f32, tail: &Tail) -> Result<Result<Pick, Doubt>, Rejection> {
        let heaviest = if self.candidates.len() == self.request.logits().len() {
            -1.0
        } else {
            tail.heaviest
        };
        let least = self.weight(threshold);
        let error = if fits(self.sum, least) {
            0.0
        } else {
            self.order_error
        };
        let sum = Interval::point(self.sum).within(error);
        let all = sum.plus(tail.mass);
        // The contract's sums over the whole vocabulary, in whatever order.
        let total = if error == 0.0 && tail.mass == Interval::ZERO {
            all
        } else {
            all.within(self.order_error)
        };
        let cutoff = Interval {
            low: self.request.cutoff(total.low),
            high: self.request.cutoff(total.high),
        };
        // The end of the nucleus lies below tokens that do not reach the cutoff,
        // so the last one that is kept weighs at most as much as the next.
        let kept_below = |heaviest: f32| Interval {
            low: cutoff.low.min(total.low),
            high: (cutoff.high + f64::from(heaviest)).min(total.high),
        };
        let order_error = self.order_error;
        let falls_short = |mass: Interval| falls_short(mass, cutoff, order_error);

        let few = self.candidates.len() <= FEW;
        let (kept, end_is_known) = match tail.deep {
            _ if !self.request.is_cut() && total.width() > 0.0 => (kept_below(0.0), true),
            Some((deep, lighter)) if falls_short(sum.plus(deep)) => (kept_below(lighter), false),
            _ => match self.locate(cutoff, least, error)? {
                Some(end) => (end.mass, true),
                None if few || falls_short(sum) => (kept_below(heaviest.max(0.0)), false),
                None => (kept_below(1.0), false),
            },
        };
        let target = Interval {
            low: self.uniform * kept.low,
            high: self.uniform * kept.high,
        };
        Ok(match self.locate(target, least, error)? {
            Some(Place {
                pick: Some(pick), ..
            }) if pick.weight > heaviest => Ok(pick),
            Some(Place { pick: None, .. }) if end_is_known => Err(Doubt::Tighter),
            // The pick, or the end of the nucleus, may lie below the candidates.
            _ => Err(Doubt::Deeper),
        })
    }

    /// The first token in order whose cumulative mass reaches `target`. None
    /// when the candidates may not reach it. `least` is a lower bound of their
    /// weights, `error` that of their sums.
    fn locate(
        &mut self,
        target: Interval,
        least: f32,
        error: f64,
    ) -> Result<Option<Place>, Rejection> {
        if self.candidates.len() <= FEW {
            // Summed from the heaviest on, these are the contract's own sums.
            self.sorted += self.candidates.len();
            return Ok(locate_few(
                self.candidates.as_slice(),
                Interval::ZERO,
                target,
                0.0,
            ));
        }
        if self.sum * (1.0 - error) < target.high {
            return Ok(None);
        }
        // The token is one of those from `low` to `high`, of which all that are
        // in `source` count; `before` is the mass of the heavier ones that are
        // not in `source`.
        let (mut low, mut high) = (least, 1.0_f32);
        let mut before = Interval::ZERO;
        let mut from_candidates = true;
        let middle = (target.low + target.high) / 2.0;
        // What lies above `high` and down to `low`, for the pivots only.
        let (mut above_high, mut down_to_low) = (0.0, self.sum);
        for step in 0..96 {
            let source = if from_candidates {
                &mut self.candidates
            } else {
                &mut self.active
            };
            if source.len() <= FEW && !from_candidates {
                self.sorted += source.len();
                return Ok(locate_few(source.as_slice(), before, target, error));
            }
            let share = (middle - above_high) / (down_to_low - above_high);
            let (first, last) = if step < 12 {
                pivots(source.as_slice(), low, high, share)
            } else {
                // Halving the bits ends after 32 steps, whatever the weights.
                let (low, high) = (low.to_bits(), high.to_bits());
                (
                    f32::from_bits(high),
                    f32::from_bits(high - high.saturating_sub(low) / 2),
                )
            };
            let single = first == last;
            self.spare.clear();
            if !single {
                self.spare.reserve(source.len())?;
            }
            let rows = source.padded(-1.0);
            let out = (!single).then_some(&mut self.spare);
            let found = self.kernels.extract(rows, last, first, out);
            let above = before.plus(Interval::point(found.above).within(error));
            let upto = above.plus(Interval::point(found.within).within(error));
            // The contract's cumulative masses at the two pivots are within this
            // of the true ones.
            let above_summed = above.within(2.0 * error);
            let upto_summed = upto.within(2.0 * error);
            let none_above = above.high == 0.0;
            if upto_summed.high < target.low {
                above_high = found.above + found.within + before.low;
                if last <= low {
                    return Ok(None);
                }
                high = last.next_down();
            } else if target.high <= above_summed.low && !none_above {
                down_to_low = found.above + before.low;
                if first >= high {
                    return Ok(None);
                }
                low = first.next_up();
            } else if (above_summed.high < target.low || none_above)
                && target.high <= upto_summed.low
            {
                if single {
                    return Ok(Some(locate_tie(first, found.count, above, target, error)));
                }
                std::mem::swap(&mut self.active, &mut self.spare);
                before = above;
                (low, high) = (last, first);
                (above_high, down_to_low) = (above.low, upto.low);
                from_candidates = false;
            } else {
                // The target straddles a pivot: no certain answer at this
                // precision.
                return Ok(Some(Place {
                    mass: Interval {
                        low: target.low,
                        high: target.high + f64::from(high),
                    },
                    pick: None,
                }));
            }
        }
        Ok(None)
    }

    /// The token id of a pick.
    fn id(&mut self, threshold: f32, pick: Pick) -> i32 {
        let Pick { weight, rank } = pick;
        let rows = self.candidates.padded(-1.0);
        let position = self
            .kernels
            .nth_between(rows, weight, weight, rank)
            .expect("the pick is a candidate");
        let block = self
            .starts
            .partition_point(|&start| start as usize <= position)
            - 1;
        let within = self
            .kernels
            .nth_between(
                self.blocks.block(block),
                threshold,
                f32::INFINITY,
                position - self.starts[block] as usize,
            )
            .expect("the block holds the candidate");
        (self.blocks.first_id(block) + within) as i32
    }
}

/// Whether the contract's sum over all tokens of this true `mass` stays below the
/// cutoff for certain.
fn falls_short(mass: Interval, cutoff: Interval, order_error: f64) -> bool {
    mass.high * (1.0 + order_error) < cutoff.low
}

/// Whether sums of weights of at least `least` are exact in every order: all
/// partial sums, being multiples of the smallest weight's last place and at most
/// `sum`, fit into a double.
fn fits(sum: f64, least: f32) -> bool {
    let power_of_two = f64::from_bits(f64::from(least).to_bits() & !((1 << 52) - 1));
    sum < power_of_two * f64::from(1_u32 << 30)
}

/// The first of a few weights, taken in order, whose cumulative mass reaches
/// `target`; `before` is the mass of all heavier tokens. With `error` 0 the sums
/// are the contract's own. None when they do not reach it.
fn locate_few(weights: &[f32], before: Interval, target: Interval, error: f64) -> Option<Place> {
    let mut sorted = [0.0_f32; FEW];
    let sorted = &mut sorted[..weights.len()];
    sorted.copy_from_slice(weights);
    order::sort_few(sorted);
    let mut mass = before;
    let mut first: Option<(usize, f64)> = None;
    for (index, &weight) in sorted.iter().enumerate() {
        mass = mass.plus(Interval::point(f64::from(weight)));
        let summed = mass.within(3.0 * error);
        if first.is_none() && summed.high >= target.low {
            first = Some((index, summed.low));
        }
        if summed.low >= target.high {
            let (first, low) = first?;
            let equal = sorted[..=index]
                .iter()
                .rev()
                .take_while(|&&equal| equal == weight)
                .count();
            return Some(Place {
                mass: Interval {
                    low,
                    high: summed.high,
                },
                pick: (first == index).then_some(Pick {
                    weight,
                    rank: equal - 1,
                }),
            });
        }
    }
    None
}

/// The same among `count` tokens of one `weight`, which together reach it.
fn locate_tie(weight: f32, count: usize, before: Interval, target: Interval, error: f64) -> Place {
    let weight_f64 = f64::from(weight);
    let mass = |rank: usize| {
        before
            .plus(Interval::point((rank + 1) as f64 * weight_f64))
            .within(3.0 * error)
    };
    let guess = |target, before| guess_rank(target, before, weight_f64);
    let first_with = |near: usize, reaches: &dyn Fn(usize) -> bool| {
        let mut rank = near.saturating_sub(2).min(count - 1);
        while rank > 0 && reaches(rank) {
            rank -= 1;
        }
        while rank + 1 < count && !reaches(rank) {
            rank += 1;
        }
        rank
    };
    let first = first_with(guess(target.low, before.high), &|rank| {
        mass(rank).high >= target.low
    });
    let last = first_with(guess(target.high, before.low), &|rank| {
        mass(rank).low >= target.high
    });
    Place {
        mass: Interval {
            low: mass(first).low,
            high: mass(last).high,
        },
        pick: (first == last).then_some(Pick {
            weight,
            rank: first,
        }),
    }
}

/// The rank of the token of a `weight` in which `target` is reached from `before`
/// on. The quotient is off by one at most; the masses decide.
fn guess_rank(target: f64, before: f64, weight: f64) -> usize {
    ((target - before) / weight) as usize
}

/// Two weights, the greater first, between which the one probably lies down to
/// which `share` of the mass from `high` to `low` reaches: guessed from a sample.
fn pivots(weights: &[f32], low: f32, high: f32, share: f64) -> (f32, f32) {
    const SAMPLE: usize = 256;
    let mut sample = [0.0_f32; SAMPLE];
    let mut len = 0;
    let stride = weights.len() / SAMPLE + 1;
    for &weight in weights.iter().step_by(stride) {
        if low <= weight && weight <= high {
            sample[len] = weight;
            len += 1;
        }
    }
    let sample = &mut sample[..len];
    if sample.len() < 8 {
        return (high, low);
    }
    order::sort_few(sample);
    if sample[0] == sample[len - 1] {
        // Probably one crowd of equal weights, which needs no sorting.
        return (sample[0], sample[0]);
    }
    let mass: f64 = sample.iter().map(|&weight| f64::from(weight)).sum();
    let mut reached = 0.0;
    let index = sample
        .iter()
        .position(|&weight| {
            reached += f64::from(weight);
            reached >= share * mass
        })
        .unwrap_or(len - 1);
    let margin = len / 24 + 2;
    let first = if index < margin {
        high
    } else {
        sample[index - margin]
    };
    let last = if index + margin < len {
        sample[index + margin]
    } else {
        low
    };
    (first, last)
}

/// Rows in a block: as many columns in all as make reading their maxima again
/// cheap beside the scan.
fn rows_per_block(vocab_size: usize) -> usize {
    ((vocab_size / Row::LEN).isqrt() / 4)
        .next_power_of_two()
        .max(4)
}

/// Guesses of where to cut, from the column maxima and a sample. They cost time
/// when they are wrong, and nothing else.
struct Guess {
    /// The level that the pick is expected in.
    pick: usize,
    /// The level that the nucleus is expected to end in. As `pick` without a cut.
    end: usize,
    /// Tokens expected down to each level's lower edge.
    tokens: [usize; Levels::LEN],
}

impl Guess {
    const ATTEMPTS: usize = 4;

    fn new(sampler: &Sampler<'_>, columns: &Levels) -> Self {
        const SAMPLE_ROWS: usize = 64;
        let body = sampler.blocks.body();
        let stride = body.len() / SAMPLE_ROWS + 1;
        let sample = Levels::of(body.iter().step_by(stride), sampler.scale);
        let vocab_size = sampler.request.logits().len() as f64;
        let rows = sampler.blocks.rows_per_block() as f64;
        // The share of tokens at or above each level's lower edge. A column's
        // maximum is below it when all its tokens are, which tells the share
        // where that is still rare; the sample where it is not.
        let (mut hot, mut sampled) = (0, 0);
        let mut masses = [0.0; Levels::LEN];
        let mut tokens_to = [0; Levels::LEN];
        let mut before = 0.0;
        for level in 0..Levels::LEN {
            hot += columns.counts[level];
            sampled += sample.counts[level];
            let hot_share = f64::from(hot) / f64::from(columns.total);
            let share = if hot_share < 0.9 {
                -(-hot_share).ln_1p() / rows
            } else {
                f64::from(sampled) / f64::from(sample.total.max(1))
            };
            let tokens = (share * vocab_size).max(before);
            masses[level] = (tokens - before) * Levels::weight(level) * 0.84;
            before = tokens;
            tokens_to[level] = tokens as usize;
        }
        let total: f64 = masses.iter().sum();
        let level_of = |share: f64| {
            let mut mass = 0.0;
            masses
                .iter()
                .position(|level| {
                    mass += level;
                    mass >= share * total
                })
                .unwrap_or(Levels::LEN - 1)
        };
        let end = if sampler.request.is_cut() {
            f64::from(sampler.request.top_p())
        } else {
            1.0
        };
        let pick = level_of(sampler.uniform * end);
        Guess {
            pick,
            end: if sampler.request.is_cut() {
                level_of(end)
            } else {
                pick
            },
            tokens: tokens_to,
        }
    }

    /// The level above which candidates are taken at the `attempt`-th try.
    fn level(&self, attempt: usize) -> usize {
        if self.is_shallow() && attempt == 0 {
            return self.pick + 2;
        }
        let attempt = attempt - usize::from(self.is_shallow());
        (self.end + 2 + 6 * attempt).min(Levels::LEN - 1)
    }

    /// Whether the nucleus ends so far below the pick that its last token is
    /// small beside the pick, and need not be found.
    fn is_shallow(&self) -> bool {
        self.end >= self.pick + 8
    }

    /// How many candidates to make room for at once.
    fn tokens(&self, attempt: usize) -> usize {
        let tokens = self.tokens[self.level(attempt) - 1];
        tokens + tokens / 16
    }

    /// Where to cut at the `attempt`-th try, from 0.
    fn thresholds(&self, attempt: usize, scale: Scale) -> Thresholds {
        Thresholds {
            candidates: Levels::logit(self.level(attempt), scale),
            deep: if self.is_shallow() && attempt == 0 {
                Levels::logit(self.end - 2, scale)
            } else {
                f32::INFINITY
            },
        }
    }
}
