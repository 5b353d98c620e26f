//! A swarm of real processes: a hub, workers that come, go and are killed, and texts that do not change.
#![cfg(unix)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::gpu::has_gpu;
use crate::{chaski, err, full, full_run, json, out, run};

/// Time for anything that happens soon on an idle machine.
pub(crate) const LONG: Duration = Duration::from_secs(120);
pub(crate) const PROMPT: &str = "Once upon a time";
/// Bytes of an expert of the model: three matrices of 256 x 256 in Q8_0.
const EXPERT_BYTES: u64 = 3 * 256 * 256 / 32 * 34;

/// A mixture of experts with random weights: 4 layers with 32 experts, of which a token uses 4.
pub(crate) static MODEL: LazyLock<PathBuf> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("swarm-{}.gguf", std::process::id()));
    out(&run(&["synth", "--preset", "tiny-moe", "--mix", "q8_0", "--out", path.to_str().unwrap(), "-q"]));
    path
});

/// The greedy text of one machine.
pub(crate) static EXPECTED: LazyLock<String> = LazyLock::new(|| {
    let model = MODEL.to_str().unwrap();
    let text = out(&run(&["run", model, "--device", "cpu", "-p", PROMPT, "-n", "48", "--temp", "0", "-q"]));
    text.trim_end().to_owned()
});

/// A process that is killed with this, and the lines of its stderr.
pub(crate) struct Process {
    child: Child,
    lines: Receiver<String>,
    /// All lines that were read.
    seen: Arc<Mutex<Vec<String>>>,
}

impl Process {
    pub(crate) fn start(args: &[&str]) -> Process {
        let mut child = chaski(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = channel();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let all = seen.clone();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                all.lock().unwrap().push(line.clone());
                let _ = sender.send(line);
            }
        });
        Process { child, lines, seen }
    }

    /// The rest of the next line that contains a text.
    pub(crate) fn after(&self, text: &str) -> String {
        let end = Instant::now() + LONG;
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            if let Some((_, rest)) = line.split_once(text) {
                return rest.to_owned();
            }
        }
        panic!("no line with `{text}`: {:#?}", self.seen.lock().unwrap());
    }

    /// Exit code, stdout and stderr.
    fn end(mut self) -> (Option<i32>, String, String) {
        let mut text = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        let code = self.child.wait().unwrap().code();
        // The thread that reads has the last lines a moment later.
        std::thread::sleep(Duration::from_millis(50));
        let seen = self.seen.lock().unwrap().join("\n");
        (code, text, seen)
    }

    /// The lines of stderr that were read so far.
    pub(crate) fn lines_so_far(&self) -> String {
        self.seen.lock().unwrap().join("\n")
    }

    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A hub that serves the model over HTTP, and its two addresses.
pub(crate) struct Hub {
    _process: Process,
    pub(crate) http: String,
    pub(crate) swarm: String,
}

impl Hub {
    pub(crate) fn start(more: &[&str]) -> Hub {
        let model = MODEL.to_str().unwrap();
        let mut args = vec!["serve", model, "--device", "cpu", "--port", "0", "--swarm", "127.0.0.1:0", "-v"];
        args.extend(more);
        let process = Process::start(&args);
        let http = process.after("listening on http://");
        let swarm = process.after("workers join at ws://");
        process.after("ready: ");
        Hub { _process: process, http, swarm }
    }

    pub(crate) fn status(&self) -> Value {
        json(&run(&["swarm", "status", &self.swarm, "--format", "json"]))
    }

    /// Waits until the status has a property.
    pub(crate) fn wait(&self, what: &str, has: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + LONG;
        loop {
            let status = self.status();
            if has(&status) {
                return status;
            }
            assert!(Instant::now() < end, "not {what}: {status:#}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for workers that hold all units, each `replicas` times.
    pub(crate) fn ready(&self, workers: usize, replicas: u64) -> Value {
        self.wait("ready", |status| {
            let list = status["workers"].as_array().unwrap();
            let held: u64 = list.iter().map(|w| w["units"].as_u64().unwrap()).sum();
            list.len() == workers && held == replicas * status["units"].as_u64().unwrap()
        })
    }

    pub(crate) fn text(&self) -> String {
        text(&self.http)
    }
}

/// The greedy text of the prompt, from a server.
fn text(http: &str) -> String {
    let body = serde_json::json!({"prompt": PROMPT, "max_tokens": 48, "temperature": 0}).to_string();
    let head = format!("POST /v1/completions HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
    let answer = get(http, &head, &body);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    body["choices"][0]["text"].as_str().unwrap().trim_end().to_owned()
}

/// A whole response to a request without the last line of its head.
pub(crate) fn get(address: &str, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "{head}host: localhost\r\nconnection: close\r\n\r\n{body}").unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn counter(status: &Value, name: &str) -> u64 {
    status["counters"][name].as_u64().unwrap_or_else(|| panic!("{name}: {status}"))
}

/// A worker with a store of its own.
pub(crate) fn worker(address: &str, store: &Path, more: &[&str]) -> Process {
    let (url, store) = (format!("ws://{address}"), store.to_str().unwrap());
    let mut args = vec!["worker", &url, "--store", store, "-t", "1", "-v"];
    if !more.contains(&"--memory") {
        args.extend(["--memory", "1G"]);
    }
    args.extend(more);
    Process::start(&args)
}

#[test]
fn two_workers_give_the_text_of_one_machine() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let model = MODEL.to_str().unwrap();
    let hub = Process::start(&[
        "run",
        model,
        "--device",
        "cpu",
        "-p",
        PROMPT,
        "-n",
        "48",
        "--temp",
        "0",
        "--swarm",
        "127.0.0.1:0",
        "--swarm-workers",
        "2",
        "--swarm-replicas",
        "1",
        "-v",
    ]);
    let address = hub.after("workers join at ws://");
    let _workers = folders.each_ref().map(|folder| worker(&address, folder.path(), &[]));
    let (code, text, seen) = hub.end();
    assert_eq!((code, text.trim_end()), (Some(0), EXPECTED.as_str()), "{seen}");
    assert_workers_computed(&seen);
}

/// A worker joins over TLS and fetches weights if it trusts the hub's certificate, and not otherwise.
#[test]
fn workers_join_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let own = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let (cert, key, token) = (path("cert.pem"), path("key.pem"), path("token"));
    std::fs::write(&cert, own.cert.pem()).unwrap();
    std::fs::write(&key, own.signing_key.serialize_pem()).unwrap();
    std::fs::write(&token, "0f".repeat(16)).unwrap();
    let model = MODEL.to_str().unwrap();
    let tls = ["--swarm-tls-cert", &cert, "--swarm-tls-key", &key, "--token-file", &token];
    // With TLS and a token, other machines may come without further consent.
    let args = ["serve", model, "--device", "cpu", "--port", "0", "--swarm", "0.0.0.0:0", "-v"];
    let hub = Process::start(&[&args[..], &tls].concat());
    let http = hub.after("listening on http://");
    let port = hub.after("workers join at wss://0.0.0.0:");
    hub.after("ready: ");
    let url = format!("wss://127.0.0.1:{port}");
    let joins = |name: &str, more: &[&str]| {
        let store = path(name);
        let args =
            ["worker", &url, "--store", &store, "-t", "1", "-v", "--memory", "1G", "--token-file", &token];
        Process::start(&[&args[..], more].concat())
    };
    let (code, _, seen) = joins("stranger", &[]).end();
    assert_eq!(code, Some(1), "{seen}");
    assert!(seen.contains("no hub at wss://") && seen.contains("certificate"), "{seen}");
    // Handshakes that never end hold nobody up, and end after 5 s.
    let slow: Vec<TcpStream> = (0..40)
        .map(|i| {
            let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
            stream.write_all(&[22, 3, 1, 2, 0, 1, 0][..i % 8]).unwrap();
            stream
        })
        .collect();
    let _worker = joins("worker", &["--tls-ca", &cert]);
    let address = format!("https://127.0.0.1:{port}");
    let status = || run(&["swarm", "status", &address, "--tls-ca", &cert, "--format", "json"]);
    let end = Instant::now() + LONG;
    while json(&status())["served"] != json(&status())["units"] {
        assert!(Instant::now() < end, "{}", out(&status()));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(text(&http), *EXPECTED);
    assert!(counter(&json(&status()), "tasks") > 0, "{}", out(&status()));
    for mut stream in slow {
        stream.set_read_timeout(Some(LONG)).unwrap();
        // The end, or a reset.
        assert!(!stream.read(&mut [0; 64]).is_ok_and(|n| n > 0), "an answer without a handshake");
    }
    // Nobody is answered without TLS, nor by certificates that are not trusted.
    let mut plain = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    plain.write_all(b"GET /swarm/status HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    let _ = plain.read_to_end(&mut bytes);
    assert!(!String::from_utf8_lossy(&bytes).contains("HTTP"), "{bytes:?}");
    let untrusted = run(&["swarm", "status", &address]);
    assert!(!untrusted.status.success() && err(&untrusted).contains("certificate"), "{}", err(&untrusted));
}

/// Workers answered some of the tasks that a hub tells at its end: it computed fewer, or checked an answer. On a busy
/// machine each may be overdue, and then the hub computes it, too.
fn assert_workers_computed(seen: &str) {
    let number = |name: &str| {
        let (before, _) = seen.split_once(name)?;
        before.rsplit(' ').next()?.parse::<u64>().ok()
    };
    let numbers =
        [" tasks: ", " by the hub", " checked"].map(|name| number(name).unwrap_or_else(|| panic!("{seen}")));
    let [tasks, by_hub, checked] = numbers;
    assert!(by_hub < tasks || checked > 0, "{seen}");
}

/// Logits of some tokens on a device, with workers on two others if `swarm` is not empty.
fn logits(device: &str, swarm: &[&str], devices: [&str; 2]) -> Vec<f32> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (model, to) = (MODEL.to_str().unwrap(), path("logits"));
    let tokens: Vec<String> = (0..48).map(|i| (i * 37 % 250 + 3).to_string()).collect();
    let (tokens, to) = (tokens.join(","), to.to_str().unwrap());
    let mut args =
        vec!["logits", model, "--device", device, "--tokens", &tokens, "--chunk", "6", "--out", to];
    args.extend(swarm);
    args.push("-v");
    let hub = Process::start(&args);
    let workers = (!swarm.is_empty()).then(|| {
        let address = hub.after("workers join at ws://");
        devices.map(|device| worker(&address, &path(device), &["--device", device]))
    });
    let (code, _, seen) = hub.end();
    assert_eq!(code, Some(0), "{seen}");
    if workers.is_some() {
        assert_workers_computed(&seen);
    }
    let bytes = std::fs::read(to).unwrap();
    bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

/// Mean square error over the mean square.
fn nmse(found: &[f32], expected: &[f32]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let square = |v: f64| v * v;
    let pairs = found.iter().zip(expected).map(|(a, b)| (f64::from(*a), f64::from(*b)));
    let (error, all) = pairs.fold((0.0, 0.0), |(e, s), (a, b)| (e + square(a - b), s + square(b)));
    error / all
}

#[test]
fn values_in_16_bits_give_near_logits_on_any_devices() {
    let swarm = ["--swarm", "127.0.0.1:0", "--swarm-workers", "2", "--swarm-replicas", "1"];
    let fast = [&swarm[..], &["--swarm-fast"]].concat();
    let cpus = ["cpu", "none"];
    let expected = logits("cpu", &[], cpus);
    assert_eq!(logits("cpu", &swarm, cpus), expected);
    let error = nmse(&logits("cpu", &fast, cpus), &expected);
    // Something was rounded.
    assert!(error > 0.0 && error <= 1e-5, "{error:e}");
    // By default workers compute on the CPU.
    if full() && has_gpu() {
        let bare = [&fast[..], &["--experts-away"]].concat();
        for (device, args) in [("cpu", &fast), ("gpu", &bare)] {
            let error = nmse(&logits(device, args, ["cpu", "gpu"]), &expected);
            assert!(error <= 1e-5, "{device}: {error:e}");
        }
    }
}

/// A GPU has slots in each layer; of 32 experts a layer, 8 fit into a quarter of the memory of all.
#[test]
fn a_gpu_with_room_for_a_part_gets_a_part() {
    if !full_run() || !has_gpu() {
        return;
    }
    let all: u64 = 4 * 32 * EXPERT_BYTES;
    let [quarter, most, too_little] =
        [all / 4, all * 3 / 4, all / 64].map(|n| format!("{}K", n.div_ceil(1000)));
    let hub = |n: &str| {
        let hub = Process::start(&[
            "run",
            MODEL.to_str().unwrap(),
            "--device",
            "cpu",
            "-p",
            PROMPT,
            "-n",
            "8",
            "--temp",
            "0",
            "--swarm",
            "127.0.0.1:0",
            "--swarm-replicas",
            "1",
            "--swarm-fast",
            "--swarm-workers",
            n,
            "-v",
        ]);
        let address = hub.after("workers join at ws://");
        (hub, address)
    };
    let folder = tempfile::tempdir().unwrap();
    let gpu = |address: &str, memory: &str| {
        worker(address, &folder.path().join("gpu"), &["--device", "gpu", "--memory", memory])
    };
    let end = |hub: Process| {
        let (code, _, seen) = hub.end();
        assert_eq!(code, Some(0), "{seen}");
        seen
    };

    // The rest goes to a worker with any units, which has room for just that.
    let (two, address) = hub("2");
    let gpu_worker = gpu(&address, &quarter);
    let cpu_worker = worker(&address, &folder.path().join("cpu"), &["--memory", &most]);
    let seen = end(two);
    assert!(!seen.contains("workers have room for"), "{seen}");
    assert_workers_computed(&seen);
    drop((gpu_worker, cpu_worker));

    // Without it the hub says at once what nobody has.
    let (one, address) = hub("1");
    let gpu_worker = gpu(&address, &quarter);
    let seen = end(one);
    assert!(seen.contains("workers have room for 32 of 128 experts"), "{seen}");
    drop(gpu_worker);

    // Less than a token uses is refused by the worker itself.
    let (_one, address) = hub("1");
    let (code, _, seen) = gpu(&address, &too_little).end();
    assert_eq!(code, Some(1), "{seen}");
    assert!(seen.contains("at least the 4 that a token uses"), "{seen}");
}

#[test]
fn every_answer_is_confirmed_with_verification() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let hub = Hub::start(&["--swarm-verify"]);
    let _workers = folders.each_ref().map(|folder| worker(&hub.swarm, folder.path(), &[]));
    hub.ready(2, 2);
    assert_eq!(hub.text(), *EXPECTED);
    let status = hub.status();
    let [calls, tasks, disputes] = ["calls", "tasks", "disputes"].map(|name| counter(&status, name));
    assert!(calls > 0 && tasks >= 2 * calls && disputes == 0, "{status:#}");
}

#[test]
fn a_plan_has_the_numbers_of_the_file_and_of_the_workers() {
    let model = MODEL.to_str().unwrap();
    let args = ["swarm", "plan", model, "--hub-memory", "100M", "--swarm-replicas", "1"];
    let with = |workers: &[&str], format: &str| {
        let workers = workers.iter().flat_map(|w| ["--worker", w]);
        let args: Vec<&str> = args.into_iter().chain(workers).chain(["--format", format]).collect();
        run(&args)
    };
    let all = 128 * EXPERT_BYTES;
    // A quarter at a GPU with slots in each layer, the others at a CPU.
    let (gpu, cpu) = ("name=gpu,gpu,memory=6685K", "name=cpu,memory=1G,rtt=1");
    let plan = json(&with(&[gpu, cpu], "json"));
    assert_eq!(plan["expert_bytes"].as_f64().unwrap() as u64, all);
    assert_eq!(plan["unplaced_experts"], 0);
    let bytes = |i: usize| plan["workers"][i]["bytes"].as_u64().unwrap();
    assert_eq!(bytes(0) + bytes(1), all);
    assert!(plan["workers"][0]["layer"][1].as_u64().unwrap() <= 8, "{plan:#}");
    // Four layers, a round trip of 1 ms at the slower one.
    assert_eq!(plan["as_placed"]["round_trips_ms"].as_f64().unwrap().round(), 4.0);
    assert!(!plan["best"]["reason"].as_str().unwrap().is_empty());

    let alone = json(&with(&[gpu], "json"));
    assert_eq!(alone["unplaced_experts"], 96);
    let text = out(&with(&[gpu], "md"));
    assert!(text.contains("no worker has room for 96 experts (19.12 MiB): the hub computes them"), "{text}");
    assert!(text.contains(" ms a token ("), "{text}");
    let wrong = err(&with(&["memory=0"], "md"));
    assert!(wrong.contains("expected a positive number with K, M or G"), "{wrong}");
}

#[test]
fn a_killed_worker_changes_no_text() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let hub = Hub::start(&[]);
    let [first, second] = folders.each_ref().map(|folder| worker(&hub.swarm, folder.path(), &[]));
    hub.ready(2, 2);
    assert_eq!(hub.text(), *EXPECTED);
    let before = hub.status();
    assert!(counter(&before, "calls") > 0 && counter(&before, "local") == 0, "{before:#}");

    // In the midst of an answer, whose prompt is not cached whole.
    std::thread::scope(|scope| {
        let http = hub.http.as_str();
        let answer = scope.spawn(move || text(http));
        hub.wait("answering", |status| counter(status, "calls") > counter(&before, "calls") + 8);
        first.signal("-KILL");
        assert_eq!(answer.join().unwrap(), *EXPECTED);
    });
    let after = hub.wait("alone", |status| status["workers"].as_array().unwrap().len() == 1);
    assert_eq!(counter(&after, "failed"), 0, "{after:#}");

    // Nobody is left: the hub computes.
    second.signal("-KILL");
    hub.wait("alone", |status| status["workers"].as_array().unwrap().is_empty());
    assert_eq!(hub.text(), *EXPECTED);
    drop((first, second));

    // A worker that comes back has its weights.
    let first = worker(&hub.swarm, folders[0].path(), &[]);
    hub.ready(1, 1);
    assert!(first.seen.lock().unwrap().iter().all(|line| !line.contains("fetched")), "{:?}", first.seen);
    assert_eq!(hub.text(), *EXPECTED);
}

#[test]
fn a_worker_leaves_politely() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let hub = Hub::start(&["--swarm-replicas", "1"]);
    let [first, second] = folders.each_ref().map(|folder| worker(&hub.swarm, folder.path(), &[]));
    hub.ready(2, 1);
    first.signal("-TERM");
    let (code, _, seen) = first.end();
    assert_eq!(code, Some(0), "{seen}");
    // It left when the other had all.
    let status = hub.ready(1, 1);
    assert_eq!(status["served"], status["units"], "{status:#}");
    assert_eq!(hub.text(), *EXPECTED);
    drop(second);
}

#[test]
fn damaged_weights_are_fetched_again() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start(&[]);
    let first = worker(&hub.swarm, folder.path(), &[]);
    hub.ready(1, 1);
    assert!(first.seen.lock().unwrap().iter().any(|line| line.contains("fetched")), "{:?}", first.seen);
    drop(first);
    let mut n_file = 0;
    for entry in std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()) {
        for path in std::fs::read_dir(entry).unwrap().map(|e| e.unwrap().path()) {
            let mut bytes = std::fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            n_file += 1;
        }
    }
    // The skeleton, and three matrices of each expert.
    assert_eq!(n_file, 1 + 4 * 32 * 3);
    let second = worker(&hub.swarm, folder.path(), &[]);
    hub.ready(1, 1);
    assert_eq!(hub.text(), *EXPECTED);
    drop(second);
}

#[test]
fn a_token_proves_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let token = |name: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, out(&run(&["swarm", "token"]))).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (right, wrong) = (token("right"), token("wrong"));
    let store = folder.path().join("store");
    let hub = Hub::start(&["--token-file", &right]);
    for args in [&[][..], &["--token-file", &wrong]] {
        let (code, _, seen) = worker(&hub.swarm, &store, args).end();
        assert_eq!(code, Some(1), "{seen}");
        assert!(seen.contains("does not fit the token"), "{seen}");
    }
    let _worker = worker(&hub.swarm, &store, &["--token-file", &right]);
    hub.ready(1, 1);
    assert_eq!(hub.text(), *EXPECTED);
    drop(hub);
    // A hub without the token gets no worker.
    let hub = Hub::start(&[]);
    let (code, _, seen) = worker(&hub.swarm, &store, &["--token-file", &right]).end();
    assert_eq!(code, Some(1), "{seen}");
    assert!(seen.contains("the proof of the hub does not fit the token"), "{seen}");
}

#[test]
fn a_worker_whose_bits_are_others_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start(&[]);
    let (code, _, seen) = worker(&hub.swarm, folder.path(), &["--no-repack"]).end();
    assert_eq!(code, Some(1), "{seen}");
    assert!(seen.contains("the hub keeps the bits of its own products"), "{seen}");
    let hub = Hub::start(&["--swarm-fast"]);
    let _worker = worker(&hub.swarm, folder.path(), &["--no-repack"]);
    hub.ready(1, 1);
}

#[test]
fn strangers_get_nothing_from_a_hub() {
    let hub = Hub::start(&[]);
    let status = |head: &str| {
        let answer = get(&hub.swarm, head, "");
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(status("GET /swarm/skeleton HTTP/1.1\r\n"), "403");
    let key = "authorization: Bearer 00000000000000000000000000000000\r\n";
    assert_eq!(status(&format!("GET /swarm/skeleton HTTP/1.1\r\n{key}")), "403");
    let tensor = "GET /swarm/tensor/blk.0.ffn_up_exps.weight HTTP/1.1\r\n";
    assert_eq!(status(tensor), "400");
    assert_eq!(status(&format!("{tensor}{key}range: bytes=0-99\r\n")), "403");
    assert_eq!(status(&format!("{tensor}{key}range: bytes=0-999999999\r\n")), "400");
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
    let page = format!("GET /swarm HTTP/1.1\r\n{upgrade}origin: http://127.0.0.1\r\n");
    assert_eq!(status(&page), "403");
}

#[test]
fn addresses_beyond_this_machine_need_a_token() {
    let model = MODEL.to_str().unwrap();
    let refused = run(&["run", model, "--device", "cpu", "-p", "x", "--swarm", "0.0.0.0:0"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(err(&refused).contains("--token-file is needed"), "{}", err(&refused));
    let gpu = run(&["run", model, "--device", "gpu", "-p", "x", "--swarm", "127.0.0.1:0"]);
    assert_eq!(gpu.status.code(), Some(2));
    assert!(err(&gpu).contains("--device cpu, or --swarm-fast"), "{}", err(&gpu));
    let dense = run(&["run", "--device", "cpu", "-p", "x", "--swarm", "127.0.0.1:0"]);
    assert_eq!(dense.status.code(), Some(1));
    assert!(err(&dense).contains("has no experts that other machines could compute"), "{}", err(&dense));
    let wrong = run(&["worker", "http://127.0.0.1:1"]);
    assert_ne!(wrong.status.code(), Some(0));
}
