//! Kernel vocabulary for callers of the runtime; the kernels themselves are private.

pub use chaski_kernels::ops::mul_mat_vec::{ActivationPrecision, QKV_PAIRS};
pub use chaski_kernels::{
    Caps, CoopShape, FORMATS, FeatureSet, Format, KV_TYPES, MatVecTune, ProductClass, Tuned, Tuning, Unit,
    probes,
};

/// Words of the step buffer for penalties and biases.
pub mod adjust {
    pub use chaski_kernels::ops::adjust::{AdjustParams, MAX_BIAS, MAX_WINDOW, N_WORD, reference};
}

/// Masks of allowed tokens.
pub mod mask {
    pub use chaski_kernels::ops::mask::{n_word, reference};
}

/// Words of the step buffer for sampling.
pub mod sample {
    pub use chaski_kernels::ops::sample::{MAX_TOP_K, N_WORD, SampleParams, reference};
}

/// The value of an element-wise function without parameters.
pub fn value_of(f: &'static chaski_graph::Function, x: f64) -> f64 {
    (chaski_kernels::ops::unary::Function::of(f).formula)(x, [0.0; 4])
}
