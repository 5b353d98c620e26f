//! A loaded model as an executor, on whatever it runs.

use chaski_runtime::gpu::GpuModel;
use chaski_schedule::{Change, Limits, Step};
use chaski_text::Sampler;
use web_time::Instant;

use super::cpu::{CpuSlots, run_step};
use super::executor::{Executor, Outputs, Start};
use super::gpu::GpuSlots;
use crate::adapter::check_scales;
use crate::error::ModelError;
use crate::run::{Device, Runner, device_chain};

/// The requests in the slots of a model's device.
pub(crate) enum Slots {
    Gpu(GpuSlots),
    Cpu(CpuSlots),
}

impl Slots {
    pub(crate) fn of(device: &Device, n_seq: u32) -> Self {
        match device {
            Device::Gpu(_) => Slots::Gpu(GpuSlots::new(n_seq)),
            Device::Cpu(_) => Slots::Cpu(CpuSlots::new(n_seq)),
        }
    }
}

/// A loaded model runs the steps of a scheduler. Sequences that were run otherwise ([`Runner::prefill`] and others) lose their
/// tokens to it, and [`Executor::forget`] brings it back to where it has none.
impl Executor for Runner {
    fn limits(&self) -> Limits {
        match &self.device {
            Device::Gpu(model) => GpuSlots::limits(model),
            Device::Cpu(model) => CpuSlots::limits(model, self.n_slot()),
        }
    }

    fn n_vocab(&self) -> usize {
        Runner::n_vocab(self) as usize
    }

    fn lora(&self, asked: Option<&[f32]>) -> Result<Vec<f32>, ModelError> {
        let lora = asked.unwrap_or(self.adapter_scales());
        check_scales(self.adapter_scales().len(), lora)?;
        Ok(lora.to_vec())
    }

    fn can_choose(&self, sampler: &Sampler) -> Result<(), &'static str> {
        match &self.device {
            Device::Gpu(_) => device_chain(sampler).map(drop),
            Device::Cpu(_) => Err("the model runs on it"),
        }
    }

    fn start(&mut self, start: Start<'_>) -> Result<(), ModelError> {
        self.serve();
        match (&mut self.device, &mut self.slots) {
            (Device::Gpu(model), Slots::Gpu(slots)) => slots.start(model, start),
            (_, Slots::Cpu(slots)) => {
                slots.start(start);
                Ok(())
            }
            (Device::Cpu(_), Slots::Gpu(_)) => unreachable!("slots are those of the device"),
        }
    }

    fn change(&mut self, change: &Change) -> Result<(), ModelError> {
        self.serve();
        match &mut self.device {
            Device::Gpu(model) => GpuSlots::change(model, change),
            // Every slot has its own cache, whatever its pages are called.
            Device::Cpu(_) => {}
        }
        Ok(())
    }

    fn submit(&mut self, step: &Step) -> Result<(), ModelError> {
        let Some(first) = step.rows.first() else { return Ok(()) };
        self.serve();
        match &mut self.slots {
            Slots::Gpu(slots) => {
                let lora = slots.lora(first.seq).to_vec();
                self.use_these_scales(&lora);
            }
            Slots::Cpu(slots) => slots.submit(step),
        }
        match (&mut self.device, &mut self.slots) {
            (Device::Gpu(model), Slots::Gpu(slots)) => slots.submit(model, step),
            _ => Ok(()),
        }
    }

    async fn read(&mut self) -> Result<Outputs, ModelError> {
        if let Device::Gpu(model) = &mut self.device {
            return read_step(model).await;
        }
        breathe().await;
        let Slots::Cpu(slots) = &mut self.slots else { unreachable!("slots are those of the device") };
        let Some(step) = slots.pop() else { return Ok(Outputs::default()) };
        let lora = step.rows.first().map(|row| slots.lora(row.seq).to_vec());
        lora.into_iter().for_each(|lora| self.use_these_scales(&lora));
        let (Device::Cpu(model), Slots::Cpu(slots)) = (&mut self.device, &mut self.slots) else {
            unreachable!("slots are those of the device")
        };
        let start = Instant::now();
        let out = run_step(model, &step)?;
        slots.ran(step.rows.len(), start.elapsed());
        Ok(out)
    }

    fn forget(&mut self) {
        self.leave_service();
    }

    fn rows(&self) -> usize {
        match (&self.device, &self.slots) {
            (Device::Gpu(model), _) => model.prompt_piece() as usize,
            (Device::Cpu(_), Slots::Cpu(slots)) => slots.rows(),
            (Device::Cpu(_), Slots::Gpu(_)) => unreachable!("slots are those of the device"),
        }
    }

    fn max_under_way(&self) -> usize {
        match &self.device {
            Device::Gpu(model) => GpuSlots::max_under_way(model),
            Device::Cpu(_) => 1,
        }
    }
}

async fn read_step(model: &mut GpuModel) -> Result<Outputs, ModelError> {
    let out = model.read_step().await?;
    Ok(Outputs { chosen: out.chosen, logits: out.logits, hidden: out.hidden })
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
