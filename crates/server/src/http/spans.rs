//! Spans of requests, in the words of OpenTelemetry's conventions for HTTP and for generative models.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use axum::http::Method;
use opentelemetry::KeyValue;

use super::course::Course;
use crate::app::App;
use crate::ask::{Ask, Prompt};
use crate::otlp::{Part, texts};
use crate::trace::Trace;

/// The part of a request's span that others than the outermost layer know.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Its record tells the span.
    is_told: AtomicBool,
    /// The texts that a model has read: operation, model, tokens.
    read: OnceLock<(&'static str, String, usize)>,
}

impl Known {
    /// From now on a record tells the span.
    pub(super) fn tell(&self) {
        self.is_told.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_told(&self) -> bool {
        self.is_told.load(Ordering::Relaxed)
    }

    pub(super) fn read(&self, operation: &'static str, model: &str, n_token: usize) {
        self.read.get_or_init(|| (operation, model.to_owned(), n_token));
    }
}

/// The wishes of a request for answers.
#[derive(Clone, Default)]
pub(super) struct Asked {
    operation: &'static str,
    max_tokens: Option<usize>,
    path: String,
    model: Option<String>,
    /// Name of the answer.
    id: String,
}

impl Asked {
    /// That of a body.
    pub(super) fn of(ask: &Ask) -> Asked {
        let operation = match ask.prompt {
            Prompt::Chat { .. } => "chat",
            Prompt::Texts(_) => "text_completion",
        };
        Asked { operation, max_tokens: ask.options.max_tokens, ..Asked::default() }
    }

    /// With its path, the name of the model in it, and the name of the answer.
    pub(super) fn named(self, path: String, model: Option<String>, id: String) -> Asked {
        Asked { path, model, id, ..self }
    }
}

fn count(name: &'static str, n: usize) -> KeyValue {
    KeyValue::new(name, i64::try_from(n).unwrap_or(i64::MAX))
}

/// Sends the span of a request that asked for no answer, or got none.
pub(super) fn request(
    app: &App,
    trace: &Trace,
    known: &Known,
    method: &Method,
    route: &str,
    status: u16,
    start: Instant,
) {
    let Some(otlp) = &app.otlp else { return };
    let mut part = Part::new(format!("{method} {route}"), start, Instant::now());
    part.attributes = vec![
        KeyValue::new("http.request.method", method.to_string()),
        KeyValue::new("http.route", route.to_owned()),
        count("http.response.status_code", status.into()),
    ];
    if let Some((operation, model, n_token)) = known.read.get() {
        part.name = format!("{operation} {model}").into();
        part.attributes.extend([
            KeyValue::new("gen_ai.operation.name", *operation),
            KeyValue::new("gen_ai.provider.name", "chaski"),
            KeyValue::new("gen_ai.response.model", model.clone()),
            count("gen_ai.usage.input_tokens", *n_token),
        ]);
    }
    if status >= 400 {
        part.attributes.push(KeyValue::new("error.type", status.to_string()));
    }
    // A client that asks wrongly is no failure of the server.
    part.error = (status >= 500).then(|| format!("status {status}"));
    otlp.send(trace, part, Vec::new());
}

/// Sends the spans of a request whose answers have ended: queue, prefill and decode of each.
pub(super) fn answers(
    app: &App,
    trace: &Trace,
    asked: &Asked,
    model: &str,
    start: Instant,
    answers: &[Course],
) {
    let Some(otlp) = &app.otlp else { return };
    let mut request = Part::new(format!("{} {model}", asked.operation), start, Instant::now());
    request.attributes = attributes(asked, model, answers);
    let failed = answers.iter().find(|course| course.ended.is_some_and(|(_, finish)| finish == "error"));
    if failed.is_some() {
        request.attributes.push(KeyValue::new("error.type", "error"));
        request.error = Some("an answer failed".into());
    }
    let parts = answers.iter().enumerate().flat_map(|(index, course)| parts(index, course, start));
    otlp.send(trace, request, parts.collect());
}

fn attributes(asked: &Asked, model: &str, answers: &[Course]) -> Vec<KeyValue> {
    let sum = |n: fn(&Course) -> usize| answers.iter().map(n).sum();
    let reasons = answers.iter().filter_map(|course| course.ended.map(|(_, finish)| finish));
    let mut all = vec![
        KeyValue::new("gen_ai.operation.name", asked.operation),
        KeyValue::new("gen_ai.provider.name", "chaski"),
        KeyValue::new("gen_ai.request.model", asked.model.clone().unwrap_or_else(|| model.to_owned())),
        KeyValue::new("gen_ai.response.model", model.to_owned()),
        KeyValue::new("gen_ai.response.id", asked.id.clone()),
        KeyValue::new("gen_ai.response.finish_reasons", texts(reasons)),
        count("gen_ai.usage.input_tokens", sum(|course| course.stats.n_prompt + course.stats.n_cached)),
        count("gen_ai.usage.cache_read.input_tokens", sum(|course| course.stats.n_cached)),
        count("gen_ai.usage.output_tokens", sum(|course| course.stats.n_token)),
        KeyValue::new("http.request.method", "POST"),
        KeyValue::new("http.route", asked.path.clone()),
    ];
    all.extend(asked.max_tokens.map(|n| count("gen_ai.request.max_tokens", n)));
    all
}

/// The parts of an answer, as far as it came.
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
