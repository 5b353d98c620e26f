//! A server whose device thread is stopped, as by a driver that hangs, while its other threads go on.
//!
//! SIGSTOP stops whole processes; a tracer stops single threads.
#![cfg(target_os = "linux")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::serve::{Server, ask, start};
use crate::skip;

/// The thread of a server that waits for its device.
fn device_thread(server: &Server) -> Pid {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.id())).unwrap();
    let is_it = |task: &std::fs::DirEntry| {
        std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == "chaski-serve")
    };
    let task = tasks.flatten().find(is_it).expect("a model has its thread");
    Pid::from_raw(task.file_name().to_str().unwrap().parse().unwrap())
}

/// A thread that is stopped until this is dropped.
struct Stopped(Pid);

impl Stopped {
    /// Stops a thread of a child; `None` where processes may not do that.
    fn stop(thread: Pid) -> Option<Stopped> {
        match ptrace::attach(thread) {
            Ok(()) => {}
            Err(Errno::EPERM) => return None,
            Err(error) => panic!("{error}"),
        }
        waitpid(thread, Some(WaitPidFlag::__WALL)).expect("the thread stops");
        Some(Stopped(thread))
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // A server that was killed meanwhile has no threads.
        let _ = ptrace::detach(self.0, None);
    }
}

/// A streamed answer.
struct Stream {
    lines: BufReader<TcpStream>,
    text: String,
}

impl Stream {
    fn begin(server: &Server, prompt: &str) -> Stream {
        let body = json!({"prompt": prompt, "max_tokens": 1500, "ignore_eos": true, "temperature": 0, "stream": true})
            .to_string();
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let head = "POST /v1/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
        write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
        Stream { lines: BufReader::new(stream), text: String::new() }
    }

    /// Reads to the end, or until so many bytes of text are there. Returns the reason for the end.
    fn read(&mut self, most: usize) -> Option<String> {
        let mut line = String::new();
        while self.text.len() < most {
            line.clear();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "the stream is cut: {}", self.text);
            let Some(data) = line.strip_prefix("data: {") else { continue };
            let chunk: Value = serde_json::from_str(&format!("{{{data}")).unwrap();
            let choice = &chunk["choices"][0];
            self.text += choice["text"].as_str().unwrap_or_default();
            if let Some(reason) = choice["finish_reason"].as_str() {
                return Some(reason.to_owned());
            }
        }
        None
    }
}

fn status(server: &Server, path: &str) -> String {
    ask(server, "GET", path, "").lines().next().unwrap_or_default().to_owned()
}

/// Requests that run and wait, and the part of the pages in use.
fn load(server: &Server) -> [f64; 3] {
    let text = ask(server, "GET", "/metrics", "");
    ["num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"].map(|name| {
        let name = format!("vllm:{name}{{");
        let line = text.lines().find(|line| line.starts_with(&name)).unwrap_or_else(|| panic!("{text}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    })
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_stopped_device_thread_is_told_and_nothing_is_left_when_it_goes_on() {
    let server = start(&["--stall", "1", "-c", "1024", "--parallel", "2", "--log-format", "none"]);
    let mut alone = Stream::begin(&server, "Once upon a time");
    assert_eq!(alone.read(usize::MAX).as_deref(), Some("length"));
    let (mut stays, mut leaves) =
        (Stream::begin(&server, "Once upon a time"), Stream::begin(&server, "A small"));
    for stream in [&mut stays, &mut leaves] {
        assert_eq!(stream.read(20), None);
    }
    let Some(stopped) = Stopped::stop(device_thread(&server)) else {
        return skip("ptrace");
    };
    // Further requests come: one waits, one is left by its client.
    let mut late = Stream::begin(&server, "Once upon a time");
    let gone = Stream::begin(&server, "There was");
    assert_eq!(status(&server, "/health"), "HTTP/1.1 200 OK", "it may be slow");
    wait_until("the watchdog tells", || status(&server, "/health").starts_with("HTTP/1.1 503"));
    // Everything that needs no device works.
    for path in ["/livez", "/v1/models", "/slots", "/metrics", "/load"] {
        assert_eq!(status(&server, path), "HTTP/1.1 200 OK", "{path}");
    }
    let counted = ask(&server, "POST", "/tokenize", "{\"content\": \"Once upon a time\"}");
    assert!(counted.starts_with("HTTP/1.1 200") && counted.contains("\"tokens\""), "{counted}");
    let [running, waiting, used] = load(&server);
    assert!(running == 2.0 && waiting == 2.0 && used > 0.0, "{:?}", load(&server));
    drop((leaves, gone));
    std::thread::sleep(Duration::from_millis(300));
    assert!(status(&server, "/readyz").starts_with("HTTP/1.1 503"), "nothing has changed");

    drop(stopped);
    assert_eq!(
        (stays.read(usize::MAX).as_deref(), late.read(usize::MAX).as_deref()),
        (Some("length"), Some("length"))
    );
    assert!(stays.text == alone.text && late.text == alone.text, "{}\n{}", stays.text, alone.text);
    wait_until("queue and pages are free", || load(&server) == [0.0; 3]);
    assert_eq!(status(&server, "/health"), "HTTP/1.1 200 OK");
    let mut after = Stream::begin(&server, "Once upon a time");
    assert_eq!(after.read(usize::MAX).as_deref(), Some("length"));
    assert_eq!(after.text, alone.text);
}
