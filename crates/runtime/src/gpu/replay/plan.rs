//! The plan of a device that replays, as JSON: kernels, dispatches, and the places of weights.

use std::collections::BTreeMap;

use chaski_kernels::Route;
use serde::{Serialize, Serializer};

use crate::plan::Growth;

/// A kernel of a [`ReplayPlan`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayKernel {
    /// Its name.
    pub name: &'static str,
    /// WGSL for a browser; the entry point is `main`.
    pub text: String,
    /// Storage buffers of group 0: number of the binding, and 1 if the kernel writes to it.
    pub bindings: Vec<(u32, u8)>,
}

/// A kernel with its constants.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayPipeline {
    /// Index of the kernel.
    pub kernel: usize,
    /// Values of `override` constants.
    pub constants: BTreeMap<&'static str, f64>,
}

/// How a grid grows with the number of columns `n`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum ReplayGrowth {
    /// It does not.
    Fixed,
    /// `ceil(n / tile) * times` along an axis.
    Tiles {
        /// Axis, 0 to 2.
        axis: u8,
        /// Columns of a tile.
        tile: u32,
        /// Workgroups of a tile.
        times: u32,
    },
    /// `floor(p / tile) + min(n_expert, p)` along x, where `p = n * n_used`.
    Experts {
        /// Columns of a tile.
        tile: u32,
        /// Experts of a column.
        n_used: u32,
        /// Most experts.
        n_expert: u32,
    },
    /// `ceil(g * n / whole)`, where g is the whole length of y, or of x if that is 1.
    Share {
        /// Columns of the whole grid.
        whole: u32,
    },
}

impl ReplayGrowth {
    /// `None` for grids that depend on positions, of which experts have none.
    pub(super) fn of(growth: Growth) -> Option<ReplayGrowth> {
        let tiles = |axis, tile, times| Some(ReplayGrowth::Tiles { axis, tile, times });
        match growth {
            Growth::Fixed => Some(ReplayGrowth::Fixed),
            Growth::X => tiles(0, 1, 1),
            Growth::Y => tiles(1, 1, 1),
            Growth::Z => tiles(2, 1, 1),
            Growth::XTiles(tile) => tiles(0, tile, 1),
            Growth::YTiles(tile) => tiles(1, tile, 1),
            Growth::YTimes(times) => tiles(1, 1, times),
            Growth::XSlots(Route { tile, n_used, .. }) => tiles(0, tile, n_used),
            Growth::XExperts(Route { tile, n_used, n_expert, .. }) => {
                Some(ReplayGrowth::Experts { tile, n_used, n_expert })
            }
            Growth::Share(whole) => Some(ReplayGrowth::Share { whole: whole.max(1) }),
            Growth::Each(_) | Growth::YEach | Growth::YRest(_) => None,
        }
    }
}

/// A dispatch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayCall {
    /// Index of the pipeline.
    pub pipeline: usize,
    /// Indices of buffers, in the order of the kernel's bindings.
    pub bind: Vec<usize>,
    /// Workgroups along x, y and z, before they grow.
    pub grid: [u32; 3],
    /// How they grow.
    pub growth: ReplayGrowth,
}

/// Layout of a route ([`Route`]).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayRoute {
    /// Index of the buffer.
    pub buffer: usize,
    /// Experts of a column.
    pub n_used: u32,
    /// Most experts.
    pub n_expert: u32,
    /// Pairs of one expert in a tile.
    pub tile: u32,
    /// First word of the tiles, of three words each: slot, first pair, end of the pairs.
    pub tiles_at: u32,
    /// First word of the pairs, sorted by expert: `column * n_used + slot`.
    pub pairs_at: u32,
}

/// Columns before or rows after the dispatches of a layer.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayRows {
    /// Index of the buffer.
    pub buffer: usize,
    /// Values of a column or row.
    pub width: u32,
    /// Words from one to the next.
    pub words: u32,
    /// Values are f16, two in a word.
    pub f16: bool,
}

/// The dispatches of a layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayCalls {
    /// The dispatches, in order.
    pub calls: Vec<ReplayCall>,
    /// The route.
    pub route: ReplayRoute,
    /// The columns.
    pub input: ReplayRows,
    /// The rows: of one column in the order of slots, of several in that of the sorted pairs.
    pub slots: ReplayRows,
}

/// All layers, for up to a number of columns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplaySteps {
    /// Most columns.
    pub max_col: u32,
    /// Columns are sorted by expert.
    pub many: bool,
    /// The layers, in the order of [`ReplayPlan::layers`].
    pub layers: Vec<ReplayCalls>,
}

/// A buffer with room for a piece of some experts.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayShard {
    /// Index of the buffer.
    pub buffer: usize,
    /// Byte of the first slot.
    pub start: u64,
    /// Number of slots.
    pub n_slot: u32,
}

/// A contiguous piece of an expert.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayPiece {
    /// Its bytes, a multiple of 4.
    pub n_byte: u64,
    /// Bytes from one slot to the next.
    pub stride: u64,
    /// Buffers of the slots, in order.
    pub shards: Vec<ReplayShard>,
}

/// A layer of experts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayLayer {
    /// Its number.
    pub layer: u16,
    /// Its experts.
    pub n_expert: u32,
    /// The pieces of a packed expert, one after another.
    pub pieces: Vec<ReplayPiece>,
}

/// Initial bytes of a buffer; the rest is zero.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayFill {
    /// Index of the buffer.
    pub buffer: usize,
    /// First byte.
    pub at: u64,
    /// Index in [`ReplayPlan::data`].
    pub data: usize,
}

/// The experts of a model as data for a device that replays.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayPlan {
    /// Values of a row.
    pub width: u32,
    /// Experts of a layer that the device has room for.
    pub n_slot: u32,
    /// Bytes of each buffer; all are storage.
    pub buffers: Vec<u64>,
    /// Bytes of the buffer for readbacks.
    pub readback: u64,
    /// Bytes, as hexadecimal digits.
    #[serde(serialize_with = "hex")]
    pub data: Vec<Vec<u8>>,
    /// Initial contents.
    pub fills: Vec<ReplayFill>,
    /// The layers.
    pub layers: Vec<ReplayLayer>,
    /// Kernels.
    pub kernels: Vec<ReplayKernel>,
    /// Pipelines.
    pub pipelines: Vec<ReplayPipeline>,
    /// Dispatches for one and for several columns, ascending.
    pub plans: Vec<ReplaySteps>,
}

fn hex<S: Serializer>(data: &[Vec<u8>], serializer: S) -> Result<S::Ok, S::Error> {
    let digits = |bytes: &Vec<u8>| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    serializer.collect_seq(data.iter().map(digits))
}

impl ReplayPlan {
    /// Bytes of all buffers.
    pub fn n_byte(&self) -> u64 {
        self.buffers.iter().sum::<u64>() + self.readback
    }

    /// Most buffers of a dispatch.
    pub fn max_bindings(&self) -> usize {
        self.kernels.iter().map(|k| k.bindings.len()).max().unwrap_or(0)
    }
}
