//! The scheduler: owns all requests, and says what runs next.

mod admit;
mod fill;
mod running;

use std::collections::{HashSet, VecDeque};

use crate::pool::{Found, Pool, PoolStats};
use crate::request::{Refused, Request, RequestId, Turn};
use crate::step::{Change, Step, Want};
use running::{Logits, Running, Waiting};

/// Sizes that a scheduler works within.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Sequences on the device.
    pub n_seq: usize,
    /// Tokens of a sequence at most.
    pub n_ctx: usize,
    /// Tokens of a page.
    pub page: usize,
    /// Pages of the pool.
    pub n_page: usize,
    /// Rows of a step at most.
    pub max_row: usize,
    /// Requests at most that a step gives outputs.
    pub max_want: usize,
    /// Rows of a step that give an output at most, those of guessed tokens included.
    pub max_output: usize,
    /// Tokens that the device may be ahead of the caller in one sequence; 0: every step is read before the next.
    pub max_ahead: usize,
    /// Requests that may wait.
    pub max_waiting: usize,
    /// Snapshots that the device has room for; `None` for models whose sequences have nothing but pages.
    pub n_snapshot: Option<usize>,
    /// Tokens that can be guessed at once ([`Scheduler::guess`]); 0 for models whose sequences cannot be set back.
    pub max_guess: usize,
}

/// Why a scheduler cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitsError {
    /// One context must fit, so that a request alone always ends.
    #[error("the KV cache has room for {found} tokens, but a context has {needed}: {} are missing", needed - found)]
    Pool {
        /// Tokens of the pool.
        found: usize,
        /// Tokens of a context.
        needed: usize,
    },
    /// A size that is 0.
    #[error("{what} is 0")]
    Zero {
        /// The size.
        what: &'static str,
    },
}

/// The size of the next step.
#[derive(Copy, Clone, Debug)]
pub struct Budget {
    /// Rows at most, within [`Limits::max_row`]: what the device does in the time that a step may take.
    pub rows: usize,
    /// Times that a step of chosen tokens may repeat.
    pub repeat: u32,
}

/// What runs next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Changes on the device before the step, in order.
    pub before: Vec<Change>,
    /// The step.
    pub step: Step,
}

/// The outcome of a step for a request.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The device chose a token.
    Token {
        /// The request.
        id: RequestId,
        /// The token.
        token: u32,
    },
    /// The logits are there: [`Scheduler::choose`] goes on.
    Logits {
        /// The request.
        id: RequestId,
        /// The first of its rows among the step's rows of logits, from 0.
        index: usize,
        /// Its rows: those behind the first follow the guessed tokens ([`Scheduler::guess`]), one each.
        n_row: usize,
    },
    /// It has as many tokens as were asked for, and is gone.
    Length {
        /// The request.
        id: RequestId,
    },
    /// The context is full, and it is gone.
    Context {
        /// The request.
        id: RequestId,
    },
}

/// The outcome of [`Scheduler::choose`].
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// The end of the request, if this was its last token.
    pub end: Option<Event>,
    /// The token was guessed: the next row of logits follows it, and is to be chosen from as well.
    pub was_guessed: bool,
}

/// Counts of a scheduler.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Requests that wait.
    pub n_waiting: usize,
    /// Requests that have a sequence.
    pub n_running: usize,
    /// Steps that were given and not yet read.
    pub n_under_way: usize,
    /// Requests that gave their sequence up for others so far, and began again later.
    pub n_preempted: u64,
    /// Pages.
    pub pool: PoolStats,
}

/// A row of a step under way that gives an output.
#[derive(Copy, Clone, Debug)]
struct Sent {
    seq: usize,
    stay: u64,
    want: Want,
}

/// A step under way.
#[derive(Debug)]
struct UnderWay {
    rows: Vec<Sent>,
    repeat: u32,
}

/// Owns waiting and running requests, and says what runs next. Pure: no device, no clock.
#[derive(Debug)]
pub struct Scheduler {
    limits: Limits,
    pool: Pool,
    waiting: Vec<Waiting>,
    /// The sequences by slot.
    slots: Vec<Option<Running>>,
    under_way: VecDeque<UnderWay>,
    /// All requests that have not ended.
    ids: HashSet<RequestId>,
    /// Counts submissions, stays of requests in slots, and steps.
    n_submitted: u64,
    n_stay: u64,
    n_step: u64,
    n_preempted: u64,
}

impl Scheduler {
    /// A scheduler without requests.
    ///
    /// # Errors
    /// [`LimitsError`] if a request that is alone could not go on to the end of its context.
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
            n_submitted: 0,
            n_stay: 0,
            n_step: 0,
            n_preempted: 0,
            limits,
        })
    }

    /// The sizes it works within.
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

    /// Takes a request, and gives its turn.
    ///
    /// # Errors
    /// [`Refused`]; the others are not affected.
    pub fn submit(&mut self, request: Request) -> Result<Turn, Refused> {
        self.check(&request)?;
        if self.waiting.len() >= self.limits.max_waiting {
            return Err(Refused::Queue { limit: self.limits.max_waiting });
        }
        let turn = Turn(self.n_submitted + 1);
        self.go_on(request, turn)?;
        self.n_submitted += 1;
        Ok(turn)
    }

    /// Takes a request that has ended and goes on from another prompt, as after its context was shifted. It keeps its turn,
    /// and a full queue does not refuse it.
    ///
    /// # Errors
    /// [`Refused`]; the others are not affected.
    pub fn go_on(&mut self, request: Request, turn: Turn) -> Result<(), Refused> {
        self.check(&request)?;
        if !self.ids.insert(request.id) {
            return Err(Refused::Id { id: request.id });
        }
        let (tokens, order) = (request.prompt.clone(), turn.0);
        self.waiting.push(Waiting { request, tokens, order, waits_for_choice: false });
        Ok(())
    }

    /// Refuses a prompt that can never be served.
    fn check(&self, request: &Request) -> Result<(), Refused> {
        let (found, limit) = (request.prompt.len(), self.limits.n_ctx);
        match found {
            0 => Err(Refused::Empty),
            _ if found > limit => Err(Refused::Context { found, limit }),
            _ => Ok(()),
        }
    }

    /// Ends a request, whether it waits, reads its prompt or answers; `false` if it has ended already. Its pages are free
    /// for others at once, and keep its prefix until they are needed.
    pub fn end(&mut self, id: RequestId) -> bool {
        if !self.ids.remove(&id) {
            return false;
        }
        self.waiting.retain(|w| w.request.id != id);
        if let Some(seq) = self.slot_of(id) {
            self.leave(seq);
        }
        true
    }

    /// What runs next; `None` if nothing can before an earlier step is read ([`Self::done`]), a token is chosen
    /// ([`Self::choose`]) or a request comes.
    ///
    /// The changes are to be made and the step is to run on the device in this order, after all earlier ones.
    pub fn next(&mut self, budget: Budget) -> Option<Work> {
        let mut work = Work::default();
        self.name_pages(&mut work.before);
        self.admit(&mut work.before);
        // If the one whose turn it is had to give way, others go on.
        loop {
            let n_preempted = self.n_preempted;
            self.fill(budget, &mut work);
            if !work.step.rows.is_empty() || self.n_preempted == n_preempted {
                break;
            }
        }
        // Changes belong to the device even if no row can run.
        (!work.step.rows.is_empty() || !work.before.is_empty()).then_some(work)
    }

    /// Takes the outputs of the oldest step that was not read yet: the tokens that were chosen, of all rows in order, then
    /// of all rows of the next repetition. Steps without rows have none and are not counted.
    ///
    /// # Panics
    /// If there is no such step, or it has another number of tokens.
    pub fn done(&mut self, chosen: &[u32]) -> Vec<Event> {
        let UnderWay { rows, repeat } = self.under_way.pop_front().expect("a step is under way");
        let (mut events, mut chosen) = (Vec::new(), chosen.iter());
        for _ in 0..repeat {
            let mut index = 0;
            for run in rows.chunk_by(|a, b| (a.seq, a.want) == (b.seq, b.want)) {
                let (sent, n_row) = (run[0], run.len());
                let token = match sent.want {
                    Want::Nothing | Want::Hidden => continue,
                    // One of a sequence in a step.
                    Want::Choose => Some(*chosen.next().expect("a token for every row that chooses")),
                    Want::Logits => None,
                };
                let first = index;
                index += if token.is_none() { n_row } else { 0 };
                // Requests that have ended or begun again since do not want it any more.
                let Some(r) = self.slots[sent.seq].as_mut().filter(|r| r.stay == sent.stay) else { continue };
                let id = r.request.id;
                match token {
                    Some(token) => {
                        r.n_ahead -= 1;
                        events.push(Event::Token { id, token });
                        events.extend(self.push(sent.seq, token));
                    }
                    None => {
                        r.logits = Logits::Delivered;
                        events.push(Event::Logits { id, index: first, n_row });
                    }
                }
            }
        }
        assert!(chosen.next().is_none(), "as many tokens as rows that choose");
        events
    }

    /// Tokens that can be guessed for a request before its next row is sent; 0 if there can be none.
    pub fn max_guess(&self, id: RequestId) -> usize {
        let running = self.slot_of(id).and_then(|seq| self.slots[seq].as_ref());
        let Some(r) = running
            .filter(|r| r.request.logits && r.logits == Logits::Unasked && r.n_left() == 1 && !r.is_prompt())
        else {
            return 0;
        };
        // A token is chosen behind the last guess, too, and every guess that is right takes a place in the context.
        let n_token = r.request.max_tokens - r.n_chosen();
        let n_place = self.limits.n_ctx - r.n_sent;
        self.limits.max_guess.min(n_token.saturating_sub(1)).min(n_place.saturating_sub(1))
    }

    /// Guesses the tokens that follow a request's last one. They run beside it in its next step, as far as there is room, and
    /// each has logits: [`Self::choose`] says which were right. Beyond [`Self::max_guess`] they are ignored.
    pub fn guess(&mut self, id: RequestId, tokens: &[u32]) {
        let n = self.max_guess(id);
        if let Some(r) = self.slot_of(id).and_then(|seq| self.slots[seq].as_mut()) {
            r.guess = tokens.iter().take(n).copied().collect();
        }
    }

    /// The caller's choice of a request's next token, from logits.
    ///
    /// Without effect for a request that has ended.
    ///
    /// # Panics
    /// If the request's logits were not given ([`Event::Logits`]) since the last choice, or all of them were used.
    pub fn choose(&mut self, id: RequestId, token: u32) -> Chosen {
        if let Some(seq) = self.slot_of(id) {
            let Some(r) = self.slots[seq].as_mut() else { return Chosen::default() };
            assert_eq!(r.logits, Logits::Delivered, "a choice follows logits");
            let was_guessed = r.guess.pop_front() == Some(token);
            if !was_guessed {
                r.drop_guess();
                r.logits = Logits::Unasked;
            }
            return Chosen { end: self.push(seq, token), was_guessed };
        }
        // It was preempted since.
        let Some(at) = self.waiting.iter().position(|w| w.request.id == id) else { return Chosen::default() };
        let w = &mut self.waiting[at];
        assert!(std::mem::take(&mut w.waits_for_choice), "a choice follows logits");
        w.tokens.push(token);
        let end = end_of(&w.request, w.n_chosen(), w.tokens.len(), self.limits.n_ctx);
        if end.is_some() {
            self.waiting.swap_remove(at);
            self.ids.remove(&id);
        }
        Chosen { end, was_guessed: false }
    }

    /// Tokens of a request that were sent to the device or need not run; `None` while it waits.
    pub fn n_sent(&self, id: RequestId) -> Option<usize> {
        self.slot_of(id).and_then(|seq| self.slots[seq].as_ref()).map(|r| r.n_sent)
    }

    /// The longest prefix of these tokens that is in pages, which are held until [`Self::release`].
    pub fn hold(&mut self, group: u64, tokens: &[u32]) -> Found {
        self.pool.find(group, tokens, tokens.len(), self.limits.n_snapshot.is_some())
    }

    /// Pages for a prefix that the caller writes, held until [`Self::release`], and a snapshot behind them for models that
    /// need one; `None` if there are too few pages, or the last is not full where there are snapshots.
    pub fn adopt(&mut self, group: u64, tokens: &[u32]) -> Option<Found> {
        let size = self.limits.page;
        let has_state = self.limits.n_snapshot.is_some();
        if tokens.len() > self.limits.n_ctx || (has_state && tokens.len() % size != 0) {
            return None;
        }
        let mut found = Found::default();
        for part in tokens.chunks(size) {
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

    /// Gives back what [`Self::hold`] or [`Self::adopt`] gave; the prefix stays known.
    pub fn release(&mut self, found: &Found) {
        let held = found.tail.map(|t| t.0).into_iter().chain(found.pages.iter().rev().copied());
        held.for_each(|p| self.pool.release(p));
    }

    /// Begins again with all requests, as on a new device: nothing is under way, no page holds anything.
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

    /// Appends a chosen token; ends the request if it can have no more.
    fn push(&mut self, seq: usize, token: u32) -> Option<Event> {
        let r = self.slots[seq].as_mut()?;
        r.tokens.push(token);
        let event = end_of(&r.request, r.n_chosen(), r.tokens.len(), self.limits.n_ctx)?;
        self.ids.remove(&r.request.id);
        self.leave(seq);
        Some(event)
    }

    /// Frees a slot; what its pages hold for certain stays known.
    fn leave(&mut self, seq: usize) {
        let Some(mut r) = self.slots[seq].take() else { return };
        r.drop_guess();
        // Nobody reads the slot's page table any more, so changes of it need not be told.
        r.name_pages(&mut self.pool, &mut Vec::new());
        r.name_tail(&mut self.pool, self.limits.n_snapshot.is_some());
        r.table.iter().rev().for_each(|p| self.pool.release(*p));
    }

    /// Names pages that have become full of known tokens.
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

/// The end of a request that has as many tokens as it can: as were asked for, or as the context has room for, of which the
/// last is not run.
fn end_of(request: &Request, n_chosen: usize, n_token: usize, n_ctx: usize) -> Option<Event> {
    let id = request.id;
    match () {
        () if n_chosen >= request.max_tokens => Some(Event::Length { id }),
        () if n_token > n_ctx => Some(Event::Context { id }),
        () => None,
    }
}
