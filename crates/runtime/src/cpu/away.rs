//! Steps on the CPU whose experts may be computed elsewhere.
//!
//! At the first product of a layer of experts the route is known: pairs that are away are sent, those that are here are
//! computed, and the nodes after the layer run as far as they do not need its sum. Then the rows from elsewhere are
//! waited for.

use std::collections::BTreeSet;

use super::CpuModel;
use super::cache::kept::Kept;
use super::steps::Pass;
use crate::error::RuntimeError;
use crate::experts::{ExpertCall, ExpertError, ExpertFuture, Experts, Home, Pair};
use crate::graph::{ExpertLayer, Graph};
use crate::step::{Column, ColumnOutput, StepOutputs};

/// A model in a step. If the step does not end, because it fails or its future is dropped, sequences are as they were
/// before.
struct InStep<'a> {
    model: &'a mut CpuModel,
    before: Vec<Kept>,
}

impl Drop for InStep<'_> {
    fn drop(&mut self) {
        self.before.drain(..).for_each(|kept| self.model.seqs.bring_back(kept));
    }
}

/// Rows under way.
struct Waiting {
    /// Index of the node that sums.
    reduce: usize,
    layer: u16,
    future: ExpertFuture,
    /// Rows of the slot buffer, in order of the pairs.
    at: Vec<usize>,
}

impl CpuModel {
    /// As [`Self::run_step`], with experts elsewhere. Outputs are equal to the bit if the rows are. The step can be run
    /// again after an error, or after its future was dropped.
    ///
    /// # Errors
    /// As [`Self::run_step`]; [`RuntimeError::Experts`]; [`RuntimeError::Limit`] for more than 65,536 columns.
    ///
    /// # Panics
    /// As [`Self::run_step`].
    pub async fn run_step_away(
        &mut self,
        columns: &[Column],
        outputs: &[ColumnOutput],
        repeat: u32,
        experts: &mut dyn Experts,
    ) -> Result<StepOutputs, RuntimeError> {
        self.check(columns)?;
        let limit = u64::from(u16::MAX) + 1;
        if columns.len() as u64 > limit {
            let (what, found) = ("tokens of a step with experts elsewhere", columns.len() as u64);
            return Err(RuntimeError::Limit { what, found, limit });
        }
        let seqs: BTreeSet<u32> = columns.iter().map(|c| c.seq).collect();
        let before = seqs.into_iter().map(|seq| self.seqs.kept(seq)).collect();
        let mut step = InStep { model: self, before };
        let mut out = StepOutputs::default();
        for i in 0..repeat.max(1) {
            let next: Vec<Column> = columns.iter().map(|c| c.repeated(i)).collect();
            let made = step.model.run_once_away(&next, outputs, experts).await?;
            out.chosen.extend(made.chosen);
            out.logits.extend(made.logits);
            out.hidden.extend(made.hidden);
        }
        step.before.clear();
        Ok(out)
    }

    async fn run_once_away(
        &mut self,
        columns: &[Column],
        outputs: &[ColumnOutput],
        experts: &mut dyn Experts,
    ) -> Result<StepOutputs, RuntimeError> {
        self.check(columns)?;
        let (rows, picks) = self.begin(columns, outputs);
        let (graph, layers) = (self.graph.clone(), self.experts.clone());
        let mut pass = Pass::new(&graph, &rows, &picks);
        let mut waiting: Option<Waiting> = None;
        // The layer whose nodes do not run one by one.
        let mut away: Option<&ExpertLayer> = None;
        for (i, node) in graph.nodes.iter().enumerate() {
            let first = layers.iter().find(|l| l.nodes[0] == i);
            let needs = |w: &Waiting| node.op.inputs().contains(&graph.nodes[w.reduce].out);
            if let Some(w) = waiting.take_if(|w| first.is_some() || needs(w)) {
                self.arrive(&mut pass, w).await?;
            }
            if let Some(layer) = first {
                waiting = self.depart(&graph, layer, &mut pass, experts)?;
                away = waiting.is_some().then_some(layer);
            }
            match away {
                Some(layer) if layer.nodes.contains(&i) => self.free(&graph, i, &mut pass.values),
                Some(layer) if layer.reduce == i => {}
                _ => self.run_node(&mut pass, i, &mut |_| ()),
            }
        }
        if let Some(w) = waiting {
            self.arrive(&mut pass, w).await?;
        }
        let (logits, hidden) = pass.end();
        Ok(self.outputs(outputs, &rows, &picks, logits, hidden))
    }

    /// Sends the pairs of a layer that are away, and computes the others; `None` if all are here, where the layer's
    /// nodes run as usual.
    fn depart(
        &mut self,
        graph: &Graph,
        layer: &ExpertLayer,
        pass: &mut Pass<'_>,
        experts: &mut dyn Experts,
    ) -> Result<Option<Waiting>, ExpertError> {
        let n_used = layer.n_used as usize;
        // Expert indices are exact in f32.
        let routed: Vec<u16> =
            pass.values[layer.route.0].chunks_exact(2).map(|slot| slot[0] as u16).collect();
        let wanted: Vec<u16> = routed.iter().copied().collect::<BTreeSet<u16>>().into_iter().collect();
        let homes = experts.homes(layer.layer, &wanted);
        if homes.len() != wanted.len() {
            let (found, expected) = (homes.len() as u64, wanted.len() as u64);
            return Err(ExpertError::Size { layer: layer.layer, what: "homes", found, expected });
        }
        let is_away = |expert: u16| {
            let nth = wanted.binary_search(&expert);
            nth.is_ok_and(|nth| homes[nth] == Home::Away)
        };
        self.check_experts(layer, wanted.iter().copied().filter(|e| !is_away(*e)))?;
        let is_whole = !layer.weights(graph).iter().any(|w| self.parts.has(*w));
        if is_whole && !homes.contains(&Home::Away) {
            return Ok(None);
        }
        let pair = |(i, expert): (usize, &u16)| {
            let (column, slot) = ((i / n_used) as u16, (i % n_used) as u16);
            Pair { expert: *expert, column, slot }
        };
        let (mut away, mut here): (Vec<Pair>, Vec<Pair>) =
            routed.iter().enumerate().map(pair).partition(|p| is_away(p.expert));
        away.sort_unstable();
        here.sort_unstable();
        let at = |p: &Pair| usize::from(p.column) * n_used + usize::from(p.slot);
        let width = graph.width(layer.y) as usize;
        let reduce = layer.reduce;
        let waiting = Waiting {
            reduce,
            layer: layer.layer,
            at: away.iter().map(at).collect(),
            future: match away.is_empty() {
                true => Box::pin(std::future::ready(Ok(Vec::new()))),
                false => {
                    let weight = |p: &Pair| pass.values[layer.route.0][2 * at(p) + 1];
                    let weights = away.iter().map(weight).collect();
                    experts.call(call(graph, layer, &pass.values[layer.x.0], away, weights))
                }
            },
        };
        let mut slots = self.buffers.take(routed.len() * width);
        let rows = self.expert_rows(graph, layer, &here, &mut pass.values);
        for (p, row) in here.iter().zip(rows.chunks_exact(width)) {
            slots[at(p) * width..][..width].copy_from_slice(row);
        }
        self.buffers.give(rows);
        pass.values[layer.y.0] = slots;
        Ok(Some(waiting))
    }

    /// Waits for the rows of a layer, and sums its slots.
    async fn arrive(&mut self, pass: &mut Pass<'_>, w: Waiting) -> Result<(), RuntimeError> {
        let Waiting { reduce, layer, future, at } = w;
        let rows = future.await?;
        self.place(pass, (layer, reduce), &rows, &at)?;
        self.run_node(pass, reduce, &mut |_| ());
        Ok(())
    }

    fn place(
        &self,
        pass: &mut Pass<'_>,
        (layer, reduce): (u16, usize),
        rows: &[f32],
        at: &[usize],
    ) -> Result<(), ExpertError> {
        let graph = &self.graph;
        let crate::graph::Op::MoeReduce { x, .. } = graph.nodes[reduce].op else {
            unreachable!("a layer of experts ends with a sum")
        };
        let width = graph.width(x) as usize;
        let (found, expected) = (rows.len() as u64, (at.len() * width) as u64);
        if found != expected {
            return Err(ExpertError::Size { layer, what: "values from elsewhere", found, expected });
        }
        for (at, row) in at.iter().zip(rows.chunks_exact(width)) {
            pass.values[x.0][at * width..][..width].copy_from_slice(row);
        }
        Ok(())
    }
}

/// The call of a layer for these pairs, whose columns are those of the step: sends the rows that they name.
fn call(
    graph: &Graph,
    layer: &ExpertLayer,
    x: &[f32],
    mut pairs: Vec<Pair>,
    weights: Vec<f32>,
) -> ExpertCall {
    let (n_in, width) = layer.widths(graph);
    let n_in = n_in as usize;
    let columns: Vec<u16> = pairs.iter().map(|p| p.column).collect::<BTreeSet<u16>>().into_iter().collect();
    let rows = columns.iter().flat_map(|c| &x[usize::from(*c) * n_in..][..n_in]);
    let x_of_pairs = rows.copied().collect();
    for p in &mut pairs {
        p.column = columns.binary_search(&p.column).expect("a column of the pairs") as u16;
    }
    let step_columns = (x.len() / n_in.max(1)) as u32;
    ExpertCall { layer: layer.layer, width, step_columns, x: x_of_pairs, pairs, weights }
}
