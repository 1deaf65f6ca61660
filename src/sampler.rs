//! Draws by the rules of the `colibri_` functions: the caller's own number, a
//! refusal instead of a guess, filters, and a record of what was drawn from.

use std::mem::MaybeUninit;

use crate::draw;
use crate::greedy;
use crate::kernels::rows::{self, Row};
use crate::kernels::{self, Engine, Scale};
use crate::nucleus::filtered::{self, Search};
use crate::nucleus::{certified, top};
use crate::order;
use crate::request::{self, DrawRequest, Params, Rejection, Request};
use crate::sample::{self, Way};
use crate::threads;
use crate::weight;
use crate::workspace::{self, Workspace};

/// The path by which a token was found. Later versions may add some.
///
/// cbindgen:rename-all=QualifiedScreamingSnakeCase
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Path {
    /// The argmax, at temperature 0.
    Greedy,
    /// Exponent buckets, then a sort of what they let through.
    Buckets,
    /// Exponent buckets that ran out below the cutoff, then the full sort.
    FellBack,
    /// A sort of the whole vocabulary.
    FullSort,
    /// A sort of what `top_k` or `min_p` leaves.
    Selection,
}

/// What a token was drawn from.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Info {
    /// The natural logarithm of the token's probability over the whole
    /// vocabulary, at the temperature of the draw. 0 for a greedy token.
    pub logprob: f64,
    /// The same over the nucleus.
    pub nucleus_logprob: f64,
    /// The sum of the weights of the whole vocabulary, the largest being 1.
    pub total_weight: f64,
    /// The sum of the weights of the nucleus: its share is
    /// `kept / total_weight`.
    pub kept: f64,
    /// Tokens in the nucleus, all that could have been drawn.
    pub nucleus: usize,
    /// Tokens that were sorted to find it. 0 for a greedy token.
    pub candidates: usize,
    /// The path by which the token was found.
    pub path: Path,
}

/// A token and what it was drawn from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The token id.
    pub token: i32,
    /// What it was drawn from.
    pub info: Info,
}

/// Draws tokens by parameters that were checked once.
///
/// A row of logits is one `f32` for each token id, at least 1 and at most
/// `i32::MAX` of them, neither NaN nor +inf, and one at least not -inf. The
/// uniform number is in [0, 1].
///
/// ```
/// use colibri_sampler::{Params, Rng, Sampler};
///
/// let sampler = Sampler::new(Params {
///     temperature: 0.7,
///     top_k: 20,
///     top_p: 0.95,
///     ..Params::default()
/// })?;
/// let logits = [0.5, 2.0, -1.0, f32::NEG_INFINITY];
/// let mut rng = Rng::new(1234, 0);
/// let token = sampler.sample(&logits, rng.uniform())?;
/// assert!((0..3).contains(&token));
/// # Ok::<(), colibri_sampler::Rejection>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    params: Params,
}

impl Sampler {
    /// Refuses what [`Params::check`] refuses.
    pub fn new(params: Params) -> Result<Self, Rejection> {
        params.check()?;
        Ok(Sampler { params })
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The token id for one draw.
    ///
    /// ```
    /// use colibri_sampler::{Params, Rejection, Sampler};
    ///
    /// let greedy = Sampler::new(Params { temperature: 0.0, ..Params::default() })?;
    /// assert_eq!(greedy.sample(&[1.0, 3.0, 3.0], 0.5), Ok(1));
    /// assert_eq!(greedy.sample(&[1.0, f32::NAN], 0.5), Err(Rejection::Logit(1)));
    /// assert_eq!(greedy.sample(&[1.0, 3.0], 1.5), Err(Rejection::Uniform));
    /// # Ok::<(), Rejection>(())
    /// ```
    pub fn sample(&self, logits: &[f32], uniform: f64) -> Result<i32, Rejection> {
        let draw = DrawRequest::new(logits, &self.params, uniform)?;
        token(&draw, None, Way::of_process())
    }

    /// The same without an allocation.
    ///
    /// ```
    /// use colibri_sampler::{Params, Sampler, Workspace};
    ///
    /// let sampler = Sampler::new(Params::default())?;
    /// let mut workspace = Workspace::new(3)?;
    /// assert_eq!(sampler.sample_in(&mut workspace, &[0.0, 5.0, 1.0], 0.5), Ok(1));
    /// # Ok::<(), colibri_sampler::Rejection>(())
    /// ```
    pub fn sample_in(
        &self,
        workspace: &mut Workspace,
        logits: &[f32],
        uniform: f64,
    ) -> Result<i32, Rejection> {
        let draw = DrawRequest::new(logits, &self.params, uniform)?;
        token(&draw, Some(workspace.memory()), Way::of_process())
    }

    /// The token for one draw, and what it was drawn from.
    ///
    /// ```
    /// use colibri_sampler::{Params, Sampler};
    ///
    /// let sampler = Sampler::new(Params { top_p: 0.5, ..Params::default() })?;
    /// let sample = sampler.sample_with_info(&[0.0, 0.0, 0.0, 0.0], 1.0)?;
    /// assert_eq!(sample.token, 1);
    /// assert_eq!(sample.info.nucleus, 2);
    /// assert_eq!(sample.info.logprob, -(4.0_f64.ln()));
    /// assert_eq!(sample.info.nucleus_logprob, -(2.0_f64.ln()));
    /// # Ok::<(), colibri_sampler::Rejection>(())
    /// ```
    pub fn sample_with_info(&self, logits: &[f32], uniform: f64) -> Result<Sample, Rejection> {
        let draw = DrawRequest::new(logits, &self.params, uniform)?;
        sample(&draw, None, Way::of_process())
    }

    /// The same without an allocation.
    pub fn sample_with_info_in(
        &self,
        workspace: &mut Workspace,
        logits: &[f32],
        uniform: f64,
    ) -> Result<Sample, Rejection> {
        let draw = DrawRequest::new(logits, &self.params, uniform)?;
        sample(&draw, Some(workspace.memory()), Way::of_process())
    }
}

/// One row of a batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchRow<'a> {
    /// One logit for each token id.
    pub logits: &'a [f32],
    /// The row's own parameters.
    pub params: Params,
    /// The row's own draw, in [0, 1].
    pub uniform: f64,
}

/// The token for each of `rows`, or why there is none: as [`Sampler::sample`]
/// row by row, on up to `threads` threads that end before the call returns.
/// Refused as a whole only when there is no memory for the results.
///
/// ```
/// use colibri_sampler::{BatchRow, Params, Rejection, sample_batch};
///
/// let row = |logits| BatchRow { logits, params: Params::default(), uniform: 0.0 };
/// let tokens = sample_batch(&[row(&[1.0, 2.0]), row(&[f32::NAN])], 2)?;
/// assert_eq!(tokens, [Ok(1), Err(Rejection::Logit(0))]);
/// # Ok::<(), Rejection>(())
/// ```
pub fn sample_batch(
    rows: &[BatchRow<'_>],
    threads: usize,
) -> Result<Vec<Result<i32, Rejection>>, Rejection> {
    let mut results = Vec::new();
    weight::reserve(&mut results, rows.len())?;
    let slots = Slots(results.as_mut_ptr());
    threads::for_each_row(rows.len(), threads, &|_, row| {
        let BatchRow {
            logits,
            params,
            uniform,
        } = rows[row];
        let result = DrawRequest::new(logits, &params, uniform)
            .and_then(|draw| token(&draw, None, Way::of_process()));
        slots.put(row, result);
    });
    // SAFETY: reserved above, and for_each_row has put one into each.
    unsafe { results.set_len(rows.len()) };
    Ok(results)
}

/// Where the threads of a batch leave results, each in a place of its own.
struct Slots(*mut Result<i32, Rejection>);

// SAFETY: `put` is called once for each row, so no two threads write to one
// place, and nobody reads before they are joined.
unsafe impl Sync for Slots {}

impl Slots {
    fn put(&self, row: usize, result: Result<i32, Rejection>) {
        // SAFETY: `sample_batch` reserved a place for each row.
        unsafe { self.0.add(row).write(result) }
    }
}

/// Writes the ids of the `ids.len()` best tokens in the contract's order, and
/// the natural logarithms of their probabilities at `temperature` over the whole
/// vocabulary. Both slices have the same length, at least 1 and at most that of
/// `logits`; a temperature of 0 gives no probabilities and is refused.
///
/// ```
/// use colibri_sampler::top_logprobs;
///
/// let (mut ids, mut logprobs) = ([0; 2], [0.0; 2]);
/// top_logprobs(&[1.0, 3.0, 3.0, -2.0], 1.0, &mut ids, &mut logprobs)?;
/// assert_eq!(ids, [1, 2]);
/// assert_eq!(logprobs[0], logprobs[1]);
/// # Ok::<(), colibri_sampler::Rejection>(())
/// ```
pub fn top_logprobs(
    logits: &[f32],
    temperature: f32,
    ids: &mut [i32],
    logprobs: &mut [f64],
) -> Result<(), Rejection> {
    if ids.len() != logprobs.len() {
        return Err(Rejection::TopK);
    }
    let count = ids.len();
    let mut places = ids.iter_mut().zip(logprobs);
    write_top_logprobs(logits, temperature, count, None, |id, logprob| {
        if let Some((id_out, logprob_out)) = places.next() {
            (*id_out, *logprob_out) = (id, logprob);
        }
    })
}

/// `top_logprobs` into any place, in any memory. Nothing is written unless all
/// is.
pub(crate) fn write_top_logprobs(
    logits: &[f32],
    temperature: f32,
    count: usize,
    memory: Option<&mut [MaybeUninit<u8>]>,
    mut write: impl FnMut(i32, f64),
) -> Result<(), Rejection> {
    let request = Request::new(logits, temperature, 1.0)?;
    if !(temperature > 0.0 && temperature <= f32::MAX) {
        return Err(Rejection::Temperature);
    }
    if !(1..=logits.len()).contains(&count) {
        return Err(Rejection::TopK);
    }
    in_memory(memory, logits.len(), |memory| {
        let engine = Way::of_process().in_mode().engine;
        let weighed = Weighed::of(&request, memory, engine)?;
        let log_total = weight::total(weighed.weights).ln();
        for token in filtered::head(weighed.weights, count, weighed.tokens) {
            let logit = logits[token.id as usize];
            write(token.id, weighed.scale.log_weight(logit) - log_total);
        }
        Ok(())
    })
}

/// The token of `draw`. Without memory of the caller's it may be found by the
/// certified path, which allocates what it needs.
pub(crate) fn token(
    draw: &DrawRequest<'_>,
    memory: Option<&mut [MaybeUninit<u8>]>,
    way: Way,
) -> Result<i32, Rejection> {
    let way = way.in_mode();
    let request = &draw.request;
    if memory.is_none() && draw.is_plain() && !request.is_greedy() {
        let logits = request.logits();
        if way.certify && logits.len() > sample::SHORT {
            // It answers only where every weight is finite: check_scan would pass.
            if let Some(report) = certified::sample(request, draw.uniform, way.engine)? {
                return Ok(report.token);
            }
        }
        let scan = kernels::scan(logits, way.engine.kernels);
        request::check_scan(logits, scan.max_logit, scan.nan)?;
        let exactly = Way {
            certify: false,
            ..way
        };
        return Ok(sample::sample_nucleus(request, draw.uniform, exactly)?.token);
    }
    if request.is_greedy() {
        return Ok(greedy(request.logits(), memory.as_deref(), way.engine)?.token);
    }
    exact_token(draw, memory, way.engine)
}

/// The token by exact weights, of few tokens where `top_k` leaves few.
fn exact_token(
    draw: &DrawRequest<'_>,
    memory: Option<&mut [MaybeUninit<u8>]>,
    engine: Engine,
) -> Result<i32, Rejection> {
    let vocab_size = draw.request.logits().len();
    in_memory(memory, vocab_size, |memory| {
        if leaves_few(draw.top_k, vocab_size) {
            let parts = workspace::parts(memory, vocab_size)?;
            if let Some(head) = top::head(draw, parts, engine)? {
                let nucleus = filtered::from_head(draw, head.tokens, head.total);
                return Ok(draw::pick(&nucleus, draw.uniform));
            }
        }
        let weighed = Weighed::of(&draw.request, memory, engine)?;
        let total = || weight::total(weighed.weights);
        let (nucleus, _) = filtered::nucleus(draw, weighed.weights, total, weighed.tokens);
        Ok(draw::pick(&nucleus, draw.uniform))
    })
}

/// Whether a selection of the `top_k` heaviest pays.
fn leaves_few(top_k: usize, vocab_size: usize) -> bool {
    top_k < vocab_size && vocab_size > sample::SHORT
}

/// The token of `draw`, and what it was drawn from.
pub(crate) fn sample(
    draw: &DrawRequest<'_>,
    memory: Option<&mut [MaybeUninit<u8>]>,
    way: Way,
) -> Result<Sample, Rejection> {
    let engine = way.in_mode().engine;
    let request = &draw.request;
    let logits = request.logits();
    if request.is_greedy() {
        return greedy(logits, memory.as_deref(), engine);
    }
    in_memory(memory, logits.len(), |memory| {
        let weighed = Weighed::of(request, memory, engine)?;
        let total_weight = weight::total(weighed.weights);
        let (nucleus, search) =
            filtered::nucleus(draw, weighed.weights, || total_weight, weighed.tokens);
        let token = draw::pick(&nucleus, draw.uniform);
        let log_weight = weighed.scale.log_weight(logits[token as usize]);
        let info = Info {
            logprob: log_weight - total_weight.ln(),
            nucleus_logprob: log_weight - nucleus.kept.ln(),
            total_weight,
            kept: nucleus.kept,
            nucleus: nucleus.len,
            candidates: nucleus.order.len(),
            path: match search {
                Search::Buckets => Path::Buckets,
                Search::FellBack => Path::FellBack,
                Search::FullSort => Path::FullSort,
                Search::Selection => Path::Selection,
            },
        };
        Ok(Sample { token, info })
    })
}

/// The argmax: all probability is its own.
fn greedy(
    logits: &[f32],
    memory: Option<&[MaybeUninit<u8>]>,
    engine: Engine,
) -> Result<Sample, Rejection> {
    // A workspace that is too small is refused whatever the temperature.
    let needed = workspace::bytes(logits.len());
    if memory.is_some_and(|memory| memory.len() < needed) {
        return Err(Rejection::Workspace(needed));
    }
    let scan = kernels::scan(logits, engine.kernels);
    request::check_scan(logits, scan.max_logit, scan.nan)?;
    Ok(Sample {
        token: greedy::argmax_first(logits, engine) as i32,
        info: Info {
            logprob: 0.0,
            nucleus_logprob: 0.0,
            total_weight: 1.0,
            kept: 1.0,
            nucleus: 1,
            candidates: 0,
            path: Path::Greedy,
        },
    })
}

/// Runs `work` in the caller's memory, or in memory that it allocates.
fn in_memory<T>(
    memory: Option<&mut [MaybeUninit<u8>]>,
    vocab_size: usize,
    work: impl FnOnce(&mut [MaybeUninit<u8>]) -> Result<T, Rejection>,
) -> Result<T, Rejection> {
    match memory {
        Some(memory) => work(memory),
        None => work(Workspace::new(vocab_size)?.memory()),
    }
}

/// The weights of a vocabulary in a workspace, and its room for tokens.
struct Weighed<'w> {
    /// By token id.
    weights: &'w [f32],
    tokens: &'w mut [MaybeUninit<order::SampleProb>],
    scale: Scale,
}

impl<'w> Weighed<'w> {
    /// Refuses logits that give no finite weights.
    fn of(
        request: &Request<'_>,
        memory: &'w mut [MaybeUninit<u8>],
        engine: Engine,
    ) -> Result<Self, Rejection> {
        let logits = request.logits();
        let parts = workspace::parts(memory, logits.len())?;
        let scan = kernels::scan(logits, engine.kernels);
        request::check_scan(logits, scan.max_logit, scan.nan)?;
        let scale = Scale {
            max_logit: scan.max_logit,
            temperature: request.temperature(),
        };
        for (row, logits) in parts.rows.iter_mut().zip(logits.chunks(Row::LEN)) {
            row.write(Row::padded(logits));
        }
        // SAFETY: there are as many rows as chunks, and each was written.
        let rows = unsafe { parts.rows.assume_init_mut() };
        weight::weigh(rows, logits.len(), scale, false, engine);
        Ok(Weighed {
            weights: &rows::floats(rows)[..logits.len()],
            tokens: parts.tokens,
            scale,
        })
    }
}

impl Scale {
    /// The logarithm of a weight, from the logit: a float weight has lost much
    /// of it where it is small.
    fn log_weight(self, logit: f32) -> f64 {
        (f64::from(logit) - f64::from(self.max_logit)) / f64::from(self.temperature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_is_for_large_vocabularies_that_are_filtered() {
        assert!(leaves_few(1, 513) && leaves_few(512, 513));
        assert!(!leaves_few(513, 513));
        assert!(!leaves_few(1, 512));
    }
}
