//! One case: its logits, one sort by the reference, and many draws.

use std::time::Duration;

use colibri_sampler::oracle::{ORIGINAL, Prepared, REFERENCE};

use crate::ask::{Asks, Draw, Entry};
use crate::edge;
use crate::plan::{self, Edge, Plan};
use crate::rand::{EDGES, RAND_MAX};
use crate::tally::{Drawn, Tally};

/// A draw on which two implementations do not agree.
pub struct Difference {
    pub plan: Plan,
    pub logits: Vec<f32>,
    pub raw: i32,
    pub entry: Entry,
    /// The number of the way in which the library was asked; None when the
    /// C sides do not agree.
    pub ask: Option<usize>,
    pub who: String,
    pub got: (i32, Option<usize>),
    pub expected: (i32, usize),
}

/// The memory of a worker.
#[derive(Default)]
pub struct Memory(Vec<f32>);

impl Memory {
    /// `len` floats, `offset` floats behind a boundary of 64 bytes.
    fn floats(&mut self, len: usize, offset: usize) -> &mut [f32] {
        if self.0.len() < len + 32 {
            self.0.resize(len + 32, 0.0);
        }
        let start = self.0.as_ptr().align_offset(64) + offset;
        &mut self.0[start..start + len]
    }
}

/// Runs a case, and stops at its first difference. No more than `draws` draws.
pub fn run(
    seed: u64,
    case: u64,
    draws: u64,
    asks: &Asks,
    memory: &mut Memory,
    tally: &mut Tally,
) -> Result<(), Box<Difference>> {
    let before = cpu_time();
    let mut random = plan::random(seed, case);
    let mut plan = Plan::new(case, &mut random);
    let logits = memory.floats(plan.vocab_size, plan.offset);
    plan.shape().fill(plan.seed, logits);
    let special = edge::build(&mut plan, logits, &mut random);
    let logits = &*logits;

    let prepared = Prepared::new(logits, plan.temperature, plan.top_p);
    tally.case(&plan, nearness(&plan, &prepared, special));
    let argmax = REFERENCE.argmax_first(logits);
    let differs = |draw: &Draw<'_>, ask: Option<usize>, who: &str, got, expected| {
        Box::new(Difference {
            plan,
            logits: draw.logits.to_vec(),
            raw: draw.raw,
            entry: draw.entry,
            ask,
            who: who.to_owned(),
            got,
            expected,
        })
    };
    // The C functions themselves cost a sort a call.
    let plain = plan.vocab_size < 4_100 || random.u8(..4) == 0;
    for k in 0..u64::from(plan.draws).min(draws) {
        let (raw, any) = raw(k, &prepared, special, &mut random);
        let draw = Draw {
            logits,
            temperature: plan.temperature,
            top_p: plan.top_p,
            raw,
            entry: if random.u8(..4) == 0 {
                Entry::ServeSampleSorted
            } else {
                Entry::ServeSample
            },
        };
        let expected = if draw.is_greedy() {
            (argmax, 0)
        } else {
            (prepared.pick(draw.raw), 1)
        };
        if k == 0 && plain {
            for side in [REFERENCE].iter().chain(&ORIGINAL) {
                let got = draw.of(side);
                if got != expected {
                    let got = (got.0, Some(got.1));
                    return Err(differs(&draw, None, side.name, got, expected));
                }
                tally.plain(side.name);
            }
        }
        let chosen = asks.choose(&plan, &mut random);
        let ask = &asks.all[chosen];
        let answer = ask.answer(&draw);
        if answer.token != expected.0 || answer.calls.is_some_and(|calls| calls != expected.1) {
            let got = (answer.token, answer.calls);
            return Err(differs(&draw, Some(chosen), &ask.name, got, expected));
        }
        let drawn = Drawn {
            entry: draw.entry,
            any,
            route: answer.route,
        };
        tally.draw(&plan, chosen, ask, drawn);
    }
    tally.time(plan.class, cpu_time().saturating_sub(before));
    Ok(())
}

/// A raw value: the ends, those at the borders between tokens of the order, and
/// any, of which the second value tells.
fn raw(
    k: u64,
    prepared: &Prepared,
    special: Option<i32>,
    random: &mut fastrand::Rng,
) -> (i32, bool) {
    if let Some(special) = special
        && k.is_multiple_of(4)
    {
        let raw = special.saturating_add(random.i32(-1..=1)).max(0);
        return (raw, false);
    }
    let nucleus = prepared.nucleus();
    match random.u8(..16) {
        // Below 0 too, which only a program's own rand() gives.
        0 | 1 => (EDGES[random.usize(..EDGES.len())], false),
        2..8 if nucleus > 0 => {
            let position = match random.u8(..4) {
                // The head of the order has the wide borders.
                0 => random.usize(..nucleus.min(8)),
                1 => nucleus - 1 - random.usize(..nucleus.min(4)),
                2 => random.usize(..nucleus),
                _ => {
                    let wanted = random.f64() * prepared.cumulative()[nucleus - 1];
                    let masses = prepared.cumulative();
                    masses
                        .partition_point(|&mass| mass < wanted)
                        .min(nucleus - 1)
                }
            };
            let raw = match prepared.first_draw_behind(position) {
                Some(raw) => raw - i32::from(random.bool()),
                None => RAND_MAX,
            };
            (raw, false)
        }
        _ => (random.i32(0..=RAND_MAX), true),
    }
}

/// How far the value that a case was built around is from the nearest cumulative
/// sum, in ulp.
fn nearness(plan: &Plan, prepared: &Prepared, special: Option<i32>) -> Option<f64> {
    let masses = prepared.cumulative();
    let kept = *masses.last()?;
    let value = match (plan.edge, special) {
        (Edge::None, _) => return None,
        (Edge::Target, Some(raw)) => f64::from(raw) / f64::from(RAND_MAX) * kept,
        (Edge::Target, None) => return None,
        _ => prepared.cutoff(),
    };
    let behind = masses.partition_point(|&mass| mass < value);
    let ulp = value.next_up() - value;
    let around = behind.saturating_sub(1)..(behind + 1).min(masses.len());
    let distances = masses[around].iter().map(|mass| (mass - value).abs() / ulp);
    distances.min_by(f64::total_cmp)
}

/// What this thread has computed so far: other work on the machine does not
/// count.
pub fn cpu_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes to the timespec, and only while the call runs.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(status, 0, "a thread has a clock");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
