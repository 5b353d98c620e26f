//! The plan of a model's experts by themselves, for a device that computes them for others.
//!
//! It is cut out of the plan of the whole model, so that its kernels are those of the model, with the same bits.

use std::collections::HashSet;

use chaski_kernels::{Caps, Route};

use super::buffers::buffers_of;
use super::config::PlanConfig;
use super::error::PlanError;
use super::fusion::fuse;
use super::group::Groups;
use super::planned::{Planned, Segment, Slot};
use super::segments::Segments;
use super::stages::{Place, Stage, bound};
use super::streaming::{ExpertInput, ExpertSlots, Streaming};
use super::whole::plan;
use crate::graph::Graph;

/// The experts of a layer.
#[derive(Clone, Debug)]
pub struct ExpertLayerPlan {
    /// Its dispatches, from the input to the slots.
    pub segment: Segment,
    /// Layout of the route, and its activation buffer.
    pub route: (Route, usize),
    /// The input.
    pub input: ExpertInput,
    /// The result.
    pub slots: ExpertSlots,
    /// The groups of its weights.
    pub groups: Vec<usize>,
}

/// All layers of experts, for a number of columns.
#[derive(Clone, Debug)]
pub struct ExpertPlan {
    /// Maximum number of columns.
    pub max_col: u32,
    /// Columns are sorted by expert.
    pub many: bool,
    /// The layers, in order.
    pub layers: Vec<ExpertLayerPlan>,
}

/// Plans for one and for several columns, ascending.
#[derive(Clone, Debug)]
pub struct ExpertPlans {
    /// The plans.
    pub plans: Vec<ExpertPlan>,
    /// Placement of the weights.
    pub groups: Groups,
    /// Buffers and activations of the plans; without bodies.
    pub segments: Segments,
}

/// Plans the experts of a model; [`PlanConfig::experts`] has the slots of every layer, and applies to all of them.
///
/// # Errors
/// As [`plan`]; [`PlanError::NoExperts`].
pub fn plan_experts(graph: &Graph, caps: &Caps, config: &PlanConfig) -> Result<ExpertPlans, PlanError> {
    let experts = Streaming { n_layer: u32::MAX, ..config.experts };
    let config = PlanConfig { away: true, experts, ..config.clone() };
    let steps = fuse(graph, config.rules());
    let mut groups = Groups::new(graph, &steps, caps, &config.experts)?;
    let whole = plan(graph, &steps, &mut groups, caps, &config)?;
    let one = whole.decode.first().map(|d| (1, &d.body));
    let bodies = one.into_iter().chain(whole.prompt.iter().map(|p| (p.max_col, &p.body)));
    let plans: Vec<ExpertPlan> = bodies.map(|(max_col, body)| expert_plan(max_col, body)).collect();
    if plans.iter().any(|p| p.layers.is_empty()) {
        return Err(PlanError::NoExperts);
    }
    let all = || plans.iter().flat_map(|p| &p.layers);
    let used: HashSet<usize> = bound(all().flat_map(|l| &l.segment))
        .into_iter()
        .filter_map(|slot| if let Slot::Act(i) = slot { Some(i) } else { None })
        .collect();
    let words = |(i, words): (usize, &u64)| if used.contains(&i) { *words } else { 0 };
    let act_words = whole.act_words.iter().map(|acts| acts.iter().enumerate().map(words).collect()).collect();
    // The slots are read back.
    let n_word = |p: &ExpertPlan, l: &ExpertLayerPlan| p.max_col * l.route.0.n_used * l.slots.ld;
    let route_words = plans.iter().flat_map(|p| p.layers.iter().map(|l| n_word(p, l))).max().unwrap_or(0);
    let mut segments =
        Segments { act_words, route_words, arrived_words: whole.arrived_words, ..Segments::default() };
    segments.buffers = buffers_of(graph, &groups, &segments, &config, all().flat_map(|l| &l.segment));
    Ok(ExpertPlans { plans, groups, segments })
}

/// The experts of a body for up to `max_col` columns.
fn expert_plan(max_col: u32, body: &[Stage]) -> ExpertPlan {
    let mut layers: Vec<ExpertLayerPlan> = Vec::new();
    let is_of = |layer: u16| move |p: &&Planned| p.layer == Some(layer);
    for stage in body {
        let Place::Rows { slots, .. } = stage.place else { continue };
        let stages = || body.iter().filter(|s| s.segment.iter().any(|p| p.layer == Some(slots.layer)));
        let experts: Vec<_> = stages()
            .filter_map(|s| match s.place {
                Place::Cpu { experts, .. } => Some((experts, s.takes.first()?.act)),
                _ => None,
            })
            .collect();
        let Some((route, act, input)) = experts.iter().find_map(|(e, act)| Some((e.route, *act, e.input?)))
        else {
            continue;
        };
        let mut groups: Vec<usize> = experts.iter().map(|(e, _)| e.group).collect();
        groups.dedup();
        let segment = stages().flat_map(|s| s.segment.iter().filter(is_of(slots.layer))).cloned().collect();
        layers.push(ExpertLayerPlan { segment, route: (route, act), input, slots, groups });
    }
    ExpertPlan { max_col, many: max_col > 1, layers }
}
