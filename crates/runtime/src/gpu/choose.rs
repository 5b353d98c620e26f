//! Tokens that the device chooses: sampler, adjustment of logits, and readings of what was chosen.

use chaski_kernels::ops::adjust::{self, AdjustParams};
use chaski_kernels::ops::sample::{self, SampleParams};

use super::model::GpuModel;
use super::ready::Body;
use crate::error::RuntimeError;

/// How the next token is chosen on the device.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Choose {
    /// The largest logit.
    Greedy,
    /// By the parameters of [`GpuModel::set_sampler`].
    Sample,
}

/// A readback under way.
#[derive(Debug)]
pub struct Ticket {
    slot: usize,
    /// Place in its ring of its first token.
    first: u32,
    n: u32,
    index: wgpu::SubmissionIndex,
}

/// Readbacks that may be under way at once.
pub(super) const STAGING: usize = crate::plan::N_READBACK;

/// Splits values that go to a ring of `size` slots from index `first` on: (slot, values) up to the end, and from the start.
fn around<T>(size: u32, first: u32, values: &[T]) -> [(u32, &[T]); 2] {
    let at = first & (size - 1);
    let (front, back) = values.split_at(values.len().min((size - at) as usize));
    [(at, front), (0, back)]
}

impl GpuModel {
    /// Sets the parameters of [`Choose::Sample`] for the selected sequence.
    pub fn set_sampler(&mut self, params: &SampleParams) {
        let at = 4 * (self.seq as usize * sample::N_WORD) as u64;
        self.gpu.queue.write_buffer(&self.buffers.sampler, at, bytemuck::cast_slice(&params.words()));
    }

    /// The uniform numbers in [0, 1) that decide the next draws of the selected sequence, those after all under way: at most
    /// [`sample::N_DRAW`]. Every draw needs one.
    pub fn set_draws(&mut self, draws: &[f32]) {
        assert!(draws.len() <= sample::N_DRAW as usize, "{} draws do not fit", draws.len());
        let base = self.seq as usize * sample::N_WORD + sample::DRAWS_AT;
        for (at, part) in around(sample::N_DRAW, self.ring_at[self.seq as usize], draws) {
            if !part.is_empty() {
                let at = 4 * (base + at as usize) as u64;
                self.gpu.queue.write_buffer(&self.buffers.sampler, at, bytemuck::cast_slice(part));
            }
        }
    }

    /// Says what is done to the logits of the selected sequence, in place, before each choice of a token until
    /// [`Self::clear_adjust`].
    ///
    /// `recent` are the tokens so far, the newest last; those that are chosen follow them on the device, so penalties
    /// look back on both. To be called again when the sequence becomes another.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`] for too many biases or a window longer than the ring.
    pub fn set_adjust(&mut self, params: &AdjustParams, recent: &[u32]) -> Result<(), RuntimeError> {
        let ring = self.config.ring;
        let window = u64::from(ring.min(adjust::MAX_WINDOW));
        for (what, found, limit) in [
            ("biases of logits", params.bias.len() as u64, adjust::MAX_BIAS as u64),
            ("tokens that penalties look back on", params.last_n.into(), window),
        ] {
            if found > limit {
                return Err(RuntimeError::Limit { what, found, limit });
            }
        }
        // The tokens so far take the places of older ones in the ring, as if they had been chosen. Readbacks under
        // way have been copied by then: the queue keeps the order.
        let seq = self.seq as usize;
        let n = recent.len().min(params.last_n as usize);
        let (tail, first) = (&recent[recent.len() - n..], self.ring_at[seq].wrapping_sub(n as u32));
        let queue = &self.gpu.queue;
        for (at, part) in around(ring, first, tail) {
            if !part.is_empty() {
                let at = 4 * u64::from(self.seq * ring + at);
                queue.write_buffer(&self.buffers.ring, at, bytemuck::cast_slice(part));
            }
        }
        self.write_adjust(&params.words(first));
        self.adjusts[seq] = true;
        Ok(())
    }

    /// Leaves the logits of the selected sequence as they are from now on.
    pub fn clear_adjust(&mut self) {
        let seq = self.seq as usize;
        if std::mem::take(&mut self.adjusts[seq]) {
            // Others may be adjusted beside it.
            self.write_adjust(&[0; adjust::N_WORD]);
        }
    }

    fn write_adjust(&self, words: &[u32; adjust::N_WORD]) {
        let at = 4 * (self.seq as usize * adjust::N_WORD) as u64;
        self.gpu.queue.write_buffer(&self.buffers.adjust, at, bytemuck::cast_slice(words));
    }

    /// Chooses the token after the logits that [`Self::prefill`] left; it becomes the input of [`Self::decode`].
    ///
    /// With [`Self::set_adjust`] the logits are others afterwards.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`] for more tickets than there are readbacks; device errors.
    pub fn choose(&mut self, choose: Choose) -> Result<Ticket, RuntimeError> {
        self.check_ticket()?;
        let mut encoder = self.encoder();
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            self.record_choice(&mut pass, choose, 1, self.adjusts[self.seq as usize]);
        }
        self.read_back(encoder, 1)
    }

    /// Chooses a token for each of `n_row` rows of logits.
    pub(super) fn record_choice(
        &self,
        pass: &mut wgpu::ComputePass<'_>,
        choose: Choose,
        n_row: u32,
        adjusts: bool,
    ) {
        if adjusts {
            self.on().record(pass, &self.ready.adjust, n_row);
        }
        let chooser = match choose {
            Choose::Greedy => &self.ready.argmax,
            Choose::Sample => &self.ready.sample,
        };
        self.on().record(pass, chooser, n_row);
    }

    /// Runs `n` tokens, each chosen from the last one's logits, without waiting for any, unless experts stay with the
    /// processor.
    ///
    /// `pos` is the position of the first; the device keeps its own, the plan is chosen by this one.
    ///
    /// # Errors
    /// [`RuntimeError::Limit`] past the context, for more tokens than the ring has slots, or for more tickets than there
    /// are readbacks; [`RuntimeError::State`]; device errors.
    pub async fn decode(&mut self, n: u32, pos: u32, choose: Choose) -> Result<Ticket, RuntimeError> {
        self.check_ticket()?;
        self.check_room(n as usize, pos)?;
        let limit = u64::from(self.max_in_flight());
        if u64::from(n) > limit {
            return Err(RuntimeError::Limit { what: "tokens in flight", found: n.into(), limit });
        }
        // Where anything has run by then, there is but one token.
        let mut from = 0;
        if n > 0 {
            from = self.stream(Body::One { pos }, 1).await?;
            self.set_state_at(Some(pos + n));
        }
        let adjusts = self.adjusts[self.seq as usize];
        let mut encoder = self.encoder();
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            for i in 0..n {
                let d = self.ready.decode_at(pos + i);
                self.on().record(&mut pass, &d.body[from..], 1);
                self.on().record(&mut pass, &d.head, 1);
                self.record_choice(&mut pass, choose, 1, adjusts);
            }
        }
        self.read_back(encoder, n)
    }

    /// Whether there is a readback for another ticket.
    pub(super) fn check_ticket(&self) -> Result<(), RuntimeError> {
        if self.n_ticket < STAGING {
            return Ok(());
        }
        let (found, limit) = (self.n_ticket as u64 + 1, STAGING as u64);
        Err(RuntimeError::Limit { what: "tickets that are not redeemed", found, limit })
    }

    fn read_back(&mut self, mut encoder: wgpu::CommandEncoder, n: u32) -> Result<Ticket, RuntimeError> {
        let slot = self.next_staging;
        self.next_staging = (slot + 1) % STAGING;
        let seq = self.seq;
        let (ring, to) = (&self.buffers.ring, &self.buffers.ring_staging[slot]);
        let n_byte = u64::from(self.config.ring) * 4;
        encoder.copy_buffer_to_buffer(ring, u64::from(seq) * n_byte, to, 0, n_byte);
        let index = self.gpu.submit(Some(encoder));
        self.gpu.check()?;
        self.n_ticket += 1;
        let at = &mut self.ring_at[seq as usize];
        let first = *at;
        *at = first.wrapping_add(n);
        Ok(Ticket { slot, first, n, index })
    }

    /// The tokens of a ticket. Tickets must be redeemed in order, at most four behind.
    ///
    /// # Errors
    /// Device errors.
    pub async fn tokens(&mut self, ticket: Ticket) -> Result<Vec<u32>, RuntimeError> {
        self.n_ticket -= 1;
        let n_byte = u64::from(self.config.ring) * 4;
        let bytes =
            self.gpu.read(&self.buffers.ring_staging[ticket.slot], n_byte, Some(ticket.index)).await?;
        let ring: Vec<u32> = bytemuck::pod_collect_to_vec(&bytes);
        let mask = self.config.ring - 1;
        Ok((0..ticket.n).map(|i| ring[(ticket.first.wrapping_add(i) & mask) as usize]).collect())
    }

    /// Gives a ticket up.
    pub fn discard(&mut self, _: Ticket) {
        // Its staging buffer was never mapped, so there is nothing else to undo.
        self.n_ticket -= 1;
    }

    /// Tokens that a profile chose do not count: the device goes on where the sequence's ring was.
    pub(crate) fn forget_choices(&self) {
        let at = 4 * self.config.choice().seq_at(self.seq) as u64;
        let count = &self.ring_at[self.seq as usize];
        self.gpu.queue.write_buffer(&self.buffers.step, at, bytemuck::bytes_of(count));
    }
}
