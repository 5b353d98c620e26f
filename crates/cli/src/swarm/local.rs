//! Products that the hub makes itself, where no worker can, or to check a worker's: threads with the experts that they
//! needed.

use std::collections::VecDeque;
use std::sync::{Arc, mpsc};

use anyhow::Context as _;
use chaski::experts::{ExpertCall, ExpertWorker, Pair, WorkerConfig};
use chaski::steps::Threads;
use chaski_swarm::CallPair;

use super::catalogue::Catalogue;

/// Products of one task.
pub(crate) struct Work {
    /// Layer of the model.
    pub(crate) layer: u16,
    /// Columns of the engine's step.
    pub(crate) step_columns: u32,
    /// Inputs `[n_column, width]` of the call.
    pub(crate) x: Arc<[f32]>,
    /// Pairs in ascending order.
    pub(crate) pairs: Vec<CallPair>,
}

type Then = Box<dyn FnOnce(Option<Vec<f32>>) + Send>;

/// Bytes of experts that a thread keeps; those that came first go first.
const KEPT: u64 = 1 << 29;

/// The threads that compute.
pub(crate) struct Locals {
    /// Products that calls wait for.
    pub(crate) calls: Local,
    /// Products that are compared with those of workers. One core alone: the model's own work has the others, and
    /// loops of several threads would have to take turns with it.
    pub(crate) checks: Local,
}

impl Locals {
    /// Starts the threads.
    ///
    /// # Errors
    /// The system has no thread, or the model has no experts.
    pub(crate) fn start(catalogue: &Arc<Catalogue>, config: WorkerConfig) -> anyhow::Result<Locals> {
        let alone = WorkerConfig { threads: Threads { decode: 1, batch: 1 }, ..config };
        Ok(Locals {
            calls: Local::start(catalogue.clone(), config)?,
            checks: Local::start(catalogue.clone(), alone)?,
        })
    }
}

/// A thread that computes.
pub(crate) struct Local {
    jobs: mpsc::Sender<(Work, Then)>,
}

impl Local {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no thread, or the model has no experts.
    pub(crate) fn start(catalogue: Arc<Catalogue>, config: WorkerConfig) -> anyhow::Result<Local> {
        let worker = ExpertWorker::new(catalogue.graph(), config)?;
        let mut bench = Bench { worker, catalogue, kept: VecDeque::new() };
        let (jobs, inbox) = mpsc::channel::<(Work, Then)>();
        let run = move || {
            for (work, then) in inbox {
                let rows = bench.compute(&work);
                let rows = rows.inspect_err(|e| tracing::warn!("experts at the hub: {e:#}"));
                then(rows.ok());
            }
        };
        std::thread::Builder::new().name("experts".into()).spawn(run).context("no thread for experts")?;
        Ok(Local { jobs })
    }

    /// Computes something, and then calls a function on the thread.
    pub(crate) fn compute(&self, work: Work, then: impl FnOnce(Option<Vec<f32>>) + Send + 'static) {
        if let Err(mpsc::SendError((_, then))) = self.jobs.send((work, Box::new(then))) {
            // The thread ends only by a panic, which was printed. The caller holds a lock that `then` wants.
            std::thread::spawn(move || then(None));
        }
    }
}

struct Bench {
    worker: ExpertWorker,
    catalogue: Arc<Catalogue>,
    /// Layers and experts that are loaded, in the order in which they came.
    kept: VecDeque<(u16, u16)>,
}

impl Bench {
    /// Rows for pairs, whose experts are loaded if they are not there.
    fn compute(&mut self, work: &Work) -> anyhow::Result<Vec<f32>> {
        let (worker, layer) = (&mut self.worker, work.layer);
        while worker.n_byte() > KEPT {
            let Some((layer, expert)) = self.kept.pop_front() else { break };
            worker.remove(layer, expert)?;
        }
        for expert in work.pairs.iter().map(|p| p.expert) {
            if !worker.has(layer, expert) {
                pollster::block_on(worker.add(layer, expert, self.catalogue.model()))?;
                self.kept.push_back((layer, expert));
            }
        }
        let pair = |p: &CallPair| Pair { expert: p.expert, column: p.column, slot: p.slot };
        let width = self.catalogue.shape().width;
        let call = call_of(layer, width, work.step_columns, &work.x, work.pairs.iter().map(pair));
        Ok(worker.compute(&call)?)
    }
}

/// A call with only those columns that pairs name.
pub(crate) fn call_of(
    layer: u16,
    width: u32,
    step_columns: u32,
    x: &[f32],
    pairs: impl Iterator<Item = Pair>,
) -> ExpertCall {
    let mut pairs: Vec<Pair> = pairs.collect();
    let mut columns: Vec<u16> = pairs.iter().map(|p| p.column).collect();
    columns.sort_unstable();
    columns.dedup();
    let rows = columns.iter().map(|c| &x[usize::from(*c) * width as usize..][..width as usize]);
    let x = rows.collect::<Vec<_>>().concat();
    for pair in &mut pairs {
        pair.column = columns.binary_search(&pair.column).expect("a column of the pairs") as u16;
    }
    ExpertCall { layer, width, step_columns, x, pairs, weights: Vec::new() }
}
