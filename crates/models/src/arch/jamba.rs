//! Jamba: Mamba-1, in some layers attention without positions, and a feed-forward part or MoE in every layer.
//!
//! Layers without KV heads are Mamba-1, those with a router have experts.

use chaski_graph::{Act, NormKind, Routing};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attend, Attention, Experts, FeedForward};
use crate::recurrent;

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let c = b.config;
    let embeddings = b.matrix("token_embd.weight", c.n_vocab, c.n_embd)?;
    let mut x = b.embed(embeddings); // [n_embd]
    for i in 0..c.n_layer as usize {
        let block = format!("blk.{i}");
        let h = b.norm_of(x, &format!("{block}.attn_norm"), NormKind::Rms)?;
        let m = match c.n_head_kv[i] {
            0 => recurrent::mamba(b, &block, h)?,
            _ => Attention::new(b, i, None)?.build(b, &block, h)?,
        };
        x = b.add(x, m);
        let h = b.norm_of(x, &format!("{block}.ffn_norm"), NormKind::Rms)?;
        let part = match b.has(&format!("{block}.ffn_gate_inp.weight")) {
            true => {
                let experts = Experts::new(b, c.n_ff[i]);
                let routing = Routing { norm: None, ..experts.routing };
                FeedForward::Experts(Experts { routing, ..experts })
            }
            false => FeedForward::Gated(Act::Swiglu),
        };
        for f in part.addends(b, &block, i, h)? {
            x = b.add(x, f);
        }
    }
    let h = b.norm_of(x, "output_norm", NormKind::Rms)?;
    b.logits(h, embeddings, |_, y| y)
}
