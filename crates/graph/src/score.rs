//! Attention scores: from the product of a query and a key.

/// Growth of the scores of late positions by `1 + by * ln(pos / run + 1)`, with whole runs counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Warmth {
    /// Factor of the logarithm.
    pub by: f32,
    /// Positions per run, at least 1; those of the first run are unscaled.
    pub run: u32,
}

/// Transformations of the product of a query and a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Multiplies the product.
    pub scale: f32,
    /// Growth for late positions, if any.
    pub warmth: Option<Warmth>,
    /// `c * tanh(s / c)` after scaling; 0: none.
    pub softcap: f32,
    /// ALiBi: the largest exponent of a head's slope; 0: none.
    pub max_bias: f32,
    /// Sliding window: visible keys, including the position's own; 0: all.
    pub window: u32,
    /// Attention sinks: one score per query head, bound as `sinks`, is added to the denominator.
    pub sinks: bool,
}

impl Score {
    /// Scaled products over all keys.
    pub const fn scaled(scale: f32) -> Self {
        Score { scale, warmth: None, softcap: 0.0, max_bias: 0.0, window: 0, sinks: false }
    }
}
