//! Bodies with offloaded experts, which the CPU provides, on one or several devices, between which it carries values.
//!
//! A stage is submitted when all of its inputs are available. Values that cross to the next device are copied, read,
//! and written there; a stage of offloaded experts waits for its route. The end of the last stage goes with the outputs
//! of the step. Experts elsewhere (`away.rs`) take part between two stages.

use std::sync::{Mutex, PoisonError};

use super::away::Waiting;
use super::offload::{Names, Offload};
use super::reads::ExpertReads;
use super::ready::ReadyStage;
use super::running::Run;
use crate::error::RuntimeError;
use crate::experts::Experts;
use crate::graph::Graph;
use crate::plan::{Groups, Place};
use crate::tensors::Tensors;

impl Run<'_> {
    /// Runs the rest of a stage, and carries the inputs of the next to its device.
    async fn cross(&mut self, before: &ReadyStage, after: &ReadyStage) -> Result<(), RuntimeError> {
        let [from, to] = [before, after].map(|s| self.devices.recorder(s.place.device()));
        let end = before.range.end;
        self.send(self.from..end - (end - self.from).min(self.per_submit));
        let staging = from.buffers.crossing_staging.first().expect("there is one where values cross");
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

/// Runs bodies with offloaded experts.
pub(super) struct Streams {
    offload: Offload,
    /// Behind a lock that is never taken, so that the model can be shared.
    experts: Option<Mutex<Box<dyn Experts>>>,
}

impl Streams {
    /// `None` if all experts are on the devices.
    pub(super) fn new(
        graph: &Graph,
        groups: Groups,
        tensors: impl Tensors + Send + Sync + 'static,
    ) -> Option<Streams> {
        Some(Streams { offload: Offload::new(graph, groups, tensors)?, experts: None })
    }

    /// Replaces the experts elsewhere, and returns those before.
    pub(super) fn set_experts(&mut self, experts: Option<Box<dyn Experts>>) -> Option<Box<dyn Experts>> {
        let before = std::mem::replace(&mut self.experts, experts.map(Mutex::new));
        before.map(|e| e.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Cost of offloaded experts.
    pub(super) fn reads(&self) -> ExpertReads {
        self.offload.reads()
    }

    /// Submits all stages except for the end of the last; returns its first dispatch.
    pub(super) async fn run(
        &mut self,
        mut run: Run<'_>,
        stages: &[ReadyStage],
    ) -> Result<usize, RuntimeError> {
        let Streams { offload, experts } = self;
        let mut elsewhere = experts.as_mut().map(|e| e.get_mut().unwrap_or_else(PoisonError::into_inner));
        let (mut names, mut waiting): (Option<Names>, Option<Waiting>) = (None, None);
        for (i, stage) in stages.iter().enumerate() {
            if let Some(before) = i.checked_sub(1).map(|b| &stages[b])
                && before.place.device() != stage.place.device()
            {
                run.cross(before, stage).await?;
            }
            match &stage.place {
                Place::Cpu { experts, .. } => {
                    let elsewhere = elsewhere.as_deref_mut();
                    let sent = offload.run(&mut run, stage, experts, &mut names, elsewhere).await?;
                    waiting = sent.or(waiting);
                }
                Place::Rows { slots, .. } => {
                    if let Some(sent) = waiting.take() {
                        run.arrive(stage, slots, sent).await?;
                    }
                }
                Place::Device(_) => {}
            }
        }
        run.devices.main.gpu.check()?;
        Ok(run.from)
    }
}
