//! A proxy between workers and a hub that delays frames of the data plane one by one, as independent latencies, and
//! passes requests for weights as they are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context as _;
use chaski_wire::{Frame, Limits};
use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{accept_async, client_async};

use super::delay::{Delay, Random};
use super::timer::Timer;

/// Place of a frame's kind in its header, and the kinds that are delayed: tasks, answers, cancellations.
const KIND: usize = 5;
const DELAYED: std::ops::RangeInclusive<u8> = 0x10..=0x13;
/// Answers, on which delays of a distribution lie.
const ANSWER: u8 = 0x11;

/// Counters of all connections.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Bytes of frames to workers, and from them.
    pub(super) to_workers: AtomicU64,
    pub(super) from_workers: AtomicU64,
    /// Delayed frames.
    pub(super) n_frame: AtomicU64,
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
    tap: Tap,
    /// Passes frames until it is dropped.
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Proxy {
    /// Listens on a port of its own.
    pub(super) async fn start(
        hub: &str,
        delay: Delay,
        seed: u64,
        timer: Timer,
        answers: mpsc::UnboundedSender<Frame>,
        counters: Arc<Counters>,
    ) -> anyhow::Result<Proxy> {
        let tap = Tap { inject: Arc::default(), answers };
        let taps = tap.clone();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let hub = hub.to_owned();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (hub, timer, tap, counters) =
                    (hub.clone(), timer.clone(), taps.clone(), counters.clone());
                tokio::spawn(async move {
                    // A worker that is killed, or a hub that ends, is no failure of the proxy.
                    let _ = pass(stream, &hub, (delay, Random(seed)), timer, tap, counters).await;
                });
            }
        });
        Ok(Proxy { address, tap, task })
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
    (delay, random): (Delay, Random),
    timer: Timer,
    tap: Tap,
    counters: Arc<Counters>,
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
    let (hub, _) = client_async(format!("ws://{hub}/swarm"), stream).await?;
    let (to_hub, from_hub) = hub.split();
    // A constant delay is half of it each way; one of a distribution is the round trip's, on the way back.
    let (there, back) = match delay {
        Delay::Constant(ms) => (Some(Delay::Constant(ms / 2.0)), Some(Delay::Constant(ms / 2.0))),
        other => (None, Some(other)),
    };
    let sent = |counter: fn(&Counters) -> &AtomicU64| {
        let counters = counters.clone();
        move |n: usize, is_delayed: bool| {
            counter(&counters).fetch_add(n as u64, Ordering::Relaxed);
            counters.n_frame.fetch_add(u64::from(is_delayed), Ordering::Relaxed);
        }
    };
    let (inject, injected) = mpsc::unbounded_channel();
    let (_open, nothing) = mpsc::unbounded_channel();
    *tap.inject.lock().expect("nobody panics with it") = Some(inject);
    let pass_all = |_: &Message| false;
    let take = |message: &Message| take_answer(message, &tap.answers);
    let link = Link { delay: there, random: random.clone(), timer: &timer };
    let down = forward(from_hub, to_worker, link, injected, pass_all, sent(|c| &c.to_workers));
    let link = Link { delay: back, random, timer: &timer };
    let up = forward(from_worker, to_hub, link, nothing, take, sent(|c| &c.from_workers));
    // When one side closes, so does the other.
    tokio::select! {
        result = down => result,
        result = up => result,
    }
}

/// Keeps an answer to a task of the tap from the hub; false for other messages.
fn take_answer(message: &Message, answers: &mpsc::UnboundedSender<Frame>) -> bool {
    let Message::Binary(bytes) = message else { return false };
    // The task's id lies in the header.
    let id = bytes.get(16..24).and_then(|id| id.try_into().ok()).map(u64::from_le_bytes);
    if id.is_none_or(|id| id < TAP) {
        return false;
    }
    if let Ok(frame) = Frame::decode(bytes, &Limits::default()) {
        // A table that has ended waits for no answers.
        let _ = answers.send(frame);
    }
    true
}

/// Delays of one direction.
struct Link<'a> {
    delay: Option<Delay>,
    random: Random,
    timer: &'a Timer,
}

/// Passes messages in one direction. Each data frame waits by itself, so that a late one holds up nobody. Messages of
/// `more` come in between; those that `takes` keeps go no further.
async fn forward(
    mut from: impl Stream<Item = Result<Message, Error>> + Unpin,
    mut to: impl Sink<Message, Error = Error> + Unpin,
    mut link: Link<'_>,
    mut more: mpsc::UnboundedReceiver<Message>,
    takes: impl Fn(&Message) -> bool,
    count: impl Fn(usize, bool),
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
        let waits = kind_of(&message).is_some_and(|kind| match link.delay {
            Some(Delay::Constant(_)) => DELAYED.contains(&kind),
            Some(_) => kind == ANSWER,
            None => false,
        });
        count(message.len(), waits);
        let delay = link.delay.filter(|_| waits);
        let pause = delay.map_or(Duration::ZERO, |delay| delay.draw(&mut link.random));
        if !pause.is_zero() {
            let sender = sender.clone();
            // The connection may have ended.
            link.timer.after(pause, move || drop(sender.send(message)));
        } else if !takes(&message) {
            to.send(message).await?;
        }
    }
}

/// Kind of a frame.
fn kind_of(message: &Message) -> Option<u8> {
    match message {
        Message::Binary(bytes) => bytes.get(KIND).copied(),
        _ => None,
    }
}
