//! A client that reads the stream of an answer.

use std::io::{BufRead as _, BufReader};
use std::time::{Duration, Instant};

use serde_json::json;

use super::mix::{Job, has_schema, schema};
use super::{count, parse, unexpected};

/// A request as it is sent.
#[derive(Copy, Clone)]
pub(crate) struct Turn<'a> {
    pub(crate) job: &'a Job,
    /// Tokens before those of the job: the conversation so far.
    pub(crate) history: &'a [u32],
    /// Another turn follows, which needs the tokens of the answer.
    pub(crate) has_next: bool,
}

impl<'a> Turn<'a> {
    /// A request of its own.
    pub(crate) fn new(job: &'a Job) -> Turn<'a> {
        Turn { job, history: &[], has_next: false }
    }
}

/// The end of a request.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) due: Instant,
    /// From the time when it was due to each piece of text, and to the end.
    pub(crate) pieces: Vec<Duration>,
    pub(crate) end: Duration,
    pub(crate) text: String,
    /// Tokens of the answer, where another turn needs them.
    pub(crate) tokens: Vec<u32>,
    /// Tokens of the prompt before those of the job.
    pub(crate) history: Vec<u32>,
    /// Tokens by the server's count.
    pub(crate) n_token: Option<usize>,
    /// Tokens of the prompt that it had cached, likewise.
    pub(crate) n_cached: Option<usize>,
    /// Refusals before it was taken, or the one that ended it.
    pub(crate) n_refused: usize,
    pub(crate) has_left: bool,
    pub(crate) is_done: bool,
    pub(crate) error: Option<String>,
}

impl Outcome {
    pub(crate) fn new(due: Instant) -> Outcome {
        Outcome {
            due,
            pieces: Vec::new(),
            end: Duration::ZERO,
            text: String::new(),
            tokens: Vec::new(),
            history: Vec::new(),
            n_token: None,
            n_cached: None,
            n_refused: 0,
            has_left: false,
            is_done: false,
            error: None,
        }
    }

    /// True if the server had no room, and nobody asked again.
    pub(crate) fn is_refused(&self) -> bool {
        self.n_refused > 0 && self.error.is_none() && !self.is_done && !self.has_left
    }

    /// True if the stream ended by itself, with all tokens; one with a schema may end before.
    pub(crate) fn is_whole(&self, job: &Job) -> bool {
        let has_ended = || job.is_structured && has_schema(&self.text);
        self.error.is_none() && self.is_done && (self.n_token.is_none_or(|n| n == job.n_out) || has_ended())
    }
}

pub(crate) struct Client {
    agent: ureq::Agent,
    base: String,
    model: String,
    key: Option<String>,
}

impl Client {
    pub(crate) fn new(url: &str, model: &str, key: Option<&str>) -> Client {
        let config =
            ureq::Agent::config_builder().http_status_as_error(false).max_idle_connections_per_host(256);
        Client {
            agent: config.build().into(),
            base: url.trim_end_matches('/').into(),
            model: model.into(),
            key: key.map(String::from),
        }
    }

    /// Asks, and reads the answer to its end. After a refusal for want of room it asks again when the server says, or
    /// leaves it at that.
    pub(crate) fn ask(&self, turn: Turn<'_>, due: Instant, asks_again: bool) -> Outcome {
        let mut outcome = Outcome { history: turn.history.to_vec(), ..Outcome::new(due) };
        loop {
            match self.read(turn, due, &mut outcome) {
                Ok(None) => break,
                Ok(Some(pause)) => {
                    outcome.n_refused += 1;
                    if !asks_again {
                        break;
                    }
                    std::thread::sleep(pause);
                }
                Err(error) => {
                    outcome.error = Some(format!("{error:#}"));
                    break;
                }
            }
        }
        outcome.end = due.elapsed();
        // Servers that do not tell the tokens of an answer are asked for those of its text.
        if turn.has_next && outcome.tokens.is_empty() && outcome.is_done {
            match self.tokenize(&outcome.text) {
                Ok(tokens) => outcome.tokens = tokens,
                Err(error) => outcome.error = Some(format!("the tokens of the answer: {error:#}")),
            }
        }
        outcome
    }

    /// The tokens of a text.
    fn tokenize(&self, text: &str) -> anyhow::Result<Vec<u32>> {
        let request = self.with_key(self.agent.post(format!("{}/tokenize", self.base)));
        let request = request.header("content-type", "application/json");
        let mut response = request.send(json!({"content": text}).to_string())?;
        let (status, text) = (response.status(), response.body_mut().read_to_string()?);
        let found = || serde_json::from_value(parse(&text).ok()?["tokens"].take()).ok();
        found().filter(|_| status == 200).ok_or_else(|| unexpected(&format!("{status} {text}")))
    }

    fn with_key<B>(&self, request: ureq::RequestBuilder<B>) -> ureq::RequestBuilder<B> {
        match &self.key {
            Some(key) => request.header("authorization", format!("Bearer {key}")),
            None => request,
        }
    }

    /// The server's metrics, in Prometheus' text.
    pub(crate) fn metrics(&self) -> anyhow::Result<String> {
        let request = self.with_key(self.agent.get(format!("{}/metrics", self.base)));
        let mut response = request.call()?;
        let (status, text) = (response.status(), response.body_mut().read_to_string()?);
        if status == 200 { Ok(text) } else { Err(unexpected(&format!("{status} {text}"))) }
    }

    /// Reads an answer; returns the time after which to ask again, if the server has no room.
    fn read(&self, turn: Turn<'_>, due: Instant, outcome: &mut Outcome) -> anyhow::Result<Option<Duration>> {
        let Turn { job, history, has_next } = turn;
        let prompt: Vec<u32> = [history, &job.prompt].concat();
        let mut body = json!({
            "prompt": prompt,
            "max_tokens": job.n_out,
            "temperature": 0,
            "ignore_eos": true,
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        if job.is_structured {
            let format = json!({"type": "json_schema", "json_schema": {"name": "thing", "schema": schema()}});
            (body["response_format"], body["ignore_eos"]) = (format, false.into());
        }
        if has_next {
            body["return_token_ids"] = true.into();
        }
        if !self.model.is_empty() {
            body["model"] = self.model.as_str().into();
        }
        let url = format!("{}/v1/completions", self.base);
        let request = self.with_key(self.agent.post(url)).header("content-type", "application/json");
        let mut response = request.send(body.to_string())?;
        if response.status() == 429 {
            let seconds =
                response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
            return Ok(Some(Duration::from_secs(seconds.unwrap_or(1))));
        }
        if response.status() != 200 {
            let status = response.status();
            return Err(unexpected(&format!("{status} {}", response.body_mut().read_to_string()?)));
        }
        for line in BufReader::new(response.body_mut().as_reader()).lines() {
            let line = line?;
            let Some(data) = line.strip_prefix("data:").map(str::trim) else { continue };
            if data == "[DONE]" {
                outcome.is_done = true;
                continue;
            }
            let chunk = parse(data)?;
            if !chunk["error"].is_null() {
                return Err(unexpected(data));
            }
            let usage = &chunk["usage"];
            outcome.n_token = count(&usage["completion_tokens"]).or(outcome.n_token);
            outcome.n_cached = count(&usage["prompt_tokens_details"]["cached_tokens"]).or(outcome.n_cached);
            let ids = chunk["choices"][0]["token_ids"].as_array().into_iter().flatten();
            outcome.tokens.extend(ids.filter_map(|id| u32::try_from(id.as_u64()?).ok()));
            if let Some(text) = chunk["choices"][0]["text"].as_str().filter(|text| !text.is_empty()) {
                outcome.pieces.push(due.elapsed());
                outcome.text.push_str(text);
            }
            if job.leaves_after.is_some_and(|n| outcome.pieces.len() >= n) {
                outcome.has_left = true;
                return Ok(None);
            }
        }
        if outcome.is_done { Ok(None) } else { Err(unexpected("the stream ends without [DONE]")) }
    }
}
