//! A server that behaves like the hub: lists of files, redirects to a storage with another host name that refuses the
//! token, ranges, error codes, and faults on request.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::json;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// The token that the hub knows.
pub(crate) const TOKEN: &str = "hf_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// A repository.
#[derive(Clone, Default)]
pub(crate) struct Repo {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    pub(crate) is_gated: bool,
    pub(crate) is_private: bool,
    /// The name that it has now.
    pub(crate) moved_to: Option<String>,
}

/// Faults; those with a number happen so often.
#[derive(Clone, Default)]
pub(crate) struct Faults {
    /// Bodies of the storage end after so many bytes, so often.
    pub(crate) cut: Option<(usize, usize)>,
    /// Status and `Retry-After` of the hub, so often.
    pub(crate) status: Option<(u16, Option<u64>, usize)>,
    /// The storage ignores ranges.
    pub(crate) no_ranges: bool,
    /// The storage changes the last byte of what it sends, so often.
    pub(crate) corrupt: usize,
    /// The storage has another ETag than before.
    pub(crate) new_etag: bool,
    /// The storage sends ranges whatever `If-Range` says.
    pub(crate) ignores_if_range: bool,
    /// The storage claims this range of each piece.
    pub(crate) content_range: Option<String>,
    /// The storage has no ETag.
    pub(crate) no_etag: bool,
    /// The hub refuses tokens that it does not know before anything else.
    pub(crate) checks_tokens: bool,
    /// The storage answers 403, so often.
    pub(crate) expired: usize,
    /// Answers of a list have so many files.
    pub(crate) page: Option<usize>,
    /// The hub redirects to itself.
    pub(crate) in_circles: bool,
    /// A web page comes in place of contents.
    pub(crate) html: bool,
    /// The list names this path, too.
    pub(crate) wicked: Option<String>,
    /// The list claims this size of each file.
    pub(crate) claimed: Option<u64>,
    /// The storage sends so many bytes at a time, with a pause between.
    pub(crate) slow: Option<(usize, Duration)>,
    /// The storage sends nothing after so many bytes, but stays connected.
    pub(crate) silent_after: Option<usize>,
    /// The storage sends nothing before so many bodies are asked for at once.
    pub(crate) together: Option<usize>,
}

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Logged {
    /// Path and query.
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) status: u16,
    /// Bytes of the body.
    pub(crate) n_byte: usize,
}

impl Logged {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The storage answered it.
    pub(crate) fn is_storage(&self) -> bool {
        self.path.starts_with("/cdn/")
    }
}

#[derive(Default)]
struct State {
    repos: BTreeMap<String, Repo>,
    faults: Faults,
    log: Vec<Logged>,
    /// Bytes of bodies that the storage sent.
    n_sent: usize,
    /// Bodies that the storage sends now.
    n_running: usize,
    /// Most of them at once.
    most_running: usize,
    /// Silences that lasted to their end.
    n_silence: usize,
}

/// Time of a silence, and the longest wait for other requests: a client that works needs neither.
const FOREVER: Duration = Duration::from_secs(30);

/// A running server; it ends with the process.
#[derive(Clone)]
pub(crate) struct FakeHub {
    port: u16,
    state: Arc<Mutex<State>>,
}

struct Request {
    is_head: bool,
    path: String,
    headers: BTreeMap<String, String>,
}

struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Answer {
    fn new(status: u16) -> Self {
        Answer { status, headers: Vec::new(), body: Vec::new() }
    }

    fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    fn json(value: &serde_json::Value) -> Self {
        let mut answer = Answer::new(200).with("Content-Type", "application/json; charset=utf-8");
        answer.body = value.to_string().into_bytes();
        answer
    }

    fn error(status: u16, code: &str, message: &str) -> Self {
        let mut answer = Answer::json(&json!({ "error": message })).with("X-Error-Code", code);
        answer.status = status;
        answer.with("X-Error-Message", message)
    }
}

impl FakeHub {
    /// Starts a server without repositories.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let hub = FakeHub { port: listener.local_addr().unwrap().port(), state: Arc::default() };
        let server = hub.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = server.clone();
                std::thread::spawn(move || server.serve(stream));
            }
        });
        hub
    }

    /// Adds a repository.
    pub(crate) fn with(self, name: &str, files: &[(&str, Vec<u8>)]) -> Self {
        let files = files.iter().map(|(path, bytes)| (path.to_string(), bytes.clone())).collect();
        self.state().repos.insert(name.into(), Repo { files, ..Repo::default() });
        self
    }

    pub(crate) fn change(&self, name: &str, change: impl FnOnce(&mut Repo)) {
        change(self.state().repos.get_mut(name).unwrap());
    }

    pub(crate) fn set(&self, faults: Faults) {
        self.state().faults = faults;
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The requests since the last call.
    pub(crate) fn take_log(&self) -> Vec<Logged> {
        std::mem::take(&mut self.state().log)
    }

    pub(crate) fn commit(&self, name: &str) -> String {
        commit(&self.state().repos[name])
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Answers requests of a connection until it ends.
    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while let Some(request) = read_request(&mut reader) {
            let answer = self.answer(&request);
            let log = Logged {
                path: request.path.clone(),
                headers: request.headers.clone(),
                status: answer.status,
                n_byte: answer.body.len(),
            };
            self.state().log.push(log);
            if self.send(&stream, &request, &answer).is_none() {
                let _ = stream.shutdown(std::net::Shutdown::Both);
                return;
            }
        }
    }

    /// Sends an answer; `None` if the connection ends with it.
    fn send(&self, mut stream: &TcpStream, request: &Request, answer: &Answer) -> Option<()> {
        let mut head = format!("HTTP/1.1 {} X\r\nContent-Length: {}\r\n", answer.status, answer.body.len());
        answer.headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        stream.write_all(format!("{head}\r\n").as_bytes()).ok()?;
        if request.is_head {
            return Some(());
        }
        let is_storage = request.path.starts_with("/cdn/");
        let faults = if is_storage { self.state().faults.clone() } else { Faults::default() };
        let n = match faults.cut {
            Some((at, times)) if times > 0 && answer.body.len() > at => {
                self.state().faults.cut = Some((at, times - 1));
                at
            }
            _ => answer.body.len(),
        };
        let n = n.min(faults.silent_after.unwrap_or(n));
        if is_storage {
            self.begin(faults.together.unwrap_or(1));
        }
        let sent = self.send_body(stream, &answer.body[..n], faults.slow);
        if is_storage {
            self.state().n_running -= 1;
        }
        sent?;
        if faults.silent_after.is_some() && n < answer.body.len() {
            std::thread::sleep(FOREVER);
            self.state().n_silence += 1;
        }
        (n == answer.body.len()).then_some(())
    }

    /// Counts a body of the storage, and waits until so many are asked for.
    fn begin(&self, n: usize) {
        {
            let mut state = self.state();
            state.n_running += 1;
            state.most_running = state.most_running.max(state.n_running);
        }
        let begun = Instant::now();
        while self.state().most_running < n && begun.elapsed() < FOREVER {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn send_body(&self, mut stream: &TcpStream, body: &[u8], slow: Option<(usize, Duration)>) -> Option<()> {
        let (size, pause) = slow.unwrap_or((body.len().max(1), Duration::ZERO));
        for piece in body.chunks(size) {
            stream.write_all(piece).ok()?;
            self.state().n_sent += piece.len();
            std::thread::sleep(pause);
        }
        Some(())
    }

    fn answer(&self, request: &Request) -> Answer {
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let parts: Vec<String> = path.trim_matches('/').split('/').map(unquoted).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        if parts.first() == Some(&"cdn") {
            return self.storage(request, &parts[1..]);
        }
        if let Some(answer) = self.limited().or_else(|| self.unauthorized(request)) {
            return answer;
        }
        match parts[..] {
            ["plain", owner, name, ..] => self.storage(request, &[&[owner, name], &parts[3..]].concat()),
            ["api", "models", owner, name, ref rest @ ..] => {
                self.api(request, &format!("{owner}/{name}"), rest, query)
            }
            [owner, name, "resolve", revision, ..] if parts.len() > 4 => {
                self.resolve(request, &format!("{owner}/{name}"), revision, &parts[4..].join("/"))
            }
            _ => Answer::error(404, "", "not found"),
        }
    }

    fn limited(&self) -> Option<Answer> {
        let mut state = self.state();
        let (status, after, times) = state.faults.status.filter(|(.., times)| *times > 0)?;
        state.faults.status = Some((status, after, times - 1));
        let answer = Answer::error(status, "", "slow down");
        Some(match after {
            Some(after) => {
                answer.with("Retry-After", after).with("RateLimit", format!("\"resolvers\";r=0;t={after}"))
            }
            None => answer,
        })
    }

    /// The refusal of an unknown token, which has no code.
    fn unauthorized(&self, request: &Request) -> Option<Answer> {
        let authorization = request.headers.get("authorization").map(String::as_str);
        let is_refused =
            self.state().faults.checks_tokens && authorization.is_some() && !is_known(authorization);
        is_refused.then(|| {
            let answer = Answer::json(&json!({ "error": "Invalid username or password." }));
            Answer { status: 401, ..answer }
        })
    }

    /// A repository that this request may see.
    fn repo(&self, request: &Request, name: &str) -> Result<Repo, Answer> {
        let authorization = request.headers.get("authorization").map(String::as_str);
        let repo = self.state().repos.get(name).cloned();
        match repo.filter(|repo| !repo.is_private || is_known(authorization)) {
            Some(repo) => Ok(repo),
            None => {
                let status = if authorization.is_none() { 401 } else { 404 };
                Err(Answer::error(status, "RepoNotFound", "Repository not found"))
            }
        }
    }

    fn api(&self, request: &Request, name: &str, rest: &[&str], query: &str) -> Answer {
        let repo = match self.repo(request, name) {
            Ok(repo) => repo,
            Err(answer) => return answer,
        };
        if let Some(to) = &repo.moved_to {
            return Answer::new(307).with("Location", request.path.replacen(name, to, 1));
        }
        let sha = commit(&repo);
        match rest {
            ["revision" | "tree", revision, ..] if *revision != "main" && *revision != sha => {
                Answer::error(404, "RevisionNotFound", &format!("Invalid rev id: {revision}"))
            }
            ["tree", ..] => self.tree(&repo, &request.path, query),
            ["revision", ..] => Answer::json(&json!({ "id": name, "sha": sha, "gated": repo.is_gated })),
            _ => Answer::error(404, "", "not found"),
        }
    }

    fn tree(&self, repo: &Repo, path: &str, query: &str) -> Answer {
        let faults = self.state().faults.clone();
        let mut items: Vec<serde_json::Value> = Vec::new();
        for (path, bytes) in &repo.files {
            let size = faults.claimed.unwrap_or(bytes.len() as u64);
            let mut item = json!({ "type": "file", "oid": git_oid(bytes), "size": size, "path": path });
            if is_large(path) {
                item["lfs"] = json!({ "oid": sha256(bytes), "size": size, "pointerSize": 134 });
                item["xetHash"] = sha256(&[b"x", &bytes[..]].concat()).into();
            }
            items.push(item);
        }
        if let Some(path) = &faults.wicked {
            items.push(json!({ "type": "file", "oid": git_oid(b""), "size": 0, "path": path }));
        }
        let start =
            query.split('&').find_map(|part| part.strip_prefix("cursor=")).map_or(0, |n| n.parse().unwrap());
        let n = faults.page.unwrap_or(items.len().max(1));
        let page: Vec<_> = items.iter().skip(start).take(n).cloned().collect();
        let answer = Answer::json(&page.into());
        match start + n < items.len() {
            true => {
                let plain = path.split('?').next().unwrap();
                let next = format!("{}{plain}?recursive=true&cursor={}", self.endpoint(), start + n);
                answer.with("Link", format!("<{next}>; rel=\"next\""))
            }
            false => answer,
        }
    }

    fn resolve(&self, request: &Request, name: &str, revision: &str, path: &str) -> Answer {
        let repo = match self.repo(request, name) {
            Ok(repo) => repo,
            Err(answer) => return answer,
        };
        if self.state().faults.in_circles {
            return Answer::new(302).with("Location", &request.path);
        }
        if let Some(to) = &repo.moved_to {
            return Answer::new(307).with("Location", request.path.replacen(name, to, 1));
        }
        let sha = commit(&repo);
        let authorization = request.headers.get("authorization").map(String::as_str);
        if revision != "main" && revision != sha {
            return Answer::error(404, "RevisionNotFound", "Invalid rev id");
        }
        if repo.is_gated && !is_known(authorization) {
            let status = if authorization.is_none() { 401 } else { 403 };
            return Answer::error(status, "GatedRepo", "Access to the model is restricted.");
        }
        let Some(bytes) = repo.files.get(path) else {
            return Answer::error(404, "EntryNotFound", "Entry not found");
        };
        let answer = Answer::new(200).with("X-Repo-Commit", sha).with("Accept-Ranges", "bytes");
        if is_large(path) {
            let quoted = chaski_hub::quote_path(path);
            let location = format!("http://localhost:{}/cdn/{name}/{quoted}?Signature=x", self.port);
            let mut answer = answer
                .with("X-Linked-Size", bytes.len())
                .with("X-Linked-ETag", format!("\"{}\"", sha256(bytes)))
                .with("Location", &location)
                .with("Content-Type", "text/plain; charset=utf-8");
            answer.status = 302;
            answer.body = format!("Found. Redirecting to {location}").into_bytes();
            return answer;
        }
        let mut answer =
            answer.with("ETag", format!("\"{}\"", git_oid(bytes))).with("Content-Type", "text/plain");
        answer.body = bytes.clone();
        answer
    }

    /// The storage, which knows paths below repositories: must be reached without the token.
    fn storage(&self, request: &Request, parts: &[&str]) -> Answer {
        if request.headers.contains_key("authorization") {
            return Answer::new(400).with("Content-Type", "text/plain");
        }
        let mut state = self.state();
        let repo = state.repos.get(&parts[..2].join("/"));
        let Some(mut bytes) = repo.and_then(|repo| repo.files.get(&parts[2..].join("/"))).cloned() else {
            return Answer::new(404);
        };
        if state.faults.expired > 0 {
            state.faults.expired -= 1;
            return Answer::new(403).with("Content-Type", "application/xml");
        }
        if state.faults.html {
            let mut answer = Answer::new(200).with("Content-Type", "text/html; charset=utf-8");
            answer.body = b"<!doctype html><title>Please log in</title>".to_vec();
            return answer;
        }
        let etag = format!("\"{}\"", &sha256(&bytes)[..if state.faults.new_etag { 30 } else { 32 }]);
        if state.faults.corrupt > 0 {
            state.faults.corrupt -= 1;
            *bytes.last_mut().unwrap() ^= 1;
        }
        let answer = Answer::new(200).with("Content-Type", "binary/octet-stream");
        let answer = if state.faults.no_etag { answer } else { answer.with("ETag", &etag) };
        if request.headers.get("if-none-match") == Some(&etag) {
            return Answer { status: 304, ..answer };
        }
        let range = request.headers.get("range").filter(|_| !state.faults.no_ranges);
        let is_same = state.faults.ignores_if_range
            || request.headers.get("if-range").is_none_or(|validator| *validator == etag);
        let Some((start, end)) = range.filter(|_| is_same).map(|range| parse_range(range, bytes.len()))
        else {
            return Answer { body: bytes, ..answer };
        };
        if start >= bytes.len() {
            return Answer {
                status: 416,
                ..answer.with("Content-Range", format!("bytes */{}", bytes.len()))
            };
        }
        let content_range = state.faults.content_range.clone();
        let content_range =
            content_range.unwrap_or_else(|| format!("bytes {start}-{}/{}", end - 1, bytes.len()));
        Answer {
            status: 206,
            body: bytes[start..end].to_vec(),
            ..answer.with("Content-Range", content_range)
        }
    }
}

/// Start and end of `bytes=1-2`.
fn parse_range(range: &str, len: usize) -> (usize, usize) {
    let (start, last) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
    (start.parse().unwrap(), last.parse::<usize>().map_or(len, |last| (last + 1).min(len)))
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let (method, path) = line.split_once(' ')?;
    let (is_head, path) = (method == "HEAD", path.split(' ').next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
        match line.trim().split_once(':') {
            Some((name, value)) => headers.insert(name.to_ascii_lowercase(), value.trim().to_owned()),
            None => return Some(Request { is_head, path, headers }),
        };
    }
}

fn unquoted(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('%') {
        bytes.extend(before.bytes());
        bytes.push(u8::from_str_radix(&behind[..2], 16).unwrap());
        rest = &behind[2..];
    }
    bytes.extend(rest.bytes());
    String::from_utf8(bytes).unwrap()
}

fn is_known(authorization: Option<&str>) -> bool {
    authorization == Some(&format!("Bearer {TOKEN}"))
}

fn is_large(path: &str) -> bool {
    path.ends_with(".gguf") || path.ends_with(".safetensors") || path == "tokenizer.json"
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn git_oid(bytes: &[u8]) -> String {
    let mut hasher = Sha1::new_with_prefix(format!("blob {}\0", bytes.len()));
    hasher.update(bytes);
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn commit(repo: &Repo) -> String {
    let mut hasher = Sha1::new();
    for (path, bytes) in &repo.files {
        hasher.update(format!("{path}\0{}\0", sha256(bytes)));
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl FakeHub {
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Bytes of bodies that the storage sent so far.
    pub(crate) fn n_sent(&self) -> usize {
        self.state().n_sent
    }

    /// Most bodies that the storage sent at once.
    pub(crate) fn most_running(&self) -> usize {
        self.state().most_running
    }

    /// True if a silence of the storage lasted to its end: the client waited for it.
    pub(crate) fn was_waited_for(&self) -> bool {
        self.state().n_silence > 0
    }
}
