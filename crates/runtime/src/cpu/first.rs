//! The first layers of a model on the CPU, before devices that have the others.

use super::steps::Pass;
use super::{CpuConfig, CpuModel};
use crate::error::RuntimeError;
use crate::graph::{Graph, ValueId};
use crate::step::{Column, ColumnOutput};
use crate::tensors::Tensors;

/// Some nodes of a model with all before them.
pub(crate) struct FirstLayers {
    model: CpuModel,
    /// The values that other nodes read.
    gives: Vec<ValueId>,
}

impl FirstLayers {
    /// Loads what some nodes of a graph need.
    ///
    /// # Errors
    /// As [`CpuModel::load`].
    pub(crate) async fn load(
        graph: &Graph,
        (nodes, gives): (&[usize], &[ValueId]),
        config: CpuConfig,
        inputs_in_16_bits: bool,
        tensors: &impl Tensors,
        progress: impl FnMut(u64, u64),
    ) -> Result<Self, RuntimeError> {
        let mut model = CpuModel::load(graph.only(nodes), config, tensors, progress).await?;
        model.set_inputs_in_16_bits(inputs_in_16_bits);
        gives.iter().for_each(|v| model.last_use[v.0] = usize::MAX);
        Ok(FirstLayers { model, gives: gives.to_vec() })
    }

    /// The model, for sequences, scales and rows.
    pub(crate) fn model(&mut self) -> &mut CpuModel {
        &mut self.model
    }

    /// True if rows enter here, and not in a later layer.
    fn takes_rows(&self) -> bool {
        self.model.row_input().width > 0
    }

    /// Sets rows that columns use in place of embeddings, which were checked.
    pub(crate) fn set_rows(&mut self, rows: &[f32]) {
        if self.takes_rows() {
            self.model.set_rows(rows).expect("the model takes these rows");
        }
    }

    /// Runs columns, whose tokens are known: the given values, `[n_col, width]` each.
    ///
    /// # Errors
    /// As [`CpuModel::run_step`].
    pub(crate) fn run(&mut self, columns: &[Column]) -> Result<Vec<Vec<f32>>, RuntimeError> {
        let takes_rows = self.takes_rows();
        let FirstLayers { model, gives } = self;
        let columns: Vec<Column> =
            columns.iter().map(|c| Column { row: c.row.filter(|_| takes_rows), ..*c }).collect();
        model.check(&columns)?;
        let (rows, picks) = model.begin(&columns, &vec![ColumnOutput::Nothing; columns.len()]);
        let graph = model.graph.clone();
        let mut pass = Pass::new(&graph, &rows, &picks);
        for i in 0..graph.nodes.len() {
            model.run_node(&mut pass, i, &mut |_| ());
        }
        Ok(gives.iter().map(|v| std::mem::take(&mut pass.values[v.0])).collect())
    }

    /// Bytes of a sequence in so many pages.
    pub(crate) fn session_bytes(&self, n_page: u32) -> u64 {
        self.model.session_bytes(n_page * self.model.config().page)
    }

    /// A sequence in these pages.
    pub(crate) fn save(&self, seq: u32, pages: &[u32]) -> Vec<u8> {
        self.model.save(seq, pages, pages.len() as u32 * self.model.config().page)
    }

    /// Restores a sequence of `n` tokens to these pages.
    pub(crate) fn put_back(&mut self, seq: u32, pages: &[u32], n: u32, bytes: &[u8]) {
        self.model.put_back(seq, pages, pages.len() as u32 * self.model.config().page, bytes);
        self.model.seqs.state_at[seq as usize] = Some(n);
    }
}
