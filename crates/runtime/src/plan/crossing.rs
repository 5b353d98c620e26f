//! Transitions between stages: the place of the next dispatches, and the values that cross.

use super::expand::{Expander, ld};
use super::stages::{Crossing, Place, Stage};
use crate::graph::ValueId;

impl Expander<'_> {
    /// Plans for this device from now on.
    pub(super) fn use_device(&mut self, device: usize) {
        self.settle();
        std::mem::swap(&mut self.pool, &mut self.pools[self.device]);
        std::mem::swap(&mut self.pool, &mut self.pools[device]);
        (self.device, self.caps) = (device, self.devices[device]);
    }

    /// Words of the activation buffers of every device.
    pub(super) fn words_of_devices(mut self) -> Vec<Vec<u64>> {
        self.use_device(0);
        self.pools[0] = self.pool;
        self.pools.into_iter().map(|p| p.words).collect()
    }

    /// Continues at this place: ends the current stage if it is at another.
    pub(super) fn enter(&mut self, place: Place, takes: Vec<Crossing>) {
        if place != self.place {
            let (before, taken) =
                (std::mem::replace(&mut self.place, place), std::mem::replace(&mut self.takes, takes));
            let segment = self.take_out();
            if !segment.is_empty() || !taken.is_empty() {
                self.stages.push(Stage { place: before, segment, takes: taken, gives: Vec::new() });
            }
        }
    }

    /// Continues on the next device: live values cross.
    pub(super) fn cross(&mut self) {
        let live = || (0..self.home.len()).filter_map(|v| Some((ValueId(v), self.home[v]?)));
        let gives: Vec<Crossing> = live().map(|(value, act)| self.crossing(value, act)).collect();
        self.crossing_words = self.crossing_words.max(gives.iter().map(|c| self.crossing_size(c)).sum());
        let (place, segment) = (self.place, self.take_out());
        let takes = std::mem::take(&mut self.takes);
        self.stages.push(Stage { place, segment, takes, gives: gives.clone() });
        self.place = Place::Device(self.device + 1);
        self.home.fill(None);
        self.use_device(self.device + 1);
        for given in gives {
            let act = self.pool.acquire(self.crossing_size(&given));
            self.home[given.value.0] = Some(act);
            self.takes.push(Crossing { act, ..given });
        }
    }

    /// A value that crosses from or to the device.
    fn crossing(&self, value: ValueId, act: usize) -> Crossing {
        let ld = ld(self.graph.width(value));
        Crossing { value, act, n_word: if self.half[value.0] { ld / 2 } else { ld } }
    }

    /// Words of its buffer.
    fn crossing_size(&self, c: &Crossing) -> u64 {
        u64::from(ld(self.graph.width(c.value))) * u64::from(self.n_col)
    }
}
