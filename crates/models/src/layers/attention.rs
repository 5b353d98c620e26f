//! Self-attention: q, k, v, operations on heads, cache, scores, output.

use chaski_graph::recurrent::GateAct;
use chaski_graph::recurrent::{GatedNorm, Recurrent};
use chaski_graph::{Bidirectional, Function, KvLayer, NormKind, Op, RowNorm, Score, ValueId};

use crate::build::{Builder, Linear, Rows};
use crate::error::ModelError;

/// Norm of q and k, with the weights `attn_q_norm` and `attn_k_norm`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum QkNorm {
    /// None.
    None,
    /// RMS norm of each head before RoPE.
    Heads,
    /// RMS norm of each head after RoPE.
    HeadsLast,
    /// RMS norm of all heads as one row.
    Whole,
    /// Unweighted RMS norm of each head after RoPE.
    HeadsLastPlain,
    /// Unweighted RMS norm of each head after RoPE; then each head of q is multiplied by a weight of its own.
    HeadsLastGain,
    /// RMS norm of each head, with weights per head.
    OwnHeads,
    /// Layer norm of each head, with weights per head.
    LayerHeads,
    /// Layer norm of all heads as one row, with the biases of `attn_q_norm` and `attn_k_norm`.
    LayerWhole,
}

/// Gate of the heads' results, before the output projection.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeadGate {
    /// Nothing.
    None,
    /// The logistic function of products whose rows follow those of each head's query in `attn_q`.
    Alternating,
    /// This function of `attn_gate x`, one value per channel.
    Channels(GateAct),
    /// This function of `attn_gate x`, one value per head.
    Heads(GateAct),
}

/// A kind of attention.
pub(crate) trait Attend {
    /// `x`: normalised input `[n_embd]`; returns the addend of the residual stream, `[n_embd]`.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    fn build(&self, b: &mut Builder<'_>, block: &str, x: ValueId) -> Result<ValueId, ModelError>;
}

/// Attention parameters of a layer.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Attention {
    /// Query heads.
    pub(crate) n_head: u32,
    /// KV heads.
    pub(crate) n_kv: u32,
    /// Channels per head of q and k.
    pub(crate) d: u32,
    /// Channels per head of v.
    pub(crate) d_v: u32,
    /// Index of the RoPE parameters, if any.
    pub(crate) rope: Option<usize>,
    /// Norm of q and k.
    pub(crate) norm: QkNorm,
    /// Unweighted RMS norm of the heads of v. Without `attn_v`, v is computed from the rows of k.
    pub(crate) value_norm: bool,
    /// Layer whose keys and values are reused; `None`: the layer has its own.
    pub(crate) shares: Option<usize>,
    /// Transformations of the scores; sinks are `attn_sinks`.
    pub(crate) score: Score,
    /// Gate of the heads' results.
    pub(crate) gate: HeadGate,
    /// clip_qkv: limit of the magnitude of q, k and v; 0: none.
    pub(crate) clamp: f32,
    /// RMS norm of the concatenated heads, `attn_sub_norm`.
    pub(crate) sub_norm: bool,
    /// Factor of the result.
    pub(crate) scale: f32,
    /// Tokens see those after them, too, as in encoders, which have no cache. A window extends to both sides.
    pub(crate) both_ways: bool,
}

impl Attention {
    /// Attention from the common metadata, with `rope` and scores scaled by 1 / sqrt(d).
    ///
    /// # Errors
    /// [`ModelError::Unsupported`] for a layer without heads.
    pub(crate) fn new(b: &Builder<'_>, layer: usize, rope: Option<usize>) -> Result<Self, ModelError> {
        let c = b.config;
        let (n_head, n_kv, d) = (c.n_head[layer], c.n_head_kv[layer], c.d_head);
        if n_kv == 0 || n_head == 0 {
            let what = format!("layer {layer} with {n_head} query heads, {n_kv} KV heads");
            return Err(ModelError::Unsupported { what });
        }
        let score = Score::scaled(1.0 / (d as f32).sqrt());
        Ok(Attention {
            n_head,
            n_kv,
            d,
            d_v: c.d_head_v,
            rope,
            norm: QkNorm::None,
            value_norm: false,
            shares: None,
            score,
            gate: HeadGate::None,
            clamp: 0.0,
            sub_norm: false,
            scale: 1.0,
            both_ways: false,
        })
    }

    /// q, the layer of the cache to attend to (its own, which it also writes, or an earlier one), and the gate if there
    /// is one.
    fn q_and_cache(
        &self,
        b: &mut Builder<'_>,
        block: &str,
        x: ValueId,
    ) -> Result<(ValueId, usize, Option<Linear>), ModelError> {
        let Attention { n_head, n_kv, d, d_v, .. } = *self;
        if let Some(layer) = self.shares {
            let q_norm = format!("{block}.attn_q_norm.weight");
            let fused = format!("{block}.attn_qkv");
            let q = match b.has(&format!("{fused}.weight")) {
                true => {
                    let (all, q) = (n_head * d + n_kv * (d + d_v), Rows::consecutive(0, n_head * d));
                    let [q] = b.parts(&fused, all, [q], b.config.n_embd)?;
                    q
                }
                false => b.linear(&format!("{block}.attn_q"), n_head * d, b.config.n_embd)?,
            };
            let q = b.mul(x, q);
            return Ok((self.heads(b, &q_norm, n_head, q)?, layer, None));
        }
        let (q, [k, v], gate) = self.q_k_v(b, block, x)?;
        let layer = b.kv_layer(KvLayer { n_kv, d, d_v, in_keys: false, window: self.score.window });
        b.push(Op::KvWrite { k, v, layer }, 0);
        Ok((q, layer, gate))
    }

    /// q, k and v after their operations on heads, and the gate if there is one.
    fn q_k_v(
        &self,
        b: &mut Builder<'_>,
        block: &str,
        x: ValueId,
    ) -> Result<(ValueId, [ValueId; 2], Option<Linear>), ModelError> {
        let Attention { n_head, n_kv, d, d_v, .. } = *self;
        let [q_norm, k_norm] = ["q", "k"].map(|part| format!("{block}.attn_{part}_norm.weight"));
        let (q, k, v, gate) = self.products(b, block)?;
        let (q, k) = (b.mul(x, q), b.mul(x, k)); // [n_head, d], [n_kv, d]
        let v = v.map_or(k, |v| b.mul(x, v)); // [n_kv, d]
        let [q, k, v] = [q, k, v].map(|y| self.clamped(b, y));
        let mut q = self.heads(b, &q_norm, n_head, q)?;
        if self.norm == QkNorm::HeadsLastGain {
            let weight = b.matrix(&q_norm, n_head, 1)?;
            q = b.push(Op::MulWeight { x: q, weight }, n_head * d);
        }
        let k = self.heads(b, &k_norm, n_kv, k)?;
        let v = match self.value_norm {
            true => b.push(Op::Norm { x: v, norm: RowNorm::plain(d_v, b.config.eps) }, n_kv * d_v),
            false => v,
        };
        Ok((q, [k, v], gate))
    }

    /// Values clamped to the limit.
    fn clamped(&self, b: &mut Builder<'_>, x: ValueId) -> ValueId {
        if self.clamp == 0.0 {
            return x;
        }
        let f = Function::find("clamp").expect("a row of the table");
        let width = b.width(x);
        b.push(Op::Unary { x, f, params: [-self.clamp, self.clamp, 0.0, 0.0] }, width)
    }

    /// Matrices of q, k, v (which may be computed from k), and of the gate, if any.
    fn products(&self, b: &mut Builder<'_>, block: &str) -> Result<Products, ModelError> {
        let Attention { n_head, n_kv, d, d_v, .. } = *self;
        let n_embd = b.config.n_embd;
        let has = |part: &str| b.has(&format!("{block}.attn_{part}.weight"));
        let rows_of_k = self.value_norm && !has("v") && !has("qkv");
        let alternating = self.gate == HeadGate::Alternating;
        if !alternating && !rows_of_k {
            let [q, k, v] = b.qkv(block, [n_head * d, n_kv * d, n_kv * d_v], n_embd)?;
            let n_gate = match self.gate {
                HeadGate::Channels(_) => n_head * d_v,
                HeadGate::Heads(_) => n_head,
                _ => return Ok((q, k, Some(v), None)),
            };
            return Ok((q, k, Some(v), Some(b.linear(&format!("{block}.attn_gate"), n_gate, n_embd)?)));
        }
        if alternating && has("qkv") {
            // Queries with their gates, as in `attn_q`, then k and v.
            let (of_q, of_k, of_v) = (n_head * (d + d_v), n_kv * d, n_kv * d_v);
            let heads = |row0, run| Rows { row0, run, stride: d + d_v, n: n_head };
            let rows = [
                heads(0, d),
                heads(d, d_v),
                Rows::consecutive(of_q, of_k),
                Rows::consecutive(of_q + of_k, of_v),
            ];
            let [q, gate, k, v] = b.parts(&format!("{block}.attn_qkv"), of_q + of_k + of_v, rows, n_embd)?;
            return Ok((q, k, Some(v), Some(gate)));
        }
        let name = format!("{block}.attn_q");
        let (q, gate) = match alternating {
            true => {
                let [q, gate] = b.alternating(&name, n_head, [d, d_v], n_embd)?;
                (q, Some(gate))
            }
            false => (b.linear(&name, n_head * d, n_embd)?, None),
        };
        let k = b.linear(&format!("{block}.attn_k"), n_kv * d, n_embd)?;
        let v = match rows_of_k {
            true => None,
            false => Some(b.linear(&format!("{block}.attn_v"), n_kv * d_v, n_embd)?),
        };
        Ok((q, k, v, gate))
    }

    /// Norm and RoPE of `n` heads.
    fn heads(
        &self,
        b: &mut Builder<'_>,
        weight_name: &str,
        n: u32,
        x: ValueId,
    ) -> Result<ValueId, ModelError> {
        let (d, width) = (self.d, n * self.d);
        let rotate =
            |b: &mut Builder<'_>, x| self.rope.map_or(x, |rope| b.push(Op::Rope { x, d, rope }, width));
        let last = matches!(self.norm, QkNorm::HeadsLast | QkNorm::HeadsLastPlain | QkNorm::HeadsLastGain);
        let x = if last { rotate(b, x) } else { x };
        let (kind, eps) = match self.norm {
            QkNorm::LayerHeads | QkNorm::LayerWhole => (NormKind::Norm, b.config.eps_layer),
            _ => (NormKind::Rms, b.config.eps),
        };
        let (row, weight) = match self.norm {
            QkNorm::None => return Ok(rotate(b, x)),
            QkNorm::Heads | QkNorm::HeadsLast => (d, Some(b.vector(weight_name, d)?)),
            QkNorm::HeadsLastPlain | QkNorm::HeadsLastGain => (d, None),
            QkNorm::Whole | QkNorm::LayerWhole => (width, Some(b.vector(weight_name, width)?)),
            QkNorm::LayerHeads | QkNorm::OwnHeads => (d, Some(b.matrix(weight_name, n, d)?)),
        };
        let bias = match self.norm {
            QkNorm::LayerWhole => Some(b.vector(&weight_name.replace(".weight", ".bias"), width)?),
            _ => None,
        };
        let norm = RowNorm { kind, d: row, eps, weight, bias };
        let x = b.push(Op::Norm { x, norm }, width);
        Ok(if last { x } else { rotate(b, x) })
    }
}

/// Refuses options that attention in both directions does not have.
fn check_both_ways(attention: &Attention) -> Result<(), ModelError> {
    let Score { warmth, softcap, sinks, scale: _, max_bias: _, window: _ } = attention.score;
    let options = [
        ("growing scores", warmth.is_some()),
        ("softcap", softcap != 0.0),
        ("sinks", sinks),
        ("keys of another layer", attention.shares.is_some()),
    ];
    match options.iter().find(|(_, is_set)| *is_set) {
        Some((name, _)) => {
            Err(ModelError::Unsupported { what: format!("attention in both directions with {name}") })
        }
        None => Ok(()),
    }
}

/// Matrices of q, k, optionally v, and optionally the gate.
type Products = (Linear, Linear, Option<Linear>, Option<Linear>);

impl Attend for Attention {
    fn build(&self, b: &mut Builder<'_>, block: &str, x: ValueId) -> Result<ValueId, ModelError> {
        let Attention { n_head, n_kv, d_v: d, score, .. } = *self;
        let output = b.linear(&format!("{block}.attn_output"), b.config.n_embd, n_head * d)?;
        let (op, gate) = if self.both_ways {
            check_both_ways(self)?;
            let (q, [k, v], gate) = self.q_k_v(b, block, x)?;
            let Score { scale, max_bias, window, .. } = score;
            (Op::Bidirectional(Bidirectional { q, k, v, n_head, n_kv, scale, max_bias, window }), gate)
        } else {
            let (q, layer, gate) = self.q_and_cache(b, block, x)?;
            let sinks = format!("{block}.attn_sinks.weight");
            let sinks = if score.sinks { Some(b.vector(&sinks, n_head)?) } else { None };
            (Op::Attention { q, layer, n_head, score, sinks }, gate)
        };
        let mut a = b.push(op, n_head * d); // [n_head, d]
        if let Some(gate) = gate {
            let z = b.mul(x, gate).into(); // [n_head, d] or [n_head]
            let (z_row, act) = match self.gate {
                HeadGate::Heads(act) => (true, act),
                HeadGate::Channels(act) => (false, act),
                _ => (false, GateAct::Sigmoid),
            };
            let gate = GatedNorm { x: a, z, z_row, act, norm: None, k: d };
            a = b.recurrent(Recurrent::GatedNorm(gate), n_head * d);
        }
        if self.sub_norm {
            a = b.norm_of(a, &format!("{block}.attn_sub_norm"), NormKind::Rms)?;
        }
        let y = b.mul(a, output); // [n_embd]
        Ok(b.scaled(y, self.scale))
    }
}

#[cfg(test)]
mod tests {
    use chaski_graph::Warmth;

    use super::*;

    #[test]
    fn attention_in_both_directions_refuses_options_that_it_lacks() {
        let plain = Attention {
            n_head: 2,
            n_kv: 1,
            d: 4,
            d_v: 4,
            rope: None,
            norm: QkNorm::None,
            value_norm: false,
            shares: None,
            score: Score { max_bias: 8.0, window: 4, ..Score::scaled(0.5) },
            gate: HeadGate::None,
            clamp: 0.0,
            sub_norm: false,
            scale: 1.0,
            both_ways: true,
        };
        check_both_ways(&plain).unwrap();
        let warmth = Some(Warmth { by: 0.1, run: 8 });
        for (other, name) in [
            (Attention { score: Score { warmth, ..plain.score }, ..plain }, "growing scores"),
            (Attention { score: Score { softcap: 50.0, ..plain.score }, ..plain }, "softcap"),
            (Attention { score: Score { sinks: true, ..plain.score }, ..plain }, "sinks"),
            (Attention { shares: Some(0), ..plain }, "keys of another layer"),
        ] {
            let error = check_both_ways(&other).unwrap_err().to_string();
            assert!(error.contains(&format!("attention in both directions with {name}")), "{error}");
        }
    }
}
