//! Precision of activations in products.

/// Precision in which activations (x) are multiplied by weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ActivationPrecision {
    /// As stored: f32.
    F32,
    /// 16-bit integers with a scale per run if the weights are integers with scales, else f32. As accurate as
    /// [`ActivationPrecision::F32`], and faster on devices with a dot product of four bytes.
    I16,
    /// 8-bit integers, likewise: faster and less accurate.
    I8,
}

impl ActivationPrecision {
    /// All precisions.
    pub const ALL: [ActivationPrecision; 3] =
        [ActivationPrecision::F32, ActivationPrecision::I16, ActivationPrecision::I8];

    /// The name in kernel names.
    pub const fn word(self) -> &'static str {
        match self {
            ActivationPrecision::F32 => "f32",
            ActivationPrecision::I16 => "i16",
            ActivationPrecision::I8 => "i8",
        }
    }
}
