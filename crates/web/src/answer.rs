//! Answers, as streams of events for a page.

use chaski::text::{AnswerEvent, RenderSpecial, Tokenizer};
use chaski::{ChatEvent, Conversation, Error, Finish, Generation, Piece, Stats};
use js_sys::{Function, Promise};
use serde_json::{Value, json};
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::error::to_js;

/// End of an answer.
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
pub(crate) async fn continue_text(mut generation: Generation<'_>, mut sink: Sink) -> Result<End, JsValue> {
    let failed = |e| to_js(Error::Serve(e));
    loop {
        let more = generation.prompt().await.map_err(failed)?;
        let (done, total) = generation.progress();
        sink.prompt(done, total).await?;
        if !more || sink.stopped {
            break;
        }
    }
    while !sink.stopped {
        let Some(piece) = generation.next().await.map_err(failed)? else { break };
        sink.text(generation.tokenizer(), &piece).await?;
    }
    let (finish, stats, on_cpu) = (generation.finish(), generation.stats().clone(), generation.on_cpu());
    Ok(End { finish, stats, on_cpu, n_dropped: 0 })
}

/// Forwards the events of an answer in a chat, whose prompt lacks `n_dropped` messages, until it ends or the page stops
/// it.
///
/// # Errors
/// Errors of the engine, and exceptions of the page.
pub(crate) async fn answer_chat(
    mut chat: Conversation<'_>,
    n_dropped: usize,
    mut sink: Sink,
) -> Result<End, JsValue> {
    let mut end = End { finish: None, stats: Stats::default(), on_cpu: None, n_dropped };
    let mut total = 0;
    let mut has_begun = false;
    while !sink.stopped {
        let event = chat.next().await.map_err(|e| to_js(Error::Serve(e)))?;
        match event {
            None => break,
            Some(ChatEvent::Started { n_prompt, on_cpu, .. }) => {
                (end.on_cpu, total) = (on_cpu, n_prompt);
                sink.prompt(0, total).await?;
            }
            Some(ChatEvent::Prompt { n_sent }) => sink.prompt(n_sent, total).await?,
            Some(ChatEvent::Piece(piece)) => {
                if !std::mem::replace(&mut has_begun, true) {
                    sink.prompt(total, total).await?;
                }
                sink.piece(chat.tokenizer(), &piece).await?;
            }
            Some(ChatEvent::Part(part)) => sink.part(part).await?,
            Some(ChatEvent::Finished { finish, .. }) => end.finish = Some(finish),
            Some(_) => {}
        }
    }
    end.stats = chat.stats().clone();
    Ok(end)
}

/// Receiver of an answer's events.
pub(crate) struct Sink {
    event: Function,
    stopped: bool,
}

impl Sink {
    pub(crate) fn new(event: Function) -> Sink {
        Sink { event, stopped: false }
    }

    /// The page's function may return a promise, which lets other tasks run in between.
    async fn send(&mut self, event: &Value) -> Result<(), JsValue> {
        let stop = self.event.call1(&JsValue::NULL, &event.to_string().into())?;
        let stop = match stop.dyn_into::<Promise>() {
            Ok(later) => JsFuture::from(later).await?,
            Err(now) => now,
        };
        self.stopped |= stop.is_truthy();
        Ok(())
    }

    async fn prompt(&mut self, done: usize, total: usize) -> Result<(), JsValue> {
        self.send(&json!({ "type": "prompt", "done": done, "total": total })).await
    }

    async fn text(&mut self, tokenizer: &Tokenizer, piece: &Piece) -> Result<(), JsValue> {
        let logprobs = logprobs_of(tokenizer, piece);
        self.send(&json!({ "type": "text", "text": piece.text, "logprobs": logprobs })).await
    }

    /// A piece of an answer in a chat, before its parts.
    async fn piece(&mut self, tokenizer: &Tokenizer, piece: &Piece) -> Result<(), JsValue> {
        match logprobs_of(tokenizer, piece) {
            Some(logprobs) => self.send(&json!({ "type": "logprobs", "logprobs": logprobs })).await,
            // Lets the page stop the answer while markup is incomplete.
            None => self.send(&json!({ "type": "content", "text": "" })).await,
        }
    }

    async fn part(&mut self, part: AnswerEvent) -> Result<(), JsValue> {
        self.send(&match part {
            AnswerEvent::Reasoning(text) => json!({ "type": "reasoning", "text": text }),
            AnswerEvent::Content(text) => json!({ "type": "content", "text": text }),
            AnswerEvent::CallBegin { name } => json!({ "type": "call", "name": name }),
            AnswerEvent::Arguments(text) => json!({ "type": "arguments", "text": text }),
            AnswerEvent::CallEnd { is_valid, written } => {
                json!({ "type": "call_end", "valid": is_valid, "written": written })
            }
        })
        .await
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
