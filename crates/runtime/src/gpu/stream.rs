//! Bodies of several stages: the CPU carries values between devices, and provides offloaded experts.
//!
//! A stage is submitted when all of its inputs are available. Values that cross to the next device are copied, read,
//! and written there; a stage of offloaded experts waits for its route. The end of the last stage goes with the outputs
//! of the step.

use super::offload::{Names, Offload};
use super::reads::ExpertReads;
use super::ready::ReadyStage;
use super::running::Run;
use crate::error::RuntimeError;
use crate::graph::Graph;
use crate::plan::{Groups, Place};
use crate::tensors::Tensors;

impl Run<'_> {
    /// Runs the rest of a stage, and carries the inputs of the next to its device.
    async fn cross(&mut self, before: &ReadyStage, after: &ReadyStage) -> Result<(), RuntimeError> {
        let [from, to] = [before, after].map(|s| self.devices.recorder(s.place.device()));
        let end = before.range.end;
        self.send(self.from..end - (end - self.from).min(self.per_submit));
        let staging = from.buffers.crossing_staging.as_ref().expect("there is one where values cross");
        let n_byte = |n_word: u32| 4 * u64::from(n_word) * u64::from(self.columns.n);
        let mut total = 0;
        let index = from.send(&self.body[self.from..end], self.columns, |encoder| {
            for given in &before.gives {
                let (source, n) = (&from.buffers.acts[given.act], n_byte(given.n_word));
                encoder.copy_buffer_to_buffer(source, 0, staging, total, n);
                total += n;
            }
        });
        self.from = end;
        let bytes = from.gpu.read(staging, total, Some(index)).await?;
        let mut rest = &bytes[..];
        for taken in &after.takes {
            let (part, later) = rest.split_at(n_byte(taken.n_word) as usize);
            to.gpu.queue.write_buffer(&to.buffers.acts[taken.act], 0, part);
            rest = later;
        }
        Ok(())
    }
}

/// Runs bodies of several stages.
pub(super) struct Streams {
    offload: Option<Offload>,
}

impl Streams {
    /// `None` if every body is one stage.
    pub(super) fn new(
        graph: &Graph,
        groups: Groups,
        n_device: usize,
        tensors: impl Tensors + Send + Sync + 'static,
    ) -> Option<Streams> {
        let offload = Offload::new(graph, groups, tensors);
        (offload.is_some() || n_device > 1).then_some(Streams { offload })
    }

    /// Cost of offloaded experts, if any.
    pub(super) fn reads(&self) -> Option<ExpertReads> {
        self.offload.as_ref().map(Offload::reads)
    }

    /// Submits all stages except for the end of the last; returns its first dispatch.
    pub(super) async fn run(
        &mut self,
        mut run: Run<'_>,
        stages: &[ReadyStage],
    ) -> Result<usize, RuntimeError> {
        let mut names: Option<Names> = None;
        for (i, stage) in stages.iter().enumerate() {
            if let Some(before) = i.checked_sub(1).map(|b| &stages[b])
                && before.place.device() != stage.place.device()
            {
                run.cross(before, stage).await?;
            }
            if let (Place::Cpu { experts, .. }, Some(offload)) = (&stage.place, &mut self.offload) {
                offload.run(&mut run, stage, experts, &mut names).await?;
            }
        }
        run.devices.main.gpu.check()?;
        Ok(run.from)
    }
}
