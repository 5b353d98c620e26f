//! ollama's endpoints.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::Response;
use axum::routing::{any, delete, get, post};
use serde_json::{Value, json};

use super::answer::answer;
use super::body;
use super::endpoint::{self, refuse};
use super::guard::Caller;
use super::models::of_all;
use super::pulls;
use super::respond::json as respond;
use crate::app::App;
use crate::dialect::ollama::{Only, chat, generate, keep_alive, models};
use crate::dialect::{Dialect, Wire};
use crate::error::{ApiError, Kind};
use crate::fields::Fields;
use crate::models::KeepAlive;
use crate::openapi as api;

/// An endpoint that answers, or only loads the model.
struct Endpoint {
    dialect: Dialect,
    /// The wish of a body that asks for no answer.
    only: fn(&Value) -> Result<Option<Only>, ApiError>,
    /// The field of an answer, and its value without one.
    empty: (&'static str, fn() -> Value),
}

static CHAT: Endpoint = Endpoint {
    dialect: Dialect { ask: chat::ask, wire: Wire::Lines, needs_model: true, prefix: "chat-" },
    only: chat::only,
    empty: ("message", || json!({"role": "assistant", "content": ""})),
};
static GENERATE: Endpoint = Endpoint {
    dialect: Dialect { ask: generate::ask, wire: Wire::Lines, needs_model: true, prefix: "gen-" },
    only: generate::only,
    empty: ("response", || json!("")),
};

/// All operations of this dialect.
pub(super) fn endpoints() -> Vec<endpoint::Endpoint> {
    vec![
        (&api::OLLAMA_CHAT, post(async |app, caller, request| asked(&CHAT, app, caller, request).await)),
        (
            &api::OLLAMA_GENERATE,
            post(async |app, caller, request| asked(&GENERATE, app, caller, request).await),
        ),
        (&api::OLLAMA_TAGS, get(tags)),
        (&api::OLLAMA_PS, get(ps)),
        (&api::OLLAMA_SHOW, post(show)),
        (&api::OLLAMA_VERSION, get(async || respond(&models::version()))),
        (&api::OLLAMA_CREATE, post(refuse(&api::OLLAMA_CREATE))),
        (&api::OLLAMA_PUSH, post(refuse(&api::OLLAMA_PUSH))),
        (&api::OLLAMA_PULL, post(pulls::pull)),
        (&api::OLLAMA_COPY, post(pulls::copy)),
        (&api::OLLAMA_BLOBS, any(refuse(&api::OLLAMA_BLOBS))),
        (&api::OLLAMA_DELETE, delete(pulls::delete)),
    ]
}

/// How long a model stays after a request, if that says so.
pub(super) struct Stays(Option<KeepAlive>);

impl Stays {
    /// Reads `keep_alive`.
    ///
    /// # Errors
    /// A value that is no time.
    pub(super) fn of(body: &Value) -> Result<Stays, ApiError> {
        Ok(Stays(keep_alive(&Fields::of(body, "")?)?))
    }

    /// Only an operator decides it.
    pub(super) fn keep(self, app: &App, caller: &Caller, id: &str) {
        if let Some(time) = self.0.filter(|_| caller.is_admin) {
            app.models.keep(id, time);
        }
    }
}

async fn asked(
    endpoint: &'static Endpoint,
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let path = request.uri().path().to_owned();
    let body = body::json(request.into_body(), app.bounds().max_body).await?;
    let name = Some(body::named_model(&body)?);
    let stays = Stays::of(&body)?;
    let only = (endpoint.only)(&body)?;
    let id = app.model_id(name).await?;
    match only {
        Some(Only::Unload) => {
            caller.admin()?;
            // One that is not loaded is what was asked for.
            if app.models.served(&id).is_some() {
                app.models.unload(&id)?;
            }
        }
        Some(Only::Load) => drop(app.model(name).await?),
        None => {}
    }
    if only != Some(Only::Unload) {
        stays.keep(&app, &caller, &id);
    }
    match only {
        None => answer(app, &endpoint.dialect, caller, path, body, None).await,
        Some(only) => {
            let mut response = only.response(&id);
            response[endpoint.empty.0] = (endpoint.empty.1)();
            Ok(respond(&response))
        }
    }
}

async fn tags(State(app): State<Arc<App>>) -> Result<Response<Body>, ApiError> {
    Ok(respond(&of_all(app, models::tags).await?))
}

async fn ps(State(app): State<Arc<App>>) -> Response<Body> {
    respond(&models::ps(&app.models.listed()))
}

async fn show(State(app): State<Arc<App>>, request: Request) -> Result<Response<Body>, ApiError> {
    let body = body::json(request.into_body(), app.bounds().max_body).await?;
    let id = app.model_id(Some(models::shown(&body)?)).await?;
    let found = of_all(app, move |all| all.iter().find(|listed| listed.offer.id == id).map(models::show));
    let gone = || ApiError::new(Kind::Model, "the model is no longer there");
    Ok(respond(&found.await?.ok_or_else(gone)??))
}
