//! Page tables of sequences. Sequences share the pages of common prefixes; a writer to a shared page first gets a copy.

/// A change on the device before a sequence is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Copy a page.
    Copy {
        /// Source page.
        from: u32,
        /// Destination page.
        to: u32,
    },
    /// Entry `at` of the sequence's page table changes.
    Set {
        /// The entry.
        at: u32,
        /// The page.
        page: u32,
    },
}

/// The pages of all sequences: enough for all of them without sharing.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    /// Maximum number of pages per sequence.
    per_seq: u32,
    /// The pages of each sequence, in order.
    tables: Vec<Vec<u32>>,
    /// The tables known to the device: all entries, used or not.
    known: Vec<Vec<u32>>,
    /// Number of tables that contain each page.
    users: Vec<u32>,
}

impl Pages {
    /// Sequence s owns the s-th run of pages, like the device's initial tables.
    pub(crate) fn new(n_seq: u32, per_seq: u32) -> Self {
        let home = |s: u32| (s * per_seq..(s + 1) * per_seq).collect();
        Pages {
            per_seq,
            tables: vec![Vec::new(); n_seq as usize],
            known: (0..n_seq).map(home).collect(),
            users: vec![0; (n_seq * per_seq) as usize],
        }
    }

    /// The pages of a sequence.
    pub(crate) fn of(&self, seq: usize) -> &[u32] {
        &self.tables[seq]
    }

    /// Releases all but the first `n` pages of a sequence.
    pub(crate) fn cut(&mut self, seq: usize, n: usize) {
        let table = &mut self.tables[seq];
        for page in table.drain(n.min(table.len())..) {
            self.users[page as usize] -= 1;
        }
    }

    /// Makes a sequence share the first `n` pages of another; it loses its own.
    pub(crate) fn share(&mut self, from: usize, to: usize, n: usize) -> Vec<Change> {
        self.cut(to, 0);
        let pages = self.tables[from][..n].to_vec();
        pages.iter().for_each(|p| self.users[*p as usize] += 1);
        self.tables[to] = pages;
        self.news(to)
    }

    /// Makes a sequence the only owner of its pages from `first` to before `end`.
    pub(crate) fn own(&mut self, seq: usize, first: usize, end: usize) -> Vec<Change> {
        let mut changes = Vec::new();
        for i in first.min(self.tables[seq].len())..end {
            match self.tables[seq].get(i).copied() {
                None => {
                    let page = self.take(seq, i);
                    self.tables[seq].push(page);
                }
                Some(old) if self.users[old as usize] > 1 => {
                    let page = self.take(seq, i);
                    self.users[old as usize] -= 1;
                    self.tables[seq][i] = page;
                    changes.push(Change::Copy { from: old, to: page });
                }
                Some(_) => {}
            }
        }
        changes.extend(self.news(seq));
        changes
    }

    /// An unused page: preferably the initial one of this entry.
    fn take(&mut self, seq: usize, i: usize) -> u32 {
        let home = seq as u32 * self.per_seq + i as u32;
        let free = |p: &u32| self.users[*p as usize] == 0;
        let page = Some(home).filter(free).or_else(|| (0..self.users.len() as u32).find(free));
        // A sequence that lacks a page, or shares one, leaves one of its share free.
        let page = page.expect("there are pages for all sequences");
        self.users[page as usize] += 1;
        page
    }

    /// Changes of a sequence's table unknown to the device.
    fn news(&mut self, seq: usize) -> Vec<Change> {
        let places = self.tables[seq].iter().zip(&mut self.known[seq]).zip(0..);
        let new = places.filter(|((page, known), _)| page != known);
        new.map(|((page, known), at)| {
            *known = *page;
            Change::Set { at, page: *page }
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_sequence_by_itself_keeps_its_pages() {
        let mut p = Pages::new(2, 4);
        assert_eq!(p.own(1, 0, 3), []);
        p.cut(1, 1);
        assert_eq!(p.own(1, 1, 4), []);
    }

    #[test]
    fn a_shared_page_is_copied_before_it_is_written() {
        let mut p = Pages::new(2, 4);
        p.own(0, 0, 3);
        assert_eq!(p.share(0, 1, 2), [Change::Set { at: 0, page: 0 }, Change::Set { at: 1, page: 1 }]);
        // The second page is written from its middle; the third is new.
        let changes = p.own(1, 1, 3);
        let (set, copy) = (Change::Set { at: 1, page: 5 }, Change::Copy { from: 1, to: 5 });
        assert_eq!(changes, [copy, set]);
        // The first sequence is its only owner again.
        assert_eq!(p.own(0, 1, 3), []);
        // The first page is still shared: the first writer gets a copy.
        assert_eq!(p.own(0, 0, 1), [Change::Copy { from: 0, to: 3 }, Change::Set { at: 0, page: 3 }]);
    }

    /// Sequences read what they have written, whatever the others do: checked on a fake device with one value per page.
    #[derive(Clone, Debug)]
    enum Act {
        Write { seq: usize, from: usize, n: usize },
        Cut { seq: usize, n: usize },
        Share { from: usize, to: usize, n: usize },
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let write = (0..3usize, 0..5usize, 1..5usize).prop_map(|(seq, from, n)| Act::Write { seq, from, n });
        let cut = (0..3usize, 0..5usize).prop_map(|(seq, n)| Act::Cut { seq, n });
        let share = (0..3usize, 0..3usize, 0..5usize).prop_map(|(from, to, n)| Act::Share { from, to, n });
        proptest::collection::vec(prop_oneof![write, cut, share], 1..60)
    }

    proptest! {
        #[test]
        fn sequences_read_what_they_wrote(acts in acts()) {
            const PER_SEQ: usize = 5;
            let mut pages = Pages::new(3, PER_SEQ as u32);
            let mut memory = vec![0u32; 3 * PER_SEQ];
            let mut tables: Vec<Vec<u32>> = (0..3).map(|s| (s * 5..s * 5 + 5).collect()).collect();
            let mut expected: Vec<Vec<u32>> = vec![Vec::new(); 3];
            let apply = |changes: Vec<Change>, seq: usize, memory: &mut [u32], tables: &mut [Vec<u32>]| {
                for c in changes {
                    match c {
                        Change::Copy { from, to } => memory[to as usize] = memory[from as usize],
                        Change::Set { at, page } => tables[seq][at as usize] = page,
                    }
                }
            };
            for (stamp, act) in (1..).zip(acts) {
                match act {
                    Act::Write { seq, from, n } => {
                        let from = from.min(expected[seq].len());
                        let end = (from + n).min(PER_SEQ);
                        pages.cut(seq, from);
                        let changes = pages.own(seq, from, end);
                        apply(changes, seq, &mut memory, &mut tables);
                        expected[seq].truncate(from);
                        for i in from..end {
                            memory[tables[seq][i] as usize] = stamp;
                            expected[seq].push(stamp);
                        }
                    }
                    Act::Cut { seq, n } => {
                        pages.cut(seq, n);
                        expected[seq].truncate(n);
                    }
                    Act::Share { from, to, n } if from != to => {
                        let n = n.min(expected[from].len());
                        let changes = pages.share(from, to, n);
                        apply(changes, to, &mut memory, &mut tables);
                        expected[to] = expected[from][..n].to_vec();
                    }
                    Act::Share { .. } => {}
                }
                for (table, expected) in tables.iter().zip(&expected) {
                    let found: Vec<u32> = table.iter().take(expected.len()).map(|p| memory[*p as usize]).collect();
                    prop_assert_eq!(&found, expected);
                }
            }
        }
    }
}
