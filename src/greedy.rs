//! What argmax means: the first index of the maximum, by strict `>` in index
//! order. A NaN at index 0 stays, a later one never wins, and -0 ties with +0.

use crate::kernels::rows::{Blocks, Row};
use crate::kernels::{self, Engine};

/// Blocks that the values are cut into. The maximum is found with the block that
/// holds it first, and only that block is read again for the index.
const BLOCKS: usize = 32;

/// The argmax of `values`; 0 for none or one.
pub(crate) fn argmax_first(values: &[f32], engine: Engine) -> usize {
    // A NaN at index 0 is never replaced, since nothing is greater.
    if values.len() <= 1 || values[0].is_nan() {
        return 0;
    }
    let rows = rows_per_block(values.len());
    let blocks = Blocks::new(values, rows);
    let mut maxima = [Row::splat(f32::NEG_INFINITY); BLOCKS + 2];
    let maxima = &mut maxima[..blocks.len()];
    let last = blocks.len() - 1;
    engine
        .kernels
        .column_maxima(blocks.body(), rows, &mut maxima[1..last]);
    maxima[0] = *blocks.head();
    maxima[last] = *blocks.tail();
    let max = kernels::greatest(maxima);
    let block = maxima
        .iter()
        .position(|row| row.0.contains(&max))
        .expect("the maximum is that of a block");
    let index = engine
        .kernels
        .nth_between(blocks.block(block), max, max, 0)
        .expect("the block holds its maximum");
    blocks.first_id(block) + index
}

/// So many that there are `BLOCKS` blocks or fewer.
fn rows_per_block(len: usize) -> usize {
    (len / Row::LEN).div_ceil(BLOCKS).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a large vocabulary only a 32nd is read twice.
    #[test]
    fn blocks_are_short() {
        for (len, rows) in [(2, 1), (512, 1), (527, 1), (528, 2), (248_320, 485)] {
            assert_eq!(rows_per_block(len), rows, "{len}");
        }
    }
}
