//! A proxy between workers and a hub that delays frames of the data plane one by one, as independent latencies, and
//! passes requests for weights as they are.
//!
//! A constant delay is that of the network, half of it each way. One of a distribution is the time from a task to its
//! answer, the worker's own time in it, as the latencies of equation 18 are: an answer that takes the worker longer
//! passes at once. With `is_serial` it is the time of a service that answers one task after another.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
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
use super::counters::{ANSWER, Counters, KIND, TASK};
use super::delay::{Delay, Random};
use super::faults::Faults;
use super::timer::Timer;

/// Kinds that are delayed: tasks, answers, cancellations.
const DELAYED: std::ops::RangeInclusive<u8> = 0x10..=0x13;
/// Tasks whose time is remembered: their answers may never come.
const MOST_TASKS: usize = 4096;

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

/// Things that both directions of a connection share.
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
