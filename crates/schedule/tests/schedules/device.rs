//! A fake device: its KV cache holds tokens, and its next token is a hash of the tokens that the page table leads to.

use std::collections::{BTreeSet, HashMap};

use chaski_schedule::{Change, Chooser, Input, Limits, Request, RequestId, Step, Want};

use crate::random::mix;

/// The tokens of a step.
pub(crate) struct Outputs {
    pub(crate) chosen: Vec<u32>,
    /// All tokens visible to each row of logits, and to each hidden state.
    pub(crate) logits: Vec<Vec<u32>>,
    pub(crate) hidden: Vec<Vec<u32>>,
}

#[derive(Clone, Default)]
struct Sequence {
    table: HashMap<usize, usize>,
    request: Option<Request>,
    chooser: Option<Chooser>,
    n_drawn: usize,
    chosen: Option<u32>,
    /// Tokens that the recurrent state has processed.
    state: Vec<u32>,
}

#[derive(Clone)]
pub(crate) struct Device {
    page: usize,
    has_state: bool,
    pages: Vec<Vec<Option<u32>>>,
    seqs: Vec<Sequence>,
    snapshots: Vec<Vec<u32>>,
}

impl Device {
    pub(crate) fn new(limits: &Limits) -> Self {
        Device {
            page: limits.page,
            has_state: limits.n_snapshot.is_some(),
            pages: vec![vec![None; limits.page]; limits.n_page],
            seqs: vec![Sequence::default(); limits.n_seq],
            snapshots: vec![Vec::new(); limits.n_snapshot.unwrap_or(0)],
        }
    }

    pub(crate) fn change(&mut self, change: &Change, request: impl Fn(RequestId) -> Request) {
        match change {
            Change::Start { seq, id, chooser, n_drawn, .. } => {
                let s = &mut self.seqs[*seq as usize];
                (s.request, s.chooser) = (Some(request(*id)), Some(*chooser));
                (s.n_drawn, s.chosen) = (*n_drawn, None);
            }
            Change::Pages { seq, first, pages } => {
                for (entry, page) in (*first as usize..).zip(pages) {
                    self.seqs[*seq as usize].table.insert(entry, *page as usize);
                }
            }
            Change::Copy { from, to } => self.pages[*to as usize] = self.pages[*from as usize].clone(),
            Change::Keep { seq, snapshot, n_token } => {
                assert_eq!(self.seqs[*seq as usize].state.len(), *n_token as usize);
                self.snapshots[*snapshot as usize] = self.seqs[*seq as usize].state.clone();
            }
            Change::Restore { seq, snapshot, n_token } => {
                let state = self.snapshots[*snapshot as usize].clone();
                assert_eq!(state.len(), *n_token as usize);
                self.seqs[*seq as usize].state = state;
            }
        }
    }

    /// The request that a slot was last set up for.
    pub(crate) fn request_in(&self, seq: u32) -> Option<RequestId> {
        self.seqs[seq as usize].request.as_ref().map(|request| request.id)
    }

    /// The groups of a step's rows, whose LoRA scales they run with.
    pub(crate) fn groups_of(&self, step: &Step) -> BTreeSet<u64> {
        step.rows.iter().map(|row| self.group_in(row.seq)).collect()
    }

    fn group_in(&self, seq: u32) -> u64 {
        self.seqs[seq as usize].request.as_ref().expect("it began").group
    }

    /// Runs a step, with a mask for each row that chooses under one.
    pub(crate) fn run(&mut self, step: &Step, masks: &[u32]) -> Outputs {
        let mut masks = masks.iter();
        let mut out = Outputs { chosen: Vec::new(), logits: Vec::new(), hidden: Vec::new() };
        for i in 0..step.repeat as usize {
            // Rows run together: all are written before any is read.
            let mut seen = Vec::new();
            for (at, row) in step.rows.iter().enumerate() {
                let s = &self.seqs[row.seq as usize];
                let token = match row.input {
                    Input::Embedding(at) => row_symbol(step.embeddings[at as usize]),
                    Input::Token(t) => t,
                    Input::Chosen => s.chosen.expect("a token was chosen before"),
                };
                let follows = at > 0 && step.rows[at - 1].seq == row.seq;
                assert!(!follows || step.rows[at - 1].pos + 1 == row.pos, "rows in order");
                let at = row.components.map(|c| c.map(|p| p + i as u32));
                let token = symbol(token, at, self.group_in(row.seq));
                self.write(row.seq as usize, row.pos as usize + i, token);
            }
            for row in &step.rows {
                seen.push(self.read(row.seq as usize, row.pos as usize + i));
            }
            for (row, seen) in step.rows.iter().zip(seen) {
                let s = &mut self.seqs[row.seq as usize];
                let is_due = match (row.want, s.chooser.expect("it began")) {
                    (Want::Nothing, _) => true,
                    (Want::Choose, by) => by == Chooser::Device,
                    (Want::ChooseMasked, by) => by == Chooser::Masked,
                    (Want::Logits, by) => matches!(by, Chooser::Caller | Chooser::Nobody { .. }),
                    (Want::Hidden, by) => matches!(by, Chooser::Nobody { .. }),
                };
                assert!(is_due, "the output is for the party that chooses");
                match row.want {
                    Want::Nothing => {}
                    Want::Choose | Want::ChooseMasked => {
                        let mask = if row.want == Want::Choose { Some(&ALL) } else { masks.next() };
                        let mask = *mask.expect("a mask for every row that has one");
                        let token = pick(s.request.as_ref().expect("it began"), &seen, s.n_drawn, mask);
                        s.n_drawn += 1;
                        s.chosen = Some(token);
                        out.chosen.push(token);
                    }
                    Want::Logits => out.logits.push(seen),
                    Want::Hidden => out.hidden.push(seen),
                }
            }
        }
        assert!(masks.next().is_none(), "as many masks as rows that have one");
        out
    }

    fn write(&mut self, seq: usize, pos: usize, token: u32) {
        let s = &mut self.seqs[seq];
        if self.has_state {
            if pos == 0 {
                s.state.clear();
            }
            assert_eq!(s.state.len(), pos, "the state goes on where it was");
            s.state.push(token);
        }
        let page = s.table[&(pos / self.page)];
        self.pages[page][pos % self.page] = Some(token);
    }

    /// The tokens up to a position, read through the page table.
    fn read(&self, seq: usize, pos: usize) -> Vec<u32> {
        let s = &self.seqs[seq];
        let at = |p: usize| self.pages[s.table[&(p / self.page)]][p % self.page].expect("it was written");
        let seen: Vec<u32> = (0..=pos).map(at).collect();
        if self.has_state {
            assert_eq!(s.state[..=pos], seen, "the state has seen what the pages hold");
        }
        seen
    }
}

/// A row of one value as the cache holds it.
fn row_symbol(value: f32) -> u32 {
    1000 + value as u32
}

/// A token or row at a position as the cache holds it, which depends on the LoRA scales that it was computed with.
fn symbol(token: u32, at: Option<[u32; 3]>, group: u64) -> u32 {
    let token = at.map_or(token, |at| hash(3, &[&at[..], &[token]].concat()) as u32);
    if group == 0 { token } else { hash(5, &[token, group as u32]) as u32 }
}

/// The cache's content after a prompt with its images, and the next position; `None` while positions are plain.
fn seen_with_position(request: &Request) -> (Vec<u32>, Option<u32>) {
    let (mut seen, mut next, mut is_plain) = (Vec::new(), 0, true);
    while seen.len() < request.prompt.len() {
        let pos = seen.len();
        match request.embeddings.iter().find(|(at, _)| *at == pos) {
            Some((_, rows)) => {
                is_plain &= rows.offsets().is_empty();
                for i in 0..rows.len() {
                    let at = rows.offsets().get(i).map(|o| o.map(|o| next + o));
                    let at = at.or((!is_plain).then_some([next + i as u32; 3]));
                    seen.push(symbol(row_symbol(rows.row(i)[0]), at, request.group));
                }
                let span = rows.offsets().iter().flatten().max().map_or(rows.len() as u32, |most| most + 1);
                next += span;
            }
            None => {
                let at = (!is_plain).then_some([next; 3]);
                seen.push(symbol(request.prompt[pos], at, request.group));
                next += 1;
            }
        }
    }
    (seen, (!is_plain).then_some(next))
}

/// The cache's content after a prompt and part of its answer.
pub(crate) fn seen_of(request: &Request, answer: &[u32]) -> Vec<u32> {
    let (mut seen, next) = seen_with_position(request);
    let follow = |(i, token): (u32, &u32)| symbol(*token, next.map(|next| [next + i; 3]), request.group);
    seen.extend((0..).zip(answer).map(follow));
    seen
}

const N_VOCAB: u32 = 12;
/// The mask that allows all tokens.
pub(crate) const ALL: u32 = (1 << N_VOCAB) - 1;

fn hash(seed: u64, tokens: &[u32]) -> u64 {
    tokens.iter().fold(seed, |h, t| mix(h ^ u64::from(*t)))
}

/// True for requests with a constraint, which nobody chooses for without a mask.
pub(crate) fn is_constrained(id: RequestId) -> bool {
    id.0 % 4 == 1
}

/// The tokens that may follow `seen` in the answer of a request.
pub(crate) fn mask_of(request: &Request, seen: &[u32]) -> u32 {
    let some = hash(7, seen) as u32 & ALL;
    if is_constrained(request.id) && some != 0 { some } else { ALL }
}

/// The allowed token after `seen`, for draw `n_drawn` of a request.
fn pick(request: &Request, seen: &[u32], n_drawn: usize, mask: u32) -> u32 {
    assert_eq!(seen.len(), request.prompt.len() + n_drawn, "a draw for every token");
    let draw = hash(mix(request.id.0 ^ request.group << 32), seen) % u64::from(mask.count_ones());
    (0..N_VOCAB).filter(|t| mask >> t & 1 == 1).nth(draw as usize).expect("some token is allowed")
}

/// The token after `seen`, for draw `n_drawn` of a request.
pub(crate) fn next_token(request: &Request, seen: &[u32], n_drawn: usize) -> u32 {
    pick(request, seen, n_drawn, mask_of(request, seen))
}

/// The answer of a request that runs alone.
pub(crate) fn answer_alone(request: &Request, n_ctx: usize, stop: u32) -> Vec<u32> {
    let ((mut seen, next), mut answer) = (seen_with_position(request), Vec::new());
    while answer.len() < request.max_tokens && seen.len() <= n_ctx && answer.last() != Some(&stop) {
        let token = next_token(request, &seen, answer.len());
        seen.push(symbol(token, next.map(|next| [next + answer.len() as u32; 3]), request.group));
        answer.push(token);
    }
    answer
}
