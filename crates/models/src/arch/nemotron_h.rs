//! Nemotron-H: each layer is one of Mamba-2, attention without positions, and a feed-forward part.
//!
//! x += mixer(norm(x)). Layers with a feed-forward length are such parts (up, max(x, 0)^2, down); of the others those
//! with KV heads are attention.

use chaski_kernels::ops::gated_norm::GateAct;
use chaski_kernels::ops::norm::Kind;
use chaski_runtime::graph::ValueId;
use chaski_runtime::graph::recurrent::{GatedNorm, Recurrent};

use super::Builder;
use crate::error::ModelError;
use crate::layers::{Attend, Attention};
use crate::recurrent;

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let c = b.config;
    if c.n_expert > 0 {
        return Err(ModelError::Unsupported { what: format!("experts in the family `{}`", c.arch) });
    }
    let embeddings = b.matrix("token_embd.weight", c.n_vocab, c.n_embd)?;
    let mut x = b.embed(embeddings); // [n_embd]
    for layer in 0..c.n_layer as usize {
        let block = format!("blk.{layer}");
        let h = b.norm_of(x, &format!("{block}.attn_norm"), Kind::Rms)?;
        let y = match (c.n_ff[layer], c.n_head_kv[layer]) {
            (0, 0) => recurrent::mamba2(b, &block, h)?,
            (0, _) => Attention::new(b, layer, None)?.build(b, &block, h)?,
            _ => feed_forward(b, &block, layer, h)?,
        };
        x = b.add(x, y);
    }
    let h = b.norm_of(x, "output_norm", Kind::Rms)?;
    b.logits(h, embeddings, |_, y| y)
}

/// down(max(up x, 0)^2).
fn feed_forward(b: &mut Builder<'_>, block: &str, layer: usize, x: ValueId) -> Result<ValueId, ModelError> {
    let (n_embd, n_ff) = (b.config.n_embd, b.config.n_ff[layer]);
    let up = b.linear(&format!("{block}.ffn_up"), n_ff, n_embd)?;
    let down = b.linear(&format!("{block}.ffn_down"), n_embd, n_ff)?;
    let u = b.mul(x, up); // [n_ff]
    // A value that gates itself by its positive part is squared.
    let square = GatedNorm { x: u, z: u.into(), act: GateAct::Relu, norm: None, k: n_ff };
    let h = b.recurrent(Recurrent::GatedNorm(square), n_ff);
    Ok(b.mul(h, down)) // [n_embd]
}
