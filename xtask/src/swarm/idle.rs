//! Workers that compute nothing and answer at once.

use anyhow::{Context as _, bail, ensure};
use chaski_wire::{
    Answer, Assembler, Body, Control, Dtype, Frame, HEADER, Handshake, Have, Hello, Hex, Limits, Proof, Rows,
    UnitKind,
};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use super::site::{Process, Site};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Starts such workers, which end with the hub.
///
/// # Errors
/// A hub that does not take them.
pub(super) async fn start(site: &Site, address: &str, n: usize) -> anyhow::Result<()> {
    let version = Process::start(&site.program, &["--version"])?.output()?;
    let version = version.split_whitespace().nth(1).context("the version has a number")?;
    for i in 0..n {
        let socket = join(address, version, i as u8).await?;
        tokio::spawn(async move {
            let _ = work(socket).await;
        });
    }
    Ok(())
}

fn control(control: Control) -> anyhow::Result<Vec<u8>> {
    Ok(Frame::plain(Body::Control(control)).encode(&Limits::default(), true)?.swap_remove(0))
}

/// A connection that the hub has taken.
async fn join(address: &str, version: &str, nth: u8) -> anyhow::Result<Socket> {
    let (mut socket, _) = connect_async_with_config(format!("ws://{address}/swarm"), None, true).await?;
    let nonce = Hex([nth; 32]);
    let hello = Hello {
        build: version.to_owned(),
        id: Hex([nth; 16]),
        name: format!("idle {nth}"),
        features: Vec::new(),
        units: vec![UnitKind::Experts],
        device: "none".to_owned(),
        class: Hex([1; 32]),
        memory: 1 << 40,
        cores: 1,
        limits: Limits::default(),
        nonce,
        page: None,
    };
    let first = control(Control::Hello(hello))?;
    socket.send(Message::binary(first.clone())).await?;
    let Control::Challenge(challenge) = next(&mut socket).await? else { bail!("the hub sends no CHALLENGE") };
    let _ = Handshake::new(challenge.nonce, nonce, &first[HEADER..]);
    ensure!(challenge.proof.is_none(), "the hub has a token");
    socket.send(Message::binary(control(Control::Proof(Proof { proof: None }))?)).await?;
    let Control::Welcome(_) = next(&mut socket).await? else { bail!("the hub sends no WELCOME") };
    Ok(socket)
}

async fn next(socket: &mut Socket) -> anyhow::Result<Control> {
    let message = socket.next().await.context("the hub has closed the connection")??;
    match Frame::decode(&message.into_data(), &Limits::default())?.body {
        Body::Control(control) => Ok(control),
        other => bail!("{:?} before WELCOME", other.kind()),
    }
}

/// Says that it has all units that it is given, and answers every task with zeros.
async fn work(socket: Socket) -> anyhow::Result<()> {
    let (mut sink, mut stream): (SplitSink<Socket, Message>, SplitStream<Socket>) = socket.split();
    let mut assembler = Assembler::new(Limits::default());
    while let Some(message) = stream.next().await {
        let Message::Binary(bytes) = message? else { continue };
        let Some(frame) = assembler.push(&bytes)? else { continue };
        let mut answers = Vec::new();
        match frame.body {
            Body::Task(task) => {
                let n = (task.n_answer() * task.rows.width()) as usize;
                let rows = Rows::encode(task.rows.width(), &vec![0.0; n], Dtype::F32)?;
                let answer = Answer { rows, queue: 0, queued: 0, running: 0 };
                answers.push(Frame { body: Body::Result { answer, sum: false }, ..frame });
            }
            Body::Ping(clock) => answers.push(Frame::plain(Body::Pong(clock))),
            Body::Control(Control::Assign(assign)) => {
                for unit in assign.units {
                    let have = Have { epoch: assign.epoch, units: vec![unit], canary: Hex([2; 32]) };
                    answers.push(Frame::plain(Body::Control(Control::Have(have))));
                }
            }
            _ => {}
        }
        for answer in answers {
            for bytes in answer.encode(&Limits::default(), true)? {
                sink.send(Message::binary(bytes)).await?;
            }
        }
    }
    Ok(())
}
