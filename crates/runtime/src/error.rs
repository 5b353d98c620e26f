//! Errors of the runtime.

use crate::experts::ExpertError;
use crate::formats::FormatError;
use crate::plan::PlanError;

/// An error of the runtime.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// No GPU was found.
    #[error("no GPU adapter was found{hint}")]
    NoAdapter {
        /// A hint, if known; begins with a separator.
        hint: String,
    },
    /// No GPU of that name.
    #[error("no GPU adapter matches `{wanted}` (found: {found})")]
    NoSuchAdapter {
        /// The requested name or index.
        wanted: String,
        /// The available adapters.
        found: String,
    },
    /// The only GPU is a software renderer, which [`GpuOptions::no_software`](crate::gpu::GpuOptions::no_software)
    /// excludes.
    #[error("{adapter} is a software renderer, slower than the CPU backend")]
    Software {
        /// The adapter's name.
        adapter: String,
    },
    /// The adapter could not open a device.
    #[error("the adapter `{adapter}` did not open a device")]
    Open {
        /// The adapter's name.
        adapter: String,
        /// wgpu's reason.
        #[source]
        source: wgpu::RequestDeviceError,
    },
    /// Out of device memory.
    #[error(
        "out of device memory: could not allocate {n_byte} bytes for {what}; use a smaller context or a smaller model"
    )]
    OutOfMemory {
        /// The buffer.
        what: String,
        /// Its size.
        n_byte: u64,
    },
    /// Device loss: a driver reset, an unplugged device, or out of memory inside the driver.
    #[error("the device was lost: {reason}")]
    DeviceLost {
        /// The driver's message.
        reason: String,
    },
    /// A model over several devices does not run on those that are left.
    #[error("{missing} is missing, and the model does not run on the other devices")]
    Missing {
        /// The names of the lost devices.
        missing: String,
        /// The failure on the rest.
        #[source]
        source: Box<RuntimeError>,
    },
    /// Worker threads of the CPU backend did not start.
    #[error("could not start {n} threads: {reason}")]
    Threads {
        /// Their number.
        n: u32,
        /// The system's message.
        reason: String,
    },
    /// wgpu rejected a call; a bug of ours or of the driver.
    #[error("the device refused {what}: {reason}")]
    Refused {
        /// The object's label.
        what: String,
        /// wgpu's message.
        reason: String,
    },
    /// A measured kernel returned a wrong result.
    #[error("{what} gave a wrong result at value {at}: a bug of ours or of the driver")]
    WrongResult {
        /// The kernel.
        what: &'static str,
        /// Index of the first wrong value.
        at: usize,
    },
    /// The device's results differ from the references.
    #[error("the driver computes wrong values: {kernel} ({case}): {what}")]
    SelfTest {
        /// The kernel.
        kernel: String,
        /// The test case.
        case: String,
        /// The mismatch.
        what: String,
    },
    /// Recurrent state at another position than a sequence continues from.
    #[error(
        "the recurrent state is {}, and cannot continue at position {pos}: restore a copy, or start at position 0",
        found.map_or("unknown".to_owned(), |n| format!("that of {n} tokens"))
    )]
    State {
        /// Tokens that the state has processed, if known.
        found: Option<u32>,
        /// Position of the next token.
        pos: u32,
    },
    /// A part of a text for an encoder, which needs the whole text in a step.
    #[error(
        "the model is an encoder, which takes a text at once: found a token at position {pos} that does not follow the one before"
    )]
    Text {
        /// Position of the token.
        pos: u32,
    },
    /// The model does not fit the device.
    #[error("the model cannot be planned for this device")]
    Plan(#[from] PlanError),
    /// A tensor whose type is not a weight format.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// Experts elsewhere did not compute their rows.
    #[error(transparent)]
    Experts(#[from] ExpertError),
    /// A tensor could not be read.
    #[error("could not read tensor `{tensor}`")]
    Tensor {
        /// The tensor.
        tensor: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A weight format without dequantiser.
    #[error("tensor `{tensor}`: the type {ty} has no dequantiser")]
    NoDequantizer {
        /// The tensor.
        tensor: String,
        /// Its type.
        ty: ggml_format::GgmlType,
    },
    /// An operation that does not support offloaded experts.
    #[error("{what} requires all experts on the device, found offloaded ones")]
    NeedsExperts {
        /// The operation.
        what: &'static str,
    },
    /// Something that a model's plan has no room for.
    #[error("the model was not planned for {what}")]
    NotPlanned {
        /// The missing part.
        what: &'static str,
    },
    /// An operation that does not support several devices.
    #[error("{what} needs all layers on one device, found several")]
    NeedsOneDevice {
        /// The operation.
        what: &'static str,
    },
    /// Values that do not match the model or the batch.
    #[error("{what}: {found}, but must be {expected}")]
    Shape {
        /// The quantity.
        what: &'static str,
        /// The actual number.
        found: u64,
        /// The expected number.
        expected: u64,
    },
    /// A request beyond the engine's limits.
    #[error("{what}: {found}, but at most {limit}")]
    Limit {
        /// The quantity.
        what: &'static str,
        /// The requested size.
        found: u64,
        /// The limit.
        limit: u64,
    },
}

impl From<chaski_kernels::DispatchError> for RuntimeError {
    fn from(e: chaski_kernels::DispatchError) -> Self {
        RuntimeError::Plan(e.into())
    }
}
