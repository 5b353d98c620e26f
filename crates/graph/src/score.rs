//! How the product of a query and a key becomes a score of attention.

/// What multiplies the scores of late positions: `1 + by * ln(pos / run + 1)`, where whole runs are counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Warmth {
    /// Factor of the logarithm.
    pub by: f32,
    /// Positions a run, at least 1: those of the first run are left alone.
    pub run: u32,
}

/// How the product of a query and a key becomes a score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Multiplies the product.
    pub scale: f32,
    /// Multiplies it for late positions; `None` does not.
    pub warmth: Option<Warmth>,
    /// `c * tanh(s / c)` after that; 0: none.
    pub softcap: f32,
    /// ALiBi: the largest exponent of a head's slope, by which the distance is taken off; 0: none.
    pub max_bias: f32,
    /// Keys that a position sees, itself and those before it; 0: all.
    pub window: u32,
    /// A score without a value for each query head, bound as `sinks`, joins the denominator.
    pub sinks: bool,
}

impl Score {
    /// Scaled products of all keys.
    pub const fn scaled(scale: f32) -> Self {
        Score { scale, warmth: None, softcap: 0.0, max_bias: 0.0, window: 0, sinks: false }
    }
}
