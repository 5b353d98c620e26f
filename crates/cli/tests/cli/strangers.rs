//! Strangers at the socket of a swarm's hub, and workers that ask for what is not theirs: each is refused, and texts go
//! on.
#![cfg(unix)]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use chaski_wire::{
    Assign, Body, Control, Frame, HEADER, Handshake, Hello, Hex, Limits, Proof, RefuseCode, Role, Token,
    UnitKind, Welcome,
};
use serde_json::Value;
use tokio_tungstenite::tungstenite::stream::MaybeTlsStream;
use tokio_tungstenite::tungstenite::{Message, WebSocket, connect};

use crate::swarm::{EXPECTED, Hub, LONG, get, worker};
use crate::{full, out, run};

pub(crate) type Socket = WebSocket<MaybeTlsStream<TcpStream>>;

/// Bytes of the model's experts, and of one.
const EXPERT_BYTES: u64 = 3 * 256 * 256 / 32 * 34;
pub(crate) const ALL_BYTES: u64 = 4 * 32 * EXPERT_BYTES;

/// HELLO of a worker that does not compute; the hub has to take any class.
pub(crate) fn hello(id: u8, memory: u64) -> Hello {
    Hello {
        build: env!("CARGO_PKG_VERSION").to_owned(),
        id: Hex([id; 16]),
        name: "stranger".to_owned(),
        features: Vec::new(),
        units: vec![UnitKind::Experts],
        device: "none".to_owned(),
        class: Hex([7; 32]),
        memory,
        cores: 1,
        limits: Limits::default(),
        nonce: Hex([id; 32]),
        page: None,
    }
}

pub(crate) fn message(control: Control) -> Vec<u8> {
    Frame::plain(Body::Control(control)).encode(&Limits::default(), true).unwrap().swap_remove(0)
}

fn open(hub: &Hub) -> Socket {
    let (socket, _) = connect(format!("ws://{}/swarm", hub.swarm)).unwrap();
    let MaybeTlsStream::Plain(stream) = socket.get_ref() else { panic!("there is no TLS") };
    stream.set_read_timeout(Some(LONG)).unwrap();
    socket
}

/// The next frame; `None` at the end of the connection.
pub(crate) fn next(socket: &mut Socket) -> Option<Frame> {
    loop {
        match socket.read() {
            Ok(Message::Binary(bytes)) => return Some(Frame::decode(&bytes, &Limits::default()).unwrap()),
            Ok(Message::Ping(_) | Message::Pong(_)) => {}
            Ok(_) | Err(_) => return None,
        }
    }
}

pub(crate) fn next_control(socket: &mut Socket) -> Option<Control> {
    match next(socket)?.body {
        Body::Control(control) => Some(control),
        other => panic!("{:?}", other.kind()),
    }
}

/// Sends HELLO, and makes the PROOF that the hub asks for.
pub(crate) fn greet(socket: &mut Socket, hello: Hello, token: Option<&Token>) -> Vec<u8> {
    let worker = hello.nonce;
    let first = message(Control::Hello(hello));
    socket.send(Message::binary(first.clone())).unwrap();
    let Some(Control::Challenge(challenge)) = next_control(socket) else { panic!("no CHALLENGE") };
    let handshake = Handshake::new(challenge.nonce, worker, &first[HEADER..]);
    let proof = token.map(|token| handshake.prove(token, Role::Worker));
    message(Control::Proof(Proof { proof }))
}

/// Joins as a worker.
fn join(hub: &Hub, id: u8, memory: u64, token: Option<&Token>) -> (Socket, Welcome) {
    let mut socket = open(hub);
    let proof = greet(&mut socket, hello(id, memory), token);
    socket.send(Message::binary(proof)).unwrap();
    match next_control(&mut socket) {
        Some(Control::Welcome(welcome)) => (socket, welcome),
        other => panic!("no WELCOME: {other:?}"),
    }
}

#[test]
fn a_proof_is_good_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let text = out(&run(&["swarm", "token"]));
    std::fs::write(&path, &text).unwrap();
    let token: Token = text.parse().unwrap();
    let hub = Hub::start(&["--swarm-fast", "--token-file", path.to_str().unwrap()]);
    let mut first = open(&hub);
    let proof = greet(&mut first, hello(1, 0), Some(&token));
    first.send(Message::binary(proof.clone())).unwrap();
    assert!(matches!(next_control(&mut first), Some(Control::Welcome(_))));
    // The same HELLO gets another nonce, which the same proof does not fit.
    let mut second = open(&hub);
    greet(&mut second, hello(1, 0), Some(&token));
    second.send(Message::binary(proof)).unwrap();
    let Some(Control::Refuse(refuse)) = next_control(&mut second) else { panic!("no REFUSE") };
    assert_eq!(refuse.code, RefuseCode::Token, "{}", refuse.text);
    assert!(next(&mut second).is_none(), "the connection is closed");
}

#[test]
fn a_second_worker_with_the_same_id_takes_the_place_of_the_first() {
    let hub = Hub::start(&["--swarm-fast"]);
    let (mut first, old) = join(&hub, 1, 0, None);
    let (_second, new) = join(&hub, 1, 0, None);
    let end = Instant::now() + LONG;
    while next(&mut first).is_some() {
        assert!(Instant::now() < end, "the first connection stays");
    }
    let workers = hub.status()["workers"].as_array().unwrap().len();
    assert_eq!(workers, 1);
    // The key of the first is void.
    let of = |key: &Hex<16>| {
        let head = format!("GET /swarm/skeleton HTTP/1.1\r\nauthorization: Bearer {key}\r\n");
        get(&hub.swarm, &head, "").split(' ').nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!((of(&old.key), of(&new.key)), ("403".to_owned(), "200".to_owned()));
}

#[test]
fn a_worker_fetches_its_own_units_alone() {
    let hub = Hub::start(&["--swarm-fast", "--swarm-replicas", "1"]);
    // Room for a quarter of the experts.
    let (mut socket, welcome) = join(&hub, 1, ALL_BYTES / 4, None);
    let assign: Assign = loop {
        match next(&mut socket).expect("an ASSIGN").body {
            Body::Control(Control::Assign(assign)) if !assign.tensors.is_empty() => break assign,
            _ => {}
        }
    };
    let status = |path: &str, first: u64, n: u64| {
        let (key, last) = (welcome.key, first + n - 1);
        let head =
            format!("GET {path} HTTP/1.1\r\nauthorization: Bearer {key}\r\nrange: bytes={first}-{last}\r\n");
        get(&hub.swarm, &head, "").split(' ').nth(1).unwrap_or_default().to_owned()
    };
    let (mut n_own, mut n_other) = (0, 0);
    for tensor in &assign.tensors {
        let path = &assign.files[usize::from(tensor.file)];
        let own = tensor.offset_of(0);
        if n_own < 3 {
            assert_eq!(status(path, own, tensor.length), "206");
            n_own += 1;
        }
        // The same tensor of the next layer, unless some of that is assigned, too.
        let (_, rest) = tensor.name.split_once("blk.").unwrap();
        let (layer, rest) = rest.split_once('.').unwrap();
        let other = format!("blk.{}.{rest}", (layer.parse::<u32>().unwrap() + 1) % 4);
        if assign.tensors.iter().all(|t| t.name != other) && n_other < 3 {
            assert_eq!(status(&path.replace(&tensor.name, &other), 0, tensor.length), "403", "{other}");
            n_other += 1;
        }
    }
    assert!(n_own > 0 && n_other > 0, "{assign:?}");
    // Other tensors, and files of the machine.
    for path in ["/swarm/tensor/token_embd.weight", "/swarm/tensor/..%2F..%2Fetc%2Fpasswd"] {
        assert_eq!(status(path, 0, 32), "403", "{path}");
    }
}

/// Frames that say that they are longer than allowed, or are so.
#[test]
fn long_frames_end_their_own_connection() {
    let hub = Hub::start(&["--swarm-fast"]);
    let folder = tempfile::tempdir().unwrap();
    let _worker = worker(&hub.swarm, folder.path(), &[]);
    hub.ready(1, 1);
    let (mut socket, _) = join(&hub, 1, 0, None);
    let mut header = Frame::plain(Body::Ping(1)).encode(&Limits::default(), false).unwrap().swap_remove(0);
    header[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut n_fail = 0;
    for _ in 0..3 {
        socket.send(Message::binary(header.clone())).unwrap();
    }
    while let Some(frame) = next(&mut socket) {
        n_fail += usize::from(matches!(frame.body, Body::Fail(_)));
    }
    assert_eq!(n_fail, 3, "a FAIL for each, then the end");
    // A message of the WebSocket that is too long is not read.
    let (mut socket, _) = join(&hub, 2, 0, None);
    let _ = socket.send(Message::binary(vec![0; 5 << 20]));
    while next(&mut socket).is_some() {}
    // Before HELLO.
    let mut socket = open(&hub);
    socket.send(Message::binary(header)).unwrap();
    assert!(next(&mut socket).is_none(), "a stranger gets nothing");
    let status = hub.wait("the worker alone", |status| status["workers"].as_array().unwrap().len() == 1);
    assert_eq!(status["counters"]["failed"], 0, "{status:#}");
    assert!(!hub.text().is_empty());
}

/// Times of some texts, in milliseconds: the median.
fn median_text(hub: &Hub) -> f64 {
    let time = |_| {
        let begin = Instant::now();
        assert_eq!(hub.text(), *EXPECTED);
        begin.elapsed().as_secs_f64() * 1e3
    };
    let mut times: Vec<f64> = (0..5).map(time).collect();
    times.sort_by(f64::total_cmp);
    times[2]
}

/// Connections that never end their request, and WebSockets that never say HELLO: they are closed after 5 s, those
/// beyond the limits at once. 10,000 in the full run.
#[test]
fn slow_handshakes_hold_up_nobody() {
    let n_slow = if full() { 10_000 } else { 600 };
    let hub = Hub::start(&[]);
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let _first = worker(&hub.swarm, folders[0].path(), &[]);
    hub.ready(1, 1);
    assert_eq!(hub.text(), *EXPECTED);
    let before = median_text(&hub);
    let mut held = Vec::new();
    let (mut n_closed, mut during) = (0, f64::MAX);
    for i in 0..n_slow {
        let Ok(mut stream) = TcpStream::connect(&hub.swarm) else { continue };
        let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                       sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
        // Every third is a WebSocket without HELLO.
        let rest = if i % 3 == 0 { upgrade } else { "x-slow: " };
        // The hub may have closed it.
        let _ = write!(stream, "GET /swarm HTTP/1.1\r\nhost: x\r\n{rest}");
        held.push(stream);
        if held.len() == 600 {
            during = during.min(median_text(&hub));
            n_closed += drain(&mut held);
        }
    }
    n_closed += drain(&mut held);
    assert_eq!(n_closed, n_slow, "every connection is closed");
    // Texts take as long as before, but for the noise of the machine.
    assert!(during <= 3.0 * before + 100.0, "{before:.0} ms before, {during:.0} ms during the handshakes");
    // There is room again.
    let _second = worker(&hub.swarm, folders[1].path(), &[]);
    hub.ready(2, 2);
    assert_eq!(hub.text(), *EXPECTED);
}

/// Waits until the hub has closed connections; returns how many.
fn drain(held: &mut Vec<TcpStream>) -> usize {
    let end = Instant::now() + Duration::from_secs(30);
    let is_closed = |mut stream: TcpStream| {
        let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        stream.set_read_timeout(Some(left)).unwrap();
        let mut bytes = Vec::new();
        // A reset is an end, too; only the time that runs out is none.
        match stream.read_to_end(&mut bytes) {
            Ok(_) => true,
            Err(e) => !matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut),
        }
    };
    held.drain(..).map(is_closed).filter(|is_closed| *is_closed).count()
}

/// A forwarder to a hub that counts bytes of ranges of weights, and changes one byte of the first.
struct Forwarder {
    address: String,
    /// Bytes of bodies that were sent for ranges.
    n_byte: Arc<AtomicU64>,
}

impl Forwarder {
    fn start(hub: &str) -> Forwarder {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (hub, n_byte) = (hub.to_owned(), Arc::new(AtomicU64::new(0)));
        let (counted, is_flipped) = (n_byte.clone(), Arc::new(AtomicBool::new(false)));
        std::thread::spawn(move || {
            for from in listener.incoming().map_while(Result::ok) {
                let Ok(to) = TcpStream::connect(&hub) else { return };
                let (mut up, mut back) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                let (counted, is_flipped) = (counted.clone(), is_flipped.clone());
                std::thread::spawn(move || drop(std::io::copy(&mut up, &mut { to })));
                std::thread::spawn(move || {
                    let (mut from, mut bytes) = (from, vec![0; 1 << 16]);
                    while let Ok(n @ 1..) = back.read(&mut bytes) {
                        let part = &mut bytes[..n];
                        let text = String::from_utf8_lossy(part).to_lowercase();
                        if text.starts_with("http/1.1 206") {
                            let length = text.split_once("content-length: ").and_then(|(_, rest)| {
                                rest.split("\r\n").next().and_then(|n| n.parse::<u64>().ok())
                            });
                            counted.fetch_add(length.expect("ranges have a length"), Relaxed);
                        } else if n > 1000 && counted.load(Relaxed) > 0 && !is_flipped.swap(true, Relaxed) {
                            part[500] ^= 1;
                        }
                        if from.write_all(part).is_err() {
                            return;
                        }
                    }
                    drop(from.shutdown(std::net::Shutdown::Both));
                });
            }
        });
        Forwarder { address, n_byte }
    }
}

/// Cold, with a byte that changes on its way; warm, with another key and the same store.
#[test]
fn a_worker_fetches_what_it_is_told_to_hold_once() {
    let hub = Hub::start(&["--swarm-fast", "--swarm-replicas", "1"]);
    let forwarder = Forwarder::start(&hub.swarm);
    let folder = tempfile::tempdir().unwrap();
    // Room for a quarter of the experts: eight of 32.
    let memory = format!("{}K", (ALL_BYTES / 4).div_ceil(1000));
    let is_full = |status: &Value| status["workers"].as_array().unwrap().iter().any(|w| w["units"] == 4);
    let cold = worker(&forwarder.address, folder.path(), &["--memory", &memory]);
    let status = hub.wait("loaded", is_full);
    assert_eq!(status["workers"][0]["assigned"], 4, "{status:#}");
    assert!(cold.lines_so_far().contains("could not be loaded"), "{}", cold.lines_so_far());
    // A matrix twice, and nothing that is not assigned.
    let (n_byte, matrix) = (forwarder.n_byte.load(Relaxed), EXPERT_BYTES / 3);
    assert_eq!(n_byte, 4 * 8 * EXPERT_BYTES + matrix);
    cold.signal("-KILL");
    drop(cold);
    hub.wait("without it", |status| status["workers"].as_array().unwrap().is_empty());
    let begin = Instant::now();
    let _warm = worker(&forwarder.address, folder.path(), &["--memory", &memory]);
    hub.wait("loaded again", is_full);
    assert_eq!(forwarder.n_byte.load(Relaxed), n_byte, "nothing is fetched again");
    // Half a second on an idle machine.
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}
