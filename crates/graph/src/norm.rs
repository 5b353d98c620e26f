//! Kinds of norms.

/// Norms: each scales rows to a fixed statistic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormKind {
    /// Mean 0, variance 1.
    Norm,
    /// Mean square 1.
    Rms,
    /// Sum of squares 1.
    L2,
}

impl NormKind {
    /// All kinds.
    pub const ALL: [NormKind; 3] = [NormKind::Norm, NormKind::Rms, NormKind::L2];

    /// The name in kernel names.
    pub const fn word(self) -> &'static str {
        match self {
            NormKind::Norm => "norm",
            NormKind::Rms => "rms",
            NormKind::L2 => "l2",
        }
    }
}
