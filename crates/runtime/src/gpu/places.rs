//! Slots for a layer's experts on the device, and their eviction.

/// The slots of a layer's experts.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// Slot of each expert.
    place_of: Vec<Option<u32>>,
    /// Expert in each slot, and its last use.
    held: Vec<(Option<u32>, u64)>,
    /// Number of rounds so far.
    now: u64,
}

impl Places {
    pub(super) fn new(n_expert: u32, n_place: u32) -> Places {
        Places { place_of: vec![None; n_expert as usize], held: vec![(None, 0); n_place as usize], now: 0 }
    }

    /// Number of experts.
    pub(super) fn n_expert(&self) -> u32 {
        self.place_of.len() as u32
    }

    /// Slot of an expert.
    pub(super) fn place(&self, expert: u32) -> Option<u32> {
        self.place_of[expert as usize]
    }

    /// Divides experts into rounds of at most as many as there are slots, resident ones first; each round in ascending
    /// order.
    pub(super) fn rounds(&self, wanted: &[u32]) -> Vec<Vec<u32>> {
        let (mut order, missing): (Vec<u32>, Vec<u32>) =
            wanted.iter().copied().partition(|e| self.place(*e).is_some());
        order.extend(missing);
        let mut rounds: Vec<Vec<u32>> = order.chunks(self.held.len().max(1)).map(<[u32]>::to_vec).collect();
        rounds.iter_mut().for_each(|r| r.sort_unstable());
        rounds
    }

    /// Assigns a slot to every expert of a round, and returns those to read: (expert, slot). The least recently used
    /// experts are evicted; a slot has no expert until [`Self::filled`].
    pub(super) fn admit(&mut self, round: &[u32]) -> Vec<(u32, u32)> {
        self.now += 1;
        let mut missing = Vec::new();
        for &expert in round {
            match self.place(expert) {
                Some(place) => self.held[place as usize].1 = self.now,
                None => missing.push(expert),
            }
        }
        if missing.is_empty() {
            return Vec::new();
        }
        let mut free: Vec<u32> =
            (0..self.held.len() as u32).filter(|p| self.held[*p as usize].1 < self.now).collect();
        free.sort_by_key(|p| {
            let (holder, last) = self.held[*p as usize];
            (holder.is_some(), last)
        });
        let given: Vec<(u32, u32)> = missing.into_iter().zip(free).collect();
        for &(_, place) in &given {
            if let Some(old) = self.held[place as usize].0.take() {
                self.place_of[old as usize] = None;
            }
        }
        given
    }

    /// Frees the slot of an expert, if it has one.
    pub(super) fn release(&mut self, expert: u32) {
        if let Some(place) = self.place_of[expert as usize].take() {
            self.held[place as usize].0 = None;
        }
    }

    /// Marks a slot as holding the expert.
    pub(super) fn filled(&mut self, expert: u32, place: u32) {
        self.held[place as usize] = (Some(expert), self.now);
        self.place_of[expert as usize] = Some(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a round, and returns the experts that it read.
    fn run(p: &mut Places, round: &[u32]) -> Vec<u32> {
        let given = p.admit(round);
        given.iter().for_each(|(expert, place)| p.filled(*expert, *place));
        for expert in round {
            let place = p.place(*expert).expect("every expert of a round has a place");
            assert_eq!(p.held[place as usize].0, Some(*expert));
        }
        given.into_iter().map(|g| g.0).collect()
    }

    #[test]
    fn what_was_not_wanted_for_longest_gives_way() {
        let mut p = Places::new(8, 3);
        assert_eq!(run(&mut p, &[1, 2]), [1, 2]);
        assert_eq!(run(&mut p, &[2, 5]), [5], "a place was free, and 2 has one");
        assert_eq!(run(&mut p, &[2, 6]), [6]);
        assert_eq!((p.place(1), p.place(5).is_some()), (None, true), "1 was wanted before 5");
        assert_eq!(run(&mut p, &[2, 5, 6]), [0u32; 0]);
        assert_eq!(run(&mut p, &[0, 1, 3]), [0, 1, 3]);
    }

    #[test]
    fn more_experts_than_places_come_in_rounds_that_begin_with_those_that_are_there() {
        let mut p = Places::new(8, 3);
        run(&mut p, &[4, 6]);
        let rounds = p.rounds(&[0, 1, 2, 4, 6, 7]);
        assert_eq!(rounds, [vec![0, 4, 6], vec![1, 2, 7]]);
        let read: Vec<u32> = rounds.iter().flat_map(|r| run(&mut p, r)).collect();
        assert_eq!(read, [0, 1, 2, 7]);
        assert_eq!(p.rounds(&[]), Vec::<Vec<u32>>::new());
    }

    #[test]
    fn a_released_place_is_the_next_to_be_given() {
        let mut p = Places::new(8, 3);
        run(&mut p, &[1, 2, 3]);
        let place = p.place(2);
        p.release(2);
        p.release(7);
        assert_eq!([1, 2, 3].map(|e| p.place(e).is_some()), [true, false, true]);
        run(&mut p, &[5]);
        assert_eq!(p.place(5), place, "nobody had to go");
        assert_eq!([1, 3].map(|e| p.place(e).is_some()), [true, true]);
    }

    #[test]
    fn a_place_that_was_not_filled_is_nobodys() {
        let mut p = Places::new(4, 2);
        run(&mut p, &[0, 1]);
        // Reading fails.
        let given = p.admit(&[2, 3]);
        assert_eq!(given.len(), 2);
        p.filled(given[0].0, given[0].1);
        assert_eq!([0, 1, 2, 3].map(|e| p.place(e).is_some()), [false, false, true, false]);
        assert_eq!(run(&mut p, &[2, 3]), [3]);
    }
}
