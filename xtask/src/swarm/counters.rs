//! Counters of frames and bytes between workers and a hub.

use std::sync::atomic::{AtomicU64, Ordering};

/// Place of a frame's kind in its header.
pub(super) const KIND: usize = 5;
/// Kinds of tasks and of their answers.
pub(super) const TASK: u8 = 0x10;
pub(super) const ANSWER: u8 = 0x11;

/// Counters of all connections.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Bytes of frames to workers, and from them.
    pub(super) to_workers: AtomicU64,
    pub(super) from_workers: AtomicU64,
    /// Delayed frames.
    pub(super) n_frame: AtomicU64,
    /// Tasks and answers, their bytes, and those that the tables of docs/swarm.md give them.
    pub(super) n_data: AtomicU64,
    pub(super) data: AtomicU64,
    pub(super) formula: AtomicU64,
    /// Bytes of other frames.
    pub(super) other: AtomicU64,
    /// Bytes of the heads of WebSocket messages (RFC 6455), with a mask from the worker.
    pub(super) heads: AtomicU64,
    /// Bytes of sockets to the hub, both ways, with the handshake of HTTP.
    pub(super) socket: AtomicU64,
}

impl Counters {
    /// Counts a binary message between a worker and the hub.
    pub(super) fn count(&self, bytes: &[u8], is_from_worker: bool) {
        let n = bytes.len() as u64;
        let of_side = if is_from_worker { &self.from_workers } else { &self.to_workers };
        of_side.fetch_add(n, Ordering::Relaxed);
        let mask = if is_from_worker { 4 } else { 0 };
        let head = mask
            + if n < 126 {
                2
            } else if n < 1 << 16 {
                4
            } else {
                10
            };
        self.heads.fetch_add(head, Ordering::Relaxed);
        let Some(formula) = length_of(bytes) else {
            self.other.fetch_add(n, Ordering::Relaxed);
            return;
        };
        self.n_data.fetch_add(1, Ordering::Relaxed);
        self.data.fetch_add(n, Ordering::Relaxed);
        self.formula.fetch_add(formula, Ordering::Relaxed);
    }
}

/// Bytes of a task or an answer by the counts in it; `None` for other frames, and for fragments.
fn length_of(bytes: &[u8]) -> Option<u64> {
    let n = |at: usize, n_byte: usize| {
        let bytes = bytes.get(at..at + n_byte)?;
        Some(bytes.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte)))
    };
    let (is_sum, is_part) = (n(6, 2)? & 1 > 0, n(6, 2)? & 2 > 0 || n(30, 2)? > 0);
    let row = |width: u64, dtype: u64| match dtype {
        0 => 4 * width,
        3 => width.div_ceil(32) * 34,
        _ => 2 * width,
    };
    match *bytes.get(KIND)? {
        TASK if !is_part => {
            let (n_col, n_pair, width, n_run) = (n(32, 4)?, n(36, 4)?, n(40, 4)?, n(46, 2)?);
            let n_list = n_run + n_pair * if is_sum { 2 } else { 1 };
            Some(32 + 24 + 4 * n_list + (n_col * row(width, n(44, 1)?)).next_multiple_of(4))
        }
        ANSWER if !is_part => {
            let (n_row, width) = (n(32, 4)?, n(36, 4)?);
            Some(32 + 20 + (n_row * row(width, n(40, 1)?)).next_multiple_of(4))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use chaski_wire::{Answer, Body, Dtype, Frame, Limits, Pair, Rows, Run, Task};

    use super::*;

    #[test]
    fn lengths_follow_from_counts() {
        for (dtype, weights) in [(Dtype::F32, None), (Dtype::F16, Some(vec![0.5, 0.25])), (Dtype::Q8, None)] {
            let rows = Rows::encode(33, &[0.5; 33], dtype).unwrap();
            let sum = weights.is_some();
            let task = Task {
                runs: vec![Run { expert: 3, n: 1 }, Run { expert: 9, n: 1 }],
                pairs: vec![Pair { column: 0, slot: 0 }, Pair { column: 0, slot: 1 }],
                weights,
                rows: rows.clone(),
                answer: dtype,
                budget: 0,
                step_columns: 1,
            };
            let answer = Answer { rows, queue: 0, queued: 0, running: 0 };
            for body in [Body::Task(task), Body::Result { answer, sum }] {
                let frame = Frame { task: 1, epoch: 1, layer: 0, body };
                let bytes = frame.encode(&Limits::default(), true).unwrap().swap_remove(0);
                assert_eq!(length_of(&bytes), Some(bytes.len() as u64), "{dtype:?}");
            }
        }
        let ping = Frame::plain(Body::Ping(7)).encode(&Limits::default(), true).unwrap().swap_remove(0);
        assert_eq!(length_of(&ping), None);
    }
}
