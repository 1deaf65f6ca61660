//! One vector as an HTML page that needs nothing but itself.
//!
//! The page computes no pick: it holds, for positions of the order, the first
//! and the last draw that pick them, by the C reference, and the library was
//! asked for its token at both. In between nothing can change, as the position
//! never falls when the draw rises.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::path::PathBuf;

use colibri_sampler::Request;
use colibri_sampler::oracle::{LIBRARY, Prepared};
use serde::Serialize;

use crate::equal::draw;
use crate::rand::RAND_MAX;
use crate::table::grouped;

/// Positions that a page holds, beside those that the steps of the slider and
/// the draws of the replay pick. Each costs two draws of the library.
const HEAD: usize = 1_024;

/// So many steps that each can be asked for.
const SLIDER_STEPS: i32 = 1_023;

/// What --html asks for.
#[derive(Clone)]
pub struct Wanted {
    pub path: PathBuf,
    /// Which vector of the file, from 0.
    pub vector: usize,
}

/// A page as written, for the report.
#[derive(Serialize)]
pub struct Page {
    pub path: PathBuf,
    pub vector: usize,
    /// Positions whose draws the page holds, and how many a draw can pick.
    pub positions: usize,
    pub pickable: usize,
    /// The library gave the C reference's tokens and counts.
    pub agrees: bool,
}

impl Page {
    pub fn line(&self) -> String {
        let Page {
            vector, positions, ..
        } = self;
        format!(
            "{}: vector {vector}, {} of {} positions that a draw can pick, {}\n",
            self.path.display(),
            grouped(positions),
            grouped(self.pickable),
            if self.agrees {
                "equal at the first and the last draw of each"
            } else {
                "SOME DIFFER"
            },
        )
    }
}

/// What the page draws. Numbers that JSON lacks become null.
#[derive(Serialize)]
struct Data {
    file: String,
    vector: usize,
    vocab_size: usize,
    temperature: f32,
    top_p: f32,
    rand_max: i32,
    slider_steps: i32,
    total_weight: f64,
    cutoff: f64,
    kept: f64,
    nucleus: usize,
    candidates: usize,
    by_buckets: bool,
    /// None where no bucket is left out.
    margin_bucket: Option<usize>,
    routes: String,
    zero_weights: usize,
    nan_weights: usize,
    /// Number, tokens, mass.
    buckets: Vec<(usize, usize, f64)>,
    /// Position, weight, mass up to and with it.
    curve: Vec<(usize, f32, f64)>,
    /// Position, token, logit, weight, first and last draw.
    picks: Vec<(usize, i32, f32, f32, i32, i32)>,
    complete: bool,
    pickable: usize,
    agrees: bool,
}

/// The page of one vector, written; an error is a line about --html.
pub fn write(
    wanted: &Wanted,
    file: &str,
    request: &Request<'_>,
    routes: &BTreeSet<String>,
    draws: impl Iterator<Item = i32>,
) -> Result<Page, String> {
    let data = data(wanted.vector, file, request, routes, draws);
    let json = serde_json::to_string(&data).expect("plain data has a JSON form");
    // A file's name must not end the element that holds it.
    let json = json.replace('<', "\\u003c");
    let html = include_str!("page.html").replacen("@DATA@", &json, 1);
    std::fs::write(&wanted.path, html)
        .map_err(|e| format!("--html {}: {e}", wanted.path.display()))?;
    Ok(Page {
        path: wanted.path.clone(),
        vector: wanted.vector,
        positions: data.picks.len(),
        pickable: data.pickable,
        agrees: data.agrees,
    })
}

fn data(
    vector: usize,
    file: &str,
    request: &Request<'_>,
    routes: &BTreeSet<String>,
    draws: impl Iterator<Item = i32>,
) -> Data {
    let (logits, temperature, top_p) = (request.logits(), request.temperature(), request.top_p());
    let prepared = Prepared::new(logits, temperature, top_p);
    let weights = weights(logits, temperature);
    let counts = crate::count(request);

    let buckets = buckets(&weights);
    let margin_bucket = margin(&buckets, prepared.cutoff()).filter(|_| request.is_cut());
    let candidates = match margin_bucket {
        Some(margin) => buckets[..=margin].iter().map(|bucket| bucket.0).sum(),
        None => logits.len(),
    };

    let starts = Starts::of(&prepared);
    let order = prepared.order();
    let held = held(&prepared, &starts, draws);
    let picks: Vec<_> = held
        .iter()
        .map(|&place| {
            let (position, first, last) = starts.get(place);
            let token = order[position];
            let id = token as usize;
            (position, token, logits[id], weights[id], first, last)
        })
        .collect();
    let of = |raw| draw(&LIBRARY, logits, temperature, top_p, raw).0;
    let tokens_agree = picks
        .iter()
        .all(|&(_, token, _, _, first, last)| of(first) == token && of(last) == token);
    let counts_agree = (candidates, prepared.nucleus()) == (counts.candidates, counts.nucleus);

    Data {
        file: file.to_owned(),
        vector,
        vocab_size: logits.len(),
        temperature,
        top_p,
        rand_max: RAND_MAX,
        slider_steps: SLIDER_STEPS,
        total_weight: prepared.total_weight(),
        cutoff: prepared.cutoff(),
        kept: prepared.cumulative().last().copied().unwrap_or(f64::NAN),
        nucleus: counts.nucleus,
        candidates: counts.candidates,
        by_buckets: request.is_cut(),
        margin_bucket,
        routes: Vec::from_iter(routes.iter().map(String::as_str)).join(", "),
        zero_weights: weights.iter().filter(|&&weight| weight == 0.0).count(),
        nan_weights: weights.iter().filter(|weight| weight.is_nan()).count(),
        buckets: buckets
            .iter()
            .enumerate()
            .filter(|(_, (tokens, _))| *tokens > 0)
            .map(|(number, &(tokens, mass))| (number, tokens, mass))
            .collect(),
        curve: curve(order, &weights, &[counts.nucleus, counts.candidates]),
        complete: picks.len() == starts.0.len(),
        picks,
        pickable: starts.0.len(),
        agrees: tokens_agree && counts_agree,
    }
}

/// As the contract has it. For the picture: what is picked does not come from
/// here, and the candidates are compared with the library's count.
fn weights(logits: &[f32], temperature: f32) -> Vec<f32> {
    let max = logits[1..].iter().fold(
        logits[0],
        |max, &logit| if logit > max { logit } else { max },
    );
    let weight = |&logit: &f32| black_box((logit - max) / temperature).exp();
    logits.iter().map(weight).collect()
}

/// Tokens and mass of each exponent bucket.
fn buckets(weights: &[f32]) -> Vec<(usize, f64)> {
    let mut buckets = vec![(0, 0.0); 256];
    for weight in weights {
        let bucket = &mut buckets[255 - (weight.to_bits() >> 23 & 255) as usize];
        bucket.0 += 1;
        bucket.1 += f64::from(*weight);
    }
    buckets
}

/// The one behind the bucket that reaches the cutoff. None when none does, or
/// none is behind it.
fn margin(buckets: &[(usize, f64)], cutoff: f64) -> Option<usize> {
    let mut total = 0.0;
    let reaches = buckets.iter().position(|(_, mass)| {
        total += mass;
        total >= cutoff
    });
    reaches
        .map(|bucket| bucket + 1)
        .filter(|&margin| margin < buckets.len())
}

/// The positions that a draw can pick, each with its first draw, rising.
struct Starts(Vec<(usize, i32)>);

impl Starts {
    fn of(prepared: &Prepared) -> Self {
        let mut starts = vec![(0, 0)];
        for position in 1..prepared.nucleus() {
            let Some(first) = prepared.first_draw_behind(position - 1) else {
                break;
            };
            let last = starts.last_mut().expect("there is a first one");
            if last.1 == first {
                // No draw is left for the position before.
                last.0 = position;
            } else {
                starts.push((position, first));
            }
        }
        Starts(starts)
    }

    /// Position, first and last draw.
    fn get(&self, place: usize) -> (usize, i32, i32) {
        let (position, first) = self.0[place];
        let last = self.0.get(place + 1).map_or(RAND_MAX, |next| next.1 - 1);
        (position, first, last)
    }

    /// The place of the position that `raw` picks.
    fn place(&self, raw: i32) -> usize {
        self.0.partition_point(|&(_, first)| first <= raw) - 1
    }
}

/// The places of a page: the first ones, and those of the draws that are
/// certain to be looked at.
fn held(prepared: &Prepared, starts: &Starts, draws: impl Iterator<Item = i32>) -> BTreeSet<usize> {
    let mut held: BTreeSet<usize> = (0..starts.0.len().min(2 * HEAD)).collect();
    if held.len() < starts.0.len() {
        held = (0..HEAD).collect();
        let step = |k| (i64::from(k) * i64::from(RAND_MAX) / i64::from(SLIDER_STEPS)) as i32;
        let steps = (0..=SLIDER_STEPS).map(step);
        // Only a rand() of a program's own gives others, and no page does.
        let draws = draws.filter(|&raw| raw >= 0);
        for raw in steps.chain(draws) {
            let place = starts.place(raw);
            debug_assert_eq!(prepared.order()[starts.0[place].0], prepared.pick(raw));
            held.insert(place);
        }
    }
    held
}

/// Enough positions for a smooth line on a logarithmic axis, and the borders.
fn curve(order: &[i32], weights: &[f32], borders: &[usize]) -> Vec<(usize, f32, f64)> {
    const SINGLE: usize = 256;
    const SPREAD: usize = 1_500;
    let last = order.len() - 1;
    let growth = (order.len() as f64).ln() / SPREAD as f64;
    let spread = (0..=SPREAD).map(|k| (growth * k as f64).exp() as usize);
    let even = (0..=SPREAD).map(|k| k * last / SPREAD);
    let borders = borders.iter().flat_map(|&n| [n.saturating_sub(1), n]);
    let positions: BTreeSet<usize> = (0..SINGLE)
        .chain(spread)
        .chain(even)
        .chain(borders)
        .collect();
    let mut mass = 0.0;
    let mut curve = Vec::new();
    for (position, &token) in order.iter().enumerate() {
        let weight = weights[token as usize];
        mass += f64::from(weight);
        if positions.contains(&position) {
            curve.push((position, weight, mass));
        }
    }
    curve
}
