//! Steps: tokens of one or several sequences that run together. Each column may have an output: the next token, sampled
//! on the device, its logits, or its final hidden state. Choices under masks wait for these (`masks.rs`).
//!
//! A step is submitted in pieces if it would take longer than [`Pace`](super::pace::Pace) allows. Pieces that exceed
//! the queue when the step is submitted follow when it is read. With offloaded experts, which need readbacks during a
//! step, the whole step runs when it is read; over several devices all of it is sent at once (`over.rs`). None of this
//! changes a bit of the results: a piece runs by the plan of the whole step.

use std::ops::Range;

use chaski_kernels::step::{COLUMN, HEADER};
use web_time::Instant;

use super::model::GpuModel;
use super::picks::{Picks, PiecePicks};
use super::ready::{Body, Devices, Recorder};
use super::running::Run;
use super::sent::{LastChosen, STAGING, SampleMode, Sent, StepOptions};
use super::tape::Tape;
use crate::error::RuntimeError;
use crate::plan::Columns;
use crate::platform::promise;
use crate::step::{Column, ColumnOutput, StepOutputs, check_runs, check_texts};

/// Maximum number of steps in flight: one runs, and one waits for it.
const UNDER_WAY: usize = 2;

impl GpuModel {
    /// Maximum number of choosing columns per step.
    pub fn n_choice(&self) -> u32 {
        self.n_choice
    }

    /// Maximum number of columns per step: a chunk; fewer with several sequences with recurrent state.
    pub fn step_cols(&self) -> u32 {
        let mixed = self.has_state() && self.config.n_seq > 1;
        if mixed { self.all_cols } else { self.config.max_col }
    }

    /// Maximum number of repetitions of a step.
    pub fn max_repeat(&self) -> u32 {
        self.config.ring / STAGING as u32
    }

    /// Columns of a step that the device runs in a fraction of a second, as far as known, in whole tiles: in several
    /// submissions ([`Self::set_prompt_bound`]) if no other request waits for it, otherwise in one. With offloaded
    /// experts a full step, since each may need all experts.
    pub fn prompt_piece(&self, is_alone: bool) -> u32 {
        let most = self.step_cols() as usize;
        let n = match (self.expert_reads(), is_alone) {
            (Some(_), _) => most,
            (None, true) => self.pace.n_col(most),
            (None, false) => self.pace.n_col_beside(most),
        };
        n as u32
    }

    /// Devices that work on different steps at once, of which the CPU is one if it has layers.
    pub fn n_turn(&self) -> usize {
        let n_device = self.n_device() + usize::from(self.first.is_some());
        if self.lanes.is_some() { n_device } else { 1 }
    }

    /// Maximum number of steps in flight: two, or one more than there are devices, of which the CPU is one if it has
    /// layers.
    pub fn max_steps(&self) -> usize {
        match &self.lanes {
            Some(_) => (self.n_turn() + 1).min(STAGING),
            None => UNDER_WAY,
        }
    }

    /// True if another step can be submitted before the oldest is read: [`Self::max_steps`] may be in flight, but only
    /// one whose logits or hidden states are read, or that is incompletely submitted.
    pub fn takes_step(&self) -> bool {
        let is_quick = |s: &Sent| s.picks.n_read() == 0 && !s.is_left();
        self.steps.0.len() < self.max_steps() && self.steps.0.iter().all(is_quick)
    }

    /// Number of unread steps.
    pub fn n_step(&self) -> usize {
        self.steps.0.len()
    }

    /// True if a step in flight has unsubmitted columns.
    pub(super) fn has_step_left(&self) -> bool {
        self.steps.0.iter().any(Sent::is_left)
    }

    /// Submits columns with their outputs, without waiting. Columns of one sequence are contiguous and in order of
    /// position, and only the last may choose. A repeated step has one column per sequence, and all choose.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`] if a limit is exceeded; [`RuntimeError::State`]; device errors.
    pub fn send_step(
        &mut self,
        columns: &[Column],
        outputs: &[ColumnOutput],
        options: StepOptions,
    ) -> Result<(), RuntimeError> {
        if let Some(lanes) = &self.lanes {
            lanes.check()?;
        }
        let n_planned = options.n_planned.max(columns.len() as u32);
        let options = StepOptions { repeat: options.repeat.max(1), n_planned, ..options };
        let picks = Picks::of(outputs);
        self.check_step(columns, options, &picks)?;
        if self.is_encoder() {
            check_texts(columns)?;
        }
        if self.has_state() {
            check_runs(columns, |seq| self.state_at[seq as usize])?;
        }
        let mut step = Sent {
            columns: columns.iter().map(|c| self.with_read_token(*c)).collect(),
            picks,
            options,
            n_sent: 0,
            id: self.n_step_sent,
            n_piece: 0,
            sent_at: self.lanes.is_some().then(|| (Instant::now(), self.steps.0.is_empty())),
            masks: None,
            held: None,
            ring: None,
            slot: self.next_staging,
            chosen: Vec::new(),
            index: None,
            done: None,
        };
        step.ends().for_each(|(seq, end)| self.state_at[seq] = Some(end));
        for (column, _) in columns.iter().zip(outputs).filter(|(_, output)| output.is_choice()) {
            let at = &mut self.ring_at[column.seq as usize];
            step.chosen.push((column.seq, *at));
            *at = at.wrapping_add(options.repeat);
        }
        self.next_staging = (self.next_staging + 1) % STAGING;
        self.n_step_sent += 1;
        self.send_pieces(&mut step)?;
        self.note_chosen(&step);
        self.steps.0.push_back(step);
        Ok(())
    }

    /// Sends pieces of a step while there is room, up to one whose choices wait for masks.
    pub(super) fn send_pieces(&mut self, step: &mut Sent) -> Result<(), RuntimeError> {
        if self.lanes.is_some() {
            return self.send_over(step);
        }
        let is_alone = step.columns.len() == 1;
        let can = |step: &Sent| step.is_left() && step.held.is_none();
        while self.streams.is_none() && can(step) && (is_alone || self.pace.has_room(&self.gpu)) {
            self.send_piece(step)?;
        }
        Ok(())
    }

    fn check_step(&self, columns: &[Column], o: StepOptions, picks: &Picks) -> Result<(), RuntimeError> {
        let is_mixed = columns.iter().any(|c| c.seq != columns[0].seq);
        let max_col = if is_mixed { self.step_cols() } else { self.config.max_col };
        let most = |of: fn(&Column) -> u32| columns.iter().map(of).max().map_or(0, |n| u64::from(n) + 1);
        let c = &self.config;
        let n_step = self.steps.0.len() as u64 + 1;
        let n_read = picks.words_read(self.ld_logits, self.hidden.1);
        // The next mask depends on the chosen token.
        let max_repeat = if picks.n_masked() > 0 { 1 } else { self.max_repeat() };
        for (what, found, limit) in [
            ("steps under way", n_step, self.max_steps() as u64),
            ("steps before it that wait for masks", self.steps.n_waiting(), 0),
            ("tokens of a step", o.n_planned.into(), max_col.into()),
            ("sequences", most(|c| c.seq), c.n_seq.into()),
            ("tokens of the sequence", most(|c| c.pos) + u64::from(o.repeat) - 1, c.n_ctx.into()),
            ("tokens that choose the next", picks.n_choice().into(), self.n_choice.into()),
            ("tokens with logits", picks.n_head().into(), self.all_cols.into()),
            ("values that are read back", n_read, self.buffers.logits_staging.size() / 4),
            ("tokens in flight", o.repeat.into(), max_repeat.into()),
        ] {
            if found > limit {
                return Err(RuntimeError::Limit { what, found, limit });
            }
        }
        self.row_input().check(columns, self.n_row, c.n_ctx)
    }

    /// Submits the next piece of a step, in as many submissions as their time limit wants.
    fn send_piece(&mut self, step: &mut Sent) -> Result<(), RuntimeError> {
        let left = step.columns.len() - step.n_sent;
        let is_whole = step.options.repeat > 1 || self.is_encoder();
        let n = if is_whole { left } else { self.pace.n_col(left) };
        let piece = step.n_sent..step.n_sent + n;
        let (picks, columns) = self.place(step, piece.clone());
        let start = Instant::now();
        let waits = picks.n_masked > 0 && step.masks.is_none();
        let mut tape = Tape::new(self.recorder());
        self.record_take(&mut tape, &step.columns[piece.clone()]);
        for i in 0..step.options.repeat {
            let body = self.body_of(step, i);
            for (cut, part) in self.ready.body(body).chunks(self.per_submit(body, n as u32)).enumerate() {
                if cut > 0 {
                    tape.cut();
                }
                tape.run(part, columns.later(i));
            }
            self.record_head(&mut tape, step, (n as u32, i), &picks);
            if !waits {
                self.record_outputs(&mut tape, step, &picks);
            }
        }
        step.n_sent = piece.end;
        step.held = waits.then_some(picks);
        self.record_readback(&mut tape, step);
        let index = tape.submit();
        if let Some(index) = index.clone().filter(|_| n > 1 && step.options.repeat == 1) {
            self.pace.sent(&self.gpu, n, start, index);
        }
        self.submitted(step, index);
        self.gpu.check()
    }

    /// Runs all stages of a body except for the end of the last, which goes with the outputs; returns its first
    /// dispatch.
    async fn stream(&mut self, body: Body, columns: Columns) -> Result<usize, RuntimeError> {
        let per_submit = self.per_submit(body, columns.n);
        let Some(streams) = &mut self.streams else { return Ok(0) };
        let main = Recorder { gpu: &self.gpu, lane: None, buffers: &self.buffers, ablation: self.ablation };
        let devices = Devices { others: &self.others, main };
        // A single column that does not go by the plan of one goes by that of several.
        let n_planned = match body {
            Body::One { .. } => 1,
            Body::Many { n_col } => n_col.max(2),
        };
        let run = Run { devices, body: self.ready.body(body), columns, n_planned, per_submit, from: 0 };
        streams.run(run, self.ready.stages(body)).await
    }

    /// Runs a step with offloaded experts, with readbacks on the way.
    async fn run_streamed(&mut self, step: &mut Sent) -> Result<(), RuntimeError> {
        let n = step.columns.len() as u32;
        let (picks, columns) = self.place(step, 0..step.columns.len());
        // Columns with chosen tokens, which only the main device knows.
        let mut chosen = None;
        if step.columns.iter().any(|c| c.token.is_none()) {
            let mut tape = Tape::new(self.recorder());
            self.record_take(&mut tape, &step.columns);
            self.record_columns(&mut tape, n);
            chosen = tape.submit();
        }
        for i in 0..step.options.repeat {
            if let Some(index) = chosen.take() {
                self.share_columns(n, index).await?;
            }
            let body = self.body_of(step, i);
            let columns = columns.later(i);
            let from = self.stream(body, columns).await?;
            let mut tape = Tape::new(self.recorder());
            tape.run(&self.ready.body(body)[from..], columns);
            self.record_head(&mut tape, step, (n, i), &picks);
            self.record_outputs(&mut tape, step, &picks);
            let is_last = i + 1 == step.options.repeat;
            if is_last {
                step.n_sent = step.columns.len();
                self.record_readback(&mut tape, step);
            } else {
                self.record_columns(&mut tape, n);
            }
            let index = tape.submit();
            chosen = index.clone().filter(|_| !is_last);
            self.submitted(step, index);
            self.note_rings(step, step.chosen.len(), i + 1);
        }
        self.gpu.check()
    }

    /// Records a copy of the columns for the other devices, if there are any.
    fn record_columns(&self, tape: &mut Tape<'_>, n: u32) {
        if let Some(staging) = self.buffers.crossing_staging.first() {
            tape.copy((&self.buffers.step, 0), (staging, 0), column_bytes(n));
        }
    }

    /// Brings the recorded columns to the other devices.
    async fn share_columns(&self, n: u32, index: wgpu::SubmissionIndex) -> Result<(), RuntimeError> {
        if let Some(staging) = self.buffers.crossing_staging.first() {
            let bytes = self.gpu.read(staging, column_bytes(n), Some(index)).await?;
            for other in &self.others {
                other.gpu.queue.write_buffer(&other.buffers.step, 0, &bytes);
            }
        }
        Ok(())
    }

    /// The plan of a step in the given repetition.
    pub(super) fn body_of(&self, step: &Sent, i: u32) -> Body {
        match step.options.n_planned {
            1 if step.picks.n_hidden() == 0 => self.ready.body_at(step.columns[0].pos + i),
            n_col => Body::Many { n_col },
        }
    }

    /// Writes the columns of a piece; returns its picks, and what grids depend on.
    pub(super) fn place(&mut self, step: &Sent, piece: Range<usize>) -> (PiecePicks, Columns) {
        let picks = step.picks.within(piece.start as u32..piece.end as u32);
        let columns = self.write(&step.columns[piece], step.options.n_planned, picks.head.iter().copied());
        if picks.n_choice > 0 && picks.head.len() == 1 {
            // A single chosen token becomes the first column of the next step.
            self.picks.clear();
            self.picks.push(0);
        }
        (picks, columns)
    }

    /// Records the replacement of columns' tokens by the last chosen ones.
    pub(super) fn record_take(&self, tape: &mut Tape<'_>, columns: &[Column]) {
        if columns.iter().any(|c| c.token.is_none()) {
            tape.run(&self.ready.take_chosen, columns.len() as u32);
        }
    }

    /// Records the hidden states and logits of `n` columns in the given repetition.
    pub(super) fn record_head(
        &self,
        tape: &mut Tape<'_>,
        step: &Sent,
        (n, i): (u32, u32),
        picks: &PiecePicks,
    ) {
        if !picks.hidden.is_empty() {
            self.record_hidden(tape, step, n, picks);
        }
        let n_head = picks.head.len() as u32;
        if n_head == 0 {
            return;
        }
        match self.body_of(step, i) {
            Body::One { pos } => tape.run(&self.ready.decode_at(pos).head, 1),
            Body::Many { .. } => {
                let head = self.ready.prompt_of(step.options.n_planned).head_of(step.picks.n_head());
                tape.run(&head.pick, n_head);
                tape.run(&head.head, n_head);
            }
        }
    }

    /// Choices and readbacks from the logits of a piece.
    pub(super) fn record_outputs(&self, tape: &mut Tape<'_>, step: &Sent, picks: &PiecePicks) {
        if picks.n_masked > 0 {
            self.record_masks(tape, step, picks);
        }
        if picks.n_choice > 0 {
            let adjusts = step.chosen.iter().any(|(seq, _)| self.adjusts[*seq as usize]);
            if adjusts {
                tape.run(&self.ready.adjust, picks.n_choice);
            }
            let chooser = match step.options.choose {
                SampleMode::Greedy => &self.ready.argmax,
                SampleMode::Sample => &self.ready.sample,
                SampleMode::SampleWide => &self.ready.sample_wide,
            };
            tape.run(chooser, picks.n_choice);
        }
        let n_logits = picks.head.len() as u32 - picks.n_choice;
        if n_logits > 0 {
            let row = 4 * u64::from(self.ld_logits);
            let from = (&self.buffers.logits, row * u64::from(picks.n_choice));
            let to = (&self.buffers.logits_staging, row * u64::from(picks.logits_at));
            tape.copy(from, to, row * u64::from(n_logits));
        }
    }

    /// Records the hidden states of `n` columns, some of which are read back after the step's logits.
    fn record_hidden(&self, tape: &mut Tape<'_>, step: &Sent, n: u32, picks: &PiecePicks) {
        let plan = self.ready.prompt_of(step.options.n_planned);
        tape.run(&plan.hidden, n);
        let row = 4 * u64::from(self.hidden.1);
        let base = 4 * u64::from(self.ld_logits) * u64::from(step.picks.n_logits());
        let mut to = base + row * u64::from(picks.hidden_at);
        for run in picks.hidden.chunk_by(|a, b| a + 1 == *b) {
            let (from, n_byte) = (row * u64::from(run[0]), row * run.len() as u64);
            let from = (&self.buffers.acts[plan.hidden_at], from);
            tape.copy(from, (&self.buffers.logits_staging, to), n_byte);
            to += n_byte;
        }
    }

    /// Records the readback of the rings, after the last piece.
    pub(super) fn record_readback(&self, tape: &mut Tape<'_>, step: &mut Sent) {
        if step.is_left() {
            return;
        }
        let seqs = || step.chosen.iter().map(|c| c.0);
        if let (Some(first), Some(last)) = (seqs().min(), seqs().max()) {
            let n_byte = u64::from(self.config.ring) * 4;
            let (at, n_ring) = (u64::from(first) * n_byte, u64::from(last - first + 1));
            tape.copy((&self.buffers.ring, at), (&self.buffers.ring_staging[step.slot], at), n_ring * n_byte);
        }
    }

    /// Records a submission. A step without outputs has no readback, so it needs a completion callback.
    pub(super) fn submitted(&self, step: &mut Sent, index: Option<wgpu::SubmissionIndex>) {
        step.index = index;
        if step.is_left() {
            return;
        }
        if let Some(lanes) = &self.lanes {
            lanes.mark(step.id);
        } else if step.picks.n() == 0 {
            let (keeper, done) = promise();
            self.gpu.queue.on_submitted_work_done(move || keeper.keep(()));
            step.done = Some(done);
        }
    }

    /// Outputs of the oldest unread step. Dropping the future abandons the step; recurrent state that it may have left
    /// in between is then unknown ([`RuntimeError::State`]).
    ///
    /// # Errors
    /// Device errors.
    ///
    /// # Panics
    /// If no step is in flight, or it waits for masks.
    pub async fn read_step(&mut self) -> Result<StepOutputs, RuntimeError> {
        let mut step = self.steps.0.pop_front().expect("a step is under way");
        assert!(!step.waits(), "masks come before the outputs are read");
        self.send_rest(&mut step).await?;
        if let Some(lanes) = &self.lanes {
            step.index = Some(lanes.reach(step.id)?);
            self.learn_over(&step);
        }
        let mut out = StepOutputs::default();
        if let Some(last) = step.chosen.iter().map(|c| c.0).max() {
            let ring = self.config.ring;
            let rings: Vec<u32> = match (&self.lanes, step.ring) {
                (Some(lanes), Some(crossing)) => lanes.ring(crossing)?,
                _ => {
                    let (staging, index) = (&self.buffers.ring_staging[step.slot], step.index.clone());
                    let bytes = self.gpu.read(staging, self.bytes_of_rings(last), index).await?;
                    bytemuck::pod_collect_to_vec(&bytes)
                }
            };
            for i in 0..step.options.repeat {
                let token = |(seq, first): &(u32, u32)| {
                    rings[(seq * ring + (first.wrapping_add(i) & (ring - 1))) as usize]
                };
                out.chosen.extend(step.chosen.iter().map(token));
            }
            self.note_read(&step, &out.chosen);
        }
        if step.picks.n_read() > 0 {
            (out.logits, out.hidden) = self.read_rows_of(&step).await?;
        } else if let (Some(done), Some(index)) = (step.done, step.index) {
            self.gpu.reach(index, done).await?;
        }
        Ok(out)
    }

    /// Submits the rest of a step as the queue allows.
    async fn send_rest(&mut self, step: &mut Sent) -> Result<(), RuntimeError> {
        if step.is_left() {
            // In case the device fails, or the future is dropped.
            step.ends().for_each(|(seq, _)| self.state_at[seq] = None);
            self.note_rings(step, step.n_chosen(), step.options.repeat);
            if self.streams.is_some() {
                self.run_streamed(step).await?;
            }
            while step.is_left() {
                self.pace.room(&self.gpu).await?;
                self.send_piece(step)?;
                self.note_rings(step, step.n_chosen(), step.options.repeat);
            }
            step.ends().for_each(|(seq, end)| self.state_at[seq] = Some(end));
        }
        Ok(())
    }

    /// Submits the rest of the steps in flight as the queue allows, and runs those with offloaded experts. They remain
    /// to be read.
    ///
    /// # Errors
    /// As for [`Self::read_step`].
    pub async fn flush(&mut self) -> Result<(), RuntimeError> {
        self.drain()?;
        // No step is submitted after an incomplete one.
        let Some(mut last) = self.steps.0.pop_back() else { return Ok(()) };
        assert!(!last.waits(), "masks come before a step is sent whole");
        self.send_rest(&mut last).await?;
        self.steps.0.push_back(last);
        Ok(())
    }

    /// Reads the logits and hidden states of a step.
    async fn read_rows_of(&self, step: &Sent) -> Result<(Vec<f32>, Vec<f32>), RuntimeError> {
        let n_byte = 4 * step.picks.words_read(self.ld_logits, self.hidden.1);
        let bytes = self.gpu.read(&self.buffers.logits_staging, n_byte, step.index.clone()).await?;
        let n_logits = 4 * step.picks.n_logits() as usize * self.ld_logits as usize;
        let (logits, hidden) = bytes.split_at(n_logits);
        Ok((rows(logits, (self.n_vocab, self.ld_logits)), rows(hidden, self.hidden)))
    }

    /// Drops all unread steps. Submitted parts still run, and others choose nothing.
    pub fn drop_steps(&mut self) {
        self.last_chosen.fill(LastChosen::Unknown);
        for step in std::mem::take(&mut self.steps.0).iter().filter(|s| s.is_left()) {
            step.ends().for_each(|(seq, _)| self.state_at[seq] = None);
            self.note_rings(step, step.n_chosen(), step.options.repeat);
        }
    }

    /// Notes where the rings of a step's choosing columns end: the choices of the first `n_chosen` were submitted, of
    /// `repeat` repetitions. Those of the others may never be.
    fn note_rings(&mut self, step: &Sent, n_chosen: usize, repeat: u32) {
        for (i, (seq, first)) in step.chosen.iter().enumerate() {
            let n_token = if i < n_chosen { repeat } else { 0 };
            self.ring_at[*seq as usize] = first.wrapping_add(n_token);
        }
    }
}

/// Bytes of `n` columns of a step, with its header.
pub(super) fn column_bytes(n: u32) -> u64 {
    4 * (HEADER + COLUMN * n as usize) as u64
}

/// Rows of `width` values with stride `ld`.
fn rows(bytes: &[u8], (width, ld): (u32, u32)) -> Vec<f32> {
    let (width, ld) = (width as usize, ld as usize);
    let mut out = Vec::with_capacity(bytes.len() / 4 / ld.max(1) * width);
    for row in bytes.chunks_exact(ld * 4) {
        out.extend(bytemuck::pod_collect_to_vec::<u8, f32>(&row[..width * 4]));
    }
    out
}
