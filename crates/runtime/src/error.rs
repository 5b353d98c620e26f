//! What can go wrong between a model and a device.

use crate::formats::FormatError;
use crate::plan::PlanError;

/// An error of the runtime.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// No GPU was found.
    #[error("no GPU adapter was found{hint}")]
    NoAdapter {
        /// What to do, if known; begins with a separator.
        hint: String,
    },
    /// No GPU of that name.
    #[error("no GPU adapter matches `{wanted}` (found: {found})")]
    NoSuchAdapter {
        /// The name or number asked for.
        wanted: String,
        /// The adapters that there are.
        found: String,
    },
    /// The only GPU is a program, and [`GpuOptions::no_software`](crate::gpu::GpuOptions::no_software) takes none such.
    #[error("{adapter} is a program, which takes longer than the processor by itself")]
    Software {
        /// The adapter's name.
        adapter: String,
    },
    /// The adapter refused to open a device.
    #[error("the adapter `{adapter}` did not open a device")]
    Open {
        /// The adapter's name.
        adapter: String,
        /// wgpu's reason.
        #[source]
        source: wgpu::RequestDeviceError,
    },
    /// The device has not enough memory.
    #[error(
        "out of device memory: could not allocate {n_byte} bytes for {what}; use a smaller context or a smaller model"
    )]
    OutOfMemory {
        /// The buffer.
        what: String,
        /// Its size.
        n_byte: u64,
    },
    /// The device is gone: reset by the driver, unplugged, or out of memory inside the driver.
    #[error("the device was lost: {reason}")]
    DeviceLost {
        /// The driver's message.
        reason: String,
    },
    /// wgpu refused a call; a bug of ours or of the driver.
    #[error("the device refused {what}: {reason}")]
    Refused {
        /// The object's label.
        what: String,
        /// wgpu's message.
        reason: String,
    },
    /// A kernel that was measured did not find what it must.
    #[error("{what} gave a wrong result at value {at}: a bug of ours or of the driver")]
    WrongResult {
        /// What was run.
        what: &'static str,
        /// Index of the first wrong value.
        at: usize,
    },
    /// The device's own kernels do not give what their references give.
    #[error("the driver computes wrong values: {kernel} ({case}): {what}")]
    SelfTest {
        /// The kernel.
        kernel: String,
        /// What it was asked.
        case: String,
        /// What is wrong.
        what: String,
    },
    /// Recurrent state that is not where a sequence wants to go on.
    #[error(
        "the recurrent state is {}, and cannot go on at position {pos}: bring a copy back or begin at 0",
        found.map_or("unknown".to_owned(), |n| format!("that of {n} tokens"))
    )]
    State {
        /// Tokens that the state has seen, if that is known.
        found: Option<u32>,
        /// Position of the next token.
        pos: u32,
    },
    /// The model does not fit the device.
    #[error("the model cannot be planned for this device")]
    Plan(#[from] PlanError),
    /// A tensor in a type that is no weight format.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A tensor could not be read.
    #[error("could not read tensor `{tensor}`")]
    Tensor {
        /// The tensor.
        tensor: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A weight format that cannot be computed with.
    #[error("tensor `{tensor}`: the type {ty} has no dequantiser")]
    NoDequantizer {
        /// The tensor.
        tensor: String,
        /// Its type.
        ty: ggml_format::GgmlType,
    },
    /// What is done only where all experts are on the device.
    #[error("{what} needs all experts on the device, found some that stay with the processor")]
    NeedsExperts {
        /// What was asked.
        what: &'static str,
    },
    /// What is done only where all layers are on one device.
    #[error("{what} needs all layers on one device, found several")]
    NeedsOneDevice {
        /// What was asked.
        what: &'static str,
    },
    /// Values that do not fit the model or the batch.
    #[error("{what}: {found}, but must be {expected}")]
    Shape {
        /// Which number.
        what: &'static str,
        /// The number found.
        found: u64,
        /// The number that fits.
        expected: u64,
    },
    /// A request beyond what the engine was built for.
    #[error("{what}: {found}, but at most {limit}")]
    Limit {
        /// Which size.
        what: &'static str,
        /// The size asked for.
        found: u64,
        /// The largest that fits.
        limit: u64,
    },
}

impl From<chaski_kernels::DispatchError> for RuntimeError {
    fn from(e: chaski_kernels::DispatchError) -> Self {
        RuntimeError::Plan(e.into())
    }
}
