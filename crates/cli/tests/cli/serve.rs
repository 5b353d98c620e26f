//! `chaski serve` as a process: its first words, an answer, and its end.
#![cfg(unix)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use crate::gpu::has_gpu;
use crate::{chaski, err, json, run};

/// A server that is killed with this.
pub(crate) struct Server {
    child: Child,
    stderr: BufReader<ChildStderr>,
    address: String,
}

impl Server {
    /// The next line of its log that has this in it.
    pub(crate) fn line(&mut self, part: &str) -> String {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            assert!(self.stderr.read_line(&mut line).unwrap() > 0, "no line has `{part}`");
        }
        line
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap().success());
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(args: &[&str]) -> Command {
    // Models that the user's servers fetched shall not matter.
    let mut command = chaski(&["serve", "--device", "cpu", "--models-file", "none"]);
    command.args(args).stdout(Stdio::null());
    command
}

pub(crate) fn start(args: &[&str]) -> Server {
    started(serve(args))
}

/// A server that may at first have so many files open.
pub(crate) fn start_with_files(n: usize, args: &[&str]) -> Server {
    let inner = serve(args);
    let mut command = Command::new("sh");
    let script = format!("ulimit -Sn {n} && exec \"$0\" \"$@\"");
    command.args(["-c", &script]).arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::null()).stdout(Stdio::null());
    started(command)
}

pub(crate) fn started(mut command: Command) -> Server {
    let mut child = command.args(["--port", "0"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let address =
        line.trim().strip_prefix("listening on http://").unwrap_or_else(|| panic!("{line}")).to_owned();
    let server = Server { child, stderr, address };
    let begin = Instant::now();
    while !ask(&server, "GET", "/health", "").starts_with("HTTP/1.1 200") {
        assert!(begin.elapsed() < Duration::from_secs(60), "it does not load");
        std::thread::sleep(Duration::from_millis(20));
    }
    server
}

/// A whole response.
pub(crate) fn ask(server: &Server, method: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_server_answers_and_ends_at_a_signal() {
    let mut server = start(&["--drain-delay", "0"]);
    let mut line = String::new();
    server.stderr.read_line(&mut line).unwrap();
    assert_eq!(line.trim(), format!("a page to chat: http://{}/", server.address));
    let mut stream = TcpStream::connect(&server.address).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nhost: localhost\r\naccept: text/html\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert!(page.contains("<!doctype html>"), "{page}");
    // The lines to try are what they seem.
    for path in ["/v1/chat/completions", "/v1/completions"] {
        let mut line = String::new();
        server.stderr.read_line(&mut line).unwrap();
        let expected = format!("curl http://{}{path} -d '", server.address);
        let body = line.trim().strip_prefix(&expected).unwrap_or_else(|| panic!("{line}"));
        let body = body.strip_suffix('\'').unwrap();
        let mut value: serde_json::Value = serde_json::from_str(body).unwrap();
        value["max_tokens"] = 4.into();
        let answer = ask(&server, "POST", path, &value.to_string());
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"completion_tokens\":4"), "{answer}");
    }
    let status = Command::new("kill").args(["-TERM", &server.child.id().to_string()]).status().unwrap();
    assert!(status.success());
    let ended = server.child.wait().unwrap();
    assert_eq!(ended.code(), Some(0));
}

#[test]
fn a_server_without_its_page_tells_of_none() {
    for option in ["--no-ui", "--no-webui"] {
        let mut server = start(&[option]);
        let mut line = String::new();
        server.stderr.read_line(&mut line).unwrap();
        assert!(line.contains("curl"), "{line}");
        assert!(ask(&server, "GET", "/chat.js", "").starts_with("HTTP/1.1 404"));
    }
}

/// The status of a request with this key.
fn status(server: &Server, key: &str) -> String {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head = "GET /v1/models HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
    write!(stream, "{head}authorization: Bearer {key}\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn keys_are_read_again_at_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys");
    std::fs::write(&file, "ann:old\n").unwrap();
    let mut server = start(&["--api-key-file", file.to_str().unwrap()]);
    assert_eq!((status(&server, "old").as_str(), status(&server, "new").as_str()), ("200", "401"));
    let hang_up = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let sent = Command::new("kill").args(["-HUP", &server.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    };
    hang_up("bob:new\n");
    let begin = Instant::now();
    while status(&server, "new") != "200" {
        assert!(begin.elapsed() < Duration::from_secs(10), "the keys stay");
    }
    assert_eq!(status(&server, "old"), "401");
    hang_up("carl:sha256:12\n");
    let mut line = String::new();
    while !line.contains("the keys in force stay") {
        line.clear();
        assert!(server.stderr.read_line(&mut line).unwrap() > 0);
    }
    assert!(line.contains("line 1 of the keys"), "{line}");
}

#[test]
fn models_of_a_folder_and_of_presets_are_loaded_when_they_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let model =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../chaski/model/storyteller-Q4_K_M.gguf");
    let add = |name: &str| std::fs::copy(&model, folder.path().join(name)).unwrap();
    add("one.gguf");
    add("two.gguf");
    let presets = folder.path().join("presets.toml");
    let text = "n-predict = 5\n[fast]\nmodel = \"two.gguf\"\nalias = \"gpt-4o,mini\"\n[one]\nn_predict = 3\n";
    std::fs::write(&presets, text).unwrap();
    let (dir, file) = (folder.path().to_str().unwrap(), presets.to_str().unwrap());
    let mut server = start(&["--models-dir", dir, "--models-preset", file, "--models-max", "1"]);
    let n_token = |model: &str| {
        let body = format!("{{\"model\": \"{model}\", \"prompt\": \"Once\", \"ignore_eos\": true}}");
        let answer = ask(&server, "POST", "/v1/completions", &body);
        let count = answer.split("\"completion_tokens\":").nth(1);
        count.unwrap_or_else(|| panic!("{answer}")).split(',').next().unwrap().to_owned()
    };
    assert_eq!([n_token("fast"), n_token("one"), n_token("mini")], ["5", "3", "5"]);
    let ids = |server: &Server| {
        let answer = ask(server, "GET", "/v1/models", "");
        let list: serde_json::Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        let ids =
            list["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(ids(&server), ["fast", "one"]);
    add("three.gguf");
    assert!(Command::new("kill").args(["-HUP", &server.child.id().to_string()]).status().unwrap().success());
    let begin = Instant::now();
    while ids(&server) != ["fast", "one", "three"] {
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", ids(&server));
    }
    std::fs::write(&presets, "[fast]\nctx = 5\n").unwrap();
    let mut line = String::new();
    let begin = Instant::now();
    assert!(Command::new("kill").args(["-HUP", &server.child.id().to_string()]).status().unwrap().success());
    while !line.contains("the list of models stays") {
        line.clear();
        assert!(server.stderr.read_line(&mut line).unwrap() > 0 && begin.elapsed() < Duration::from_secs(10));
    }
    assert!(line.contains("line 2: unknown key `ctx`"), "{line}");
    assert_eq!(ids(&server), ["fast", "one", "three"]);
}

#[test]
fn loras_are_served_by_their_scales_and_names() {
    let folder = tempfile::tempdir().unwrap();
    let file = crate::answers::adapter(folder.path(), "llama");
    let file = file.to_str().unwrap();
    let tell = |server: &Server, more: &str| {
        let body =
            format!("{{\"prompt\": \"Once upon a time\", \"temperature\": 0, \"n_predict\": 12{more}}}");
        let answer = ask(server, "POST", "/completion", &body);
        let body: serde_json::Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        body["content"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    let applied = start(&["--lora-scaled", file, "0.75"]);
    let (by_default, off) = (tell(&applied, ""), tell(&applied, ", \"lora\": []"));
    assert_ne!(by_default, off);
    assert_eq!(tell(&applied, ", \"lora\": [{\"id\": 0, \"scale\": 0.75}]"), by_default);
    assert_eq!(tell(&applied, ", \"model\": \"llama\""), by_default, "the name of its file");
    drop(applied);
    let unapplied = start(&["--lora", file, "--lora-init-without-apply"]);
    assert_eq!(tell(&unapplied, ""), off);
    assert!(ask(&unapplied, "GET", "/lora-adapters", "").contains("\"scale\":0.0"));
    assert!(ask(&unapplied, "POST", "/lora-adapters", "[{\"id\": 0, \"scale\": 0.75}]").contains("true"));
    assert_eq!(tell(&unapplied, ""), by_default);
}

#[test]
fn a_server_drafts_with_a_model_or_by_lookup() {
    let draft = crate::fixture();
    let with_model = ["-md", draft.to_str().unwrap(), "--draft-max", "3", "--draft-p-min", "0.1"];
    for args in [&with_model[..], &["--draft-max", "3", "--draft-min", "1"]] {
        let server = start(args);
        let words = "( (red|blue) ball){6}[.]";
        let body = format!("{{\"prompt\": \"She saw a\", \"guided_regex\": \"{words}\", \"n_predict\": 40}}");
        let answer = ask(&server, "POST", "/completion", &body);
        assert!(answer.contains("\"draft_n\":") && answer.contains("\"speculative.n_max\":3"), "{answer}");
    }
    let o = serve(&["-md", "no-such-file.gguf"]).args(["--port", "0"]).output().unwrap();
    assert_eq!(o.status.code(), Some(3), "{}", String::from_utf8_lossy(&o.stderr));
}

#[test]
fn models_that_cannot_be_told_apart_are_refused() {
    for (args, says) in [
        (&["a/m.gguf", "b/m.gguf"][..], "two models are called `m`"),
        (&["a.gguf", "b.gguf", "--alias", "x"], "--alias names one model"),
        (&["--models-dir", "/nowhere"], "the folder `/nowhere` cannot be read"),
    ] {
        let o = serve(args).args(["--port", "0"]).output().unwrap();
        let error = String::from_utf8_lossy(&o.stderr).into_owned();
        assert!(!o.status.success() && error.contains(says), "{error}");
    }
}

#[test]
fn a_signal_ends_a_server_that_loads() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("template");
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    // It waits for somebody who writes the file.
    let mut command = serve(&["--chat-template-file", file.to_str().unwrap(), "--port", "0"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("listening on"), "{line}");
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let begin = Instant::now();
    let code = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status.code(),
            None if begin.elapsed() > Duration::from_secs(20) => {
                child.kill().unwrap();
                panic!("it goes on loading");
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    assert_eq!(code, Some(0));
}

#[test]
fn others_cannot_reach_a_server_without_a_key() {
    let o = serve(&["--host", "0.0.0.0"]).output().unwrap();
    let error = String::from_utf8_lossy(&o.stderr).into_owned();
    assert_eq!(o.status.code(), Some(2), "{error}");
    assert!(error.contains("--api-key") && error.contains("--insecure-open"), "{error}");
}

#[test]
fn a_port_in_use_is_an_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let o = serve(&["--port", &port]).output().unwrap();
    let error = String::from_utf8_lossy(&o.stderr).into_owned();
    assert_eq!(o.status.code(), Some(1), "{error}");
    assert!(error.contains(&format!("cannot listen on 127.0.0.1:{port}")), "{error}");
}

/// Sends a signal to a server.
fn signal(server: &Server, name: &str) {
    let sent = Command::new("kill").args([name, &server.child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn a_server_whose_log_cannot_be_written_answers() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let port = taken.local_addr().unwrap().port().to_string();
    drop(taken);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let child = serve(&["-v", "--port", &port]).stderr(full).spawn().unwrap();
    // Its words go nowhere, so it is known by its port.
    let mut nothing = Command::new("true").stderr(Stdio::piped()).spawn().unwrap();
    let stderr = BufReader::new(nothing.stderr.take().unwrap());
    nothing.wait().unwrap();
    let server = Server { child, stderr, address };
    let begin = Instant::now();
    while TcpStream::connect(&server.address).is_err()
        || !ask(&server, "GET", "/health", "").starts_with("HTTP/1.1 200")
    {
        assert!(begin.elapsed() < Duration::from_secs(60), "it does not come up");
        std::thread::sleep(Duration::from_millis(20));
    }
    for _ in 0..20 {
        let answer = ask(&server, "POST", "/v1/completions", "{\"prompt\": \"A\", \"max_tokens\": 2}");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

#[test]
fn a_stream_goes_on_after_a_pause_of_the_process() {
    let server = start(&["--log-format", "none"]);
    let body = "{\"prompt\": \"Once\", \"max_tokens\": 400, \"ignore_eos\": true, \"temperature\": 0, \"stream\": true}";
    let whole = |pause: bool| {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let head = "POST /v1/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
        write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut lines = BufReader::new(stream).lines().map(|line| line.unwrap());
        let mut text = String::new();
        for line in lines.by_ref().filter(|line| line.starts_with("data: {")) {
            let chunk: serde_json::Value = serde_json::from_str(&line["data: ".len()..]).unwrap();
            text += chunk["choices"][0]["text"].as_str().unwrap_or_default();
            if pause && text.len() > 100 {
                break;
            }
        }
        if pause {
            signal(&server, "-STOP");
            std::thread::sleep(Duration::from_millis(500));
            signal(&server, "-CONT");
            for line in lines.filter(|line| line.starts_with("data: {")) {
                let chunk: serde_json::Value = serde_json::from_str(&line["data: ".len()..]).unwrap();
                text += chunk["choices"][0]["text"].as_str().unwrap_or_default();
            }
        }
        text
    };
    assert_eq!(whole(true), whole(false));
}

#[test]
fn a_server_without_files_and_terminal_survives_sighup() {
    let mut command = serve(&["--api-key", "a"]);
    command.stdin(Stdio::null());
    let mut server = started(command);
    for _ in 0..3 {
        signal(&server, "-HUP");
        std::thread::sleep(Duration::from_millis(100));
        assert!(ask(&server, "GET", "/health", "").starts_with("HTTP/1.1 200"));
    }
    // An idle server ends at once when it is interrupted; a SIGTERM gives routers time.
    let begin = Instant::now();
    signal(&server, "-INT");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
}

#[test]
fn an_idle_server_gives_routers_time_to_notice_its_end() {
    let mut server = start(&["--drain-delay", "2"]);
    let begin = Instant::now();
    signal(&server, "-TERM");
    while ask(&server, "GET", "/readyz", "").starts_with("HTTP/1.1 200") {
        assert!(begin.elapsed() < Duration::from_secs(1), "it is ready");
    }
    // Requests are still taken.
    let answer = ask(&server, "POST", "/v1/completions", "{\"prompt\": \"A\", \"max_tokens\": 2}");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    assert!(begin.elapsed() >= Duration::from_secs(2), "{:?}", begin.elapsed());
}

#[test]
fn keys_are_read_again_when_their_file_changes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys");
    std::fs::write(&file, "ann:old\n").unwrap();
    let server = start(&["--api-key-file", file.to_str().unwrap()]);
    assert_eq!(status(&server, "new"), "401");
    // As editors replace a file.
    std::fs::write(folder.path().join("other"), "bob:newer\n").unwrap();
    std::fs::rename(folder.path().join("other"), &file).unwrap();
    let begin = Instant::now();
    while status(&server, "newer") != "200" {
        assert!(begin.elapsed() < Duration::from_secs(10), "the keys stay");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(status(&server, "old"), "401");
}

#[test]
fn the_services_of_systemd_and_kubernetes_wait_until_answers_have_ended() {
    let help = crate::out(&crate::run(&["serve", "--help"]));
    let default = |option: &str| -> u64 {
        let rest = help.split(option).nth(1).expect("it is an option");
        let number = rest.split("[default: ").nth(1).and_then(|rest| rest.split(']').next());
        number.expect("it has a default").parse().expect("in seconds")
    };
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist/chaski.service");
    let service = std::fs::read_to_string(file).expect("the file is there");
    let stop = service.lines().find_map(|line| line.strip_prefix("TimeoutStopSec="));
    let stop: u64 = stop.expect("it has a limit").parse().expect("in seconds");
    // Clients that are cut have two seconds to be told, idle connections one, and spans ten.
    let needed = default("--drain-delay <SECONDS>") + default("--drain-timeout <SECONDS>") + 13;
    assert!(stop > needed, "{stop} s, but the server takes {needed} s");
    // So does that of Kubernetes, and its options and probes are there.
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist/kubernetes.yaml");
    let manifest = std::fs::read_to_string(file).expect("the file is there");
    let value = |name: &str| manifest.lines().find_map(|line| line.trim().strip_prefix(name)).map(str::trim);
    let grace = value("terminationGracePeriodSeconds:").expect("it has a limit").parse::<u64>();
    assert!(grace.expect("in seconds") > needed);
    let options = manifest.lines().filter_map(|line| line.trim().strip_prefix("- --"));
    let names: Vec<&str> = options.map(|option| option.split('=').next().unwrap_or(option)).collect();
    assert!(names.len() > 5, "{names:?}");
    for name in names {
        assert!(help.contains(&format!("--{name}")), "{name}");
    }
    let server = start(&[]);
    for probe in manifest.lines().filter_map(|line| line.trim().strip_prefix("httpGet: {path: ")) {
        let path = probe.split(',').next().expect("a path");
        assert!(ask(&server, "GET", path, "").starts_with("HTTP/1.1 200"), "{path}");
    }
}

#[test]
fn options_of_dialects_proxies_and_the_log_reach_the_server() {
    let mut server = start(&[
        "--log-format",
        "json",
        "--log-prompts",
        "--trusted-proxy",
        "127.0.0.0/8",
        "--max-n",
        "2",
        "--anthropic-default-max",
        "3",
        "--anthropic-strip-system",
        "^x-billing:",
        "--store",
        "1",
    ]);
    let refused = ask(&server, "POST", "/v1/completions", "{\"prompt\": \"A\", \"n\": 3}");
    assert!(refused.starts_with("HTTP/1.1 400") && refused.contains("between 1 and 2"), "{refused}");
    let body = "{\"prompt\": \"A private matter\", \"max_tokens\": 1}";
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head = "POST /v1/completions HTTP/1.1\r\nhost: localhost\r\nx-forwarded-for: 9.9.9.9\r\nconnection: close\r\n";
    write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let line = server.line("\"event\":\"prompt\"");
    assert!(line.contains("\"text\":\"A private matter\""), "{line}");
    let line = server.line("\"event\":\"answer\"");
    assert!(line.contains("\"client\":\"9.9.9.9\""), "{line}");
    let body = "{\"model\": \"storyteller-Q4_K_M\", \"system\": \"x-billing: 7\", \"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}";
    let message = ask(&server, "POST", "/v1/messages", body);
    assert!(message.starts_with("HTTP/1.1 200") && message.contains("\"output_tokens\":3"), "{message}");
    let line = server.line("\"event\":\"prompt\"");
    assert!(line.contains("Hi") && !line.contains("billing"), "{line}");
    let response = ask(&server, "POST", "/v1/responses", "{\"input\": \"Hi\", \"max_output_tokens\": 1}");
    assert!(response.contains("\"store\":true"), "{response}");
    for (option, word) in [
        ("--trusted-proxy", "proxy.example"),
        ("--reasoning-names", "thoughts"),
        ("--reasoning-format", "xml"),
        ("--anthropic-strip-system", "("),
        ("--max-n", "0"),
    ] {
        let o = serve(&[option, word]).output().unwrap();
        let error = String::from_utf8_lossy(&o.stderr).into_owned();
        assert!(o.status.code() == Some(2) && error.contains(option), "{error}");
    }
}

/// More contexts than a binding of the device holds are shared pages, and a note says how many; a number that an option
/// gives is not reduced.
#[test]
fn a_cache_fits_the_device_unless_an_option_gives_its_size() {
    if !has_gpu() {
        return;
    }
    let devices = json(&run(&["devices", "-o", "json"]));
    let limit = devices[0]["limits"]["max_binding_bytes"].as_u64().unwrap();
    // 512 bytes of each layer for a token of the built-in model, and twice a binding in all.
    let n_ctx = (2 * limit / (512 * 256)).max(64).next_multiple_of(64);
    let context = n_ctx.to_string();
    let sizes = ["serve", "--device", "0", "--models-file", "none", "-c", &context, "--parallel", "256"];
    let mut command = chaski(&sizes);
    command.stdout(Stdio::null());
    let mut server = started(command);
    let note = server.line("which requests share");
    assert!(note.starts_with("note: the built-in model: ") && note.contains("all 256 requests"), "{note}");
    let words: Vec<&str> = note.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "tokens,").unwrap();
    let (n_token, n_full): (u64, f64) = (words[at - 1].parse().unwrap(), words[at + 1].parse().unwrap());
    assert!((n_ctx..=limit / 512).contains(&n_token), "{note}");
    assert!((n_full - n_token as f64 / n_ctx as f64).abs() < 0.06, "{note}");
    let info = ask(&server, "GET", "/server_info", "");
    assert!(info.contains(&format!("\"max_total_num_tokens\":{n_token}")), "{info}");
    let answer =
        ask(&server, "POST", "/v1/completions", r#"{"prompt": "Once upon a time", "max_tokens": 4}"#);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let given = (n_ctx * 256).to_string();
    let refused = run(&[&sizes[..], &["--kv-tokens", &given, "--port", "0"]].concat());
    let said = err(&refused);
    assert!(
        !refused.status.success() && said.contains("KV cache") && said.contains(&limit.to_string()),
        "{said}"
    );
}
