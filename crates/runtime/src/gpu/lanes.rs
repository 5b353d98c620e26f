//! Several devices at work: each has its submissions and writes in order, and values cross from one to the next by the
//! CPU.
//!
//! A step is recorded whole when it is sent, for all devices. What cannot start yet, since a value has not crossed,
//! waits in the device's lane, and everything sent to that device later waits behind it. So a device sees the order in
//! which it was sent, while the one before it runs the next piece of a prompt. Whoever waits for an output moves the
//! lanes on ([`Lanes::pump`]): no thread does.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::buffers::Part;
use super::device::Gpu;
use crate::error::RuntimeError;
use crate::plan::N_CROSSING;
use crate::platform::{Promise, glance, promise, wait};

/// Time between looks at the other devices while one is waited for.
const LOOK: Duration = Duration::from_micros(50);

/// Longest wait for a value that crosses back right after a step's outputs.
const SOON: Duration = Duration::from_millis(1);

/// Identity of a value that crosses, in order of sending.
pub(super) type CrossingId = u64;

/// A staging buffer that a submission fills.
#[derive(Copy, Clone)]
pub(super) struct Given {
    crossing: CrossingId,
    slot: usize,
    n_byte: u64,
    /// Devices that take it.
    n_taker: usize,
}

/// Work that waits for its turn.
enum Work {
    Write {
        buffer: wgpu::Buffer,
        at: u64,
        bytes: Vec<u8>,
    },
    Submit {
        commands: wgpu::CommandBuffer,
        gives: Option<Given>,
    },
    /// Parts of a crossed value go to the starts of these buffers.
    Take {
        crossing: CrossingId,
        to: Vec<(wgpu::Buffer, u64)>,
    },
    /// The end of a step.
    Mark {
        step: u64,
    },
}

/// A submitted crossing that not all have taken.
struct Crossing {
    given: Given,
    /// The device that gave it.
    from: usize,
    index: wgpu::SubmissionIndex,
    mapped: Promise<Result<(), wgpu::BufferAsyncError>>,
    has_arrived: bool,
    /// Devices that have not taken it.
    n_left: usize,
}

struct Lane {
    gpu: Arc<Gpu>,
    staging: Vec<wgpu::Buffer>,
    work: VecDeque<Work>,
    /// Crossings recorded so far.
    n_given: usize,
    last: Option<wgpu::SubmissionIndex>,
}

#[derive(Default)]
struct State {
    lanes: Vec<Lane>,
    crossings: Vec<Crossing>,
    n_crossing: CrossingId,
    /// Submitted ends of steps that were not read.
    ends: Vec<(u64, wgpu::SubmissionIndex)>,
    /// The reason why nothing is sent any more.
    closed: Option<String>,
}

/// The lanes of all devices.
pub(super) struct Lanes(Mutex<State>);

impl Given {
    pub(super) fn crossing(&self) -> CrossingId {
        self.crossing
    }
}

impl Lanes {
    /// Lanes of devices in layer order; `None` for one.
    pub(super) fn new(parts: &[Part]) -> Option<Lanes> {
        let lane = |Part { gpu, buffers }: &Part| Lane {
            gpu: gpu.clone(),
            staging: buffers.crossing_staging.clone(),
            work: VecDeque::new(),
            n_given: 0,
            last: None,
        };
        let state = || State { lanes: parts.iter().map(lane).collect(), ..State::default() };
        (parts.len() > 1).then(|| Lanes(Mutex::new(state())))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Writes to a buffer of a device after everything sent to it before.
    pub(super) fn write(&self, device: usize, buffer: &wgpu::Buffer, at: u64, bytes: &[u8]) {
        let mut state = self.state();
        if state.closed.is_some() {
            return;
        }
        let lane = &mut state.lanes[device];
        match lane.work.is_empty() {
            true => lane.gpu.queue.write_buffer(buffer, at, bytes),
            false => lane.work.push_back(Work::Write { buffer: buffer.clone(), at, bytes: bytes.to_vec() }),
        }
    }

    /// Submits commands to a device after everything sent to it before, with a value for other devices.
    pub(super) fn submit(&self, device: usize, encoder: wgpu::CommandEncoder, gives: Option<Given>) {
        let mut state = self.state();
        state.lanes[device].work.push_back(Work::Submit { commands: encoder.finish(), gives });
        state.run(device);
    }

    /// The staging buffer for the next value that crosses from a device, which the next [`Self::submit`] there must
    /// fill.
    pub(super) fn give(&self, device: usize, n_byte: u64, n_taker: usize) -> (Given, wgpu::Buffer) {
        let mut state = self.state();
        let crossing = state.n_crossing;
        state.n_crossing += 1;
        let lane = &mut state.lanes[device];
        let slot = lane.n_given % N_CROSSING;
        lane.n_given += 1;
        (Given { crossing, slot, n_byte, n_taker }, lane.staging[slot].clone())
    }

    /// Writes a crossed value to a device: parts of so many bytes to the starts of buffers.
    pub(super) fn take(&self, device: usize, crossing: CrossingId, to: Vec<(wgpu::Buffer, u64)>) {
        self.state().lanes[device].work.push_back(Work::Take { crossing, to });
    }

    /// Marks the end of a step, which runs on the last device.
    pub(super) fn mark(&self, step: u64) {
        let mut state = self.state();
        let last = state.lanes.len() - 1;
        state.lanes[last].work.push_back(Work::Mark { step });
        state.run(last);
    }

    /// Drops all work, and accepts no more: calls fail with this reason.
    pub(super) fn close(&self, reason: String) {
        let mut state = self.state();
        state.closed = Some(reason);
        state.lanes.iter_mut().for_each(|lane| lane.work.clear());
    }

    /// Fails if the lanes are closed.
    ///
    /// # Errors
    /// [`RuntimeError::DeviceLost`].
    pub(super) fn check(&self) -> Result<(), RuntimeError> {
        self.state().check()
    }

    /// Sends what can be sent now, without waiting.
    ///
    /// # Errors
    /// Device errors.
    pub(super) fn pump(&self) -> Result<(), RuntimeError> {
        self.state().pump()
    }

    /// Waits until all devices have been sent all of their work.
    ///
    /// # Errors
    /// Device errors.
    pub(super) fn drain(&self) -> Result<(), RuntimeError> {
        let mut state = self.state();
        state.move_until(|state| state.lanes.iter().all(|lane| lane.work.is_empty()).then_some(()))
    }

    /// Waits until the last device has finished a step, and keeps the others at work meanwhile.
    ///
    /// # Errors
    /// Device errors.
    pub(super) fn reach(&self, step: u64) -> Result<wgpu::SubmissionIndex, RuntimeError> {
        let mut state = self.state();
        let index = state.move_until(|state| {
            let index = state.ends.iter().find(|(end, _)| *end == step)?.1.clone();
            // Steps before it were read, or dropped.
            state.ends.retain(|(end, _)| *end > step);
            Some(index)
        })?;
        let main = state.lanes.len() - 1;
        let gpu = state.lanes[main].gpu.clone();
        loop {
            let others_run = state.under_way().any(|crossing| crossing.from != main);
            let is_reached = wait(&gpu.device, &index, others_run.then_some(LOOK));
            state.pump()?;
            if is_reached {
                break;
            }
        }
        // A chosen token crosses back right after the outputs: the first device need not wait for the caller.
        let back = state.under_way().find(|crossing| crossing.from == main).map(|c| c.index.clone());
        if let Some(back) = back {
            wait(&gpu.device, &back, Some(SOON));
            state.pump()?;
        }
        Ok(index)
    }
}

impl State {
    /// Crossings that have not arrived, oldest first.
    fn under_way(&self) -> impl Iterator<Item = &Crossing> {
        self.crossings.iter().filter(|crossing| !crossing.has_arrived)
    }

    /// Moves on until the goal gives a result.
    fn move_until<T>(&mut self, mut goal: impl FnMut(&mut State) -> Option<T>) -> Result<T, RuntimeError> {
        loop {
            self.pump()?;
            if let Some(found) = goal(self) {
                return Ok(found);
            }
            let oldest = self.under_way().next().expect("a lane that waits does so for a value under way");
            let is_alone = self.under_way().all(|crossing| crossing.from == oldest.from);
            let gpu = &self.lanes[oldest.from].gpu;
            wait(&gpu.device, &oldest.index, (!is_alone).then_some(LOOK));
        }
    }

    fn check(&self) -> Result<(), RuntimeError> {
        match &self.closed {
            Some(reason) => Err(RuntimeError::DeviceLost { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    fn pump(&mut self) -> Result<(), RuntimeError> {
        self.check()?;
        for (i, lane) in self.lanes.iter().enumerate() {
            if self.crossings.iter().any(|crossing| crossing.from == i && !crossing.has_arrived) {
                glance(&lane.gpu.device);
            }
            lane.gpu.check()?;
        }
        for crossing in self.crossings.iter_mut().filter(|crossing| !crossing.has_arrived) {
            match crossing.mapped.take() {
                None => {}
                Some(Ok(())) => crossing.has_arrived = true,
                Some(Err(e)) => {
                    return Err(self.lanes[crossing.from].gpu.failed("a readback", &e.to_string()));
                }
            }
        }
        // A lane that moves can free a buffer of another.
        while (0..self.lanes.len()).any(|device| self.run(device)) {}
        self.lanes.iter().try_for_each(|lane| lane.gpu.check())
    }

    /// Does the work at the front of a lane as far as possible; false if none is.
    fn run(&mut self, device: usize) -> bool {
        let mut has_moved = false;
        if self.closed.is_some() {
            self.lanes[device].work.clear();
        }
        while self.can_start(device) {
            let work = self.lanes[device].work.pop_front().expect("what can start is there");
            self.start(device, work);
            has_moved = true;
        }
        has_moved
    }

    fn can_start(&self, device: usize) -> bool {
        match self.lanes[device].work.front() {
            None => false,
            Some(Work::Submit { gives: Some(given), .. }) => {
                !self.crossings.iter().any(|c| c.from == device && c.given.slot == given.slot)
            }
            Some(Work::Take { crossing, .. }) => {
                self.crossings.iter().any(|c| c.given.crossing == *crossing && c.has_arrived)
            }
            Some(_) => true,
        }
    }

    fn start(&mut self, device: usize, work: Work) {
        let lane = &mut self.lanes[device];
        match work {
            Work::Write { buffer, at, bytes } => lane.gpu.queue.write_buffer(&buffer, at, &bytes),
            Work::Submit { commands, gives } => {
                let index = lane.gpu.submit_recorded(Some(commands));
                lane.last = Some(index.clone());
                let Some(given) = gives else { return };
                let (keeper, mapped) = promise();
                let staging = &lane.staging[given.slot];
                staging.map_async(wgpu::MapMode::Read, 0..given.n_byte, move |r| keeper.keep(r));
                let n_left = given.n_taker;
                self.crossings.push(Crossing {
                    given,
                    from: device,
                    index,
                    mapped,
                    has_arrived: false,
                    n_left,
                });
            }
            Work::Take { crossing, to } => self.carry(device, crossing, &to),
            Work::Mark { step } => {
                let index = lane.last.clone().expect("a step has submissions");
                self.ends.push((step, index));
            }
        }
    }

    /// Writes an arrived value to a device; the last that takes it frees the staging buffer.
    fn carry(&mut self, device: usize, crossing: CrossingId, to: &[(wgpu::Buffer, u64)]) {
        let nth = self.crossings.iter().position(|c| c.given.crossing == crossing).expect("it has arrived");
        let c = &mut self.crossings[nth];
        let from = &self.lanes[c.from];
        let staging = &from.staging[c.given.slot];
        let bytes = staging.get_mapped_range(0..c.given.n_byte).expect("it is mapped");
        let mut rest = &bytes[..];
        for (buffer, n_byte) in to {
            let (part, later) = rest.split_at(*n_byte as usize);
            self.lanes[device].gpu.queue.write_buffer(buffer, 0, part);
            rest = later;
        }
        drop(bytes);
        c.n_left -= 1;
        if c.n_left == 0 {
            staging.unmap();
            from.gpu.count_read(c.given.n_byte);
            self.crossings.remove(nth);
        }
    }
}
