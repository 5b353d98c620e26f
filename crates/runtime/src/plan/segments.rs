//! Parts of a plan: dispatches with their bindings, in segments that always run together.

use chaski_kernels::ops::mul_mat_vec::{ActivationPrecision, MulMatVec};
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

/// Reasons why a graph cannot be planned for a device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A tensor whose type is not a weight format.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// Rows too large for a binding.
    #[error(
        "tensor `{tensor}`: rows of {n_col} values are no whole blocks, or larger than a binding of the device"
    )]
    Row {
        /// The tensor.
        tensor: String,
        /// Values per row.
        n_col: u32,
    },
    /// A buffer larger than a binding.
    #[error("{what} needs {n_byte} bytes, but a binding of the device holds {limit}; {help}")]
    TooLarge {
        /// The buffer.
        what: &'static str,
        /// Its size.
        n_byte: u64,
        /// The device's limit.
        limit: u64,
        /// A hint.
        help: &'static str,
    },
    /// The graph has no logits.
    #[error("the graph lacks {what}")]
    Missing {
        /// The missing part.
        what: &'static str,
    },
    /// Expert offload of a model without experts.
    #[error("the model has no experts to offload to the CPU")]
    NoExperts,
    /// Expert offload in a browser.
    #[error("experts cannot be offloaded to the CPU in a browser")]
    NoStreaming,
    /// Fewer expert slots than a token uses, or more than there are experts.
    #[error("a layer cannot have {found} slots for experts: a token uses {least}, and there are {most}")]
    ExpertSlots {
        /// Requested slots.
        found: u32,
        /// Experts per token.
        least: u32,
        /// Total experts.
        most: u32,
    },
    /// Several devices in a browser.
    #[error("a model cannot be split over several devices in a browser")]
    OneDevice,
    /// Too few possible cuts for the devices.
    #[error("the model cannot be split over {n_device} devices: there are {n_place} places to cut it")]
    Cut {
        /// Devices.
        n_device: usize,
        /// Possible cuts: between steps where only whole columns cross and no layer of the cache has users on both
        /// sides.
        n_place: usize,
    },
    /// No device.
    #[error("a model needs at least one device")]
    NoDevice,
    /// A wrong number of shares.
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

/// Sizes and options of a plan.
#[derive(Clone, Debug)]
pub struct PlanConfig {
    /// Maximum number of tokens per sequence.
    pub n_ctx: u32,
    /// Sequences.
    pub n_seq: u32,
    /// Maximum number of columns per prefill chunk.
    pub max_col: u32,
    /// Tokens per page of the KV cache.
    pub page: u32,
    /// Pages shared by all sequences; `None`: one context per sequence.
    pub pool: Option<u32>,
    /// Types of the keys and of the values in the KV cache.
    pub kv: (GgmlType, GgmlType),
    /// Stage tiles of matrix products in f16 if the device can.
    pub f16_tiles: bool,
    /// Precision of activations in products with weights of integers; `None`: automatic.
    pub inputs: Option<ActivationPrecision>,
    /// Tuning measured on this device.
    pub tuning: Tuning,
    /// Slots of each sequence's ring of chosen tokens, a power of two.
    pub ring: u32,
    /// Fusion rules.
    pub fusions: Fusions,
    /// CPU offload of experts.
    pub experts: Streaming,
    /// Allow input rows in place of tokens, and positions with three components.
    pub rows: bool,
    /// Share of weights and cache per device, in any unit; empty: equal shares.
    pub shares: Vec<f32>,
}

impl PlanConfig {
    /// Pages per sequence.
    pub fn pages_per_seq(&self) -> u32 {
        self.n_ctx.div_ceil(self.page)
    }

    /// Pages of the pool: as configured, or enough for all sequences.
    pub fn n_page(&self) -> u32 {
        self.pool.unwrap_or(self.pages_per_seq() * self.n_seq)
    }

    /// Bytes of a page of the largest layer, the scratch for copies of pages.
    pub fn page_bytes(&self, graph: &Graph) -> Option<u64> {
        let bytes = |l: &KvLayer| self.kv_layout(l).page_ranges(0).iter().map(|r| r.1).sum::<u64>();
        graph.kv.iter().map(bytes).max()
    }

    /// Words of the step buffer.
    pub fn step_words(&self) -> usize {
        let words = step::n_word(self.max_col as usize, self.n_seq as usize, self.pages_per_seq() as usize);
        words + if self.rows { step::SHIFT * self.max_col as usize } else { 0 }
    }

    /// Word offset of the position components in the step buffer, if columns have any.
    pub fn shifts_at(&self) -> Option<u32> {
        let at = step::shifts_at(self.max_col as usize, self.n_seq as usize, self.pages_per_seq() as usize);
        self.rows.then_some(at as u32)
    }

    /// Layout of the step buffer for kernels that choose tokens.
    pub fn choice(&self) -> Choice {
        Choice::of(self.max_col as usize, self.n_seq as usize, self.pages_per_seq() as usize, self.ring)
    }

    /// Bytes of the rings of all sequences.
    pub fn ring_bytes(&self) -> u64 {
        4 * u64::from(self.ring) * u64::from(self.n_seq)
    }

    /// Bytes of `n_word` words per sequence.
    pub fn per_seq(&self, n_word: usize) -> u64 {
        4 * n_word as u64 * u64::from(self.n_seq)
    }

    /// Pages per sequence that are reused in turn, in a layer with a window; 0 if every page is kept.
    ///
    /// A chunk is written before its first token attends, so window and chunk must fit; one more page, so that a
    /// sequence can always be rewound by a page.
    fn wrap(&self, layer: &KvLayer) -> u32 {
        let pages = (u64::from(layer.window) + u64::from(self.max_col)).div_ceil(self.page.into()) + 1;
        let fewer = layer.window > 0 && pages < u64::from(self.pages_per_seq());
        if fewer { pages as u32 } else { 0 }
    }

    /// Pages of a layer in a snapshot: those of the window. 0 for layers with page tables.
    pub fn pages_kept(&self, layer: &KvLayer) -> u32 {
        self.wrap(layer).min(layer.window.div_ceil(self.page) + 1)
    }

    /// Bytes of the pages of a layer in a snapshot.
    pub fn kept_bytes(&self, layer: &KvLayer) -> u64 {
        let page: u64 = self.kv_layout(layer).page_ranges(0).iter().map(|r| r.1).sum();
        page * u64::from(self.pages_kept(layer))
    }

    /// Number of snapshots of state outside paged tables: recurrent state, and windows. [`STATE_COPIES`] per sequence;
    /// fewer if windows would take more memory than the KV cache, but at least enough for one sequence.
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

    /// Pages of all sequences in a layer: the pool, or the reused pages.
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

impl Planned {
    /// The grid for `n` columns.
    pub fn grid(&self, n: u32) -> [u32; 3] {
        let mut g = self.dispatch.grid;
        match self.columns {
            Growth::Fixed => {}
            Growth::X => g[0] = n,
            Growth::Y => g[1] = n,
            Growth::XTiles(tile) => g[0] = n.div_ceil(tile),
            Growth::YTiles(tile) => g[1] = n.div_ceil(tile),
            Growth::Z => g[2] = n,
            Growth::YTimes(k) => g[1] = n * k,
            Growth::XExperts(route) => g[0] = route.tiles_of(n * route.n_used),
            Growth::XSlots(route) => g[0] = route.tiles_by_slot(n),
            Growth::Share(whole) => {
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
    /// Maximum number of tokens of the sequence, including the current one.
    pub max_key: u32,
    /// All layers.
    pub body: Vec<Stage>,
    /// The logits.
    pub head: Segment,
}

/// Several columns, for batches of at most `max_col`.
#[derive(Clone, Debug)]
pub struct PromptPlan {
    /// Maximum number of columns.
    pub max_col: u32,
    /// All layers.
    pub body: Vec<Stage>,
    /// Logits of some of the columns, for several numbers of them.
    pub heads: Vec<HeadPlan>,
    /// Final hidden states of all columns.
    pub hidden: Hidden,
}

/// Logits of the columns that are the step's picks.
#[derive(Clone, Debug)]
pub struct HeadPlan {
    /// Maximum number of picks.
    pub max_row: u32,
    /// Gathers these columns of the body's result.
    pub pick: Segment,
    /// The logits, one row per pick.
    pub head: Segment,
}

/// The last norm of every column, for embeddings.
#[derive(Clone, Debug, Default)]
pub struct Hidden {
    /// Dispatches after the body.
    pub segment: Segment,
    /// Activation buffer of the result.
    pub act: usize,
}

/// All segments of a model.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    /// All layers and the logits of one column, for short and for long sequences.
    pub decode: Vec<DecodePlan>,
    /// Several columns, for small and for large batches.
    pub prompt: Vec<PromptPlan>,
    /// Replaces columns' tokens by the last chosen ones.
    pub take_chosen: Segment,
    /// Masks on the first rows of logits, before penalties, biases and choices.
    pub mask: Segment,
    /// Biases and penalties on every row of logits, before sampling.
    pub adjust: Segment,
    /// Greedy sampling of every row.
    pub argmax: Segment,
    /// Random sampling of every row.
    pub sample: Segment,
    /// Rows that can be sampled at once.
    pub n_choice: u32,
    /// Words of the masks of as many rows.
    pub mask_words: u64,
    /// Words of every activation buffer, device by device.
    pub act_words: Vec<Vec<u64>>,
    /// Maximum words of values that cross between devices.
    pub crossing_words: u64,
    /// Words of the longest run in which a route names offloaded experts; 0 if there are none.
    pub route_words: u32,
    /// Words of the counters of workgroups.
    pub arrived_words: u64,
    /// Width of an input row, and the row stride; 0 without input rows.
    pub rows: (u32, u32),
    /// Words of the logits.
    pub logits_words: u64,
    /// Row stride of the logits of many columns, in values.
    pub ld_logits: u32,
    /// Maximum number of columns with logits: rows of the largest [`HeadPlan`].
    pub all_cols: u32,
    /// Width of [`PromptPlan::hidden`], and its column stride.
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
