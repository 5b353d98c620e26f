//! Estimates the device memory that a model will need, before anything is loaded.

use chaski_models::{ModelError, RunnerConfig};
use chaski_runtime::gpu::{Memory, MemoryItem};
use chaski_runtime::kernels::Caps;
use chaski_runtime::kernels::{adjust, rope, sample};
use chaski_runtime::plan::{Groups, PlanError, fuse, plan};
use chaski_runtime::{RuntimeError, STATE_COPIES};

use crate::error::Error;
use crate::source::OpenModel;

/// The memory that [`crate::Engine`] will allocate on a device with these capabilities for this model and
/// configuration, by purpose.
///
/// # Errors
/// [`Error`]: missing or invalid tensors, or a model that cannot be planned for such a device.
pub async fn memory_need(model: &OpenModel, config: &RunnerConfig, caps: &Caps) -> Result<Memory, Error> {
    let config = config.plan_for(model, caps);
    let n_ctx = config.n_ctx;
    let graph = model.graph(n_ctx).await?;
    let wrong = |e: PlanError| Error::Model(ModelError::Runtime(RuntimeError::Plan(e)));
    let steps = fuse(&graph, config.fusions);
    let mut groups = Groups::new(&graph, &steps, caps, &config.experts).map_err(wrong)?;
    let segments = plan(&graph, &steps, &mut groups, caps, &config).map_err(wrong)?;

    let shards = groups.groups.iter().flat_map(|g| g.shards.iter().map(|s| g.layout(s).n_byte));
    let aux = groups.aux.iter().map(|a| a.n_word() as u64 * 4);
    let kv = graph.kv.iter().map(|l| config.kv_layout(l).n_byte()).chain(config.page_bytes(&graph));
    let states: Vec<u64> = graph.states.iter().map(|l| l.n_byte()).collect();
    let copies = states.repeat(STATE_COPIES * config.n_seq as usize);
    let states = states.into_iter().map(|n_byte| n_byte * u64::from(config.n_seq));
    let logits = segments.logits_words * 4;
    let ring = config.ring_bytes();
    let route = (segments.route_words > 0).then_some(u64::from(segments.route_words) * 4);
    let (sampler, adjust) = (config.per_seq(sample::N_WORD), config.per_seq(adjust::N_WORD));
    let arrived = segments.arrived_words * 4;
    let mut ropes: Vec<u64> = graph.ropes.iter().map(|r| rope::table_len(r, n_ctx) as u64 * 4).collect();
    if ropes.is_empty() {
        ropes.push(16);
    }
    let items = vec![
        item("weights", shards.chain(aux)),
        item("kv cache", kv),
        item("recurrent state", states),
        item("copies of the recurrent state", copies),
        item("activations", segments.act_words.iter().map(|w| w * 4).chain([16])),
        item("logits", [logits]),
        item("rotation tables", ropes),
        item("step, ring and sampler", [config.step_words() as u64 * 4, ring, sampler, adjust, arrived]),
        item("readback", [ring, ring, ring, ring, logits].into_iter().chain(route)),
    ];
    Ok(Memory { items: items.into_iter().filter(|i| i.n_buffer > 0).collect() })
}

/// The memory that [`crate::Engine`] will allocate for a model on the CPU ([`crate::DeviceChoice::Cpu`]).
///
/// # Errors
/// [`Error`]: tensors that are missing or wrong.
pub async fn memory_need_on_processor(model: &OpenModel, config: &RunnerConfig) -> Result<Memory, Error> {
    Ok(config.memory_on_processor(model).await?)
}

/// Buffers are padded to 16 bytes.
fn item(what: &'static str, sizes: impl IntoIterator<Item = u64>) -> MemoryItem {
    let sizes = sizes.into_iter().map(|n| n.next_multiple_of(16).max(16));
    let (n_buffer, n_byte) = sizes.fold((0, 0), |(n, sum), size| (n + 1, sum + size));
    MemoryItem { what, n_buffer, n_byte }
}
