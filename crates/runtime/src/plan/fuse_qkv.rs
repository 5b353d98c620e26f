//! Fusion of q, k and v: their products, what happens to their heads, and the write to the cache.

use chaski_graph::NormKind;
use chaski_kernels::ops::rope_kv::{CellNorm, Over};

use super::fuse::{Fused, Fuser, HeadNorm, Heads, Norm};
use super::fusion::Fusion;
use crate::graph::{Op, RowNorm, ValueId, WeightId};

/// What happens to the heads of q, or of k, between their product and the node that takes them.
#[derive(Default)]
struct Path {
    /// Nodes on the way.
    nodes: Vec<usize>,
    /// Channels of the heads that a rotation turns.
    d: Option<u32>,
    rope: Option<usize>,
    /// The norm, its weights, and whether it comes after the rotation.
    norm: Option<(RowNorm, WeightId, bool)>,
    /// What is taken, and by which node.
    out: ValueId,
    taken: usize,
}

/// Where the values of a layer come from.
struct Values {
    /// Their product, if it is not that of the keys.
    product: Option<usize>,
    /// Their norm, if they have one.
    norm: Option<(usize, f32)>,
}

impl Fuser<'_> {
    /// The products of one input, that at node `i` among them, which become q, k and v of a layer, or q alone.
    pub(super) fn qkv(&mut self, i: usize, nodes: &[usize], x: ValueId, norm: Option<Norm>) -> Option<Fused> {
        if !self.rules.has(Fusion::Qkv) {
            return None;
        }
        let (mut q, mut k) = (None, None);
        for n in nodes {
            let Some(path) = self.path(*n) else { continue };
            match self.graph.nodes[path.taken].op {
                Op::Attention { layer, .. } if q.is_none() => q = Some((*n, path, layer)),
                Op::KvWrite { k: key, v, layer } if key == path.out && v != key && k.is_none() => {
                    k = Some((*n, path, v, layer));
                }
                _ => {}
            }
        }
        let (q, of_q, layer) = q?;
        let Some((k, of_k, value, same)) = k else { return self.q_alone(i, (q, of_q, layer), x, norm) };
        let values = self.values(value, k, nodes)?;
        let products: Vec<usize> = [q, k].into_iter().chain(values.product).collect();
        if layer != same || !products.contains(&i) || of_q.rope != of_k.rope {
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
        for n in on_the_way.chain(products.iter().copied()).chain([of_k.taken]) {
            self.done[n] = true;
        }
        let parts = products.into_iter().map(|n| self.part(n).expect("the nodes are products")).collect();
        let heads = Heads { layer, rope: of_q.rope, norm: head_norm };
        Some(Fused::Qkv { x: self.place(x), norm, parts, heads, y: of_q.out })
    }

    /// Queries of a layer whose keys and values are those of an earlier one.
    fn q_alone(
        &mut self,
        i: usize,
        (q, of_q, layer): (usize, Path, usize),
        x: ValueId,
        norm: Option<Norm>,
    ) -> Option<Fused> {
        if q != i || of_q.nodes.is_empty() {
            return None;
        }
        let of_norm = self.norm_of(q, &of_q, self.graph.kv[layer].d)?;
        let head_norm = of_norm.map(|(q, how)| HeadNorm { q, k: None, how });
        of_q.nodes.iter().chain([&q]).for_each(|n| self.done[*n] = true);
        let parts = vec![self.part(q)?];
        let heads = Heads { layer, rope: of_q.rope, norm: head_norm };
        Some(Fused::Qkv { x: self.place(x), norm, parts, heads, y: of_q.out })
    }

    /// Where a value that goes to the cache comes from: one of these products, that of the keys perhaps, and a norm.
    fn values(&self, value: ValueId, k: usize, nodes: &[usize]) -> Option<Values> {
        self.sole_reader(value)?;
        let maker = self.maker(value);
        if nodes.contains(&maker) {
            return Some(Values { product: Some(maker), norm: None });
        }
        let Op::Norm { x, norm } = self.graph.nodes[maker].op else { return None };
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

    /// Whether a node is an RMS norm without weights of the heads of values, on their way to the cache.
    fn is_norm_of_values(&self, node: usize) -> bool {
        let (op, out) = (&self.graph.nodes[node].op, self.graph.nodes[node].out);
        let Op::Norm { norm, .. } = op else { return false };
        let writes = self.sole_reader(out).map(|r| &self.graph.nodes[r].op);
        let Some(Op::KvWrite { v, layer, .. }) = writes else { return false };
        *v == out && *norm == RowNorm::plain(self.graph.kv[*layer].d_v, norm.eps)
    }

    /// The norm on a path as the kernel knows it, for heads of `d` channels, with its weights; the outer option is none if
    /// the kernel cannot do what happens there.
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

    /// The way of a product to the only node that takes it, if it goes through rotations and norms alone. Values may be
    /// made of the same product.
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
