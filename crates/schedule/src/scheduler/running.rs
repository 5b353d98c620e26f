//! A request that has a sequence on the device, and one that waits for it.

use std::collections::VecDeque;
use std::ops::Range;

use crate::pool::Pool;
use crate::request::Request;
use crate::step::Input;

/// A request without a sequence.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) request: Request,
    /// The prompt, and the tokens that were chosen before the request was preempted.
    pub(super) tokens: Vec<u32>,
    /// Requests are served in this order, preempted ones too.
    pub(super) order: u64,
    /// The caller has its logits, and will choose.
    pub(super) waits_for_choice: bool,
}

impl Waiting {
    /// Tokens of the answer that are known.
    pub(super) fn n_chosen(&self) -> usize {
        self.tokens.len() - self.request.prompt.len()
    }
}

/// The way of a request's logits, if the caller chooses.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Logits {
    /// No row that gives them was sent since the last choice.
    Unasked,
    /// They are under way.
    UnderWay,
    /// The caller has them.
    Delivered,
}

/// A request with a sequence.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) request: Request,
    pub(super) order: u64,
    /// The prompt and the tokens of the answer that are known.
    pub(super) tokens: Vec<u32>,
    /// Its pages.
    pub(super) table: Vec<u32>,
    /// Pages of these that are named.
    pub(super) n_named: usize,
    /// Positions whose rows were sent to the device.
    pub(super) n_sent: usize,
    /// Tokens that the device has chosen, or will have, and the caller does not know.
    pub(super) n_ahead: usize,
    pub(super) logits: Logits,
    /// Tells its rows from those of others that had the slot before.
    pub(super) stay: u64,
    /// The last step that had rows of it.
    pub(super) last_step: u64,
    /// Positions of the chunk of the prompt that is being sent.
    pub(super) chunk: Range<usize>,
    /// Guessed tokens that follow the known ones: to be sent with the next row, or sent and not confirmed.
    pub(super) guess: VecDeque<u32>,
}

impl Running {
    /// Tokens of the answer that are known.
    pub(super) fn n_chosen(&self) -> usize {
        self.tokens.len() - self.request.prompt.len()
    }

    /// Positions that have a token, known here or on the device alone.
    pub(super) fn n_token(&self) -> usize {
        self.tokens.len() + self.n_ahead
    }

    /// Rows that can be sent; none while guesses are under way.
    pub(super) fn n_left(&self) -> usize {
        self.n_token().saturating_sub(self.n_sent)
    }

    /// Rows of the prompt are left to send, or of what is run again.
    pub(super) fn is_prompt(&self) -> bool {
        self.n_left() > 1 || (self.n_left() == 1 && self.chunk.contains(&self.n_sent))
    }

    /// The token of a position: known, guessed, or known to the device alone.
    pub(super) fn input(&self, pos: usize) -> Input {
        let guess = || pos.checked_sub(self.tokens.len()).and_then(|i| self.guess.get(i));
        self.tokens.get(pos).or_else(guess).map_or(Input::Chosen, |t| Input::Token(*t))
    }

    /// Forgets guesses that were not confirmed, and the rows that were sent for them.
    pub(super) fn drop_guess(&mut self) {
        self.n_sent = self.n_sent.min(self.tokens.len());
        self.guess.clear();
    }

    pub(super) fn into_waiting(self) -> Waiting {
        let waits_for_choice = self.logits == Logits::Delivered;
        Waiting { request: self.request, tokens: self.tokens, order: self.order, waits_for_choice }
    }

    /// Names pages that are full of known tokens and were sent; adds (entry, page) where another page takes the place.
    pub(super) fn name_pages(&mut self, pool: &mut Pool, swapped: &mut Vec<(u32, u32)>) {
        let (size, group) = (pool.page(), self.request.group);
        let n_full = self.n_sent.min(self.tokens.len()) / size;
        for i in self.n_named..n_full {
            let parent = i.checked_sub(1).map(|before| self.table[before]);
            let page = pool.set_name(group, parent, self.table[i], &self.tokens[i * size..][..size]);
            if page != self.table[i] {
                self.table[i] = page;
                swapped.push((i as u32, page));
            }
        }
        self.n_named = self.n_named.max(n_full);
    }

    /// Names the last page, which is not full, when the request leaves. Sequences with more than pages cannot begin there.
    pub(super) fn name_tail(&mut self, pool: &mut Pool, has_state: bool) {
        let (size, n_known) = (pool.page(), self.n_sent.min(self.tokens.len()));
        let at = self.n_named;
        if has_state || n_known <= at * size {
            return;
        }
        let parent = at.checked_sub(1).map(|before| self.table[before]);
        self.table[at] =
            pool.set_name(self.request.group, parent, self.table[at], &self.tokens[at * size..n_known]);
    }
}
