//! `/v1/chat/completions`.

use chaski::ChatEvent;
use chaski::text::{AnswerEvent, ToolCall};
use serde_json::{Value, json};

use super::messages::{messages, template, tools};
use super::{
    Usage, cache_salt, finish_reason, head, logprobs, n_answers, priority, stop_reason, stream_options,
};
use crate::answers::{Gathered, Outcome};
use crate::ask::{Ask, Prompt};
use crate::dialect::conversation;
use crate::dialect::timings::{PromptProgress, timings};
use crate::dialect::{Frame, Told, Writer, per_answer};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::ids;
use crate::model::Facts;
use crate::openapi::field::check;
use crate::openapi::requests::CHAT_FIXED;
use crate::parts::Parts;
use crate::sampling;

/// The answer whose reasoning a body wants to end.
///
/// # Errors
/// Fields that are missing or wrong.
pub(crate) fn controlled(body: &Value) -> Result<&str, ApiError> {
    let fields = Fields::of(body, "")?;
    let (id, action) = (fields.text("id")?, fields.text("action")?);
    let id = fields.need("id", id)?;
    match fields.need("action", action)? {
        "reasoning_end" => Ok(id),
        _ => Err(fields.wrong("action", "`reasoning_end`")),
    }
}

/// Reads a body.
pub(crate) fn ask(body: &Value, facts: &Facts) -> Result<(Ask, Box<dyn Writer>), ApiError> {
    let fields = Fields::of(body, "")?;
    let messages = messages(&fields)?;
    let (tools, choice) = tools(&fields, facts)?;
    let mut options = sampling::options(&fields, facts)?;
    options.max_tokens =
        sampling::max_tokens(&fields, &["max_completion_tokens", "max_tokens", "n_predict"], facts)?;
    options.ends = sampling::ends(&fields, options.max_tokens, facts)?;
    check(&fields, &CHAT_FIXED)?;
    if let Some(options) = fields.object("options")? {
        let most = i64::try_from(facts.n_ctx).unwrap_or(i64::MAX);
        options.integer("num_ctx", 1..=most)?;
    }
    let wants_logprobs = fields.flag("logprobs")?.unwrap_or(false);
    let top = fields.integer("top_logprobs", 0..=20)?;
    let n_probs = fields.integer("n_probs", 0..=20)?.filter(|n| *n > 0);
    let wants_logprobs = wants_logprobs || n_probs.is_some();
    if top.is_some_and(|top| top > 0) && !wants_logprobs {
        return Err(fields.wrong("logprobs", "true where `top_logprobs` is set"));
    }
    options.logprobs = wants_logprobs.then_some(top.or(n_probs).unwrap_or(0) as usize);
    if !tools.is_empty() && fields.text("grammar")?.is_some_and(|text| !text.is_empty()) {
        return Err(fields.wrong("grammar", "absent where there are tools"));
    }
    let parallel = fields.flag("parallel_tool_calls")?;
    let calls = conversation::force(&fields, &options, choice, parallel)?;
    let mut template = template(&fields, facts, &messages, tools)?;
    let budget = fields.integer("reasoning_budget", -1..=i64::MAX)?;
    conversation::limit_reasoning(facts, budget, &mut options, &mut template);
    let (stream, usage, continuous) = stream_options(&fields)?;
    let prompt = Prompt::Chat { messages, template: Box::new(template) };
    let stop = options.stop.clone();
    let ask = Ask {
        n: n_answers(&fields, facts)?,
        stream,
        calls,
        parallel,
        keeps_reasoning: fields
            .text("reasoning_format")?
            .map_or(facts.dialects.keeps_reasoning, |format| format == "none"),
        priority: priority(&fields)?,
        salt: cache_salt(&fields)?,
        slot: sampling::slot(&fields, facts)?,
        silence: sampling::silence(&fields)?,
        ..Ask::new(prompt, options)
    };
    let prompt_ids = fields.flag("return_token_ids")?.unwrap_or(false);
    let writer = Chat {
        usage,
        continuous,
        logprobs: wants_logprobs,
        tokens: fields.flag("return_tokens")?.unwrap_or(false) || prompt_ids,
        prompt_ids,
        timings: fields.flag("timings_per_token")?.unwrap_or(false),
        progress: fields.flag("return_progress")?.unwrap_or(false),
        reasoning: match fields.flag("include_reasoning")? {
            Some(false) => &[],
            _ => facts.dialects.reasoning_names.names(),
        },
        stop,
        answers: Vec::new(),
    };
    Ok((ask, Box::new(writer)))
}

/// Writes answers.
struct Chat {
    usage: bool,
    /// Each chunk has the usage.
    continuous: bool,
    logprobs: bool,
    /// Chunks have the ids of tokens.
    tokens: bool,
    /// The first chunk has those of the prompt.
    prompt_ids: bool,
    timings: bool,
    progress: bool,
    /// Names of the fields with the reasoning.
    reasoning: &'static [&'static str],
    /// Texts that end an answer.
    stop: Vec<String>,
    answers: Vec<OneAnswer>,
}

/// An answer that is being streamed.
#[derive(Clone, Default)]
struct OneAnswer {
    gathered: Gathered,
    progress: PromptProgress,
    n_call: usize,
    has_valid_call: bool,
}

/// An answer's message.
fn message(parts: &Parts, reasoning: &[&str]) -> Value {
    let (content, thought) = (parts.content(), parts.reasoning());
    let calls: Vec<&ToolCall> = parts.calls().collect();
    let content = (!content.is_empty() || calls.is_empty()).then_some(content);
    let mut message = json!({"role": "assistant", "content": content, "refusal": null});
    for name in reasoning.iter().filter(|_| !thought.is_empty()) {
        message[*name] = thought.as_str().into();
    }
    if !calls.is_empty() {
        let call = |call: &&ToolCall| {
            json!({
                "id": ids::new("call_"),
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            })
        };
        message["tool_calls"] = calls.iter().map(call).collect();
    }
    message
}

/// The tokens of the conversation.
fn prompt_ids(told: &Told) -> Value {
    told.prompts.iter().flat_map(|prompt| &prompt.tokens).copied().collect()
}

impl Chat {
    fn choice(&self, told: &Told, index: usize, outcome: &Outcome) -> Value {
        let mut choice = json!({
            "index": index,
            "message": message(&outcome.parts, self.reasoning),
            "finish_reason": finish_reason(outcome.finish, outcome.parts.has_valid_call()),
            "logprobs": null,
        });
        if let Some(reason) = stop_reason(&outcome.stats, &self.stop) {
            choice["stop_reason"] = reason;
        }
        if self.logprobs {
            let content = logprobs::content(&told.facts, &outcome.tokens);
            choice["logprobs"] = json!({"content": content, "refusal": null});
        }
        if self.tokens {
            choice["token_ids"] = outcome.tokens.iter().map(|token| token.id).collect();
        }
        choice
    }

    fn chunk(&mut self, told: &Told, index: usize, delta: Value, finish: Option<&str>) -> Frame {
        let answer = &mut self.answers[index];
        let mut choice = json!({"index": index, "delta": delta, "finish_reason": finish});
        if let Some(reason) = finish.and_then(|_| stop_reason(&answer.gathered.stats, &self.stop)) {
            choice["stop_reason"] = reason;
        }
        let is_text = finish.is_some() || choice["delta"].get("role").is_none();
        let untold = if is_text { answer.gathered.untold() } else { Vec::new() };
        if self.logprobs && is_text {
            let content = logprobs::content(&told.facts, &untold);
            choice["logprobs"] = json!({"content": content, "refusal": null});
        }
        if self.tokens && is_text {
            choice["token_ids"] = untold.iter().map(|token| token.id).collect();
        }
        let mut chunk = head(told, "chat.completion.chunk");
        chunk.insert("choices".into(), json!([choice]));
        if self.continuous {
            chunk.insert("usage".into(), self.used(told).json(told));
        } else if self.usage {
            chunk.insert("usage".into(), Value::Null);
        }
        // The first chunk comes before there are any.
        if self.timings && is_text {
            chunk.insert("timings".into(), timings(&self.answers[index].gathered.stats));
        }
        Frame::Data(chunk.into())
    }

    fn used(&self, told: &Told) -> Usage {
        Usage::of_gathered(told, self.answers.iter().map(|answer| &answer.gathered))
    }

    /// The delta of a part, if it says anything.
    fn part(&mut self, index: usize, part: &AnswerEvent) -> Option<Value> {
        let answer = &mut self.answers[index];
        match part {
            AnswerEvent::Reasoning(text) if !self.reasoning.is_empty() && !text.is_empty() => Some(
                self.reasoning.iter().map(|name| ((*name).to_owned(), Value::from(text.as_str()))).collect(),
            ),
            AnswerEvent::Content(text) if !text.is_empty() => Some(json!({"content": text})),
            AnswerEvent::CallBegin { name } => {
                answer.n_call += 1;
                let function = json!({"name": name, "arguments": ""});
                let call = json!({
                    "index": answer.n_call - 1,
                    "id": ids::new("call_"),
                    "type": "function",
                    "function": function,
                });
                Some(json!({"tool_calls": [call]}))
            }
            AnswerEvent::Arguments(text) if !text.is_empty() => {
                let call = json!({"index": answer.n_call.saturating_sub(1), "function": {"arguments": text}});
                Some(json!({"tool_calls": [call]}))
            }
            AnswerEvent::CallEnd { is_valid, .. } => {
                answer.has_valid_call |= is_valid;
                None
            }
            _ => None,
        }
    }

    /// The progress of the prompt, if this event changes it.
    fn progress(&mut self, told: &Told, index: usize, event: &ChatEvent) -> Option<Frame> {
        let answer = &mut self.answers[index];
        let (progress, timings) =
            answer.progress.next(event, &answer.gathered.stats).filter(|_| self.progress)?;
        let mut chunk = head(told, "chat.completion.chunk");
        chunk.insert("choices".into(), json!([]));
        chunk.insert("prompt_progress".into(), progress);
        if self.timings {
            chunk.insert("timings".into(), timings);
        }
        Some(Frame::Data(chunk.into()))
    }
}

impl Writer for Chat {
    fn whole(&mut self, told: &Told, outcomes: &[Outcome]) -> Value {
        let mut body = head(told, "chat.completion");
        let choices = outcomes.iter().enumerate().map(|(i, outcome)| self.choice(told, i, outcome));
        body.insert("choices".into(), choices.collect());
        body.insert("usage".into(), Usage::of_outcomes(told, outcomes).json(told));
        if self.prompt_ids {
            body.insert("prompt_token_ids".into(), prompt_ids(told));
        }
        if let [outcome] = outcomes {
            body.insert("timings".into(), timings(&outcome.stats));
        }
        body.into()
    }

    fn event(&mut self, told: &Told, index: usize, event: &ChatEvent) -> Vec<Frame> {
        per_answer(told, &mut self.answers);
        self.answers[index].gathered.take(event);
        let progress = self.progress(told, index, event);
        let frames = match event {
            ChatEvent::Started { .. } => {
                let delta = json!({"role": "assistant", "content": null});
                let mut role = self.chunk(told, index, delta, None);
                if let Frame::Data(chunk) = &mut role
                    && std::mem::take(&mut self.prompt_ids)
                {
                    chunk["prompt_token_ids"] = prompt_ids(told);
                }
                return [role].into_iter().chain(progress).collect();
            }
            ChatEvent::Part(part) => match self.part(index, part) {
                Some(delta) => vec![self.chunk(told, index, delta, None)],
                None => Vec::new(),
            },
            ChatEvent::Finished { finish, .. } => {
                let reason = finish_reason(*finish, self.answers[index].has_valid_call);
                vec![self.chunk(told, index, json!({}), Some(reason))]
            }
            _ => Vec::new(),
        };
        progress.into_iter().chain(frames).collect()
    }

    fn end(&mut self, told: &Told) -> Vec<Frame> {
        if !self.usage {
            return Vec::new();
        }
        let mut chunk = head(told, "chat.completion.chunk");
        chunk.insert("choices".into(), json!([]));
        chunk.insert("usage".into(), self.used(told).json(told));
        if let [answer] = &*self.answers {
            chunk.insert("timings".into(), timings(&answer.gathered.stats));
        }
        vec![Frame::Data(chunk.into())]
    }
}
