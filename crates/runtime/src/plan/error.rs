//! Why a graph cannot be planned.

use chaski_kernels::DispatchError;

use crate::formats::FormatError;

/// Reasons why a graph cannot be planned for a device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A tensor whose type is not a weight format.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// Rows too large for a binding.
    #[error(
        "tensor `{tensor}`: a row of {n_col} values is not a multiple of the block size, or exceeds a binding of the device"
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
    /// A chunk too large for a deterministic plan.
    #[cfg(not(target_arch = "wasm32"))]
    #[error("a deterministic plan has at most {limit} tokens, not {found}")]
    Deterministic {
        /// Requested columns.
        found: u32,
        /// The limit.
        limit: u32,
    },
    /// The graph has no logits.
    #[error("the graph lacks {what}")]
    Missing {
        /// The missing part.
        what: &'static str,
    },
    /// A LoRA's scale in a product that has more than this factor.
    #[error(
        "the product of tensor `{tensor}` has the scale of a LoRA, but also a bias, or other products beside it"
    )]
    LoraScale {
        /// The tensor.
        tensor: String,
    },
    /// Expert offload of a model without experts.
    #[error("the model has no experts to offload to the CPU")]
    NoExperts,
    /// A part of a plan that a device that only replays cannot have.
    #[cfg(not(target_arch = "wasm32"))]
    #[error("experts cannot be planned for a page: {what}")]
    Replay {
        /// The part.
        what: String,
    },
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
    /// Expert offload of a model whose first layers are on the CPU.
    #[error(
        "experts cannot be offloaded to the CPU while it has layers of its own, whose experts it computes: use one of the two"
    )]
    OffloadAfterCpu,
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
    /// A list of devices with the CPU twice, or with nothing else.
    #[error("the CPU may appear only once in a list of devices, beside at least one GPU")]
    CpuAlone,
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
