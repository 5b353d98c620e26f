//! Which experts a token uses and with which weights, from the logits of the router.

/// What router logits become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gate {
    /// A softmax over all experts.
    Softmax,
    /// The logistic function.
    Sigmoid,
    /// Nothing; the weights are a softmax over the chosen experts.
    SoftmaxWeight,
    /// sqrt(log(1 + exp l))
    SqrtSoftplus,
}

impl Gate {
    /// All of them.
    pub const ALL: [Gate; 4] = [Gate::Softmax, Gate::Sigmoid, Gate::SoftmaxWeight, Gate::SqrtSoftplus];

    /// The word in kernel names.
    pub const fn word(self) -> &'static str {
        match self {
            Gate::Softmax => "softmax",
            Gate::Sigmoid => "sigmoid",
            Gate::SoftmaxWeight => "softmax_weight",
            Gate::SqrtSoftplus => "sqrt_softplus",
        }
    }
}

/// How experts are chosen and weighted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Routing {
    /// What router logits become.
    pub gate: Gate,
    /// Experts, 1 to [`Routing::MAX_EXPERT`].
    pub n_expert: u32,
    /// Experts that a column uses.
    pub n_used: u32,
    /// Groups that experts stand in, 1 to [`Routing::MAX_GROUP`]; they divide the experts.
    pub n_group: u32,
    /// Groups whose experts can be chosen.
    pub n_group_used: u32,
    /// Weights are divided by their sum, or by this if it is more.
    pub norm: Option<f32>,
    /// Multiplies the weights.
    pub scale: f32,
}

impl Routing {
    /// Experts that can be told apart.
    pub const MAX_EXPERT: u32 = 1024;
    /// Groups that a kernel can tell apart.
    pub const MAX_GROUP: u32 = 64;
    /// What families divide by at least: 2^-14, the least normal f16.
    pub const CLAMP: f32 = 6.103_515_6e-5;

    /// Says which size cannot be: its name, what it must be, and what it is.
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
