//! A worker's connection, at the hub: handshake, then frames both ways.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket};
use chaski_swarm::{Class, CloseReason, Event, HostId, Joined, PeerId};
use chaski_wire::{
    Assembler, Assign, Blob, Body, Challenge, Control, Digest, EVEN_LAYERS, Frame, HEADER, Handshake, Header,
    Hello, Hex, Limits, Refuse, RefuseCode, Role, Token, UnitKind, Welcome,
};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::catalogue::{Catalogue, SKELETON};
use super::driver::{Connection, Core, Out, worker_id};
use super::pages::{NO_PAGES, PagePlan, Pages};
use crate::swarm_options::random;

/// Time for the handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Time for a frame to leave: a worker that takes nothing is gone.
const SENDING: Duration = Duration::from_secs(10);

/// All that sessions share.
pub(crate) struct Hall {
    /// The hub.
    pub(crate) core: Arc<Core>,
    /// Its model.
    pub(crate) catalogue: Arc<Catalogue>,
    /// The token, if there is one.
    pub(crate) token: Option<Token>,
    /// The class whose workers alone serve, in exact mode.
    pub(crate) class: Option<Digest>,
    /// The plans of pages; `None` in exact mode.
    pub(crate) pages: Option<Pages>,
}

/// A worker that has said who it is and proved the token.
struct Guest {
    hello: Hello,
    limits: Limits,
    key: Hex<16>,
}

/// Serves a connection until its end. `is_page`: a browser opened it.
pub(crate) async fn serve(mut socket: WebSocket, hall: Arc<Hall>, ip: IpAddr, is_page: bool) {
    let guest = match timeout(HANDSHAKE, greet(&mut socket, &hall, is_page)).await {
        Ok(Ok(guest)) => guest,
        Ok(Err(error)) => return tracing::info!(%ip, "a worker was not taken: {error:#}"),
        Err(_) => return tracing::info!(%ip, "a worker was not taken: no handshake within 5 s"),
    };
    let plan = match planned(&mut socket, &guest.hello, hall.pages.as_ref()).await {
        Ok(plan) => plan,
        Err(error) => return tracing::info!(%ip, "a page was not taken: {error:#}"),
    };
    tracing::info!(%ip, name = guest.hello.name, "a worker joins");
    let (sink, stream) = socket.split();
    let (out, outbox) = mpsc::unbounded_channel();
    let (assign, assignments) = mpsc::unbounded_channel();
    let Guest { hello, limits, key } = guest;
    let worker = joined(&hello, ip);
    if let (Some(pages), Some(plan)) = (&hall.pages, &plan) {
        pages.keep(key, plan.clone());
    }
    // Before it can ask for weights, the hub must know its key, so WELCOME leaves after it has joined.
    let _ = out.send(Out::Frame(welcome(&hall.catalogue, limits, key, plan.as_deref())));
    let connection = Connection {
        out: out.clone(),
        assign,
        key,
        name: hello.name,
        device: hello.device,
        units: BTreeSet::new(),
    };
    let peer = hall.core.join(connection, worker);
    let weights = plan.map_or_else(|| Weights::File(hall.catalogue.clone()), Weights::Packed);
    tokio::spawn(hand_out(assignments, weights, out));
    tokio::select! {
        () = read(stream, &hall.core, peer, limits) => {}
        written = write(sink, outbox, limits) => {
            if let Err(error) = written {
                tracing::info!("frames to a worker: {error:#}");
            }
        }
    }
    hall.core.leave(peer);
    hall.pages.iter().for_each(|pages| pages.forget(&key));
}

/// The weights that a worker fetches.
#[derive(Clone)]
enum Weights {
    /// Ranges of the model's file.
    File(Arc<Catalogue>),
    /// Experts in the layout of a page's device.
    Packed(Arc<PagePlan>),
}

impl Weights {
    fn assignment(
        &self,
        epoch: u32,
        units: &[chaski_swarm::Unit],
        known: &mut BTreeSet<chaski_swarm::Unit>,
    ) -> anyhow::Result<Vec<Assign>> {
        match self {
            Weights::File(catalogue) => catalogue.assignment(epoch, units, known),
            Weights::Packed(plan) => plan.assignment(epoch, units, known),
        }
    }
}

/// The worker as the state machine sees it. Processes on this machine count as machines of their own.
fn joined(hello: &Hello, ip: IpAddr) -> Joined {
    let mut hasher = DefaultHasher::new();
    match ip.is_loopback() {
        true => hello.id.0.hash(&mut hasher),
        false => ip.hash(&mut hasher),
    }
    let class = hello.class.0.first_chunk().expect("32 bytes have a first 8");
    Joined {
        worker: worker_id(&hello.id),
        host: HostId(hasher.finish()),
        class: Class(u64::from_le_bytes(*class)),
        memory: hello.memory,
        is_even: hello.features.iter().any(|feature| feature == EVEN_LAYERS),
    }
}

/// HELLO, CHALLENGE, PROOF.
async fn greet(socket: &mut WebSocket, hall: &Hall, is_page: bool) -> anyhow::Result<Guest> {
    let ours = Limits::default();
    let message = receive(socket).await?;
    let Body::Control(Control::Hello(hello)) = Frame::decode(&message, &ours)?.body else {
        return refuse(socket, RefuseCode::Protocol, "expected HELLO").await;
    };
    let handshake = Handshake::new(Hex(random()?), hello.nonce, &message[HEADER..]);
    let proof = hall.token.as_ref().map(|token| handshake.prove(token, Role::Hub));
    send(socket, Control::Challenge(Challenge { nonce: handshake.hub, proof })).await?;
    let message = receive(socket).await?;
    let Body::Control(Control::Proof(answer)) = Frame::decode(&message, &ours)?.body else {
        return refuse(socket, RefuseCode::Protocol, "expected PROOF").await;
    };
    if let Err(error) = handshake.verify(hall.token.as_ref(), Role::Worker, answer.proof.as_ref()) {
        return refuse(socket, RefuseCode::Token, &error.to_string()).await;
    }
    if hello.build != env!("CARGO_PKG_VERSION") {
        let text = format!("the hub has version {}, the worker {}", env!("CARGO_PKG_VERSION"), hello.build);
        return refuse(socket, RefuseCode::Build, &text).await;
    }
    if hall.class.is_some_and(|class| class != hello.class) {
        let text = "the hub keeps the bits of its own products, which this worker does not have: it needs the same \
                    device and options, or the hub --swarm-fast";
        return refuse(socket, RefuseCode::Build, text).await;
    }
    if !hello.units.contains(&UnitKind::Experts) {
        return refuse(socket, RefuseCode::Units, "the hub gives experts, which the worker does not take")
            .await;
    }
    if is_page && hello.page.is_none() {
        return refuse(socket, RefuseCode::Protocol, "a page says what its device can").await;
    }
    if hello.page.is_some() && hall.pages.is_none() {
        return refuse(socket, RefuseCode::Build, NO_PAGES).await;
    }
    let limits = ours.min(hello.limits);
    Ok(Guest { hello, limits, key: Hex(random()?) })
}

/// The plan of a page; `None` for other workers. It takes longer than a handshake may.
async fn planned(
    socket: &mut WebSocket,
    hello: &Hello,
    pages: Option<&Pages>,
) -> anyhow::Result<Option<Arc<PagePlan>>> {
    let (Some(caps), Some(pages)) = (hello.page, pages) else { return Ok(None) };
    let mut made = std::pin::pin!(pages.plan(caps, hello.memory));
    let made = loop {
        // A silent connection would be closed.
        match timeout(SENDING, &mut made).await {
            Ok(made) => break made,
            Err(_) => timeout(SENDING, socket.send(Message::Ping(Bytes::new()))).await??,
        }
    };
    match made {
        Ok(plan) => Ok(Some(plan)),
        Err(Refuse { code, text }) => timeout(SENDING, refuse(socket, code, &text)).await?,
    }
}

fn welcome(catalogue: &Catalogue, limits: Limits, key: Hex<16>, plan: Option<&PagePlan>) -> Frame {
    let (skeleton, sha256) = catalogue.skeleton();
    let skeleton = Blob { path: SKELETON.to_owned(), length: skeleton.len() as u64, sha256 };
    let block = catalogue.shape().block;
    let plan = plan.map(PagePlan::blob);
    let welcome = Welcome { worker: 0, model: sha256, skeleton, block, key, limits, epoch: 0, plan };
    Frame::plain(Body::Control(Control::Welcome(welcome)))
}

/// The next binary message.
async fn receive(socket: &mut WebSocket) -> anyhow::Result<Vec<u8>> {
    loop {
        match socket.recv().await.context("the worker has closed the connection")?? {
            Message::Binary(bytes) => return Ok(bytes.into()),
            Message::Ping(_) | Message::Pong(_) => {}
            Message::Text(_) => bail!("a text message"),
            Message::Close(_) => bail!("the worker has closed the connection"),
        }
    }
}

async fn send(socket: &mut WebSocket, control: Control) -> anyhow::Result<()> {
    for frame in Frame::plain(Body::Control(control)).encode(&Limits::default(), true)? {
        socket.send(Message::Binary(frame.into())).await?;
    }
    Ok(())
}

/// Says why, and fails.
async fn refuse<T>(socket: &mut WebSocket, code: RefuseCode, text: &str) -> anyhow::Result<T> {
    send(socket, Control::Refuse(Refuse { code, text: text.to_owned() })).await?;
    bail!("{text}")
}

/// Hands frames of the worker to the hub until the connection ends.
async fn read(mut stream: SplitStream<WebSocket>, core: &Arc<Core>, peer: PeerId, limits: Limits) {
    let mut assembler = Assembler::new(limits);
    while let Some(Ok(message)) = stream.next().await {
        let bytes = match message {
            Message::Binary(bytes) => bytes,
            Message::Close(_) => return,
            Message::Text(_) => {
                core.on(Event::Malformed { peer, task: 0 });
                continue;
            }
            Message::Ping(_) | Message::Pong(_) => continue,
        };
        match assembler.push(&bytes) {
            Ok(None) => {}
            Ok(Some(Frame { task, epoch, layer, body: Body::Result { answer, sum } })) => {
                // Before the lock, so that connections decode at once.
                let values = answer.rows.to_f32();
                core.on(Event::Answer { peer, name: (task, epoch, layer), sum, answer, values });
            }
            Ok(Some(frame)) => core.on(Event::Frame { peer, frame }),
            Err(error) => {
                tracing::warn!("a frame of a worker: {error}");
                let task = Header::read(&bytes, &limits).map_or(0, |header| header.task);
                core.on(Event::Malformed { peer, task });
            }
        }
    }
}

/// Writes frames to the worker until its channel ends.
async fn write(
    mut sink: SplitSink<WebSocket, Message>,
    mut outbox: mpsc::UnboundedReceiver<Out>,
    limits: Limits,
) -> anyhow::Result<()> {
    while let Some(out) = outbox.recv().await {
        match out {
            Out::Frame(frame) => {
                for bytes in frame.encode(&limits, true)? {
                    timeout(SENDING, sink.send(Message::Binary(bytes.into()))).await??;
                }
            }
            Out::Close(reason) => {
                let frame = CloseFrame { code: 1000, reason: format!("{reason:?}").into() };
                timeout(SENDING, sink.send(Message::Close(Some(frame)))).await??;
                timeout(SENDING, sink.close()).await??;
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Sends assignments, whose weights take time to hash: of several that wait only the last counts.
async fn hand_out(
    mut assignments: mpsc::UnboundedReceiver<(u32, Vec<chaski_swarm::Unit>)>,
    weights: Weights,
    out: mpsc::UnboundedSender<Out>,
) {
    let mut known = BTreeSet::new();
    while let Some(mut next) = assignments.recv().await {
        while let Ok(later) = assignments.try_recv() {
            next = later;
        }
        let (weights, (epoch, units)) = (weights.clone(), next);
        let mut described = std::mem::take(&mut known);
        let make = move || {
            let messages = weights.assignment(epoch, &units, &mut described)?;
            anyhow::Ok((messages, described))
        };
        match tokio::task::spawn_blocking(make).await {
            Ok(Ok((messages, described))) => {
                known = described;
                for assign in messages {
                    let frame = Frame::plain(Body::Control(Control::Assign(assign)));
                    if out.send(Out::Frame(frame)).is_err() {
                        return;
                    }
                }
            }
            Ok(Err(error)) => {
                tracing::error!("weights for a worker: {error:#}");
                let _ = out.send(Out::Close(CloseReason::Drained));
                return;
            }
            // A panic was printed.
            Err(_) => return,
        }
    }
}
