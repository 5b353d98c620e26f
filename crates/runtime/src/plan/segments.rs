//! Dispatches that always run together, and all that a model can be asked to run.

use super::cpu::CpuStage;
use super::memory::BufferSpec;
use super::planned::{Planned, Segment};
use super::stages::Stage;

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
    /// The part of the CPU before each body, if it has layers.
    pub cpu: Option<CpuStage>,
    /// Replaces columns' tokens by the last chosen ones.
    pub take_chosen: Segment,
    /// Masks on the first rows of logits, before penalties, biases and choices.
    pub mask: Segment,
    /// Biases and penalties on every row of logits, before sampling.
    pub adjust: Segment,
    /// Greedy sampling of every row.
    pub argmax: Segment,
    /// Random sampling of every row, from at most [`MAX_TOP_K`](chaski_kernels::ops::sample::MAX_TOP_K) candidates.
    pub sample: Segment,
    /// Random sampling of every row, from any number of candidates.
    pub sample_wide: Segment,
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
        let samplers = [&self.argmax, &self.sample, &self.sample_wide];
        let rest = heads.chain([&self.take_chosen, &self.mask, &self.adjust]).chain(samplers);
        let is_last = device + 1 == self.act_words.len();
        bodies.chain(rest.filter(move |_| is_last).flatten())
    }
}
