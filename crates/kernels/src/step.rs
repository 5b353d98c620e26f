//! The step buffer: what changes from token to token, in one buffer that the GPU itself advances.
//!
//! Layout in `u32` words (see `shared/step.wgsl.jinja`): a header, four words for every column of a batch, then the
//! page tables.

/// Words before the columns.
pub const HEADER: usize = 16;
/// Words a column: token, position, sequence, and one that is reserved.
pub const COLUMN: usize = 4;
/// Word of a column: its position.
pub const POSITION: usize = 1;
/// Word of a column: its sequence.
pub const SEQUENCE: usize = 2;
/// Header word: how many columns this step has.
pub const N_COL: usize = 0;
/// Header word: the column whose logits are wanted.
pub const PICK: usize = 1;
/// Header word: random draws so far.
pub const DRAWS: usize = 2;
/// Header word: tokens written to the ring so far.
pub const RING: usize = 3;

/// First word of the page tables of a step buffer for at most `max_col` columns.
pub const fn pages_at(max_col: usize) -> usize {
    HEADER + COLUMN * max_col
}

/// Words of a step buffer.
pub const fn n_word(max_col: usize, n_seq: usize, pages_per_seq: usize) -> usize {
    pages_at(max_col) + n_seq * pages_per_seq
}

/// What choosing `token` makes of a step: one column, the picked one's next position.
///
/// This is what the kernels `argmax` and `sample` do to the buffer.
pub fn advance(words: &mut [u32], ring: &mut [u32], token: u32) {
    let picked = HEADER + COLUMN * words[PICK] as usize;
    let (pos, seq) = (words[picked + 1] + 1, words[picked + 2]);
    words[HEADER] = token;
    words[HEADER + 1] = pos;
    words[HEADER + 2] = seq;
    words[N_COL] = 1;
    words[PICK] = 0;
    let n = ring.len();
    ring[words[RING] as usize & (n - 1)] = token;
    words[DRAWS] += 1;
    words[RING] += 1;
}
