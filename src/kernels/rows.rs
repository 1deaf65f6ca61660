//! Sixteen floats at a time: how logits of any alignment are read, and where
//! compressed ones go.

use crate::request::Rejection;

/// Sixteen floats, one cache line: the unit in which every tier reads.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Row(pub(crate) [f32; Row::LEN]);

impl Row {
    pub(crate) const LEN: usize = 16;

    pub(crate) const fn splat(value: f32) -> Self {
        Row([value; Row::LEN])
    }

    /// `values` (at most sixteen) and -inf, a masked token, behind them.
    pub(crate) fn padded(values: &[f32]) -> Self {
        let mut row = Row::splat(f32::NEG_INFINITY);
        row.0[..values.len()].copy_from_slice(values);
        row
    }
}

/// Rows as the floats that they are made of.
pub(crate) fn floats(rows: &[Row]) -> &[f32] {
    // SAFETY: a Row is sixteen floats without padding (size 64), so the rows
    // are 16 * len floats in a row.
    unsafe { std::slice::from_raw_parts(rows.as_ptr().cast(), rows.len() * Row::LEN) }
}

/// The same, to write.
pub(crate) fn floats_mut(rows: &mut [Row]) -> &mut [f32] {
    // SAFETY: as in `floats`; any float is a valid lane.
    unsafe { std::slice::from_raw_parts_mut(rows.as_mut_ptr().cast(), rows.len() * Row::LEN) }
}

/// Logits as blocks of aligned rows. Reading across cache lines halves the speed
/// of a scan, so the ragged ends are copied into rows of their own: block 0 is
/// what stands in front of the first cache line, the last block what stands
/// behind the last whole one.
pub(crate) struct Blocks<'a> {
    head: Row,
    head_len: usize,
    body: &'a [Row],
    tail: Row,
    tail_len: usize,
    /// Rows in a block of the body; the last one may have fewer.
    rows: usize,
}

impl<'a> Blocks<'a> {
    /// `rows` is at least 1.
    pub(crate) fn new(logits: &'a [f32], rows: usize) -> Self {
        let bytes_over = logits.as_ptr().addr() % align_of::<Row>();
        let to_next_line = (align_of::<Row>() - bytes_over) / size_of::<f32>() % Row::LEN;
        let (head, rest) = logits.split_at(to_next_line.min(logits.len()));
        let (whole, tail) = rest.split_at(rest.len() / Row::LEN * Row::LEN);
        // SAFETY: `whole` starts on a cache line, or is empty, and holds sixteen
        // floats for each row. Floats are aligned to their size, so the distance
        // to the line above is a whole number of them.
        let body = unsafe {
            let first = if whole.is_empty() {
                std::ptr::NonNull::dangling().as_ptr()
            } else {
                whole.as_ptr().cast()
            };
            std::slice::from_raw_parts(first, whole.len() / Row::LEN)
        };
        Blocks {
            head: Row::padded(head),
            head_len: head.len(),
            body,
            tail: Row::padded(tail),
            tail_len: tail.len(),
            rows,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.body.len().div_ceil(self.rows) + 2
    }

    /// The most rows that a block has.
    pub(crate) fn rows_per_block(&self) -> usize {
        self.rows
    }

    /// The rows of the body.
    pub(crate) fn body(&self) -> &'a [Row] {
        self.body
    }

    pub(crate) fn head(&self) -> &Row {
        &self.head
    }

    pub(crate) fn tail(&self) -> &Row {
        &self.tail
    }

    /// The rows of one block.
    pub(crate) fn block(&self, block: usize) -> &[Row] {
        if block == 0 {
            return std::slice::from_ref(&self.head);
        }
        if block == self.len() - 1 {
            return std::slice::from_ref(&self.tail);
        }
        let start = (block - 1) * self.rows;
        &self.body[start..self.body.len().min(start.saturating_add(self.rows))]
    }

    /// The logits of one block, without what pads them.
    pub(crate) fn floats(&self, block: usize) -> &[f32] {
        let floats = floats(self.block(block));
        if block == 0 {
            &floats[..self.head_len]
        } else if block == self.len() - 1 {
            &floats[..self.tail_len]
        } else {
            floats
        }
    }

    /// The token id of lane 0 of a block's first row.
    pub(crate) fn first_id(&self, block: usize) -> usize {
        if block == 0 {
            return 0;
        }
        let rows_before = (block - 1).saturating_mul(self.rows);
        self.head_len + self.body.len().min(rows_before) * Row::LEN
    }
}

/// A growing run of floats in rows, which kernels append compressed lanes to.
#[derive(Default)]
pub(crate) struct Buffer {
    rows: Vec<Row>,
    len: usize,
}

impl Buffer {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Room for `more` floats and the row that a compress may write beyond them.
    pub(crate) fn reserve(&mut self, more: usize) -> Result<(), Rejection> {
        let rows = (self.len + more).div_ceil(Row::LEN) + 1;
        if rows > self.rows.len() {
            self.rows
                .try_reserve(rows - self.rows.len())
                .map_err(|_| Rejection::OutOfMemory)?;
            self.rows.resize(rows, Row::splat(0.0));
        }
        Ok(())
    }

    /// The sixteen floats behind the last one.
    ///
    /// Panics unless room for them was reserved.
    pub(crate) fn spare(&mut self) -> &mut [f32; Row::LEN] {
        let len = self.len;
        (&mut floats_mut(&mut self.rows)[len..len + Row::LEN])
            .try_into()
            .expect("sixteen floats")
    }

    /// Takes in the first `count` floats of `spare`.
    pub(crate) fn grow(&mut self, count: usize) {
        self.len += count;
        debug_assert!(self.len <= self.rows.len() * Row::LEN);
    }

    /// The floats, and `fill` up to the end of their last row.
    pub(crate) fn padded(&mut self, fill: f32) -> &mut [Row] {
        let rows = self.len.div_ceil(Row::LEN);
        let len = self.len;
        let used = &mut self.rows[..rows];
        floats_mut(used)[len..].fill(fill);
        used
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [f32] {
        let len = self.len;
        &mut floats_mut(&mut self.rows)[..len]
    }

    pub(crate) fn as_slice(&self) -> &[f32] {
        &floats(&self.rows)[..self.len]
    }
}
