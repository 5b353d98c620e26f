//! A connection to the hub: handshake, then frames both ways.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use chaski_swarm::WorkerEvent;
use chaski_wire::{
    Assembler, Body, Control, Frame, HEADER, Handshake, Header, Hello, Limits, Proof, RefuseCode, Role,
    Token, Welcome,
};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream, connect_async_tls_with_config};

use crate::swarm::awake::Awake;
use crate::trust::Trust;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Time for the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The hub does not take this worker, and will not if it asks again.
#[derive(Debug, thiserror::Error)]
#[error("the hub refuses this worker: {text}")]
pub(crate) struct Refused {
    text: String,
}

/// The hub sent the text of shaders: a worker that ran it would run anything.
#[derive(Debug, thiserror::Error)]
#[error("the hub sent a plan with shaders, which pages alone take")]
pub(crate) struct Plans;

/// A hub that has said WELCOME.
pub(crate) struct Connection {
    pub(crate) welcome: Welcome,
    socket: Socket,
}

/// Connects, and proves the token both ways.
///
/// # Errors
/// No hub, or one that is none; [`Refused`]; [`Plans`]; a hub without the token.
pub(crate) async fn connect(
    url: &str,
    hello: Hello,
    token: Option<&Token>,
    trust: &Trust,
) -> anyhow::Result<Connection> {
    let greeted = greet(url, hello, token, trust);
    timeout(HANDSHAKE, greeted).await.with_context(|| format!("{url} does not answer"))?
}

async fn greet(url: &str, hello: Hello, token: Option<&Token>, trust: &Trust) -> anyhow::Result<Connection> {
    let ours = hello.limits;
    let longest = Some(ours.frame as usize + HEADER);
    let config = WebSocketConfig::default().max_message_size(longest).max_frame_size(longest);
    let connector = match url.starts_with("wss://") {
        true => Connector::Rustls(trust.of_sockets.clone()),
        false => Connector::Plain,
    };
    let (mut socket, _) = connect_async_tls_with_config(url, Some(config), true, Some(connector))
        .await
        .with_context(|| format!("no hub at {url}"))?;
    let worker = hello.nonce;
    let first = frame(Control::Hello(hello))?;
    socket.send(Message::binary(first.clone())).await?;
    let Control::Challenge(challenge) = receive(&mut socket, &ours).await? else {
        bail!("the hub sends no CHALLENGE");
    };
    let handshake = Handshake::new(challenge.nonce, worker, &first[HEADER..]);
    // The token proves both sides: a worker would otherwise take weights and work from anybody.
    handshake.verify(token, Role::Hub, challenge.proof.as_ref())?;
    let proof = token.map(|token| handshake.prove(token, Role::Worker));
    socket.send(Message::binary(frame(Control::Proof(Proof { proof }))?)).await?;
    let Control::Welcome(welcome) = receive(&mut socket, &ours).await? else {
        bail!("the hub sends no WELCOME");
    };
    if welcome.plan.is_some() {
        return Err(Plans.into());
    }
    Ok(Connection { welcome, socket })
}

fn frame(control: Control) -> anyhow::Result<Vec<u8>> {
    Ok(Frame::plain(Body::Control(control)).encode(&Limits::default(), true)?.swap_remove(0))
}

/// The next control message; [`Refused`] for REFUSE.
async fn receive(socket: &mut Socket, limits: &Limits) -> anyhow::Result<Control> {
    loop {
        let bytes = match socket.next().await.context("the hub has closed the connection")?? {
            Message::Binary(bytes) => bytes,
            Message::Ping(_) | Message::Pong(_) => continue,
            _ => bail!("the hub has closed the connection"),
        };
        match Frame::decode(&bytes, limits)?.body {
            // Others may leave, and a rate falls.
            Body::Control(Control::Refuse(refuse))
                if matches!(refuse.code, RefuseCode::Full | RefuseCode::Rate) =>
            {
                bail!("the hub refuses this worker for now: {}", refuse.text)
            }
            Body::Control(Control::Refuse(refuse)) => return Err(Refused { text: refuse.text }.into()),
            Body::Control(control) => return Ok(control),
            _ => bail!("the hub sends work before WELCOME"),
        }
    }
}

/// A message for the hub.
#[allow(clippy::large_enum_variant, reason = "most are frames, which a box would allocate once more")]
#[derive(Debug)]
pub(crate) enum Out {
    /// A frame.
    Frame(Frame),
    /// The end of the connection.
    Close,
}

impl Connection {
    /// Begins to pass frames: those of the hub become events, with [`WorkerEvent::Closed`] as the last one.
    pub(crate) fn run(
        self,
        events: mpsc::UnboundedSender<WorkerEvent>,
        awake: Arc<Awake>,
    ) -> mpsc::UnboundedSender<Out> {
        let (out, outbox) = mpsc::unbounded_channel();
        let (sink, stream) = self.socket.split();
        let limits = self.welcome.limits;
        let writing = tokio::spawn(async move {
            if let Err(error) = write(sink, outbox, limits).await {
                tracing::warn!("the connection to the hub: {error:#}");
            }
        });
        tokio::spawn(async move {
            read(stream, (&events, &awake), limits).await;
            writing.abort();
            // The worker has ended if nobody takes it.
            let _ = events.send(WorkerEvent::Closed);
        });
        out
    }
}

async fn read(
    mut stream: SplitStream<Socket>,
    (events, awake): (&mpsc::UnboundedSender<WorkerEvent>, &Awake),
    limits: Limits,
) {
    let mut assembler = Assembler::new(limits);
    while let Some(Ok(message)) = stream.next().await {
        let event = match message {
            Message::Binary(bytes) => match assembler.push(&bytes) {
                Ok(None) => continue,
                Ok(Some(frame)) => {
                    awake.touch();
                    WorkerEvent::Frame(frame)
                }
                Err(error) => {
                    tracing::warn!("a frame of the hub: {error}");
                    let task = Header::read(&bytes, &limits).map_or(0, |header| header.task);
                    WorkerEvent::Malformed { task }
                }
            },
            Message::Text(_) => WorkerEvent::Malformed { task: 0 },
            Message::Close(_) => return,
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => continue,
        };
        if events.send(event).is_err() {
            return;
        }
    }
}

async fn write(
    mut sink: SplitSink<Socket, Message>,
    mut outbox: mpsc::UnboundedReceiver<Out>,
    limits: Limits,
) -> anyhow::Result<()> {
    while let Some(out) = outbox.recv().await {
        match out {
            Out::Frame(frame) => {
                for bytes in frame.encode(&limits, true)? {
                    sink.send(Message::binary(bytes)).await?;
                }
            }
            Out::Close => {
                sink.close().await?;
                return Ok(());
            }
        }
    }
    Ok(())
}
