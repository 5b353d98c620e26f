//! Limits that the configuration file changes while a server runs, and words for a service manager.
#![cfg(unix)]

use std::time::{Duration, Instant};

use crate::chaski;
use crate::serve::{Server, ask, started};

/// The status of a request that waits at most for its answer.
fn status(server: &Server, prompt: &str) -> String {
    let body = format!("{{\"prompt\": \"{prompt}\", \"max_tokens\": 1}}");
    ask(server, "POST", "/v1/completions", &body).split(' ').nth(1).unwrap().to_owned()
}

fn wait(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn limits_and_the_level_of_the_log_are_read_again_at_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    write("[serve]\nmax-prompt = 4\n");
    let mut command = chaski(&["serve", "--device", "cpu"]);
    command.env("CHASKI_CONFIG", &file).stdout(std::process::Stdio::null());
    let mut server = started(command);
    let long = "Once upon a time there was a little fox in the woods";
    assert_eq!((status(&server, "Once"), status(&server, long)), ("200".into(), "400".into()));

    write("verbose = true\n[serve]\nlog-format = \"json\"\nmax-body = 1\nkey-rpm = 9\n");
    server.signal("-HUP");
    wait("the limit is gone", || status(&server, long) == "200");
    assert_eq!(status(&server, &"x".repeat(1 << 20)), "413");
    // The log had no such lines, and has all requests now.
    assert!(ask(&server, "GET", "/livez", "").contains("200"));
    let line = server.line("/livez");
    assert!(line.starts_with('{') && line.contains("\"event\":\"request\""), "{line}");

    // A file that cannot be used changes nothing.
    write("[serve]\nmax-body = 2\nmax-bod = 3\n");
    server.signal("-HUP");
    let line = server.line("the limits in force stay");
    assert!(line.contains("line 3") && line.contains("max-bod"), "{line}");
    assert_eq!(status(&server, &"x".repeat(1 << 20)), "413");
}

#[test]
fn the_length_of_the_queue_changes_without_another_load() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(&file, "[serve]\nmax-queue = 0\n").unwrap();
    let mut command = chaski(&["serve", "--device", "cpu", "--parallel", "1", "-c", "4096"]);
    command.env("CHASKI_CONFIG", &file).stdout(std::process::Stdio::null());
    let server = started(command);
    let loaded = ask(&server, "GET", "/v1/models", "").split("\"created\":").nth(1).unwrap()[..10].to_owned();
    let address = server.address().to_owned();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    // One place is taken for as long as the test wants.
    let busy = std::thread::spawn(move || {
        use std::io::Write as _;
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let body = "{\"prompt\": \"Once\", \"ignore_eos\": true, \"stream\": true, \"max_tokens\": 3000}";
        let head = format!(
            "POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + body).as_bytes()).unwrap();
        // Nothing is read, but the socket has room for most of it.
        let _ = stopped.recv();
    });
    wait("it is taken", || ask(&server, "GET", "/load", "").contains("\"server_load\":1"));
    assert_eq!(status(&server, "A"), "429");
    std::fs::write(&file, "[serve]\nmax-queue = 3\n").unwrap();
    server.signal("-HUP");
    let waiting = {
        let address = server.address().to_owned();
        std::thread::spawn(move || {
            use std::io::{Read as _, Write as _};
            loop {
                let mut stream = std::net::TcpStream::connect(&address).unwrap();
                let body = "{\"prompt\": \"A\", \"max_tokens\": 1}";
                let head = format!(
                    "POST /v1/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                stream.write_all((head + body).as_bytes()).unwrap();
                let mut text = String::new();
                stream.read_to_string(&mut text).unwrap();
                if !text.contains(" 429 ") {
                    return text;
                }
            }
        })
    };
    wait("one waits", || ask(&server, "GET", "/load", "").contains("\"server_load\":2"));
    drop(stop);
    busy.join().unwrap();
    assert!(waiting.join().unwrap().starts_with("HTTP/1.1 200"));
    let now = ask(&server, "GET", "/v1/models", "").split("\"created\":").nth(1).unwrap()[..10].to_owned();
    assert_eq!(now, loaded);
    server.signal("-TERM");
}

#[test]
fn a_service_manager_is_told_when_a_server_is_ready_and_when_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let manager = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let told = || {
        let mut bytes = [0; 100];
        let n = manager.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..n]).into_owned()
    };
    let mut command = chaski(&["serve", "--device", "cpu", "--drain-delay", "0"]);
    command.env("NOTIFY_SOCKET", &path).stdout(std::process::Stdio::null());
    let server = started(command);
    assert_eq!(told(), "READY=1");
    server.signal("-TERM");
    assert_eq!(told(), "STOPPING=1");
}
