//! Mixtures of experts: routing, the experts that a token uses, and an expert that all tokens use.

use chaski_kernels::ops::glu::Act;
use chaski_kernels::ops::topk_moe::{Gate, Routing};
use chaski_kernels::ops::unary::Function;
use chaski_runtime::graph::{Op, ValueId};

use super::feed_forward::gated;
use crate::arch::Builder;
use crate::error::ModelError;

/// An expert that all tokens use, `ffn_*_shexp`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shared {
    /// There is none.
    None,
    /// One of this width.
    Plain(u32),
    /// One of this width, times the logistic function of `ffn_gate_inp_shexp x`.
    Gated(u32),
}

/// The experts of a layer.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Experts {
    /// Width of each.
    pub(crate) n_ff: u32,
    /// Their activation.
    pub(crate) act: Act,
    /// How the router chooses them.
    pub(crate) routing: Routing,
    /// What all tokens use beside them.
    pub(crate) shared: Shared,
}

impl Experts {
    /// Experts of this width with SiLU gates and the routing of most families.
    pub(crate) fn new(b: &Builder<'_>, n_ff: u32) -> Self {
        Experts { n_ff, act: Act::Swiglu, routing: softmax_routing(b), shared: Shared::None }
    }

    /// `x`: normalised input `[n_embd]`; returns what is added to the residual stream, `[n_embd]`.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub(crate) fn build(&self, b: &mut Builder<'_>, block: &str, x: ValueId) -> Result<ValueId, ModelError> {
        let router = b.linear(&format!("{block}.ffn_gate_inp"), self.routing.n_expert, b.config.n_embd)?;
        let logits = b.mul(x, router); // [n_expert]
        self.build_routed(b, block, x, logits)
    }

    /// The same by a router's logits, `[n_expert]`.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub(crate) fn build_routed(
        &self,
        b: &mut Builder<'_>,
        block: &str,
        x: ValueId,
        logits: ValueId,
    ) -> Result<ValueId, ModelError> {
        let y = self.chosen(b, block, x, logits)?;
        let shared = match self.shared {
            Shared::None => return Ok(y),
            Shared::Plain(n_ff) => gated(b, block, "_shexp", n_ff, self.act, x)?,
            Shared::Gated(n_ff) => {
                let w = b.row(&format!("{block}.ffn_gate_inp_shexp.weight"), b.config.n_embd)?;
                let gate = b.mul(x, w); // [1]
                let f = Function::find("sigmoid").expect("a row of the table");
                let gate = b.push(Op::Unary { x: gate, f, params: [0.0; 4] }, 1);
                let a = gated(b, block, "_shexp", n_ff, self.act, x)?;
                b.push(Op::Mul { a, b: gate }, b.config.n_embd)
            }
        };
        Ok(b.add(y, shared))
    }

    /// Each token goes through the experts that the routing chooses by the logits, with `exp_probs_b` for choosing if the
    /// file has it.
    fn chosen(
        &self,
        b: &mut Builder<'_>,
        block: &str,
        x: ValueId,
        logits: ValueId,
    ) -> Result<ValueId, ModelError> {
        let (n_embd, n_expert, n_ff) = (b.config.n_embd, self.routing.n_expert, self.n_ff);
        let bias = format!("{block}.exp_probs_b.bias");
        let bias = if b.has(&bias) { Some(b.vector(&bias, n_expert)?) } else { None };
        let [gate, up] = b.gate_up_experts(block, n_expert, n_ff, n_embd)?;
        let down = b.experts(&format!("{block}.ffn_down_exps"), n_expert, n_embd, n_ff)?;
        let route = b.route(logits, bias, self.routing); // [n_used, 2]
        let (gate, up) = (b.mul_id(x, route, gate), b.mul_id(x, route, up)); // [n_used, n_ff] each
        let h = b.push(Op::Glu { gate, up, act: self.act }, n_ff);
        let y = b.mul_id(h, route, down); // [n_used, n_embd]
        Ok(b.push(Op::MoeReduce { x: y, route }, n_embd))
    }
}

/// The routing of most families: a softmax over all experts, the weights of the chosen divided by their sum.
pub(crate) fn softmax_routing(b: &Builder<'_>) -> Routing {
    let c = b.config;
    Routing {
        gate: Gate::Softmax,
        n_expert: c.n_expert,
        n_used: c.n_expert_used,
        n_group: 1,
        n_group_used: 1,
        norm: Some(Routing::CLAMP),
        scale: 1.0,
    }
}

/// The routing that the file's keys describe; `gate` where it names none.
///
/// # Errors
/// [`ModelError::Config`] for a number of a gate that has no meaning, or counts that cannot be.
pub(crate) fn routing(b: &Builder<'_>, gate: Gate) -> Result<Routing, ModelError> {
    let wrong = |key: &str, found: String, expected: String| ModelError::Config {
        key: format!("{}.{key}", b.config.arch),
        found,
        expected,
    };
    let gate = match b.u32("expert_gating_func")? {
        None | Some(0) => gate,
        Some(1) => Gate::Softmax,
        Some(2) => Gate::Sigmoid,
        Some(3) => Gate::SoftmaxWeight,
        Some(4) => Gate::SqrtSoftplus,
        Some(n) => return Err(wrong("expert_gating_func", n.to_string(), "must be 1 to 4".into())),
    };
    let is_normed = b.bool("expert_weights_norm")?.unwrap_or(false);
    let r = Routing {
        gate,
        n_group: b.u32("expert_group_count")?.unwrap_or(1).max(1),
        n_group_used: b.u32("expert_group_used_count")?.unwrap_or(1).max(1),
        norm: is_normed.then_some(Routing::CLAMP),
        scale: b.f32("expert_weights_scale")?.filter(|s| *s != 0.0).unwrap_or(1.0),
        ..softmax_routing(b)
    };
    match r.wrong() {
        Some((what, expected, found)) if r.n_expert > 0 => Err(wrong(
            "expert_group_count",
            format!("such that there are {found} {what}"),
            format!("must make {expected}"),
        )),
        _ => Ok(r),
    }
}
