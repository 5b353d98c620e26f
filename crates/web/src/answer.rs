//! An answer in the making, and the events that a page gets of it.

use chaski::{
    AnswerEvent, AnswerParser, Error, Finish, Generation, ModelError, Piece, RenderSpecial, Suspended,
    Tokenizer,
};
use js_sys::{Function, Promise};
use serde_json::{Value, json};
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::error::to_js;

/// What is left of an answer whose device was lost.
pub(crate) struct Interrupted {
    pub(crate) rest: Suspended,
    pub(crate) parser: Option<AnswerParser>,
    pub(crate) n_prompt: usize,
}

/// What became of an answer.
pub(crate) enum Outcome {
    /// How it ended, as JSON.
    Ended(String),
    /// It lost its device.
    Interrupted(Box<Interrupted>, Error),
}

/// Tells an answer, which began with so many tokens.
pub(crate) async fn answer(
    mut generation: Generation<'_>,
    mut sink: Sink,
    n_prompt: usize,
) -> Result<Outcome, JsValue> {
    match tell(&mut generation, &mut sink).await {
        Ok(()) => {}
        Err(Stop::Page(e)) => return Err(e),
        Err(Stop::Engine(e)) if e.is_device_lost() => {
            let rest = Box::new(Interrupted { rest: generation.suspend(), parser: sink.parser, n_prompt });
            return Ok(Outcome::Interrupted(rest, e));
        }
        Err(Stop::Engine(e)) => return Err(to_js(e)),
    }
    let finish = match generation.finish() {
        None => "aborted",
        Some(Finish::Stop | Finish::StopText) => "stop",
        Some(Finish::Length) => "length",
        Some(Finish::Context) => "context",
    };
    sink.end().await?;
    let stats = generation.stats();
    Ok(Outcome::Ended(
        json!({
            "finish": finish,
            "promptTokens": n_prompt,
            "cachedTokens": stats.n_cached,
            "tokens": stats.n_token,
            "firstMs": 1e3 * stats.first.as_secs_f64(),
            "restMs": 1e3 * stats.rest.as_secs_f64(),
            "promptPerSecond": stats.prompt_rate(),
            "tokensPerSecond": stats.token_rate(),
            "submissions": stats.n_group,
            "onProcessor": generation.on_processor(),
        })
        .to_string(),
    ))
}

/// Why an answer is not told to its end.
enum Stop {
    Engine(Error),
    /// What the page's function threw.
    Page(JsValue),
}

impl From<JsValue> for Stop {
    fn from(e: JsValue) -> Stop {
        Stop::Page(e)
    }
}

/// Passes all events on, until the page has enough.
async fn tell(generation: &mut Generation<'_>, sink: &mut Sink) -> Result<(), Stop> {
    let failed = |e: ModelError| Stop::Engine(e.into());
    loop {
        let more = generation.prompt().await.map_err(failed)?;
        let (done, total) = generation.progress();
        sink.send(&json!({ "type": "prompt", "done": done, "total": total })).await?;
        if !more || sink.stopped {
            break;
        }
    }
    while !sink.stopped {
        let Some(piece) = generation.next().await.map_err(failed)? else { break };
        sink.piece(generation.tokenizer(), &piece).await?;
    }
    Ok(())
}

/// Where the events of an answer go.
pub(crate) struct Sink {
    event: Function,
    parser: Option<AnswerParser>,
    stopped: bool,
}

impl Sink {
    pub(crate) fn new(event: Function, parser: Option<AnswerParser>) -> Sink {
        Sink { event, parser, stopped: false }
    }

    /// The page's function may return a promise, where others must get a turn while this goes on.
    async fn send(&mut self, event: &Value) -> Result<(), JsValue> {
        let stop = self.event.call1(&JsValue::NULL, &event.to_string().into())?;
        let stop = match stop.dyn_into::<Promise>() {
            Ok(later) => JsFuture::from(later).await?,
            Err(now) => now,
        };
        self.stopped |= stop.is_truthy();
        Ok(())
    }

    async fn piece(&mut self, tokenizer: &Tokenizer, piece: &Piece) -> Result<(), JsValue> {
        let logprobs = logprobs_of(tokenizer, piece);
        let Some(parser) = &mut self.parser else {
            return self.send(&json!({ "type": "text", "text": piece.text, "logprobs": logprobs })).await;
        };
        let events = parser.push(&piece.text);
        if let Some(logprobs) = logprobs {
            self.send(&json!({ "type": "logprobs", "logprobs": logprobs })).await?;
        } else if events.is_empty() {
            // So that it can be stopped while marks are incomplete.
            self.send(&json!({ "type": "content", "text": "" })).await?;
        }
        self.parts(events).await
    }

    async fn parts(&mut self, events: Vec<AnswerEvent>) -> Result<(), JsValue> {
        for event in events {
            self.send(&match event {
                AnswerEvent::Reasoning(text) => json!({ "type": "reasoning", "text": text }),
                AnswerEvent::Content(text) => json!({ "type": "content", "text": text }),
                AnswerEvent::CallBegin { name } => json!({ "type": "call", "name": name }),
                AnswerEvent::Arguments(text) => json!({ "type": "arguments", "text": text }),
                AnswerEvent::CallEnd { is_valid, written } => {
                    json!({ "type": "call_end", "valid": is_valid, "written": written })
                }
            })
            .await?;
        }
        Ok(())
    }

    async fn end(&mut self) -> Result<(), JsValue> {
        let events = self.parser.as_mut().map(AnswerParser::finish).unwrap_or_default();
        self.parts(events).await
    }
}

/// The logarithms of probabilities that came with a piece.
fn logprobs_of(tokenizer: &Tokenizer, piece: &Piece) -> Option<Value> {
    let (token, logprobs) = (piece.token?, piece.logprobs.as_ref()?);
    let entry = |token: u32, logprob: f32| {
        let bytes = tokenizer.token_bytes(token, RenderSpecial::Yes);
        // JSON has no infinity; a probability of 0 is null.
        json!({ "token": String::from_utf8_lossy(&bytes), "id": token, "logprob": logprob, "bytes": &bytes[..] })
    };
    let top: Vec<Value> = logprobs.top.iter().map(|&(token, logprob)| entry(token, logprob)).collect();
    let mut object = entry(token, logprobs.logprob);
    object["top_logprobs"] = top.into();
    Some(object)
}
