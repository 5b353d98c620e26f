//! Spans of requests, in the words of OpenTelemetry's conventions for HTTP and for generative models.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::http::Method;
use opentelemetry::KeyValue;

use super::exporter::{Exporter, Part, texts};
use crate::ask::{Ask, Prompt};
use crate::config::ServerConfig;
use crate::course::Course;
use crate::openapi as api;
use crate::trace::{Trace, random};

/// Most characters of a name that a client chooses.
const MOST_NAME: usize = 256;

/// The spans of a server, if somebody keeps them.
pub(crate) struct Spans(Option<Arc<Exporter>>);

impl Spans {
    /// Inside of a runtime, which sends them.
    pub(crate) fn new(config: &ServerConfig) -> Spans {
        let exporter = |collector| Arc::new(Exporter::new(collector, config.log.clone()));
        Spans(config.otlp.as_ref().map(exporter))
    }

    /// The trace of a request that has this one, or else one that begins here if somebody keeps spans.
    pub(crate) fn trace(&self, found: Option<Trace>) -> Option<Trace> {
        let begin = || Some(Trace { id: random()?, parent: None, span: random()?, is_sampled: true });
        found.or_else(|| self.0.as_ref().and_then(|_| begin()))
    }

    /// The span of an admitted request. There is none outside of a sampled trace, of a probe, and of paths that are no
    /// operations.
    pub(crate) fn begin(&self, trace: Option<Trace>, method: &Method, path: &str, start: Instant) -> Span {
        let begin = || {
            let exporter = self.0.clone()?;
            let trace = trace.filter(|trace| trace.is_sampled)?;
            let route = api::route(path)?;
            if route == "/" || api::at(path).any(api::Operation::is_probe) {
                return None;
            }
            let (method, told) = (method.clone(), Told::default());
            Some(Arc::new(Request { exporter, trace, method, route, start, told }))
        };
        Span(begin())
    }

    /// Sends what is left.
    pub(crate) async fn end(&self) {
        if let Some(exporter) = self.0.clone() {
            // A panic there has been printed.
            let _ = tokio::task::spawn_blocking(move || exporter.end()).await;
        }
    }
}

/// The span of a request, if it has one. It is sent when nobody holds it any more: then both the response and the
/// answers have ended, or will not come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span(Option<Arc<Request>>);

impl Span {
    /// Takes note of the status of the response.
    pub(crate) fn responded(&self, status: u16) {
        if let Some(request) = &self.0 {
            request.told.status.get_or_init(|| status);
        }
    }

    /// Takes note of the texts that a model has read.
    pub(crate) fn read(&self, operation: &'static str, model: &str, n_token: usize) {
        if let Some(request) = &self.0 {
            request.told.read.get_or_init(|| Reading { operation, model: model.to_owned(), n_token });
        }
    }

    /// Takes note of the name of the model that a request wants, if it says one.
    pub(crate) fn named(&self, model: Option<&str>) {
        if let (Some(request), Some(name)) = (&self.0, model) {
            request.told.wanted.get_or_init(|| name.chars().take(MOST_NAME).collect());
        }
    }

    /// Takes note of the wish for answers with this name.
    pub(crate) fn asked(&self, asked: Asked, id: &str) {
        if let Some(request) = &self.0 {
            request.told.asked.get_or_init(|| (asked, id.to_owned()));
        }
    }

    /// Takes note of the answers, after they have ended or were abandoned. They were asked for at `start`.
    pub(crate) fn answered(&self, model: &str, start: Instant, courses: &[Course]) {
        if let Some(request) = &self.0 {
            let courses = courses.to_vec();
            request.told.answered.get_or_init(|| Answered { model: model.to_owned(), start, courses });
        }
    }
}

/// A request that is kept.
#[derive(Debug)]
struct Request {
    exporter: Arc<Exporter>,
    trace: Trace,
    method: Method,
    route: &'static str,
    start: Instant,
    told: Told,
}

/// Everything that becomes known of it.
#[derive(Debug, Default)]
struct Told {
    read: OnceLock<Reading>,
    wanted: OnceLock<String>,
    /// With the name of the answer.
    asked: OnceLock<(Asked, String)>,
    answered: OnceLock<Answered>,
    status: OnceLock<u16>,
}

/// Texts that a model has read.
#[derive(Debug)]
struct Reading {
    operation: &'static str,
    model: String,
    n_token: usize,
}

/// The wishes of a request for answers.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Asked {
    operation: &'static str,
    max_tokens: Option<usize>,
}

/// Answers that have ended.
#[derive(Debug)]
struct Answered {
    model: String,
    start: Instant,
    courses: Vec<Course>,
}

impl Asked {
    pub(crate) fn of(ask: &Ask) -> Asked {
        let operation = match ask.prompt {
            Prompt::Chat { .. } => "chat",
            Prompt::Texts(_) => "text_completion",
        };
        Asked { operation, max_tokens: ask.options.max_tokens }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let told = &self.told;
        let mut part = Part::new(format!("{} {}", self.method, self.route), self.start, Instant::now());
        part.attributes = vec![
            KeyValue::new("http.request.method", self.method.to_string()),
            KeyValue::new("http.route", self.route),
        ];
        part.attributes
            .extend(told.status.get().map(|status| count("http.response.status_code", (*status).into())));
        if let Some(read) = told.read.get() {
            read.tell(&mut part);
        }
        let mut parts = Vec::new();
        if let (Some(asked), Some(answered)) = (told.asked.get(), told.answered.get()) {
            answered.tell(asked, told.wanted.get(), &mut part);
            parts = answered.parts();
        }
        if let Some(status) = told.status.get().filter(|status| **status >= 400) {
            part.attributes.push(KeyValue::new("error.type", status.to_string()));
            // A client that asks wrongly is no failure of the server.
            part.error = (*status >= 500).then(|| format!("status {status}"));
        } else if told.answered.get().is_some_and(Answered::has_failed) {
            part.attributes.push(KeyValue::new("error.type", "error"));
            part.error = Some("an answer failed".into());
        }
        self.exporter.send(&self.trace, part, parts);
    }
}

fn count(name: &'static str, n: usize) -> KeyValue {
    KeyValue::new(name, i64::try_from(n).unwrap_or(i64::MAX))
}

impl Reading {
    fn tell(&self, part: &mut Part) {
        part.name = format!("{} {}", self.operation, self.model).into();
        part.attributes.extend([
            KeyValue::new("gen_ai.operation.name", self.operation),
            KeyValue::new("gen_ai.provider.name", "chaski"),
            KeyValue::new("gen_ai.response.model", self.model.clone()),
            count("gen_ai.usage.input_tokens", self.n_token),
        ]);
    }
}

impl Answered {
    fn tell(&self, (asked, id): &(Asked, String), wanted: Option<&String>, part: &mut Part) {
        let own = &self.model;
        let sum = |n: fn(&Course) -> usize| self.courses.iter().map(n).sum();
        let reasons = self.courses.iter().filter_map(|course| course.ended.map(|(_, finish)| finish));
        part.name = format!("{} {own}", asked.operation).into();
        part.attributes.extend([
            KeyValue::new("gen_ai.operation.name", asked.operation),
            KeyValue::new("gen_ai.provider.name", "chaski"),
            KeyValue::new("gen_ai.request.model", wanted.unwrap_or(own).clone()),
            KeyValue::new("gen_ai.response.model", own.clone()),
            KeyValue::new("gen_ai.response.id", id.clone()),
            KeyValue::new("gen_ai.response.finish_reasons", texts(reasons)),
            count("gen_ai.usage.input_tokens", sum(|course| course.stats.n_prompt + course.stats.n_cached)),
            count("gen_ai.usage.cache_read.input_tokens", sum(|course| course.stats.n_cached)),
            count("gen_ai.usage.output_tokens", sum(|course| course.stats.n_token)),
        ]);
        part.attributes.extend(asked.max_tokens.map(|n| count("gen_ai.request.max_tokens", n)));
    }

    fn has_failed(&self) -> bool {
        self.courses.iter().any(|course| course.ended.is_some_and(|(_, finish)| finish == "error"))
    }

    /// Queue, prefill and decode of each answer, as far as it came.
    fn parts(&self) -> Vec<Part> {
        let of = |(index, course): (usize, &Course)| parts(index, course, self.start);
        self.courses.iter().enumerate().flat_map(of).collect()
    }
}

fn parts(index: usize, course: &Course, start: Instant) -> Vec<Part> {
    let end = course.ended.map_or_else(Instant::now, |(end, _)| end);
    let (first, last) = course.tokens.unzip();
    let started = course.started;
    let mut parts = vec![Part::new("queue", start, started.unwrap_or(end))];
    if let Some(started) = started {
        let mut prefill = Part::new("prefill", started, first.unwrap_or(end));
        prefill.attributes.push(count("chaski.prompt_tokens", course.stats.n_prompt));
        prefill.attributes.push(count("chaski.cached_tokens", course.stats.n_cached));
        parts.push(prefill);
    }
    if let (Some(first), Some(_)) = (first, last) {
        let mut decode = Part::new("decode", first, end);
        decode.attributes.push(count("gen_ai.usage.output_tokens", course.stats.n_token));
        parts.push(decode);
    }
    for part in &mut parts {
        part.attributes.push(count("chaski.answer.index", index));
    }
    parts
}
