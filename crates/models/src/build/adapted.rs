//! LoRA products next to those of their target matrices.

use std::collections::{BTreeMap, BTreeSet};

use chaski_graph::{Graph, LoraScale, Op, Product, ValueId, Weight, WeightId};
use ggml_format::GgmlType;

use super::{Builder, Linear};
use crate::lora::{Beside, EMBEDDINGS, Pair, ZEROS, graph_name};

/// LoRAs while a graph is built, and the values created for them so far.
#[derive(Default)]
pub(crate) struct Loras<'a> {
    all: Vec<Beside<'a>>,
    /// Scales by LoRA and rank.
    scales: BTreeMap<(usize, u32), WeightId>,
    /// A x by LoRA, tensor and input; several matrices may be parts of one tensor.
    inner: BTreeMap<(usize, String, ValueId), ValueId>,
    /// The same by expert; the last value is the route.
    inner_id: BTreeMap<(usize, String, ValueId, ValueId), ValueId>,
    /// Tensors whose LoRAs are applied at every use.
    done: BTreeSet<String>,
}

impl<'a> Loras<'a> {
    pub(crate) fn new(all: Vec<Beside<'a>>) -> Self {
        Loras { all, ..Loras::default() }
    }

    /// True if the graph applies a tensor's LoRAs.
    pub(crate) fn has(&self, tensor: &str) -> bool {
        self.done.contains(tensor)
    }

    /// LoRAs of a tensor: index, matrices, factor.
    fn beside(&self, tensor: &str) -> Vec<(usize, &'a Pair, f32)> {
        let all = self.all.iter().enumerate();
        all.filter_map(|(i, of)| of(tensor).map(|(pair, factor)| (i, pair, factor))).collect()
    }

    /// The scale of LoRA `i` for matrices of this rank.
    fn scale(&mut self, graph: &mut Graph, i: usize, rank: u32, factor: f32) -> WeightId {
        *self.scales.entry((i, rank)).or_insert_with(|| {
            let weight = graph.weight(Weight::new(ZEROS.to_owned(), GgmlType::F32, 1, 1));
            graph.scales.push(LoraScale { weight, of: i, by: factor });
            weight
        })
    }
}

/// A weight of LoRA `i` whose rows are split like those of `base`.
fn beside(base: &Weight, i: usize, t: &ggml_format::TensorInfo, n_col: u32) -> Weight {
    Weight { name: graph_name(i, &t.name), ty: t.ty, n_col, ..base.clone() }
}

impl Builder<'_> {
    /// Adds LoRAs to `y`, the products of `x` with `l`.
    pub(super) fn adapted(&mut self, x: ValueId, l: Linear, mut y: ValueId) -> ValueId {
        let base = self.graph.weights[l.weight.0].clone();
        // Embeddings that are also the output matrix are adapted only for lookups, as in training.
        if base.name == EMBEDDINGS {
            return y;
        }
        for (i, pair, factor) in self.loras.beside(&base.name) {
            let u = self.inner(i, x, &base, pair, factor);
            let b = self.graph.weight(beside(&base, i, &pair.b, pair.rank));
            let d = self.graph.push(Op::MulMat { x: u, weight: b, bias: None, scale: l.scale }, base.n_row);
            y = self.add(y, d);
        }
        y
    }

    /// The same for several products in one value: a LoRA's result is padded with zeros for the others.
    pub(super) fn adapted_all(&mut self, x: ValueId, linears: &[Linear], mut y: ValueId) -> ValueId {
        for (nth, l) in linears.iter().enumerate() {
            let base = self.graph.weights[l.weight.0].clone();
            for (i, pair, factor) in self.loras.beside(&base.name) {
                let u = self.inner(i, x, &base, pair, factor);
                let mut parts = Vec::new();
                for (other, o) in linears.iter().enumerate() {
                    let zeros = Weight::new(
                        ZEROS.to_owned(),
                        pair.b.ty,
                        self.graph.weights[o.weight.0].n_row,
                        pair.rank,
                    );
                    let w = if other == nth { beside(&base, i, &pair.b, pair.rank) } else { zeros };
                    let scale = if other == nth { l.scale } else { None };
                    parts.push(Product { weight: self.graph.weight(w), bias: None, scale });
                }
                let width = self.graph.width(y);
                let d = self.graph.push(Op::Products { x: u, parts }, width);
                y = self.add(y, d);
            }
        }
        y
    }

    /// The same for products by experts.
    pub(super) fn adapted_id(&mut self, x: ValueId, route: ValueId, l: Linear, mut y: ValueId) -> ValueId {
        let base = self.graph.weights[l.weight.0].clone();
        for (i, pair, factor) in self.loras.beside(&base.name) {
            let u = self.inner_id(i, (x, route), &base, pair, factor);
            let b = self.graph.weight(beside(&base, i, &pair.b, pair.rank));
            let d = Op::MulMatId { x: u, route, weight: b, bias: None, scale: l.scale };
            let d = self.graph.push(d, base.expert_rows());
            y = self.add(y, d);
        }
        y
    }

    /// Adds LoRAs to `y`, the rows of `table` for the tokens: their A has one row per token.
    pub(super) fn adapted_rows(&mut self, table: WeightId, mut y: ValueId) -> ValueId {
        let base = self.graph.weights[table.0].clone();
        if base.name != EMBEDDINGS {
            return y;
        }
        for (i, pair, factor) in self.loras.beside(&base.name) {
            self.loras.done.insert(base.name.clone());
            let a = Weight::new(graph_name(i, &pair.a.name), pair.a.ty, base.n_row, pair.rank);
            let table = self.graph.weight(a);
            let u = self.graph.push(Op::Embed { table }, pair.rank);
            let scale = self.loras.scale(&mut self.graph, i, pair.rank, factor);
            let b = Weight::new(graph_name(i, &pair.b.name), pair.b.ty, base.n_col, pair.rank);
            let b = self.graph.weight(b);
            let d = Op::MulMat { x: u, weight: b, bias: None, scale: Some(scale) };
            let d = self.graph.push(d, base.n_col);
            y = self.add(y, d);
        }
        y
    }

    /// s A x, by experts.
    fn inner_id(
        &mut self,
        i: usize,
        (x, route): (ValueId, ValueId),
        base: &Weight,
        pair: &Pair,
        factor: f32,
    ) -> ValueId {
        self.loras.done.insert(base.name.clone());
        let key = (i, base.name.clone(), x, route);
        if let Some(u) = self.loras.inner_id.get(&key) {
            return *u;
        }
        let n = base.n_expert;
        let scale = self.loras.scale(&mut self.graph, i, pair.rank, factor);
        let a = Weight::new(graph_name(i, &pair.a.name), pair.a.ty, n * pair.rank, base.n_col);
        let a = Weight { n_expert: n, run: pair.rank, stride: pair.rank, ..a };
        let weight = self.graph.weight(a);
        let u = Op::MulMatId { x, route, weight, bias: None, scale: Some(scale) };
        let u = self.graph.push(u, pair.rank);
        self.loras.inner_id.insert(key, u);
        u
    }

    /// s A x.
    fn inner(&mut self, i: usize, x: ValueId, base: &Weight, pair: &Pair, factor: f32) -> ValueId {
        self.loras.done.insert(base.name.clone());
        let key = (i, base.name.clone(), x);
        if let Some(u) = self.loras.inner.get(&key) {
            return *u;
        }
        let scale = self.loras.scale(&mut self.graph, i, pair.rank, factor);
        let a = Weight::new(graph_name(i, &pair.a.name), pair.a.ty, pair.rank, base.n_col);
        let weight = self.graph.weight(a);
        let u = self.graph.push(Op::MulMat { x, weight, bias: None, scale: Some(scale) }, pair.rank);
        self.loras.inner.insert(key, u);
        u
    }
}
