//! The C oracles that every draw is compared with: `c_tests/reference.c`, ours,
//! and the original headers when a user brought them to `vendor/`.

#![allow(
    missing_docs,
    non_camel_case_types,
    reason = "generated from C headers"
)]
#![allow(clippy::undocumented_unsafe_blocks, clippy::missing_safety_doc)]

include!(concat!(env!("OUT_DIR"), "/oracle.rs"));

/// Whether the original is compiled in.
pub const HAS_ORIGINAL: bool = cfg!(original);
