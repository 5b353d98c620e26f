//! Generic access to an operation: its name, its matrices, its inputs.

use crate::graph::Op;
use crate::id::{ValueId, WeightId};
use crate::latent::Latent;
use crate::recurrent::Recurrent;

impl Op {
    /// Name of the operation.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Embed { .. } => "embed",
            Op::Input { .. } => "input",
            Op::EmbedPosition { .. } => "embed_position",
            Op::RmsNorm { .. } => "rms_norm",
            Op::Norm { .. } => "norm",
            Op::MulMat { .. } => "mul_mat",
            Op::Products { .. } => "products",
            Op::Rope { .. } => "rope",
            Op::KvWrite { .. } => "kv_write",
            Op::Attention { .. } => "attention",
            Op::Bidirectional(_) => "bidirectional",
            Op::Glu { .. } => "glu",
            Op::Add { .. } => "add",
            Op::TopkMoe { .. } => "topk_moe",
            Op::MulMatId { .. } => "mul_mat_id",
            Op::MoeReduce { .. } => "moe_reduce",
            Op::Scale { .. } => "scale",
            Op::Recurrent(Recurrent::ShortConv(_)) => "short_conv",
            Op::Recurrent(Recurrent::Scan(_)) => "scan",
            Op::Recurrent(Recurrent::DeltaNet(_)) => "delta_net",
            Op::Recurrent(Recurrent::GatedNorm(_)) => "gated_norm",
            Op::Latent(_) => "latent",
            Op::AltUp(_) => "altup",
            Op::Cutoff { .. } => "cutoff",
            Op::MulWeight { .. } => "mul_weight",
            Op::AddWeight { .. } => "add_weight",
            Op::MulHeads { .. } => "mul_heads",
            Op::Slice { .. } => "slice",
            Op::Unary { .. } => "unary",
            Op::Mul { .. } => "mul",
        }
    }

    /// Matrices that it multiplies by, and tables that it reads rows of.
    pub fn matrices(&self) -> Vec<WeightId> {
        match self {
            Op::Embed { table } | Op::EmbedPosition { table } => vec![*table],
            Op::MulMat { weight, .. } | Op::MulMatId { weight, .. } | Op::MulHeads { weight, .. } => {
                vec![*weight]
            }
            Op::Products { parts, .. } => parts.iter().map(|p| p.weight).collect(),
            Op::Latent(op) => vec![op.keys],
            _ => vec![],
        }
    }

    /// The layer of the KV cache that it uses.
    pub fn kv_layer(&self) -> Option<usize> {
        match self {
            Op::KvWrite { layer, .. } | Op::Attention { layer, .. } | Op::Latent(Latent { layer, .. }) => {
                Some(*layer)
            }
            _ => None,
        }
    }

    /// The layer of recurrent state that it uses.
    pub fn state_layer(&self) -> Option<usize> {
        match self {
            Op::Recurrent(Recurrent::ShortConv(op)) => Some(op.state),
            Op::Recurrent(Recurrent::Scan(op)) => Some(op.state),
            Op::Recurrent(Recurrent::DeltaNet(op)) => Some(op.state),
            _ => None,
        }
    }

    /// The same operation on other values.
    #[must_use]
    pub fn moved(mut self, to: impl Fn(ValueId) -> ValueId) -> Self {
        let inputs: Vec<&mut ValueId> = match &mut self {
            Op::Embed { .. } | Op::EmbedPosition { .. } => vec![],
            Op::RmsNorm { x, .. }
            | Op::Norm { x, .. }
            | Op::Input { x }
            | Op::MulMat { x, .. }
            | Op::Products { x, .. }
            | Op::Rope { x, .. }
            | Op::Scale { x, .. }
            | Op::Unary { x, .. }
            | Op::MulHeads { x, .. }
            | Op::MulWeight { x, .. }
            | Op::AddWeight { x, .. }
            | Op::Cutoff { x, .. }
            | Op::Slice { x, .. }
            | Op::TopkMoe { x, .. } => vec![x],
            Op::KvWrite { k, v, .. } => vec![k, v],
            Op::Attention { q, .. } => vec![q],
            Op::Glu { gate, up, .. } => vec![gate, up],
            Op::Add { a, b } | Op::Mul { a, b } => vec![a, b],
            Op::MulMatId { x, route, .. } | Op::MoeReduce { x, route } => vec![x, route],
            Op::Latent(Latent { q, x, .. }) => vec![q, x],
            Op::Bidirectional(op) => return Op::Bidirectional(op.moved(to)),
            Op::Recurrent(op) => return Op::Recurrent(op.moved(to)),
            Op::AltUp(op) => return Op::AltUp(op.moved(to)),
        };
        inputs.into_iter().for_each(|v| *v = to(*v));
        self
    }
}
