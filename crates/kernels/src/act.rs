//! Precision of activations in products.

/// Precision in which activations (x) are multiplied by weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// As stored: f32.
    F32,
    /// 16-bit integers with a scale per run if the weights are integers with scales, else f32. As accurate as
    /// [`Act::F32`], and faster on devices with a dot product of four bytes.
    I16,
    /// 8-bit integers, likewise: faster and less accurate.
    I8,
}

impl Act {
    /// All precisions.
    pub const ALL: [Act; 3] = [Act::F32, Act::I16, Act::I8];

    /// The name in kernel names.
    pub const fn word(self) -> &'static str {
        match self {
            Act::F32 => "f32",
            Act::I16 => "i16",
            Act::I8 => "i8",
        }
    }
}
