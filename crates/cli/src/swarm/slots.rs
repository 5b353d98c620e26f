//! Sizes of the plans of workers on GPUs: programs make them for themselves, and the hub for pages.

use anyhow::bail;
use chaski::experts::{Graph, PlanConfig, Streaming};
use chaski_swarm::ModelShape;

use crate::ui::bytes;

/// Columns of the hub's steps that a GPU has kernels for. Larger steps are left to others.
const COLUMNS: u32 = 512;

/// Slots for the experts of every layer on a GPU with so much memory for them.
///
/// # Errors
/// Too few for the experts of a token.
pub(crate) fn gpu_slots(graph: &Graph, shape: &ModelShape, memory: u64) -> anyhow::Result<u32> {
    let n_slot = shape.even_slots(memory);
    let least = graph.experts().iter().map(|l| l.n_used).max().unwrap_or(0);
    if n_slot < least {
        let of_slot: u64 = shape.layers.iter().map(|layer| layer.expert_bytes).sum();
        bail!(
            "a GPU keeps experts of every layer, at least the {least} that a token uses: {} of memory, found {}",
            bytes(u64::from(least) * of_slot),
            bytes(memory)
        );
    }
    Ok(n_slot)
}

/// Sizes of the plan of a GPU with so many slots in each layer.
pub(crate) fn gpu_config(n_slot: u32) -> PlanConfig {
    let experts = Streaming { n_layer: u32::MAX, n_slot };
    PlanConfig { experts, away: true, ..PlanConfig::new(COLUMNS, 1, COLUMNS) }
}
