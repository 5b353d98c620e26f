//! OpenAI's responses, which a server may keep so that requests go on from them.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::Response;
use chaski::ChatEvent;
use serde_json::{Value, json};

use super::answer::{Wrap, answer};
use super::body;
use super::extract::InPath;
use super::guard::Caller;
use super::llama;
use super::respond::json as respond;
use crate::answers::Outcome;
use crate::app::App;
use crate::dialect::{Dialect, Frame, Ping, Told, Wire, Writer, openai};
use crate::error::{ApiError, Kind};
use crate::fields::Fields;
use crate::kept::Kept;

static RESPONSES: Dialect = Dialect {
    ask: openai::responses::ask,
    wire: Wire::Events { ends: false, ping: Ping::Comment },
    needs_model: false,
    prefix: "resp_",
};

pub(super) async fn create(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let path = request.uri().path().to_owned();
    let mut asked = body::json(request.into_body(), app.bounds().max_body).await?;
    let turn = Turn::begin(&app, &caller, &mut asked)?;
    let n_before = turn.as_ref().map_or(0, |turn| turn.n_before);
    let wrap = turn.map(|turn| -> Wrap { Box::new(|writer| Box::new(Keeping { writer, turn })) });
    let result = answer(app, &RESPONSES, caller, path, asked, wrap).await;
    result.map_err(|error| of_own_item(error, n_before))
}

/// The number of tokens of an input, with the turns before it.
pub(super) async fn count(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let mut asked = body::json(request.into_body(), app.bounds().max_body).await?;
    let n_before = Turn::begin(&app, &caller, &mut asked)?.map_or(0, |turn| turn.n_before);
    let result = llama::answer(app, asked, openai::responses::input_tokens).await;
    result.map_err(|error| of_own_item(error, n_before))
}

/// A response that is kept.
pub(super) async fn one(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    InPath(id): InPath,
) -> Result<Response<Body>, ApiError> {
    let kept = app.responses.find(&id, caller.client);
    kept.map(|kept| respond(&kept.response)).ok_or_else(|| missing(&app, &id))
}

pub(super) async fn forget(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    InPath(id): InPath,
) -> Result<Response<Body>, ApiError> {
    match app.responses.forget(&id, caller.client) {
        true => Ok(respond(&json!({"id": id, "object": "response", "deleted": true}))),
        false => Err(missing(&app, &id)),
    }
}

fn missing(app: &App, id: &str) -> ApiError {
    let why = if app.responses.is_on() { "" } else { ": the server stores none (see --store)" };
    ApiError::new(Kind::Path, format!("there is no response `{id}`{why}"))
}

/// A turn of a conversation whose responses may be kept.
struct Turn {
    app: Arc<App>,
    client: u64,
    /// Name of the response before it.
    previous: Option<String>,
    /// Its response is kept.
    keeps: bool,
    /// Items before those of the request.
    n_before: usize,
    items: Vec<Arc<Value>>,
}

impl Turn {
    /// Puts the conversation before a request in front of its input. `None` if the server keeps no responses.
    ///
    /// # Errors
    /// A previous response that is not there; fields of wrong types.
    fn begin(app: &Arc<App>, caller: &Caller, asked: &mut Value) -> Result<Option<Turn>, ApiError> {
        if !app.responses.is_on() {
            return Ok(None);
        }
        let fields = Fields::of(asked, "")?;
        let keeps = fields.flag("store")?.unwrap_or(true);
        let previous = fields.text("previous_response_id")?.map(String::from);
        let mut items = match &previous {
            None => Vec::new(),
            Some(id) => {
                let missing = || {
                    fields.wrong(
                        "previous_response_id",
                        format!("the name of a response that is kept, and `{id}` is none"),
                    )
                };
                app.responses.find(id, caller.client).ok_or_else(missing)?.items
            }
        };
        let mut n_before = items.len();
        match &asked["input"] {
            Value::String(text) => {
                items.push(Arc::new(json!({"type": "message", "role": "user", "content": text})));
            }
            Value::Array(list) => items.extend(list.iter().cloned().map(Arc::new)),
            // The dialect refuses it.
            _ => n_before = 0,
        }
        if n_before > 0 {
            asked["input"] = items.iter().map(|item| Value::clone(item)).collect();
        }
        if let Some(map) = asked.as_object_mut() {
            map.remove("previous_response_id");
        }
        let (app, client) = (app.clone(), caller.client);
        Ok(Some(Turn { app, client, previous, keeps, n_before, items }))
    }

    /// Tells in a response what it goes on from.
    fn mark(&self, response: &mut Value) {
        response["previous_response_id"] = self.previous.as_deref().into();
        response["store"] = self.keeps.into();
    }

    /// Keeps a response that has ended.
    fn keep(&self, response: &Value) {
        if !self.keeps {
            return;
        }
        let mut items = self.items.clone();
        items.extend(response["output"].as_array().into_iter().flatten().cloned().map(Arc::new));
        let id = response["id"].as_str().unwrap_or_default().to_owned();
        self.app.responses.add(Kept { id, client: self.client, response: response.clone(), items });
    }
}

/// An error in an item, by the place that it has in the request.
fn of_own_item(mut error: ApiError, n_before: usize) -> ApiError {
    let place = |path: &str| -> Option<(String, String)> {
        let (index, _) = path.strip_prefix("input[")?.split_once(']')?;
        let own = index.parse::<usize>().ok()?.checked_sub(n_before)?;
        Some((format!("input[{index}]"), format!("input[{own}]")))
    };
    if let Some((found, own)) = error.param.as_deref().and_then(place) {
        error.message = error.message.replace(&found, &own);
        error.param = error.param.map(|path| path.replacen(&found, &own, 1));
    }
    error
}

/// Writes a response, and keeps it.
struct Keeping {
    writer: Box<dyn Writer>,
    turn: Turn,
}

impl Keeping {
    fn marked(&self, mut frames: Vec<Frame>) -> Vec<Frame> {
        for frame in &mut frames {
            let Frame::Event(name, data) = frame else { continue };
            if data["response"].is_object() {
                self.turn.mark(&mut data["response"]);
                if matches!(*name, "response.completed" | "response.incomplete") {
                    self.turn.keep(&data["response"]);
                }
            }
        }
        frames
    }
}

impl Writer for Keeping {
    fn whole(&mut self, told: &Told, outcomes: &[Outcome]) -> Value {
        let mut response = self.writer.whole(told, outcomes);
        self.turn.mark(&mut response);
        self.turn.keep(&response);
        response
    }

    fn event(&mut self, told: &Told, index: usize, event: &ChatEvent) -> Vec<Frame> {
        let frames = self.writer.event(told, index, event);
        self.marked(frames)
    }

    fn end(&mut self, told: &Told) -> Vec<Frame> {
        self.writer.end(told)
    }

    fn failed(&mut self, told: &Told, error: &ApiError) -> Option<Vec<Frame>> {
        let frames = self.writer.failed(told, error)?;
        Some(self.marked(frames))
    }
}
