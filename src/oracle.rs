//! The C oracles that every draw is compared with: `c_tests/reference.c`, ours,
//! and the original headers when a user brought them to `vendor/`. Here is the
//! safe side of both; all that compares asks through it.

use std::ffi::{c_float, c_int, c_void};
use std::ptr::NonNull;
use std::slice;

pub use bindings::*;

#[allow(
    missing_docs,
    clippy::missing_safety_doc,
    non_camel_case_types,
    reason = "generated from C headers"
)]
mod bindings {
    include!(concat!(env!("OUT_DIR"), "/oracle.rs"));
}

/// `serve_sample` and `serve_sample_sorted`.
pub type Draw = unsafe extern "C" fn(*const c_float, c_int, c_float, c_float) -> c_int;
/// `argmax_first`.
pub type Argmax = unsafe extern "C" fn(*const c_float, c_int) -> c_int;
/// `sample_prob_desc`.
pub type Compare = unsafe extern "C" fn(*const c_void, *const c_void) -> c_int;

/// One implementation of the C surface. Whoever makes one vouches that its
/// functions only read, and only what their arguments say.
#[derive(Clone, Copy, Debug)]
pub struct Sampler {
    /// What to call it in a report.
    pub name: &'static str,
    /// With the greedy branch, by buckets where `top_p` cuts.
    pub serve_sample: Draw,
    /// The full sort.
    pub serve_sample_sorted: Draw,
    /// The first index of the maximum.
    pub argmax_first: Argmax,
    /// The comparator, where it can be called by itself.
    pub sample_prob_desc: Option<Compare>,
}

/// The library, through its C surface.
pub const LIBRARY: Sampler = Sampler {
    name: "library",
    serve_sample: crate::serve_sample,
    serve_sample_sorted: crate::serve_sample_sorted,
    argmax_first: crate::argmax_first,
    sample_prob_desc: Some(crate::sample_prob_desc),
};

/// The contract in plain C.
pub const REFERENCE: Sampler = Sampler {
    name: "reference",
    serve_sample: reference_serve_sample,
    serve_sample_sorted: reference_serve_sample_sorted,
    argmax_first: reference_argmax_first,
    sample_prob_desc: None,
};

/// The original, if it is compiled in.
#[cfg(original)]
pub const ORIGINAL: Option<Sampler> = Some(Sampler {
    name: "original",
    serve_sample: original_serve_sample,
    serve_sample_sorted: original_serve_sample_sorted,
    argmax_first: original_argmax_first,
    sample_prob_desc: Some(original_sample_prob_desc),
});
/// The original, if it is compiled in.
#[cfg(not(original))]
pub const ORIGINAL: Option<Sampler> = None;

/// Whether the original is compiled in.
pub const HAS_ORIGINAL: bool = ORIGINAL.is_some();

/// The length that C takes. Every caller has at least one logit: with none C is
/// undefined.
fn c_len(logits: &[f32]) -> c_int {
    assert!(!logits.is_empty(), "an oracle needs a logit");
    c_int::try_from(logits.len()).expect("no more logits than an int counts")
}

impl Sampler {
    /// `serve_sample`, with whatever `rand()` gives.
    pub fn serve_sample(&self, logits: &[f32], temperature: f32, top_p: f32) -> c_int {
        // SAFETY: pointer and length are of one slice, checked by c_len.
        unsafe { (self.serve_sample)(logits.as_ptr(), c_len(logits), temperature, top_p) }
    }

    /// `serve_sample_sorted`, with whatever `rand()` gives.
    pub fn serve_sample_sorted(&self, logits: &[f32], temperature: f32, top_p: f32) -> c_int {
        // SAFETY: as in serve_sample.
        unsafe { (self.serve_sample_sorted)(logits.as_ptr(), c_len(logits), temperature, top_p) }
    }

    /// `argmax_first`.
    pub fn argmax_first(&self, values: &[f32]) -> c_int {
        // SAFETY: as in serve_sample.
        unsafe { (self.argmax_first)(values.as_ptr(), c_len(values)) }
    }
}

/// The reference's token and how it came about.
pub fn reference_trace(logits: &[f32], temperature: f32, top_p: f32) -> (c_int, reference_trace) {
    let mut trace = reference_trace {
        candidates: 0,
        nucleus: 0,
        fell_back: 0,
    };
    // SAFETY: as in Sampler::serve_sample; the trace is written to only while
    // the call runs.
    let token = unsafe {
        reference_serve_sample_traced(
            logits.as_ptr(),
            c_len(logits),
            temperature,
            top_p,
            &mut trace,
        )
    };
    (token, trace)
}

/// The reference's token under all filters, and what it was drawn from. The
/// arguments are what `docs/api.md` accepts, the temperature above 0.
pub fn reference_filtered(
    logits: &[f32],
    params: &crate::Params,
    uniform: f64,
) -> (c_int, reference_filtered) {
    let mut found = reference_filtered {
        nucleus: 0,
        kept: 0.0,
        total_weight: 0.0,
    };
    // SAFETY: as in reference_trace.
    let token = unsafe {
        reference_sample_filtered(
            logits.as_ptr(),
            c_len(logits),
            params.temperature,
            params.top_p,
            params.top_k,
            params.min_p,
            uniform,
            &mut found,
        )
    };
    (token, found)
}

/// One full sort of the reference, from which it answers any number of draws.
#[derive(Debug)]
pub struct Prepared(NonNull<reference_prepared>);

impl Prepared {
    /// Sorts once. Like `serve_sample_sorted` it knows no greedy branch.
    pub fn new(logits: &[f32], temperature: f32, top_p: f32) -> Self {
        // SAFETY: as in Sampler::serve_sample.
        let prepared =
            unsafe { reference_prepare(logits.as_ptr(), c_len(logits), temperature, top_p) };
        Prepared(NonNull::new(prepared).expect("reference_prepare exits when memory runs out"))
    }

    fn get(&self) -> &reference_prepared {
        // SAFETY: valid from reference_prepare until the drop, and nothing
        // writes to it.
        unsafe { self.0.as_ref() }
    }

    /// The token for a raw value of `rand()`.
    pub fn pick(&self, raw: c_int) -> c_int {
        // SAFETY: valid until the drop.
        unsafe { reference_pick(self.0.as_ptr(), raw) }
    }

    /// The number of tokens kept; 0 when the cutoff is NaN.
    pub fn nucleus(&self) -> usize {
        self.get().nucleus as usize
    }

    /// The double sum of the weights.
    pub fn total_weight(&self) -> f64 {
        self.get().total_weight
    }

    /// The mass at which the nucleus is complete.
    pub fn cutoff(&self) -> f64 {
        self.get().cutoff
    }

    /// The token ids of the whole vocabulary, in order.
    pub fn order(&self) -> &[c_int] {
        let prepared = self.get();
        // SAFETY: as many as the vocabulary has, valid until the drop.
        unsafe { slice::from_raw_parts(prepared.order, prepared.vocab_size as usize) }
    }

    /// The cumulative masses of the nucleus, of which the last one is kept.
    pub fn cumulative(&self) -> &[f64] {
        // SAFETY: as many as the nucleus has tokens, valid until the drop.
        unsafe { slice::from_raw_parts(self.get().cumulative, self.nucleus()) }
    }

    /// The smallest raw value whose pick lies behind position `position` of the
    /// order, if there is one: it and the value before it lie on the edge
    /// between two tokens.
    pub fn first_draw_behind(&self, position: usize) -> Option<c_int> {
        assert!(position < self.nucleus(), "a position inside the nucleus");
        // SAFETY: valid until the drop, and the position was checked.
        let raw = unsafe { reference_first_draw_behind(self.0.as_ptr(), position as c_int) };
        (raw >= 0).then_some(raw)
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // SAFETY: from reference_prepare, released once.
        unsafe { reference_release(self.0.as_ptr()) }
    }
}
