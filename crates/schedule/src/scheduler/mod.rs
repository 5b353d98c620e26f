//! The scheduler: owns all requests and plans the steps.

mod admit;
mod fill;
mod rank;
mod room;
mod running;
mod shares;

use std::collections::{HashSet, VecDeque};

use crate::embeddings::keys;
use crate::pool::{Found, Pool, PoolStats};
use crate::request::{Chooser, Read, Refused, Request, RequestId, Turn};
use crate::step::{Change, Step, Want};
use room::Room;
use running::{Logits, Running, Waiting};
use shares::Shares;

/// Capacities of a scheduler.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Sequences on the device.
    pub n_seq: usize,
    /// Maximum number of tokens per sequence.
    pub n_ctx: usize,
    /// Tokens per page.
    pub page: usize,
    /// Pages in the pool.
    pub n_page: usize,
    /// Maximum number of rows per step.
    pub max_row: usize,
    /// Maximum number of requests with outputs per step.
    pub max_want: usize,
    /// Maximum number of rows with outputs per step, drafted tokens included.
    pub max_output: usize,
    /// Maximum number of hidden states per step without other outputs ([`crate::Read::Hidden`]): a whole multiple of
    /// `max_output` of them is used, since one output leaves room for as many less.
    pub max_hidden: usize,
    /// Devices that have the layers, one after the other: answers take turns in as many steps, so that each device
    /// works for some of them.
    pub n_device: usize,
    /// Tokens that the device may run ahead of the caller per sequence; 0: every step is read before the next.
    pub max_ahead: usize,
    /// Capacity of the queue.
    pub max_waiting: usize,
    /// Snapshots that the device can hold; `None` for models without state outside pages.
    pub n_snapshot: Option<usize>,
    /// A prompt runs in a single step: tokens of an encoder see those after them. Only prompts whose rows are read
    /// ([`Chooser::Nobody`]) can be submitted.
    pub whole: bool,
    /// Maximum number of drafted tokens at once ([`Scheduler::draft`]); 0 for models whose sequences cannot be rewound.
    pub max_draft: usize,
}

/// Invalid limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitsError {
    /// A single request must be able to fill the context, so that it always ends.
    #[error("the KV cache has room for {found} tokens, but a context has {needed}: {} are missing", needed - found)]
    Pool {
        /// Tokens in the pool.
        found: usize,
        /// Tokens per context.
        needed: usize,
    },
    /// A size is 0.
    #[error("{what} is 0")]
    Zero {
        /// The size.
        what: &'static str,
    },
}

/// Bounds of the next step.
#[derive(Copy, Clone, Debug)]
pub struct Budget {
    /// Maximum number of rows, within [`Limits::max_row`]: the work that fits in the time of a step.
    pub rows: usize,
    /// Rows that are left to prompts at least, if any wait for them, within [`Limits::max_row`], however many answers
    /// the step has. Without effect on prompts that run whole.
    pub prompt: usize,
    /// Repetitions allowed for a step of device-chosen tokens.
    pub repeat: u32,
}

/// A step and the changes that precede it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// Changes on the device before the step, in order.
    pub before: Vec<Change>,
    /// The step.
    pub step: Step,
    /// Requests of the rows that choose under a mask, in order. Their masks are due once all earlier steps have been
    /// read, and before the next call of [`Scheduler::next`].
    pub masked: Vec<RequestId>,
}

/// Outcome of a step for a request.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The device chose a token.
    Token {
        /// The request.
        id: RequestId,
        /// The token.
        token: u32,
    },
    /// Logits are available: call [`Scheduler::choose`].
    Logits {
        /// The request.
        id: RequestId,
        /// Index of its first row among the step's rows of logits, from 0.
        index: usize,
        /// Number of its rows: one, plus one after each drafted token ([`Scheduler::draft`]).
        n_row: usize,
    },
    /// Rows of a prompt are available, in order. After a preemption they begin anew, at the first.
    Rows {
        /// The request.
        id: RequestId,
        /// Position of the first of these rows in the prompt.
        at: usize,
        /// Its index among the step's rows with such an output, from 0.
        index: usize,
        /// Number of rows.
        n_row: usize,
        /// They are the last: the request has ended.
        is_last: bool,
    },
    /// The request reached its token limit and has ended.
    Length {
        /// The request.
        id: RequestId,
    },
    /// The context is full; the request has ended.
    Context {
        /// The request.
        id: RequestId,
    },
}

impl Event {
    /// The request.
    pub fn id(&self) -> RequestId {
        match self {
            Event::Token { id, .. }
            | Event::Logits { id, .. }
            | Event::Rows { id, .. }
            | Event::Length { id }
            | Event::Context { id } => *id,
        }
    }
}

/// Outcome of [`Scheduler::choose`].
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// End of the request, if this was its last token.
    pub end: Option<Event>,
    /// The token was drafted: choose from the next row of logits as well.
    pub was_drafted: bool,
}

/// Counts of a scheduler.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Waiting requests.
    pub n_waiting: usize,
    /// Running requests.
    pub n_running: usize,
    /// Steps submitted but not read.
    pub n_under_way: usize,
    /// Total number of preemptions.
    pub n_preempted: u64,
    /// Pages.
    pub pool: PoolStats,
}

/// A row in flight that produces an output.
#[derive(Copy, Clone, Debug)]
struct Sent {
    seq: usize,
    pos: usize,
    stay: u64,
    want: Want,
}

/// A step in flight.
#[derive(Debug)]
struct UnderWay {
    rows: Vec<Sent>,
    repeat: u32,
}

/// Owns waiting and running requests, and plans the steps. Pure: no device, no clock.
#[derive(Debug)]
pub struct Scheduler {
    limits: Limits,
    pool: Pool,
    waiting: Vec<Waiting>,
    /// Sequences by slot.
    slots: Vec<Option<Running>>,
    under_way: VecDeque<UnderWay>,
    /// Ids of all active requests.
    ids: HashSet<RequestId>,
    shares: Shares,
    /// Counters of submissions, of requests' stays in slots, and of steps.
    n_submitted: u64,
    n_stay: u64,
    n_step: u64,
    n_preempted: u64,
}

impl Scheduler {
    /// A scheduler without requests.
    ///
    /// # Errors
    /// [`LimitsError`] if a single request could not fill its context.
    pub fn new(limits: Limits) -> Result<Self, LimitsError> {
        let sizes = [
            ("the number of sequences", limits.n_seq),
            ("the context", limits.n_ctx),
            ("a page", limits.page),
            ("the number of rows of a step", limits.max_row),
            ("the number of outputs of a step", limits.max_want.min(limits.max_output)),
        ];
        if let Some((what, _)) = sizes.into_iter().find(|s| s.1 == 0) {
            return Err(LimitsError::Zero { what });
        }
        let found = limits.n_page.saturating_mul(limits.page);
        if limits.n_page < limits.n_ctx.div_ceil(limits.page) {
            return Err(LimitsError::Pool { found, needed: limits.n_ctx });
        }
        Ok(Scheduler {
            pool: Pool::new(limits.n_page, limits.page, limits.n_snapshot.unwrap_or(0)),
            waiting: Vec::new(),
            slots: (0..limits.n_seq).map(|_| None).collect(),
            under_way: VecDeque::new(),
            ids: HashSet::new(),
            shares: Shares::default(),
            n_submitted: 0,
            n_stay: 0,
            n_step: 0,
            n_preempted: 0,
            limits,
        })
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Counts.
    pub fn usage(&self) -> Usage {
        Usage {
            n_waiting: self.waiting.len(),
            n_running: self.slots.iter().flatten().count(),
            n_under_way: self.under_way.len(),
            n_preempted: self.n_preempted,
            pool: self.pool.stats(),
        }
    }

    /// Queues a request and returns its turn.
    ///
    /// # Errors
    /// [`Refused`]; other requests are not affected.
    pub fn submit(&mut self, request: Request) -> Result<Turn, Refused> {
        self.check(&request)?;
        if self.waiting.len() >= self.limits.max_waiting {
            return Err(Refused::Queue { limit: self.limits.max_waiting });
        }
        let turn = Turn(self.n_submitted + 1);
        self.queue(request, turn, false)?;
        self.n_submitted += 1;
        Ok(turn)
    }

    /// Queues a request that has ended and continues from another prompt, for example after a context shift. It keeps
    /// its turn, and a full queue accepts it.
    ///
    /// # Errors
    /// [`Refused`]; other requests are not affected.
    pub fn go_on(&mut self, request: Request, turn: Turn) -> Result<(), Refused> {
        self.check(&request)?;
        self.queue(request, turn, true)
    }

    /// Queues a request that fits.
    fn queue(&mut self, request: Request, turn: Turn, has_begun: bool) -> Result<(), Refused> {
        if !self.ids.insert(request.id) {
            return Err(Refused::Id { id: request.id });
        }
        self.shares.open(request.client);
        let (tokens, order) = (request.prompt.clone(), turn.0);
        let waiting = Waiting { request, tokens, order, has_begun, n_charged: 0, waits_for_choice: false };
        self.waiting.push(waiting);
        Ok(())
    }

    /// Rejects a prompt that can never be served.
    fn check(&self, request: &Request) -> Result<(), Refused> {
        let (found, limit) = (request.prompt.len(), self.limits.n_ctx);
        match found {
            0 => Err(Refused::Empty),
            _ if found > limit => Err(Refused::Context { found, limit }),
            _ if self.limits.whole && found > self.most_whole(request) => {
                Err(Refused::Whole { found, limit: self.most_whole(request) })
            }
            _ => Request::check_embeddings(&request.embeddings, found),
        }
    }

    /// Maximum number of tokens in a prompt that runs whole: all of them may be read.
    fn most_whole(&self, request: &Request) -> usize {
        let kind = request.read().map_or(Read::Logits, |(_, kind)| kind);
        self.limits.max_row.min(Room::of(&self.limits).n_row(kind))
    }

    /// Ends a request in any state; `false` if it has ended already. Its pages are free for others at once, and keep
    /// its prefix until they are needed.
    pub fn end(&mut self, id: RequestId) -> bool {
        if !self.ids.contains(&id) {
            return false;
        }
        match (self.slot_of(id), self.waiting.iter().position(|w| w.request.id == id)) {
            (Some(seq), _) => self.leave(seq),
            (None, Some(at)) => self.leave_queue(at),
            (None, None) => {}
        }
        true
    }

    /// The next work; `None` if everything waits for a step to be read ([`Self::done`]), a token to be chosen
    /// ([`Self::choose`]) or a request.
    ///
    /// Changes and step must run on the device in this order, after all earlier ones.
    pub fn next(&mut self, budget: Budget) -> Option<Work> {
        let mut work = Work::default();
        self.name_pages(&mut work.before);
        self.change_choosers(&mut work.before);
        self.admit(&mut work.before);
        // If the request whose turn it is was preempted, continue with others.
        loop {
            let n_preempted = self.n_preempted;
            self.fill(budget, &mut work);
            if !work.step.rows.is_empty() || self.n_preempted == n_preempted {
                break;
            }
        }
        // Changes must reach the device even if no row can run.
        (!work.step.rows.is_empty() || !work.before.is_empty()).then_some(work)
    }

    /// Takes the outputs of the oldest unread step: the tokens chosen in all rows, in order, repetition by repetition.
    /// Steps without rows are not counted.
    ///
    /// # Panics
    /// If there is no such step, or the number of tokens differs.
    pub fn done(&mut self, chosen: &[u32]) -> Vec<Event> {
        let UnderWay { rows, repeat } = self.under_way.pop_front().expect("a step is under way");
        let (mut events, mut chosen) = (Vec::new(), chosen.iter());
        for _ in 0..repeat {
            let (mut n_logits, mut n_hidden) = (0, 0);
            for run in rows.chunk_by(|a, b| (a.seq, a.want) == (b.seq, b.want)) {
                let (sent, n_row) = (run[0], run.len());
                let (token, n_before) = match sent.want {
                    Want::Nothing => continue,
                    // One token per sequence in a step.
                    Want::Choose | Want::ChooseMasked => {
                        (Some(*chosen.next().expect("a token for every row that chooses")), &mut 0)
                    }
                    Want::Logits => (None, &mut n_logits),
                    Want::Hidden => (None, &mut n_hidden),
                };
                let index = *n_before;
                *n_before += n_row;
                // Skip requests that have ended or restarted since.
                let Some(r) = self.slots[sent.seq].as_mut().filter(|r| r.stay == sent.stay) else { continue };
                let id = r.request.id;
                match token {
                    None if let Some((rows, _)) = r.request.reads() => {
                        let (at, is_last) = (sent.pos, sent.pos + n_row == rows.end);
                        events.push(Event::Rows { id, at, index, n_row, is_last });
                        if is_last {
                            self.leave(sent.seq);
                        }
                    }
                    Some(token) => {
                        r.n_ahead -= 1;
                        events.push(Event::Token { id, token });
                        events.extend(self.push(sent.seq, token));
                    }
                    None => {
                        r.logits = Logits::Delivered;
                        events.push(Event::Logits { id, index, n_row });
                    }
                }
            }
        }
        assert!(chosen.next().is_none(), "as many tokens as rows that choose");
        events
    }

    /// Maximum number of tokens to draft for a request before its next row is sent; 0 if none.
    pub fn max_draft(&self, id: RequestId) -> usize {
        let running = self.slot_of(id).and_then(|seq| self.slots[seq].as_ref());
        let Some(r) = running
            .filter(|r| r.request.chooser == Chooser::Caller && r.logits == Logits::Unasked)
            .filter(|r| r.next_chooser.is_none())
            .filter(|r| r.n_left() == 1 && !r.is_prompt())
        else {
            return 0;
        };
        // The row after the last draft also chooses a token, and each accepted draft occupies the context.
        let n_token = r.request.max_tokens - r.n_chosen();
        let n_place = self.limits.n_ctx - r.n_sent;
        self.limits.max_draft.min(n_token.saturating_sub(1)).min(n_place.saturating_sub(1))
    }

    /// Lets another party choose the tokens of a request: the device, the device under masks, or the caller. It does so
    /// once all tokens that have been sent are known, from the [`Change::Start`] that says so; until then, nothing more
    /// is sent.
    ///
    /// Without effect for a request that has ended, or whose tokens nobody chooses.
    pub fn set_chooser(&mut self, id: RequestId, chooser: Chooser) {
        let waiting = self.waiting.iter_mut().find(|w| w.request.id == id);
        match (self.slots.iter_mut().flatten().find(|r| r.request.id == id), waiting) {
            (Some(r), _) if r.request.read().is_none() => {
                r.next_chooser = Some(chooser).filter(|next| *next != r.request.chooser);
            }
            (None, Some(w)) if w.request.read().is_none() => w.request.chooser = chooser,
            _ => {}
        }
    }

    /// Drafts the tokens that follow a request's last one. They run beside it in its next step as far as there is room,
    /// each with logits: [`Self::choose`] reports which are accepted. Tokens beyond [`Self::max_draft`] are ignored.
    pub fn draft(&mut self, id: RequestId, tokens: &[u32]) {
        let n = self.max_draft(id);
        if let Some(r) = self.slot_of(id).and_then(|seq| self.slots[seq].as_mut()) {
            r.draft = tokens.iter().take(n).copied().collect();
        }
    }

    /// Sets the caller's choice of a request's next token.
    ///
    /// Without effect for a request that has ended.
    ///
    /// # Panics
    /// If the request has no unused logits ([`Event::Logits`]).
    pub fn choose(&mut self, id: RequestId, token: u32) -> Chosen {
        if let Some(seq) = self.slot_of(id) {
            let Some(r) = self.slots[seq].as_mut() else { return Chosen::default() };
            assert_eq!(r.logits, Logits::Delivered, "a choice follows logits");
            let was_drafted = r.draft.pop_front() == Some(token);
            if !was_drafted {
                r.drop_draft();
                r.logits = Logits::Unasked;
            }
            return Chosen { end: self.push(seq, token), was_drafted };
        }
        // It was preempted meanwhile.
        let Some(at) = self.waiting.iter().position(|w| w.request.id == id) else { return Chosen::default() };
        let w = &mut self.waiting[at];
        assert!(std::mem::take(&mut w.waits_for_choice), "a choice follows logits");
        w.tokens.push(token);
        let end = end_of(&w.request, w.n_chosen(), w.tokens.len(), self.limits.n_ctx);
        if end.is_some() {
            self.leave_queue(at);
        }
        Chosen { end, was_drafted: false }
    }

    /// Tokens of a request that were sent to the device or were cached; `None` while it waits.
    pub fn n_sent(&self, id: RequestId) -> Option<usize> {
        self.slot_of(id).and_then(|seq| self.slots[seq].as_ref()).map(|r| r.n_sent)
    }

    /// The longest cached prefix of these tokens, without embeddings; its pages are held until [`Self::release`].
    pub fn hold(&mut self, group: u64, tokens: &[u32]) -> Found {
        let keys = keys(&[], tokens, 0..tokens.len());
        self.pool.find(group, &keys, tokens.len(), self.limits.n_snapshot.is_some())
    }

    /// Pages for a prefix that the caller writes, held until [`Self::release`], with a snapshot after them if the model
    /// needs one; `None` if there are too few pages, or if a snapshot is needed and the last page is not full.
    pub fn adopt(&mut self, group: u64, tokens: &[u32]) -> Option<Found> {
        let size = self.limits.page;
        let has_state = self.limits.n_snapshot.is_some();
        if tokens.len() > self.limits.n_ctx || (has_state && tokens.len() % size != 0) {
            return None;
        }
        let mut found = Found::default();
        for part in keys(&[], tokens, 0..tokens.len()).chunks(size) {
            let Some(page) = self.pool.take() else {
                self.release(&found);
                return None;
            };
            let parent = found.pages.last().copied();
            found.pages.push(self.pool.set_name(group, parent, page, part));
        }
        if has_state {
            found.snapshot = found.pages.last().and_then(|page| self.pool.add_snapshot(*page));
        }
        Some(found)
    }

    /// The same beside requests that run, and the pages to write: a page that stands for a known one, which may be in
    /// use, is free for others once the caller has written.
    pub fn adopt_beside(&mut self, group: u64, tokens: &[u32]) -> Option<(Found, Vec<u32>)> {
        let keys = keys(&[], tokens, 0..tokens.len());
        let known = self.pool.find(group, &keys, tokens.len(), false);
        // One page more stands for each known one for a moment.
        let n_new = tokens.len().div_ceil(self.limits.page) - known.pages.len();
        let has_room = self.pool.n_available() >= n_new + 2;
        let spare = if has_room { self.pool.take() } else { None };
        let found = spare.and_then(|_| self.adopt(group, tokens));
        let is_known = |page: &u32| known.pages.contains(page) || known.tail.is_some_and(|t| t.0 == *page);
        let adopted = found.map(|found| {
            let into = |page: &u32| spare.filter(|_| is_known(page)).unwrap_or(*page);
            let into = found.pages.iter().map(into).collect();
            (found, into)
        });
        spare.into_iter().for_each(|page| self.pool.release(page));
        self.release(&known);
        adopted
    }

    /// Forgets a prefix, except for pages in use and those that other prefixes go on from.
    pub fn erase(&mut self, group: u64, tokens: &[u32]) {
        self.pool.erase(group, &keys(&[], tokens, 0..tokens.len()));
    }

    /// Forgets all prefixes that no request uses; returns the number of their pages.
    pub fn flush(&mut self) -> usize {
        self.pool.flush()
    }

    /// A slot without a request.
    pub fn free_slot(&self) -> Option<u32> {
        self.slots.iter().position(Option::is_none).map(|seq| seq as u32)
    }

    /// Releases the result of [`Self::hold`] or [`Self::adopt`]; the prefix stays cached.
    pub fn release(&mut self, found: &Found) {
        let held = found.tail.map(|t| t.0).into_iter().chain(found.pages.iter().rev().copied());
        held.for_each(|p| self.pool.release(p));
    }

    /// Takes back all steps in flight, which the device dropped: it is as before the first of them, and their rows are
    /// sent again.
    ///
    /// If a request left since, or pages were named, others could find tokens that did not run: then everything
    /// restarts ([`Self::restart`]).
    pub fn undo(&mut self) {
        let steps = std::mem::take(&mut self.under_way);
        let mut is_known = true;
        for step in &steps {
            for sent in &step.rows {
                let Some(r) = self.slots[sent.seq].as_mut().filter(|r| r.stay == sent.stay) else {
                    is_known = false;
                    continue;
                };
                r.n_sent = r.n_sent.min(sent.pos);
                is_known &= r.n_named * self.limits.page <= r.n_sent;
                match sent.want {
                    Want::Choose | Want::ChooseMasked => r.n_ahead -= step.repeat as usize,
                    Want::Logits => r.logits = Logits::Unasked,
                    Want::Nothing | Want::Hidden => {}
                }
            }
        }
        if !is_known {
            self.restart();
        }
    }

    /// Restarts all requests, for a new device: nothing is in flight, no page holds anything.
    pub fn restart(&mut self) {
        self.under_way.clear();
        for seq in 0..self.slots.len() {
            if let Some(r) = self.slots[seq].take() {
                r.table.iter().rev().for_each(|p| self.pool.release(*p));
                self.waiting.push(r.into_waiting());
            }
        }
        self.pool.clear();
    }

    fn slot_of(&self, id: RequestId) -> Option<usize> {
        self.slots.iter().position(|r| r.as_ref().is_some_and(|r| r.request.id == id))
    }

    /// Appends a chosen token; ends the request if it was the last.
    fn push(&mut self, seq: usize, token: u32) -> Option<Event> {
        let r = self.slots[seq].as_mut()?;
        r.tokens.push(token);
        let event = end_of(&r.request, r.n_chosen(), r.tokens.len(), self.limits.n_ctx)?;
        self.leave(seq);
        Some(event)
    }

    /// Ends a waiting request.
    fn leave_queue(&mut self, at: usize) {
        let w = self.waiting.swap_remove(at);
        self.ids.remove(&w.request.id);
        self.shares.close(w.request.client);
    }

    /// Ends a running request and frees its slot; the known content of its pages stays cached.
    fn leave(&mut self, seq: usize) {
        let Some(mut r) = self.slots[seq].take() else { return };
        self.ids.remove(&r.request.id);
        self.shares.close(r.request.client);
        r.drop_draft();
        // No later step reads the slot's page table, so it need not be updated.
        r.name_pages(&mut self.pool, &mut Vec::new());
        r.name_tail(&mut self.pool, self.limits.n_snapshot.is_some());
        r.table.iter().rev().for_each(|p| self.pool.release(*p));
    }

    /// Lets other parties choose where that is due.
    fn change_choosers(&mut self, before: &mut Vec<Change>) {
        for (seq, r) in self.slots.iter_mut().enumerate() {
            let Some(r) = r.as_mut() else { continue };
            if r.changes_chooser() {
                let (id, chooser) = (r.request.id, r.request.chooser);
                let (n_drawn, n_cached) = (r.n_chosen(), r.n_sent);
                before.push(Change::Start { seq: seq as u32, id, chooser, n_drawn, n_cached });
            }
        }
    }

    /// Names pages that have filled with known tokens.
    fn name_pages(&mut self, before: &mut Vec<Change>) {
        for (seq, r) in self.slots.iter_mut().enumerate() {
            let Some(r) = r else { continue };
            let mut swapped = Vec::new();
            r.name_pages(&mut self.pool, &mut swapped);
            let change = |(first, page)| Change::Pages { seq: seq as u32, first, pages: vec![page] };
            before.extend(swapped.into_iter().map(change));
        }
    }
}

/// The end of a request that has as many tokens as it can: the requested number, or as many as the context holds, where
/// the last one is not run.
fn end_of(request: &Request, n_chosen: usize, n_token: usize, n_ctx: usize) -> Option<Event> {
    let id = request.id;
    match () {
        () if n_chosen >= request.max_tokens => Some(Event::Length { id }),
        () if n_token > n_ctx => Some(Event::Context { id }),
        () => None,
    }
}
