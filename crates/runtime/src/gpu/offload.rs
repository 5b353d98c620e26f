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

use chaski_kernels::DeviceLayout;

use super::load::{self, CHUNK, UploadQueue};
use super::places::Places;
use super::reads::ExpertReads;
use super::ready::{ReadyStage, Recorder};
use super::running::Run;
use crate::error::RuntimeError;
use crate::graph::{Graph, ValueId};
use crate::plan::{Crossing, Group, Groups, OffloadedExperts};
use crate::platform::for_each;
use crate::tensors::Tensors;

/// Pieces of at most [`CHUNK`] read before they are uploaded; [`UploadQueue`] allows four times as much in flight.
const AT_ONCE: usize = 16;

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
}

/// The offloaded experts of a model.
pub(super) struct Offload {
    tensors: Origin,
    /// Its weights only.
    graph: Graph,
    groups: Groups,
    /// By group, for groups of offloaded experts.
    places: Vec<Option<Places>>,
    reads: ExpertReads,
    /// Read buffers, reused.
    bytes: Vec<Vec<u8>>,
}

impl Offload {
    /// `None` if all experts are on the device.
    pub(super) fn new(
        graph: &Graph,
        groups: Groups,
        tensors: impl Tensors + Send + Sync + 'static,
    ) -> Option<Offload> {
        let n_expert = |g: &Group| graph.weights[g.members[0].0.0].n_expert;
        let places: Vec<Option<Places>> =
            groups.groups.iter().map(|g| g.streamed.then(|| Places::new(n_expert(g), g.n_expert))).collect();
        places.iter().any(Option::is_some).then(|| Offload {
            tensors: Origin(Box::new(tensors)),
            graph: Graph { weights: graph.weights.clone(), ..Graph::default() },
            groups,
            places,
            reads: ExpertReads::default(),
            bytes: Vec::new(),
        })
    }

    pub(super) fn reads(&self) -> ExpertReads {
        self.reads
    }

    /// Runs a stage of offloaded experts. Submits everything before it; the last round of the stage itself is left for
    /// the next submission.
    pub(super) async fn run(
        &mut self,
        run: &mut Run<'_>,
        stage: &ReadyStage,
        experts: &OffloadedExperts,
        names: &mut Option<Names>,
    ) -> Result<(), RuntimeError> {
        let recorder = run.devices.recorder(stage.place.device());
        let Range { start: at, end } = stage.range;
        let [Crossing { value, act, .. }] = stage.takes[..] else {
            unreachable!("a stage of experts takes the route alone")
        };
        let is_first = names.as_ref().is_none_or(|n| n.value != value);
        if is_first {
            // The last submission carries the copy to read.
            run.send(run.from..at - (at - run.from).min(run.per_submit));
            let words = read_names(recorder, run, at, experts, act).await?;
            *names = Some(Names { value, now: words.clone(), words });
        }
        let Some(n) = names else { unreachable!("the names of experts were just read") };
        let wanted = experts.wanted(&n.words);
        let rounds = self.rounds(experts.group, &wanted)?;
        if is_first {
            self.reads.wanted += wanted.len() as u64;
            self.reads.in_rounds += u64::from(rounds.len() > 1);
        }
        for (nth, round) in rounds.iter().enumerate() {
            if nth > 0 {
                run.send(run.from..end);
                run.from = at;
            }
            let n_read = self.bring(recorder, experts.group, round).await?;
            self.reads.read += if is_first { n_read } else { 0 };
            let place = |e: u32| round.binary_search(&e).ok().and_then(|_| self.place(experts.group, e));
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
        Ok(())
    }

    fn of(&mut self, group: usize) -> &mut Places {
        self.places[group].as_mut().expect("products wait only for groups that have places")
    }

    fn place(&self, group: usize, expert: u32) -> Option<u32> {
        self.places[group].as_ref().and_then(|p| p.place(expert))
    }

    /// Rounds of these experts.
    fn rounds(&mut self, group: usize, wanted: &[u32]) -> Result<Vec<Vec<u32>>, RuntimeError> {
        let places = self.of(group);
        match wanted.iter().position(|e| *e >= places.n_expert()) {
            Some(at) => Err(RuntimeError::WrongResult { what: "the routing of experts", at }),
            None => Ok(places.rounds(wanted)),
        }
    }

    /// Uploads the missing experts of a round, and returns their number.
    async fn bring(
        &mut self,
        recorder: Recorder<'_>,
        group: usize,
        round: &[u32],
    ) -> Result<u64, RuntimeError> {
        let given = self.of(group).admit(round);
        let pieces: Vec<Piece> =
            given.iter().flat_map(|g| pieces(&self.groups.groups[group], g.0, g.1)).collect();
        let mut queue = UploadQueue::default();
        for some in pieces.chunks(AT_ONCE) {
            let n_byte = self.send(recorder, group, some).await?;
            queue.sent(recorder.gpu, n_byte).await?;
        }
        for &(expert, place) in &given {
            self.send_affine(recorder, group, expert, place).await?;
            self.of(group).filled(expert, place);
        }
        Ok(given.len() as u64)
    }

    /// Reads rows of experts and uploads them to their slots; returns the bytes read. Reading copies and repacking
    /// computes, so both use several threads.
    async fn send(
        &mut self,
        recorder: Recorder<'_>,
        group: usize,
        some: &[Piece],
    ) -> Result<usize, RuntimeError> {
        let Offload { tensors, graph, groups, bytes, reads, .. } = self;
        let g = &groups.groups[group];
        let row_bytes = g.n_col as usize / g.format.ty.block_len() * g.format.ty.block_bytes();
        bytes.resize_with(bytes.len().max(some.len()), Vec::new);
        for (piece, bytes) in some.iter().zip(bytes.iter_mut()) {
            bytes.resize(piece.n_row as usize * row_bytes, 0);
            load::rows(graph, g, piece.from, row_bytes, bytes, tensors).await?;
        }
        let read: Vec<(&Piece, &Vec<u8>)> = some.iter().zip(bytes.iter()).collect();
        let sent = for_each(&read, |(piece, bytes)| {
            let (layout, buffer) =
                (g.layout(&g.shards[piece.shard]), recorder.buffers.weights(group, piece.shard));
            let put = |at, run: &[u8]| recorder.gpu.queue.write_buffer(buffer, at, run);
            layout.pack(g.format, g.n_col, piece.to.into(), bytes, put);
            bytes.len()
        });
        let n_byte = sent.iter().sum();
        reads.n_byte += n_byte as u64;
        Ok(n_byte)
    }

    /// Uploads scales and biases of an expert to its slot, if it has any.
    async fn send_affine(
        &mut self,
        recorder: Recorder<'_>,
        group: usize,
        expert: u32,
        place: u32,
    ) -> Result<(), RuntimeError> {
        let Offload { tensors, graph, groups, reads, .. } = self;
        for (aux, buffer) in groups.aux.iter().zip(&recorder.buffers.aux) {
            if let (Some(buffer), true) = (buffer, aux.streamed == Some(group)) {
                let words = load::affine_of(graph, aux, expert, tensors).await?;
                let at = aux.affine_at as usize + place as usize * words.len();
                recorder.gpu.queue.write_buffer(buffer, 4 * at as u64, bytemuck::cast_slice(&words));
                reads.n_byte += 4 * words.len() as u64;
            }
        }
        Ok(())
    }
}

/// Rows of an expert to upload to its slot.
struct Piece {
    /// The first row, counted over all experts of the file.
    from: u32,
    n_row: u32,
    /// Destination: the buffer, and the first row there.
    shard: usize,
    to: u32,
}

/// An expert's share of a group, in pieces to read at once.
fn pieces(g: &Group, expert: u32, place: u32) -> Vec<Piece> {
    let row0 = place * g.stride;
    let shard = g.shards.iter().position(|s| (s.row0..s.row0 + s.n_row).contains(&row0));
    let shard = shard.expect("every place is in a buffer");
    let row_bytes = g.n_col as usize / g.format.ty.block_len() * g.format.ty.block_bytes();
    let step = DeviceLayout::ROW_STEP;
    let per = ((CHUNK / row_bytes.max(1)) as u32 / step * step).max(step);
    let piece = |row: u32| Piece {
        from: expert * g.share + row,
        n_row: per.min(g.share - row),
        shard,
        to: row0 - g.shards[shard].row0 + row,
    };
    (0..g.share).step_by(per as usize).map(piece).collect()
}

/// Submits the rest before dispatch `at`, which writes a route, and reads the experts in it.
async fn read_names(
    recorder: Recorder<'_>,
    run: &mut Run<'_>,
    at: usize,
    experts: &OffloadedExperts,
    act: usize,
) -> Result<Vec<u32>, RuntimeError> {
    let (first, n) = experts.words(run.columns.n);
    let (from, n_byte) = (4 * u64::from(first), 4 * u64::from(n));
    let staging = recorder.buffers.route_staging.as_ref().expect("there is one where experts are offloaded");
    let index = recorder.send(&run.body[run.from..at], run.columns, |encoder| {
        encoder.copy_buffer_to_buffer(&recorder.buffers.acts[act], from, staging, 0, n_byte);
    });
    run.from = at;
    let bytes = recorder.gpu.read(staging, n_byte, Some(index)).await?;
    Ok(bytemuck::pod_collect_to_vec(&bytes))
}
