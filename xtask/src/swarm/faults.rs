//! Faults that a proxy puts on its frames: lies of a worker, and everything else that a network or a peer does wrong.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use chaski_wire::{Answer, Body, Frame, HEADER, Limits, Rows, Run};

/// A wrong answer of a worker.
#[derive(Copy, Clone, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Lie {
    /// Rows of zeros.
    Zero,
    /// A value that is no number.
    Nan,
    /// All values times 1.01.
    #[value(name = "x1.01")]
    Factor,
    /// The product of the expert beside the one that was asked for.
    OtherExpert,
    /// The rows of the answer before.
    Stale,
}

/// A fault of the next answer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Once {
    /// One bit of the frame differs.
    BitFlip,
    /// The frame ends early.
    Truncated,
    /// The frame says that it is longer than it may be.
    Oversize,
    /// The epoch of the header is another one.
    WrongEpoch,
    /// The answer comes twice.
    Twice,
    /// A value is no number.
    Nan,
}

/// Faults of a link that last.
#[derive(Debug)]
pub(super) struct Faults {
    /// Lies in every answer.
    lie: Mutex<Option<Lie>>,
    once: Mutex<VecDeque<Once>>,
    /// Rows of the last answer.
    last: Mutex<Vec<f32>>,
    /// Nothing passes to the worker, or from it.
    pub(super) cut: [AtomicBool; 2],
    /// Time that is added to every frame of the data plane, in microseconds.
    pub(super) slow: AtomicU64,
    /// Bytes per second of the link; 0 for no limit.
    pub(super) rate: AtomicU64,
    /// Answers that were lies.
    pub(super) n_lie: AtomicU64,
    /// The hub's reason to close the connection.
    closed: Mutex<Option<String>>,
}

impl Default for Faults {
    fn default() -> Faults {
        Faults {
            lie: Mutex::new(None),
            once: Mutex::new(VecDeque::new()),
            last: Mutex::new(Vec::new()),
            cut: [const { AtomicBool::new(false) }; 2],
            slow: AtomicU64::new(0),
            rate: AtomicU64::new(0),
            n_lie: AtomicU64::new(0),
            closed: Mutex::new(None),
        }
    }
}

/// The value behind a lock that nobody panics with.
fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics with it")
}

impl Faults {
    /// Has the worker lie from now on, or no more.
    pub(super) fn set_lie(&self, lie: Option<Lie>) {
        *locked(&self.lie) = lie;
    }

    /// Damages the next answer.
    pub(super) fn push(&self, once: Once) {
        locked(&self.once).push_back(once);
    }

    /// Takes away everything that lasts.
    pub(super) fn heal(&self) {
        self.set_lie(None);
        locked(&self.once).clear();
        self.cut.iter().for_each(|cut| cut.store(false, Ordering::Relaxed));
        self.slow.store(0, Ordering::Relaxed);
        self.rate.store(0, Ordering::Relaxed);
    }

    pub(super) fn is_cut(&self, is_answer: bool) -> bool {
        self.cut[usize::from(is_answer)].load(Ordering::Relaxed)
    }

    /// Time that a frame of so many bytes takes more.
    pub(super) fn pause(&self, n_byte: usize) -> Duration {
        let rate = self.rate.load(Ordering::Relaxed);
        let on_link = if rate > 0 { n_byte as f64 / rate as f64 } else { 0.0 };
        Duration::from_micros(self.slow.load(Ordering::Relaxed)) + Duration::from_secs_f64(on_link)
    }

    /// Notes that the hub closes the connection.
    pub(super) fn note_close(&self, reason: &str) {
        *locked(&self.closed) = Some(reason.to_owned());
    }

    /// Forgets a connection that was closed.
    pub(super) fn forget_close(&self) {
        *locked(&self.closed) = None;
    }

    /// The hub's reason to close the last connection.
    pub(super) fn closed(&self) -> Option<String> {
        locked(&self.closed).clone()
    }

    /// A task on its way to the worker, with another expert if the worker should compute that.
    pub(super) fn task(&self, bytes: Vec<u8>) -> Vec<u8> {
        if *locked(&self.lie) != Some(Lie::OtherExpert) {
            return bytes;
        }
        let Ok(mut frame) = Frame::decode(&bytes, &Limits::default()) else { return bytes };
        let Body::Task(task) = &mut frame.body else { return bytes };
        let experts: Vec<u16> = task.runs.iter().map(|run| run.expert).collect();
        // Both of a pair are in one unit, and in one place of the order, if one of them alone is asked for.
        for Run { expert, .. } in &mut task.runs {
            if !experts.contains(&(*expert ^ 1)) {
                *expert ^= 1;
                self.n_lie.fetch_add(1, Ordering::Relaxed);
            }
        }
        encoded(&frame, bytes)
    }

    /// The messages in place of an answer.
    pub(super) fn answer(&self, bytes: Vec<u8>) -> Vec<Vec<u8>> {
        let lie = *locked(&self.lie);
        let bytes = match lie {
            Some(lie) => self.lied(lie, bytes),
            None => bytes,
        };
        match locked(&self.once).pop_front() {
            Some(once) => damaged(once, bytes),
            None => vec![bytes],
        }
    }

    fn lied(&self, lie: Lie, bytes: Vec<u8>) -> Vec<u8> {
        let Ok(mut frame) = Frame::decode(&bytes, &Limits::default()) else { return bytes };
        let Body::Result { answer, .. } = &mut frame.body else { return bytes };
        let values = answer.rows.to_f32();
        let before = std::mem::replace(&mut *locked(&self.last), values.clone());
        let lied: Vec<f32> = match lie {
            Lie::Zero => vec![0.0; values.len()],
            Lie::Factor => values.iter().map(|v| v * 1.01).collect(),
            Lie::Stale if before.is_empty() => return bytes,
            Lie::Stale => before.iter().copied().cycle().take(values.len()).collect(),
            Lie::Nan => {
                self.n_lie.fetch_add(1, Ordering::Relaxed);
                return with_nan(&frame, bytes);
            }
            // The worker has computed it.
            Lie::OtherExpert => return bytes,
        };
        let Answer { rows, .. } = answer;
        match Rows::encode(rows.width(), &lied, rows.dtype()) {
            Ok(lied) => *rows = lied,
            Err(_) => return bytes,
        }
        self.n_lie.fetch_add(1, Ordering::Relaxed);
        encoded(&frame, bytes)
    }
}

/// A frame as one message; the old one if it does not fit.
fn encoded(frame: &Frame, old: Vec<u8>) -> Vec<u8> {
    match frame.encode(&Limits::default(), true) {
        Ok(mut messages) if messages.len() == 1 => messages.swap_remove(0),
        _ => old,
    }
}

/// An answer whose first value is no number. Without a checksum, which would tell.
fn with_nan(frame: &Frame, old: Vec<u8>) -> Vec<u8> {
    let messages = frame.encode(&Limits::default(), false);
    let Ok(Some(mut bytes)) = messages.map(|mut messages| messages.pop()) else { return old };
    // Behind the header of the frame and that of the answer.
    if let Some(value) = bytes.get_mut(HEADER + 20..HEADER + 24) {
        value.fill(0xff);
    }
    bytes
}

fn damaged(once: Once, mut bytes: Vec<u8>) -> Vec<Vec<u8>> {
    match once {
        Once::BitFlip => {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 4;
        }
        Once::Truncated => bytes.truncate(bytes.len() * 2 / 3),
        Once::Oversize => bytes[8..12].fill(0xff),
        Once::WrongEpoch => {
            if let Ok(mut frame) = Frame::decode(&bytes, &Limits::default()) {
                frame.epoch = frame.epoch.wrapping_add(7);
                bytes = encoded(&frame, bytes);
            }
        }
        Once::Twice => return vec![bytes.clone(), bytes],
        Once::Nan => {
            if let Ok(frame) = Frame::decode(&bytes, &Limits::default()) {
                bytes = with_nan(&frame, bytes);
            }
        }
    }
    vec![bytes]
}

#[cfg(test)]
mod tests {
    use chaski_wire::Dtype;

    use super::*;

    fn answer(values: &[f32]) -> Vec<u8> {
        let rows = Rows::encode(2, values, Dtype::F32).unwrap();
        let answer = Answer { rows, queue: 0, queued: 1, running: 2 };
        let frame = Frame { task: 5, epoch: 1, layer: 3, body: Body::Result { answer, sum: false } };
        frame.encode(&Limits::default(), true).unwrap().swap_remove(0)
    }

    fn values(message: &[u8]) -> Option<Vec<f32>> {
        match Frame::decode(message, &Limits::default()).ok()?.body {
            Body::Result { answer, .. } => Some(answer.rows.to_f32()),
            _ => None,
        }
    }

    #[test]
    fn lies_are_frames_that_hubs_can_read() {
        let faults = Faults::default();
        let honest = answer(&[1.0, -2.0]);
        assert_eq!(faults.answer(honest.clone()).concat(), honest);
        for (lie, expected) in [(Lie::Zero, [0.0, 0.0]), (Lie::Factor, [1.01, -2.02])] {
            faults.set_lie(Some(lie));
            assert_eq!(values(&faults.answer(honest.clone())[0]).unwrap(), expected);
        }
        faults.set_lie(Some(Lie::Stale));
        assert_eq!(values(&faults.answer(answer(&[7.0, 8.0]))[0]).unwrap(), [1.0, -2.0]);
        faults.set_lie(Some(Lie::Nan));
        assert_eq!(values(&faults.answer(honest.clone())[0]), None);
        assert_eq!(faults.n_lie.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn damage_is_noticed_and_twice_is_twice() {
        for once in [Once::BitFlip, Once::Truncated, Once::Oversize, Once::Nan] {
            let faults = Faults::default();
            faults.push(once);
            assert_eq!(values(&faults.answer(answer(&[1.0, 2.0]))[0]), None, "{once:?}");
            assert!(values(&faults.answer(answer(&[1.0, 2.0]))[0]).is_some(), "one answer is damaged");
        }
        let faults = Faults::default();
        faults.push(Once::Twice);
        assert_eq!(faults.answer(answer(&[1.0, 2.0])).len(), 2);
    }
}
