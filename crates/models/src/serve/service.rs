//! The driver's side: one scheduler, one executor, and one entry per request.

use std::collections::VecDeque;
use std::sync::Arc;

use chaski_schedule::{
    self as schedule, Budget, Change, Chooser, Chosen, Input, Read, RequestId, Row, Scheduler, Step, Usage,
    Want,
};
use chaski_text::SampleError;
use rustc_hash::FxHashMap;
use web_time::Instant;

use super::drafter::Drafter;
use super::entry::{Entry, Plan, Served};
use super::error::ServeError;
use super::groups::Groups;
use super::pace::Pace;
use super::reader::Reader;
use super::shared::{Load, Shared};
use crate::error::ModelError;
use crate::exec::{Executor, Outputs};
use crate::run::{Finish, Speculation};

/// Consecutive device losses without a token that end all open requests: some request may be the cause.
const MAX_LOST: u32 = 2;

/// Rows of a step that are left to prompts, where the number of its rows is given.
const PROMPT_SHARE: usize = 64;

/// Maximum number of consecutive steps that are undone; then their requests fail.
const MAX_UNDONE: u32 = 2;

/// A submitted, unread step.
pub(super) struct UnderWay {
    /// Repetitions; `None` if it cannot repeat.
    repeat: Option<u32>,
    /// Requests whose rows wait for masks, in order.
    masked: Vec<RequestId>,
    /// Rows whose hidden states are read.
    n_hidden: usize,
    /// Its kind, and its number of rows.
    #[cfg(not(target_arch = "wasm32"))]
    about: (super::steps::StepKind, usize),
}

/// Serves requests, step by step.
pub(super) struct Service<E> {
    pub(super) executor: E,
    pub(super) scheduler: Scheduler,
    pub(super) shared: Arc<Shared>,
    pub(super) drafter: Drafter,
    /// Rows of a step, if not as the executor has them.
    pub(super) step_tokens: Option<usize>,
    pub(super) served: FxHashMap<RequestId, Served>,
    /// Prompts whose rows are read.
    readers: Vec<Reader>,
    pub(super) groups: Groups,
    /// Submitted, unread steps.
    pub(super) under_way: VecDeque<UnderWay>,
    /// The last request that ended: group, LoRA scales, and tokens.
    last: (u64, Vec<f32>, Vec<u32>),
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) slots: super::slots::Slots,
    pace: Pace,
    n_read: u64,
    n_recovered: u64,
    /// Submitted steps, and their rows with an output.
    n_step: u64,
    n_row: u64,
    /// Device losses since the last token.
    n_lost: u32,
    /// Steps undone since the last one that was read.
    n_undone: u32,
}

impl<E: Executor> Service<E> {
    pub(super) fn new(executor: E, scheduler: Scheduler, shared: Arc<Shared>) -> Self {
        let service = Service {
            executor,
            scheduler,
            shared,
            drafter: Drafter::default(),
            step_tokens: None,
            served: FxHashMap::default(),
            readers: Vec::new(),
            groups: Groups::default(),
            under_way: VecDeque::new(),
            last: Default::default(),
            #[cfg(not(target_arch = "wasm32"))]
            slots: super::slots::Slots::default(),
            pace: Pace::new(),
            n_read: 0,
            n_recovered: 0,
            n_step: 0,
            n_row: 0,
            n_lost: 0,
            n_undone: 0,
        };
        service.publish();
        service
    }

    /// True if there is nothing to do until a request arrives.
    pub(super) fn is_idle(&self) -> bool {
        self.served.is_empty() && self.readers.is_empty() && self.under_way.is_empty()
    }

    pub(super) fn into_executor(self) -> E {
        self.executor
    }

    pub(super) fn executor(&self) -> &E {
        &self.executor
    }

    /// Executor, scheduler, and the last request.
    pub(super) fn parts(&mut self) -> (&mut E, &mut Scheduler, (u64, Vec<f32>, Vec<u32>)) {
        (&mut self.executor, &mut self.scheduler, self.last.clone())
    }

    /// Default group, and its LoRA scales.
    pub(super) fn default_group(&mut self) -> Result<(u64, Vec<f32>), ModelError> {
        let lora = self.executor.lora(None)?;
        Ok((self.groups.of(&lora), lora))
    }

    /// The executor for another use, which overwrites the requests' state.
    pub(super) fn take_over(&mut self) -> &mut E {
        self.under_way.clear();
        self.executor.forget();
        self.scheduler.restart();
        self.publish();
        &mut self.executor
    }

    /// Accepts a request.
    pub(super) fn take(&mut self, entry: Entry) {
        if let Some(finish) = entry.writer.finish {
            return entry.finish(finish);
        }
        let lora = match self.executor.lora(entry.writer.options.lora.as_deref()) {
            Ok(lora) => lora,
            Err(error) => return entry.fail(error.into()),
        };
        let on_cpu = match entry.writer.needs_logits() {
            None => self.executor.can_choose(&entry.sampler).err(),
            why => why,
        };
        // Before its first step it becomes known whether its tokens are drafted.
        let plan = Plan { group: self.groups.of(&lora), lora, on_cpu, drafts: false };
        match self.scheduler.submit(Served::request_of(&entry, &plan)) {
            Ok(turn) => drop(self.served.insert(entry.id, Served::new(entry, plan, turn))),
            Err(refused) => entry.fail(refused.into()),
        }
    }

    /// Accepts a prompt whose rows are read.
    pub(super) fn read(&mut self, mut reader: Reader) {
        let request = match self.executor.lora(reader.lora.as_deref()) {
            Ok(lora) => {
                let group = self.groups.of(&lora);
                reader.lora = Some(lora);
                reader.request(group)
            }
            Err(error) => return reader.end(Err(error.into())),
        };
        match self.scheduler.submit(request) {
            Ok(_) => self.readers.push(reader),
            Err(refused) => reader.end(Err(refused.into())),
        }
    }

    /// Cancels an abandoned request.
    pub(super) fn cancel(&mut self, id: RequestId) {
        if !self.end_reader(id, Err(ServeError::Stopped)) {
            self.remove(id);
        }
    }

    /// Keeps the device busy, and distributes the outputs of the oldest step.
    ///
    /// # Errors
    /// Device errors, if the device is lost for good.
    pub(super) async fn turn(&mut self) -> Result<(), ServeError> {
        match self.work().await {
            Ok(()) => Ok(()),
            Err(error) if self.executor.undo(&error) => {
                self.undone(error.into());
                Ok(())
            }
            Err(error) => self.recover(error.into()).await,
        }
    }

    async fn work(&mut self) -> Result<(), ModelError> {
        if !self.is_pausing() {
            self.draft().await?;
        }
        // Each step decides whether another can be submitted before it is read.
        while self.mask()? && self.has_room() && self.submit()? {}
        self.publish();
        let Some((repeat, n_hidden)) = self.under_way.front().map(|step| (step.repeat, step.n_hidden)) else {
            // A single request can always proceed, and those that sample from logits have done so.
            assert!(self.is_idle(), "requests without a step that they wait for");
            return Ok(());
        };
        let outputs = self.executor.read().await?;
        self.n_undone = 0;
        let step = self.under_way.pop_front();
        let time = self.pace.read(repeat, Instant::now());
        self.record(step, time);
        self.hand_out(outputs, n_hidden);
        Ok(())
    }

    /// Tokens per draft while as many requests run as do now, or are about to.
    fn n_draft(&self) -> usize {
        let (usage, limits) = (self.scheduler.usage(), self.scheduler.limits());
        let n_running = (usage.n_running + usage.n_waiting).min(limits.n_seq);
        Speculation::n_max_beside(limits.max_draft, n_running)
    }

    /// Drafts the next tokens of requests that speculate, while few run.
    async fn draft(&mut self) -> Result<(), ModelError> {
        let n_draft = self.n_draft();
        for (id, served) in &mut self.served {
            let Some(speculation) = served.speculation() else { continue };
            let most = n_draft.min(speculation.n_max);
            if let Some(chooser) = served.set_drafts(most >= speculation.n_min.max(1)) {
                self.scheduler.set_chooser(*id, chooser);
            }
            let n = self.scheduler.max_draft(*id).min(most);
            if n > 0 {
                let tokens = served.tokens();
                // On the heap, so that the futures around it stay small: few requests draft.
                let draft = Box::pin(self.drafter.draft(*id, speculation, &tokens, n));
                self.scheduler.draft(*id, &draft.await?);
            }
        }
        Ok(())
    }

    /// Provides the masks of the newest step once all earlier ones have been read; the device runs it meanwhile.
    /// Returns false if it still waits.
    fn mask(&mut self) -> Result<bool, ModelError> {
        let n_under_way = self.under_way.len();
        let Some(step) = self.under_way.back_mut().filter(|step| !step.masked.is_empty()) else {
            return Ok(true);
        };
        if n_under_way > 1 {
            return Ok(false);
        }
        let masked = std::mem::take(&mut step.masked);
        let n_word = self.executor.n_vocab().div_ceil(32);
        // The masks of requests that have ended do not matter.
        let mut masks = vec![u32::MAX; masked.len() * n_word];
        for (id, words) in masked.into_iter().zip(masks.chunks_exact_mut(n_word)) {
            let failed = self.served.get_mut(&id).and_then(|served| served.mask(words).err());
            failed.into_iter().for_each(|error| self.fail(id, error.into()));
        }
        self.executor.mask(&masks)?;
        Ok(true)
    }

    /// True if another step may be submitted now.
    fn has_room(&self) -> bool {
        !self.is_pausing() && self.under_way.len() < self.executor.max_under_way().max(1)
    }

    /// Submits the next step; `false` if there is none before another is read.
    fn submit(&mut self) -> Result<bool, ModelError> {
        let asked = self.served.values().map(Served::interval).filter(|n| *n > 0).min();
        let usage = self.scheduler.usage();
        let is_alone = usage.n_running + usage.n_waiting <= 1;
        let rows = self.step_tokens.unwrap_or_else(|| self.executor.rows(is_alone));
        let prompt = self.step_tokens.map_or(0, |_| PROMPT_SHARE);
        let budget = Budget { rows, prompt, repeat: self.pace.repeat(asked) };
        let Some(work) = self.scheduler.next(budget) else { return Ok(false) };
        for change in &work.before {
            self.change(change)?;
        }
        if work.step.rows.is_empty() {
            return Ok(true);
        }
        self.executor.submit(&work.step)?;
        let n_repeat = if repeats(&work.step) { u64::from(work.step.repeat.max(1)) } else { 1 };
        self.n_step += n_repeat;
        let is_answer = |row: &&Row| !matches!(row.want, Want::Nothing | Want::Hidden);
        self.n_row += n_repeat * work.step.rows.iter().filter(is_answer).count() as u64;
        for (id, served) in &mut self.served {
            served.sent(self.scheduler.n_sent(*id));
        }
        if self.under_way.is_empty() {
            self.pace.begin(Instant::now());
        }
        let repeat = repeats(&work.step).then_some(work.step.repeat);
        let n_hidden = work.step.rows.iter().filter(|row| row.want == Want::Hidden).count();
        self.under_way.push_back(UnderWay {
            repeat,
            masked: work.masked,
            n_hidden,
            #[cfg(not(target_arch = "wasm32"))]
            about: (super::steps::StepKind::of(&work.step), work.step.rows.len()),
        });
        Ok(true)
    }

    fn change(&mut self, change: &Change) -> Result<(), ModelError> {
        let Change::Start { seq, id, chooser, n_drawn, n_cached } = change else {
            return self.executor.change(change);
        };
        if let Some(nth) = self.reader(*id) {
            self.readers[nth].sink.started();
            return self.executor.start(self.readers[nth].start(*seq));
        }
        let served = self.served.get_mut(id).expect("a request that has a slot has not ended");
        served.started(*n_cached);
        #[cfg(not(target_arch = "wasm32"))]
        served.place(*seq);
        let tokens = served.said();
        debug_assert!(tokens.len() >= *n_drawn);
        self.executor.start(served.start(*seq, *chooser, &tokens))
    }

    /// Distributes the outputs of a step.
    fn hand_out(&mut self, outputs: Outputs, n_hidden: usize) {
        let Outputs { chosen, mut logits, hidden } = outputs;
        self.n_read += 1;
        let n_vocab = self.executor.n_vocab();
        let events = self.scheduler.done(&chosen);
        if !events.is_empty() {
            self.n_lost = 0;
        }
        // Answers that others than the step continued: what it has for them does not count.
        let mut closed: Vec<RequestId> = Vec::new();
        for event in events {
            if closed.contains(&event.id()) {
                continue;
            }
            match event {
                schedule::Event::Token { id, token } if token as usize >= n_vocab => {
                    self.fail(id, ModelError::from(SampleError::NothingLeft).into());
                }
                schedule::Event::Token { id, token } => {
                    let tokenizer = &self.shared.tokenizer;
                    match self.served.get_mut(&id).and_then(|served| served.advance(tokenizer, token).err()) {
                        Some(error) => self.fail(id, error.into()),
                        None => self.accept(id, token, None),
                    }
                    closed.extend(self.close_reasoning(id).then_some(id));
                }
                schedule::Event::Logits { id, index, n_row } => {
                    if let Some(served) = self.served.get_mut(&id) {
                        served.drafted(n_row - 1);
                    }
                    self.choose(id, logits[index * n_vocab..][..n_row * n_vocab].chunks_exact_mut(n_vocab));
                }
                schedule::Event::Rows { id, at, index, n_row, is_last } => {
                    let Some(nth) = self.reader(id) else { continue };
                    // All rows with such an output are as wide as each other.
                    let (rows, width) = match self.readers[nth].chooser {
                        Chooser::Nobody { read: Read::Logits, .. } => (&logits, n_vocab),
                        _ => (&hidden, hidden.len() / n_hidden.max(1)),
                    };
                    for (i, row) in rows[index * width..].chunks_exact(width).take(n_row).enumerate() {
                        self.readers[nth].sink.row(at + i, row);
                    }
                    if is_last {
                        self.end_reader(id, Ok(()));
                    }
                }
                schedule::Event::Length { .. } | schedule::Event::Context { .. } => self.at_end(event),
            }
        }
    }

    /// Handles the end of a request by the scheduler.
    fn at_end(&mut self, event: schedule::Event) {
        let (id, finish) = match event {
            schedule::Event::Length { id } => (id, Finish::Length),
            schedule::Event::Context { id } => (id, Finish::Context),
            schedule::Event::Token { .. } | schedule::Event::Logits { .. } | schedule::Event::Rows { .. } => {
                return;
            }
        };
        // Its last token may have ended the answer already.
        let Some(served) = self.served.get_mut(&id) else { return };
        let shifted = if finish == Finish::Context { served.shift() } else { None };
        match shifted.map(|(request, turn)| self.scheduler.go_on(request, turn)) {
            Some(Ok(())) => {}
            Some(Err(refused)) => self.fail(id, refused.into()),
            None => {
                served.end(finish);
                self.finish(id, finish);
            }
        }
    }

    /// Samples the next token of a request from the first row of logits, and further ones as far as drafts are
    /// accepted.
    fn choose<'a>(&mut self, id: RequestId, rows: impl Iterator<Item = &'a mut [f32]>) {
        for (i, logits) in rows.enumerate() {
            let Some(served) = self.served.get_mut(&id) else { return };
            served.accepted(usize::from(i > 0));
            match served.choose(&self.shared.tokenizer, logits) {
                Err(error) => return self.fail(id, error.into()),
                Ok((token, logprobs)) => {
                    let Chosen { end, was_drafted } = self.scheduler.choose(id, token);
                    self.accept(id, token, logprobs);
                    if self.close_reasoning(id) {
                        return;
                    }
                    end.into_iter().for_each(|event| self.at_end(event));
                    if !was_drafted {
                        return;
                    }
                }
            }
        }
    }

    pub(super) fn accept(&mut self, id: RequestId, token: u32, logprobs: Option<chaski_text::Logprobs>) {
        let Some(served) = self.served.get_mut(&id) else { return };
        match served.accept(&self.shared.tokenizer, token, logprobs, self.n_read) {
            Some(finish) => self.finish(id, finish),
            None => {
                if let Some(chooser) = served.opened() {
                    self.scheduler.set_chooser(id, chooser);
                }
            }
        }
    }

    pub(super) fn finish(&mut self, id: RequestId, finish: Finish) {
        if let Some(entry) = self.remove(id) {
            entry.finish(finish);
        }
    }

    /// Index of a prompt whose rows are read.
    fn reader(&self, id: RequestId) -> Option<usize> {
        self.readers.iter().position(|reader| reader.id == id)
    }

    /// Ends it, if it is such a prompt.
    fn end_reader(&mut self, id: RequestId, result: Result<(), ServeError>) -> bool {
        let Some(nth) = self.reader(id) else { return false };
        let reader = self.readers.swap_remove(nth);
        self.scheduler.end(id);
        self.publish();
        reader.end(result);
        true
    }

    pub(super) fn fail(&mut self, id: RequestId, error: ServeError) {
        if self.reader(id).is_some() {
            self.end_reader(id, Err(error));
            return;
        }
        if let Some(entry) = self.remove(id) {
            entry.fail(error);
        }
    }

    fn remove(&mut self, id: RequestId) -> Option<Entry> {
        let served = self.served.remove(&id)?;
        self.last = served.session();
        #[cfg(not(target_arch = "wasm32"))]
        self.leave_slot(&served);
        self.scheduler.end(id);
        // The load is up to date when the last event arrives.
        self.publish();
        Some(served.into_entry())
    }

    /// Sends the rows of undone steps again; after several attempts, their requests fail, and their prefixes stay
    /// cached.
    fn undone(&mut self, error: Arc<ModelError>) {
        self.under_way.clear();
        self.scheduler.undo();
        self.n_undone += 1;
        if self.n_undone >= MAX_UNDONE {
            self.n_undone = 0;
            self.fail_all(&error);
        }
        self.publish();
    }

    fn fail_all(&mut self, error: &Arc<ModelError>) {
        let readers = self.readers.iter().map(|reader| reader.id);
        let ids: Vec<RequestId> = self.served.keys().copied().chain(readers).collect();
        ids.into_iter().for_each(|id| self.fail(id, ServeError::Model(error.clone())));
    }

    /// Restarts all requests on a new device.
    async fn recover(&mut self, error: Arc<ModelError>) -> Result<(), ServeError> {
        self.under_way.clear();
        // It was on the same device.
        self.drafter = Drafter::default();
        self.executor.recover(error.clone()).await.map_err(ServeError::Model)?;
        self.scheduler.restart();
        self.n_recovered += 1;
        self.n_lost += 1;
        if self.n_lost >= MAX_LOST {
            self.n_lost = 0;
            self.fail_all(&error);
        }
        self.publish();
        Ok(())
    }

    /// Keeps the time of a step that was read.
    #[cfg(not(target_arch = "wasm32"))]
    fn record(&self, step: Option<UnderWay>, time: std::time::Duration) {
        let Some(UnderWay { about: (kind, n_row), repeat, .. }) = step else { return };
        let n_repeat = repeat.unwrap_or(1).max(1);
        self.shared.add_step(super::steps::StepRecord { kind, n_row, n_repeat, time: time / n_repeat });
    }

    /// No reasoning has a limit in browsers.
    #[cfg(target_arch = "wasm32")]
    fn close_reasoning(&mut self, _: RequestId) -> bool {
        false
    }

    /// Nobody measures in browsers.
    #[cfg(target_arch = "wasm32")]
    fn record(&self, _: Option<UnderWay>, _: std::time::Duration) {}

    /// Nothing pauses in browsers.
    #[cfg(target_arch = "wasm32")]
    fn is_pausing(&self) -> bool {
        false
    }

    /// Publishes the load to handles.
    pub(super) fn publish(&self) {
        let Usage { n_running, n_preempted, pool: pages, .. } = self.scheduler.usage();
        self.shared.set_load(Load {
            n_waiting: 0,
            n_running,
            n_preempted,
            n_recovered: self.n_recovered,
            n_step: self.n_step,
            n_row: self.n_row,
            page: self.scheduler.limits().page,
            pages,
        });
    }
}

/// True if all rows of a step can repeat.
fn repeats(step: &Step) -> bool {
    step.rows.iter().all(|row| row.input == Input::Chosen && row.want == Want::Choose)
}
