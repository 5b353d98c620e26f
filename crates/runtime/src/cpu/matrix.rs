//! The matrices of products, and experts that are loaded one by one.

use std::collections::HashMap;

use chaski_kernels::ops::get_rows;

use super::tiles::{Packed, packed, packed_bytes};
use super::weights::Bytes;
use crate::error::RuntimeError;
use crate::experts::ExpertError;
use crate::graph::{ExpertLayer, ExpertPiece, Graph, Weight, WeightId};
use crate::tensors::Tensors;
use crate::workers::Workers;

/// A matrix from a row on: in tiles, or as the bytes of the file.
pub(super) struct Matrix<'a> {
    /// Type and row length.
    pub(super) info: &'a Weight,
    pub(super) bytes: &'a [u8],
    #[cfg_attr(target_arch = "wasm32", allow(dead_code, reason = "browsers have none"))]
    pub(super) tiles: Option<&'a Packed>,
    pub(super) row0: usize,
}

impl Matrix<'_> {
    /// A row, counted from the first.
    pub(super) fn row(&self, row: usize) -> Vec<f32> {
        get_rows::reference::row(self.info.ty, self.bytes, self.info.n_col as usize, self.row0 + row)
    }
}

/// An expert's part of a weight.
struct Part {
    bytes: Bytes,
    tiles: Option<Packed>,
}

/// Weights of layers whose experts are loaded one by one, with the parts that are loaded.
#[derive(Default)]
pub(super) struct Parts(HashMap<WeightId, Vec<Option<Part>>>);

impl Parts {
    /// Without any part of these layers.
    pub(super) fn of<'a>(graph: &Graph, layers: impl IntoIterator<Item = &'a ExpertLayer>) -> Self {
        let none = |n| std::iter::repeat_with(|| None).take(n as usize).collect();
        let of_layer =
            |l: &ExpertLayer| l.weights(graph).into_iter().map(|w| (w, none(l.n_expert))).collect();
        Parts(layers.into_iter().flat_map(|l| -> Vec<_> { of_layer(l) }).collect())
    }

    /// True if a weight is loaded in parts.
    pub(super) fn has(&self, w: WeightId) -> bool {
        self.0.contains_key(&w)
    }

    /// True if nothing is loaded in parts.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if an expert of a layer can be computed: its weights are loaded, or were loaded with all others.
    pub(super) fn holds(&self, weights: &[WeightId], expert: usize) -> bool {
        weights.iter().all(|w| self.0.get(w).is_none_or(|parts| parts[expert].is_some()))
    }

    /// Loads an expert; its matrices are packed if `pack`.
    ///
    /// # Errors
    /// [`ExpertError::NoLayer`] for a layer that is not loaded in parts, [`ExpertError::Size`] for an expert beyond
    /// the last; [`RuntimeError::Tensor`].
    pub(super) async fn add(
        &mut self,
        (graph, layer): (&Graph, &ExpertLayer),
        expert: u16,
        (map, pack): (bool, bool),
        workers: &Workers,
        tensors: &impl Tensors,
    ) -> Result<(), RuntimeError> {
        self.check(graph, layer, expert)?;
        let pieces = layer.pieces(graph, expert.into());
        let mut loaded = Vec::new();
        for pieces in pieces.chunk_by(|a, b| a.weight == b.weight) {
            let ExpertPiece { weight, .. } = pieces[0];
            let bytes = Bytes::load_pieces(pieces, map, tensors).await?;
            let w = &graph.weights[weight.0];
            let is_matrix = w.n_expert > 1 || w.n_row > layer.n_expert;
            let one = Weight { n_row: w.n_row / layer.n_expert, n_expert: 1, ..w.clone() };
            let tiles = if pack && is_matrix { packed(&one, &bytes, workers) } else { None };
            let bytes = match (bytes, &tiles) {
                (Bytes::Read(_), Some(_)) => Bytes::Read(Vec::new()),
                (bytes, _) => bytes,
            };
            loaded.push((weight, Part { bytes, tiles }));
        }
        for (weight, part) in loaded {
            if let Some(parts) = self.0.get_mut(&weight) {
                parts[usize::from(expert)] = Some(part);
            }
        }
        Ok(())
    }

    /// Frees an expert; false if it was not loaded.
    ///
    /// # Errors
    /// As [`Self::add`].
    pub(super) fn remove(
        &mut self,
        (graph, layer): (&Graph, &ExpertLayer),
        expert: u16,
    ) -> Result<bool, ExpertError> {
        self.check(graph, layer, expert)?;
        let mut was_there = false;
        for weight in layer.weights(graph) {
            let part = self.0.get_mut(&weight).and_then(|parts| parts[usize::from(expert)].take());
            was_there |= part.is_some();
        }
        Ok(was_there)
    }

    fn check(&self, graph: &Graph, l: &ExpertLayer, expert: u16) -> Result<(), ExpertError> {
        let layer = l.layer;
        if !l.weights(graph).iter().all(|w| self.has(*w)) {
            return Err(ExpertError::NoLayer { layer });
        }
        match u64::from(expert) < u64::from(l.n_expert) {
            true => Ok(()),
            false => {
                let (found, expected) = (u64::from(expert) + 1, l.n_expert.into());
                Err(ExpertError::Size { layer, what: "experts", found, expected })
            }
        }
    }

    /// The matrix of a loaded expert.
    pub(super) fn matrix<'a>(&'a self, info: &'a Weight, w: WeightId, expert: usize) -> Option<Matrix<'a>> {
        let part = self.0.get(&w)?[expert].as_ref()?;
        Some(Matrix { info, bytes: &part.bytes, tiles: part.tiles.as_ref(), row0: 0 })
    }

    /// Bytes of all parts.
    pub(super) fn n_byte(&self) -> u64 {
        let counts = |p: &Part| {
            // Tiles stand for mapped bytes, which the system may drop.
            let is_mapped = matches!(p.bytes, Bytes::Mapped(..)) && p.tiles.is_some();
            let bytes = if is_mapped { 0 } else { p.bytes.len() as u64 };
            bytes + p.tiles.as_ref().map_or(0, packed_bytes)
        };
        self.0.values().flatten().flatten().map(counts).sum()
    }
}
