//! Validated logits and parameters, and every rule by which they are refused.

use std::fmt;

/// Why a call is refused. `Display` names the argument, as the C functions
/// print it behind their own name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// A vocabulary without a token where a token is asked for.
    VocabSize(i64),
    /// No logits where they would be read. Holds the argument's name.
    Null(&'static str),
    /// More tokens than an id of 32 bits can tell apart.
    TooLong(usize),
    /// An allocation failed.
    OutOfMemory,
    /// A draw that is NaN or outside [0, 1].
    Uniform,
    /// A temperature that is NaN, negative or infinite; for log-probabilities
    /// also 0.
    Temperature,
    /// A `top_k` below 0, or a number of tokens that the vocabulary has not.
    TopK,
    /// A `min_p` that is NaN or outside [0, 1].
    MinP,
    /// A logit that is NaN or +inf: the first one's index.
    Logit(usize),
    /// Every logit is -inf.
    AllMasked,
    /// Rows that overlap, or that do not fit into an address space.
    Stride,
    /// A workspace that is too small. Holds the bytes that are needed.
    Workspace(usize),
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::VocabSize(n) => write!(f, "V is {n}, must be at least 1"),
            Rejection::Null(argument) => write!(f, "{argument} is NULL"),
            Rejection::TooLong(n) => write!(f, "logits has {n} values, at most {}", i32::MAX),
            Rejection::OutOfMemory => f.write_str("OOM sampling"),
            Rejection::Uniform => f.write_str("uniform is NaN or outside [0, 1]"),
            Rejection::Temperature => f.write_str("temperature is NaN or out of range"),
            Rejection::TopK => f.write_str("top_k is negative, or k no number of tokens"),
            Rejection::MinP => f.write_str("min_p is NaN or outside [0, 1]"),
            Rejection::Logit(index) => write!(f, "logit {index} is NaN or +inf"),
            Rejection::AllMasked => f.write_str("every logit is -inf"),
            Rejection::Stride => f.write_str("stride is less than a row, or too large"),
            Rejection::Workspace(bytes) => write!(f, "workspace has less than {bytes} bytes"),
        }
    }
}

impl std::error::Error for Rejection {}

/// One vector of logits and the parameters of a draw from it.
///
/// Any float is accepted for logits, temperature and `top_p`; the contract says
/// what each means.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    logits: &'a [f32],
    temperature: f32,
    top_p: f32,
}

impl<'a> Request<'a> {
    /// Takes `logits` (one per token id, at least 1 and at most `i32::MAX`), a
    /// temperature (not above 0: greedy) and `top_p` (outside the open interval
    /// (0, 1): the whole vocabulary).
    pub fn new(logits: &'a [f32], temperature: f32, top_p: f32) -> Result<Self, Rejection> {
        if logits.is_empty() {
            return Err(Rejection::VocabSize(0));
        }
        if i32::try_from(logits.len()).is_err() {
            return Err(Rejection::TooLong(logits.len()));
        }
        Ok(Request {
            logits,
            temperature,
            top_p,
        })
    }

    /// The raw scores, one per token id.
    pub fn logits(&self) -> &'a [f32] {
        self.logits
    }

    /// The divisor of the logits.
    pub fn temperature(&self) -> f32 {
        self.temperature
    }

    /// The share of the total weight that the nucleus has to reach.
    pub fn top_p(&self) -> f32 {
        self.top_p
    }

    /// Whether the answer is the argmax and no number is drawn: a temperature
    /// of NaN is not.
    pub fn is_greedy(&self) -> bool {
        self.temperature <= 0.0
    }

    /// Whether `top_p` cuts at all. NaN does not.
    pub fn is_cut(&self) -> bool {
        self.top_p > 0.0 && self.top_p < 1.0
    }

    /// The mass at which the nucleus is complete.
    pub(crate) fn cutoff(&self, total_weight: f64) -> f64 {
        if self.is_cut() {
            f64::from(self.top_p) * total_weight
        } else {
            total_weight
        }
    }
}

/// What shapes the distribution that a draw is made from. `docs/api.md` says to
/// the bit what each filter means.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// The divisor of the logits, finite. 0: the argmax.
    pub temperature: f32,
    /// The share of the total weight that the nucleus has to reach. Outside the
    /// open interval (0, 1), and NaN: no cut.
    pub top_p: f32,
    /// How many tokens are left, counted along the order. 0: all.
    pub top_k: i32,
    /// The least weight of a token as a share of the largest one, in [0, 1].
    /// 0: no bound.
    pub min_p: f32,
}

impl Default for Params {
    /// Temperature 1 and no filter.
    fn default() -> Self {
        Params {
            temperature: 1.0,
            top_p: 1.0,
            top_k: 0,
            min_p: 0.0,
        }
    }
}

impl Params {
    /// Whether a draw with these parameters is possible.
    pub fn check(&self) -> Result<(), Rejection> {
        // -0 is 0; a NaN is in no range.
        if !(0.0..=f32::MAX).contains(&self.temperature) {
            return Err(Rejection::Temperature);
        }
        if self.top_k < 0 {
            return Err(Rejection::TopK);
        }
        if !(0.0..=1.0).contains(&self.min_p) {
            return Err(Rejection::MinP);
        }
        Ok(())
    }
}

/// One draw by the rules of the `colibri_` functions. Of the logits only the
/// number is checked here: `check_scan` judges what a scan of them
/// finds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DrawRequest<'a> {
    pub(crate) request: Request<'a>,
    pub(crate) uniform: f64,
    /// The tokens that `top_k` leaves: at least one, at most all.
    pub(crate) top_k: usize,
    pub(crate) min_p: f32,
}

impl<'a> DrawRequest<'a> {
    pub(crate) fn new(logits: &'a [f32], params: &Params, uniform: f64) -> Result<Self, Rejection> {
        let request = Request::new(logits, params.temperature, params.top_p)?;
        params.check()?;
        if !(0.0..=1.0).contains(&uniform) {
            return Err(Rejection::Uniform);
        }
        let top_k = match params.top_k as usize {
            0 => logits.len(),
            top_k => top_k.min(logits.len()),
        };
        Ok(DrawRequest {
            request,
            uniform,
            top_k,
            min_p: params.min_p,
        })
    }

    /// Whether `serve_sample` would draw from the same nucleus.
    pub(crate) fn is_plain(&self) -> bool {
        self.top_k == self.request.logits.len() && self.min_p == 0.0
    }
}

/// Refuses logits that give no finite weights. `max_logit` and `nan` are what a
/// scan found; the place is looked for only when something is wrong.
pub(crate) fn check_scan(logits: &[f32], max_logit: f32, nan: bool) -> Result<(), Rejection> {
    if !nan && max_logit.is_finite() {
        return Ok(());
    }
    let bad = |logit: &f32| logit.is_nan() || *logit == f32::INFINITY;
    match logits.iter().position(bad) {
        Some(index) => Err(Rejection::Logit(index)),
        None => Err(Rejection::AllMasked),
    }
}
