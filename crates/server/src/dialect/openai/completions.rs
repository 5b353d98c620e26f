//! `/v1/completions`.

use chaski::ChatEvent;
use chaski::text::AnswerEvent;
use serde_json::{Value, json};

use super::{
    Usage, cache_salt, finish_reason, head, logprobs, n_answers, priority, stop_reason, stream_options,
};
use crate::answers::{Gathered, Outcome, Token};
use crate::ask::{Ask, Part, Prompt, Read};
use crate::dialect::timings::timings;
use crate::dialect::{Frame, Told, Writer, per_answer};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::fim;
use crate::model::Facts;
use crate::openapi::field::check;
use crate::openapi::requests::COMPLETION_FIXED;
use crate::sampling;

/// `object` of bodies and chunks.
const OBJECT: &str = "text_completion";

/// Most prompts in a request.
const MOST_PROMPTS: usize = 64;

/// Reads a body.
pub(crate) fn ask(body: &Value, facts: &Facts) -> Result<(Ask, Box<dyn Writer>), ApiError> {
    let fields = Fields::of(body, "")?;
    let mut prompts = prompts(&fields, "prompt")?;
    let suffix = fim::suffix(&fields)?;
    if let Some(suffix) = suffix {
        for prompt in &mut prompts {
            *prompt = fim::before(std::mem::take(prompt), suffix, facts)?;
        }
    }
    let mut options = sampling::options(&fields, facts)?;
    options.max_tokens = sampling::max_tokens(&fields, &["max_tokens", "n_predict"], facts)?;
    options.ends = sampling::ends(&fields, options.max_tokens, facts)?;
    let echo = fields.flag("echo")?.unwrap_or(false);
    if echo && suffix.is_some() {
        return Err(fields.wrong("echo", "false with a `suffix`"));
    }
    check(&fields, &COMPLETION_FIXED)?;
    options.logprobs = fields.integer("logprobs", 0..=20)?.map(|n| n as usize);
    let (stream, usage, continuous) = stream_options(&fields)?;
    let (stop, answers) = (options.stop.clone(), Vec::new());
    let ids = fields.flag("return_token_ids")?.unwrap_or(false);
    let writer =
        Completions { usage, continuous, echo, ids, logprobs: options.logprobs.is_some(), stop, answers };
    let ask = Ask {
        n: n_answers(&fields, facts)?,
        stream,
        priority: priority(&fields)?,
        salt: cache_salt(&fields)?,
        slot: sampling::slot(&fields, facts)?,
        silence: sampling::silence(&fields)?,
        prompt_logprobs: options.logprobs.filter(|_| echo),
        ..Ask::new(Prompt::Texts(prompts), options)
    };
    Ok((ask, Box::new(writer)))
}

/// Prompts: a text, texts, tokens, or lists of tokens. A list that mixes texts and tokens is one prompt.
pub(crate) fn prompts(fields: &Fields<'_>, name: &str) -> Result<Vec<Vec<Part>>, ApiError> {
    parts_of(fields, name, MOST_PROMPTS)
}

/// The same of at most `most`.
pub(crate) fn parts_of(fields: &Fields<'_>, name: &str, most: usize) -> Result<Vec<Vec<Part>>, ApiError> {
    let wrong = || fields.wrong(name, "a string, strings, tokens, or lists of tokens");
    let value = fields.need(name, fields.get(name))?;
    let found = match value {
        Value::String(_) | Value::Object(_) => vec![vec![Part::Text(text_of(value).ok_or_else(wrong)?)]],
        Value::Array(list)
            if list.iter().any(Value::is_number)
                && !list.iter().any(|value| value.is_array() || value.is_object()) =>
        {
            vec![parts(list).ok_or_else(wrong)?]
        }
        Value::Array(list) if !list.is_empty() => {
            let prompt = |value: &Value| match value {
                Value::String(_) | Value::Object(_) => Some(vec![Part::Text(text_of(value)?)]),
                Value::Array(list) => parts(list).filter(|parts| !parts.is_empty()),
                _ => None,
            };
            list.iter().map(prompt).collect::<Option<_>>().ok_or_else(wrong)?
        }
        _ => return Err(wrong()),
    };
    if found.len() > most {
        return Err(fields.wrong(name, format!("a list of at most {most} texts")));
    }
    Ok(found)
}

/// A text, also in llama-server's form of prompts with media, of which there can be none.
fn text_of(value: &Value) -> Option<String> {
    let media = &value["multimodal_data"];
    let has_media = !media.is_null() && media.as_array().is_none_or(|media| !media.is_empty());
    value.as_str().or(value["prompt_string"].as_str()).filter(|_| !has_media).map(String::from)
}

/// Texts and tokens in a row.
fn parts(list: &[Value]) -> Option<Vec<Part>> {
    let mut parts: Vec<Part> = Vec::new();
    for value in list {
        match value {
            Value::String(text) => parts.push(Part::Text(text.clone())),
            value => {
                let token = value.as_u64().and_then(|id| u32::try_from(id).ok())?;
                match parts.last_mut() {
                    Some(Part::Tokens(tokens)) => tokens.push(token),
                    _ => parts.push(Part::Tokens(vec![token])),
                }
            }
        }
    }
    Some(parts)
}

/// Writes answers.
struct Completions {
    usage: bool,
    /// Each chunk has the usage.
    continuous: bool,
    echo: bool,
    /// Choices have the ids of tokens.
    ids: bool,
    logprobs: bool,
    /// Texts that end an answer.
    stop: Vec<String>,
    answers: Vec<OneAnswer>,
}

#[derive(Clone, Default)]
struct OneAnswer {
    gathered: Gathered,
    /// Characters and chunks so far.
    n_char: usize,
    n_chunk: usize,
}

/// Adds the ids of tokens, and with them those of the prompt, as vLLM has them.
fn tell_ids(choice: &mut Value, prompt: Option<&Read>, tokens: &[Token]) {
    choice["token_ids"] = tokens.iter().map(|token| token.id).collect();
    if let Some(prompt) = prompt {
        choice["prompt_token_ids"] = prompt.tokens.iter().copied().collect();
    }
}

impl Completions {
    /// The text of an answer's prompt, if it is echoed.
    fn echoed<'a>(&self, told: &'a Told, index: usize) -> &'a str {
        if self.echo { &told.prompts[index / told.n].text } else { "" }
    }

    fn chunk(&mut self, told: &Told, index: usize, text: &str, finish: Option<&str>) -> Frame {
        let answer = &mut self.answers[index];
        let untold = answer.gathered.untold();
        // The first chunk has the prompt.
        let first = (answer.n_chunk == 0).then(|| &told.prompts[index / told.n]);
        let prompt = first.filter(|_| self.echo);
        let from = if prompt.is_some() { text.chars().count() } else { answer.n_char };
        let logprobs = self.logprobs.then(|| logprobs::lists(&told.facts, prompt, &untold, from));
        answer.n_char += text.chars().count();
        answer.n_chunk += 1;
        let mut chunk = head(told, OBJECT);
        let mut choice = json!({"index": index, "text": text, "finish_reason": finish, "logprobs": logprobs});
        if let Some(reason) = finish.and_then(|_| stop_reason(&answer.gathered.stats, &self.stop)) {
            choice["stop_reason"] = reason;
        }
        if self.ids {
            tell_ids(&mut choice, first, &untold);
        }
        chunk.insert("choices".into(), json!([choice]));
        if self.continuous {
            chunk.insert("usage".into(), self.used(told).json(told));
        } else if self.usage {
            chunk.insert("usage".into(), Value::Null);
        }
        Frame::Data(chunk.into())
    }

    fn used(&self, told: &Told) -> Usage {
        Usage::of_gathered(told, self.answers.iter().map(|answer| &answer.gathered))
    }
}

impl Writer for Completions {
    fn whole(&mut self, told: &Told, outcomes: &[Outcome]) -> Value {
        let mut body = head(told, OBJECT);
        let choice = |(index, outcome): (usize, &Outcome)| {
            let echoed = self.echoed(told, index);
            let tokens = &outcome.tokens;
            let prompt = self.echo.then(|| &told.prompts[index / told.n]);
            let from = echoed.chars().count();
            let lists = self.logprobs.then(|| logprobs::lists(&told.facts, prompt, tokens, from));
            let mut choice = json!({
                "index": index,
                "text": format!("{echoed}{}", outcome.parts.content()),
                "finish_reason": finish_reason(outcome.finish, false),
                "logprobs": lists,
            });
            if let Some(reason) = stop_reason(&outcome.stats, &self.stop) {
                choice["stop_reason"] = reason;
            }
            if self.ids {
                tell_ids(&mut choice, Some(&told.prompts[index / told.n]), tokens);
            }
            choice
        };
        body.insert("choices".into(), outcomes.iter().enumerate().map(choice).collect());
        body.insert("usage".into(), Usage::of_outcomes(told, outcomes).json(told));
        if let [outcome] = outcomes {
            body.insert("timings".into(), timings(&outcome.stats));
        }
        body.into()
    }

    fn event(&mut self, told: &Told, index: usize, event: &ChatEvent) -> Vec<Frame> {
        per_answer(told, &mut self.answers);
        self.answers[index].gathered.take(event);
        match event {
            ChatEvent::Started { .. } if self.echo => {
                let echoed = self.echoed(told, index).to_owned();
                vec![self.chunk(told, index, &echoed, None)]
            }
            ChatEvent::Part(AnswerEvent::Content(text)) => vec![self.chunk(told, index, text, None)],
            ChatEvent::Finished { finish, .. } => {
                vec![self.chunk(told, index, "", Some(finish_reason(*finish, false)))]
            }
            _ => Vec::new(),
        }
    }

    fn end(&mut self, told: &Told) -> Vec<Frame> {
        if !self.usage {
            return Vec::new();
        }
        let mut chunk = head(told, OBJECT);
        chunk.insert("choices".into(), json!([]));
        chunk.insert("usage".into(), self.used(told).json(told));
        vec![Frame::Data(chunk.into())]
    }
}
