//! Fusion: groups nodes of a graph into steps by a table of rules.
//!
//! A step starts as one node. Each rule of [`RULES`], in order, may add nodes, so later rules build on earlier ones.
//! Nodes to which no rule applies are steps of their own.

mod draft;
mod experts;
mod norms;
mod products;
mod qkv;
mod state;
mod sums;

use std::fmt;

use self::draft::Draft;
pub use self::draft::Rule;
use self::state::State;
use super::steps::{Fused, Step, Steps};
use crate::graph::{Graph, Op};

/// All rules, in the order in which they are tried.
pub static RULES: [Rule; 9] = [
    norms::NORM_OF_PRODUCTS,
    qkv::QKV,
    products::GATED,
    experts::GATED_EXPERTS,
    experts::SUM_OF_EXPERTS,
    norms::NORM_AND_SUM,
    sums::FACTOR,
    sums::RESIDUAL,
    sums::SCALED,
];

/// The bit of [`Fusions::with_experts_apart`].
const APART: u32 = 1 << 31;

/// The bit of a rule in [`Fusions`].
fn bit(rule: &Rule) -> u32 {
    1 << RULES.iter().position(|r| r.name == rule.name).expect("rules are rows of the table")
}

/// The rules that a plan may use. They do not change results beyond rounding.
#[derive(Copy, Clone, PartialEq, Eq, Hash)]
pub struct Fusions(u32);

impl Fusions {
    /// Every rule.
    pub const ALL: Fusions = Fusions((1 << RULES.len()) - 1);
    /// No rule: each node is a step.
    pub const NONE: Fusions = Fusions(0);

    /// True if a rule is enabled.
    pub fn has(self, rule: &Rule) -> bool {
        self.0 & bit(rule) != 0
    }

    /// The same with a rule.
    #[must_use]
    pub fn with(self, rule: &Rule) -> Self {
        Fusions(self.0 | bit(rule))
    }

    /// The same without a rule.
    #[must_use]
    pub fn without(self, rule: &Rule) -> Self {
        Fusions(self.0 & !bit(rule))
    }

    /// The same rules, but the inputs and the results of experts are values: no norm before them and no sum after them
    /// is part of their steps.
    #[must_use]
    pub fn with_experts_apart(self) -> Self {
        Fusions(self.0 | APART).without(&experts::SUM_OF_EXPERTS)
    }

    /// The rules.
    pub fn rules(self) -> impl Iterator<Item = &'static Rule> {
        RULES.iter().filter(move |r| self.has(r))
    }
}

impl Default for Fusions {
    fn default() -> Self {
        Fusions::ALL
    }
}

impl fmt::Debug for Fusions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.rules().map(|r| r.name)).finish()
    }
}

/// Groups the nodes of a graph into steps by these rules.
pub fn fuse(graph: &Graph, rules: Fusions) -> Steps {
    let mut state = State::new(graph);
    let mut list = Vec::new();
    for i in 0..graph.nodes.len() {
        if !state.done[i] {
            list.extend(step(&mut state, rules, i));
        }
    }
    let views = state.views();
    Steps { list, place: state.place, views }
}

/// The step of node `i` and of the nodes fused with it; `None` if its readers absorb it.
fn step(state: &mut State<'_>, rules: Fusions, i: usize) -> Option<Step> {
    state.done[i] = true;
    if rules.has(&norms::NORM_OF_PRODUCTS) && norms::fold(state, i, rules.0 & APART != 0) {
        return None;
    }
    let Some(mut draft) = Draft::new(state.graph, i) else { return Some(single(state, i)) };
    let (name, mut used) = (state.op(i).name(), Vec::new());
    for rule in rules.rules().filter(|r| r.from.contains(&name)) {
        if let Some(next) = (rule.apply)(state, &draft) {
            next.nodes.iter().for_each(|n| state.done[*n] = true);
            used.push(rule.name);
            draft = next;
        }
    }
    if used.is_empty() {
        return Some(single(state, i));
    }
    let Draft { nodes, out, form, into, .. } = draft;
    if let Some(into) = into {
        state.put(out, into);
    }
    Some(Step::Fused(Fused { rules: used, nodes, out, form }))
}

/// Node `i` as a step of its own, in place of an input that ends there if possible.
fn single(state: &mut State<'_>, i: usize) -> Step {
    let into = match *state.op(i) {
        Op::Add { a, b } if a != b => [a, b].into_iter().find(|v| state.dies(*v, i)),
        Op::Mul { a, b } if a != b => Some(a).filter(|a| state.dies(*a, i)),
        Op::Scale { x, .. } | Op::Unary { x, .. } | Op::Rope { x, .. } | Op::Input { x } => {
            Some(x).filter(|x| state.dies(*x, i))
        }
        _ => None,
    };
    if let Some(into) = into {
        state.put(state.graph.nodes[i].out, into);
    }
    Step::Node(i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_name_and_a_bit_of_its_own() {
        let mut all = Fusions::NONE;
        for rule in &RULES {
            assert!(!all.has(rule), "{} is listed twice", rule.name);
            all = all.with(rule);
            assert!(!Fusions::ALL.without(rule).has(rule), "{}", rule.name);
            assert_eq!(Fusions::NONE.with(rule).rules().map(|r| r.name).collect::<Vec<_>>(), [rule.name]);
        }
        assert_eq!(all, Fusions::ALL);
    }
}
