//! Plans as text, one line per dispatch: for inspection and snapshot tests.

use std::fmt;

use super::group::{Aux, AuxColumns, Groups};
use super::planned::{Growth, Planned, Slot};
use super::stages::{Crossing, Place, Stage};
use crate::graph::{Graph, WeightId};

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Slot::Weights { group, shard: 0 } => write!(f, "weights {group}"),
            Slot::Weights { group, shard } => write!(f, "weights {group}.{shard}"),
            Slot::Aux(Some(i)) => write!(f, "aux {i}"),
            Slot::Aux(None) => f.write_str("nothing"),
            Slot::Act(i) => write!(f, "act {i}"),
            Slot::Kv(layer) => write!(f, "cache {layer}"),
            Slot::Keys(layer) => write!(f, "keys {layer}"),
            Slot::Values(layer) => write!(f, "values {layer}"),
            Slot::State(layer) => write!(f, "state {layer}"),
            Slot::Rope(i) => write!(f, "rope {i}"),
            Slot::Arrived
            | Slot::Step
            | Slot::Rows
            | Slot::Ring
            | Slot::Sampler
            | Slot::Adjust
            | Slot::Masks
            | Slot::Logits => f.write_str(&format!("{self:?}").to_ascii_lowercase()),
        }
    }
}

impl fmt::Display for Planned {
    /// Its part, kernel, grid and bindings: `qkv | mul_mat_vec.q4_0.sg | 96x1x1 | x=act 0 w=weights 1 y=act 2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.dispatch.grid;
        write!(f, "{} | {} | {x}x{y}x{z}{}", self.part, self.dispatch.kernel.name, self.columns)?;
        for (i, (name, slot)) in self.bind.iter().enumerate() {
            write!(f, "{}{name}={slot}", if i == 0 { " | " } else { ", " })?;
        }
        Ok(())
    }
}

impl fmt::Display for Stage {
    /// One line per dispatch, between lines for the values that come and go. Dispatches of offloaded experts name their
    /// group.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let experts = match self.place {
            Place::Device(_) => String::new(),
            Place::Cpu { experts, .. } => format!(" | experts of group {}", experts.group),
            Place::Rows { slots, .. } => format!(" | with slots of layer {} from elsewhere", slots.layer),
        };
        let crossing = |f: &mut fmt::Formatter<'_>, what: &str, values: &[Crossing]| {
            let values: Vec<String> =
                values.iter().map(|c| format!("%{} in act {}", c.value.0, c.act)).collect();
            writeln!(f, "device {} {what} {}", self.place.device(), values.join(", "))
        };
        if matches!(self.place, Place::Device(_)) && !self.takes.is_empty() {
            crossing(f, "takes", &self.takes)?;
        }
        self.segment.iter().try_for_each(|p| writeln!(f, "{p}{experts}"))?;
        if self.gives.is_empty() { Ok(()) } else { crossing(f, "gives", &self.gives) }
    }
}

impl fmt::Display for Growth {
    /// Growth of a grid with the columns: empty if it does not grow.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Growth::Fixed => Ok(()),
            Growth::X => f.write_str(" (x)"),
            Growth::Y => f.write_str(" (y)"),
            Growth::Z => f.write_str(" (z)"),
            Growth::Each(0) => f.write_str(" (z: columns by themselves)"),
            Growth::Each(n) => write!(f, " (z: columns by themselves; y: {n} keys)"),
            Growth::YEach => f.write_str(" (y: columns by themselves)"),
            Growth::YRest(n) => write!(f, " (y: tiles of {n} of the others)"),
            Growth::XTiles(n) => write!(f, " (x: tiles of {n})"),
            Growth::YTiles(n) => write!(f, " (y: tiles of {n})"),
            Growth::YTimes(n) => write!(f, " (y: {n} each)"),
            Growth::XExperts(route) => write!(f, " (x: tiles of {} by expert)", route.tile),
            Growth::XSlots(route) => write!(f, " (x: tiles of {} by slot)", route.tile),
            Growth::Share(n) => write!(f, " (its share of {n})"),
        }
    }
}

impl Groups {
    /// The buffers of weights, one line each: the matrices of a group in order, and small vectors.
    pub fn describe(&self, graph: &Graph) -> String {
        let name = |id: &WeightId| graph.weights[id.0].name.as_str();
        let mut out = String::new();
        for (i, g) in self.groups.iter().enumerate() {
            let members: Vec<&str> = g.members.iter().map(|(id, _)| name(id)).collect();
            let shards =
                if g.shards.len() > 1 { format!(", {} shards", g.shards.len()) } else { String::new() };
            let streamed = if g.streamed { ", streamed" } else { "" };
            let (format, members) = (g.format.name, members.join(" + "));
            out +=
                &format!("weights {i}: {format} [{}, {}]{shards}{streamed}: {members}\n", g.n_row, g.n_col);
        }
        for (i, aux) in self.aux.iter().enumerate() {
            out += &format!("aux {i}: {}\n", described(aux, name));
        }
        out
    }
}

/// Its vectors, then scales and biases of rows, or scales of columns.
fn described<'a>(aux: &Aux, name: impl Fn(&WeightId) -> &'a str) -> String {
    let vectors = aux.vectors.iter().map(|(id, _)| name(id).to_owned());
    let rows = aux.rows.iter().map(|row| {
        let mut line = format!("{} rows", row.n_row);
        for (what, id) in [("scale", row.scale), ("bias", row.bias)] {
            line += &id.map_or(String::new(), |id| format!(" {what} {}", name(&id)));
        }
        if row.by == 1.0 { line } else { format!("{line} by {}", row.by) }
    });
    let columns = aux.columns.map(|AuxColumns { scale, by, picked }| {
        let what = if picked { "picks" } else { "columns" };
        let line = format!("{} {what} scale {}", aux.n_col, name(&scale));
        if by == 1.0 { line } else { format!("{line} by {by}") }
    });
    vectors.chain(rows).chain(columns).collect::<Vec<_>>().join(" + ")
}
