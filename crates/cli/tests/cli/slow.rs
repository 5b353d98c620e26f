//! Clients that send a byte a second, or nothing: `chaski serve` answers others as if there were none.
#![cfg(target_os = "linux")]

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::full;
use crate::serve::{Server, ask, start_with_files};

/// Slow clients: ten thousand in a full run.
fn n_slow() -> usize {
    if full() { 10_000 } else { 300 }
}

/// The head of a request that comes slowly, of each kind: the first of the bytes and what follows a byte at a time.
const KINDS: [(&str, &str); 4] = [
    ("GET /health HTTP/1.1\r\nx: ", "aaaaaaaaaaaaaaaaaaaaaaaa"),
    ("P", "OST /v1/completions HTTP"),
    ("", "PRI * HTTP/2.0\r\n\r\nSM"),
    // A connection that is only half open.
    ("", ""),
];

/// All slow clients, and what each sends from now on.
fn connected(address: &str) -> Vec<(TcpStream, &'static str)> {
    let connect = |i: usize| {
        let (first, rest) = KINDS[i % KINDS.len()];
        let mut stream = TcpStream::connect(address).expect("the server accepts all of them");
        stream.write_all(first.as_bytes()).expect("it takes bytes");
        stream.set_nonblocking(true).expect("sockets can be so");
        (stream, rest)
    };
    (0..n_slow()).map(connect).collect()
}

/// Bytes of memory that a process has.
fn resident(server: &Server) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") << 10
}

/// The text of a greedy answer.
fn tell(server: &Server) -> String {
    let body = r#"{"prompt": "Once upon a time", "max_tokens": 8, "temperature": 0}"#;
    let answer = ask(server, "POST", "/v1/completions", body);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let json = answer.split("\r\n\r\n").nth(1).expect("it has a body");
    let body: serde_json::Value = serde_json::from_str(json).expect("it is JSON");
    body["choices"][0]["text"].as_str().expect("it has a text").to_owned()
}

/// True if the server has closed a connection.
fn is_closed(stream: &mut TcpStream) -> bool {
    let mut bytes = [0; 256];
    match stream.read(&mut bytes) {
        Ok(0) => true,
        // It says 408 before.
        Ok(_) => false,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

#[test]
fn clients_that_send_a_byte_a_second_harm_nobody() {
    // It takes what the system lets it have.
    let server = start_with_files(128, &["--parallel", "2"]);
    let text = tell(&server);
    let (before, begun) = (resident(&server), Instant::now());
    let mut slow = connected(server.address());
    let opened = begun.elapsed();
    let is_over = AtomicBool::new(false);
    let (n_ask, slowest, most) = std::thread::scope(|scope| {
        let others = scope.spawn(|| {
            let (mut n, mut slowest, mut most) = (0, Duration::ZERO, 0);
            while !is_over.load(Ordering::Relaxed) {
                let start = Instant::now();
                assert!(ask(&server, "GET", "/health", "").starts_with("HTTP/1.1 200"));
                slowest = slowest.max(start.elapsed());
                assert_eq!(tell(&server), text);
                most = most.max(resident(&server));
                n += 1;
                std::thread::sleep(Duration::from_millis(20));
            }
            (n, slowest, most)
        });
        for second in 0.. {
            assert!(second < 40, "{} slow clients are still connected", slow.len());
            slow.retain_mut(|(stream, rest)| {
                let byte = rest.as_bytes().get(second..second + 1).unwrap_or_default();
                // A client that was closed sees it now or below.
                let _ = stream.write(byte);
                !is_closed(stream)
            });
            if slow.is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
        is_over.store(true, Ordering::Relaxed);
        others.join().expect("the others are answered")
    });
    let each = most.saturating_sub(before) / n_slow();
    let said = format!(
        "{} slow clients within {opened:?}, gone after {:?}; {n_ask} answers beside them, /health within {slowest:?}, \
         {each} bytes each",
        n_slow(),
        begun.elapsed(),
    );
    // Only macros are captured.
    writeln!(std::io::stderr(), "{said}").expect("it can be written");
    // A burst finds room in the queue of connections: one that does not tries again after a second.
    assert!(opened < Duration::from_secs(5), "connecting took {opened:?}");
    assert!(n_ask > 3 && slowest < Duration::from_secs(2), "{n_ask} answers, the slowest after {slowest:?}");
    if n_slow() < 1000 {
        // Buffers of the server itself would count for as much.
        writeln!(
            std::io::stderr(),
            "SKIPPED: memory of slow clients, for want of many (set CHASKI_TEST_FULL)"
        )
        .expect("it can be written");
    } else {
        assert!(each < 100 << 10, "{each} bytes for each slow client");
    }
    assert_eq!(tell(&server), text);
}
