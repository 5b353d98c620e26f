//! Parts of calls: pairs that one worker makes, and the answers that they have so far.
//!
//! Usually a part has pairs of one unit, and a task any number of parts. Where workers sum, the rows of a task are sums
//! over its pairs, so a part is a whole task: the pairs of some columns, of all units that the same workers hold. If
//! nobody holds all of them any more, it is split into its units.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use super::dispatch::Plan;
use super::flight::By;
use super::{CallPair, Hub};
use crate::sum;
use crate::unit::{CallId, PeerId, Unit};

/// Most bytes of the answer to a part: larger ones are cut, so that tasks stay below the limit of a message.
const PART_BYTES: usize = 1 << 20;
/// The same of sums, whose parts are whole tasks.
const SUM_BYTES: usize = 2 << 20;
/// Columns of sums below which a part is not cut to have several workers at work.
const SPREAD: usize = 64;

/// A part of a call.
#[derive(Debug)]
pub(super) struct Part {
    /// The unit of the pairs, or the first one of several.
    pub(super) unit: Unit,
    /// The other units.
    pub(super) others: Vec<Unit>,
    /// Pairs of the call.
    pub(super) pairs: Range<usize>,
    /// Rows of the answer.
    pub(super) n_row: usize,
    /// The maker of the rows that are used.
    pub(super) done: Option<By>,
    /// Other parts have its pairs now.
    pub(super) is_split: bool,
    /// Answers that must agree before one is used.
    pub(super) wanted: usize,
    /// Answers that wait for others to agree.
    pub(super) answers: Vec<(By, Vec<f32>)>,
    /// Tasks of workers in service, or of the hub, that make it.
    pub(super) flights: Vec<u64>,
    /// Workers that refused it, for a while.
    pub(super) avoid: BTreeSet<PeerId>,
    /// Since when nobody can make it.
    pub(super) orphaned: Option<Duration>,
}

impl Part {
    fn new((unit, others): (Unit, Vec<Unit>), pairs: Range<usize>, n_row: usize, wanted: usize) -> Part {
        Part {
            unit,
            others,
            pairs,
            n_row,
            done: None,
            is_split: false,
            wanted,
            answers: Vec::new(),
            flights: Vec::new(),
            avoid: BTreeSet::new(),
            orphaned: None,
        }
    }

    /// True if rows of it are not wanted any more.
    pub(super) fn is_over(&self) -> bool {
        self.done.is_some() || self.is_split
    }

    /// Answers that must still be asked for.
    pub(super) fn n_missing(&self) -> usize {
        match self.is_over() {
            true => 0,
            false => self.wanted.saturating_sub(self.answers.len() + self.flights.len()),
        }
    }
}

/// The parts of a call, and its pairs in their order, if that is not the engine's.
pub(super) struct Cut {
    pub(super) parts: Vec<Part>,
    pub(super) order: Option<Vec<u32>>,
}

/// Units whose products the same workers can sum.
struct Group {
    units: Vec<Unit>,
    holders: BTreeSet<PeerId>,
}

impl Hub {
    /// True if workers sum products.
    pub(super) fn sums(&self) -> bool {
        self.config.sums && !self.config.exact
    }

    /// Answers of a part that must agree.
    fn n_wanted(&self) -> usize {
        if self.config.verify_all { 2 } else { 1 }
    }

    /// One part for each unit, or several if it has many pairs.
    pub(super) fn cut(&self, layer: u16, pairs: &[CallPair]) -> Cut {
        let most = (PART_BYTES / (4 * self.config.shape.width as usize)).max(1);
        let (mut parts, mut start) = (Vec::new(), 0);
        let unit = |p: &CallPair| self.config.shape.unit(layer, p.expert);
        for group in pairs.chunk_by(|a, b| unit(a) == unit(b)) {
            let unit = unit(&group[0]).expect("experts of calls are checked");
            for piece in group.chunks(most) {
                let pairs = start..start + piece.len();
                start = pairs.end;
                parts.push(Part::new((unit, Vec::new()), pairs, piece.len(), self.n_wanted()));
            }
        }
        Cut { parts, order: None }
    }

    /// Parts whose products are summed: of some columns, for all units that the same workers hold.
    pub(super) fn cut_sums(&self, layer: u16, pairs: &[CallPair]) -> Cut {
        let unit = |p: &CallPair| self.config.shape.unit(layer, p.expert).expect("experts are checked");
        let mut units: Vec<Unit> = pairs.iter().map(unit).collect();
        units.dedup();
        let groups = self.groups(&units);
        let group_of: BTreeMap<Unit, usize> = groups
            .iter()
            .enumerate()
            .flat_map(|(g, group)| group.units.iter().map(move |u| (*u, g)))
            .collect();
        let mut of_groups: Vec<Vec<u32>> = vec![Vec::new(); groups.len()];
        for (i, pair) in pairs.iter().enumerate() {
            of_groups[group_of[&unit(pair)]].push(i as u32);
        }
        let (mut parts, mut order) = (Vec::new(), Vec::new());
        for (group, indices) in groups.iter().zip(of_groups) {
            let columns = sum::columns(indices.iter().map(|&i| pairs[i as usize].column));
            let n_piece = self.n_piece(columns.len(), group.holders.len());
            let piece_of = |i: u32| {
                let nth = columns.binary_search(&pairs[i as usize].column).expect("the column of a pair");
                nth * n_piece / columns.len()
            };
            let mut pieces: Vec<Vec<u32>> = vec![Vec::new(); n_piece];
            indices.into_iter().for_each(|i| pieces[piece_of(i)].push(i));
            for piece in pieces {
                let mut units: Vec<Unit> = piece.iter().map(|&i| unit(&pairs[i as usize])).collect();
                units.dedup();
                let n_row = sum::columns(piece.iter().map(|&i| pairs[i as usize].column)).len();
                let range = order.len()..order.len() + piece.len();
                let first = units.remove(0);
                parts.push(Part::new((first, units), range, n_row, self.n_wanted()));
                order.extend(piece);
            }
        }
        Cut { parts, order: Some(order) }
    }

    /// Pieces of so many columns that some workers can make: more than one if they are large, or for several workers.
    fn n_piece(&self, n_column: usize, n_holder: usize) -> usize {
        let most = (SUM_BYTES / (4 * self.config.shape.width as usize)).max(1);
        n_column.div_ceil(most).max(n_holder.min(n_column / SPREAD)).max(1)
    }

    /// Units in groups that the same workers hold: two of them if each unit has two, so that another one can help.
    fn groups(&self, units: &[Unit]) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for &unit in units {
            let up = self.holders_of(unit).filter(|p| p.health.is_up());
            let holders: BTreeSet<PeerId> = up.map(|p| p.id).collect();
            let common = |g: &Group| g.holders.intersection(&holders).count();
            let suits = |g: &Group| common(g) > 0 && common(g) >= g.holders.len().min(holders.len()).min(2);
            match groups.iter_mut().filter(|g| suits(g)).max_by_key(|g| common(g)) {
                Some(group) => {
                    group.units.push(unit);
                    group.holders.retain(|id| holders.contains(id));
                }
                None => groups.push(Group { units: vec![unit], holders }),
            }
        }
        groups
    }

    /// True if a part of several units, for which nobody can be asked, has units for which somebody can.
    pub(super) fn can_split(&self, id: CallId, part: u16, plan: &Plan) -> bool {
        let wanted = &self.calls[&id].parts[usize::from(part)];
        let hosts = self.hosts_of(id, part, plan);
        let is_free = |unit: &Unit| {
            let mut up = self.holders_of(*unit).filter(|p| p.health.is_up());
            up.any(|p| !hosts.contains(&p.joined.host) && !wanted.avoid.contains(&p.id))
        };
        !wanted.others.is_empty() && (is_free(&wanted.unit) || wanted.others.iter().any(is_free))
    }

    /// Splits a part into one for each of its units, and returns these. Tasks that make it are not needed any more.
    pub(super) fn split(&mut self, now: Duration, id: CallId, part: u16) -> Vec<u16> {
        self.set_orphaned(id, part, None);
        self.stats.n_split += 1;
        let n_wanted = self.n_wanted();
        let open = self.calls.get_mut(&id).expect("the call is in progress");
        let data = open.data.clone();
        let whole = &mut open.parts[usize::from(part)];
        whole.is_split = true;
        whole.answers.clear();
        let (flights, mut start) = (std::mem::take(&mut whole.flights), whole.pairs.start);
        let avoid = std::mem::take(&mut whole.avoid);
        let shape = &self.config.shape;
        let unit = |p: &CallPair| shape.unit(data.layer, p.expert);
        let pairs = &data.pairs[whole.pairs.clone()];
        let mut made = Vec::new();
        for piece in pairs.chunk_by(|a, b| unit(a) == unit(b)) {
            let unit = unit(&piece[0]).expect("experts of calls are checked");
            let pairs = start..start + piece.len();
            start = pairs.end;
            // An expert has a column once, but a unit may have several experts.
            let n_row = data.n_row(std::iter::once(pairs.clone()));
            made.push(Part { avoid: avoid.clone(), ..Part::new((unit, Vec::new()), pairs, n_row, n_wanted) });
        }
        let first = open.parts.len() as u16;
        open.n_open += made.len() - 1;
        open.parts.extend(made);
        let parts: Vec<u16> = (first..open.parts.len() as u16).collect();
        self.waiting.remove(&(id, part));
        self.waiting.extend(parts.iter().map(|&part| (id, part)));
        flights.into_iter().for_each(|task| self.settle(now, task));
        parts
    }
}
