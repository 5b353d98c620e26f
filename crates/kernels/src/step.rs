//! The step buffer: what changes from token to token, in one buffer that the GPU itself advances.
//!
//! Layout in `u32` words (see `shared/step.wgsl.jinja`): a header, four words for every column of a batch, then the
//! page tables.

/// Words before the columns.
pub const HEADER: usize = 16;
/// Words a column: token, position, sequence, row of logits.
pub const COLUMN: usize = 4;
/// Header word: how many columns this step has.
pub const N_COL: usize = 0;
/// Header word: random draws so far.
pub const DRAWS: usize = 1;
/// Header word: tokens written to the ring so far.
pub const RING: usize = 2;

/// First word of the page tables of a step buffer for at most `max_col` columns.
pub const fn pages_at(max_col: usize) -> usize {
    HEADER + COLUMN * max_col
}

/// Words of a step buffer.
pub const fn n_word(max_col: usize, n_seq: usize, pages_per_seq: usize) -> usize {
    pages_at(max_col) + n_seq * pages_per_seq
}
