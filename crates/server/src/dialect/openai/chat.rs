//! `/v1/chat/completions`.

use chaski::text::{Answer, AnswerEvent};
use chaski::{ChatEvent, Finish, Stats};
use serde_json::{Map, Value, json};

use super::messages::{messages, template, tools};
use super::{Usage, finish_reason, logprobs, n_answers, stream_options};
use crate::answers::{Outcome, Token};
use crate::ask::{Ask, Prompt};
use crate::dialect::conversation;
use crate::dialect::timings::timings;
use crate::dialect::{FINGERPRINT, Frame, Told, Writer, per_answer};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::ids;
use crate::model::Facts;
use crate::sampling;

/// Reads a body.
pub(crate) fn ask(body: &Value, facts: &Facts) -> Result<(Ask, Box<dyn Writer>), ApiError> {
    let fields = Fields::of(body, "")?;
    let messages = messages(&fields)?;
    let (tools, choice) = tools(&fields)?;
    let mut options = sampling::options(&fields, facts)?;
    options.max_tokens =
        sampling::max_tokens(&fields, &["max_completion_tokens", "max_tokens", "n_predict"], facts)?;
    let wants_logprobs = fields.flag("logprobs")?.unwrap_or(false);
    let top = fields.integer("top_logprobs", 0..=20)?;
    if top.is_some_and(|top| top > 0) && !wants_logprobs {
        return Err(fields.wrong("logprobs", "true where `top_logprobs` is set"));
    }
    options.logprobs = wants_logprobs.then_some(top.unwrap_or(0) as usize);
    if !tools.is_empty() && fields.text("grammar")?.is_some_and(|text| !text.is_empty()) {
        return Err(fields.wrong("grammar", "absent where there are tools"));
    }
    // A model that has to call goes on calling: several calls are for those who ask for them.
    let parallel = fields.flag("parallel_tool_calls")?.unwrap_or(false);
    let calls = conversation::force(&fields, &options, choice, parallel)?;
    let template = template(&fields, facts, &messages, tools)?;
    let (stream, usage, continuous) = stream_options(&fields)?;
    let prompt = Prompt::Chat { messages, template: Box::new(template) };
    let ask = Ask {
        n: n_answers(&fields)?,
        stream,
        calls,
        priority: fields.integer("priority", -1000..=1000)?.unwrap_or(0) as i32,
        ..Ask::new(prompt, options)
    };
    let writer = Chat {
        usage,
        continuous,
        logprobs: wants_logprobs,
        tokens: fields.flag("return_tokens")?.unwrap_or(false)
            || fields.flag("return_token_ids")?.unwrap_or(false),
        timings: fields.flag("timings_per_token")?.unwrap_or(false),
        progress: fields.flag("return_progress")?.unwrap_or(false),
        reasoning: fields.flag("include_reasoning")?.unwrap_or(true),
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
    timings: bool,
    progress: bool,
    reasoning: bool,
    answers: Vec<OneAnswer>,
}

/// An answer that is being streamed.
#[derive(Clone, Default)]
struct OneAnswer {
    n_prompt: usize,
    n_cached: usize,
    n_token: usize,
    n_reasoning: usize,
    in_reasoning: bool,
    /// Tokens that no chunk has told yet.
    pending: Vec<Token>,
    n_call: usize,
    has_valid_call: bool,
    stats: Stats,
}

/// An answer's message.
fn message(answer: &Answer, reasoning: bool) -> Value {
    let calls: Vec<&chaski::text::ToolCall> = answer.calls.iter().filter(|call| call.is_valid).collect();
    let content = (!answer.content.is_empty() || calls.is_empty()).then_some(&answer.content);
    let mut message = json!({"role": "assistant", "content": content, "refusal": null});
    if reasoning && !answer.reasoning.is_empty() {
        message["reasoning_content"] = answer.reasoning.as_str().into();
        message["reasoning"] = answer.reasoning.as_str().into();
    }
    if !calls.is_empty() {
        let call = |call: &&chaski::text::ToolCall| {
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

impl Chat {
    fn choice(&self, told: &Told, index: usize, outcome: &Outcome) -> Value {
        let has_calls = outcome.answer.calls.iter().any(|call| call.is_valid);
        let mut choice = json!({
            "index": index,
            "message": message(&outcome.answer, self.reasoning),
            "finish_reason": finish_reason(outcome.finish, has_calls),
            "logprobs": null,
        });
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
        let is_text = finish.is_some() || choice["delta"].get("role").is_none();
        if self.logprobs && is_text {
            let content = logprobs::content(&told.facts, &answer.pending);
            choice["logprobs"] = json!({"content": content, "refusal": null});
        }
        if self.tokens && is_text {
            choice["token_ids"] = answer.pending.iter().map(|token| token.id).collect();
        }
        if is_text {
            answer.pending.clear();
        }
        let mut chunk = head(told, "chat.completion.chunk");
        chunk.insert("choices".into(), json!([choice]));
        if self.continuous {
            chunk.insert("usage".into(), self.used().json(told));
        } else if self.usage {
            chunk.insert("usage".into(), Value::Null);
        }
        if self.timings {
            chunk.insert("timings".into(), timings(&self.answers[index].stats));
        }
        Frame::Data(chunk.into())
    }

    fn used(&self) -> Usage {
        self.answers.iter().fold(Usage::default(), |sum, one| Usage {
            n_cached: sum.n_cached.max(one.n_cached),
            n_token: sum.n_token + one.n_token,
            n_reasoning: sum.n_reasoning + one.n_reasoning,
        })
    }

    /// The delta of a part, if it says anything.
    fn part(&mut self, index: usize, part: &AnswerEvent) -> Option<Value> {
        let answer = &mut self.answers[index];
        answer.in_reasoning = matches!(part, AnswerEvent::Reasoning(_));
        match part {
            AnswerEvent::Reasoning(text) if self.reasoning && !text.is_empty() => {
                Some(json!({"reasoning_content": text, "reasoning": text}))
            }
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

    fn finished(&mut self, told: &Told, index: usize, finish: Finish, stats: &Stats) -> Vec<Frame> {
        let answer = &mut self.answers[index];
        (answer.n_token, answer.n_cached, answer.stats) = (stats.n_token, stats.n_cached, stats.clone());
        let reason = finish_reason(finish, answer.has_valid_call);
        vec![self.chunk(told, index, json!({}), Some(reason))]
    }

    fn progress(&self, told: &Told, index: usize, n_sent: usize) -> Frame {
        let answer = &self.answers[index];
        let mut chunk = head(told, "chat.completion.chunk");
        chunk.insert("choices".into(), json!([]));
        let progress = json!({
            "total": answer.n_prompt,
            "cache": answer.n_cached,
            "processed": answer.n_cached + n_sent,
        });
        chunk.insert("prompt_progress".into(), progress);
        Frame::Data(chunk.into())
    }
}

/// The beginning of all bodies and chunks.
fn head(told: &Told, object: &str) -> Map<String, Value> {
    let mut head = Map::new();
    head.insert("id".into(), told.id.as_str().into());
    head.insert("object".into(), object.into());
    head.insert("created".into(), told.created.into());
    head.insert("model".into(), told.model.as_str().into());
    head.insert("system_fingerprint".into(), FINGERPRINT.into());
    head
}

impl Writer for Chat {
    fn whole(&mut self, told: &Told, outcomes: &[Outcome]) -> Value {
        let mut body = head(told, "chat.completion");
        let choices = outcomes.iter().enumerate().map(|(i, outcome)| self.choice(told, i, outcome));
        body.insert("choices".into(), choices.collect());
        body.insert("usage".into(), Usage::of(outcomes).json(told));
        if let [outcome] = outcomes {
            body.insert("timings".into(), timings(&outcome.stats));
        }
        body.into()
    }

    fn event(&mut self, told: &Told, index: usize, event: &ChatEvent) -> Vec<Frame> {
        per_answer(told, &mut self.answers);
        match event {
            ChatEvent::Started { n_prompt, n_cached, .. } => {
                let answer = &mut self.answers[index];
                (answer.n_prompt, answer.n_cached) = (n_prompt + n_cached, *n_cached);
                (answer.stats.n_prompt, answer.stats.n_cached) = (*n_prompt, *n_cached);
                let delta = json!({"role": "assistant", "content": null});
                let mut frames = vec![self.chunk(told, index, delta, None)];
                if self.progress {
                    frames.push(self.progress(told, index, 0));
                }
                frames
            }
            ChatEvent::Prompt { n_sent } if self.progress => vec![self.progress(told, index, *n_sent)],
            ChatEvent::Piece(piece) => {
                let answer = &mut self.answers[index];
                if let Some(id) = piece.token {
                    answer.n_token += 1;
                    answer.stats.n_token += 1;
                    answer.n_reasoning += usize::from(answer.in_reasoning);
                    answer.pending.push(Token { id, logprobs: piece.logprobs.clone() });
                }
                Vec::new()
            }
            ChatEvent::Part(part) => match self.part(index, part) {
                Some(delta) => vec![self.chunk(told, index, delta, None)],
                None => Vec::new(),
            },
            ChatEvent::Finished { finish, stats, .. } => self.finished(told, index, *finish, stats),
            _ => Vec::new(),
        }
    }

    fn end(&mut self, told: &Told) -> Vec<Frame> {
        if !self.usage {
            return Vec::new();
        }
        let mut chunk = head(told, "chat.completion.chunk");
        chunk.insert("choices".into(), json!([]));
        chunk.insert("usage".into(), self.used().json(told));
        if let [answer] = &*self.answers {
            chunk.insert("timings".into(), timings(&answer.stats));
        }
        vec![Frame::Data(chunk.into())]
    }
}
