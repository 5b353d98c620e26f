//! Answers as lines of JSON, or as one.

use std::time::{Duration, Instant};

use chaski::text::AnswerEvent;
use chaski::{ChatEvent, Finish};
use serde_json::{Value, json};

use super::{call, head};
use crate::answers::{Gathered, Outcome, Token};
use crate::dialect::openai::logprobs;
use crate::dialect::{Frame, Told, Writer};

/// The form of the endpoint's answers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The text is in a message.
    Chat,
    /// The text is in `response`.
    Generate {
        /// The last line has the tokens with which the next request goes on.
        context: bool,
    },
}

/// A call that is being written.
struct Call {
    name: String,
    arguments: String,
}

/// Writes answers. Calls are whole in this dialect.
pub(super) struct Lines {
    form: Form,
    logprobs: bool,
    start: Instant,
    gathered: Gathered,
    /// Tokens that no line has told yet.
    pending: Vec<Token>,
    call: Option<Call>,
    n_call: usize,
}

/// The parts of a line.
#[derive(Default)]
struct Said<'a> {
    content: &'a str,
    thinking: &'a str,
    calls: Vec<Value>,
}

impl Lines {
    pub(super) fn new(form: Form, logprobs: bool) -> Lines {
        Lines {
            form,
            logprobs,
            start: Instant::now(),
            gathered: Gathered::default(),
            pending: Vec::new(),
            call: None,
            n_call: 0,
        }
    }

    /// A line without its tokens.
    fn line(&self, told: &Told, said: Said<'_>) -> Value {
        let mut line = head(&told.model);
        let (name, mut text) = match self.form {
            Form::Chat => ("content", json!({"role": "assistant"})),
            Form::Generate { .. } => ("response", json!({})),
        };
        text[name] = said.content.into();
        if !said.thinking.is_empty() {
            text["thinking"] = said.thinking.into();
        }
        if !said.calls.is_empty() {
            text["tool_calls"] = said.calls.into();
        }
        match self.form {
            Form::Chat => line["message"] = text,
            Form::Generate { .. } => {
                for (name, value) in text.as_object().into_iter().flatten() {
                    line[name] = value.clone();
                }
            }
        }
        line["done"] = false.into();
        line
    }

    /// A line of a stream.
    fn frame(&mut self, told: &Told, said: Said<'_>) -> Vec<Frame> {
        let mut line = self.line(told, said);
        let pending = std::mem::take(&mut self.pending);
        if self.logprobs {
            line["logprobs"] = logprobs::content(&told.facts, &pending).into();
        }
        vec![Frame::Data(line)]
    }

    fn part(&mut self, told: &Told, part: &AnswerEvent) -> Vec<Frame> {
        match part {
            AnswerEvent::Reasoning(text) if !text.is_empty() => {
                self.frame(told, Said { thinking: text, ..Said::default() })
            }
            AnswerEvent::Content(text) if !text.is_empty() => {
                self.frame(told, Said { content: text, ..Said::default() })
            }
            AnswerEvent::CallBegin { name } => {
                self.call = Some(Call { name: name.clone(), arguments: String::new() });
                Vec::new()
            }
            AnswerEvent::Arguments(text) => {
                if let Some(call) = &mut self.call {
                    call.arguments.push_str(text);
                }
                Vec::new()
            }
            AnswerEvent::CallEnd { .. } => match self.call.take() {
                Some(written) => {
                    let call = call(self.n_call, &written.name, &written.arguments);
                    self.n_call += 1;
                    self.frame(told, Said { calls: vec![call], ..Said::default() })
                }
                None => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// Adds what the last line has. Times are in nanoseconds.
    fn finish(&self, told: &Told, line: &mut Value, outcome: &Outcome) {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let stats = &outcome.stats;
        let total = self.start.elapsed().max(stats.ttft + stats.decode);
        line["done"] = true.into();
        line["done_reason"] = match outcome.finish {
            Finish::Stop | Finish::StopText => "stop".into(),
            Finish::Length | Finish::Context => "length".into(),
        };
        line["total_duration"] = nanos(total).into();
        // The rest: the time that the request waited for the model, be it loaded or for others.
        line["load_duration"] = nanos(total.saturating_sub(stats.prefill() + stats.decode)).into();
        line["prompt_eval_count"] = told.n_prompt().into();
        line["prompt_eval_duration"] = nanos(stats.prefill()).into();
        line["eval_count"] = stats.n_token.into();
        line["eval_duration"] = nanos(stats.decode).into();
        if self.form == (Form::Generate { context: true }) {
            let prompt = told.prompts.iter().flat_map(|prompt| prompt.tokens.iter().copied());
            let tokens = prompt.chain(outcome.tokens.iter().map(|token| token.id));
            line["context"] = tokens.collect();
        }
    }
}

impl Writer for Lines {
    fn whole(&mut self, told: &Told, outcomes: &[Outcome]) -> Value {
        // A request has one answer.
        let outcome = &outcomes[0];
        let parts = &outcome.parts;
        let calls = parts.calls().enumerate().map(|(i, made)| call(i, &made.name, &made.arguments)).collect();
        let said = Said { content: &parts.content(), thinking: &parts.reasoning(), calls };
        let mut line = self.line(told, said);
        if self.logprobs {
            line["logprobs"] = logprobs::content(&told.facts, &outcome.tokens).into();
        }
        self.finish(told, &mut line, outcome);
        line
    }

    fn event(&mut self, told: &Told, _: usize, event: &ChatEvent) -> Vec<Frame> {
        self.gathered.take(event);
        match event {
            ChatEvent::Piece(piece) => {
                if let Some(id) = piece.token.filter(|_| self.logprobs) {
                    self.pending.push(Token { id, logprobs: piece.logprobs.clone() });
                }
                Vec::new()
            }
            ChatEvent::Part(part) => self.part(told, part),
            ChatEvent::Finished { .. } => {
                let mut frames = self.frame(told, Said::default());
                if let (Some(Frame::Data(line)), Some(outcome)) = (frames.last_mut(), &self.gathered.outcome)
                {
                    self.finish(told, line, outcome);
                }
                frames
            }
            _ => Vec::new(),
        }
    }

    fn end(&mut self, _: &Told) -> Vec<Frame> {
        Vec::new()
    }
}
