//! The vocabulary of kernels that callers of the runtime need; the kernels themselves stay below.

pub use chaski_kernels::ops::mul_mat_vec::Act;
pub use chaski_kernels::{
    Caps, FORMATS, FeatureSet, Format, KV_TYPES, MatVecTune, ProductClass, Tuned, Tuning, Unit, probes,
};

/// Sizes of the tables of cosines and sines.
pub mod rope {
    pub use chaski_kernels::rope::table_len;
}

/// Words of the step buffer for penalties and biases.
pub mod adjust {
    pub use chaski_kernels::ops::adjust::{AdjustParams, MAX_BIAS, MAX_WINDOW, N_WORD, reference};
}

/// Words of the step buffer for sampling.
pub mod sample {
    pub use chaski_kernels::ops::sample::{MAX_TOP_K, N_WORD, SampleParams, reference};
}
