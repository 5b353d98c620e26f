//! Per-layer embeddings: inputs of each layer from a table and from the token's embedding.

use chaski_graph::{Act, NormKind, Op, RowNorm, ValueId};

use crate::build::Builder;
use crate::error::ModelError;

/// The inputs of all layers.
#[derive(Copy, Clone, Debug)]
pub(crate) struct PerLayer {
    /// `[n_layer, n]`
    all: ValueId,
    /// Channels per layer.
    n: u32,
}

impl PerLayer {
    /// Inputs of `n` channels per layer: (norm(W e / sqrt(n_embd)) + sqrt(n) * table) / sqrt(2), where `e` are the
    /// scaled embeddings `[n_embd]`; the norm is per layer.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub(crate) fn new(b: &mut Builder<'_>, n: u32, e: ValueId) -> Result<Self, ModelError> {
        let c = b.config;
        let width = n * c.n_layer;
        let table = b.matrix("per_layer_token_embd.weight", c.n_vocab, width)?;
        let project = b.linear("per_layer_model_proj", width, c.n_embd)?;
        let weight = b.vector("per_layer_proj_norm.weight", n)?;
        let t = b.push(Op::Embed { table }, width); // [n_layer, n]
        let t = b.scaled(t, (n as f32).sqrt());
        let p = b.mul(e, project); // [n_layer, n]
        let p = b.scaled(p, 1.0 / (c.n_embd as f32).sqrt());
        let norm = RowNorm { kind: NormKind::Rms, d: n, eps: c.eps, weight: Some(weight), bias: None };
        let p = b.push(Op::Norm { x: p, norm }, width);
        let sum = b.add(p, t);
        Ok(PerLayer { all: b.scaled(sum, 0.5f32.sqrt()), n })
    }

    /// The layer's addend of `y`, `[n_embd]`: norm(W (gelu(W' y) * input)).
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub(crate) fn build(
        &self,
        b: &mut Builder<'_>,
        block: &str,
        layer: usize,
        y: ValueId,
    ) -> Result<ValueId, ModelError> {
        let (n, n_embd) = (self.n, b.config.n_embd);
        let gate = b.linear(&format!("{block}.inp_gate"), n, n_embd)?;
        let back = b.linear(&format!("{block}.proj"), n_embd, n)?;
        let up = b.push(Op::Slice { x: self.all, at: n * layer as u32 }, n);
        let gate = b.mul(y, gate);
        let h = b.push(Op::Glu { gate, up, act: Act::Geglu }, n);
        let t = b.mul(h, back); // [n_embd]
        b.norm_of(t, &format!("{block}.post_norm"), NormKind::Rms)
    }
}
