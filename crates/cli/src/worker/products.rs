//! Products of a worker, on the CPU or on a GPU.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use chaski::DeviceChoice;
use chaski::experts::{ExpertCall, ExpertWorker, GpuExpertWorker, Graph, Tensors, WorkerConfig};
use chaski::gpu::{Gpu, GpuOptions};
use chaski_swarm::ModelShape;
use chaski_wire::{Digest, EVEN_LAYERS, Hex};
use pollster::block_on;
use sha2::{Digest as _, Sha256};
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

use crate::swarm::{cpu_class, gpu_config, gpu_slots};

/// The device of a worker.
#[derive(Clone)]
pub(crate) enum Device {
    /// The CPU.
    Cpu(WorkerConfig),
    /// A GPU, which has passed its self-test.
    Gpu(Arc<Gpu>),
}

impl Device {
    /// Opens a device.
    ///
    /// # Errors
    /// There is no such GPU, or it computes wrong values.
    pub(crate) fn open(choice: &DeviceChoice, config: WorkerConfig) -> anyhow::Result<Device> {
        let adapter = match choice {
            DeviceChoice::Cpu | DeviceChoice::Auto => return Ok(Device::Cpu(config)),
            DeviceChoice::Gpu(adapter) => adapter.clone(),
            DeviceChoice::Gpus(_) | DeviceChoice::AllGpus => {
                bail!("a worker has one device: start one for each GPU")
            }
        };
        let gpu = Arc::new(block_on(Gpu::open(&GpuOptions { adapter, ..GpuOptions::default() }))?);
        block_on(chaski::gpu::self_test(&gpu))?;
        Ok(Device::Gpu(gpu))
    }

    /// Checks that it still works.
    ///
    /// # Errors
    /// The GPU is lost, or has reported an error.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        match self {
            Device::Cpu(_) => Ok(()),
            Device::Gpu(gpu) => gpu.check_alive().with_context(|| gpu.summary().name.clone()),
        }
    }

    /// Its name in the hub's status.
    pub(crate) fn name(&self) -> String {
        match self {
            Device::Cpu(_) => "cpu".to_owned(),
            Device::Gpu(gpu) => gpu.summary().name.clone(),
        }
    }

    /// Features for HELLO. Buffers of a GPU have slots in each layer before it is known what they will hold.
    pub(crate) fn features(&self) -> Vec<String> {
        match self {
            Device::Cpu(_) => Vec::new(),
            Device::Gpu(_) => vec![EVEN_LAYERS.to_owned()],
        }
    }

    /// Most experts of one layer in so much memory; `None` if bytes alone count.
    pub(crate) fn slots(&self, shape: &ModelShape, memory: u64) -> Option<u32> {
        match self {
            Device::Cpu(_) => None,
            Device::Gpu(_) => Some(shape.even_slots(memory)),
        }
    }

    /// Workers of equal classes compute equal bits: on GPUs those with the same driver, device and kernels.
    pub(crate) fn class(&self) -> Digest {
        match self {
            Device::Cpu(config) => cpu_class(config),
            Device::Gpu(gpu) => {
                let (version, s) = (env!("CARGO_PKG_VERSION"), gpu.summary());
                let text = format!(
                    "chaski {version} gpu {} {} {} {:?}",
                    s.backend,
                    s.name,
                    s.driver,
                    gpu.caps().most()
                );
                Hex(Sha256::digest(text).into())
            }
        }
    }

    /// Half of its memory.
    pub(crate) fn half(&self) -> u64 {
        let of_gpu = match self {
            Device::Gpu(gpu) => gpu.memory().map(|memory| memory.n_free),
            Device::Cpu(_) => None,
        };
        let of_machine = || {
            let memory = RefreshKind::nothing().with_memory(MemoryRefreshKind::everything());
            System::new_with_specifics(memory).total_memory()
        };
        of_gpu.unwrap_or_else(of_machine) / 2
    }
}

/// The experts on a device.
pub(crate) enum Products {
    Cpu(Box<ExpertWorker>),
    Gpu(Box<GpuExpertWorker>),
}

impl Products {
    /// None yet. A GPU has as many slots in each layer as `memory` has room for in all of them.
    ///
    /// # Errors
    /// A graph without experts; a GPU with too little memory for the experts of a token.
    pub(crate) fn new(
        device: &Device,
        graph: &Graph,
        shape: &ModelShape,
        memory: u64,
    ) -> anyhow::Result<Products> {
        let gpu = match device {
            Device::Cpu(config) => return Ok(Products::Cpu(Box::new(ExpertWorker::new(graph, *config)?))),
            Device::Gpu(gpu) => gpu.clone(),
        };
        let plan = gpu_config(gpu_slots(graph, shape, memory)?);
        let worker = block_on(GpuExpertWorker::new(gpu, graph, &plan)).context("experts on the GPU")?;
        Ok(Products::Gpu(Box::new(worker)))
    }

    /// Loads an expert; the digest of its canary.
    ///
    /// # Errors
    /// Weights that cannot be read, or have no room; those of a device.
    pub(crate) fn add(
        &mut self,
        (layer, expert): (u16, u16),
        tensors: &impl Tensors,
    ) -> anyhow::Result<[u8; 32]> {
        Ok(match self {
            Products::Cpu(worker) => {
                block_on(worker.add(layer, expert, tensors))?;
                worker.canary(layer, expert)?
            }
            Products::Gpu(worker) => {
                block_on(worker.add(layer, expert, tensors))?;
                block_on(worker.canary(layer, expert))?
            }
        })
    }

    /// Frees an expert.
    ///
    /// # Errors
    /// There is no such expert.
    pub(crate) fn remove(&mut self, (layer, expert): (u16, u16)) -> anyhow::Result<bool> {
        Ok(match self {
            Products::Cpu(worker) => worker.remove(layer, expert)?,
            Products::Gpu(worker) => worker.remove(layer, expert)?,
        })
    }

    /// Computes a call.
    ///
    /// # Errors
    /// Experts that are not here; a step with too many columns; those of a device.
    pub(crate) fn compute(&mut self, call: &ExpertCall) -> anyhow::Result<Vec<f32>> {
        Ok(match self {
            Products::Cpu(worker) => worker.compute(call)?,
            Products::Gpu(worker) => block_on(worker.compute(call))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_gpu_is_noticed() {
        let config = WorkerConfig::default();
        assert!(Device::open(&DeviceChoice::Cpu, config).unwrap().check().is_ok());
        let several = Device::open(&DeviceChoice::AllGpus, config).map(drop).unwrap_err();
        assert!(several.to_string().contains("one device"), "{several}");
        if block_on(chaski::gpu::adapters()).is_empty() {
            // The harness hides what macros of passing tests print.
            let thread = std::thread::current();
            let line = format!("SKIPPED {}: for want of a GPU\n", thread.name().unwrap_or("a test"));
            return std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).unwrap();
        }
        let device = Device::open(&DeviceChoice::Gpu(None), config).unwrap();
        device.check().unwrap();
        let Device::Gpu(gpu) = &device else { panic!("a GPU was asked for") };
        gpu.destroy();
        let error = device.check().unwrap_err();
        assert!(format!("{error:#}").contains("lost"), "{error:#}");
    }
}
