//! Matrices in the order of products ([`ggml_format::product::Packed`]), beside the mapped bytes of the file or in
//! place of those that were read.

use std::collections::{HashMap, HashSet};

pub(super) use ggml_format::product::Packed;
use ggml_format::product::{Line, TILE_ROWS};

use super::weights::Bytes;
use crate::graph::{Graph, Op, Weight, WeightId};
use crate::workers::Workers;

/// Tiles that a task packs.
const TASK: usize = 16;

/// Matrices in tiles, by weight.
#[derive(Default)]
pub(super) struct Tiles(HashMap<WeightId, Packed>);

impl Tiles {
    /// Bytes of a graph's matrices in tiles, less those of the file that they stand for: all if it is mapped, otherwise
    /// those of matrices whose rows are not read, too. Of the matrices that `is_whole`.
    pub(super) fn n_byte_of(graph: &Graph, map: bool, is_whole: impl Fn(&WeightId) -> bool) -> i64 {
        let Uses { multiplied, read } = Uses::of(graph);
        let more = |id: &WeightId| {
            let w = &graph.weights[id.0];
            let of_file = if map || !read.contains(id) { w.n_byte() } else { 0 };
            Some(n_byte(w)? as i64 - of_file as i64)
        };
        multiplied.iter().filter(|id| is_whole(id)).filter_map(more).sum()
    }

    /// Packs a matrix of products, if it has tiles; what remains of its bytes.
    pub(super) fn pack(
        &mut self,
        uses: &Uses,
        (id, w): (WeightId, &Weight),
        bytes: Bytes,
        workers: &Workers,
    ) -> Bytes {
        let tiles = uses.multiplied.contains(&id).then(|| packed(w, &bytes, workers)).flatten();
        let Some(tiles) = tiles else { return bytes };
        self.0.insert(id, tiles);
        match bytes {
            Bytes::Read(_) if !uses.read.contains(&id) => Bytes::Read(Vec::new()),
            bytes => bytes,
        }
    }

    /// The matrix in tiles, if it is packed.
    pub(super) fn get(&self, id: WeightId) -> Option<&Packed> {
        self.0.get(&id)
    }

    /// True if a matrix is packed.
    pub(super) fn has(&self, id: WeightId) -> bool {
        self.0.contains_key(&id)
    }

    /// Bytes of all tiles.
    pub(super) fn n_byte(&self) -> u64 {
        self.0.values().map(packed_bytes).sum()
    }
}

/// Uses of a graph's weights.
#[derive(Default)]
pub(super) struct Uses {
    /// The matrices of products.
    multiplied: HashSet<WeightId>,
    /// Those whose rows are read.
    read: HashSet<WeightId>,
}

impl Uses {
    pub(super) fn of(graph: &Graph) -> Self {
        let mut uses = Uses::default();
        for node in &graph.nodes {
            match &node.op {
                Op::MulMat { weight, .. } | Op::MulMatId { weight, .. } => {
                    uses.multiplied.insert(*weight);
                }
                Op::Products { parts, .. } => uses.multiplied.extend(parts.iter().map(|p| p.weight)),
                Op::Embed { table } | Op::EmbedPosition { table } => {
                    uses.read.insert(*table);
                }
                _ => {}
            }
        }
        uses
    }
}

/// Bytes of a matrix in tiles.
pub(super) fn packed_bytes(p: &Packed) -> u64 {
    p.n_byte() as u64
}

fn n_row(w: &Weight) -> usize {
    w.n_byte().checked_div(w.row_bytes()).unwrap_or(0) as usize
}

/// Bytes of a matrix in tiles; `None` if its format has none, or its experts do not begin with a tile.
fn n_byte(w: &Weight) -> Option<u64> {
    let experts_fit = w.n_expert <= 1 || w.expert_rows() as usize % TILE_ROWS == 0;
    Packed::n_byte_of(w.ty, w.n_col as usize, n_row(w)).filter(|_| experts_fit)
}

/// A matrix in tiles, packed in parallel, if it has any.
pub(super) fn packed(w: &Weight, bytes: &[u8], workers: &Workers) -> Option<Packed> {
    n_byte(w)?;
    let (k, of_tile) = (w.n_col as usize, TILE_ROWS * w.row_bytes() as usize);
    Packed::new(w.ty, k, n_row(w), |n_line, lines| {
        workers.fill_chunks(lines, TASK * n_line, |task, lines: &mut [Line]| {
            let bytes = bytes[task * TASK * of_tile..].chunks(of_tile);
            for (tile, bytes) in lines.chunks_exact_mut(n_line).zip(bytes) {
                Packed::pack(w.ty, k, bytes, tile);
            }
        });
    })
}
