//! Memory for one draw: its weights and the tokens that are sorted. A caller may
//! bring it, so that a draw allocates nothing.

use std::mem::MaybeUninit;
use std::slice;

use crate::kernels::rows::Row;
use crate::order::SampleProb;
use crate::request::Rejection;
use crate::weight;

/// The bytes that a vocabulary of `vocab_size` tokens needs, wherever they
/// begin; 0 for a vocabulary that no call accepts.
pub(crate) fn bytes(vocab_size: usize) -> usize {
    if vocab_size == 0 || i32::try_from(vocab_size).is_err() {
        return 0;
    }
    let rows = vocab_size.div_ceil(Row::LEN);
    // Rows begin at a cache line, and the memory anywhere.
    (align_of::<Row>() - 1) + rows * size_of::<Row>() + vocab_size * size_of::<SampleProb>()
}

/// The parts of a workspace.
pub(crate) struct Parts<'w> {
    /// One lane for each token, rounded up to a row.
    pub(crate) rows: &'w mut [MaybeUninit<Row>],
    /// One for each token.
    pub(crate) tokens: &'w mut [MaybeUninit<SampleProb>],
}

/// Cuts `memory` up for `vocab_size` tokens.
pub(crate) fn parts(
    memory: &mut [MaybeUninit<u8>],
    vocab_size: usize,
) -> Result<Parts<'_>, Rejection> {
    let needed = bytes(vocab_size);
    if memory.len() < needed {
        return Err(Rejection::Workspace(needed));
    }
    let row_count = vocab_size.div_ceil(Row::LEN);
    let offset = memory.as_ptr().align_offset(align_of::<Row>());
    let (rows, tokens) = memory[offset..].split_at_mut(row_count * size_of::<Row>());
    let tokens = &mut tokens[..vocab_size * size_of::<SampleProb>()];
    // SAFETY: the bytes of `row_count` rows, from an address aligned for them
    // on; memory that may be uninitialised is valid as such of any type.
    let rows = unsafe { slice::from_raw_parts_mut(rows.as_mut_ptr().cast(), row_count) };
    // SAFETY: as above; behind whole rows any address is aligned for a token,
    // whose alignment divides a row's.
    let tokens = unsafe { slice::from_raw_parts_mut(tokens.as_mut_ptr().cast(), vocab_size) };
    Ok(Parts { rows, tokens })
}

/// Memory for draws from vocabularies up to a size, allocated once. Draws that
/// are made in it allocate nothing.
#[derive(Debug)]
pub struct Workspace {
    memory: Vec<MaybeUninit<u8>>,
}

impl Workspace {
    /// Memory for `vocab_size` tokens: 12 bytes for each, and some to align
    /// them.
    pub fn new(vocab_size: usize) -> Result<Self, Rejection> {
        let mut memory = Vec::new();
        let bytes = bytes(vocab_size);
        weight::reserve(&mut memory, bytes)?;
        // SAFETY: reserved, and such memory needs no value.
        unsafe { memory.set_len(bytes) };
        Ok(Workspace { memory })
    }

    pub(crate) fn memory(&mut self) -> &mut [MaybeUninit<u8>] {
        &mut self.memory
    }
}
