//! The rule for q, k and v: their products, operations on their heads, and the write to the cache.

use chaski_kernels::ops::rope_kv::{CellNorm, Over};

use super::draft::{Draft, Rule};
use super::state::State;
use crate::graph::{NormKind, Op, RowNorm, ValueId, WeightId};
use crate::plan::steps::{Form, HeadNorm, Heads, Part};

/// Products for q, k and v of a layer, or for q alone, with RoPE, norms and the write to the cache.
pub(super) const QKV: Rule = Rule {
    name: "qkv",
    from: &["mul_mat"],
    takes: &["mul_mat", "rope", "norm", "kv_write"],
    apply: |state, draft| state.qkv(draft),
};

/// Operations on the heads of q, or of k, between their product and their consumer.
#[derive(Default)]
struct Path {
    /// Nodes on the path.
    nodes: Vec<usize>,
    /// Channels per head for RoPE.
    d: Option<u32>,
    rope: Option<usize>,
    /// The norm, its weights, and whether it follows RoPE.
    norm: Option<(RowNorm, WeightId, bool)>,
    /// The final value, and its consumer.
    out: ValueId,
    taken: usize,
}

/// Origin of a layer's values.
struct Values {
    /// Their product, if different from that of the keys.
    product: Option<usize>,
    /// Their norm, if any.
    norm: Option<(usize, f32)>,
}

impl State<'_> {
    fn qkv(&self, draft: &Draft) -> Option<Draft> {
        let products = self.products_beside(draft);
        let (mut q, mut k) = (None, None);
        for n in &products {
            let Some(path) = self.path(*n) else { continue };
            match *self.op(path.taken) {
                Op::Attention { layer, .. } if q.is_none() => q = Some((*n, path, layer)),
                Op::KvWrite { k: key, v, layer } if key == path.out && v != key && k.is_none() => {
                    k = Some((*n, path, v, layer));
                }
                _ => {}
            }
        }
        let (q, of_q, layer) = q?;
        let Some((k, of_k, value, same)) = k else { return self.q_alone(draft, q, &of_q, layer) };
        let values = self.values(value, k, &products)?;
        let matrices: Vec<usize> = [q, k].into_iter().chain(values.product).collect();
        if layer != same || !matrices.contains(&draft.begin) || of_q.rope != of_k.rope {
            return None;
        }
        let kv = self.graph.kv[layer];
        let head_norm = match (self.norm_of(q, &of_q, kv.d)?, self.norm_of(k, &of_k, kv.d)?) {
            (None, None) if values.norm.is_none() => None,
            (Some((q, how)), Some((k, of_k))) if how == of_k => {
                let same = values.norm.is_none_or(|(_, eps)| eps == how.eps);
                let how = CellNorm { values: values.norm.is_some(), ..how };
                same.then_some(Some(HeadNorm { q, k: Some(k), how }))?
            }
            _ => return None,
        };
        let on_the_way = of_q.nodes.iter().chain(&of_k.nodes).copied().chain(values.norm.map(|n| n.0));
        let nodes = matrices.iter().copied().chain(on_the_way).chain([of_k.taken]);
        let heads = Heads { layer, rope: of_q.rope, norm: head_norm };
        Some(self.attends(draft, nodes, &matrices, heads, of_q.out))
    }

    /// Queries of a layer that uses the keys and values of an earlier one.
    fn q_alone(&self, draft: &Draft, q: usize, of_q: &Path, layer: usize) -> Option<Draft> {
        if q != draft.begin || of_q.nodes.is_empty() {
            return None;
        }
        let of_norm = self.norm_of(q, of_q, self.graph.kv[layer].d)?;
        let head_norm = of_norm.map(|(q, how)| HeadNorm { q, k: None, how });
        let heads = Heads { layer, rope: of_q.rope, norm: head_norm };
        let nodes = [q].into_iter().chain(of_q.nodes.iter().copied());
        Some(self.attends(draft, nodes, &[q], heads, of_q.out))
    }

    /// The step of these nodes, whose matrices are q, k and v.
    fn attends(
        &self,
        draft: &Draft,
        nodes: impl Iterator<Item = usize>,
        matrices: &[usize],
        heads: Heads,
        out: ValueId,
    ) -> Draft {
        let norm = match draft.form {
            Form::Project { norm, .. } => norm,
            _ => None,
        };
        let parts = matrices.iter().filter_map(|n| Part::of(self.op(*n))).collect();
        draft.becomes(nodes, out, Form::Qkv { norm, parts, heads })
    }

    /// Origin of a cached value: one of these products, possibly that of the keys, and a norm.
    fn values(&self, value: ValueId, k: usize, nodes: &[usize]) -> Option<Values> {
        self.sole_reader(value)?;
        let maker = self.maker(value);
        if nodes.contains(&maker) {
            return Some(Values { product: Some(maker), norm: None });
        }
        let Op::Norm { x, norm } = *self.op(maker) else { return None };
        self.is_norm_of_values(maker).then_some(())?;
        let (product, norm) = (self.maker(x), Some((maker, norm.eps)));
        match product == k {
            true => Some(Values { product: None, norm }),
            false => {
                self.sole_reader(x)?;
                nodes.contains(&product).then_some(Values { product: Some(product), norm })
            }
        }
    }

    /// True if a node is an unweighted RMS norm of the heads of values on their way to the cache.
    fn is_norm_of_values(&self, node: usize) -> bool {
        let (op, out) = (&self.graph.nodes[node].op, self.graph.nodes[node].out);
        let Op::Norm { norm, .. } = op else { return false };
        let writes = self.sole_reader(out).map(|r| &self.graph.nodes[r].op);
        let Some(Op::KvWrite { v, layer, .. }) = writes else { return false };
        *v == out && *norm == RowNorm::plain(self.graph.kv[*layer].d_v, norm.eps)
    }

    /// The norm on a path in the kernel's terms, for heads of `d` channels, with its weights; the outer option is
    /// `None` if the kernel does not support it.
    fn norm_of(&self, product: usize, path: &Path, d: u32) -> Option<Option<(WeightId, CellNorm)>> {
        if path.d.is_some_and(|found| found != d) {
            return None;
        }
        let Some((norm, weight, late)) = path.norm else { return Some(None) };
        let w = &self.graph.weights[weight.0];
        let width = self.graph.width(self.graph.nodes[product].out);
        let over = match late {
            _ if norm.d == d => {
                if late {
                    Over::Rotated
                } else {
                    Over::Heads
                }
            }
            false if norm.d == width => Over::Rows,
            _ => return None,
        };
        let own = match w.n_row * w.n_col {
            n if n == d && over != Over::Rows => false,
            n if n == width => true,
            _ => return None,
        };
        let mean = norm.kind == NormKind::Norm;
        Some(Some((weight, CellNorm { eps: norm.eps, over, mean, own, values: false })))
    }

    /// The path of a product to its only consumer, if it goes through RoPE and norms alone. Values may come from the
    /// same product.
    fn path(&self, product: usize) -> Option<Path> {
        let mut path = Path { out: self.graph.nodes[product].out, ..Path::default() };
        loop {
            let mut readers = self.readers(path.out);
            if path.nodes.is_empty() {
                readers.retain(|r| !self.is_norm_of_values(*r));
            }
            let [reader] = readers[..] else { return None };
            let node = &self.graph.nodes[reader];
            match node.op {
                Op::Rope { d, rope, .. } if path.rope.is_none() => {
                    path.rope = Some(rope);
                    path.d = Some(d);
                }
                Op::Norm { norm, .. } if path.norm.is_none() => {
                    if norm.kind == NormKind::L2 || norm.bias.is_some() {
                        return None;
                    }
                    path.norm = Some((norm, norm.weight?, path.rope.is_some()));
                }
                Op::Attention { .. } | Op::KvWrite { .. } => {
                    path.taken = reader;
                    return Some(path);
                }
                _ => return None,
            }
            path.nodes.push(reader);
            path.out = node.out;
        }
    }
}
