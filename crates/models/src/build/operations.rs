//! Operations on values, and their resources beside the graph: RoPE parameters, caches, states.

use chaski_graph::recurrent::{Recurrent, StateLayer};
use chaski_graph::{KvLayer, NormKind, Op, Product, Rope, Routing, RowNorm, ValueId, WeightId};

use super::{Builder, Linear};
use crate::error::ModelError;

impl Builder<'_> {
    /// Embeddings of the batch's tokens, or the columns' input rows.
    pub fn embed(&mut self, table: WeightId) -> ValueId {
        self.embed_scaled(table, 1.0)
    }

    /// Embeddings of the batch's tokens times `by`, or the columns' input rows, which are not scaled.
    pub fn embed_scaled(&mut self, table: WeightId, by: f32) -> ValueId {
        let n_embd = self.config.n_embd;
        let x = self.graph.push(Op::Embed { table }, n_embd);
        let x = self.adapted_rows(table, x);
        let x = self.scaled(x, by);
        self.graph.push(Op::Input { x }, n_embd)
    }

    /// RMS norm with weights.
    pub fn norm(&mut self, x: ValueId, weight: WeightId) -> ValueId {
        let width = self.graph.width(x);
        self.graph.push(Op::RmsNorm { x, weight, eps: self.config.eps }, width)
    }

    /// Norm of this kind by `stem.weight` and, if the file has it, `stem.bias`.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn norm_of(&mut self, x: ValueId, stem: &str, kind: NormKind) -> Result<ValueId, ModelError> {
        let d = self.graph.width(x);
        // Some families' files omit the suffix.
        let name = format!("{stem}.weight");
        let bare = !self.has(&name) && self.has(stem);
        let weight = self.vector(if bare { stem } else { &name }, d)?;
        let bias = format!("{stem}.bias");
        let bias = if self.has(&bias) { Some(self.vector(&bias, d)?) } else { None };
        if kind == NormKind::Rms && bias.is_none() {
            return Ok(self.norm(x, weight));
        }
        let eps = if kind == NormKind::Rms { self.config.eps } else { self.config.eps_layer };
        let norm = RowNorm { kind, d, eps, weight: Some(weight), bias };
        Ok(self.graph.push(Op::Norm { x, norm }, d))
    }

    /// Norm of this kind without weights.
    pub fn plain_norm(&mut self, x: ValueId, kind: NormKind) -> ValueId {
        let d = self.graph.width(x);
        let eps = if kind == NormKind::Rms { self.config.eps } else { self.config.eps_layer };
        self.graph.push(Op::Norm { x, norm: RowNorm { kind, d, eps, weight: None, bias: None } }, d)
    }

    /// Product.
    pub fn mul(&mut self, x: ValueId, l: Linear) -> ValueId {
        let width = self.graph.weights[l.weight.0].n_row;
        let y = self.graph.push(Op::MulMat { x, weight: l.weight, bias: l.bias, scale: l.scale }, width);
        self.adapted(x, l, y)
    }

    /// Several products of one input as one value, concatenated by rows.
    pub fn mul_all(&mut self, x: ValueId, linears: &[Linear]) -> ValueId {
        let width = linears.iter().map(|l| self.graph.weights[l.weight.0].n_row).sum();
        let part = |l: &Linear| Product { weight: l.weight, bias: l.bias, scale: l.scale };
        let y = self.graph.push(Op::Products { x, parts: linears.iter().map(part).collect() }, width);
        self.adapted_all(x, linears, y)
    }

    /// Experts and their weights from router logits; `bias` is added for the selection only.
    pub fn route(&mut self, x: ValueId, bias: Option<WeightId>, routing: Routing) -> ValueId {
        // An expert and its weight for each slot.
        self.graph.push(Op::TopkMoe { x, bias, routing }, 2)
    }

    /// Products by the experts of a route.
    pub fn mul_id(&mut self, x: ValueId, route: ValueId, l: Linear) -> ValueId {
        let width = self.graph.weights[l.weight.0].expert_rows();
        let Linear { weight, bias, scale } = l;
        let y = self.graph.push(Op::MulMatId { x, route, weight, bias, scale }, width);
        self.adapted_id(x, route, l, y)
    }

    /// x * by.
    pub fn scaled(&mut self, x: ValueId, by: f32) -> ValueId {
        let width = self.graph.width(x);
        if by == 1.0 { x } else { self.graph.push(Op::Scale { x, by }, width) }
    }

    /// An operation on recurrent state, or a companion of one; `width` values per column.
    pub fn recurrent(&mut self, op: Recurrent, width: u32) -> ValueId {
        self.graph.push(Op::Recurrent(op), width)
    }

    /// x + weight, element-wise.
    pub fn add_weight(&mut self, x: ValueId, weight: WeightId) -> ValueId {
        let width = self.graph.width(x);
        self.graph.push(Op::AddWeight { x, weight }, width)
    }

    /// Sum.
    pub fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        let width = self.graph.width(a);
        self.graph.push(Op::Add { a, b }, width)
    }

    /// Any operation; `width` values per column.
    pub fn push(&mut self, op: Op, width: u32) -> ValueId {
        self.graph.push(op, width)
    }

    /// Values per column of a value.
    pub fn width(&self, x: ValueId) -> u32 {
        self.graph.width(x)
    }

    /// Adds RoPE parameters, and returns their index.
    pub fn add_rope(&mut self, rope: Rope) -> usize {
        self.graph.ropes.push(rope);
        self.graph.ropes.len() - 1
    }

    /// A new layer of the KV cache.
    pub fn kv_layer(&mut self, layer: KvLayer) -> usize {
        self.graph.kv.push(layer);
        self.graph.kv.len() - 1
    }

    /// A new layer of recurrent state of `n` values.
    pub fn state(&mut self, n: u32) -> usize {
        self.graph.states.push(StateLayer { n });
        self.graph.states.len() - 1
    }

    /// The result of an encoder: the final hidden states. It has no logits, so that their normalised values stand in
    /// for them, which nothing reads.
    pub fn encoded(&mut self, x: ValueId) {
        self.graph.hidden = Some(x);
        self.graph.logits = Some(self.plain_norm(x, NormKind::L2));
    }

    /// The logits: products with `output.weight`, or with the embeddings if the file has none, followed by the
    /// element-wise operations of `then`.
    ///
    /// # Errors
    /// [`ModelError::Shape`].
    pub fn logits(
        &mut self,
        x: ValueId,
        embeddings: WeightId,
        then: impl FnOnce(&mut Self, ValueId) -> ValueId,
    ) -> Result<(), ModelError> {
        let n_vocab = self.config.n_vocab;
        let is_table = self.graph.weights[embeddings.0].name == "output.weight";
        let mut head = if self.has("output.weight") && !is_table {
            self.linear("output", n_vocab, self.config.n_embd)?
        } else {
            Linear { weight: embeddings, bias: None, scale: None }
        };
        if head.bias.is_none() && self.has("output.bias") {
            head.bias = Some(self.vector("output.bias", n_vocab)?);
        }
        self.graph.hidden = Some(x);
        let logits = self.mul(x, head);
        self.graph.logits = Some(then(self, logits));
        Ok(())
    }
}
