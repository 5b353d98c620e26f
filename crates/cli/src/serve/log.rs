//! The log of a server: a line for each answer and each other request for work, and with `-v` for all requests.

use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};

use chaski_server::{Access, Answered, Entry, Log, Prompted};
use serde_json::json;

use crate::ui::{Ui, write_line};

/// Form of the log.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines to read
    #[default]
    Text,
    /// A JSON object a line
    Json,
    /// No log
    None,
}

/// Form and level of the log, which can change.
#[derive(Clone)]
pub(crate) struct LogSettings(Arc<RwLock<(LogFormat, Ui)>>);

impl LogSettings {
    pub(crate) fn new(form: LogFormat, ui: &Ui) -> LogSettings {
        LogSettings(Arc::new(RwLock::new((form, ui.clone()))))
    }

    /// Changes form and level from the next line on.
    pub(crate) fn set(&self, form: LogFormat, ui: &Ui) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = (form, ui.clone());
    }

    /// The messages that belong to the level.
    pub(crate) fn ui(&self) -> Ui {
        self.0.read().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    /// The log.
    pub(crate) fn log(&self) -> Log {
        let settings = self.clone();
        Arc::new(move |entry| {
            let line = {
                let settings = settings.0.read().unwrap_or_else(PoisonError::into_inner);
                match &*settings {
                    (LogFormat::Text, ui) => text(entry, ui),
                    (LogFormat::Json, _) => Some(object(entry).to_string()),
                    (LogFormat::None, _) => None,
                }
            };
            line.into_iter().for_each(|line| write_line(&line));
        })
    }
}

fn now() -> String {
    chrono::Local::now().format("%H:%M:%S").to_string()
}

/// A text of others without control characters.
fn plain(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

/// The key of a request, if keys are required.
fn key(name: &Option<String>) -> String {
    name.as_ref().map(|name| format!(" [{}]", plain(name))).unwrap_or_default()
}

/// The address of a client, unless it is a program of this machine.
fn client(address: &Option<IpAddr>) -> String {
    let far = address.filter(|address| !address.is_loopback());
    far.map(|address| format!(" from {address}")).unwrap_or_default()
}

/// The trace of a request, if it is part of one.
fn trace(id: &Option<String>) -> String {
    id.as_ref().map(|id| format!(", trace {id}")).unwrap_or_default()
}

/// The line of an entry, if one is wanted.
fn text(entry: &Entry, ui: &Ui) -> Option<String> {
    match entry {
        Entry::Answered(a) if !ui.quiet() => Some(format!(
            "{} {}{}{} {}: {} tokens in ({} cached), {} out, first after {:.0} ms ({:.0} in the queue), {:.1}/s, {}, {}{}",
            now(),
            plain(&a.id),
            key(&a.key),
            client(&a.client),
            plain(&a.model),
            a.n_prompt,
            a.n_cached,
            a.n_token,
            a.ttft.as_secs_f64() * 1e3,
            a.queue.as_secs_f64() * 1e3,
            a.rate,
            a.finish,
            a.status,
            trace(&a.trace_id),
        )),
        Entry::Access(a) if ui.verbose() || a.is_only && !ui.quiet() => {
            let key = key(&a.key);
            let time = a.time.as_secs_f64() * 1e3;
            let (id, path) = (plain(&a.id), plain(&a.path));
            let trace = trace(&a.trace_id);
            let client = client(&a.client);
            let (now, method, status) = (now(), &a.method, a.status);
            Some(format!("{now} {id} {method} {path} -> {status} in {time:.1} ms{key}{client}{trace}"))
        }
        Entry::Prompted(a) => {
            let (id, key, model) = (plain(&a.id), key(&a.key), plain(&a.model));
            Some(format!("{} {id}{key} {model} gets: {}", now(), plain(&a.text)))
        }
        Entry::Note(text) if !ui.quiet() => Some(format!("note: {}", plain(text))),
        _ => None,
    }
}

fn object(entry: &Entry) -> serde_json::Value {
    let time = chrono::Utc::now().to_rfc3339();
    match entry {
        Entry::Access(Access { id, trace_id, key, client, method, path, status, time: took, is_only: _ }) => {
            json!({
                "time": time, "event": "request", "id": id, "trace_id": trace_id, "key": key, "client": client, "method": method, "path": path,
                "status": status, "seconds": took.as_secs_f64(),
            })
        }
        Entry::Answered(Answered {
            id,
            trace_id,
            key,
            client,
            status,
            model,
            n_prompt,
            n_cached,
            n_token,
            queue,
            ttft,
            rate,
            finish,
        }) => {
            json!({
                "time": time, "event": "answer", "id": id, "trace_id": trace_id, "key": key, "client": client, "status": status, "model": model, "prompt_tokens": n_prompt,
                "cached_tokens": n_cached, "completion_tokens": n_token, "queue_seconds": queue.as_secs_f64(), "ttft_seconds": ttft.as_secs_f64(),
                "tokens_per_second": rate, "finish": finish,
            })
        }
        Entry::Prompted(Prompted { id, key, model, text }) => {
            json!({"time": time, "event": "prompt", "id": id, "key": key, "model": model, "text": text})
        }
        Entry::Note(text) => json!({"time": time, "event": "note", "message": text}),
        _ => json!({"time": time, "event": "other"}),
    }
}
