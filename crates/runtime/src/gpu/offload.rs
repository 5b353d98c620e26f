//! CPU-offloaded experts: read on demand into slots on the device.
//!
//! The dispatches before a product by such experts are submitted, and the route is read back. Missing experts get
//! slots, and the route is rewritten from experts to slots; then the product runs as if its matrix held only those. If
//! columns use more experts than there are slots, the product runs in rounds, each of which skips the columns of the
//! others. Only data move: every column is multiplied by the same kernels in the same order as with all experts on the
//! device.

use std::error::Error;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;

use super::away::{Inputs, Waiting, depart};
use super::reads::ExpertReads;
use super::ready::{ReadyStage, Recorder};
use super::running::Run;
use super::store::ExpertStore;
use crate::error::RuntimeError;
use crate::experts::Experts;
use crate::graph::{Graph, ValueId};
use crate::plan::{Crossing, ExpertInput, Groups, OffloadedExperts, WEIGHTS};
use crate::tensors::Tensors;

type Reading<'a> = Pin<Box<dyn Future<Output = Result<(), Box<dyn Error + Send + Sync>>> + Send + 'a>>;

/// Object-safe [`Tensors`].
trait AnyTensors {
    fn read<'a>(&'a self, name: &'a str, offset: u64, buf: &'a mut [u8]) -> Reading<'a>;
}

impl<T: Tensors> AnyTensors for T {
    fn read<'a>(&'a self, name: &'a str, offset: u64, buf: &'a mut [u8]) -> Reading<'a> {
        Box::pin(Tensors::read(self, name, offset, buf))
    }
}

/// The source of experts.
struct Origin(Box<dyn AnyTensors + Send + Sync>);

impl Tensors for Origin {
    async fn read(
        &self,
        name: &str,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        AnyTensors::read(&*self.0, name, offset, buf).await
    }
}

/// The words of a route that name experts.
pub(super) struct Names {
    value: ValueId,
    /// As the device wrote them.
    words: Vec<u32>,
    /// As they are there now.
    now: Vec<u32>,
    /// Experts that are computed elsewhere, ascending.
    away: Vec<u32>,
}

/// The offloaded experts of a model.
pub(super) struct Offload {
    tensors: Origin,
    store: ExpertStore,
}

impl Offload {
    /// `None` if all experts are on the device.
    pub(super) fn new(
        graph: &Graph,
        groups: Groups,
        tensors: impl Tensors + Send + Sync + 'static,
    ) -> Option<Offload> {
        let store = ExpertStore::new(graph, groups);
        store.has_any().then(|| Offload { tensors: Origin(Box::new(tensors)), store })
    }

    pub(super) fn reads(&self) -> ExpertReads {
        self.store.reads
    }

    /// Runs a stage of offloaded experts. Submits everything before it; the last round of the stage itself is left for
    /// the next submission. Returns the rows of a layer that are under way, if some of its experts are elsewhere.
    pub(super) async fn run(
        &mut self,
        run: &mut Run<'_>,
        stage: &ReadyStage,
        experts: &OffloadedExperts,
        names: &mut Option<Names>,
        elsewhere: Option<&mut Box<dyn Experts>>,
    ) -> Result<Option<Waiting>, RuntimeError> {
        let recorder = run.devices.recorder(stage.place.device());
        let Range { start: at, end } = stage.range;
        let [Crossing { value, act, .. }] = stage.takes[..] else {
            unreachable!("a stage of experts takes the route alone")
        };
        let is_first = names.as_ref().is_none_or(|n| n.value != value);
        let mut waiting = None;
        if is_first {
            // The last submission carries the copy to read.
            run.send(run.from..at - (at - run.from).min(run.per_submit));
            let input = experts.input.filter(|_| elsewhere.is_some());
            let (words, inputs) = read_names(recorder, run, at, experts, act, input).await?;
            let mut away = Vec::new();
            if let (Some(input), Some(elsewhere)) = (&input, elsewhere) {
                let wanted = experts.wanted(&words);
                (away, waiting) =
                    depart(elsewhere.as_mut(), (experts, input), run.n_planned, &wanted, &inputs)?;
            }
            *names = Some(Names { value, now: words.clone(), words, away });
        }
        let Some(n) = names else { unreachable!("the names of experts were just read") };
        let mut wanted = experts.wanted(&n.words);
        wanted.retain(|e| n.away.binary_search(e).is_err());
        let Offload { tensors, store } = self;
        let mut rounds = store.rounds(experts.group, &wanted)?;
        if rounds.is_empty() && !n.away.is_empty() {
            // The dispatches skip all columns.
            rounds.push(Vec::new());
        }
        if is_first {
            store.reads.wanted += wanted.len() as u64;
            store.reads.in_rounds += u64::from(rounds.len() > 1);
        }
        for (nth, round) in rounds.iter().enumerate() {
            if nth > 0 {
                run.send(run.from..end);
                run.from = at;
            }
            let n_read = store.bring(recorder, experts.group, round, tensors).await?;
            store.reads.read += if is_first { n_read } else { 0 };
            let place = |e: u32| round.binary_search(&e).ok().and_then(|_| store.place(experts.group, e));
            let words = experts.placed(&n.words, place);
            if words != n.now {
                // Recorded dispatches read the current route.
                run.send(run.from..at);
                let first = 4 * u64::from(experts.words(run.columns.n).0);
                recorder.gpu.queue.write_buffer(
                    &recorder.buffers.acts[act],
                    first,
                    bytemuck::cast_slice(&words),
                );
                n.now = words;
            }
        }
        Ok(waiting)
    }
}

/// Submits the rest before dispatch `at`, which writes a route, and reads the words that name the experts in it; with
/// an input also the experts of all pairs, their weights, and the input.
async fn read_names(
    recorder: Recorder<'_>,
    run: &mut Run<'_>,
    at: usize,
    experts: &OffloadedExperts,
    act: usize,
    input: Option<ExpertInput>,
) -> Result<(Vec<u32>, Inputs), RuntimeError> {
    let n_col = run.columns.n;
    let (first, n_name) = experts.words(n_col);
    let (n_pair, n_x) = match input {
        Some(input) => (n_col * experts.route.n_used, n_col * input.words()),
        None => (0, 0),
    };
    let n_weight = WEIGHTS * n_pair;
    let [from, names, pairs, weights, of_x] =
        [first, n_name, n_pair, n_weight, n_x].map(|n| 4 * u64::from(n));
    let n_byte = names + pairs + weights + of_x;
    let staging = recorder.buffers.route_staging.as_ref().expect("there is one where experts are offloaded");
    let index = recorder.send(&run.body[run.from..at], run.columns, |encoder| {
        let route = &recorder.buffers.acts[act];
        encoder.copy_buffer_to_buffer(route, from, staging, 0, names);
        if let Some(input) = input {
            encoder.copy_buffer_to_buffer(route, 0, staging, names, pairs);
            if weights > 0 {
                let from = 4 * u64::from(experts.route.weights_at());
                encoder.copy_buffer_to_buffer(route, from, staging, names + pairs, weights);
            }
            let x = &recorder.buffers.acts[input.act];
            encoder.copy_buffer_to_buffer(x, 0, staging, names + pairs + weights, of_x);
        }
    });
    run.from = at;
    let bytes = recorder.gpu.read(staging, n_byte, Some(index)).await?;
    let mut words: Vec<u32> = bytemuck::pod_collect_to_vec(&bytes);
    let x = words.split_off((n_name + n_pair + n_weight) as usize);
    let weights = if WEIGHTS > 0 { words.split_off((n_name + n_pair) as usize) } else { Vec::new() };
    let ids = words.split_off(n_name as usize);
    Ok((words, Inputs { ids, weights, x }))
}
