//! A loaded model as an executor, on whatever it runs.

use chaski_schedule::{Change, Limits, Step};
use chaski_text::Sampler;

use super::cpu::CpuExecutor;
use super::executor::{Executor, Outputs, Start};
use super::gpu::GpuExecutor;
use crate::adapter::check_scales;
use crate::error::ModelError;
use crate::run::{Device, Runner, device_chain};

/// A loaded model that runs the steps of a scheduler.
pub struct ModelExecutor {
    kind: Kind,
    n_vocab: usize,
    /// Scales of the LoRAs for requests that ask for none.
    lora: Vec<f32>,
}

enum Kind {
    Gpu(Box<GpuExecutor>),
    Cpu(Box<CpuExecutor>),
}

impl std::fmt::Debug for ModelExecutor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelExecutor").field("limits", &self.limits()).finish_non_exhaustive()
    }
}

impl ModelExecutor {
    /// Takes a loaded model; what its sequences hold is forgotten. At most `max_waiting` requests wait for a slot.
    pub fn new(runner: Runner, max_waiting: usize) -> Self {
        let (n_vocab, n_seq) = (runner.n_vocab(), runner.n_seq() as u32);
        let lora = runner.adapter_scales().to_vec();
        let kind = match runner.device {
            Device::Gpu(model) => Kind::Gpu(Box::new(GpuExecutor::new(*model, lora.clone(), max_waiting))),
            Device::Cpu(model) => {
                Kind::Cpu(Box::new(CpuExecutor::new(*model, (n_seq, n_vocab), lora.clone(), max_waiting)))
            }
        };
        ModelExecutor { kind, n_vocab: n_vocab as usize, lora }
    }
}

impl Executor for ModelExecutor {
    fn limits(&self) -> Limits {
        match &self.kind {
            Kind::Gpu(e) => e.limits(),
            Kind::Cpu(e) => e.limits(),
        }
    }

    fn n_vocab(&self) -> usize {
        self.n_vocab
    }

    fn lora(&self, asked: Option<&[f32]>) -> Result<Vec<f32>, ModelError> {
        let lora = asked.unwrap_or(&self.lora);
        check_scales(self.lora.len(), lora)?;
        Ok(lora.to_vec())
    }

    fn can_choose(&self, sampler: &Sampler) -> Result<(), &'static str> {
        match &self.kind {
            Kind::Gpu(_) => device_chain(sampler).map(drop),
            Kind::Cpu(_) => Err("the model runs on it"),
        }
    }

    fn start(&mut self, start: Start<'_>) -> Result<(), ModelError> {
        match &mut self.kind {
            Kind::Gpu(e) => e.start(start),
            Kind::Cpu(e) => {
                e.start(start);
                Ok(())
            }
        }
    }

    fn change(&mut self, change: &Change) -> Result<(), ModelError> {
        match &mut self.kind {
            Kind::Gpu(e) => e.change(change),
            // Every slot has its own cache, whatever its pages are called.
            Kind::Cpu(_) => {}
        }
        Ok(())
    }

    fn submit(&mut self, step: &Step) -> Result<(), ModelError> {
        match &mut self.kind {
            Kind::Gpu(e) => e.submit(step),
            Kind::Cpu(e) => {
                e.submit(step);
                Ok(())
            }
        }
    }

    async fn read(&mut self) -> Result<Outputs, ModelError> {
        match &mut self.kind {
            Kind::Gpu(e) => e.read().await,
            Kind::Cpu(e) => {
                breathe().await;
                e.read()
            }
        }
    }

    fn max_under_way(&self) -> usize {
        match &self.kind {
            Kind::Gpu(e) => e.max_under_way(),
            Kind::Cpu(_) => 1,
        }
    }
}

/// Lets other tasks of the thread run.
async fn breathe() {
    let mut is_first = true;
    std::future::poll_fn(|cx| {
        if std::mem::take(&mut is_first) {
            cx.waker().wake_by_ref();
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(())
    })
    .await;
}
