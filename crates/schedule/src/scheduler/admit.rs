//! Admission: which waiting request gets a slot, and how much of its prompt is cached.

use std::collections::VecDeque;

use super::Scheduler;
use super::running::{Logits, Running, Waiting};
use crate::embeddings::keys;
use crate::step::Change;

impl Scheduler {
    /// Gives free slots to waiting requests while there are pages for their prompts.
    pub(super) fn admit(&mut self, before: &mut Vec<Change>) {
        while let Some(seq) = self.slots.iter().position(Option::is_none)
            && let Some(first) = self.first_waiting()
        {
            let waiting = self.waiting.swap_remove(first);
            if let Some(waiting) = self.begin(seq, waiting, before) {
                self.waiting.push(waiting);
                return;
            }
        }
    }

    /// Starts a request in a free slot, or returns it if there are too few pages.
    fn begin(&mut self, seq: usize, waiting: Waiting, before: &mut Vec<Change>) -> Option<Waiting> {
        let size = self.pool.page();
        let n_token = waiting.tokens.len();
        // At least one token must run, for its output, and all rows that are read.
        let most = match waiting.request.read() {
            _ if self.limits.whole => 0,
            read => read.map_or(n_token - 1, |(first, _)| first),
        };
        let has_state = self.limits.n_snapshot.is_some();
        let keys = keys(&waiting.request.embeddings, &waiting.tokens, 0..n_token);
        let mut found = self.pool.find(waiting.request.prefixes(), &keys, most, has_state);
        // Pages for the prompt and one token.
        let n_page = (n_token + 1).min(self.limits.n_ctx).div_ceil(size);
        let mut n_new = n_page - found.pages.len();
        // Running requests will need more pages soon.
        let n_reserved = self.slots.iter().flatten().count();
        let n_full = found.pages.len();
        let mut n_cached = n_full * size;
        if self.pool.n_available() < n_new + n_reserved
            && let Some((page, n)) = found.tail.take()
        {
            // The held source page may be the missing one. A request that has to wait leaves the prefix to others.
            if self.pool.n_available() + 1 >= n_new + n_reserved && self.pool.take_over(page) {
                found.pages.push(page);
                n_new -= 1;
                n_cached += n;
            } else {
                self.pool.release(page);
            }
        }
        if self.pool.n_available() < n_new + n_reserved {
            self.release(&found);
            return Some(waiting);
        }
        let mut table = found.pages.clone();
        for _ in 0..n_new {
            match self.pool.take() {
                Some(page) => table.push(page),
                None => {
                    table[found.pages.len()..].iter().for_each(|p| self.pool.release(*p));
                    self.release(&found);
                    return Some(waiting);
                }
            }
        }
        self.n_stay += 1;
        let slot = seq as u32;
        before.push(Change::Pages { seq: slot, first: 0, pages: table.clone() });
        if let Some((from, n)) = found.tail {
            before.push(Change::Copy { from, to: table[n_full] });
            n_cached += n;
            self.pool.release(from);
        }
        if let Some(snapshot) = found.snapshot {
            before.push(Change::Restore { seq: slot, snapshot, n_token: n_cached as u32 });
        }
        let (id, chooser) = (waiting.request.id, waiting.request.chooser);
        let n_drawn = n_token - waiting.request.prompt.len();
        before.push(Change::Start { seq: slot, id, chooser, n_drawn, n_cached });
        let Waiting { request, tokens, order, n_charged, .. } = waiting;
        self.slots[seq] = Some(Running {
            request,
            next_chooser: None,
            order,
            tokens,
            n_named: n_full,
            table,
            n_sent: n_cached,
            n_charged: n_charged.max(n_cached),
            n_ahead: 0,
            logits: Logits::Unasked,
            stay: self.n_stay,
            last_step: 0,
            chunk: 0..0,
            draft: VecDeque::new(),
        });
        None
    }

    /// Preempts the least important running request that is not in `kept`. It waits again, and its tokens run again
    /// later. Returns its slot.
    pub(super) fn preempt(&mut self, kept: &[usize]) -> Option<usize> {
        let seq = self.by_rank().into_iter().rfind(|seq| !kept.contains(seq))?;
        let mut r = self.slots[seq].take()?;
        // Its known prefix stays cached until the pages are needed, which is soon.
        r.name_pages(&mut self.pool, &mut Vec::new());
        r.table.iter().rev().for_each(|p| self.pool.release(*p));
        self.waiting.push(r.into_waiting());
        self.n_preempted += 1;
        Some(seq)
    }
}
