//! Steps: rows of several sequences that run together and choose their next tokens on the device.

use std::collections::VecDeque;

use super::choose::{Choose, STAGING};
use super::eval::Column;
use super::model::GpuModel;
use super::ready::Body;
use crate::error::RuntimeError;
use crate::platform::Promise;

/// The output of a column.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ColumnOutput {
    /// None.
    Nothing,
    /// The id of the next token of its sequence, by the sequence's sampler.
    Choice,
    /// Its logits.
    Logits,
}

/// What comes back from a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepOutputs {
    /// The chosen tokens: of all columns that choose, in order, then of all columns of the next repetition.
    pub chosen: Vec<u32>,
    /// The logits of all columns that want them, in order: `[n, n_vocab]`.
    pub logits: Vec<f32>,
}

/// Which columns have logits: first those that choose, then those whose logits are read.
struct Picks {
    columns: Vec<u32>,
    n_choice: u32,
}

impl Picks {
    fn of(outputs: &[ColumnOutput]) -> Self {
        let of = |kind| (0u32..).zip(outputs).filter(move |(_, o)| **o == kind).map(|(i, _)| i);
        let mut columns: Vec<u32> = of(ColumnOutput::Choice).collect();
        let n_choice = columns.len() as u32;
        columns.extend(of(ColumnOutput::Logits));
        Picks { columns, n_choice }
    }

    fn n(&self) -> u32 {
        self.columns.len() as u32
    }

    fn n_logits(&self) -> u32 {
        self.n() - self.n_choice
    }
}

/// A step whose outputs nobody has read.
struct Sent {
    slot: usize,
    /// The columns that choose: the sequence, and the place in its ring of its first token.
    chosen: Vec<(u32, u32)>,
    repeat: u32,
    n_logits: u32,
    index: wgpu::SubmissionIndex,
    /// Of a step without outputs: that it has run.
    done: Option<Promise<()>>,
}

/// Steps under way, oldest first.
#[derive(Default)]
pub(super) struct Steps(VecDeque<Sent>);

/// Steps that may be under way at once: one runs, and one waits for it.
const UNDER_WAY: usize = 2;

impl GpuModel {
    /// Columns of a step that can choose at most.
    pub fn n_choice(&self) -> u32 {
        self.n_choice
    }

    /// Columns of a step at most: as many as a chunk has; fewer where sequences with recurrent state are beside each other.
    pub fn step_cols(&self) -> u32 {
        let mixed = self.has_state() && self.config.n_seq > 1;
        if mixed { self.all_cols } else { self.config.max_col }
    }

    /// Whether another step can be sent before the oldest is read: two may be under way, but logits of only one.
    pub fn takes_step(&self) -> bool {
        self.steps.0.len() < UNDER_WAY && self.steps.0.iter().all(|s| s.n_logits == 0)
    }

    /// Sends columns of several sequences, each with its output, `repeat` times; nobody waits. Columns of one sequence stand
    /// together in the order of their positions, and only the last of them may choose. A step that repeats has one column of
    /// each sequence, and all choose.
    ///
    /// `choose` is [`Choose::Sample`] unless all sequences that choose are greedy.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`] for more than there is room for; [`RuntimeError::State`]; [`RuntimeError::NeedsExperts`]; device
    /// errors.
    pub fn send_step(
        &mut self,
        columns: &[Column],
        outputs: &[ColumnOutput],
        repeat: u32,
        choose: Choose,
    ) -> Result<(), RuntimeError> {
        self.needs_experts("a step of several sequences")?;
        self.check_ticket()?;
        let picks = Picks::of(outputs);
        self.check_step(columns, repeat, &picks)?;
        let runs: Vec<&[Column]> = columns.chunk_by(|a, b| a.seq == b.seq).collect();
        if self.has_state() {
            self.check_runs(&runs)?;
        }
        for run in &runs {
            self.state_at[run[0].seq as usize] = run.last().map(|c| c.pos + repeat);
        }
        self.write(columns.iter().copied(), picks.columns.iter().copied());
        let seqs: Vec<u32> =
            picks.columns[..picks.n_choice as usize].iter().map(|c| columns[*c as usize].seq).collect();
        let (slot, index) = self.record_step(columns, repeat, &picks, &seqs, choose)?;
        let mut chosen = Vec::with_capacity(seqs.len());
        for seq in seqs {
            let at = &mut self.ring_at[seq as usize];
            chosen.push((seq, *at));
            *at = at.wrapping_add(repeat);
        }
        // Without a readback, somebody must tell when it has run.
        let (index, done) = match picks.n() {
            0 => {
                let (index, done) = self.gpu.mark();
                (index, Some(done))
            }
            _ => (index, None),
        };
        self.n_ticket += 1;
        self.steps.0.push_back(Sent { slot, chosen, repeat, n_logits: picks.n_logits(), index, done });
        Ok(())
    }

    fn check_step(&self, columns: &[Column], repeat: u32, picks: &Picks) -> Result<(), RuntimeError> {
        let most = |of: fn(&Column) -> u32| columns.iter().map(of).max().map_or(0, |n| u64::from(n) + 1);
        let c = &self.config;
        let n_step = self.steps.0.len() as u64 + 1;
        for (what, found, limit) in [
            ("steps under way", n_step, UNDER_WAY as u64),
            ("columns of a step", columns.len() as u64, self.step_cols().into()),
            ("sequences", most(|c| c.seq), c.n_seq.into()),
            ("tokens of the sequence", most(|c| c.pos) + u64::from(repeat.max(1)) - 1, c.n_ctx.into()),
            ("columns that choose", picks.n_choice.into(), self.n_choice.into()),
            ("columns with logits", picks.n().into(), self.all_cols.into()),
            ("tokens in flight", repeat.into(), (self.config.ring / STAGING as u32).into()),
        ] {
            if found > limit {
                return Err(RuntimeError::Limit { what, found, limit });
            }
        }
        Ok(())
    }

    /// Records and submits the columns that are in place; returns the staging slot that has the rings, and the last submission.
    fn record_step(
        &mut self,
        columns: &[Column],
        repeat: u32,
        picks: &Picks,
        seqs: &[u32],
        choose: Choose,
    ) -> Result<(usize, wgpu::SubmissionIndex), RuntimeError> {
        let (n, pos) = (columns.len() as u32, columns.first().map_or(0, |c| c.pos));
        let adjusts = seqs.iter().any(|seq| self.adjusts[*seq as usize]);
        let takes = columns.iter().any(|c| c.token.is_none());
        let start = web_time::Instant::now();
        let mut encoder = self.encoder();
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        if takes {
            self.on().record(&mut pass, &self.ready.take_chosen, n);
        }
        for i in 0..repeat.max(1) {
            let body = if n == 1 { Body::One { pos: pos + i } } else { Body::Many { n_col: n } };
            for (cut, part) in self.ready.body(body).chunks(self.per_submit(body, n)).enumerate() {
                if cut > 0 {
                    drop(pass);
                    self.gpu.submit(Some(std::mem::replace(&mut encoder, self.encoder())));
                    pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
                }
                self.on().record(&mut pass, part, n);
            }
            self.record_outputs(&mut pass, (n, pos + i), picks, choose, adjusts);
        }
        drop(pass);
        let slot = self.next_staging;
        self.next_staging = (slot + 1) % STAGING;
        if let (Some(first), Some(last)) = (seqs.iter().min(), seqs.iter().max()) {
            let n_byte = u64::from(self.config.ring) * 4;
            let (at, n_ring) = (u64::from(*first) * n_byte, u64::from(last - first + 1));
            let to = &self.buffers.ring_staging[slot];
            encoder.copy_buffer_to_buffer(&self.buffers.ring, at, to, at, n_ring * n_byte);
        }
        if picks.n_logits() > 0 {
            let row = 4 * u64::from(self.ld_logits);
            let (at, n_byte) = (row * u64::from(picks.n_choice), row * u64::from(picks.n_logits()));
            let to = &self.buffers.logits_staging;
            encoder.copy_buffer_to_buffer(&self.buffers.logits, at, to, 0, n_byte);
        }
        let index = self.gpu.submit(Some(encoder));
        if n > 1 && repeat == 1 {
            self.pace.sent(&self.gpu, n as usize, start, index.clone());
        }
        self.gpu.check()?;
        Ok((slot, index))
    }

    /// The logits of the picks, and the choices.
    fn record_outputs(
        &self,
        pass: &mut wgpu::ComputePass<'_>,
        (n_col, pos): (u32, u32),
        picks: &Picks,
        choose: Choose,
        adjusts: bool,
    ) {
        match (n_col, picks.n()) {
            (_, 0) => {}
            (1, _) => self.on().record(pass, &self.ready.decode_at(pos).head, 1),
            (_, n) => {
                let head = self.ready.prompt_of(n_col).head_of(n);
                self.on().record(pass, &head.pick, n);
                self.on().record(pass, &head.head, n);
            }
        }
        if picks.n_choice > 0 {
            self.record_choice(pass, choose, picks.n_choice, adjusts);
        }
    }

    /// The outputs of the oldest step that was not read.
    ///
    /// # Errors
    /// Device errors.
    ///
    /// # Panics
    /// If no step is under way.
    pub async fn read_step(&mut self) -> Result<StepOutputs, RuntimeError> {
        let sent = self.steps.0.pop_front().expect("a step is under way");
        self.n_ticket -= 1;
        let mut out = StepOutputs::default();
        let index = Some(sent.index.clone());
        if let Some(last) = sent.chosen.iter().map(|c| c.0).max() {
            let ring = self.config.ring;
            let n_byte = 4 * u64::from(ring) * u64::from(last + 1);
            let bytes = self.gpu.read(&self.buffers.ring_staging[sent.slot], n_byte, index.clone()).await?;
            let rings: Vec<u32> = bytemuck::pod_collect_to_vec(&bytes);
            for i in 0..sent.repeat {
                let token = |(seq, first): &(u32, u32)| {
                    rings[(seq * ring + (first.wrapping_add(i) & (ring - 1))) as usize]
                };
                out.chosen.extend(sent.chosen.iter().map(token));
            }
        }
        if sent.n_logits > 0 {
            out.logits = self.rows(sent.n_logits, (self.n_vocab, self.ld_logits), index.clone()).await?;
        }
        if let Some(done) = sent.done {
            self.gpu.reach(sent.index, done).await?;
        }
        Ok(out)
    }

    /// Forgets the steps that nobody has read.
    pub fn drop_steps(&mut self) {
        self.n_ticket -= self.steps.0.len();
        self.steps.0.clear();
    }
}
