//! Several devices at work: each has its submissions and writes in order, and values cross from one to the next by the
//! CPU.
//!
//! A step is recorded whole when it is sent, for all devices. What cannot start yet, since a value has not crossed,
//! waits in the device's lane, and everything sent to that device later waits behind it. So a device sees the order in
//! which it was sent, while the one before it runs the next piece of a prompt. Whoever waits for an output moves the
//! lanes on ([`Lanes::pump`]): no thread does. What the first layers on the CPU give (`first.rs`) crosses the same way.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::buffers::Part;
use super::device::Gpu;
use crate::error::RuntimeError;
use crate::plan::{N_CROSSING, N_READBACK};
use crate::platform::{Promise, glance, promise, wait};

/// Time between looks at the other devices while one is waited for.
const LOOK: Duration = Duration::from_micros(50);

/// Rings of chosen tokens that are kept for later columns: more steps are never under way.
const KEPT: usize = 2 * N_READBACK;

/// Identity of a value that crosses, in order of sending.
pub(super) type CrossingId = u64;

/// Values that layers on the CPU will give.
pub(super) type Values = Receiver<Result<Vec<u8>, RuntimeError>>;

/// A staging buffer that a submission fills.
#[derive(Copy, Clone)]
pub(super) struct Given {
    crossing: CrossingId,
    slot: usize,
    n_byte: u64,
    /// Devices that take it; 0 for rings, which are kept.
    n_taker: usize,
}

/// A token that a device chooses: the step's ring, and the word there.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct ChosenAt {
    pub(super) ring: CrossingId,
    pub(super) word: usize,
}

/// Tokens that are not all known yet: those that are, and the places of the others.
struct Tokens {
    known: Vec<u32>,
    missing: Vec<(usize, ChosenAt)>,
}

impl Tokens {
    /// Takes those of a ring.
    fn fill(&mut self, ring: CrossingId, words: &[u32]) {
        let Tokens { known, missing } = self;
        missing.retain(|(nth, at)| {
            let is_it = at.ring == ring;
            if is_it {
                known[*nth] = words[at.word];
            }
            !is_it
        });
    }
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
    /// Chosen tokens go to words of a buffer, at these offsets.
    Tokens {
        buffer: wgpu::Buffer,
        at: Vec<u64>,
        tokens: Tokens,
    },
    /// The end of a step.
    Mark {
        step: u64,
    },
}

/// A crossing under way or arrived, which not all have taken.
struct Crossing {
    id: CrossingId,
    source: Source,
    has_arrived: bool,
    /// Places that have not taken it.
    n_left: usize,
}

/// Where a value crosses from.
enum Source {
    /// The staging buffer of a device, after a submission.
    Device {
        device: usize,
        slot: usize,
        n_byte: u64,
        index: wgpu::SubmissionIndex,
        mapped: Promise<Result<(), wgpu::BufferAsyncError>>,
    },
    /// Layers on the CPU, and their values when they have arrived.
    Cpu { values: Values, arrived: Vec<u8> },
}

impl Source {
    /// The device; `None` for the CPU.
    fn device(&self) -> Option<usize> {
        match self {
            Source::Device { device, .. } => Some(*device),
            Source::Cpu { .. } => None,
        }
    }
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
    /// Crossings that layers on the CPU take.
    told: Vec<(CrossingId, Sender<Vec<u8>>)>,
    /// Chosen tokens that they wait for.
    told_tokens: Vec<(Tokens, Sender<Vec<u32>>)>,
    /// Rings of steps, oldest first, until they are read.
    rings: VecDeque<(CrossingId, Vec<u32>)>,
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
    /// Lanes of devices in layer order; `None` for one that has all layers.
    pub(super) fn new(parts: &[Part], is_after_cpu: bool) -> Option<Lanes> {
        let lane = |Part { gpu, buffers }: &Part| Lane {
            gpu: gpu.clone(),
            staging: buffers.crossing_staging.iter().chain(&buffers.ring_staging).cloned().collect(),
            work: VecDeque::new(),
            n_given: 0,
            last: None,
        };
        let state = || State { lanes: parts.iter().map(lane).collect(), ..State::default() };
        (parts.len() > 1 || is_after_cpu).then(|| Lanes(Mutex::new(state())))
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

    /// The crossing of the rings of a step from the last device, which the next [`Self::submit`] there must copy to the
    /// step's staging buffer.
    pub(super) fn give_ring(&self, slot: usize, n_byte: u64) -> Given {
        let mut state = self.state();
        let crossing = state.n_crossing;
        state.n_crossing += 1;
        Given { crossing, slot: N_CROSSING + slot, n_byte, n_taker: 0 }
    }

    /// Waits for the rings of a step.
    ///
    /// # Errors
    /// Device errors.
    pub(super) fn ring(&self, ring: CrossingId) -> Result<Vec<u32>, RuntimeError> {
        self.state().move_until(|state| {
            let nth = state.rings.iter().position(|(id, _)| *id == ring)?;
            state.rings.remove(nth).map(|(_, words)| words)
        })
    }

    /// Writes tokens that steps choose to words of a buffer, at these offsets.
    pub(super) fn write_chosen(&self, device: usize, buffer: &wgpu::Buffer, at: Vec<u64>, of: &[ChosenAt]) {
        let mut state = self.state();
        let (tokens, buffer) = (state.tokens(of), buffer.clone());
        state.lanes[device].work.push_back(Work::Tokens { buffer, at, tokens });
        state.run(device);
    }

    /// Passes tokens that steps choose to layers on the CPU.
    pub(super) fn tell_chosen(&self, of: &[ChosenAt]) -> Receiver<Vec<u32>> {
        let (sender, receiver) = channel();
        let mut state = self.state();
        let tokens = state.tokens(of);
        state.told_tokens.push((tokens, sender));
        state.tell();
        receiver
    }

    /// The crossing of values that the CPU will give to one device.
    pub(super) fn give_from_cpu(&self, values: Values) -> CrossingId {
        let mut state = self.state();
        let id = state.n_crossing;
        state.n_crossing += 1;
        let source = Source::Cpu { values, arrived: Vec::new() };
        state.crossings.push(Crossing { id, source, has_arrived: false, n_left: 1 });
        id
    }

    /// Passes a crossed value to the CPU.
    pub(super) fn take_on_cpu(&self, crossing: CrossingId) -> Receiver<Vec<u8>> {
        let (sender, receiver) = channel();
        self.state().told.push((crossing, sender));
        receiver
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
        state.told.clear();
        state.told_tokens.clear();
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

    /// Waits until the last device has finished a step, and keeps the others at work meanwhile. The tokens that it
    /// chose have then crossed back, so that the first device need not wait for the caller.
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
            let others_run = state.under_way().any(|crossing| crossing.source.device() != Some(main));
            let is_reached = wait(&gpu.device, &index, others_run.then_some(LOOK));
            state.pump()?;
            if is_reached {
                break;
            }
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
            let State { lanes, crossings, .. } = self;
            let mut under_way = crossings.iter_mut().filter(|crossing| !crossing.has_arrived);
            let oldest = under_way.next().expect("a lane that waits does so for a value under way");
            let is_alone = under_way.all(|crossing| crossing.source.device() == oldest.source.device());
            oldest.wait(lanes, (!is_alone).then_some(LOOK))?;
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
            if self.under_way().any(|crossing| crossing.source.device() == Some(i)) {
                glance(&lane.gpu.device);
            }
            lane.gpu.check()?;
        }
        for crossing in self.crossings.iter_mut().filter(|crossing| !crossing.has_arrived) {
            crossing.look(&self.lanes)?;
        }
        self.keep_rings();
        self.tell();
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
                let fills = |source: &Source| match source {
                    Source::Device { device: d, slot, .. } => (*d, *slot) == (device, given.slot),
                    Source::Cpu { .. } => false,
                };
                !self.crossings.iter().any(|c| fills(&c.source))
            }
            Some(Work::Take { crossing, .. }) => {
                self.crossings.iter().any(|c| c.id == *crossing && c.has_arrived)
            }
            Some(Work::Tokens { tokens, .. }) => tokens.missing.is_empty(),
            Some(_) => true,
        }
    }

    /// Tokens that steps choose, as far as they are known.
    fn tokens(&self, of: &[ChosenAt]) -> Tokens {
        let missing = of.iter().copied().enumerate().collect();
        let mut tokens = Tokens { known: vec![0; of.len()], missing };
        self.rings.iter().for_each(|(ring, words)| tokens.fill(*ring, words));
        tokens
    }

    /// Keeps arrived rings, which fill in the tokens that wait for them.
    fn keep_rings(&mut self) {
        let is_ring = |c: &Crossing| c.has_arrived && c.n_left == 0;
        while let Some(ring) = self.crossings.iter().find(|c| is_ring(c)).map(|c| c.id) {
            let mut words: Vec<u32> = Vec::new();
            self.taken(ring, |_, bytes| words = bytemuck::pod_collect_to_vec(bytes));
            let work = self.lanes.iter_mut().flat_map(|lane| &mut lane.work);
            let waiting = work.filter_map(|work| match work {
                Work::Tokens { tokens, .. } => Some(tokens),
                _ => None,
            });
            let told = self.told_tokens.iter_mut().map(|(tokens, _)| tokens);
            waiting.chain(told).for_each(|tokens| tokens.fill(ring, &words));
            self.rings.push_back((ring, words));
            self.rings.drain(..self.rings.len().saturating_sub(KEPT));
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
                let Given { crossing: id, slot, n_byte, n_taker: n_left } = given;
                let source = Source::Device { device, slot, n_byte, index, mapped };
                self.crossings.push(Crossing { id, source, has_arrived: false, n_left });
            }
            Work::Take { crossing, to } => self.carry(device, crossing, &to),
            Work::Tokens { buffer, at, tokens } => {
                for (at, token) in at.iter().zip(&tokens.known) {
                    lane.gpu.queue.write_buffer(&buffer, *at, &token.to_ne_bytes());
                }
            }
            Work::Mark { step } => {
                let index = lane.last.clone().expect("a step has submissions");
                self.ends.push((step, index));
            }
        }
    }

    /// Passes what has arrived to the CPU.
    fn tell(&mut self) {
        let has_arrived = |id| self.crossings.iter().any(|c| c.id == id && c.has_arrived);
        let (ready, rest) = std::mem::take(&mut self.told).into_iter().partition(|(id, _)| has_arrived(*id));
        self.told = rest;
        for (id, sender) in ready {
            // Nobody waits if the step was dropped.
            self.taken(id, |_, bytes| drop(sender.send(bytes.to_vec())));
        }
        let waits = |told: &(Tokens, Sender<Vec<u32>>)| !told.0.missing.is_empty();
        let (rest, ready) = std::mem::take(&mut self.told_tokens).into_iter().partition(waits);
        self.told_tokens = rest;
        ready.into_iter().for_each(|(tokens, sender): (Tokens, _)| drop(sender.send(tokens.known)));
    }

    /// Writes an arrived value to a device.
    fn carry(&mut self, device: usize, crossing: CrossingId, to: &[(wgpu::Buffer, u64)]) {
        self.taken(crossing, |lanes, bytes| {
            let mut rest = bytes;
            for (buffer, n_byte) in to {
                let (part, later) = rest.split_at(*n_byte as usize);
                lanes[device].gpu.queue.write_buffer(buffer, 0, part);
                rest = later;
            }
        });
    }

    /// Takes an arrived value; the last that does frees its staging buffer.
    fn taken(&mut self, id: CrossingId, take: impl FnOnce(&[Lane], &[u8])) {
        let nth = self.crossings.iter().position(|c| c.id == id).expect("it has arrived");
        let State { lanes, crossings, .. } = self;
        let c = &mut crossings[nth];
        c.n_left = c.n_left.saturating_sub(1);
        match &c.source {
            Source::Cpu { arrived, .. } => take(lanes, arrived),
            Source::Device { device, slot, n_byte, .. } => {
                let staging = &lanes[*device].staging[*slot];
                let bytes = staging.get_mapped_range(0..*n_byte).expect("it is mapped");
                take(lanes, &bytes);
                drop(bytes);
                if c.n_left == 0 {
                    staging.unmap();
                    lanes[*device].gpu.count_read(*n_byte);
                }
            }
        }
        if c.n_left == 0 {
            crossings.remove(nth);
        }
    }
}

impl Crossing {
    /// Looks whether it has arrived.
    fn look(&mut self, lanes: &[Lane]) -> Result<(), RuntimeError> {
        match &self.source {
            Source::Device { device, mapped, .. } => match mapped.take() {
                None => {}
                Some(Ok(())) => self.has_arrived = true,
                Some(Err(e)) => return Err(lanes[*device].gpu.failed("a readback", &e.to_string())),
            },
            Source::Cpu { values, .. } => match values.try_recv() {
                Ok(made) => self.arrive(made)?,
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => no_thread(),
            },
        }
        Ok(())
    }

    /// Waits until it has arrived, at most for this time.
    fn wait(&mut self, lanes: &[Lane], timeout: Option<Duration>) -> Result<(), RuntimeError> {
        match &self.source {
            Source::Device { device, index, .. } => {
                wait(&lanes[*device].gpu.device, index, timeout);
            }
            Source::Cpu { values, .. } => {
                let made = match timeout {
                    Some(timeout) => values.recv_timeout(timeout),
                    None => values.recv().map_err(|_| RecvTimeoutError::Disconnected),
                };
                match made {
                    Ok(made) => self.arrive(made)?,
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => no_thread(),
                }
            }
        }
        Ok(())
    }

    /// Values of the CPU arrive, or its error.
    fn arrive(&mut self, made: Result<Vec<u8>, RuntimeError>) -> Result<(), RuntimeError> {
        if let Source::Cpu { arrived, .. } = &mut self.source {
            *arrived = made?;
            self.has_arrived = true;
        }
        Ok(())
    }
}

/// The CPU's layers cannot go on after a panic, nor can this thread.
fn no_thread() -> ! {
    panic!("the thread of the layers on the CPU has panicked");
}
