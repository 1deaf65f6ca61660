//! Cases whose cutoff, or the target of a draw, lies within a few ulp of a
//! cumulative sum. Chance does not bring that: `top_p` has 24 bits and a draw
//! 31, so four of the tokens are given what is missing.

use colibri_sampler::oracle::Prepared;

use crate::host;
use crate::plan::{Edge, Plan};
use crate::rand::RAND_MAX;

/// Changes `logits` and the `top_p` of `plan` to what its edge asks for; a raw
/// draw that belongs to it, if there is one.
pub fn build(plan: &mut Plan, logits: &mut [f32], random: &mut fastrand::Rng) -> Option<i32> {
    match plan.edge {
        Edge::None => {}
        Edge::TopP => top_p(plan, logits, random),
        Edge::Cutoff => cutoff(plan, logits, random),
        Edge::Target => return target(plan, logits, random),
        Edge::Exact => exact(plan, logits, random),
    }
    None
}

/// A position of the order: near its head, near its end, or any.
fn position(cumulative: &[f64], random: &mut fastrand::Rng) -> usize {
    let len = cumulative.len();
    match random.u8(..4) {
        0 => random.usize(..len.min(8)),
        1 => len - 1 - random.usize(..len.min(8)),
        2 => {
            // Any by mass, not by count.
            let wanted = random.f64() * cumulative[len - 1];
            cumulative
                .partition_point(|&mass| mass < wanted)
                .min(len - 1)
        }
        _ => random.usize(..len),
    }
}

fn top_p(plan: &mut Plan, logits: &[f32], random: &mut fastrand::Rng) {
    let prepared = Prepared::new(logits, plan.temperature, 1.0);
    let cumulative = prepared.cumulative();
    if !cumulative.is_empty() {
        let share = cumulative[position(cumulative, random)] / prepared.total_weight();
        plan.top_p = near(share as f32, random);
    }
}

/// The float, or one of its neighbours.
fn near(value: f32, random: &mut fastrand::Rng) -> f32 {
    match random.u8(..4) {
        0 => value.next_down(),
        1 => value.next_up(),
        _ => value,
    }
}

fn cutoff(plan: &mut Plan, logits: &mut [f32], random: &mut fastrand::Rng) {
    let light = Light::new(logits, random);
    let prepared = Prepared::new(logits, plan.temperature, 1.0);
    let (cumulative, total) = (prepared.cumulative(), prepared.total_weight());
    if cumulative.is_empty() {
        return;
    }
    let mass = cumulative[position(cumulative, random)];
    let mut share = (mass / total) as f32;
    if f64::from(share) * total >= mass {
        share = share.next_down();
    }
    plan.top_p = share;
    // From below: the light tokens can only raise the cutoff.
    let wanted = mass / f64::from(share);
    light.weigh(
        logits,
        plan.temperature,
        wanted - total + jitter(total, random),
    );
}

/// A few ulp of `value`, more where sums over many tokens are no better.
fn jitter(value: f64, random: &mut fastrand::Rng) -> f64 {
    let ulp = value.next_up() - value;
    let far = if random.bool() { 3.0 } else { 40.0 };
    (far * (random.f64() * 2.0 - 1.0)).round() * ulp
}

fn target(plan: &mut Plan, logits: &mut [f32], random: &mut fastrand::Rng) -> Option<i32> {
    // Every draw is from the whole vocabulary.
    plan.top_p = 1.0;
    let light = Light::new(logits, random);
    let prepared = Prepared::new(logits, plan.temperature, plan.top_p);
    let cumulative = prepared.cumulative();
    let kept = *cumulative.last()?;
    let position = position(cumulative, random);
    let raw = prepared.first_draw_behind(position)? - 1;
    if raw <= 0 {
        return None;
    }
    let wanted = cumulative[position] / (f64::from(raw) / f64::from(RAND_MAX));
    light.weigh(
        logits,
        plan.temperature,
        wanted - kept + jitter(kept, random),
    );
    Some(raw)
}

fn exact(plan: &mut Plan, logits: &mut [f32], random: &mut fastrand::Rng) {
    let bits = random.u32(..=logits.len().ilog2().min(24));
    let count = 1_usize << bits;
    // Spread evenly, from anywhere, and around the end.
    let stride = (logits.len() / count).max(1);
    let start = random.usize(..logits.len());
    logits.fill(f32::NEG_INFINITY);
    for k in 0..count {
        let token = (start + k * stride) % logits.len();
        logits[token] = 0.5;
    }
    let kept = 1 + random.usize(..count);
    plan.top_p = near(kept as f32 / count as f32, random);
}

/// Four tokens that are masked until they are given a weight. Not the maximum.
struct Light([usize; 4]);

impl Light {
    fn new(logits: &mut [f32], random: &mut fastrand::Rng) -> Self {
        let top = (1..logits.len()).fold(0, |top, token| {
            if logits[token] > logits[top] {
                token
            } else {
                top
            }
        });
        let first = random.usize(..logits.len());
        let mut tokens = (first..logits.len()).chain(0..first);
        let light = std::array::from_fn(|_| {
            let token = tokens.by_ref().find(|&token| token != top);
            token.expect("more than four tokens")
        });
        for token in light {
            logits[token] = f32::NEG_INFINITY;
        }
        Light(light)
    }

    /// Gives them `mass` in all, each as much of what is left as a logit can
    /// say.
    fn weigh(self, logits: &mut [f32], temperature: f32, mut mass: f64) {
        let max_logit = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let weight = |logit: f32| f64::from(host::expf((logit - max_logit) / temperature));
        for token in self.0 {
            // Less than a float can be, or no light token at all.
            if !(1e-45..=1.0).contains(&mass) {
                return;
            }
            let mut logit = (f64::from(max_logit) + f64::from(temperature) * mass.ln()) as f32;
            // Rounding may have given too much, and the next could not take it
            // back.
            for _ in 0..4 {
                if weight(logit) <= mass {
                    break;
                }
                logit = logit.next_down();
            }
            if weight(logit) > mass {
                return;
            }
            logits[token] = logit;
            mass -= weight(logit);
        }
    }
}
