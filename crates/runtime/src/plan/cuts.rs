//! Cuts of a body between devices: by the devices' shares of the bytes, where few values cross.

use std::collections::HashSet;
use std::ops::Range;

use chaski_kernels::ops::topk_moe;

use super::config::{CpuLayers, PlanConfig};
use super::error::PlanError;
use super::group::Groups;
use super::planned::{Planned, Slot};
use super::stages::bound;
use crate::graph::{Graph, ValueId};

/// A planned step: its first dispatch, and the values live before it.
pub(super) struct Mark {
    pub(super) dispatch: usize,
    pub(super) live: Vec<ValueId>,
}

/// Share of all bytes that outweighs one more crossing value of the model's width: balances even devices against cheap
/// crossings.
const WIDTH_FOR_SHARE: f64 = 0.02;

/// Finds the cuts of a body.
pub(super) struct Cutter<'a> {
    pub(super) graph: &'a Graph,
    pub(super) groups: &'a Groups,
    pub(super) config: &'a PlanConfig,
    /// The body for one column on a single device.
    pub(super) body: &'a [Planned],
    /// The head, which the last device has in addition.
    pub(super) head: &'a [Planned],
    pub(super) marks: &'a [Mark],
}

impl Cutter<'_> {
    /// First step of every device but the first, by [`PlanConfig::shares`]. The CPU counts as the first, if it has
    /// layers.
    ///
    /// # Errors
    /// [`PlanError::Cut`] if there are too few possible cuts, [`PlanError::Shares`] for a wrong number of shares.
    pub(super) fn cuts(&self, n_device: usize) -> Result<Vec<usize>, PlanError> {
        let (before, total) = self.bytes_before();
        let total = total.max(1) as f64;
        let places = self.places();
        let narrowest = places.iter().map(|p| p.1).min().unwrap_or(1).max(1);
        let shares = self.shares(n_device, &before, total)?;
        let (mut cuts, mut end): (Vec<usize>, f64) = (Vec::new(), 0.0);
        for (nth, share) in shares.iter().take(n_device - 1).enumerate() {
            end += share;
            let last = cuts.last().copied().unwrap_or(0);
            let free: Vec<&(usize, u32)> = places.iter().filter(|p| p.0 > last).collect();
            // Every later device needs a cut, too.
            let free = &free[..free.len().saturating_sub(n_device - 2 - nth)];
            let cost = |p: &(usize, u32)| {
                let off = (before[p.0] as f64 / total - end).abs();
                off + WIDTH_FOR_SHARE * f64::from(p.1) / f64::from(narrowest)
            };
            let best = free.iter().min_by(|a, b| cost(a).total_cmp(&cost(b)));
            cuts.push(best.ok_or(PlanError::Cut { n_device, n_place: places.len() })?.0);
        }
        Ok(cuts)
    }

    /// Shares of the devices, of a whole of 1.
    fn shares(&self, n_device: usize, before: &[u64], total: f64) -> Result<Vec<f64>, PlanError> {
        let asked = &self.config.shares;
        let of_cpu = match self.config.cpu {
            None | Some(CpuLayers::Share) => return shares(asked, n_device),
            Some(CpuLayers::AllBut(n)) => before[self.first_step(n)] as f64 / total,
            Some(CpuLayers::Beyond(n_byte)) => (1.0 - n_byte as f64 / total).max(0.0),
        };
        let others = shares(asked, n_device - 1)?.into_iter().map(|share| share * (1.0 - of_cpu));
        Ok([of_cpu].into_iter().chain(others).collect())
    }

    /// The first step with a matrix of the last `n` layers; 0 if there are not more.
    fn first_step(&self, n: u32) -> usize {
        let first = (self.graph.n_layer as u32).saturating_sub(n);
        let is_there = |slot: &Slot| match *slot {
            Slot::Weights { group, .. } => {
                let members = self.groups.groups[group].members.iter();
                members.filter_map(|m| self.graph.weights[m.0.0].layer()).any(|layer| layer >= first)
            }
            _ => false,
        };
        (0..self.marks.len()).find(|i| bound(self.step(*i)).iter().any(is_there)).unwrap_or(0)
    }

    /// The dispatches of a step.
    fn step(&self, i: usize) -> &[Planned] {
        let end = self.marks.get(i + 1).map_or(self.body.len(), |m| m.dispatch);
        &self.body[self.marks[i].dispatch..end]
    }

    /// Bytes that the steps before each cut keep on a device, and those of body and head; weights bound by several
    /// steps count for the first. An output matrix that is also the table of embeddings is on two devices.
    fn bytes_before(&self) -> (Vec<u64>, u64) {
        let (mut seen, mut sum, mut out) = (HashSet::new(), 0, vec![0]);
        for i in 0..self.marks.len() {
            let new = bound(self.step(i)).into_iter().filter(|slot| seen.insert(*slot));
            sum += new.map(|slot| self.n_byte(slot)).sum::<u64>();
            out.push(sum);
        }
        let head: u64 = bound(self.head).into_iter().map(|slot| self.n_byte(slot)).sum();
        (out, sum + head)
    }

    fn n_byte(&self, slot: Slot) -> u64 {
        match slot {
            Slot::Weights { group, shard } => {
                let g = &self.groups.groups[group];
                g.layout(&g.shards[shard]).n_byte
            }
            Slot::Kv(layer) => self.config.kv_layout(&self.graph.kv[layer]).n_byte(),
            Slot::State(layer) => self.graph.states[layer].n_byte() * u64::from(self.config.n_seq),
            _ => 0,
        }
    }

    /// Possible cuts, with the number of values per column that cross there. All steps that use a layer of the cache or
    /// of recurrent state stay together, as do a router's product and the choice behind it, which may be one dispatch,
    /// and only whole columns cross.
    fn places(&self) -> Vec<(usize, u32)> {
        let mut users: Vec<(Slot, Range<usize>)> = Vec::new();
        for i in 0..self.marks.len() {
            for slot in bound(self.step(i)).into_iter().filter(|s| matches!(s, Slot::Kv(_) | Slot::State(_)))
            {
                match users.iter_mut().find(|u| u.0 == slot) {
                    Some(u) => u.1.end = i,
                    None => users.push((slot, i..i)),
                }
            }
        }
        let place = |(i, mark): (usize, &Mark)| {
            let is_apart = users.iter().all(|(_, u)| i <= u.start || i > u.end);
            let is_whole = mark.live.iter().all(|v| self.graph.slots(*v) == 0);
            let chooses = |p: &Planned| p.dispatch.kernel.name.starts_with(topk_moe::OP.name);
            let is_apart = is_apart && !self.step(i).first().is_some_and(chooses);
            let width = mark.live.iter().map(|v| self.graph.width(*v)).sum();
            (is_apart && is_whole).then_some((i, width))
        };
        self.marks.iter().enumerate().skip(1).filter_map(place).collect()
    }
}

/// Shares normalised to 1: equal ones by default.
fn shares(asked: &[f32], n_device: usize) -> Result<Vec<f64>, PlanError> {
    if asked.is_empty() {
        return Ok(vec![1.0 / n_device as f64; n_device]);
    }
    let sum: f64 = asked.iter().map(|s| f64::from(*s)).sum();
    if asked.len() != n_device || asked.iter().any(|s| *s < 0.0) || !(sum > 0.0 && sum.is_finite()) {
        return Err(PlanError::Shares { n_device, found: asked.to_vec() });
    }
    Ok(asked.iter().map(|s| f64::from(*s) / sum).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_one() {
        let found = |asked: &[f32], n_device| shares(asked, n_device).map_err(|e| e.to_string());
        assert_eq!(found(&[], 4), Ok(vec![0.25; 4]));
        assert_eq!(found(&[3.0, 1.0], 2), Ok(vec![0.75, 0.25]));
        assert_eq!(found(&[5.0, 0.0], 2), Ok(vec![1.0, 0.0]));
        for wrong in [&[1.0][..], &[1.0; 3], &[2.0, -1.0], &[0.0; 2], &[f32::NAN, 1.0], &[f32::INFINITY, 1.0]]
        {
            let e = found(wrong, 2).expect_err("no shares of two devices");
            let rest = "but must be as many numbers, none negative, not all 0";
            assert_eq!(e, format!("the shares of 2 devices are {wrong:?}, {rest}"));
        }
    }
}
