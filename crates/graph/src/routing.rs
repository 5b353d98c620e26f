//! Routing: the experts of a token and their weights, from the router's logits.

/// Transformation of the router's logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gate {
    /// A softmax over all experts.
    Softmax,
    /// The logistic function.
    Sigmoid,
    /// None; the weights are a softmax over the selected experts.
    SoftmaxWeight,
    /// sqrt(log(1 + exp l))
    SqrtSoftplus,
}

impl Gate {
    /// All gates.
    pub const ALL: [Gate; 4] = [Gate::Softmax, Gate::Sigmoid, Gate::SoftmaxWeight, Gate::SqrtSoftplus];

    /// The name in kernel names.
    pub const fn word(self) -> &'static str {
        match self {
            Gate::Softmax => "softmax",
            Gate::Sigmoid => "sigmoid",
            Gate::SoftmaxWeight => "softmax_weight",
            Gate::SqrtSoftplus => "sqrt_softplus",
        }
    }
}

/// Parameters of selecting and weighting experts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Routing {
    /// Transformation of the logits.
    pub gate: Gate,
    /// Experts, 1 to [`Routing::MAX_EXPERT`].
    pub n_expert: u32,
    /// Experts per token.
    pub n_used: u32,
    /// Groups of experts, 1 to [`Routing::MAX_GROUP`], of equal size.
    pub n_group: u32,
    /// Groups whose experts can be selected.
    pub n_group_used: u32,
    /// Divide the weights by their sum, but by no less than this.
    pub norm: Option<f32>,
    /// Multiplies the weights.
    pub scale: f32,
}

impl Routing {
    /// Maximum number of experts.
    pub const MAX_EXPERT: u32 = 1024;
    /// Maximum number of groups.
    pub const MAX_GROUP: u32 = 64;
    /// Lower bound of the divisor in most families: 2^-14, the smallest normal f16.
    pub const CLAMP: f32 = 6.103_515_6e-5;

    /// The first invalid size: its name, the expected and the actual value.
    pub fn wrong(&self) -> Option<(&'static str, String, u32)> {
        let of = |what, most: u32, found: u32| {
            (found == 0 || found > most).then(|| (what, format!("1 to {most}"), found))
        };
        let open = self.n_expert / self.n_group.max(1) * self.n_group_used;
        of("experts", Self::MAX_EXPERT, self.n_expert)
            .or_else(|| of("groups of experts", Self::MAX_GROUP.min(self.n_expert), self.n_group))
            .or_else(|| of("used groups of experts", self.n_group, self.n_group_used))
            .or_else(|| {
                let whole = self.n_expert % self.n_group == 0;
                (!whole).then(|| ("experts", format!("a multiple of {}", self.n_group), self.n_expert))
            })
            .or_else(|| of("used experts", open, self.n_used))
    }
}
