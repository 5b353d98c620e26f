//! `/v1/messages` and `/v1/messages/count_tokens`.

use chaski::{ChatEvent, Finish, Stats};
use serde_json::{Value, json};

use super::parts::{SIGNATURE, head, usage};
use super::request;
use super::stream::Stream;
use crate::answers::Outcome;
use crate::ask::{Ask, Prompt};
use crate::dialect::{Frame, Told, Writer};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::ids;
use crate::model::{Facts, Served};
use crate::parts::{Part, arguments};
use crate::sampling;

/// Reads a body.
pub(crate) fn ask(body: &Value, facts: &Facts) -> Result<(Ask, Box<dyn Writer>), ApiError> {
    let fields = Fields::of(body, "")?;
    let given = fields.integer("max_tokens", 1..=i64::MAX)?.map(|limit| limit as usize);
    let limit = fields.need("max_tokens", given.or(facts.dialects.anthropic_max_tokens))?;
    let mut ask = read(&fields, facts, given)?;
    ask.options.max_tokens = Some(facts.max_tokens.map_or(limit, |most| most.min(limit)));
    let writer = Messages { stop: ask.options.stop.clone(), stream: Stream::default() };
    Ok((ask, Box::new(writer)))
}

/// Everything but the limit of the answer, if the request has one.
fn read(fields: &Fields<'_>, facts: &Facts, limit: Option<usize>) -> Result<Ask, ApiError> {
    let messages = request::messages(fields, facts)?;
    let mut options = sampling::unconstrained(fields, "stop_sequences", facts)?;
    let (template, calls, parallel) = request::template(fields, facts, &messages, limit, &mut options)?;
    let prompt = Prompt::Chat { messages, template: Box::new(template) };
    Ok(Ask { stream: fields.flag("stream")?.unwrap_or(false), calls, parallel, ..Ask::new(prompt, options) })
}

/// Reads a body whose tokens are counted.
pub(crate) fn counted(body: &Value, facts: &Facts) -> Result<Ask, ApiError> {
    read(&Fields::of(body, "")?, facts, None)
}

/// The number of tokens that a message with this body would report, cached or not.
pub(crate) fn count_tokens(served: &Served, body: &Value) -> Result<Value, ApiError> {
    let ask = counted(body, &served.facts)?;
    Ok(json!({"input_tokens": ask.n_prompt(served)?}))
}

/// Writes answers.
struct Messages {
    stop: Vec<String>,
    stream: Stream,
}

impl Messages {
    /// `stop_reason` and `stop_sequence`.
    fn ending(
        &self,
        told: &Told,
        finish: Finish,
        stats: &Stats,
        has_calls: bool,
    ) -> (&'static str, Option<&str>) {
        let is_full = told.n_prompt() + stats.n_token >= told.facts.n_ctx;
        match finish {
            Finish::StopText => ("stop_sequence", stats.stop.and_then(|i| self.stop.get(i)).map(|s| &**s)),
            Finish::Stop if has_calls => ("tool_use", None),
            Finish::Stop => ("end_turn", None),
            Finish::Length if !is_full => ("max_tokens", None),
            Finish::Length | Finish::Context => ("model_context_window_exceeded", None),
        }
    }
}

/// The block of a part of a whole answer.
fn block(part: &Part) -> Value {
    match part {
        Part::Reasoning(text) => json!({"type": "thinking", "thinking": text, "signature": SIGNATURE}),
        Part::Content(text) => json!({"type": "text", "text": text}),
        Part::Call(call) => {
            let input = arguments(&call.arguments);
            json!({"type": "tool_use", "id": ids::new("toolu_"), "name": call.name, "input": input})
        }
    }
}

impl Writer for Messages {
    fn whole(&mut self, told: &Told, outcomes: &[Outcome]) -> Value {
        // A message has one answer.
        let outcome = &outcomes[0];
        let mut message = head(told, usage(told, outcome.stats.n_cached, outcome.stats.n_token));
        let has_calls = outcome.parts.has_valid_call();
        let (reason, sequence) = self.ending(told, outcome.finish, &outcome.stats, has_calls);
        message["content"] = outcome.parts.iter().map(block).collect();
        message["stop_reason"] = reason.into();
        message["stop_sequence"] = sequence.into();
        message
    }

    fn event(&mut self, told: &Told, _: usize, event: &ChatEvent) -> Vec<Frame> {
        match event {
            ChatEvent::Started { n_cached, .. } => self.stream.start(told, *n_cached),
            ChatEvent::Part(part) => self.stream.part(part),
            ChatEvent::Finished { finish, stats, .. } => {
                let mut frames = self.stream.close();
                let (reason, sequence) = self.ending(told, *finish, stats, self.stream.has_calls());
                let delta = json!({"stop_reason": reason, "stop_sequence": sequence});
                frames.extend(Stream::end(delta, usage(told, stats.n_cached, stats.n_token)));
                frames
            }
            _ => Vec::new(),
        }
    }

    fn end(&mut self, _: &Told) -> Vec<Frame> {
        Vec::new()
    }
}
