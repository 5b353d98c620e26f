//! A random schedule: requests that come, are cancelled and undone, with checks after every step.

use std::collections::HashMap;

use chaski_schedule::{
    Budget, Change, Chooser, Embeddings, Event, Input, Limits, Read, Request, RequestId, Scheduler, Want,
    Work,
};

use crate::device::{self, ALL, Device, answer_alone, is_constrained, mask_of, next_token, seen_of};
use crate::random::Random;

/// Number of schedules by default.
pub(crate) const N_SCHEDULE: u64 = 100_000;
/// End-of-text token.
const STOP: u32 = 0;

fn limits(r: &mut Random) -> Limits {
    let page = *r.one_of(&[1, 2, 4, 8]);
    let n_ctx = r.within(4, 40);
    Limits {
        n_seq: r.within(1, 5),
        n_ctx,
        page,
        n_page: n_ctx.div_ceil(page) + r.within(0, 20),
        max_row: r.within(1, 24),
        max_want: r.within(1, 6),
        max_output: 0,
        max_hidden: 0,
        whole: false,
        // Drawn without a change to what the others draw.
        n_device: 1 + (n_ctx + page) % 3,
        max_ahead: r.within(0, 6),
        max_waiting: 1000,
        n_snapshot: if r.within(0, 3) == 0 { Some(r.within(0, 4)) } else { None },
        max_draft: 0,
    }
}

/// Most tokens of a prompt that runs whole: all may be read, and the room for hidden states is a multiple of that for
/// outputs.
fn most_whole(limits: &Limits) -> usize {
    let n_hidden = limits.max_hidden / limits.max_output * limits.max_output;
    limits.n_ctx.min(limits.max_row).min(n_hidden)
}

/// Prompts that often share a prefix.
fn prompt(r: &mut Random, n_ctx: usize) -> Vec<u32> {
    let mut tokens: Vec<u32> = (0..r.within(0, n_ctx)).map(|i| (i % 3) as u32 + 1).collect();
    tokens.extend((0..r.within(1, 4)).map(|_| r.within(1, 9) as u32));
    tokens.truncate(n_ctx);
    tokens
}

/// A request and the known part of its answer.
struct Asked {
    request: Request,
    answer: Vec<u32>,
    /// Rows that were read.
    n_read: usize,
    n_end: usize,
    cancelled: bool,
}

/// Counts of the hard situations: a test that never reaches them proves nothing.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) n_preempted: u64,
    pub(crate) n_shared: u64,
    pub(crate) n_copied: u64,
    pub(crate) n_restored: u64,
    pub(crate) n_repeated: u64,
    pub(crate) n_mixed: u64,
    pub(crate) n_drafted: u64,
    pub(crate) n_right: u64,
    pub(crate) n_piece: u64,
    pub(crate) n_masked_ahead: u64,
    pub(crate) n_image: u64,
    pub(crate) n_image_shared: u64,
    pub(crate) n_read: u64,
    pub(crate) n_read_again: u64,
    pub(crate) n_read_beside: u64,
    /// Steps with several groups of LoRA scales.
    pub(crate) n_groups: u64,
    pub(crate) n_changed: u64,
    /// Prompts that ran whole beside others, and those that exceeded the budget.
    pub(crate) n_whole_beside: u64,
    pub(crate) n_whole_over: u64,
    pub(crate) n_undone: u64,
}

/// The parties that may choose the tokens of a request.
fn choosers(id: RequestId) -> &'static [Chooser] {
    match is_constrained(id) {
        true => &[Chooser::Masked, Chooser::Masked, Chooser::Caller],
        false => &[Chooser::Device, Chooser::Device, Chooser::Masked, Chooser::Caller],
    }
}

struct Trial {
    seen: Seen,
    images: Vec<Embeddings>,
    scheduler: Scheduler,
    device: Device,
    asked: HashMap<RequestId, Asked>,
    /// Outputs of unread steps.
    outputs: std::collections::VecDeque<device::Outputs>,
    /// A step after these that waits for masks.
    waits: Option<Work>,
    /// The device before the last step.
    before: Option<Device>,
}

/// Images of 1 to 6 rows; some share values, which does not make them the same.
fn images(r: &mut Random) -> Vec<Embeddings> {
    let mut image = |_| {
        let n = r.within(1, 6);
        let values = (0..n).map(|i| (r.within(0, 1) * 10 + i) as f32).collect();
        let rows = Embeddings::new(values, 1).expect("rows of one value");
        match r.within(0, 2) {
            0 => rows,
            _ => {
                let near = |i: usize| (i / 2) as u32;
                rows.at((0..n).map(|i| [0, near(i), near(n - i - 1)]).collect()).expect("positions of rows")
            }
        }
    };
    (0..4).map(&mut image).collect()
}

impl Trial {
    /// Up to two images in a prompt of `n` tokens.
    fn images(&mut self, r: &mut Random, n: usize) -> Vec<(usize, Embeddings)> {
        let mut placed = Vec::new();
        let mut at = r.within(0, 3);
        for _ in 0..r.within(0, 4).saturating_sub(2) {
            let image = r.one_of(&self.images).clone();
            let end = at + image.len();
            if end <= n {
                placed.push((at, image));
                self.seen.n_image += 1;
            }
            at = end + r.within(0, 2);
        }
        placed
    }

    fn submit(&mut self, r: &mut Random) {
        let id = RequestId(self.asked.len() as u64);
        let limits = self.scheduler.limits().clone();
        let most = if limits.whole { most_whole(&limits) } else { limits.n_ctx };
        let prompt = prompt(r, most);
        let embeddings = self.images(r, prompt.len());
        let nobody = Chooser::Nobody {
            first: r.within(0, 2 * prompt.len()).saturating_sub(prompt.len()),
            end: *r.one_of(&[
                usize::MAX,
                usize::MAX,
                usize::MAX,
                usize::MAX,
                usize::MAX,
                0,
                prompt.len() / 2,
            ]),
            read: if limits.whole {
                Read::Hidden
            } else {
                *r.one_of(&[Read::Hidden, Read::Hidden, Read::Logits])
            },
        };
        let choosers = choosers(id);
        let chooser = if limits.whole || r.within(0, 4) == 0 { nobody } else { *r.one_of(choosers) };
        let request = Request {
            id,
            prompt,
            embeddings,
            max_tokens: r.within(1, 20),
            chooser,
            group: *r.one_of(&[0, 0, 0, 0, 1, 2]),
            salt: *r.one_of(&[0, 0, 0, 0, 7]),
            priority: r.within(0, 3) as i32 / 2,
            client: r.within(0, 2) as u64,
        };
        self.scheduler.submit(request.clone()).expect("a request that fits");
        self.asked.insert(id, Asked { request, answer: Vec::new(), n_read: 0, n_end: 0, cancelled: false });
    }

    fn cancel(&mut self, r: &mut Random) {
        let id = RequestId(r.within(0, self.asked.len()) as u64);
        let Some(a) = self.asked.get_mut(&id) else { return };
        let was_open = a.n_end == 0 && !a.cancelled;
        a.cancelled |= was_open;
        assert_eq!(self.scheduler.end(id), was_open);
    }

    /// Lets somebody else choose the tokens of a request, perhaps.
    fn change_chooser(&mut self, r: &mut Random) {
        let id = RequestId(r.within(0, self.asked.len()) as u64);
        self.scheduler.set_chooser(id, *r.one_of(choosers(id)));
    }

    /// Drafts the next tokens of a request, some of them right.
    fn draft(&mut self, r: &mut Random) {
        let id = RequestId(r.within(0, self.asked.len()) as u64);
        let n_ctx = self.scheduler.limits().n_ctx;
        let most = self.scheduler.max_draft(id);
        let Some(a) = self.asked.get(&id).filter(|_| most > 0) else { return };
        let mut draft = answer_alone(&a.request, n_ctx, u32::MAX).split_off(a.answer.len());
        draft.truncate(r.within(1, 7));
        if r.within(0, 2) == 0 {
            let wrong = r.within(0, draft.len() - 1);
            draft[wrong] = 11 - draft[wrong];
        }
        self.scheduler.draft(id, &draft);
    }

    /// Provides the masks of a step once all previous tokens are known; returns false if a step still waits.
    fn mask(&mut self) -> bool {
        let Some(work) = self.waits.take_if(|_| self.outputs.is_empty()) else { return self.waits.is_none() };
        let rows = work.step.rows.iter().filter(|row| row.want == Want::ChooseMasked);
        let mut masks = Vec::new();
        for (row, id) in rows.zip(&work.masked) {
            let a = &self.asked[id];
            let known = seen_of(&a.request, &a.answer);
            let is_open = a.n_end == 0 && !a.cancelled;
            assert!(!is_open || row.pos as usize + 1 == known.len(), "a mask follows all tokens before");
            masks.push(if is_open { mask_of(&a.request, &known) } else { ALL });
            self.seen.n_masked_ahead += u64::from(is_open && row.input == Input::Chosen);
        }
        self.outputs.push_back(self.device.run(&work.step, &masks));
        true
    }

    /// Submitted, unread steps.
    fn n_under_way(&self) -> usize {
        self.outputs.len() + usize::from(self.waits.is_some())
    }

    /// Runs a step; returns false if there was none.
    fn step(&mut self, r: &mut Random) -> bool {
        if !self.mask() {
            return false;
        }
        (0..2).for_each(|_| self.draft(r));
        if r.within(0, 5) == 0 {
            self.change_chooser(r);
        }
        let prompt = if r.within(0, 2) == 0 { r.within(1, 10) } else { 0 };
        let budget = Budget { rows: r.within(1, 30), prompt, repeat: r.within(1, 5) as u32 };
        let limits = self.scheduler.limits().clone();
        let Some(work) = self.scheduler.next(budget) else { return false };
        if limits.whole {
            self.check_whole(&work, budget);
        } else {
            assert!(work.step.rows.len() <= limits.max_row.min(budget.rows + budget.prompt));
        }
        let n_hidden = work.step.rows.iter().filter(|r| r.want == Want::Hidden).count();
        let n_want = work.step.rows.iter().filter(|r| r.want != Want::Nothing).count();
        // Hidden states take their share of the room that all outputs have.
        let share = n_hidden * limits.max_output;
        assert!((n_want - n_hidden) * limits.max_hidden + share <= limits.max_output * limits.max_hidden);
        self.seen.n_read_beside += u64::from(n_hidden > 0 && n_want > n_hidden);
        let decodes = work.step.rows.chunk_by(|a, b| a.seq == b.seq).filter(|run| run.len() == 1).count();
        let prompts = work.step.rows.chunk_by(|a, b| a.seq == b.seq).filter(|run| run.len() > 1).count();
        self.seen.n_mixed += u64::from(decodes > 0 && prompts > 1);
        self.seen.n_repeated += u64::from(work.step.repeat > 1);
        self.seen.n_piece += u64::from(work.step.n_planned as usize > work.step.rows.len());
        assert!(
            (work.step.rows.len()..=limits.max_row).contains(&(work.step.n_planned as usize))
                || work.step.rows.is_empty()
        );
        for change in &work.before {
            match change {
                Change::Start { seq, id, n_cached, n_drawn, .. } => {
                    let was_here = self.device.request_in(*seq) == Some(*id);
                    self.seen.n_changed += u64::from(was_here && *n_drawn > 0);
                    self.seen.n_shared += u64::from(*n_cached > 0);
                    let first = self.asked[id].request.embeddings.first();
                    self.seen.n_image_shared += u64::from(first.is_some_and(|(at, _)| at < n_cached));
                }
                Change::Copy { .. } => self.seen.n_copied += 1,
                Change::Restore { .. } => self.seen.n_restored += 1,
                Change::Pages { .. } | Change::Keep { .. } => {}
            }
            self.device.change(change, |id| self.asked[&id].request.clone());
        }
        if work.step.rows.is_empty() {
            return true;
        }
        self.before = (self.n_under_way() == 0).then(|| self.device.clone());
        self.seen.n_groups += u64::from(self.device.groups_of(&work.step).len() > 1);
        if work.masked.is_empty() {
            self.outputs.push_back(self.device.run(&work.step, &[]));
        } else {
            assert_eq!(work.step.repeat, 1);
            self.waits = Some(work);
        }
        true
    }

    /// Prompts that run whole are not divided. The first of a step may exceed the budget, alone.
    fn check_whole(&mut self, work: &Work, budget: Budget) {
        let starts = work.before.iter().filter_map(|change| match change {
            Change::Start { seq, id, .. } => Some((*seq, *id)),
            _ => None,
        });
        let starts: HashMap<u32, RequestId> = starts.collect();
        let runs: Vec<_> = work.step.rows.chunk_by(|a, b| a.seq == b.seq).collect();
        for run in &runs {
            let id = starts.get(&run[0].seq).copied().or_else(|| self.device.request_in(run[0].seq));
            let prompt = &self.asked[&id.expect("it began")].request.prompt;
            let pos: Vec<usize> = run.iter().map(|row| row.pos as usize).collect();
            assert_eq!(pos, (0..prompt.len()).collect::<Vec<_>>(), "a prompt runs at once");
        }
        let n_row = work.step.rows.len();
        assert!(n_row <= self.scheduler.limits().max_row && (n_row <= budget.rows || runs.len() == 1));
        self.seen.n_whole_beside += u64::from(runs.len() > 1);
        self.seen.n_whole_over += u64::from(n_row > budget.rows);
    }

    /// A step that the device drops, perhaps after one of its requests is gone.
    fn undo(&mut self, r: &mut Random) {
        self.before = None;
        if self.n_under_way() > 0 || !self.step(r) {
            return;
        }
        let Some(device) = self.before.take() else { return };
        if r.within(0, 4) == 0 {
            self.cancel(r);
        }
        self.device = device;
        (self.waits, self.outputs) = Default::default();
        self.scheduler.undo();
        self.seen.n_undone += 1;
    }

    fn read(&mut self) -> bool {
        self.mask();
        let Some(outputs) = self.outputs.pop_front() else { return false };
        for event in self.scheduler.done(&outputs.chosen) {
            self.take(event, &outputs);
        }
        true
    }

    fn take(&mut self, event: Event, outputs: &device::Outputs) {
        match event {
            Event::Token { id, token } => self.accept(id, token),
            Event::Logits { id, index, n_row } => {
                self.seen.n_drafted += n_row as u64 - 1;
                for row in &outputs.logits[index..index + n_row] {
                    let a = &self.asked[&id];
                    let token = next_token(&a.request, row, a.answer.len());
                    self.accept(id, token);
                    let chosen = self.scheduler.choose(id, token);
                    if let Some(end) = chosen.end {
                        self.take(end, outputs);
                    }
                    if !chosen.was_drafted || self.asked[&id].n_end > 0 {
                        break;
                    }
                    self.seen.n_right += 1;
                }
            }
            Event::Rows { id, at, index, n_row, is_last } => self.rows(id, at, is_last, |request, read| {
                let rows = if read == Read::Hidden { &outputs.hidden } else { &outputs.logits };
                for (i, row) in rows[index..index + n_row].iter().enumerate() {
                    assert_eq!(*row, seen_of(request, &[])[..=at + i], "a row has seen all before it");
                }
                n_row
            }),
            Event::Length { id } => {
                let a = self.asked.get_mut(&id).expect("it was asked");
                if a.answer.last() != Some(&STOP) {
                    assert_eq!(a.answer.len(), a.request.max_tokens);
                    a.n_end += 1;
                }
            }
            Event::Context { id } => {
                let n_ctx = self.scheduler.limits().n_ctx;
                let a = self.asked.get_mut(&id).expect("it was asked");
                if a.answer.last() != Some(&STOP) {
                    assert_eq!(a.answer.len() + a.request.prompt.len(), n_ctx + 1);
                    a.n_end += 1;
                }
            }
        }
    }

    /// Accepts rows of a prompt, of which `check` returns the number.
    fn rows(&mut self, id: RequestId, at: usize, is_last: bool, check: impl FnOnce(&Request, Read) -> usize) {
        let a = self.asked.get_mut(&id).expect("it was asked");
        let Chooser::Nobody { first, end, read } = a.request.chooser else { panic!("{id:?} reads no rows") };
        let first = first.min(a.request.prompt.len() - 1);
        assert!(!a.cancelled && a.n_end == 0, "{id:?} has ended");
        self.seen.n_read_again += u64::from(at == first && a.n_read > 0);
        a.n_read = if at == first { 0 } else { a.n_read };
        assert_eq!(at, first + a.n_read, "{id:?}: rows come in order");
        a.n_read += check(&a.request, read);
        self.seen.n_read += 1;
        assert_eq!(is_last, first + a.n_read == end.clamp(first + 1, a.request.prompt.len()));
        a.n_end += usize::from(is_last);
    }

    /// Accepts a token of an answer; some tokens end it.
    fn accept(&mut self, id: RequestId, token: u32) {
        let a = self.asked.get_mut(&id).expect("it was asked");
        assert!(!a.cancelled, "{id:?} was cancelled");
        // Tokens after the end arrive if the device runs ahead.
        if a.n_end > 0 {
            return;
        }
        a.answer.push(token);
        if token == STOP {
            a.n_end += 1;
            self.scheduler.end(id);
        }
    }

    fn check(&self) {
        let n_ctx = self.scheduler.limits().n_ctx;
        for (id, a) in &self.asked {
            if matches!(a.request.chooser, Chooser::Nobody { .. }) {
                assert!(a.answer.is_empty() && (a.cancelled || a.n_end == 1), "{id:?}");
                continue;
            }
            let alone = answer_alone(&a.request, n_ctx, STOP);
            if a.cancelled {
                assert!(alone.starts_with(&a.answer), "{id:?}: {:?} is not {alone:?}", a.answer);
            } else {
                assert_eq!((a.n_end, &a.answer), (1, &alone), "{id:?}");
            }
        }
        let usage = self.scheduler.usage();
        assert_eq!((usage.n_waiting, usage.n_running, usage.pool.n_used), (0, 0, 0), "{usage:?}");
    }
}

/// A schedule.
pub(crate) fn run(seed: u64) -> Seen {
    let r = &mut Random::new(seed);
    let mut limits = limits(r);
    limits.max_output = limits.max_want + r.within(0, 5);
    limits.max_hidden = limits.max_output + r.within(0, 9);
    limits.max_draft = if limits.n_snapshot.is_none() { r.within(0, 5) } else { 0 };
    if seed >= N_SCHEDULE {
        // Encoders have neither state nor drafts.
        (limits.whole, limits.n_snapshot, limits.max_draft) = (true, None, 0);
    }
    let device = Device::new(&limits);
    let scheduler = Scheduler::new(limits).expect("room for a context");
    let mut t = Trial {
        seen: Seen::default(),
        images: images(r),
        scheduler,
        device,
        asked: HashMap::new(),
        outputs: Default::default(),
        waits: None,
        before: None,
    };
    for _ in 0..r.within(5, 40) {
        match r.within(0, 9) {
            0 | 1 => t.submit(r),
            9 => t.undo(r),
            2 if !t.asked.is_empty() => t.cancel(r),
            3 | 4 => drop(t.read()),
            5 if r.within(0, 7) == 0 => {
                (t.waits, t.outputs) = Default::default();
                t.scheduler.restart();
                t.device = Device::new(t.scheduler.limits());
            }
            _ if t.n_under_way() < 3 => drop(t.step(r)),
            _ => {}
        }
    }
    // Everything ends, in about as many steps as there are tokens: preempted requests repeat theirs.
    let n_token: usize = t.asked.values().map(|a| a.request.prompt.len() + a.request.max_tokens).sum();
    for _ in 0..200 + 20 * n_token {
        let ran = t.n_under_way() < 3 && t.step(r);
        if !ran && !t.read() {
            break;
        }
    }
    t.check();
    Seen { n_preempted: t.scheduler.usage().n_preempted, ..t.seen }
}
