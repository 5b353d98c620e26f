//! A planned dispatch: what it binds, how its grid grows, and what it costs.

use chaski_kernels::ops::mul_mat_join::MulMatJoin;
use chaski_kernels::ops::mul_mat_vec::MulMatVec;
use chaski_kernels::{Dispatch, Route, step};

/// The buffer of a binding.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// A shard of a weight group.
    Weights {
        /// Index of the group.
        group: usize,
        /// Index of the shard.
        shard: usize,
    },
    /// Small vectors; `None` binds a placeholder that is never read.
    Aux(Option<usize>),
    /// An activation buffer.
    Act(usize),
    /// The KV cache of a layer.
    Kv(usize),
    /// The keys of a layer's cache.
    Keys(usize),
    /// The values of a layer's cache.
    Values(usize),
    /// A layer of recurrent state.
    State(usize),
    /// Counters of finished workgroups, all 0 between dispatches.
    Arrived,
    /// The step buffer.
    Step,
    /// Input rows that columns may use in place of embeddings.
    Rows,
    /// Chosen tokens.
    Ring,
    /// RoPE tables.
    Rope(usize),
    /// Sampling parameters of every sequence.
    Sampler,
    /// Biases and penalties on logits, of every sequence.
    Adjust,
    /// Masks of allowed tokens.
    Masks,
    /// The logits.
    Logits,
}

/// Growth of a grid with the number of columns.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Growth {
    /// None.
    Fixed,
    /// Along x.
    X,
    /// Along y.
    Y,
    /// Along x, in tiles of this many columns.
    XTiles(u32),
    /// Along y, in tiles of this many columns.
    YTiles(u32),
    /// Along z.
    Z,
    /// Attention of [`Columns::each`], along z; parts along y, one for so many keys of the longest column (0: all).
    Each(u32),
    /// Along y, for [`Columns::each`] only.
    YEach,
    /// Along y, in tiles of this many of the columns that [`Columns::each`] leaves.
    YRest(u32),
    /// Along y, this many per column.
    YTimes(u32),
    /// Along x, in tiles of the columns of an expert.
    XExperts(Route),
    /// Along x, in tiles of columns per slot.
    XSlots(Route),
    /// Proportionally, from the whole grid for this many columns: workgroups are counted through x and y, those of
    /// later columns last.
    Share(u32),
}

/// A dispatch with its bindings.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Kernel, constants and grid.
    pub dispatch: Dispatch,
    /// Binding name and buffer.
    pub bind: Vec<(&'static str, Slot)>,
    /// How the grid grows.
    pub columns: Growth,
    /// Part of the model, for profiles.
    pub part: &'static str,
    /// Work, for profiles.
    pub work: Work,
    /// The call, if it is a product of one column, for retuning.
    pub product: Option<MulMatVec>,
    /// The layer of experts that it is part of ([`ExpertLayer::layer`](crate::graph::ExpertLayer::layer)), if they may
    /// be computed elsewhere.
    pub layer: Option<u16>,
}

/// The columns of a step, as far as grids depend on them.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// All columns.
    pub n: u32,
    /// Leading columns whose attention goes column by column ([`step::N_EACH`]).
    pub each: u32,
    /// Maximum number of keys that one of these sees.
    pub keys: u32,
}

impl From<u32> for Columns {
    /// Columns, none of which goes by itself.
    fn from(n: u32) -> Columns {
        Columns { n, ..Columns::default() }
    }
}

impl Columns {
    /// Columns of sequences at positions, given as (sequence, position), the first of them by themselves if their
    /// sequences have at most `few` columns: tiles would go through the keys of one sequence after the other.
    pub fn of(columns: impl Iterator<Item = (u32, u32)>, few: u32) -> Columns {
        let mut all = Columns::default();
        // The run of the sequence that is being read: its sequence, columns, keys.
        let (mut run, mut leads) = ((u32::MAX, 0, 0), true);
        for (seq, pos) in columns.chain([(u32::MAX, 0)]) {
            if seq != run.0 {
                leads &= run.1 <= few && all.each + run.1 <= step::MAX_PICK as u32;
                if leads {
                    all.each += run.1;
                    all.keys = all.keys.max(run.2);
                }
                all.n += run.1;
                run = (seq, 0, 0);
            }
            run.1 += 1;
            run.2 = run.2.max(pos + 1);
        }
        all
    }

    /// The same after `n` more tokens of each sequence.
    pub fn later(self, n: u32) -> Columns {
        Columns { keys: self.keys + n, ..self }
    }
}

impl Planned {
    /// The grid for columns; `None` if there is nothing to do.
    pub fn grid(&self, columns: Columns) -> Option<[u32; 3]> {
        let n = columns.n;
        let mut g = self.dispatch.grid;
        match self.columns {
            Growth::Fixed => {}
            Growth::X => g[0] = n,
            Growth::Y => g[1] = n,
            Growth::XTiles(tile) => g[0] = n.div_ceil(tile),
            Growth::YTiles(tile) => g[1] = n.div_ceil(tile),
            Growth::Z => g[2] = n,
            Growth::Each(least) => {
                g[1] = columns.keys.checked_div(least).map_or(g[1], |n| n.clamp(1, g[1]));
                g[2] = columns.each;
            }
            Growth::YEach => g[1] = columns.each,
            Growth::YRest(tile) => g[1] = (n - columns.each).div_ceil(tile),
            Growth::YTimes(k) => g[1] = n * k,
            Growth::XExperts(route) => g[0] = route.tiles_of(n * route.n_used),
            Growth::XSlots(route) => g[0] = route.tiles_by_slot(n),
            Growth::Share(whole) => {
                // Rows of a folded grid keep their length.
                let axis = if g[1] > 1 { 1 } else { 0 };
                g[axis] = (u64::from(g[axis]) * u64::from(n)).div_ceil(u64::from(whole.max(1))) as u32;
            }
        }
        (!g.contains(&0)).then_some(g)
    }
}

/// The join of a product's ranges that is the last dispatch. Its parts stay allocated until the next one, which may
/// read them instead.
pub(super) struct Joined {
    pub(super) call: MulMatJoin,
    pub(super) parts: usize,
    pub(super) y: Slot,
    /// Bytes and operations per column.
    pub(super) work: (u64, u64),
}

/// Minimum work of a dispatch: each value moved once, products and sums only.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Bytes of weights, read once for all columns.
    pub weights: u64,
    /// Bytes of activations and cache cells, read and written, per column.
    pub col_byte: u64,
    /// Operations per column.
    pub col_flop: u64,
    /// Bytes of recurrent state, read and written once for all columns.
    pub state: u64,
    /// Bytes of the KV cache per token of the sequence, read once for all columns.
    pub key_byte: u64,
    /// Operations per pair of a column and a visible token.
    pub pair_flop: u64,
}

impl Work {
    /// Adds work per column.
    pub(crate) fn col(&mut self, n_byte: u64, n_flop: u64) -> &mut Self {
        self.col_byte += n_byte;
        self.col_flop += n_flop;
        self
    }

    /// Adds work of attention: bytes per token, operations per pair.
    pub(crate) fn key(&mut self, n_byte: u64, n_flop: u64) -> &mut Self {
        self.key_byte += n_byte;
        self.pair_flop += n_flop;
        self
    }

    /// Bytes for `n_col` columns, the first at `pos`.
    pub fn n_byte(&self, n_col: u32, pos: u32) -> u64 {
        let (n, pos) = (u64::from(n_col), u64::from(pos));
        self.weights + self.state + n * self.col_byte + (pos + n) * self.key_byte
    }

    /// Operations for `n_col` columns, the first at `pos`.
    pub fn n_flop(&self, n_col: u32, pos: u32) -> u64 {
        let (n, pos) = (u64::from(n_col), u64::from(pos));
        n * self.col_flop + (n * pos + n * (n + 1) / 2) * self.pair_flop
    }
}

/// Dispatches that always run together.
pub type Segment = Vec<Planned>;

#[cfg(test)]
mod tests {
    use chaski_kernels::ops::mul_mat_vec::FewColumns;

    use super::*;

    /// As in the default configuration.
    const FEW: u32 = FewColumns::MAX;

    fn of(runs: &[(u32, u32, u32)]) -> Columns {
        // Sequence, first position, number of columns.
        let columns: Vec<(u32, u32)> =
            runs.iter().flat_map(|(seq, pos, n)| (*pos..pos + n).map(move |p| (*seq, p))).collect();
        Columns::of(columns.iter().copied(), FEW)
    }

    #[test]
    fn leading_columns_of_sequences_with_few_go_one_by_one() {
        let few = FEW;
        assert_eq!(of(&[]), Columns::default());
        assert_eq!(of(&[(0, 9, 1)]), Columns { n: 1, each: 1, keys: 10 });
        assert_eq!(of(&[(0, 0, few)]), Columns { n: few, each: few, keys: few });
        assert_eq!(of(&[(0, 0, few + 1)]), Columns { n: few + 1, each: 0, keys: 0 });
        // Answers, then a prompt; columns behind it are not leading.
        let mixed = of(&[(3, 99, 1), (1, 40, 4), (2, 7, 100), (5, 500, 1)]);
        assert_eq!(mixed, Columns { n: 106, each: 5, keys: 100 });
        // No more than there are counters for, and no sequence is torn.
        let many: Vec<_> = (0..30).map(|seq| (seq, 5, 5)).collect();
        assert_eq!(of(&many), Columns { n: 150, each: 60, keys: 10 });
        assert_eq!(mixed.later(3).keys, 103);
        // Without tiles all do.
        let all = Columns::of((0..60).map(|pos| (0, pos)), u32::MAX);
        assert_eq!(all, Columns { n: 60, each: 60, keys: 60 });
    }
}
