//! Experts that are computed elsewhere: on other machines, or in other processes.
//!
//! The unit of the exchange is a [`Pair`]: a column of a step and one of its experts, whose product is a row of `width`
//! values. The executor weighs and sums rows in the order of slots, whoever computed them, so results are equal to the
//! bit if the rows are.

use std::error::Error;
use std::pin::Pin;

use chaski_graph::{ExpertLayer, Graph};
use ggml_format::MaybeSend;
use sha2::{Digest, Sha256};

/// A column and one of its experts.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    /// The expert.
    pub expert: u16,
    /// The column: a row of [`ExpertCall::x`].
    pub column: u16,
    /// The slot of the expert among those of the column.
    pub slot: u16,
}

/// The part of a layer that is computed elsewhere in a step.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpertCall {
    /// The layer ([`ExpertLayer::layer`](chaski_graph::ExpertLayer::layer)).
    pub layer: u16,
    /// Values per row of the result.
    pub width: u32,
    /// Columns of the whole step, at least those of the call. On a GPU the plan depends on it, and the last bits of
    /// results on the plan.
    pub step_columns: u32,
    /// Inputs of the experts, of the columns that have pairs: `[n_col, n_in]`.
    pub x: Vec<f32>,
    /// The pairs, in ascending order: by expert, then by column.
    pub pairs: Vec<Pair>,
    /// The weights of the pairs, by which the executor multiplies their rows. Nobody needs them but who sums products;
    /// the row of a pair may then stand for others of its column that are zero.
    pub weights: Vec<f32>,
}

impl ExpertCall {
    /// Values of the result: a row for each pair, in their order.
    pub fn n_value(&self) -> usize {
        self.pairs.len() * self.width as usize
    }

    /// Checks that the call is one of a layer: its sizes, and that each pair follows the one before. Whether the
    /// experts are loaded is another question.
    ///
    /// # Errors
    /// [`ExpertError::Size`], [`ExpertError::Order`].
    pub fn check(&self, graph: &Graph, l: &ExpertLayer) -> Result<(), ExpertError> {
        let (n_in, n_out) = l.widths(graph);
        let (n_value, n_in) = (self.x.len() as u64, u64::from(n_in));
        let n_col = n_value / n_in.max(1);
        let most = |of: fn(&Pair) -> u16| self.pairs.iter().map(of).max().map_or(0, |n| u64::from(n) + 1);
        let size = |what, found: u64, expected: u64, is_right: bool| match is_right {
            true => Ok(()),
            false => Err(ExpertError::Size { layer: l.layer, what, found, expected }),
        };
        let at_most = |what, found: u64, limit: u64| size(what, found, limit, found <= limit);
        let exactly = |what, found: u64, expected: u64| size(what, found, expected, found == expected);
        exactly("values per row of the result", self.width.into(), n_out.into())?;
        exactly("values of inputs", n_value, n_col * n_in)?;
        at_most("columns of the call, in a step of fewer", n_col, self.step_columns.into())?;
        at_most("columns that pairs name", most(|p| p.column), n_col)?;
        at_most("experts that pairs name", most(|p| p.expert), l.n_expert.into())?;
        at_most("slots that pairs name", most(|p| p.slot), l.n_used.into())?;
        match self.pairs.windows(2).position(|two| two[0] >= two[1]) {
            Some(at) => Err(ExpertError::Order { layer: l.layer, at: at + 1 }),
            None => Ok(()),
        }
    }

    /// A call with fixed inputs, for all of `n_col` columns one expert: workers whose rows have the same bits
    /// may stand in for each other. The inputs are exact on any machine, and of several magnitudes.
    pub fn canary(graph: &Graph, l: &ExpertLayer, expert: u16, n_col: u16) -> ExpertCall {
        let (n_in, width) = l.widths(graph);
        let value = |i: u32| {
            // SplitMix64.
            let z = (u64::from(i) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let (z, scale) = (z ^ (z >> 31), [0.0625, 0.25, 1.0, 4.0][(i % 4) as usize]);
            ((z >> 40) as f32 / 8_388_608.0 - 1.0) * scale
        };
        ExpertCall {
            layer: l.layer,
            width,
            step_columns: n_col.into(),
            x: (0..n_in * u32::from(n_col)).map(value).collect(),
            pairs: (0..n_col).map(|column| Pair { expert, column, slot: 0 }).collect(),
            weights: Vec::new(),
        }
    }

    /// The pairs of each expert, in order.
    pub fn by_expert(&self) -> impl Iterator<Item = &[Pair]> {
        self.pairs.chunk_by(|a, b| a.expert == b.expert)
    }
}

/// The sha256 of rows' bits, in little-endian order.
pub(crate) fn digest<'a>(rows: impl IntoIterator<Item = &'a [f32]>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for v in rows.into_iter().flatten() {
        hash.update(v.to_bits().to_le_bytes());
    }
    hash.finalize().into()
}

/// Numbers of columns of the canaries of an expert: of those, each kind of plan has some.
pub(crate) const CANARIES: [u16; 4] = [1, 8, 64, 100];

/// Place where an expert is computed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Home {
    /// By the executor itself.
    Here,
    /// By [`Experts::call`].
    Away,
}

/// The result of a call: `[n_pair, width]`. Dropping the future cancels the call.
#[cfg(not(target_arch = "wasm32"))]
pub type ExpertFuture = Pin<Box<dyn Future<Output = Result<Vec<f32>, ExpertError>> + Send>>;

/// The result of a call: `[n_pair, width]`. Dropping the future cancels the call.
#[cfg(target_arch = "wasm32")]
pub type ExpertFuture = Pin<Box<dyn Future<Output = Result<Vec<f32>, ExpertError>>>>;

/// Experts elsewhere.
pub trait Experts: MaybeSend {
    /// The home of each wanted expert of a layer, in their order: asked once per layer and step. The wanted experts are
    /// distinct and ascending.
    fn homes(&mut self, layer: u16, wanted: &[u16]) -> Vec<Home>;

    /// Starts a call, and returns its result. The call is under way before the future is polled: the executor computes
    /// what is [`Home::Here`] meanwhile.
    fn call(&mut self, call: ExpertCall) -> ExpertFuture;
}

/// Experts elsewhere did not compute their rows.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExpertError {
    /// The graph has no such layer, or none that can be computed elsewhere.
    #[error("layer {layer} of experts: there is none, or none that can be computed by itself")]
    NoLayer {
        /// The layer.
        layer: u16,
    },
    /// The weights of an expert are not there.
    #[error("layer {layer} of experts: expert {expert} is not loaded here")]
    NotHere {
        /// The layer.
        layer: u16,
        /// The expert.
        expert: u16,
    },
    /// A call, or its result, has other sizes than it must have.
    #[error("layer {layer} of experts, {what}: found {found}, expected {expected}")]
    Size {
        /// The layer.
        layer: u16,
        /// The quantity.
        what: &'static str,
        /// The number found.
        found: u64,
        /// The expected number, or the limit.
        expected: u64,
    },
    /// Pairs are not in ascending order, or one is there twice.
    #[error("layer {layer} of experts: pairs must be in ascending order, and pair {at} is not")]
    Order {
        /// The layer.
        layer: u16,
        /// Index of the pair.
        at: usize,
    },
    /// The call failed for a reason of the implementation.
    #[error("layer {layer} of experts: no result from elsewhere")]
    Failed {
        /// The layer.
        layer: u16,
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}
