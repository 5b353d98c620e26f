//! A response, whole or as a stream of events.

use chaski::text::AnswerEvent;
use chaski::{ChatEvent, Finish, Stats};
use serde_json::{Value, json};

use super::items::{COMPLETED, IN_PROGRESS, INCOMPLETE, Item, Kind, of_answer};
use crate::answers::{Gathered, Outcome};
use crate::dialect::timings::{PromptProgress, timings};
use crate::dialect::{Frame, Told, Writer};
use crate::error::ApiError;

/// Numbers of llama-server in the events of a stream.
#[derive(Copy, Clone, Debug)]
pub(super) struct Telemetry {
    /// Deltas and the last event have times and rates.
    pub(super) timings: bool,
    /// Events `response.in_progress` tell the progress of the prompt.
    pub(super) progress: bool,
}

/// Writes answers.
pub(super) struct Responses {
    /// The part of a response that repeats the request.
    echo: Value,
    telemetry: Telemetry,
    progress: PromptProgress,
    gathered: Gathered,
    /// Events so far.
    n_event: usize,
    /// Items that have ended.
    done: Vec<Value>,
    open: Option<Item>,
}

/// Why a response has its status.
fn status(finish: Finish) -> (&'static str, Value) {
    match finish {
        Finish::Stop | Finish::StopText => (COMPLETED, Value::Null),
        Finish::Length | Finish::Context => (INCOMPLETE, json!({"reason": "max_output_tokens"})),
    }
}

fn usage(told: &Told, stats: &Stats, n_reasoning: usize) -> Value {
    let n_prompt = told.n_prompt();
    json!({
        "input_tokens": n_prompt,
        "input_tokens_details": {"cached_tokens": stats.n_cached},
        "output_tokens": stats.n_token,
        "output_tokens_details": {"reasoning_tokens": n_reasoning},
        "total_tokens": n_prompt + stats.n_token,
    })
}

impl Responses {
    pub(super) fn new(echo: Value, telemetry: Telemetry) -> Responses {
        Responses {
            echo,
            telemetry,
            progress: PromptProgress::default(),
            gathered: Gathered::default(),
            n_event: 0,
            done: Vec::new(),
            open: None,
        }
    }

    fn response(&self, told: &Told, status: &str, output: Vec<Value>) -> Value {
        let mut response = json!({
            "id": told.id,
            "object": "response",
            "created_at": told.created,
            "status": status,
            "model": told.model,
            "output": output,
            "error": null,
            "incomplete_details": null,
        });
        for (name, value) in self.echo.as_object().into_iter().flatten() {
            response[name] = value.clone();
        }
        response
    }

    fn frame(&mut self, name: &'static str, mut data: Value) -> Frame {
        data["type"] = name.into();
        data["sequence_number"] = self.n_event.into();
        self.n_event += 1;
        Frame::Event(name, data)
    }

    /// An event of the open item.
    fn of_item(&mut self, name: &'static str, mut data: Value) -> Frame {
        if let Some(item) = &self.open {
            data["item_id"] = item.id.as_str().into();
            if item.kind != Kind::Call {
                data["content_index"] = 0.into();
            }
        }
        data["output_index"] = self.done.len().into();
        self.frame(name, data)
    }

    fn part(&mut self, part: &AnswerEvent) -> Vec<Frame> {
        match part {
            AnswerEvent::Reasoning(text) if !text.is_empty() => self.text(Kind::Reasoning, text),
            AnswerEvent::Content(text) if !text.is_empty() => self.text(Kind::Message, text),
            AnswerEvent::CallBegin { name } => self.open(Item::new(Kind::Call, name)),
            AnswerEvent::Arguments(text) if !text.is_empty() => vec![self.delta(text)],
            AnswerEvent::CallEnd { is_valid, .. } => {
                self.close(if *is_valid { COMPLETED } else { INCOMPLETE })
            }
            _ => Vec::new(),
        }
    }

    /// Text of this kind, in the open item if it has the same kind.
    fn text(&mut self, kind: Kind, text: &str) -> Vec<Frame> {
        let mut frames = Vec::new();
        if self.open.as_ref().is_none_or(|item| item.kind != kind) {
            frames = self.open(Item::new(kind, ""));
        }
        frames.push(self.delta(text));
        frames
    }

    fn delta(&mut self, text: &str) -> Frame {
        let kind = self.open.as_mut().map(|item| {
            item.text.push_str(text);
            item.kind
        });
        let (name, mut data) = match kind {
            Some(Kind::Message) => ("response.output_text.delta", json!({"delta": text, "logprobs": []})),
            Some(Kind::Call) => ("response.function_call_arguments.delta", json!({"delta": text})),
            _ => ("response.reasoning_text.delta", json!({"delta": text})),
        };
        if self.telemetry.timings {
            data["timings"] = timings(&self.gathered.stats);
        }
        self.of_item(name, data)
    }

    /// The data of `response.in_progress`.
    fn in_progress(&self, told: &Told) -> Value {
        json!({"response": self.response(told, IN_PROGRESS, Vec::new())})
    }

    /// Adds the progress of the prompt to the data of an event.
    fn add_progress(&self, data: &mut Value, (progress, timings): (Value, Value)) {
        data["prompt_progress"] = progress;
        if self.telemetry.timings {
            data["timings"] = timings;
        }
    }

    fn open(&mut self, item: Item) -> Vec<Frame> {
        let mut frames = self.close(COMPLETED);
        let (index, value) = (self.done.len(), item.json(IN_PROGRESS));
        frames.push(self.frame("response.output_item.added", json!({"output_index": index, "item": value})));
        let part = (item.kind == Kind::Message).then(|| item.part());
        self.open = Some(item);
        if let Some(part) = part {
            frames.push(self.of_item("response.content_part.added", json!({"part": part})));
        }
        frames
    }

    /// Ends the open item.
    fn close(&mut self, status: &str) -> Vec<Frame> {
        let Some(item) = self.open.clone() else { return Vec::new() };
        let text = item.text.as_str();
        let mut frames = Vec::new();
        match item.kind {
            Kind::Reasoning => {
                frames.push(self.of_item("response.reasoning_text.done", json!({"text": text})));
            }
            Kind::Message => {
                let data = json!({"text": text, "logprobs": []});
                frames.push(self.of_item("response.output_text.done", data));
                frames.push(self.of_item("response.content_part.done", json!({"part": item.part()})));
            }
            Kind::Call => {
                let data = json!({"name": item.name, "arguments": text});
                frames.push(self.of_item("response.function_call_arguments.done", data));
            }
        }
        let (index, value) = (self.done.len(), item.json(status));
        frames.push(self.frame("response.output_item.done", json!({"output_index": index, "item": value})));
        self.done.push(value);
        self.open = None;
        frames
    }

    fn finished(&mut self, told: &Told, finish: Finish, stats: &Stats) -> Vec<Frame> {
        let (status, details) = status(finish);
        let mut frames = self.close(status);
        let mut response = self.response(told, status, self.done.clone());
        response["incomplete_details"] = details;
        response["usage"] = usage(told, stats, self.gathered.n_reasoning);
        let name = if status == COMPLETED { "response.completed" } else { "response.incomplete" };
        let mut data = json!({"response": response});
        if self.telemetry.timings {
            data["timings"] = timings(stats);
        }
        frames.push(self.frame(name, data));
        frames
    }
}

impl Writer for Responses {
    fn whole(&mut self, told: &Told, outcomes: &[Outcome]) -> Value {
        // A response has one answer.
        let outcome = &outcomes[0];
        let (status, details) = status(outcome.finish);
        let output = of_answer(&outcome.parts, status == INCOMPLETE);
        let mut response = self.response(told, status, output);
        response["incomplete_details"] = details;
        response["usage"] = usage(told, &outcome.stats, outcome.n_reasoning);
        response
    }

    fn event(&mut self, told: &Told, _: usize, event: &ChatEvent) -> Vec<Frame> {
        self.gathered.take(event);
        let progress = self.progress.next(event, &self.gathered.stats).filter(|_| self.telemetry.progress);
        if let ChatEvent::Started { .. } = event {
            let mut data = self.in_progress(told);
            let created = self.frame("response.created", data.clone());
            if let Some(progress) = progress {
                self.add_progress(&mut data, progress);
            }
            return vec![created, self.frame("response.in_progress", data)];
        }
        let mut frames = Vec::new();
        if let Some(progress) = progress {
            let mut data = self.in_progress(told);
            self.add_progress(&mut data, progress);
            frames.push(self.frame("response.in_progress", data));
        }
        frames.extend(match event {
            ChatEvent::Part(part) => self.part(part),
            ChatEvent::Finished { finish, stats, .. } => self.finished(told, *finish, stats),
            _ => Vec::new(),
        });
        frames
    }

    fn end(&mut self, _: &Told) -> Vec<Frame> {
        Vec::new()
    }

    fn failed(&mut self, told: &Told, error: &ApiError) -> Option<Vec<Frame>> {
        let mut frames = self.close(INCOMPLETE);
        let mut response = self.response(told, "failed", self.done.clone());
        response["error"] = json!({"code": "server_error", "message": error.message});
        frames.push(self.frame("response.failed", json!({"response": response})));
        Some(frames)
    }
}
