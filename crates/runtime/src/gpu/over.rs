//! Steps over several devices whose values cross without the model waiting: recorded whole, for every device, when they
//! are sent.
#![cfg_attr(
    target_arch = "wasm32",
    expect(unreachable_code, unused_mut, unused_variables, reason = "there are no lanes in a browser")
)]

use chaski_kernels::step::{COLUMN, HEADER};
use web_time::Instant;

use super::first::Chosen;
use super::lanes::{ChosenAt, CrossingId, Lanes};
use super::model::GpuModel;
use super::ready::{Body, Devices};
use super::sent::{LastChosen, Sent};
use super::steps::column_bytes;
use super::tape::Tape;
use crate::error::RuntimeError;
use crate::plan::Columns;
use crate::step::Column;

/// Columns of a piece of a prompt: the devices run as many pieces at once. Fewer would leave the cores of large devices
/// idle, more the other devices.
pub(super) const PIECE: usize = 256;

impl GpuModel {
    /// Sends all pieces of a step, up to one whose choices wait for masks.
    pub(super) fn send_over(&mut self, step: &mut Sent) -> Result<(), RuntimeError> {
        while step.is_left() && step.held.is_none() {
            self.send_piece_over(step)?;
        }
        match &self.lanes {
            Some(lanes) => lanes.pump(),
            None => Ok(()),
        }
    }

    /// Learns from the time of a step over several devices, which has just ended, how long one takes for its columns.
    pub(super) fn learn_over(&mut self, step: &Sent) {
        let now = Instant::now();
        let last = self.read_at.replace(now);
        let Some((sent_at, was_alone)) = step.sent_at else { return };
        if step.columns.len() == 1 || step.options.repeat > 1 {
            return;
        }
        // Alone, its pieces went through all devices one after the other; otherwise it took what the last one took.
        let n_turn = if was_alone { step.n_piece + self.n_before() } else { step.n_piece };
        let time = now - last.map_or(sent_at, |last| last.max(sent_at));
        self.pace.took(step.columns.len(), time.mul_f64(step.n_piece as f64 / n_turn.max(1) as f64));
    }

    /// Devices before the last, and the CPU if it has layers.
    fn n_before(&self) -> usize {
        self.others.len() + usize::from(self.first.is_some())
    }

    /// Columns of the next piece, of `left`: those that the pace allows, but few enough to keep several devices busy.
    fn n_col_over(&self, left: usize) -> usize {
        let n = self.pace.n_col(left);
        // A single column would use another plan.
        if n <= PIECE || PIECE + 1 >= left { n } else { PIECE }
    }

    /// Sends the next piece of a step.
    fn send_piece_over(&mut self, step: &mut Sent) -> Result<(), RuntimeError> {
        let left = step.columns.len() - step.n_sent;
        let is_whole = step.options.repeat > 1 || self.is_encoder();
        let n = if is_whole { left } else { self.n_col_over(left) };
        let piece = step.n_sent..step.n_sent + n;
        let (picks, columns) = self.place(step, piece.clone());
        let waits = picks.n_masked > 0 && step.masks.is_none();
        let Some(lanes) = &self.lanes else { return Ok(()) };
        let (mut back, mut last) = (None, None);
        let own = &step.columns[piece.clone()];
        let sent = self.sent_tokens(own);
        let mut chosen = None;
        match &sent {
            Some(sent) if sent.is_empty() => {}
            Some(sent) => chosen = self.share_sent(lanes, own, sent),
            // Only the last device knows the tokens that it chose.
            None => {
                let mut tape = Tape::new(self.recorder());
                self.record_take(&mut tape, own);
                back = Some(self.send_back(lanes, tape, n as u32));
            }
        }
        for i in 0..step.options.repeat {
            if let Some(crossing) = back.take() {
                chosen = self.share_chosen(lanes, crossing, n as u32);
            }
            let body = self.body_of(step, i);
            if self.first.is_some() {
                let own = own.iter().map(|c| c.repeated(i)).collect();
                self.send_first(lanes, body, own, chosen.take());
            }
            let takes = if i == 0 && sent.is_some() { own } else { &[] };
            let mut tape = self.send_stages(lanes, body, columns.later(i), takes);
            self.record_head(&mut tape, step, (n as u32, i), &picks);
            if !waits {
                self.record_outputs(&mut tape, step, &picks);
            }
            match i + 1 < step.options.repeat {
                true => back = Some(self.send_back(lanes, tape, n as u32)),
                false => last = Some(tape),
            }
        }
        step.n_sent = piece.end;
        step.n_piece += 1;
        step.held = waits.then_some(picks);
        let mut tape = last.expect("a step runs at least once");
        self.record_readback(&mut tape, step);
        let index = self.submit_end(tape, step);
        self.submitted(step, index);
        self.gpu.check()
    }

    /// Submits the end of a piece. Over several devices, the rings of a step cross back with its last one: earlier
    /// devices need their tokens.
    pub(super) fn submit_end(&self, tape: Tape<'_>, step: &mut Sent) -> Option<wgpu::SubmissionIndex> {
        let last = step.chosen.iter().map(|c| c.0).max();
        let (Some(lanes), Some(last), false) = (&self.lanes, last, step.is_left()) else {
            return tape.submit();
        };
        let given = lanes.give_ring(step.slot, self.bytes_of_rings(last));
        step.ring = Some(given.crossing());
        tape.submit_giving(given);
        None
    }

    /// Bytes of the rings of sequences up to this one.
    pub(super) fn bytes_of_rings(&self, last: u32) -> u64 {
        4 * u64::from(self.config.ring) * u64::from(last + 1)
    }

    /// Notes the last tokens of a step that was sent, for columns that lack theirs.
    pub(super) fn note_chosen(&mut self, step: &Sent) {
        let (Some(_), Some(ring)) = (&self.lanes, step.ring) else { return };
        for (seq, first) in &step.chosen {
            let nth = first.wrapping_add(step.options.repeat - 1) & (self.config.ring - 1);
            let word = (seq * self.config.ring + nth) as usize;
            self.last_chosen[*seq as usize] = LastChosen::Sent(ChosenAt { ring, word });
        }
    }

    /// Notes the last tokens of a step that was read.
    pub(super) fn note_read(&mut self, step: &Sent, chosen: &[u32]) {
        if self.lanes.is_none() {
            return;
        }
        let last = chosen.len() - step.chosen.len();
        for ((seq, _), token) in step.chosen.iter().zip(&chosen[last..]) {
            let noted = &mut self.last_chosen[*seq as usize];
            if matches!(noted, LastChosen::Sent(at) if Some(at.ring) == step.ring) {
                *noted = LastChosen::Read(*token);
            }
        }
    }

    /// The column with its token, if the caller has read it.
    pub(super) fn with_read_token(&self, column: Column) -> Column {
        match (column.token, self.last_chosen[column.seq as usize]) {
            (None, LastChosen::Read(token)) if self.lanes.is_some() => {
                Column { token: Some(token), ..column }
            }
            _ => column,
        }
    }

    /// The tokens of columns that lack theirs; `None` if only the last device has one.
    fn sent_tokens(&self, columns: &[Column]) -> Option<Vec<ChosenAt>> {
        let sent = |c: &Column| match self.last_chosen[c.seq as usize] {
            LastChosen::Sent(at) => Some(at),
            LastChosen::Unknown | LastChosen::Read(_) => None,
        };
        columns.iter().filter(|c| c.token.is_none()).map(sent).collect()
    }

    /// Passes these tokens, which cross back, to the columns that lack them on the other devices; those for the CPU, if
    /// it has layers. The last device takes them itself.
    fn share_sent(&self, lanes: &Lanes, columns: &[Column], sent: &[ChosenAt]) -> Option<Chosen> {
        let lacking = columns.iter().enumerate().filter(|(_, c)| c.token.is_none());
        let at: Vec<u64> = lacking.map(|(i, _)| 4 * (HEADER + COLUMN * i) as u64).collect();
        for (device, other) in self.others.iter().enumerate() {
            lanes.write_chosen(device, &other.buffers.step, at.clone(), sent);
        }
        self.first.as_ref().map(|_| Chosen::Tokens(lanes.tell_chosen(sent)))
    }

    /// Sends what is recorded for the last device, whose columns then go to the others.
    fn send_back(&self, lanes: &Lanes, mut tape: Tape<'_>, n: u32) -> CrossingId {
        let n_byte = column_bytes(n);
        let (given, staging) = lanes.give(self.others.len(), n_byte, self.n_before());
        tape.copy((&self.buffers.step, 0), (&staging, 0), n_byte);
        tape.submit_giving(given);
        given.crossing()
    }

    /// Passes columns with chosen tokens to the other devices; the CPU's, if it has layers.
    fn share_chosen(&self, lanes: &Lanes, crossing: CrossingId, n: u32) -> Option<Chosen> {
        for (device, other) in self.others.iter().enumerate() {
            lanes.take(device, crossing, vec![(other.buffers.step.clone(), column_bytes(n))]);
        }
        self.first.as_ref().map(|_| Chosen::Columns(lanes.take_on_cpu(crossing)))
    }

    /// Sends columns to the CPU, whose values go to the first device.
    fn send_first(&self, lanes: &Lanes, body: Body, columns: Vec<Column>, chosen: Option<Chosen>) {
        let Some(first) = &self.first else { return };
        let (stage, n_col) = (&self.ready.stages(body)[0], columns.len() as u64);
        let values = first.run(columns, chosen, stage.takes.iter().map(|value| value.n_word).collect());
        let crossing = lanes.give_from_cpu(values);
        let device = stage.place.device();
        let acts = &Devices { others: &self.others, main: self.recorder() }.recorder(device).buffers.acts;
        let taken = stage.takes.iter().map(|v| (acts[v.act].clone(), 4 * u64::from(v.n_word) * n_col));
        lanes.take(device, crossing, taken.collect());
    }

    /// Sends all stages of a body but the last, which is recorded. The last device takes the tokens of columns that
    /// lack theirs.
    fn send_stages<'a>(&'a self, lanes: &Lanes, body: Body, columns: Columns, takes: &[Column]) -> Tape<'a> {
        let per_submit = self.per_submit(body, columns.n);
        let devices = Devices { others: &self.others, main: self.recorder() };
        let stages = self.ready.stages(body);
        for (nth, stage) in stages.iter().enumerate() {
            let device = stage.place.device();
            let recorder = devices.recorder(device);
            let mut tape = Tape::new(recorder);
            if nth + 1 == stages.len() {
                self.record_take(&mut tape, takes);
            }
            for (cut, part) in self.ready.body(body)[stage.range.clone()].chunks(per_submit).enumerate() {
                if cut > 0 {
                    tape.cut();
                }
                tape.run(part, columns);
            }
            let Some(next) = stages.get(nth + 1) else { return tape };
            let n_byte = |n_word: u32| 4 * u64::from(n_word) * u64::from(columns.n);
            let total = stage.gives.iter().map(|given| n_byte(given.n_word)).sum();
            let (given, staging) = lanes.give(device, total, 1);
            let mut at = 0;
            for value in &stage.gives {
                let n_byte = n_byte(value.n_word);
                tape.copy((&recorder.buffers.acts[value.act], 0), (&staging, at), n_byte);
                at += n_byte;
            }
            tape.submit_giving(given);
            let to = next.place.device();
            let acts = &devices.recorder(to).buffers.acts;
            let taken = next.takes.iter().map(|value| (acts[value.act].clone(), n_byte(value.n_word)));
            lanes.take(to, given.crossing(), taken.collect());
        }
        unreachable!("a body has a stage")
    }
}
