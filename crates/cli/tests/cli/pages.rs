//! Pages as workers, as far as they need no browser: which may join, and what they get.
#![cfg(unix)]

use std::net::TcpListener;

use chaski_wire::{
    Assign, Blob, Body, Challenge, Control, EVEN_LAYERS, Frame, Hello, Hex, Limits, PageCaps, RefuseCode,
    Welcome,
};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::stream::MaybeTlsStream;
use tokio_tungstenite::tungstenite::{Message, accept, connect};

use crate::strangers::{ALL_BYTES, Socket, greet, hello, message, next, next_control};
use crate::swarm::{Hub, get, worker};

fn page(id: u8, memory: u64) -> Hello {
    Hello { page: Some(PageCaps::LEAST), features: vec![EVEN_LAYERS.to_owned()], ..hello(id, memory) }
}

/// A connection as a browser opens it.
fn open(hub: &Hub, origin: &str) -> Option<Socket> {
    let mut request = format!("ws://{}/swarm", hub.swarm).into_client_request().unwrap();
    request.headers_mut().insert("origin", origin.parse().unwrap());
    let (socket, _) = connect(request).ok()?;
    let MaybeTlsStream::Plain(stream) = socket.get_ref() else { panic!("there is no TLS") };
    stream.set_read_timeout(Some(crate::swarm::LONG)).unwrap();
    Some(socket)
}

fn join(hub: &Hub, hello: Hello) -> (Socket, Option<Control>) {
    let mut socket = open(hub, &format!("http://{}", hub.swarm)).expect("the hub's own page may join");
    let proof = greet(&mut socket, hello, None);
    socket.send(Message::binary(proof)).unwrap();
    let control = next_control(&mut socket);
    (socket, control)
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[test]
fn pages_of_the_hub_and_of_named_origins_may_join() {
    let hub = Hub::start(&["--swarm-fast", "--swarm-origin", "https://friend.example"]);
    assert!(open(&hub, &format!("http://{}", hub.swarm)).is_some());
    assert!(open(&hub, "https://friend.example").is_some());
    for origin in ["http://127.0.0.1", "https://evil.example", "null", "http://localhost:1"] {
        assert!(open(&hub, origin).is_none(), "{origin}");
    }
    let join_page = get(&hub.swarm, "GET /join HTTP/1.1\r\n", "");
    assert_eq!(status(&join_page), "200");
    assert!(
        join_page.contains("frame-ancestors 'none'") && join_page.contains("Join a swarm"),
        "{join_page}"
    );
    assert!(get(&hub.swarm, "GET /join/work.js HTTP/1.1\r\n", "").contains("export async function work"));
    assert_eq!(status(&get(&hub.swarm, "GET /join/..%2Fmod.rs HTTP/1.1\r\n", "")), "404");
    // A name that somebody has point to this machine.
    let of_status = |host: &str| get(&hub.swarm, &format!("GET /swarm/status HTTP/1.1\r\n{host}"), "");
    assert_eq!(status(&of_status("")), "200");
    assert_eq!(status(&of_status("host: evil.example\r\n")), "403");
    let ask = |origin: &str| {
        let head = format!("OPTIONS /swarm/plan HTTP/1.1\r\norigin: {origin}\r\n");
        get(&hub.swarm, &head, "").contains("access-control-allow-origin")
    };
    assert!(ask("https://friend.example") && !ask("https://evil.example"));
    // A page has to say what it can, and without --swarm-fast there is none.
    let (_socket, control) = join(&hub, hello(1, ALL_BYTES));
    let Some(Control::Refuse(refuse)) = control else { panic!("no REFUSE") };
    assert_eq!(refuse.code, RefuseCode::Protocol, "{}", refuse.text);
    // The plan is made after the handshake, and the page is told why there is none.
    let (_socket, control) = join(&hub, page(2, 1000));
    let Some(Control::Refuse(refuse)) = control else { panic!("no REFUSE") };
    assert_eq!(refuse.code, RefuseCode::Units, "{}", refuse.text);
    let exact = Hub::start(&[]);
    assert!(open(&exact, &format!("http://{}", exact.swarm)).is_none());
    assert_eq!(status(&get(&exact.swarm, "GET /join HTTP/1.1\r\n", "")), "404");
}

#[test]
fn a_page_fetches_its_plan_and_its_own_experts_alone() {
    let hub = Hub::start(&["--swarm-fast", "--swarm-replicas", "1"]);
    // Room for a quarter of the experts: eight of 32 in each layer.
    let (mut socket, control) = join(&hub, page(1, ALL_BYTES / 4));
    let Some(Control::Welcome(Welcome { plan: Some(plan), key, .. })) = control else {
        panic!("{control:?}")
    };
    let fetch = |path: &str, key: Hex<16>, more: &str| {
        get(&hub.swarm, &format!("GET {path} HTTP/1.1\r\nauthorization: Bearer {key}\r\n{more}"), "")
    };
    let text = fetch(&plan.path, key, "");
    let (head, json) = text.split_once("\r\n\r\n").unwrap();
    assert_eq!((status(head), json.len() as u64), ("200", plan.length), "{head}");
    let is_unkept = |head: &str| head.contains("cache-control: no-store") && head.contains("nosniff");
    assert!(is_unkept(head), "{head}");
    assert_eq!(Hex(Sha256::digest(json).into()), plan.sha256);
    let json: Value = serde_json::from_str(json).unwrap();
    assert_eq!((json["n_slot"].as_u64(), json["layers"].as_array().unwrap().len()), (Some(8), 4));
    let bytes: u64 = json["buffers"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum();
    assert!(bytes > ALL_BYTES / 4 && bytes < ALL_BYTES / 4 + (64 << 20), "{bytes}");
    let refused = fetch(&plan.path, Hex([9; 16]), "");
    assert!(status(&refused) == "403" && is_unkept(&refused), "{refused}");

    let assign: Assign = loop {
        match next(&mut socket).expect("an ASSIGN").body {
            Body::Control(Control::Assign(assign)) if !assign.tensors.is_empty() => break assign,
            _ => {}
        }
    };
    let range = |path: &str, first: u64, n: u64| {
        status(&fetch(path, key, &format!("range: bytes={first}-{}\r\n", first + n - 1))).to_owned()
    };
    for tensor in &assign.tensors {
        let path = &assign.files[usize::from(tensor.file)];
        assert_eq!(tensor.parts.len(), 8, "a unit");
        assert_eq!(range(path, tensor.offset_of(0), tensor.length), "206");
        // A part of an expert, two of them, and one of another unit.
        assert_eq!(range(path, tensor.offset_of(0), 16), "403");
        assert_eq!(range(path, tensor.offset_of(0), 2 * tensor.length), "403");
        let other = (0..32).find(|e| !tensor.parts.contains(e)).unwrap();
        assert_eq!(range(path, u64::from(other) * tensor.length, tensor.length), "403");
    }
    assert_eq!(range("/swarm/packed/77", 0, 16), "403");
    drop(socket);
    hub.wait("alone", |status| status["workers"].as_array().unwrap().is_empty());
    assert_eq!(status(&fetch(&plan.path, key, "")), "403", "the key ends with the connection");
}

#[test]
fn a_program_takes_no_shaders_from_a_hub() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let store = tempfile::tempdir().unwrap();
    let process = worker(&address, store.path(), &[]);
    let (stream, _) = listener.accept().unwrap();
    let mut socket = accept(stream).unwrap();
    let hello = socket.read().unwrap().into_data();
    let Body::Control(Control::Hello(hello)) = Frame::decode(&hello, &Limits::default()).unwrap().body else {
        panic!("no HELLO");
    };
    assert_eq!(hello.page, None);
    let nonce = Hex([1; 32]);
    socket.send(Message::binary(message(Control::Challenge(Challenge { nonce, proof: None })))).unwrap();
    socket.read().unwrap();
    let blob = |path: &str| Blob { path: path.to_owned(), length: 10, sha256: Hex([0; 32]) };
    let welcome = Welcome {
        worker: 0,
        model: Hex([0; 32]),
        skeleton: blob("/swarm/skeleton"),
        block: 8,
        key: Hex([0; 16]),
        limits: Limits::default(),
        epoch: 0,
        plan: Some(blob("/swarm/plan")),
    };
    socket.send(Message::binary(message(Control::Welcome(welcome)))).unwrap();
    // It ends, and does not try again.
    process.after("a plan with shaders, which pages alone take");
    assert!(socket.read().is_err() || socket.read().is_err(), "the connection is closed");
}
