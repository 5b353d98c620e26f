//! A proxy between workers and a hub that delays frames of the data plane one by one, as independent latencies, and
//! passes requests for weights as they are.
//!
//! A constant delay is that of the network, half of it each way. One of a distribution is the time from a task to its
//! answer, the worker's own time in it, as the latencies of equation 18 are: an answer that takes the worker longer
//! passes at once. With `is_serial` it is the time of a service that answers one task after another.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use chaski_wire::{Frame, Limits};
use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{accept_async, client_async};

use super::counted::Counted;
use super::delay::{Delay, Random};
use super::faults::Faults;
use super::timer::Timer;

/// Place of a frame's kind in its header, and the kinds that are delayed: tasks, answers, cancellations.
const KIND: usize = 5;
const DELAYED: std::ops::RangeInclusive<u8> = 0x10..=0x13;
/// Tasks, and their answers, on which delays of a distribution lie.
const TASK: u8 = 0x10;
const ANSWER: u8 = 0x11;
/// Tasks whose time is remembered: their answers may never come.
const MOST_TASKS: usize = 4096;

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
    fn count(&self, bytes: &[u8], is_from_worker: bool) {
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

/// First id of tasks that a tap sends: a hub's own ids are far below.
pub(super) const TAP: u64 = 1 << 62;

/// Frames that the lab sends to a worker by itself, and the answers to them, which the hub does not see.
#[derive(Clone)]
struct Tap {
    /// Frames for the connection, when there is one.
    inject: Arc<Mutex<Option<mpsc::UnboundedSender<Message>>>>,
    answers: mpsc::UnboundedSender<Frame>,
}

/// A proxy for one worker.
pub(super) struct Proxy {
    /// Its address, for the worker.
    pub(super) address: String,
    pub(super) faults: Arc<Faults>,
    tap: Tap,
    /// Passes frames until it is dropped.
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Settings of a proxy, and what proxies share.
#[derive(Clone)]
pub(super) struct Network {
    pub(super) delay: Delay,
    /// Answers wait for those before them.
    pub(super) is_serial: bool,
    pub(super) timer: Timer,
    pub(super) answers: mpsc::UnboundedSender<Frame>,
    pub(super) counters: Arc<Counters>,
}

impl Proxy {
    /// Listens on a port of its own for a worker of a hub, whose address may change.
    pub(super) async fn start(hub: Arc<Mutex<String>>, seed: u64, network: Network) -> anyhow::Result<Proxy> {
        let tap = Tap { inject: Arc::default(), answers: network.answers.clone() };
        let faults = Arc::new(Faults::default());
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let (taps, shared) = (tap.clone(), faults.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let hub = hub.lock().expect("nobody panics with it").clone();
                let (network, tap, faults) = (network.clone(), taps.clone(), shared.clone());
                tokio::spawn(async move {
                    // A worker that is killed, or a hub that ends, is no failure of the proxy.
                    let _ = pass(stream, &hub, Random(seed), &network, tap, &faults).await;
                });
            }
        });
        Ok(Proxy { address, faults, tap, task })
    }

    /// Sends a frame to the worker; its id is at least [`TAP`] if it is a task.
    ///
    /// # Errors
    /// No worker is connected.
    pub(super) fn send(&self, frame: &Frame) -> anyhow::Result<()> {
        let inject = self.tap.inject.lock().expect("nobody panics with it");
        let inject = inject.as_ref().context("no worker is connected")?;
        for bytes in frame.encode(&Limits::default(), true)? {
            inject.send(Message::binary(bytes))?;
        }
        Ok(())
    }
}

/// Passes a connection: a WebSocket frame by frame, another one byte by byte.
async fn pass(
    mut worker: TcpStream,
    hub: &str,
    random: Random,
    network: &Network,
    tap: Tap,
    faults: &Faults,
) -> anyhow::Result<()> {
    let mut head = [0; 16];
    let n = worker.peek(&mut head).await?;
    let mut stream = TcpStream::connect(hub).await.context("the hub is gone")?;
    worker.set_nodelay(true)?;
    stream.set_nodelay(true)?;
    if !head[..n].starts_with(b"GET /swarm HTTP") {
        tokio::io::copy_bidirectional(&mut worker, &mut stream).await?;
        return Ok(());
    }
    let (to_worker, from_worker) = accept_async(worker).await?.split();
    let stream = Counted::new(stream, network.counters.clone());
    let (hub, _) = client_async(format!("ws://{hub}/swarm"), stream).await?;
    let (to_hub, from_hub) = hub.split();
    let (inject, injected) = mpsc::unbounded_channel();
    let (_open, nothing) = mpsc::unbounded_channel();
    *tap.inject.lock().expect("nobody panics with it") = Some(inject);
    let shared = Shared { network, faults, sent: Mutex::default() };
    let link = Link { shared: &shared, random: random.clone(), is_answers: false, free: None };
    let down = link.forward(from_hub, to_worker, injected, |_| false);
    let link = Link { shared: &shared, random, is_answers: true, free: None };
    let up = link.forward(from_worker, to_hub, nothing, |message| take_answer(message, &tap.answers));
    // When one side closes, so does the other.
    tokio::select! {
        result = down => result,
        result = up => result,
    }
}

/// Keeps an answer to a task of the tap from the hub; false for other messages.
fn take_answer(message: &Message, answers: &mpsc::UnboundedSender<Frame>) -> bool {
    let Message::Binary(bytes) = message else { return false };
    if task_of(bytes).is_none_or(|id| id < TAP) {
        return false;
    }
    if let Ok(frame) = Frame::decode(bytes, &Limits::default()) {
        // A table that has ended waits for no answers.
        let _ = answers.send(frame);
    }
    true
}

/// The task in the header of a frame.
fn task_of(bytes: &[u8]) -> Option<u64> {
    bytes.get(16..24).and_then(|id| id.try_into().ok()).map(u64::from_le_bytes)
}

/// What both directions of a connection share.
struct Shared<'a> {
    network: &'a Network,
    faults: &'a Faults,
    /// When tasks passed to the worker.
    sent: Mutex<HashMap<u64, Instant>>,
}

/// One direction of a connection.
struct Link<'a> {
    shared: &'a Shared<'a>,
    random: Random,
    /// From the worker to the hub.
    is_answers: bool,
    /// When the last answer leaves, of those that wait for each other.
    free: Option<Instant>,
}

impl Link<'_> {
    /// Passes messages. Each data frame waits by itself, so that a late one holds up nobody. Messages of `more` come in
    /// between; those that `takes` keeps go no further.
    async fn forward(
        mut self,
        mut from: impl Stream<Item = Result<Message, Error>> + Unpin,
        mut to: impl Sink<Message, Error = Error> + Unpin,
        mut more: mpsc::UnboundedReceiver<Message>,
        takes: impl Fn(&Message) -> bool,
    ) -> anyhow::Result<()> {
        let (sender, mut receiver) = mpsc::unbounded_channel::<Message>();
        loop {
            let message = tokio::select! {
                Some(message) = receiver.recv() => {
                    if !takes(&message) {
                        to.send(message).await?;
                    }
                    continue;
                }
                Some(message) = more.recv() => message,
                message = from.next() => match message {
                    Some(message) => message?,
                    None => return Ok(to.close().await?),
                },
            };
            if self.shared.faults.is_cut(self.is_answers) {
                continue;
            }
            if let Message::Close(Some(close)) = &message {
                self.shared.faults.note_close(&close.reason);
            }
            for message in self.changed(message) {
                let pause = self.pause(&message);
                if !pause.is_zero() {
                    let sender = sender.clone();
                    // The connection may have ended.
                    self.shared.network.timer.after(pause, move || drop(sender.send(message)));
                } else if !takes(&message) {
                    to.send(message).await?;
                }
            }
        }
    }

    /// A message with the faults of the link.
    fn changed(&self, message: Message) -> Vec<Message> {
        let faults = self.shared.faults;
        match (kind_of(&message), message) {
            (Some(TASK), Message::Binary(bytes)) => vec![Message::binary(faults.task(bytes.into()))],
            (Some(ANSWER), Message::Binary(bytes)) => {
                faults.answer(bytes.into()).into_iter().map(Message::binary).collect()
            }
            (_, message) => vec![message],
        }
    }

    /// Counts a message; the time that it waits.
    fn pause(&mut self, message: &Message) -> Duration {
        let Shared { network, faults, sent } = self.shared;
        let Some(kind) = kind_of(message) else { return Duration::ZERO };
        let Message::Binary(bytes) = message else { return Duration::ZERO };
        let counters = &network.counters;
        counters.count(bytes, self.is_answers);
        if !DELAYED.contains(&kind) {
            return Duration::ZERO;
        }
        counters.n_frame.fetch_add(1, Ordering::Relaxed);
        let (now, more) = (Instant::now(), faults.pause(bytes.len()));
        let task = task_of(bytes).unwrap_or(0);
        let mut sent = sent.lock().expect("nobody panics with it");
        if kind == TASK {
            if sent.len() >= MOST_TASKS {
                sent.clear();
            }
            sent.insert(task, now);
        }
        let begin = if kind == ANSWER { sent.remove(&task).unwrap_or(now) } else { now };
        let due = match network.delay {
            Delay::Constant(ms) => now + Duration::from_secs_f64(ms / 2e3),
            _ if kind != ANSWER => now,
            delay if network.is_serial => {
                let free = self.free.map_or(begin, |free| free.max(begin));
                *self.free.insert(free + delay.draw(&mut self.random))
            }
            delay => begin + delay.draw(&mut self.random),
        };
        (due + more).saturating_duration_since(now)
    }
}

/// Kind of a frame.
fn kind_of(message: &Message) -> Option<u8> {
    match message {
        Message::Binary(bytes) => bytes.get(KIND).copied(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use chaski_wire::{Answer, Body, Dtype, Pair, Rows, Run, Task};

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
