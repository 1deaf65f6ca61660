//! The suite tells wrong samplers from a right one: each fault below was made in
//! some engine or near to it, and some case has to catch it.

mod common;

use std::cmp::Ordering;

use colibri_sampler::SampleProb;
use common::cases::{self, Case, Entry, Subject};
use common::host;
use common::rand::RAND_MAX;

/// What a [`Naive`] sampler does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    SumsInFloat,
    OrderByLogit,
    MultiplyByReciprocal,
    DivideThenSubtract,
    AllTiesKeptAtTheCut,
    CrossingTokenDropped,
    KeptMayEqualTheCut,
    TopPZeroIsGreedy,
    DrawInFloat,
    DivideByRandMaxLast,
    RandMaxPlusOne,
    PickBeyondTarget,
    TopPOneWalkedById,
    ApproximateExp,
    TiesByDescendingId,
    NormalisedInFloat,
    DecimalTopPInDouble,
    TailTakenOff,
    TargetFromCut,
    SumInSortedOrder,
    Sort1024,
    IdsIn16Bits,
    BinsOfLogits,
    BucketTotalTrusted,
    NoMarginBucket,
    CorrectlyRoundedExp,
    ArgumentInDouble,
    TinyTemperatureIsGreedy,
    NanTemperatureIsGreedy,
    GreedyDraws,
    LastMaximumWins,
    SortedIsGreedyToo,
    NanSortsLast,
    QsortOrderReversed,
}

use Fault::*;

const FAULTS: &[Fault] = &[
    SumsInFloat,
    OrderByLogit,
    MultiplyByReciprocal,
    DivideThenSubtract,
    AllTiesKeptAtTheCut,
    CrossingTokenDropped,
    KeptMayEqualTheCut,
    TopPZeroIsGreedy,
    DrawInFloat,
    DivideByRandMaxLast,
    RandMaxPlusOne,
    PickBeyondTarget,
    TopPOneWalkedById,
    ApproximateExp,
    TiesByDescendingId,
    NormalisedInFloat,
    DecimalTopPInDouble,
    TailTakenOff,
    TargetFromCut,
    SumInSortedOrder,
    Sort1024,
    IdsIn16Bits,
    BinsOfLogits,
    BucketTotalTrusted,
    NoMarginBucket,
    CorrectlyRoundedExp,
    ArgumentInDouble,
    TinyTemperatureIsGreedy,
    NanTemperatureIsGreedy,
    GreedyDraws,
    LastMaximumWins,
    SortedIsGreedyToo,
    NanSortsLast,
    QsortOrderReversed,
];

/// The contract once more, with one fault.
struct Naive(Fault);

impl Subject for Naive {
    fn name(&self) -> &str {
        "naive"
    }

    fn argmax_first(&self, values: &[f32]) -> i32 {
        let mut best = 0;
        for (i, &value) in values.iter().enumerate().skip(1) {
            let wins = match self.0 {
                LastMaximumWins => value >= values[best],
                _ => value > values[best],
            };
            if wins {
                best = i;
            }
        }
        best as i32
    }

    fn draw(&self, entry: Entry, logits: &[f32], temperature: f32, top_p: f32) -> i32 {
        let greedy = match self.0 {
            TinyTemperatureIsGreedy => temperature < 1e-5,
            TopPZeroIsGreedy => temperature <= 0.0 || top_p == 0.0,
            NanTemperatureIsGreedy => temperature <= 0.0 || temperature.is_nan(),
            _ => temperature <= 0.0,
        };
        if greedy && (entry == Entry::ServeSample || self.0 == SortedIsGreedyToo) {
            if self.0 == GreedyDraws || temperature > 0.0 || temperature.is_nan() {
                raw_draw();
            }
            return self.argmax_first(logits);
        }
        self.sample(logits, temperature, top_p, entry)
    }
}

fn raw_draw() -> i32 {
    // SAFETY: rand takes nothing and returns an int.
    unsafe { libc::rand() }
}

impl Naive {
    fn weight(&self, logit: f32, max_logit: f32, temperature: f32) -> f32 {
        let argument = match self.0 {
            MultiplyByReciprocal => (logit - max_logit) * (1.0 / temperature),
            DivideThenSubtract => logit / temperature - max_logit / temperature,
            ArgumentInDouble => {
                ((f64::from(logit) - f64::from(max_logit)) / f64::from(temperature)) as f32
            }
            _ => (logit - max_logit) / temperature,
        };
        match self.0 {
            CorrectlyRoundedExp => f64::from(argument).exp() as f32,
            // Two ulps off, where exp is not exact.
            ApproximateExp if argument < 0.0 => host::expf(argument) * (1.0 + 2.0 * f32::EPSILON),
            _ => host::expf(argument),
        }
    }

    /// Adds in double, or whatever the fault makes of it.
    fn add(&self, sum: f64, weight: f32) -> f64 {
        match self.0 {
            SumsInFloat => f64::from(sum as f32 + weight),
            _ => sum + f64::from(weight),
        }
    }

    fn compare(&self, logits: &[f32], a: &SampleProb, b: &SampleProb) -> Ordering {
        let keys = |token: &SampleProb| match self.0 {
            OrderByLogit => logits[token.id as usize],
            BinsOfLogits => (logits[token.id as usize] * 16.0).floor(),
            _ => token.p,
        };
        let by_weight = keys(b).partial_cmp(&keys(a));
        by_weight.unwrap_or(Ordering::Equal).then(match self.0 {
            TiesByDescendingId => b.id.cmp(&a.id),
            _ => a.id.cmp(&b.id),
        })
    }

    fn order(&self, logits: &[f32], weights: &[f32]) -> Vec<SampleProb> {
        let mut order: Vec<SampleProb> = (0..)
            .zip(weights)
            .map(|(id, &p)| SampleProb { p, id })
            .collect();
        let has_nan = weights.iter().any(|weight| weight.is_nan());
        match self.0 {
            QsortOrderReversed if has_nan => {
                order.reverse();
                host::qsort(&mut order);
            }
            NanSortsLast if has_nan => {
                order.sort_by_key(|token| token.p.is_nan());
                let numbers = order.iter().filter(|token| !token.p.is_nan()).count();
                order[..numbers].sort_by(|a, b| self.compare(logits, a, b));
            }
            _ if has_nan => host::qsort(&mut order),
            Sort1024 => {
                let head = order.len().min(1024);
                order[..head].sort_by(|a, b| self.compare(logits, a, b));
            }
            _ => order.sort_by(|a, b| self.compare(logits, a, b)),
        }
        order
    }

    /// The cut of the buckets' walk, as one that trusts their total takes it:
    /// all candidates, when these run out.
    fn candidates(&self, order: &mut Vec<SampleProb>, weights: &[f32], cutoff: f64) {
        let bucket = |weight: f32| 255 - (weight.to_bits() >> 23 & 255) as usize;
        let mut masses = [0.0; 256];
        for &weight in weights {
            masses[bucket(weight)] += f64::from(weight);
        }
        let mut mass = 0.0;
        for (number, bucket_mass) in masses.iter().enumerate() {
            mass += bucket_mass;
            if mass >= cutoff {
                let margin = usize::from(self.0 != NoMarginBucket);
                order.retain(|token| bucket(token.p) <= number + margin);
                return;
            }
        }
    }

    fn sample(&self, logits: &[f32], temperature: f32, top_p: f32, entry: Entry) -> i32 {
        let mut max_logit = logits[0];
        for &logit in logits {
            if logit > max_logit {
                max_logit = logit;
            }
        }
        let mut weights: Vec<f32> = logits
            .iter()
            .map(|&logit| self.weight(logit, max_logit, temperature))
            .collect();
        if self.0 == NormalisedInFloat {
            let total: f32 = weights.iter().sum();
            weights.iter_mut().for_each(|weight| *weight /= total);
        }
        let mut order = self.order(logits, &weights);
        let mut total = 0.0;
        if self.0 == SumInSortedOrder {
            for token in &order {
                total = self.add(total, token.p);
            }
        } else {
            for &weight in &weights {
                total = self.add(total, weight);
            }
        }
        let cuts = top_p > 0.0 && top_p < 1.0;
        let cutoff = match self.0 {
            _ if !cuts => total,
            DecimalTopPInDouble => top_p.to_string().parse::<f64>().unwrap() * total,
            TailTakenOff => total - f64::from(1.0 - top_p) * total,
            _ => f64::from(top_p) * total,
        };
        let trusts_buckets = matches!(self.0, BucketTotalTrusted | NoMarginBucket);
        if trusts_buckets && cuts && entry == Entry::ServeSample {
            self.candidates(&mut order, &weights, cutoff);
        }
        if self.0 == TopPOneWalkedById && !cuts && !total.is_nan() {
            order.sort_by_key(|token| token.id);
        }
        let (mut kept, mut len) = (0.0, 0);
        while len < order.len() {
            let go_on = match self.0 {
                KeptMayEqualTheCut => kept <= cutoff,
                CrossingTokenDropped if len > 0 => self.add(kept, order[len].p) < cutoff,
                AllTiesKeptAtTheCut => {
                    kept < cutoff || (len > 0 && order[len].p == order[len - 1].p)
                }
                _ => kept < cutoff,
            };
            if !go_on {
                break;
            }
            kept = self.add(kept, order[len].p);
            len += 1;
        }
        let raw = f64::from(raw_draw());
        let rand_max = f64::from(RAND_MAX);
        let target = match self.0 {
            DrawInFloat => f64::from((raw as f32 / rand_max as f32) * kept as f32),
            DivideByRandMaxLast => raw * kept / rand_max,
            RandMaxPlusOne => raw / (rand_max + 1.0) * kept,
            TargetFromCut => raw / rand_max * cutoff,
            _ => raw / rand_max * kept,
        };
        let mut mass = 0.0;
        for token in &order[..len] {
            mass = self.add(mass, token.p);
            let reached = match self.0 {
                PickBeyondTarget => mass > target,
                _ => mass >= target,
            };
            if reached {
                return self.id(token.id);
            }
        }
        self.id(order[0].id)
    }

    fn id(&self, id: i32) -> i32 {
        match self.0 {
            IdsIn16Bits => id & 0xffff,
            _ => id,
        }
    }
}

/// The cases that hold on this host: by a recorded token of another nobody can
/// be judged.
fn cases_of_this_host() -> Vec<Case> {
    let mut cases = cases::reports();
    let all = cases.len();
    cases.retain(|case| case.depends.is_none_or(host::is_recorded));
    if cases.len() < all {
        println!("wrong samplers: {} of {all} cases hold here", cases.len());
    }
    cases
}

#[test]
fn the_right_one_passes() {
    for case in &cases_of_this_host() {
        cases::check(case, &Naive(None)).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn every_wrong_one_is_caught() {
    let mut cases = cases_of_this_host();
    // The quick ones catch most.
    cases.sort_by_key(|case| case.logits.len());
    let mut escaped = Vec::new();
    for &fault in FAULTS {
        let fails = |case: &&Case| cases::check(case, &Naive(fault)).is_err();
        match cases.iter().find(fails) {
            Some(case) => println!("{fault:?}: caught by: {}", case.name),
            Option::None => escaped.push(fault),
        }
    }
    println!(
        "wrong samplers: {} of {} caught",
        FAULTS.len() - escaped.len(),
        FAULTS.len()
    );
    if cases.len() == cases::reports().len() {
        assert!(escaped.is_empty(), "no case catches {escaped:?}");
    } else {
        println!("wrong samplers: some cases do not hold on this host: {escaped:?} not judged");
    }
}
