//! ERNIE 4.5 with experts.
//!
//! Some dense layers, then MoE with a shared expert; in every few layers only, if the file says so.

use chaski_graph::{Gate, RopePairing, Routing};

use crate::build::Builder;
use crate::error::ModelError;
use crate::layers::{Attention, Decoder, Layer, Moe, Norms, decoder};

pub(super) fn build(b: &mut Builder<'_>) -> Result<(), ModelError> {
    let rope = b.rope(RopePairing::Norm)?;
    let rope = b.add_rope(rope);
    let m = Moe::new(b, Gate::Softmax)?;
    let routing = Routing { gate: Gate::Softmax, norm: Some(Routing::CLAMP), ..m.routing };
    let step = b.u32("interleave_moe_layer_step")?.unwrap_or(1);
    let m = Moe { routing, step, n_shared: None, ..m };
    decoder(b, &Decoder::RMS, |b, i| {
        let attention = Attention::new(b, i, Some(rope))?;
        Ok(Layer { attention, feed_forward: m.layer(b, i)?, norms: Norms::BEFORE })
    })
}
