//! SmallThinker.
//!
//! NeoX RoPE and windows in all but the first of four layers, if the file has windows; MoE with ReLU gates, routed by
//! attention's input before its norm.

use chaski_graph::{Act, Gate, NormKind, RopePairing, Routing, Score};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attend, Attention, Experts, routing};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let c = b.config;
    let has_windows = b.u32("attention.sliding_window")?.is_some_and(|n| n > 0);
    let windows = if has_windows { b.windows_after_first(0, 4)? } else { vec![0; c.n_head.len()] };
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    let routing = Routing { norm: Some(Routing::CLAMP), ..routing(b, Gate::Softmax)? };
    let n_ff = b.u32("expert_feed_forward_length")?.filter(|n| *n > 0);
    let embeddings = b.matrix("token_embd.weight", c.n_vocab, c.n_embd)?;
    let mut x = b.embed(embeddings); // [n_embd]
    for i in 0..c.n_layer as usize {
        let block = format!("blk.{i}");
        let router = b.linear(&format!("{block}.ffn_gate_inp"), c.n_expert, c.n_embd)?;
        let logits = b.mul(x, router); // [n_expert]
        let h = b.norm_of(x, &format!("{block}.attn_norm"), NormKind::Rms)?;
        let rotates = !has_windows || i % 4 != 0;
        let attention = Attention::new(b, i, rotates.then_some(rope))?;
        // Files give a window, but models have been run with this one.
        let score = Score { window: if windows[i] > 0 { 4096 } else { 0 }, ..attention.score };
        let a = Attention { score, ..attention }.build(b, &block, h)?;
        x = b.add(x, a);
        let h = b.norm_of(x, &format!("{block}.ffn_norm"), NormKind::Rms)?;
        let experts = Experts { act: Act::Reglu, routing, ..Experts::new(b, n_ff.unwrap_or(c.n_ff[i])) };
        let f = experts.build_routed(b, &block, h, logits)?;
        x = b.add(x, f);
    }
    let h = b.norm_of(x, "output_norm", NormKind::Rms)?;
    b.logits(h, embeddings, |_, y| y)
}
