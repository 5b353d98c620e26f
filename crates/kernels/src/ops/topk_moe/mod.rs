//! `topk_moe`: which experts a column uses and with which weights, from the router's logits.

mod cases;
pub mod reference;

use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError, fold};
use crate::op::{Op, Value, dispatch};
use crate::route::Route;

/// The row of this operation.
pub const OP: Op = Op {
    name: "topk_moe",
    template: template!("topk_moe/topk_moe.wgsl.jinja"),
    variants: || Gate::ALL.iter().map(|g| vec![("gate", Value::Word(g.word()))]).collect(),
    cases: Op::cases(cases::cases),
    ggml: &[],
    grid: None,
};

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
    /// Experts, 1 to [`Route::MAX_EXPERT`].
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
        of("experts", Route::MAX_EXPERT, self.n_expert)
            .or_else(|| of("groups of experts", Self::MAX_GROUP.min(self.n_expert), self.n_group))
            .or_else(|| of("used groups of experts", self.n_group, self.n_group_used))
            .or_else(|| {
                let whole = self.n_expert % self.n_group == 0;
                (!whole).then(|| ("experts", format!("a multiple of {}", self.n_group), self.n_expert))
            })
            .or_else(|| of("used experts", open, self.n_used))
    }
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct TopkMoe {
    /// How to choose.
    pub routing: Routing,
    /// `aux[0..n_expert]` is added for choosing.
    pub bias: bool,
    /// Values from column to column of x.
    pub ldx: u32,
    /// Columns.
    pub n_col: u32,
    /// Word of `route` at which weights begin ([`Route::weights_at`]).
    pub weights_at: u32,
}

impl TopkMoe {
    /// The kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] for counts that cannot be.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let r = &self.routing;
        if let Some((what, expected, found)) = r.wrong() {
            return Err(DispatchError::Shape { op: OP.name, what, expected, found: found.into() });
        }
        // A thread finds its own expert's rank; as many as there are groups at least.
        let wg = r.n_expert.next_power_of_two().clamp(64, 256).min(caps.max_threads);
        let constants = vec![
            ("WG", wg.into()),
            ("X", r.n_expert.into()),
            ("USED", r.n_used.into()),
            ("LDX", self.ldx.into()),
            ("COLS", self.n_col.into()),
            ("BIAS", f64::from(u8::from(self.bias))),
            ("GROUPS", r.n_group.into()),
            ("GROUPS_USED", r.n_group_used.into()),
            ("NORM", f64::from(u8::from(r.norm.is_some()))),
            ("CLAMP", r.norm.unwrap_or(1.0).into()),
            ("SCALE", r.scale.into()),
            ("W0", self.weights_at.into()),
        ];
        let [gx, gy] = fold(self.n_col, caps.max_groups);
        let why = format!("{wg} threads a column");
        dispatch(OP.name, &[Value::Word(r.gate.word())], constants, [gx, gy, 1], why)
    }
}
