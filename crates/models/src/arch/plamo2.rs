//! PLaMo 2: Mamba-2 with dt computed as in Mamba-1, in some layers attention, and a feed-forward part in every layer.
//!
//! Norms around both parts; layers without KV heads are state spaces.

use chaski_graph::{Act, NormKind, RopePairing, Score};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attend, Attention, FeedForward, QkNorm};
use crate::recurrent;

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let c = b.config;
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    let embeddings = b.matrix("token_embd.weight", c.n_vocab, c.n_embd)?;
    let mut x = b.embed(embeddings); // [n_embd]
    for i in 0..c.n_layer as usize {
        let block = format!("blk.{i}");
        let norm = |b: &mut Builder<'_>, x, stem| b.norm_of(x, &format!("{block}.{stem}"), NormKind::Rms);
        let h = norm(b, x, "attn_norm")?;
        let m = if c.n_head_kv[i] == 0 {
            recurrent::mamba_of_heads(b, &block, h)?
        } else {
            let attention = Attention::new(b, i, Some(rope))?;
            let score = Score::scaled(1.0 / (attention.d_v as f32).sqrt());
            Attention { score, norm: QkNorm::OwnHeads, ..attention }.build(b, &block, h)?
        };
        let m = norm(b, m, "post_attention_norm")?;
        x = b.add(x, m);
        let h = norm(b, x, "ffn_norm")?;
        let f = FeedForward::Joined(Act::Swiglu).build(b, &block, i, h)?;
        let f = norm(b, f, "post_ffw_norm")?;
        x = b.add(x, f);
    }
    let h = b.norm_of(x, "output_norm", NormKind::Rms)?;
    b.logits(h, embeddings, |_, y| y)
}
