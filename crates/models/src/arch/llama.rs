//! Llama 2 to 3.2, TinyLlama, SmolLM, Mistral up to 7B v0.3, Nemo, Mixtral, and their finetunes.
//!
//! x += attention(norm(x)); x += feed_forward(norm(x)); rotation of neighbouring channels, SiLU-gated feed-forward,
//! in Mixtral by experts.

use chaski_kernels::ops::glu::Act;
use chaski_kernels::rope::RopePairing;

use super::Builder;
use crate::error::ModelError;
use crate::layers;

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let c = b.config;
    if c.n_rot != c.d_head {
        return Err(ModelError::Config {
            key: format!("{}.rope.dimension_count", c.arch),
            found: c.n_rot.to_string(),
            expected: format!("must be the head's {} channels in this family", c.d_head),
        });
    }
    let rope = c.rope(b.metadata, RopePairing::Norm, b.rope_factors.take())?;
    b.set_rope(rope);
    let embeddings = b.matrix("token_embd.weight", c.n_vocab, c.n_embd)?;
    let mut x = b.embed(embeddings); // [n_embd]
    for layer in 0..c.n_layer as usize {
        let block = format!("blk.{layer}");
        let w = b.vector(&format!("{block}.attn_norm.weight"), c.n_embd)?;
        let h = b.norm(x, w);
        let a = layers::attention(b, &block, layer, h)?;
        x = b.add(x, a);
        let w = b.vector(&format!("{block}.ffn_norm.weight"), c.n_embd)?;
        let h = b.norm(x, w);
        let f = if c.n_expert > 0 {
            layers::experts(b, &block, c.n_ff[layer], Act::Swiglu, layers::softmax_routing(b), h)?
        } else {
            layers::feed_forward(b, &block, layer, Act::Swiglu, h)?
        };
        x = b.add(x, f);
    }
    let w = b.vector("output_norm.weight", c.n_embd)?;
    let h = b.norm(x, w);
    b.logits(h, embeddings)
}
