//! Fusion of q, k and v: their products, what happens to their heads, and the write to the cache.

use chaski_kernels::ops::norm::Kind;

use super::fuse::{Fused, Fuser, HeadNorm, Heads, Norm};
use super::fusion::Fusion;
use crate::graph::{Op, ValueId, WeightId};

/// What happens to the heads of q, or of k, between their product and the node that takes them.
#[derive(Default)]
struct Path {
    /// Nodes on the way.
    nodes: Vec<usize>,
    /// Channels of a head, where a node on the way says so.
    d: Option<u32>,
    rope: Option<usize>,
    /// Weight, epsilon, and whether it comes after the rotation.
    norm: Option<(WeightId, f32, bool)>,
    /// What is taken, and by which node.
    out: ValueId,
    taken: usize,
}

impl Fuser<'_> {
    /// The products of one input, that at node `i` among them, which become q, k and v of a layer.
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
        let ((q, of_q, layer), (k, of_k, value, same)) = (q?, k?);
        let v = *nodes.iter().find(|n| self.graph.nodes[**n].out == value)?;
        self.sole_reader(value)?;
        let d = self.graph.kv[layer].d;
        let fits = |p: &Path| p.d.is_none_or(|found| found == d);
        if layer != same || ![q, k, v].contains(&i) || of_q.rope != of_k.rope || !fits(&of_q) || !fits(&of_k)
        {
            return None;
        }
        let head_norm = match (of_q.norm, of_k.norm) {
            (None, None) => None,
            (Some((q, eps, last)), Some((k, eps_k, last_k))) if eps == eps_k && last == last_k => {
                Some(HeadNorm { q, k, eps, last })
            }
            _ => return None,
        };
        let y = of_q.out;
        let on_the_way = of_q.nodes.iter().chain(&of_k.nodes).copied();
        for n in on_the_way.chain([q, k, v, of_k.taken]) {
            self.done[n] = true;
        }
        let part = |n| self.part(n).expect("the nodes are products");
        let heads = Heads { layer, rope: of_q.rope, norm: head_norm };
        Some(Fused::Qkv { x: self.place(x), norm, q: part(q), k: part(k), v: part(v), heads, y })
    }

    /// The way of a product to the only node that takes it, if it goes through rotations and norms of heads alone.
    fn path(&self, product: usize) -> Option<Path> {
        let mut path = Path { out: self.graph.nodes[product].out, ..Path::default() };
        loop {
            let reader = self.sole_reader(path.out)?;
            let node = &self.graph.nodes[reader];
            let d = match node.op {
                Op::Rope { d, rope, .. } if path.rope.is_none() => {
                    path.rope = Some(rope);
                    d
                }
                Op::Norm { norm, .. } if path.norm.is_none() => {
                    let weight = norm.weight?;
                    let w = &self.graph.weights[weight.0];
                    if norm.kind != Kind::Rms || norm.bias.is_some() || w.n_row * w.n_col != norm.d {
                        return None;
                    }
                    path.norm = Some((weight, norm.eps, path.rope.is_some()));
                    norm.d
                }
                Op::Attention { .. } | Op::KvWrite { .. } => {
                    path.taken = reader;
                    return Some(path);
                }
                _ => return None,
            };
            if path.d.is_some_and(|found| found != d) {
                return None;
            }
            path.d = Some(d);
            path.nodes.push(reader);
            path.out = node.out;
        }
    }
}
