//! The step buffer: per-token state in one buffer that the GPU advances itself.
//!
//! Layout in `u32` words (see `shared/step.wgsl.jinja`): a header, four words per column of a batch, the page tables,
//! the picks (columns whose logits are needed, at most [`MAX_PICK`]), two words per sequence, and, in plans that accept
//! embedding rows, three more per column.

/// Words before the columns.
pub const HEADER: usize = 16;
/// Words per column: token, position, sequence, and the source of its embedding.
pub const COLUMN: usize = 4;
/// Word of a column: its position.
pub const POSITION: usize = 1;
/// Word of a column: its sequence.
pub const SEQUENCE: usize = 2;
/// Word of a column: [`TOKEN`], [`CHOSEN`], or [`FIRST_ROW`] plus a row index.
pub const SOURCE: usize = 3;
/// [`SOURCE`] of a column that uses its own token.
pub const TOKEN: u32 = 0;
/// [`SOURCE`] of a column whose token `take_chosen` replaces by the last one that its sequence chose.
pub const CHOSEN: u32 = 1;
/// [`SOURCE`] of a column whose embedding `take_rows` replaces by the first uploaded row.
pub const FIRST_ROW: u32 = 2;
/// Header word: number of columns in this step.
pub const N_COL: usize = 0;
/// Header word: number of columns with logits.
pub const N_PICK: usize = 1;
/// Header word: number of leading columns, each of a sequence with few columns in this step, whose attention goes
/// column by column; tiles take the others.
pub const N_EACH: usize = 2;
/// Maximum number of columns with logits per step.
pub const MAX_PICK: usize = 64;
/// Words per sequence: number of tokens written to its ring, and the last of them.
pub const SEQ: usize = 2;

/// First word of the page tables in a step buffer for at most `max_col` columns.
pub const fn pages_at(max_col: usize) -> usize {
    HEADER + COLUMN * max_col
}

/// First word of the picks.
pub const fn picks_at(max_col: usize, n_seq: usize, pages_per_seq: usize) -> usize {
    pages_at(max_col) + n_seq * pages_per_seq
}

/// Words of a column in [`shifts_at`]: what is added to its position for each component that RoPE knows.
pub const SHIFT: usize = 3;

/// First word of the shifts of columns, where a step buffer has them: behind all others.
pub const fn shifts_at(max_col: usize, n_seq: usize, pages_per_seq: usize) -> usize {
    n_word(max_col, n_seq, pages_per_seq)
}

/// Words of a step buffer without shifts.
pub const fn n_word(max_col: usize, n_seq: usize, pages_per_seq: usize) -> usize {
    picks_at(max_col, n_seq, pages_per_seq) + MAX_PICK + SEQ * n_seq
}

/// Layout of a step buffer for kernels that choose tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// First word of the picks.
    pub picks: u32,
    /// First word of the sequences.
    pub seqs: u32,
    /// Slots of each sequence's ring of chosen tokens, a power of two.
    pub ring: u32,
}

impl Choice {
    /// Layout of a step buffer for at most `max_col` columns.
    pub const fn of(max_col: usize, n_seq: usize, pages_per_seq: usize, ring: u32) -> Self {
        let picks = picks_at(max_col, n_seq, pages_per_seq) as u32;
        Choice { picks, seqs: picks + MAX_PICK as u32, ring }
    }

    /// Specialisation constants of kernels.
    pub(crate) fn constants(&self) -> [(&'static str, f64); 3] {
        [("PICKS", self.picks.into()), ("SEQS", self.seqs.into()), ("RING", self.ring.into())]
    }

    /// First word of a sequence.
    pub const fn seq_at(&self, seq: u32) -> usize {
        self.seqs as usize + SEQ * seq as usize
    }

    /// The effect of choosing a token for every pick, on a step buffer and on the rings of all sequences.
    /// | Each token is appended to its sequence and its ring. With one pick, the next step is that token alone, at the
    /// next position; with several, columns that are picks of their own index advance in place. The kernels `argmax`,
    /// `sample` and `sample_wide` do the same.
    pub fn advance(&self, words: &mut [u32], rings: &mut [u32], tokens: &[u32]) {
        for (row, token) in tokens.iter().enumerate() {
            let picked = words[self.picks as usize + row] as usize;
            let from = HEADER + COLUMN * picked;
            let (pos, seq) = (words[from + POSITION] + 1, words[from + SEQUENCE]);
            let at = self.seq_at(seq);
            rings[(seq * self.ring + (words[at] & (self.ring - 1))) as usize] = *token;
            words[at] += 1;
            words[at + 1] = *token;
            if words[N_PICK] == 1 {
                words[N_COL] = 1;
                words[self.picks as usize] = 0;
                words[HEADER + SEQUENCE] = seq;
            } else if picked != row {
                continue;
            }
            let to = HEADER + COLUMN * row;
            words[to] = *token;
            words[to + POSITION] = pos;
            words[to + SOURCE] = TOKEN;
        }
    }
}

/// Steps for the cases of operations that choose tokens.
pub(crate) mod cases {
    use super::*;

    /// Number of sequences in these steps.
    pub(crate) const N_SEQ: u32 = 70;
    const MAX_COL: usize = 80;
    const PAGES_PER_SEQ: usize = 3;

    /// A step with some picked columns.
    pub(crate) struct Picked {
        pub(crate) choice: Choice,
        pub(crate) words: Vec<u32>,
    }

    /// The sequence of a row.
    pub(crate) fn seq_of(row: usize, n_row: usize) -> u32 {
        if n_row == 1 { 2 } else { (row as u32 * 11 + 5) % N_SEQ }
    }

    impl Picked {
        /// A step with `n_row` picks, each of a sequence that has chosen at least `count` tokens. A single pick is the
        /// last of three columns; of several, the first two advance in place and the others are later columns.
        pub(crate) fn new(n_row: usize, ring: u32, count: u32) -> Self {
            let choice = Choice::of(MAX_COL, N_SEQ as usize, PAGES_PER_SEQ, ring);
            let mut words: Vec<u32> = (0..n_word(MAX_COL, N_SEQ as usize, PAGES_PER_SEQ) as u32).collect();
            let column = |row: usize| match (n_row, row) {
                (1, _) => 2,
                (_, 0 | 1) => row,
                _ => row + 2,
            };
            words[N_COL] = 3 + n_row as u32;
            words[N_PICK] = n_row as u32;
            for row in 0..n_row {
                words[choice.picks as usize + row] = column(row) as u32;
                let at = HEADER + COLUMN * column(row);
                words[at + POSITION] = 100 + 7 * row as u32;
                words[at + SEQUENCE] = seq_of(row, n_row);
                words[choice.seq_at(seq_of(row, n_row))] = count.wrapping_add(3 * row as u32);
            }
            Picked { choice, words }
        }
    }
}
