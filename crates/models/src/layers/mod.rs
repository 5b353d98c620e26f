//! Layers shared by families: attention, latent attention, feed-forward parts, MoE, per-layer embeddings, and the
//! decoder built from them.

mod attention;
mod decoder;
mod experts;
mod feed_forward;
mod gated;
mod latent;
mod moe;
mod per_layer;

pub(crate) use attention::{Attend, Attention, HeadGate, QkNorm};
pub(crate) use decoder::{Decoder, Layer, Norms, decoder, softcapped};
pub(crate) use experts::{Experts, Shared, routing, softmax_routing};
pub(crate) use feed_forward::FeedForward;
pub(crate) use latent::{LatentAttention, LatentSizes, derived};
pub(crate) use moe::Moe;
pub(crate) use per_layer::PerLayer;
