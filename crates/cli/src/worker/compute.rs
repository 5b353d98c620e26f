//! The thread that computes: it owns the experts.

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use anyhow::{Context as _, ensure};
use chaski::experts::{Graph, Pair};
use chaski_swarm::{ModelShape, Unit, WorkerEvent};
use chaski_wire::{Digest, Hex, Task};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc::UnboundedSender;

use super::hollow::Pieces;
use super::products::{Device, Products};
use crate::swarm::awake::Awake;
use crate::swarm::call_of;

/// Work for the thread.
pub(crate) enum Job {
    /// Load a unit, whose pieces are in the store.
    Load(Unit),
    /// Free a unit.
    Unload(Unit),
    /// Compute a task.
    Compute { task: u64, layer: u16, body: Task },
}

/// The thread. Dropping it waits until it has ended: drivers crash if a thread that has used them ends while the
/// process unloads them.
pub(crate) struct Computer {
    /// `None` ends the thread.
    pub(crate) jobs: mpsc::Sender<Option<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Computer {
    fn drop(&mut self) {
        // If nobody receives it, the thread has ended.
        let _ = self.jobs.send(None);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of experts panicked");
        }
    }
}

/// Starts the thread.
///
/// # Errors
/// The system has no thread; a graph without experts.
pub(crate) fn start(
    (device, memory): (&Device, u64),
    graph: &Graph,
    shape: ModelShape,
    pieces: Pieces,
    (events, awake): (UnboundedSender<WorkerEvent>, Arc<Awake>),
) -> anyhow::Result<Computer> {
    let worker = Products::new(device, graph, &shape, memory)?;
    let (jobs, inbox) = mpsc::channel();
    let mut bench = Bench { worker, shape, pieces };
    let run = move || {
        while let Some(job) = awake.receive(&inbox).flatten() {
            let event = bench.run(job);
            awake.touch();
            if event.is_some_and(|event| events.send(event).is_err()) {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("experts".into());
    let thread = thread.spawn(run).context("no thread for experts")?;
    Ok(Computer { jobs, thread: Some(thread) })
}

struct Bench {
    worker: Products,
    shape: ModelShape,
    pieces: Pieces,
}

impl Bench {
    fn run(&mut self, job: Job) -> Option<WorkerEvent> {
        match job {
            Job::Load(unit) => {
                let canary = self.load(unit);
                let canary =
                    canary.inspect_err(|e| tracing::error!("experts of layer {}: {e:#}", unit.layer));
                Some(WorkerEvent::Loaded { unit, canary: canary.ok() })
            }
            Job::Unload(unit) => {
                self.unload(unit);
                None
            }
            Job::Compute { task, layer, body } => {
                let rows = self.compute(layer, &body);
                let rows = rows.inspect_err(|e| tracing::warn!("task {task}: {e:#}"));
                Some(WorkerEvent::Computed { task, rows: rows.ok() })
            }
        }
    }

    /// Loads a unit, or nothing of it; the digest of its experts' canaries.
    fn load(&mut self, unit: Unit) -> anyhow::Result<Digest> {
        let mut hasher = Sha256::new();
        for expert in self.shape.experts(unit) {
            match self.worker.add((unit.layer, expert), &self.pieces) {
                Ok(canary) => hasher.update(canary),
                Err(error) => {
                    self.unload(unit);
                    return Err(error);
                }
            }
        }
        Ok(Hex(hasher.finalize().into()))
    }

    fn unload(&mut self, unit: Unit) {
        for expert in self.shape.experts(unit) {
            if let Err(error) = self.worker.remove((unit.layer, expert)) {
                tracing::error!("expert {expert} of layer {}: {error}", unit.layer);
            }
        }
    }

    fn compute(&mut self, layer: u16, body: &Task) -> anyhow::Result<Vec<f32>> {
        let (found, width) = (body.rows.width(), self.shape.width);
        ensure!(found == width, "rows of {found} values, expected {width}");
        let x = body.rows.to_f32();
        let pairs = body.with_experts().map(|(expert, p)| Pair { expert, column: p.column, slot: p.slot });
        let call = call_of(layer, width, body.step_columns, &x, pairs);
        self.worker.compute(&call)
    }
}
