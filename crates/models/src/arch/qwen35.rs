//! Qwen 3.5, dense and with experts, and Qwen 3 Next: gated delta nets, in every few layers attention.
//!
//! x += mixer(norm(x)); x += feed_forward(norm(x)). Attention has norms of the heads of q and k and a gated output; MoE
//! has a gated shared expert.

use chaski_graph::{Act, NormKind, Rope, RopePairing, Sections};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attend, Attention, Experts, FeedForward, HeadGate, QkNorm, Shared};
use crate::recurrent::{self, DeltaOrder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = rope_of(b)?;
    let rope = b.add_rope(rope);
    layers(b, rope, DeltaOrder::Tiled)
}

/// NeoX RoPE, with the pairs that have no position disabled.
pub(super) fn rope_of(b: &Builder<'_>) -> Result<Rope, ModelError> {
    let (sections, unrotated) = sections(b)?;
    let mut rope = Rope { sections: Some(sections), ..b.rope(RopePairing::Neox)? };
    if !unrotated.is_empty() {
        let n_pair = (rope.n_rot / 2) as usize;
        let factors = rope.factors.get_or_insert_with(|| vec![1.0; n_pair]);
        // An infinite divisor of the frequency disables RoPE for a pair.
        unrotated.into_iter().for_each(|i| factors[i as usize] = f32::INFINITY);
    }
    Ok(rope)
}

pub(super) fn build_next(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Neox)?;
    let rope = b.add_rope(rope);
    layers(b, rope, DeltaOrder::Grouped)
}

/// The sections of pairs, which use the components time, height and width in turn as far as these go, and the other
/// pairs: their fourth component is always 0.
fn sections(b: &Builder<'_>) -> Result<(Sections, Vec<u32>), ModelError> {
    let key = format!("{}.rope.dimension_sections", b.config.arch);
    let sections = b.metadata.array(&key)?.to_vec::<i32>()?;
    let wrong = || ModelError::Config {
        key: key.clone(),
        found: format!("{sections:?}"),
        expected: format!("must be four counts of pairs, each at most {}, not all 0", b.config.n_rot),
    };
    let n_rot = b.config.n_rot;
    let pairs: Option<Vec<u32>> =
        sections.iter().map(|n| u32::try_from(*n).ok().filter(|n| *n <= n_rot)).collect();
    let pairs = pairs.and_then(|p| <[u32; 4]>::try_from(p).ok()).ok_or_else(wrong)?;
    let all: u32 = pairs.iter().sum();
    if all == 0 {
        return Err(wrong());
    }
    let turns = |pair: &u32| {
        let at = *pair % all;
        at < 3 * pairs[(at % 3) as usize]
    };
    let unrotated = (0..n_rot / 2).filter(|pair| !turns(pair)).collect();
    Ok((Sections { pairs, take_turns: true }, unrotated))
}

/// The layers that are delta nets.
fn delta_layers(b: &Builder<'_>) -> Result<Vec<bool>, ModelError> {
    if let Some(flags) = b.flags("attention.recurrent_layers")? {
        return Ok(flags);
    }
    let key = "full_attention_interval";
    let interval = match b.u32(key)? {
        Some(_) => recurrent::size(b, key, 1, 4096)?,
        None => 4,
    };
    Ok((1..=b.config.n_layer).map(|i| i % interval != 0).collect())
}

fn layers(b: &mut Builder<'_>, rope: usize, order: DeltaOrder) -> Result<(), ModelError> {
    let c = b.config;
    let is_delta = delta_layers(b)?;
    let n_ff = b.u32("expert_feed_forward_length")?;
    let shared = b.u32("expert_shared_feed_forward_length")?.filter(|n| *n > 0);
    let embeddings = b.matrix("token_embd.weight", c.n_vocab, c.n_embd)?;
    let mut x = b.embed(embeddings); // [n_embd]
    for layer in 0..c.n_layer as usize {
        let block = format!("blk.{layer}");
        let h = b.norm_of(x, &format!("{block}.attn_norm"), NormKind::Rms)?;
        let m = if is_delta[layer] {
            recurrent::delta_net(b, &block, order, h)?
        } else {
            let attention = Attention::new(b, layer, Some(rope))?;
            Attention { norm: QkNorm::Heads, gate: HeadGate::Alternating, ..attention }.build(b, &block, h)?
        };
        x = b.add(x, m);
        // Despite its name, the second norm precedes the feed-forward part.
        let h = b.norm_of(x, &format!("{block}.post_attention_norm"), NormKind::Rms)?;
        let part = if c.n_expert > 0 {
            let shared = Shared::Gated(shared.unwrap_or(c.n_ff[layer]));
            // Without an expert width in the file, the feed-forward width is divided by the experts per token.
            let n_ff = n_ff.unwrap_or(c.n_ff[layer] / c.n_expert_used);
            FeedForward::Experts(Experts { shared, ..Experts::new(b, n_ff) })
        } else {
            FeedForward::Gated(Act::Swiglu)
        };
        for f in part.addends(b, &block, layer, h)? {
            x = b.add(x, f);
        }
    }
    let h = b.norm_of(x, "output_norm", NormKind::Rms)?;
    b.logits(h, embeddings, |_, y| y)
}
