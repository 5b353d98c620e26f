//! Which nodes may run as one step: all that can, unless someone looks for the one that is wrong.

/// A rule by which nodes of a graph become one step.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Fusion {
    /// An RMS norm and the products that read it.
    NormOfProduct,
    /// A norm and the sum that follows.
    NormAndSum,
    /// Products for q, k and v, what happens to their heads, and the write to the cache.
    Qkv,
    /// Gate, up and their activation.
    Gated,
    /// The same by experts.
    GatedExperts,
    /// Products by experts and their weighted sum.
    SumOfExperts,
    /// A product and a factor.
    Factor,
    /// A product, or a sum over experts, and the sum with something older.
    Residual,
}

impl Fusion {
    /// All rules.
    pub const ALL: [Fusion; 8] = [
        Fusion::NormOfProduct,
        Fusion::NormAndSum,
        Fusion::Qkv,
        Fusion::Gated,
        Fusion::GatedExperts,
        Fusion::SumOfExperts,
        Fusion::Factor,
        Fusion::Residual,
    ];
}

/// The rules that a plan may use. Whichever they are, the model computes the same.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fusions(u32);

impl Fusions {
    /// Every rule.
    pub const ALL: Fusions = Fusions(u32::MAX);
    /// None: each node is a step.
    pub const NONE: Fusions = Fusions(0);

    /// Whether the plan may use a rule.
    pub const fn has(self, rule: Fusion) -> bool {
        self.0 & 1 << rule as u32 != 0
    }

    /// The same with a rule.
    #[must_use]
    pub const fn with(self, rule: Fusion) -> Self {
        Fusions(self.0 | 1 << rule as u32)
    }

    /// The same without a rule.
    #[must_use]
    pub const fn without(self, rule: Fusion) -> Self {
        Fusions(self.0 & !(1 << rule as u32))
    }
}

impl Default for Fusions {
    fn default() -> Self {
        Fusions::ALL
    }
}
