//! Matrices in the order of products ([`ggml_format::product::Packed`]), beside the mapped bytes of the file or in place of those
//! that were read. In browsers there are none.

use crate::graph::{Graph, Weight, WeightId};
use crate::workers::Workers;

use super::weights::Bytes;

#[cfg(not(target_arch = "wasm32"))]
mod packed {
    use std::collections::HashSet;

    use ggml_format::product::{Line, Packed, TILE_ROWS};

    use crate::graph::{Graph, Op, Weight, WeightId};
    use crate::workers::Workers;

    /// Tiles that a task packs.
    const TASK: usize = 16;

    fn n_row(w: &Weight) -> usize {
        w.n_byte().checked_div(w.row_bytes()).unwrap_or(0) as usize
    }

    /// Bytes of a matrix in tiles; `None` if its format has none, or its experts do not begin with a tile.
    pub(super) fn n_byte(w: &Weight) -> Option<u64> {
        let experts_fit = w.n_expert <= 1 || w.expert_rows() as usize % TILE_ROWS == 0;
        Packed::n_byte_of(w.ty, w.n_col as usize, n_row(w)).filter(|_| experts_fit)
    }

    /// Packs a matrix in parallel, if it has tiles.
    pub(super) fn pack(w: &Weight, bytes: &[u8], workers: &Workers) -> Option<Packed> {
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

    /// The matrices of products, and those whose rows are read.
    pub(super) fn uses(graph: &Graph) -> [HashSet<WeightId>; 2] {
        let (mut multiplied, mut read) = (HashSet::new(), HashSet::new());
        for node in &graph.nodes {
            match &node.op {
                Op::MulMat { weight, .. } | Op::MulMatId { weight, .. } => {
                    multiplied.insert(*weight);
                }
                Op::Products { parts, .. } => multiplied.extend(parts.iter().map(|p| p.weight)),
                Op::Embed { table } | Op::EmbedPosition { table } => {
                    read.insert(*table);
                }
                _ => {}
            }
        }
        [multiplied, read]
    }
}

/// Matrices in tiles, by weight.
#[derive(Default)]
pub(super) struct Tiles {
    #[cfg(not(target_arch = "wasm32"))]
    of: std::collections::HashMap<WeightId, ggml_format::product::Packed>,
}

#[cfg(not(target_arch = "wasm32"))]
impl Tiles {
    /// Bytes of a graph's matrices in tiles, less those of the file that they stand for: all if it is mapped, otherwise those of
    /// matrices whose rows are not read, too.
    pub(super) fn n_byte_of(graph: &Graph, map: bool) -> i64 {
        let [multiplied, read] = packed::uses(graph);
        let more = |id: &WeightId| {
            let w = &graph.weights[id.0];
            let of_file = if map || !read.contains(id) { w.n_byte() } else { 0 };
            Some(packed::n_byte(w)? as i64 - of_file as i64)
        };
        multiplied.iter().filter_map(more).sum()
    }

    /// The matrix in tiles, if it is packed.
    pub(super) fn get(&self, id: WeightId) -> Option<&ggml_format::product::Packed> {
        self.of.get(&id)
    }

    /// True if a matrix is packed.
    pub(super) fn has(&self, id: WeightId) -> bool {
        self.of.contains_key(&id)
    }

    /// Bytes of all tiles.
    pub(super) fn n_byte(&self) -> u64 {
        self.of.values().map(|p| p.n_byte() as u64).sum()
    }
}

#[cfg(target_arch = "wasm32")]
impl Tiles {
    pub(super) fn n_byte_of(_: &Graph, _: bool) -> i64 {
        0
    }

    pub(super) fn has(&self, _: WeightId) -> bool {
        false
    }

    pub(super) fn n_byte(&self) -> u64 {
        0
    }
}

/// The matrices of a graph while they load.
pub(super) struct Packing {
    pub(super) tiles: Tiles,
    /// Matrices of products, and those whose rows are read.
    #[cfg(not(target_arch = "wasm32"))]
    uses: [std::collections::HashSet<WeightId>; 2],
}

impl Packing {
    /// Packs the matrices of a graph if `on`.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn new(graph: &Graph, on: bool) -> Self {
        Packing { tiles: Tiles::default(), uses: if on { packed::uses(graph) } else { Default::default() } }
    }

    /// Packs a matrix, if it has tiles; what remains of its bytes.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn pack(&mut self, id: WeightId, w: &Weight, bytes: Bytes, workers: &Workers) -> Bytes {
        let [multiplied, read] = &self.uses;
        let tiles = multiplied.contains(&id).then(|| packed::pack(w, &bytes, workers)).flatten();
        let Some(tiles) = tiles else { return bytes };
        self.tiles.of.insert(id, tiles);
        match bytes {
            Bytes::Read(_) if !read.contains(&id) => Bytes::Read(Vec::new()),
            bytes => bytes,
        }
    }

    #[cfg(target_arch = "wasm32")]
    pub(super) fn new(_: &Graph, _: bool) -> Self {
        Packing { tiles: Tiles::default() }
    }

    #[cfg(target_arch = "wasm32")]
    pub(super) fn pack(&mut self, _: WeightId, _: &Weight, bytes: Bytes, _: &Workers) -> Bytes {
        bytes
    }
}
