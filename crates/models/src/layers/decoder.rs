//! The decoder of most families: embeddings, layers of attention and feed-forward parts around a residual stream,
//! logits.

use chaski_graph::{Function, NormKind, Op, RowNorm, ValueId};

use super::{Attend, Attention, FeedForward};
use crate::build::Builder;
use crate::error::ModelError;

/// Everything around the layers, and parameters common to all layers.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Decoder {
    /// Kind of the norms of the residual stream.
    pub(crate) norm: NormKind,
    /// These norms have weights.
    pub(crate) weighted: bool,
    /// Factor of the embeddings.
    pub(crate) embed_scale: f32,
    /// Apply the norm `token_embd_norm` to the embeddings.
    pub(crate) embed_norm: bool,
    /// Apply an unweighted norm to the embeddings.
    pub(crate) embed_plain_norm: bool,
    /// Add the embeddings to the output of each layer, times its `layer_output_scale`.
    pub(crate) embed_again: bool,
    /// Epsilon of the norms after the parts of a layer; `None`: that of all norms.
    pub(crate) after_eps: Option<f32>,
    /// Add `position_embd` to the embeddings.
    pub(crate) positions: bool,
    /// Factor of the addends of the residual stream.
    pub(crate) residual_scale: f32,
    /// Factor of the logits.
    pub(crate) logit_scale: f32,
    /// Softcap of the logits after that; 0: none.
    pub(crate) logit_softcap: f32,
    /// Stem of the last norm of an encoder, which has no logits; `None`: a decoder, with `output_norm`.
    pub(crate) encodes: Option<&'static str>,
}

impl Decoder {
    /// RMS norms, no other options.
    pub(crate) const RMS: Decoder = Decoder {
        norm: NormKind::Rms,
        weighted: true,
        embed_scale: 1.0,
        embed_norm: false,
        embed_plain_norm: false,
        embed_again: false,
        after_eps: None,
        positions: false,
        residual_scale: 1.0,
        logit_scale: 1.0,
        logit_softcap: 0.0,
        encodes: None,
    };
    /// Layer norms, no other options.
    pub(crate) const LAYER: Decoder = Decoder { norm: NormKind::Norm, ..Decoder::RMS };
}

/// The norms of a layer by the stems of their tensors' names, and whether its two parts run in parallel.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Norms {
    /// Before attention.
    pub(crate) attention: Option<&'static str>,
    /// After attention.
    pub(crate) after_attention: Option<&'static str>,
    /// Before the feed-forward part. A parallel part without one reads attention's input.
    pub(crate) feed_forward: Option<&'static str>,
    /// After the feed-forward part.
    pub(crate) after_feed_forward: Option<&'static str>,
    /// The feed-forward part reads the residual stream as before attention.
    pub(crate) parallel: bool,
}

impl Norms {
    /// Before each part.
    pub(crate) const BEFORE: Norms = Norms {
        attention: Some("attn_norm"),
        after_attention: None,
        feed_forward: Some("ffn_norm"),
        after_feed_forward: None,
        parallel: false,
    };
    /// After each part.
    pub(crate) const AFTER: Norms = Norms {
        attention: None,
        after_attention: Some("post_attention_norm"),
        feed_forward: None,
        after_feed_forward: Some("post_ffw_norm"),
        parallel: false,
    };
    /// Before and after each part.
    pub(crate) const AROUND: Norms =
        Norms { attention: Some("attn_norm"), feed_forward: Some("ffn_norm"), ..Norms::AFTER };
    /// One norm, before both parallel parts.
    pub(crate) const ONE: Norms = Norms { feed_forward: None, parallel: true, ..Norms::BEFORE };
}

/// A layer.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Layer<A = Attention> {
    /// Attention.
    pub(crate) attention: A,
    /// Feed-forward part.
    pub(crate) feed_forward: FeedForward,
    /// Their norms.
    pub(crate) norms: Norms,
}

/// Builds the whole graph; `layer` describes each layer.
///
/// # Errors
/// [`ModelError::NoTensor`], [`ModelError::Shape`], and those of `layer`.
pub(crate) fn decoder<A: Attend>(
    b: &mut Builder<'_>,
    d: &Decoder,
    layer: impl Fn(&Builder<'_>, usize) -> Result<Layer<A>, ModelError>,
) -> Result<(), ModelError> {
    layers(b, d, &layer)
}

/// Describes a layer.
type Answer<'a, A> = &'a dyn Fn(&Builder<'_>, usize) -> Result<Layer<A>, ModelError>;

/// The same, compiled once per kind of attention.
fn layers<A: Attend>(b: &mut Builder<'_>, d: &Decoder, layer: Answer<'_, A>) -> Result<(), ModelError> {
    let c = b.config;
    // A file may have a tied table once, under either name.
    let is_output = !b.has("token_embd.weight") && b.has("output.weight");
    let table = ["token_embd.weight", "output.weight"][usize::from(is_output)];
    let embeddings = b.matrix(table, c.n_vocab, c.n_embd)?;
    let mut x = b.embed_scaled(embeddings, d.embed_scale); // [n_embd]
    if d.embed_norm {
        x = b.norm_of(x, "token_embd_norm", d.norm)?;
    }
    if d.embed_plain_norm {
        x = b.plain_norm(x, d.norm);
    }
    if d.positions {
        let table = b.matrix("position_embd.weight", c.n_ctx_train, c.n_embd)?;
        b.limit_context(c.n_ctx_train)?;
        let p = b.push(Op::EmbedPosition { table }, c.n_embd);
        x = b.add(x, p);
    }
    let embedded = x;
    for i in 0..c.n_layer as usize {
        let block = format!("blk.{i}");
        let Layer { attention, feed_forward, norms } = layer(b, i)?;
        let norm = |b: &mut Builder<'_>, stem: Option<&str>, x| match stem {
            Some(_) if !d.weighted => Ok(b.plain_norm(x, d.norm)),
            Some(stem) => b.norm_of(x, &format!("{block}.{stem}"), d.norm),
            None => Ok(x),
        };
        let norm_after = |b: &mut Builder<'_>, stem: Option<&str>, x| match (stem, d.after_eps) {
            (Some(stem), Some(eps)) => {
                let weight = Some(b.vector(&format!("{block}.{stem}.weight"), c.n_embd)?);
                let norm = RowNorm { kind: d.norm, d: c.n_embd, eps, weight, bias: None };
                Ok(b.push(Op::Norm { x, norm }, c.n_embd))
            }
            _ => norm(b, stem, x),
        };
        let h = norm(b, norms.attention, x)?;
        let a = attention.build(b, &block, h)?;
        let a = norm_after(b, norms.after_attention, a)?;
        let a = b.scaled(a, d.residual_scale);
        let before = x;
        x = b.add(x, a);
        let h = match norms {
            Norms { parallel: true, feed_forward: None, .. } => h,
            Norms { parallel: true, .. } => norm(b, norms.feed_forward, before)?,
            _ => norm(b, norms.feed_forward, x)?,
        };
        // A norm applies to the sum of the parts.
        let parts = match norms.after_feed_forward {
            None => feed_forward.addends(b, &block, i, h)?,
            stem => {
                let f = feed_forward.build(b, &block, i, h)?;
                vec![norm_after(b, stem, f)?]
            }
        };
        for f in parts {
            let f = b.scaled(f, d.residual_scale);
            x = b.add(x, f);
        }
        if d.embed_again {
            let e = b.scaled(embedded, b.scalar(&format!("{block}.layer_output_scale.weight"))?);
            x = b.add(x, e);
        }
    }
    if let Some(stem) = d.encodes {
        let h = b.norm_of(x, stem, d.norm)?;
        b.encoded(h);
        return Ok(());
    }
    let h = match d.weighted {
        true => b.norm_of(x, "output_norm", d.norm)?,
        false => b.plain_norm(x, d.norm),
    };
    b.logits(h, embeddings, |b, y| {
        let y = b.scaled(y, d.logit_scale);
        softcapped(b, y, d.logit_softcap)
    })
}

/// Softcapped logits: cap * tanh(logit / cap); 0: none.
pub(crate) fn softcapped(b: &mut Builder<'_>, x: ValueId, cap: f32) -> ValueId {
    if cap == 0.0 {
        return x;
    }
    let f = Function::find("softcap").expect("a row of the table");
    b.push(Op::Unary { x, f, params: [cap, 1.0 / cap, 0.0, 0.0] }, b.config.n_vocab)
}
