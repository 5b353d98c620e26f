//! Answers, as streams of events for a page.

use chaski::serve::{Answer, Event};
use chaski::text::{AnswerEvent, RenderSpecial, Tokenizer};
use chaski::{Chat, ChatEvent, Finish, Piece, Stats};
use js_sys::Function;
use serde_json::{Value, json};
use wasm_bindgen::JsValue;

use crate::error::to_js;

/// End of an answer.
#[derive(Default)]
pub(crate) struct End {
    /// `None` if the page stopped it.
    finish: Option<Finish>,
    stats: Stats,
    on_cpu: Option<&'static str>,
    /// Messages that the prompt does not have, since the context has no room for them.
    n_dropped: usize,
}

impl End {
    /// The end as JSON, with the number of prompt tokens and of device losses.
    pub(crate) fn to_json(&self, n_prompt: usize, losses: u64) -> String {
        let finish = match self.finish {
            None => "aborted",
            Some(Finish::Stop | Finish::StopText) => "stop",
            Some(Finish::Length) => "length",
            Some(Finish::Context) => "context",
        };
        let stats = &self.stats;
        json!({
            "finish": finish,
            "promptTokens": n_prompt,
            "cachedTokens": stats.n_cached,
            "tokens": stats.n_token,
            "firstMs": 1e3 * stats.ttft.as_secs_f64(),
            "restMs": 1e3 * stats.decode.as_secs_f64(),
            "promptPerSecond": stats.prompt_rate(),
            "tokensPerSecond": stats.token_rate(),
            "submissions": stats.n_submit,
            "drafted": stats.n_drafted,
            "accepted": stats.n_accepted,
            "onCpu": self.on_cpu,
            "droppedMessages": self.n_dropped,
            "losses": losses,
        })
        .to_string()
    }
}

/// Forwards the events of a text until it ends or the page stops it.
///
/// # Errors
/// Errors of the engine, and exceptions of the page.
pub(crate) async fn continue_text(mut answer: Answer, mut sink: Sink) -> Result<End, JsValue> {
    let mut end = End::default();
    while !sink.stopped
        && let Some(event) = answer.next().await
    {
        match event {
            Event::Started { n_prompt, on_cpu, .. } => {
                end.on_cpu = on_cpu;
                sink.started(n_prompt)?;
            }
            Event::Prompt { n_sent } => sink.prompt(n_sent)?,
            Event::Piece(piece) => {
                sink.begun()?;
                let logprobs = logprobs_of(answer.tokenizer(), &piece);
                sink.send(&json!({ "type": "text", "text": piece.text, "logprobs": logprobs }))?;
            }
            Event::Finished { finish, .. } => end.finish = Some(finish),
            Event::Failed { error } => return Err(to_js(error)),
            _ => {}
        }
    }
    end.stats = answer.stats().clone();
    Ok(end)
}

/// Forwards the events of an answer in a chat, whose prompt lacks `n_dropped` messages, until it ends or the page stops
/// it.
///
/// # Errors
/// Errors of the engine, and exceptions of the page.
pub(crate) async fn answer_chat(mut chat: Chat, n_dropped: usize, mut sink: Sink) -> Result<End, JsValue> {
    let mut end = End { n_dropped, ..End::default() };
    while !sink.stopped
        && let Some(event) = chat.next().await
    {
        match event {
            ChatEvent::Started { n_prompt, on_cpu, .. } => {
                end.on_cpu = on_cpu;
                sink.started(n_prompt)?;
            }
            ChatEvent::Prompt { n_sent } => sink.prompt(n_sent)?,
            ChatEvent::Piece(piece) => {
                sink.begun()?;
                sink.piece(chat.tokenizer(), &piece)?;
            }
            ChatEvent::Part(part) => sink.part(part)?,
            ChatEvent::Finished { finish, .. } => end.finish = Some(finish),
            ChatEvent::Failed { error } => return Err(to_js(error)),
            _ => {}
        }
    }
    end.stats = chat.stats().clone();
    Ok(end)
}

/// Receiver of an answer's events.
pub(crate) struct Sink {
    event: Function,
    stopped: bool,
    /// Tokens of the prompt.
    total: usize,
    has_begun: bool,
}

impl Sink {
    pub(crate) fn new(event: Function) -> Sink {
        Sink { event, stopped: false, total: 0, has_begun: false }
    }

    fn send(&mut self, event: &Value) -> Result<(), JsValue> {
        self.stopped |= self.event.call1(&JsValue::NULL, &event.to_string().into())?.is_truthy();
        Ok(())
    }

    fn started(&mut self, total: usize) -> Result<(), JsValue> {
        self.total = total;
        self.prompt(0)
    }

    fn prompt(&mut self, done: usize) -> Result<(), JsValue> {
        self.send(&json!({ "type": "prompt", "done": done, "total": self.total }))
    }

    /// The whole prompt has run, since there is a token.
    fn begun(&mut self) -> Result<(), JsValue> {
        if std::mem::replace(&mut self.has_begun, true) { Ok(()) } else { self.prompt(self.total) }
    }

    /// A piece of an answer in a chat, before its parts.
    fn piece(&mut self, tokenizer: &Tokenizer, piece: &Piece) -> Result<(), JsValue> {
        match logprobs_of(tokenizer, piece) {
            Some(logprobs) => self.send(&json!({ "type": "logprobs", "logprobs": logprobs })),
            // Lets the page stop the answer while markup is incomplete.
            None => self.send(&json!({ "type": "content", "text": "" })),
        }
    }

    fn part(&mut self, part: AnswerEvent) -> Result<(), JsValue> {
        self.send(&match part {
            AnswerEvent::Reasoning(text) => json!({ "type": "reasoning", "text": text }),
            AnswerEvent::Content(text) => json!({ "type": "content", "text": text }),
            AnswerEvent::CallBegin { name } => json!({ "type": "call", "name": name }),
            AnswerEvent::Arguments(text) => json!({ "type": "arguments", "text": text }),
            AnswerEvent::CallEnd { is_valid, written } => {
                json!({ "type": "call_end", "valid": is_valid, "written": written })
            }
        })
    }
}

/// Log probabilities of a piece.
fn logprobs_of(tokenizer: &Tokenizer, piece: &Piece) -> Option<Value> {
    let (token, logprobs) = (piece.token?, piece.logprobs.as_ref()?);
    let entry = |token: u32, logprob: f32| {
        let bytes = tokenizer.token_bytes(token, RenderSpecial::Yes);
        json!({ "token": String::from_utf8_lossy(&bytes), "id": token, "logprob": logprob, "bytes": &bytes[..] })
    };
    Some(logprobs.to_json(token, "top_logprobs", entry))
}
