//! MoE: routing, routed experts, and a shared expert.

use chaski_graph::recurrent::GateAct;
use chaski_graph::recurrent::{GatedNorm, Recurrent, View};
use chaski_graph::{Act, Gate, Op, Routing, ValueId};

use super::gated::{gate_up, gated};
use crate::build::{Builder, Linear};
use crate::error::ModelError;

/// A shared expert, `ffn_*_shexp`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shared {
    /// There is none.
    None,
    /// One of this width.
    Plain(u32),
    /// One of this width, times the logistic function of `ffn_gate_inp_shexp x`.
    Gated(u32),
    /// The dense part of this width, `ffn_*`.
    Dense(u32),
}

/// The experts of a layer.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Experts {
    /// Width of an expert.
    pub(crate) n_ff: u32,
    /// Their activation.
    pub(crate) act: Act,
    /// Routing parameters.
    pub(crate) routing: Routing,
    /// The shared expert.
    pub(crate) shared: Shared,
    /// Factor of the shared expert's output.
    pub(crate) shared_scale: f32,
    /// Limits of SwiGLU in routed experts and in the shared one: the gate from above, up on both sides; 0: none.
    pub(crate) limits: [f32; 2],
    /// Routing weights multiply the experts' inputs rather than their outputs. Such layers use one expert per token.
    pub(crate) weighs_inputs: bool,
}

/// Hidden activations of the experts, and the remaining product.
struct Routed {
    /// `[n_used, n_ff]`
    h: ValueId,
    /// The last product.
    down: Linear,
    /// Experts and weights: `[n_used, 2]`.
    route: ValueId,
    /// Logits of the router, and of the gate multiplied with it.
    logits: ValueId,
}

impl Experts {
    /// Experts of this width with SiLU gates and the most common routing.
    pub(crate) fn new(b: &Builder<'_>, n_ff: u32) -> Self {
        Experts {
            n_ff,
            act: Act::Swiglu,
            routing: softmax_routing(b),
            shared: Shared::None,
            shared_scale: 1.0,
            limits: [0.0; 2],
            weighs_inputs: false,
        }
    }

    /// `x`: normalised input `[n_embd]`; returns the addends of the residual stream, `[n_embd]` each.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub(crate) fn addends(
        &self,
        b: &mut Builder<'_>,
        block: &str,
        x: ValueId,
    ) -> Result<Vec<ValueId>, ModelError> {
        let n_embd = b.config.n_embd;
        // Everything that reads x comes first, so that later results can be accumulated in place.
        let gate = match self.shared {
            Shared::Gated(_) => Some(b.row(&format!("{block}.ffn_gate_inp_shexp.weight"), n_embd)?),
            _ => None,
        };
        let Routed { h, down, route, logits } = self.routed(b, block, gate, x)?;
        let shared = match self.shared {
            Shared::None => None,
            Shared::Plain(n_ff) | Shared::Gated(n_ff) => {
                Some(gate_up(b, block, "_shexp", n_ff, (self.act, self.limits[1]), x)?)
            }
            Shared::Dense(n_ff) => Some(gate_up(b, block, "", n_ff, (self.act, self.limits[1]), x)?),
        };
        let y = b.mul_id(h, route, down); // [n_used, n_embd]
        let mut out = vec![b.push(Op::MoeReduce { x: y, route }, n_embd)];
        if let Some((h, down)) = shared {
            let mut y = b.mul(h, down); // [n_embd]
            if gate.is_some() {
                let z = View { of: logits, at: self.routing.n_expert };
                let gate = GatedNorm { x: y, z, z_row: true, act: GateAct::Sigmoid, norm: None, k: n_embd };
                y = b.recurrent(Recurrent::GatedNorm(gate), n_embd);
            }
            out.push(b.scaled(y, self.shared_scale));
        }
        Ok(out)
    }

    /// Routed experts only, from router logits `[n_expert]` that were computed elsewhere.
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
        let Routed { h, down, route, .. } = self.chosen(b, block, x, logits)?;
        let y = b.mul_id(h, route, down); // [n_used, n_embd]
        Ok(b.push(Op::MoeReduce { x: y, route }, b.config.n_embd))
    }

    /// The experts up to their last product, with the router `ffn_gate_inp`; `gate` is multiplied together with the
    /// router.
    fn routed(
        &self,
        b: &mut Builder<'_>,
        block: &str,
        gate: Option<Linear>,
        x: ValueId,
    ) -> Result<Routed, ModelError> {
        let router = b.linear(&format!("{block}.ffn_gate_inp"), self.routing.n_expert, b.config.n_embd)?;
        let logits = match gate {
            None => b.mul(x, router),                    // [n_expert]
            Some(gate) => b.mul_all(x, &[router, gate]), // [n_expert + 1]
        };
        self.chosen(b, block, x, logits)
    }

    /// Applies the selected experts, with `exp_probs_b` for the selection if the file has it.
    fn chosen(
        &self,
        b: &mut Builder<'_>,
        block: &str,
        x: ValueId,
        logits: ValueId,
    ) -> Result<Routed, ModelError> {
        let Experts { n_ff, act, mut routing, .. } = *self;
        let mut x = x;
        let (n_embd, n_expert) = (b.config.n_embd, routing.n_expert);
        // Some files omit the suffix.
        let names = ["exp_probs_b.bias", "exp_probs_b"].map(|name| format!("{block}.{name}"));
        let bias = names.iter().find(|name| b.has(name));
        let bias = bias.map(|name| b.vector(name, n_expert)).transpose()?;
        let [gate, up] = b.gate_up_experts(block, n_expert, n_ff, n_embd)?;
        let down = b.experts(&format!("{block}.ffn_down_exps"), n_expert, n_embd, n_ff)?;
        if self.weighs_inputs {
            let weights = b.route(logits, bias, routing); // [1, 2]
            x = b.push(Op::MoeReduce { x, route: weights }, n_embd);
            // A softmax over a single expert is 1.
            routing = Routing { gate: Gate::SoftmaxWeight, norm: None, scale: 1.0, ..routing };
        }
        let route = b.route(logits, bias, routing); // [n_used, 2]
        let (gate, up) = (b.mul_id(x, route, gate), b.mul_id(x, route, up)); // [n_used, n_ff] each
        let h = gated(b, gate, up, (act, self.limits[0]));
        Ok(Routed { h, down, route, logits })
    }
}

/// The most common routing: a softmax over all experts, weights divided by their sum.
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

/// The routing given by the file's keys; `gate` if they specify none.
///
/// # Errors
/// [`ModelError::Config`] for an unknown gate or invalid counts.
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
