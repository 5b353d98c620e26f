//! Requests with a sequence on the device, and waiting requests.

use std::collections::VecDeque;
use std::ops::Range;

use crate::embeddings::keys;
use crate::pool::Pool;
use crate::request::{Chooser, Request};
use crate::step::Input;

/// A request without a sequence.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) request: Request,
    /// The prompt, and the tokens chosen before a preemption.
    pub(super) tokens: Vec<u32>,
    /// Order of service, kept across preemption.
    pub(super) order: u64,
    /// It has been in a slot, or goes on.
    pub(super) has_begun: bool,
    /// Positions that count as served to its client: none counts twice.
    pub(super) n_charged: usize,
    /// The caller has its logits and has not chosen yet.
    pub(super) waits_for_choice: bool,
}

impl Waiting {
    /// Number of known tokens of the answer.
    pub(super) fn n_chosen(&self) -> usize {
        self.tokens.len() - self.request.prompt.len()
    }
}

/// State of a request's logits, if the caller chooses.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Logits {
    /// No row with logits was sent since the last choice.
    Unasked,
    /// In flight.
    UnderWay,
    /// The caller has them.
    Delivered,
}

/// A request with a sequence.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) request: Request,
    /// The party that chooses its tokens once all that have been sent are known.
    pub(super) next_chooser: Option<Chooser>,
    pub(super) order: u64,
    /// The prompt and the known tokens of the answer.
    pub(super) tokens: Vec<u32>,
    /// Its pages.
    pub(super) table: Vec<u32>,
    /// Number of named pages.
    pub(super) n_named: usize,
    /// Positions sent to the device.
    pub(super) n_sent: usize,
    /// Positions that count as served to its client, or were cached.
    pub(super) n_charged: usize,
    /// Tokens that the device has chosen or will choose, unknown to the caller.
    pub(super) n_ahead: usize,
    pub(super) logits: Logits,
    /// Distinguishes its rows from those of earlier requests in the slot.
    pub(super) stay: u64,
    /// The last step with rows of it.
    pub(super) last_step: u64,
    /// Positions of the current chunk of the prompt.
    pub(super) chunk: Range<usize>,
    /// Drafted tokens after the known ones, not yet sent or not yet confirmed.
    pub(super) draft: VecDeque<u32>,
}

impl Running {
    /// Number of known tokens of the answer.
    pub(super) fn n_chosen(&self) -> usize {
        self.tokens.len() - self.request.prompt.len()
    }

    /// Positions with a token, known here or on the device only.
    pub(super) fn n_token(&self) -> usize {
        self.tokens.len() + self.n_ahead
    }

    /// Rows that can be sent; none while drafts are in flight.
    pub(super) fn n_left(&self) -> usize {
        self.n_token().saturating_sub(self.n_sent)
    }

    /// Rows to send before the next one with an output.
    pub(super) fn n_before_output(&self) -> usize {
        let first = self.request.read().map_or(self.n_token().saturating_sub(1), |(first, _)| first);
        first.saturating_sub(self.n_sent)
    }

    /// True if others may find its pages: a request that cannot begin in the cache leaves nothing there either, so that
    /// embeddings do not evict prefixes that others need.
    fn is_cached(&self) -> bool {
        self.request.read().is_none_or(|(first, _)| first > 0)
    }

    /// True while rows of the prompt, or rows to repeat, remain to be sent.
    pub(super) fn is_prompt(&self) -> bool {
        self.n_left() > 1 || (self.n_left() == 1 && self.chunk.contains(&self.n_sent))
    }

    /// The token at a position: known, drafted, or known to the device only.
    pub(super) fn input(&self, pos: usize) -> Input {
        let draft = || pos.checked_sub(self.tokens.len()).and_then(|i| self.draft.get(i));
        self.tokens.get(pos).or_else(draft).map_or(Input::Chosen, |t| Input::Token(*t))
    }

    /// Positions sent that did not count as served before.
    pub(super) fn charge(&mut self) -> usize {
        let n = self.n_sent.saturating_sub(self.n_charged);
        self.n_charged += n;
        n
    }

    /// Drops unconfirmed drafts and the rows sent for them.
    pub(super) fn drop_draft(&mut self) {
        self.n_sent = self.n_sent.min(self.tokens.len());
        self.draft.clear();
    }

    /// Lets the next party choose, once all tokens that have been sent are known; returns whether it does from now on.
    pub(super) fn changes_chooser(&mut self) -> bool {
        let is_due = self.n_ahead == 0 && self.logits == Logits::Unasked;
        let Some(chooser) = self.next_chooser.take_if(|_| is_due) else { return false };
        self.drop_draft();
        self.request.chooser = chooser;
        true
    }

    pub(super) fn into_waiting(self) -> Waiting {
        let waits_for_choice = self.logits == Logits::Delivered;
        let chooser = self.next_chooser.unwrap_or(self.request.chooser);
        Waiting {
            request: Request { chooser, ..self.request },
            tokens: self.tokens,
            order: self.order,
            has_begun: true,
            n_charged: self.n_charged,
            waits_for_choice,
        }
    }

    /// Names full pages of known, sent tokens; appends (entry, page) if an existing page replaces one.
    pub(super) fn name_pages(&mut self, pool: &mut Pool, swapped: &mut Vec<(u32, u32)>) {
        if !self.is_cached() {
            return;
        }
        let (size, prefixes) = (pool.page(), self.request.prefixes());
        let n_full = self.n_sent.min(self.tokens.len()) / size;
        for i in self.n_named..n_full {
            let parent = i.checked_sub(1).map(|before| self.table[before]);
            let keys = keys(&self.request.embeddings, &self.tokens, i * size..(i + 1) * size);
            let page = pool.set_name(prefixes, parent, self.table[i], &keys);
            if page != self.table[i] {
                self.table[i] = page;
                swapped.push((i as u32, page));
            }
        }
        self.n_named = self.n_named.max(n_full);
    }

    /// Names the last, partial page when the request leaves. Sequences with state outside pages cannot start there.
    pub(super) fn name_tail(&mut self, pool: &mut Pool, has_state: bool) {
        let (size, n_known) = (pool.page(), self.n_sent.min(self.tokens.len()));
        let at = self.n_named;
        if has_state || n_known <= at * size || !self.is_cached() {
            return;
        }
        let parent = at.checked_sub(1).map(|before| self.table[before]);
        let keys = keys(&self.request.embeddings, &self.tokens, at * size..n_known);
        self.table[at] = pool.set_name(self.request.prefixes(), parent, self.table[at], &keys);
    }
}
