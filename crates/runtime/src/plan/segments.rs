//! What a plan consists of: dispatches with what they bind, in segments that always run together.

use chaski_kernels::ops::mul_mat_vec::{Act, MulMatVec};
use chaski_kernels::step::{self, Choice};
use chaski_kernels::{Dispatch, DispatchError, KvLayout, Route, Tuning};
use ggml_format::GgmlType;

use super::buffers::BufferSpec;
use super::fusion::Fusions;
use super::stages::Stage;
use super::streaming::Streaming;
use crate::STATE_COPIES;
use crate::formats::FormatError;
use crate::graph::{Graph, KvLayer};

/// Why a graph cannot be planned for a device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A tensor in a type that is no weight format.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// Rows that do not fit.
    #[error(
        "tensor `{tensor}`: rows of {n_col} values are no whole blocks, or larger than a binding of the device"
    )]
    Row {
        /// The tensor.
        tensor: String,
        /// Values a row.
        n_col: u32,
    },
    /// A buffer larger than a binding.
    #[error("{what} needs {n_byte} bytes, but a binding of the device holds {limit}; {help}")]
    TooLarge {
        /// Which buffer.
        what: &'static str,
        /// Its size.
        n_byte: u64,
        /// The device's limit.
        limit: u64,
        /// What to do.
        help: &'static str,
    },
    /// The graph has no result.
    #[error("the graph lacks {what}")]
    Missing {
        /// What it lacks.
        what: &'static str,
    },
    /// Experts that shall stay with the processor, of a model that has none.
    #[error("the model has no experts that could stay with the processor")]
    NoExperts,
    /// Experts that shall stay with the processor, in a browser.
    #[error("experts cannot stay with the processor in a browser")]
    NoStreaming,
    /// Fewer places for experts than a token uses, or more than there are experts.
    #[error("a layer cannot have {found} slots for experts: a token uses {least}, and there are {most}")]
    ExpertSlots {
        /// Places asked for.
        found: u32,
        /// Experts that a token uses.
        least: u32,
        /// Experts.
        most: u32,
    },
    /// A model on several devices, in a browser.
    #[error("a model cannot be split over several devices in a browser")]
    OneDevice,
    /// Fewer places to cut a model than devices need.
    #[error("the model cannot be split over {n_device} devices: there are {n_place} places to cut it")]
    Cut {
        /// Devices.
        n_device: usize,
        /// Places between two steps where only whole columns cross, and where no layer of the cache has users on both sides.
        n_place: usize,
    },
    /// No device.
    #[error("a model needs at least one device")]
    NoDevice,
    /// Shares that are not one for each device.
    #[error(
        "the shares of {n_device} devices are {found:?}, but must be as many numbers, none negative, not all 0"
    )]
    Shares {
        /// Devices.
        n_device: usize,
        /// The shares.
        found: Vec<f32>,
    },
    /// No kernel for a step.
    #[error(transparent)]
    Dispatch(#[from] DispatchError),
}

/// Sizes that a plan is made for.
#[derive(Clone, Debug)]
pub struct PlanConfig {
    /// Tokens of a sequence, at most.
    pub n_ctx: u32,
    /// Sequences.
    pub n_seq: u32,
    /// Columns of a prefill chunk, at most.
    pub max_col: u32,
    /// Tokens a page of the KV cache.
    pub page: u32,
    /// Pages that the sequences share; `None`: a context for each.
    pub pool: Option<u32>,
    /// Types of the keys and of the values in the KV cache.
    pub kv: (GgmlType, GgmlType),
    /// Stage tiles of matrix products in f16 where the device can.
    pub f16_tiles: bool,
    /// How products with weights of integers take their inputs; `None` chooses by the device.
    pub inputs: Option<Act>,
    /// What was measured on this device.
    pub tuning: Tuning,
    /// Slots of each sequence's ring of chosen tokens, a power of two.
    pub ring: u32,
    /// Rules by which nodes become steps.
    pub fusions: Fusions,
    /// Experts that stay with the processor.
    pub experts: Streaming,
    /// Columns may be rows of values in place of tokens, and their positions may have three components.
    pub rows: bool,
    /// Share of the weights and of the cache of each device, in any unit, where there are several; equal shares if empty.
    pub shares: Vec<f32>,
}

impl PlanConfig {
    /// Pages of one sequence.
    pub fn pages_per_seq(&self) -> u32 {
        self.n_ctx.div_ceil(self.page)
    }

    /// Pages of the pool: those asked for, or what all sequences have if none shares any.
    pub fn n_page(&self) -> u32 {
        self.pool.unwrap_or(self.pages_per_seq() * self.n_seq)
    }

    /// Bytes of a page of the largest layer, through which pages are copied.
    pub fn page_bytes(&self, graph: &Graph) -> Option<u64> {
        let bytes = |l: &KvLayer| self.kv_layout(l).page_ranges(0).iter().map(|r| r.1).sum::<u64>();
        graph.kv.iter().map(bytes).max()
    }

    /// Words of the step buffer.
    pub fn step_words(&self) -> usize {
        let words = step::n_word(self.max_col as usize, self.n_seq as usize, self.pages_per_seq() as usize);
        words + if self.rows { step::SHIFT * self.max_col as usize } else { 0 }
    }

    /// Where the step buffer has the components of positions, if columns have any.
    pub fn shifts_at(&self) -> Option<u32> {
        let at = step::shifts_at(self.max_col as usize, self.n_seq as usize, self.pages_per_seq() as usize);
        self.rows.then_some(at as u32)
    }

    /// Where the step buffer has what choosing tokens reads and writes.
    pub fn choice(&self) -> Choice {
        Choice::of(self.max_col as usize, self.n_seq as usize, self.pages_per_seq() as usize, self.ring)
    }

    /// Bytes of the rings of all sequences.
    pub fn ring_bytes(&self) -> u64 {
        4 * u64::from(self.ring) * u64::from(self.n_seq)
    }

    /// Bytes of so many words for every sequence.
    pub fn per_seq(&self, n_word: usize) -> u64 {
        4 * n_word as u64 * u64::from(self.n_seq)
    }

    /// Pages of a sequence that take turns in a layer with a window; 0 where there is a page for every part of it.
    ///
    /// A chunk is written before its first token looks back, so the window and the chunk must have room; a page more, and
    /// a sequence can be set back by a page at any time.
    fn wrap(&self, layer: &KvLayer) -> u32 {
        let pages = (u64::from(layer.window) + u64::from(self.max_col)).div_ceil(self.page.into()) + 1;
        let fewer = layer.window > 0 && pages < u64::from(self.pages_per_seq());
        if fewer { pages as u32 } else { 0 }
    }

    /// Pages of a layer that a snapshot holds: those of the window that a sequence looks back on. 0 where tables say which
    /// pages a sequence has.
    pub fn pages_kept(&self, layer: &KvLayer) -> u32 {
        self.wrap(layer).min(layer.window.div_ceil(self.page) + 1)
    }

    /// Bytes of the pages of a layer that a snapshot holds.
    pub fn kept_bytes(&self, layer: &KvLayer) -> u64 {
        let page: u64 = self.kv_layout(layer).page_ranges(0).iter().map(|r| r.1).sum();
        page * u64::from(self.pages_kept(layer))
    }

    /// Snapshots of what sequences have beside the pages of their tables: recurrent state, and windows. There are
    /// [`STATE_COPIES`] for each sequence; fewer where windows would take more memory than the KV cache, but as many as that
    /// for one.
    pub fn n_snapshot(&self, graph: &Graph) -> u32 {
        let state: u64 = graph.states.iter().map(|l| l.n_byte()).sum();
        let windows: u64 = graph.kv.iter().map(|l| self.kept_bytes(l)).sum();
        let n = STATE_COPIES as u32 * self.n_seq;
        match (state, windows) {
            (0, 0) => 0,
            (_, 0) => n,
            _ => {
                let cache: u64 = graph.kv.iter().map(|l| self.kv_layout(l).n_byte()).sum();
                n.min(STATE_COPIES.max((cache / (state + windows)) as usize) as u32)
            }
        }
    }

    /// Pages of all sequences in a layer: those of the pool, or those that take turns.
    pub fn pages_in(&self, layer: &KvLayer) -> u32 {
        match self.wrap(layer) {
            0 => self.n_page(),
            wrap => wrap * self.n_seq,
        }
    }

    /// The cache of a layer.
    pub fn kv_layout(&self, layer: &KvLayer) -> KvLayout {
        KvLayout {
            n_kv: layer.n_kv,
            d: layer.d,
            d_v: layer.d_v,
            in_keys: layer.in_keys,
            k: self.kv.0,
            v: if layer.in_keys { self.kv.0 } else { self.kv.1 },
            n_page: self.pages_in(layer),
            page: self.page,
            n_seq: self.n_seq,
            pages_per_seq: self.pages_per_seq(),
            pages_at: step::pages_at(self.max_col as usize) as u32,
            wrap: self.wrap(layer),
        }
    }
}

/// What a binding is bound to.
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
    /// The keys in it.
    Keys(usize),
    /// The values in it.
    Values(usize),
    /// A layer of recurrent state.
    State(usize),
    /// Counters of workgroups that have ended, all 0 between dispatches.
    Arrived,
    /// What changes from token to token.
    Step,
    /// Rows of values that columns may have in place of embeddings.
    Rows,
    /// Chosen tokens.
    Ring,
    /// Tables of a rotation.
    Rope(usize),
    /// Parameters of the draw, of every sequence.
    Sampler,
    /// Biases and penalties on logits, of every sequence.
    Adjust,
    /// Masks of allowed tokens.
    Masks,
    /// The logits.
    Logits,
}

/// How a grid grows with the number of columns.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Columns {
    /// It does not.
    Fixed,
    /// Along x.
    X,
    /// Along y.
    Y,
    /// Along x, in tiles of so many.
    XTiles(u32),
    /// Along y, in tiles of so many.
    YTiles(u32),
    /// Along z.
    Z,
    /// Along y, so many for each.
    YTimes(u32),
    /// Along x, in tiles of the columns of an expert.
    XExperts(Route),
    /// Along x, in tiles of columns for each slot.
    XSlots(Route),
    /// In proportion, from the whole grid for so many columns: workgroups are counted through x and y, those of later
    /// columns last.
    Share(u32),
}

/// A dispatch with what it binds.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Kernel, constants and grid.
    pub dispatch: Dispatch,
    /// Binding name and buffer.
    pub bind: Vec<(&'static str, Slot)>,
    /// How the grid grows.
    pub columns: Columns,
    /// Which step of the model it belongs to, for profiles.
    pub part: &'static str,
    /// What it must do, for profiles.
    pub work: Work,
    /// The call, if it is a product of one column: the tuner makes it anew with other numbers.
    pub product: Option<MulMatVec>,
}

/// What a dispatch must move and calculate at least: each value once, products and sums alone.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Bytes of weights, read once for all columns.
    pub weights: u64,
    /// Bytes of activations and cache cells, read and written, of a column.
    pub col_byte: u64,
    /// Operations of a column.
    pub col_flop: u64,
    /// Bytes of recurrent state, read and written once for all columns.
    pub state: u64,
    /// Bytes of the KV cache for each token of the sequence, read once for all columns.
    pub key_byte: u64,
    /// Operations for each pair of a column and a token that it looks back on.
    pub pair_flop: u64,
}

impl Work {
    /// Adds what a column costs.
    pub(crate) fn col(&mut self, n_byte: u64, n_flop: u64) -> &mut Self {
        self.col_byte += n_byte;
        self.col_flop += n_flop;
        self
    }

    /// Adds what looking back costs: bytes a token, operations a pair.
    pub(crate) fn key(&mut self, n_byte: u64, n_flop: u64) -> &mut Self {
        self.key_byte += n_byte;
        self.pair_flop += n_flop;
        self
    }

    /// Bytes of `n_col` columns of which the first is at `pos`.
    pub fn n_byte(&self, n_col: u32, pos: u32) -> u64 {
        let (n, pos) = (u64::from(n_col), u64::from(pos));
        self.weights + self.state + n * self.col_byte + (pos + n) * self.key_byte
    }

    /// Operations of `n_col` columns of which the first is at `pos`.
    pub fn n_flop(&self, n_col: u32, pos: u32) -> u64 {
        let (n, pos) = (u64::from(n_col), u64::from(pos));
        n * self.col_flop + (n * pos + n * (n + 1) / 2) * self.pair_flop
    }
}

impl Planned {
    /// The grid for `n` columns.
    pub fn grid(&self, n: u32) -> [u32; 3] {
        let mut g = self.dispatch.grid;
        match self.columns {
            Columns::Fixed => {}
            Columns::X => g[0] = n,
            Columns::Y => g[1] = n,
            Columns::XTiles(tile) => g[0] = n.div_ceil(tile),
            Columns::YTiles(tile) => g[1] = n.div_ceil(tile),
            Columns::Z => g[2] = n,
            Columns::YTimes(k) => g[1] = n * k,
            Columns::XExperts(route) => g[0] = route.tiles_of(n * route.n_used),
            Columns::XSlots(route) => g[0] = route.tiles_by_slot(n),
            Columns::Share(whole) => {
                // Rows of a folded grid keep their length.
                let axis = if g[1] > 1 { 1 } else { 0 };
                g[axis] = (u64::from(g[axis]) * u64::from(n)).div_ceil(u64::from(whole.max(1))) as u32;
            }
        }
        g
    }
}

/// Dispatches that always run together.
pub type Segment = Vec<Planned>;

/// One token, for sequences of at most `max_key` tokens.
#[derive(Clone, Debug)]
pub struct DecodePlan {
    /// Tokens of the sequence at most, this one included.
    pub max_key: u32,
    /// All layers.
    pub body: Vec<Stage>,
    /// The logits.
    pub head: Segment,
}

/// Several columns, for batches of at most `max_col`.
#[derive(Clone, Debug)]
pub struct PromptPlan {
    /// Columns at most.
    pub max_col: u32,
    /// All layers.
    pub body: Vec<Stage>,
    /// Logits of some of the columns, for few and for more.
    pub heads: Vec<HeadPlan>,
    /// What the logits would be made of, for every column.
    pub hidden: Hidden,
}

/// Logits of the columns that are the step's picks.
#[derive(Clone, Debug)]
pub struct HeadPlan {
    /// Picks at most.
    pub max_row: u32,
    /// Copies these columns of the body's result together.
    pub pick: Segment,
    /// The logits, a row for each.
    pub head: Segment,
}

/// The last norm of every column: what embeddings are made of.
#[derive(Clone, Debug, Default)]
pub struct Hidden {
    /// What is left to do after the body.
    pub segment: Segment,
    /// The activation buffer that has it then.
    pub act: usize,
}

/// Everything that a model can be asked to run.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    /// All layers and the logits of one column, for short and for long sequences.
    pub decode: Vec<DecodePlan>,
    /// Several columns, for small and for large batches.
    pub prompt: Vec<PromptPlan>,
    /// Columns get the tokens that their sequences chose last.
    pub take_chosen: Segment,
    /// Masks on the first rows of logits, before penalties, biases and choices.
    pub mask: Segment,
    /// Biases and penalties on every row of logits, before either choice.
    pub adjust: Segment,
    /// Greedy choice for every row.
    pub argmax: Segment,
    /// Random choice for every row.
    pub sample: Segment,
    /// Rows that can be chosen from at once.
    pub n_choice: u32,
    /// Words of the masks of as many rows.
    pub mask_words: u64,
    /// Words of every activation buffer, device by device.
    pub act_words: Vec<Vec<u64>>,
    /// Words of the most values that cross from a device to the next.
    pub crossing_words: u64,
    /// Words of the longest run in which a route names experts that stay with the processor; 0 if none do.
    pub route_words: u32,
    /// Words of the counters of workgroups.
    pub arrived_words: u64,
    /// Values of a row that columns may have in place of embeddings, and from one row to the next; 0 if none can.
    pub rows: (u32, u32),
    /// Words of the logits.
    pub logits_words: u64,
    /// Values from row to row of the logits of many columns.
    pub ld_logits: u32,
    /// Columns that can have logits at once: rows of the largest [`HeadPlan`].
    pub all_cols: u32,
    /// Values of a column of [`PromptPlan::hidden`], and from one column to the next.
    pub hidden: (u32, u32),
    /// Columns of it that can be read at once.
    pub hidden_cols: u32,
    /// Layers of the model, for dispatch counts.
    pub n_layer: usize,
    /// All buffers that the plan needs.
    pub buffers: Vec<BufferSpec>,
}

impl Segments {
    /// All dispatches of a device.
    pub fn of_device(&self, device: usize) -> impl Iterator<Item = &Planned> {
        let decode = self.decode.iter().map(|d| &d.body);
        let bodies = decode.chain(self.prompt.iter().map(|p| &p.body)).flatten();
        let bodies = bodies.filter(move |s| s.place.device() == device).flat_map(|s| &s.segment);
        let heads = self.decode.iter().map(|d| &d.head).chain(self.prompt.iter().flat_map(|p| {
            let heads = p.heads.iter().flat_map(|h| [&h.pick, &h.head]);
            heads.chain([&p.hidden.segment])
        }));
        let choice = [&self.take_chosen, &self.mask, &self.adjust, &self.argmax, &self.sample];
        let rest = heads.chain(choice);
        let is_last = device + 1 == self.act_words.len();
        bodies.chain(rest.filter(move |_| is_last).flatten())
    }
}
