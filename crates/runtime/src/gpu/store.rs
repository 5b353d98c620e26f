//! Slots on a device for experts that are uploaded one by one.

use super::load::{self, CHUNK, UploadQueue};
use super::places::Places;
use super::reads::ExpertReads;
use super::ready::Recorder;
use crate::error::RuntimeError;
use crate::graph::Graph;
use crate::plan::{Group, Groups};
use crate::platform::for_each;
use crate::tensors::Tensors;

/// Pieces of at most [`CHUNK`] read before they are uploaded; [`UploadQueue`] allows four times as much in flight.
const AT_ONCE: usize = 16;

/// The slots of all groups of such experts.
pub(super) struct ExpertStore {
    /// Its weights only.
    graph: Graph,
    groups: Groups,
    /// By group, for groups of such experts.
    places: Vec<Option<Places>>,
    pub(super) reads: ExpertReads,
    /// Read buffers, reused.
    bytes: Vec<Vec<u8>>,
}

impl ExpertStore {
    pub(super) fn new(graph: &Graph, groups: Groups) -> Self {
        let n_expert = |g: &Group| graph.weights[g.members[0].0.0].n_expert;
        let places =
            groups.groups.iter().map(|g| g.streamed.then(|| Places::new(n_expert(g), g.n_expert))).collect();
        ExpertStore {
            graph: Graph { weights: graph.weights.clone(), ..Graph::default() },
            groups,
            places,
            reads: ExpertReads::default(),
            bytes: Vec::new(),
        }
    }

    /// True if some group has such experts.
    pub(super) fn has_any(&self) -> bool {
        self.places.iter().any(Option::is_some)
    }

    /// Slots of a group.
    pub(super) fn n_slot(&self, group: usize) -> u32 {
        self.groups.groups[group].n_expert
    }

    /// Frees the slot of an expert.
    pub(super) fn release(&mut self, group: usize, expert: u32) {
        self.of(group).release(expert);
    }

    fn of(&mut self, group: usize) -> &mut Places {
        self.places[group].as_mut().expect("products wait only for groups that have places")
    }

    /// The slot of an expert.
    pub(super) fn place(&self, group: usize, expert: u32) -> Option<u32> {
        self.places[group].as_ref().and_then(|p| p.place(expert))
    }

    /// Rounds of these experts.
    pub(super) fn rounds(&mut self, group: usize, wanted: &[u32]) -> Result<Vec<Vec<u32>>, RuntimeError> {
        let places = self.of(group);
        match wanted.iter().position(|e| *e >= places.n_expert()) {
            Some(at) => Err(RuntimeError::WrongResult { what: "the routing of experts", at }),
            None => Ok(places.rounds(wanted)),
        }
    }

    /// Uploads the missing experts of a round, and returns their number.
    pub(super) async fn bring(
        &mut self,
        recorder: Recorder<'_>,
        group: usize,
        round: &[u32],
        tensors: &impl Tensors,
    ) -> Result<u64, RuntimeError> {
        let given = self.of(group).admit(round);
        let pieces: Vec<Piece> =
            given.iter().flat_map(|g| pieces(&self.groups.groups[group], g.0, g.1)).collect();
        let mut queue = UploadQueue::default();
        for some in pieces.chunks(AT_ONCE) {
            let n_byte = self.send(recorder, group, some, tensors).await?;
            queue.sent(recorder.gpu, n_byte).await?;
        }
        for &(expert, place) in &given {
            self.send_affine(recorder, group, (expert, place), tensors).await?;
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
        tensors: &impl Tensors,
    ) -> Result<usize, RuntimeError> {
        let ExpertStore { graph, groups, bytes, reads, .. } = self;
        let g = &groups.groups[group];
        let row_bytes = g.row_bytes();
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
        (expert, place): (u32, u32),
        tensors: &impl Tensors,
    ) -> Result<(), RuntimeError> {
        let ExpertStore { graph, groups, reads, .. } = self;
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
    let per = g.rows_of(CHUNK);
    let piece = |row: u32| Piece {
        from: expert * g.share + row,
        n_row: per.min(g.share - row),
        shard,
        to: row0 - g.shards[shard].row0 + row,
    };
    (0..g.share).step_by(per as usize).map(piece).collect()
}
