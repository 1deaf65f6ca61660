//! Exact top-p sampling over large vocabularies, as a drop-in for the two C
//! headers through which the Colibri inference engine draws every token.
//!
//! The promise: the same token as the C code for every draw on the same host.
//! `docs/contract.md` states it to the bit.
#![deny(
    unsafe_op_in_unsafe_fn,
    missing_docs,
    clippy::undocumented_unsafe_blocks,
    clippy::missing_safety_doc
)]

// In the order in which a call passes through them.
mod capi;
mod request;
mod sample;
mod sampler;

mod greedy;
mod nucleus;

mod draw;
mod order;
mod weight;

mod rng;
mod threads;
mod workspace;

mod kernels;

#[cfg(feature = "oracle")]
pub mod oracle;
pub mod trace;

pub use capi::request as ffi;
pub use capi::{argmax_first, sample_prob_desc, serve_sample, serve_sample_sorted};
pub use order::SampleProb;
pub use request::{Params, Rejection, Request};
pub use rng::Rng;
pub use sampler::{BatchRow, Info, Path, Sample, Sampler, sample_batch, top_logprobs};
pub use workspace::Workspace;
