//! Pages of a KV cache that all sequences share: as many as its memory, or the devices, have room for.

use chaski_graph::Graph;
use chaski_runtime::RuntimeError;
use chaski_runtime::cpu::CpuConfig;
use chaski_runtime::gpu::DeviceMemory;
use chaski_runtime::kernels::Caps;
use chaski_runtime::plan::{PlanConfig, memory_need};
use ggml_format::ByteSource;

use super::config::{PAGE, RunnerConfig};
use crate::error::ModelError;
use crate::model::Model;

/// Part of a device's memory for a model whose pool is sized by it, beside what drivers take.
const OF_MEMORY: f64 = 0.9;

impl RunnerConfig {
    /// A plan with the pool that [`Self::kv_memory`] has room for, or that bindings of all devices hold
    /// ([`Self::kv_fits`]).
    pub(super) fn pooled(
        &self,
        plan: PlanConfig,
        graph: &Graph,
        devices: &[&Caps],
    ) -> Result<PlanConfig, ModelError> {
        let pool = match self.fits() {
            true => {
                let limit = devices.iter().map(|caps| caps.max_binding_bytes).min().unwrap_or(u64::MAX);
                fewer(&plan, plan.most_pages(graph, limit).unwrap_or(u32::MAX))
            }
            false => self.pool_within_memory(plan.n_ctx, || plan.cache_bytes(graph))?,
        };
        Ok(PlanConfig { pool: pool.or(plan.pool), ..plan })
    }

    /// The sizes of a model on the CPU with the pool that [`Self::kv_memory`] has room for.
    pub(super) fn cpu_within_memory<S: ByteSource>(
        &self,
        model: &Model<S>,
        graph: &Graph,
    ) -> Result<CpuConfig, ModelError> {
        let sizes = self.cpu_for(model);
        let pool = self.pool_within_memory(sizes.n_ctx, || (0, sizes.page_bytes(graph)))?;
        Ok(CpuConfig { pool: pool.or(sizes.pool), ..sizes })
    }

    /// A plan whose pool the devices' memory has room for, too, where it is known ([`Self::kv_fits`]).
    pub(super) fn within_devices(
        &self,
        plan: PlanConfig,
        graph: &Graph,
        devices: &[&Caps],
        memory: &[Option<DeviceMemory>],
    ) -> Result<PlanConfig, RuntimeError> {
        let rooms: Vec<u64> = memory
            .iter()
            .map(|memory| memory.map_or(u64::MAX, |m| (m.n_budget as f64 * OF_MEMORY) as u64))
            .collect();
        if !self.fits() || rooms.iter().all(|room| *room == u64::MAX) {
            return Ok(plan);
        }
        let needs = |n_page: u32| {
            let sized = PlanConfig { pool: Some(n_page), ..plan.clone() };
            let needs = memory_need(graph, devices, &sized).map_err(RuntimeError::Plan)?.0;
            Ok::<_, RuntimeError>(needs.iter().map(|need| need.n_byte()).collect::<Vec<u64>>())
        };
        let sizes = (plan.pages_per_seq(), plan.n_page());
        let pool = pages_on(&rooms, sizes, needs)?.and_then(|n_page| fewer(&plan, n_page));
        Ok(PlanConfig { pool: pool.or(plan.pool), ..plan })
    }

    /// True if the size of the pool follows from the devices.
    fn fits(&self) -> bool {
        self.kv_fits && self.kv_memory.is_none() && self.kv_tokens.is_none() && !cfg!(target_arch = "wasm32")
    }

    /// Pages of a cache of the configured size, if there is one, whose layers without a pool and whose pages have this
    /// many bytes.
    fn pool_within_memory(
        &self,
        n_ctx: u32,
        bytes: impl FnOnce() -> (u64, u64),
    ) -> Result<Option<u32>, ModelError> {
        let asked = self.kv_memory.filter(|_| self.kv_tokens.is_none() && !cfg!(target_arch = "wasm32"));
        let Some(found) = asked else { return Ok(None) };
        let (fixed, each) = bytes();
        if each == 0 {
            return Ok(None);
        }
        let n_page = found.saturating_sub(fixed) / each;
        let per_seq = n_ctx.div_ceil(PAGE);
        if n_page < per_seq.into() {
            let needed = fixed.saturating_add(each.saturating_mul(per_seq.into()));
            return Err(ModelError::SmallKvMemory { found, needed, n_ctx });
        }
        Ok(Some(u32::try_from(n_page).unwrap_or(u32::MAX).min(u32::MAX / PAGE)))
    }
}

/// This many pages, at least those of a context, if the plan has more.
fn fewer(plan: &PlanConfig, n_page: u32) -> Option<u32> {
    // A context that does not fit is an error of the plan, or of the device.
    let n_page = n_page.max(plan.pages_per_seq());
    (n_page < plan.n_page()).then_some(n_page)
}

/// Pages, between two numbers, with which a model fits the rooms of all devices, by its bytes on each with so many
/// pages; `None` if it fits with the second.
fn pages_on<E>(
    rooms: &[u64],
    (least, most): (u32, u32),
    needs: impl Fn(u32) -> Result<Vec<u64>, E>,
) -> Result<Option<u32>, E> {
    if least >= most {
        return Ok(None);
    }
    let with_most = needs(most)?;
    if with_most.iter().zip(rooms).all(|(need, room)| need <= room) {
        return Ok(None);
    }
    let each = needs(least)?.into_iter().zip(with_most).zip(rooms);
    Ok(each.map(|(needs, room)| pages_within(*room, (least, most), needs)).min())
}

/// Pages that fit `room` bytes of a device, at least the first of two numbers and at most the second, with which the
/// model takes these bytes there.
fn pages_within(room: u64, (least, most): (u32, u32), (with_least, with_most): (u64, u64)) -> u32 {
    let (pages, bytes) = (u128::from(most - least), u128::from(with_most.saturating_sub(with_least)));
    let left = u128::from(room.saturating_sub(with_least));
    let more = if bytes > left { left * pages / bytes } else { pages };
    least + more as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_has_the_pages_between_two_sizes_that_fit() {
        let of = |room| pages_within(room, (128, 8192), (1000, 1000 + 8064 * 10));
        assert_eq!([of(0), of(1000), of(1009), of(1010)], [128, 128, 128, 129]);
        assert_eq!([of(41_320), of(81_639), of(81_640), of(u64::MAX)], [4160, 8191, 8192, 8192]);
        // A device whose layers have no pages does not limit them.
        assert_eq!(pages_within(5, (4, 16), (7, 7)), 16);
        let large = pages_within(80 << 30, (128, 1 << 25), (10 << 30, 10 << 50));
        assert!((128..1 << 25).contains(&large), "{large}");
    }

    #[test]
    fn a_pool_fits_the_memory_of_every_device() {
        // Weights and activations of 5 and 10 GiB, and 2 and 1 MiB of layers for each page.
        let needs =
            |n: u32| Ok::<_, ()>(vec![(5 << 30) + (u64::from(n) << 21), (10 << 30) + (u64::from(n) << 20)]);
        let of = |rooms: [u64; 2]| pages_on(&rooms.map(|gib| gib << 30), (128, 8192), needs).unwrap();
        // All pages take 21 and 18 GiB.
        assert_eq!([of([21, 18]), of([100, u64::MAX >> 30])], [None, None]);
        assert_eq!(of([13, 18]), Some(4096));
        assert_eq!(of([21, 11]), Some(1024));
        assert_eq!(of([13, 11]), Some(1024));
        // Not even a context fits, which the device says.
        assert_eq!(of([5, 18]), Some(128));
        assert_eq!(pages_on(&[0], (128, 128), |_| Err("no need to ask")), Ok(None));
        assert_eq!(pages_on(&[0], (1, 2), |_| Err("a plan that fails")), Err("a plan that fails"));
    }

    #[test]
    fn a_pool_shrinks_to_no_less_than_a_context() {
        let plan = PlanConfig::new(8192, 64, 512);
        assert_eq!(fewer(&plan, 1000), Some(1000));
        assert_eq!(fewer(&plan, 100), Some(128));
        assert_eq!([fewer(&plan, 64 * 128), fewer(&plan, u32::MAX)], [None, None]);
        assert_eq!(fewer(&PlanConfig::new(8192, 1, 512), 1), None);
    }
}
