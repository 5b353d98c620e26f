//! Layers that families share: attention, feed-forward parts, mixtures of experts, and the decoder that is made of them.

mod attention;
mod decoder;
mod experts;
mod feed_forward;

pub(crate) use attention::{Attention, QkNorm};
pub(crate) use decoder::{Decoder, Layer, Norms, decoder};
pub(crate) use experts::{Experts, Shared, routing, softmax_routing};
pub(crate) use feed_forward::FeedForward;
