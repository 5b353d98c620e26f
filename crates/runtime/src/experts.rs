//! Experts that are computed elsewhere: on other machines, or in other processes.
//!
//! The unit of the exchange is a [`Pair`]: a column of a step and one of its experts, whose product is a row of `width`
//! values. The executor weighs and sums rows in the order of slots, whoever computed them, so results are equal to the
//! bit if the rows are.

use std::error::Error;
use std::pin::Pin;

use ggml_format::MaybeSend;

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
}

impl ExpertCall {
    /// Values of the result: a row for each pair, in their order.
    pub fn n_value(&self) -> usize {
        self.pairs.len() * self.width as usize
    }

    /// The pairs of each expert, in order.
    pub fn by_expert(&self) -> impl Iterator<Item = &[Pair]> {
        self.pairs.chunk_by(|a, b| a.expert == b.expert)
    }
}

/// Place where an expert is computed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
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
    #[error("layer {layer} of experts: pair {at} does not follow the one before")]
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
