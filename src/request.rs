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
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::VocabSize(n) => write!(f, "V is {n}, must be at least 1"),
            Rejection::Null(argument) => write!(f, "{argument} is NULL"),
            Rejection::TooLong(n) => write!(f, "logits has {n} values, at most {}", i32::MAX),
            Rejection::OutOfMemory => f.write_str("OOM sampling"),
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
