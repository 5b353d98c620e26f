//! The stage of the CPU backend: the first steps of every body, as nodes of the graph, and the values that they give.

use super::expand::{Expander, ld};
use super::stages::Crossing;
use super::steps::{Step, Steps};
use crate::graph::{Graph, ValueId};

/// Nodes that the CPU runs before the first stage of a body, whose inputs ([`Stage::takes`](super::Stage::takes)) it
/// gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuStage {
    /// Indices of the nodes, in order.
    pub nodes: Vec<usize>,
    /// The values, in the order of the inputs of the first stage.
    pub gives: Vec<ValueId>,
}

/// Places of values that the first `n_cpu` steps make and later ones read.
fn live(graph: &Graph, steps: &Steps, all: &[&Step], n_cpu: usize) -> Vec<ValueId> {
    let whole = |v: ValueId| steps.views[v.0].map_or(v, |(x, _)| x);
    let nodes = all[..n_cpu].iter().flat_map(|s| s.nodes());
    let made: Vec<ValueId> = nodes.map(|i| graph.nodes[*i].out).collect();
    let read = all[n_cpu..].iter().flat_map(|s| steps.inputs(graph, s)).map(whole);
    let mut live: Vec<ValueId> = read.filter(|v| made.contains(v)).collect();
    live.sort_unstable();
    live.dedup();
    live
}

impl CpuStage {
    /// The stage of the first `n_cpu` steps of a body.
    pub(super) fn of(graph: &Graph, steps: &Steps, all: &[&Step], n_cpu: usize) -> CpuStage {
        let mut nodes: Vec<usize> = all[..n_cpu].iter().flat_map(|s| s.nodes()).copied().collect();
        nodes.sort_unstable();
        nodes.dedup();
        // Sums in place are later values in the same place.
        let last = |place: ValueId| {
            let step = all[..n_cpu].iter().rfind(|s| steps.output(graph, s) == place);
            step.map_or(place, |s| s.out(graph))
        };
        CpuStage { nodes, gives: live(graph, steps, all, n_cpu).into_iter().map(last).collect() }
    }
}

impl Expander<'_> {
    /// Begins a body after the steps of the CPU: its values are inputs of the first stage.
    pub(super) fn after_cpu(&mut self, body: &[Step], head: &[Step]) {
        let all: Vec<&Step> = body.iter().chain(head).collect();
        for place in live(self.graph, self.steps, &all, self.n_cpu) {
            // The CPU does not round.
            self.half[place.0] = false;
            let n_word = ld(self.graph.width(place));
            let act = self.pool.acquire(u64::from(n_word) * u64::from(self.n_col));
            self.home[place.0] = Some(act);
            self.takes.push(Crossing { value: place, act, n_word });
        }
    }
}
