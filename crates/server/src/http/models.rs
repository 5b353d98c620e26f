//! The list of models, and their states.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;
use serde_json::{Value, json};
use tokio::time::{Duration, timeout};

use super::body;
use super::extract::InPath;
use super::respond::{json as respond, stream_headers};
use crate::app::App;
use crate::dialect::openai::models;
use crate::error::{ApiError, Kind};
use crate::models::{Listed, News};

/// Silence after which a stream of events gives a sign of life.
const SILENCE: Duration = Duration::from_secs(15);

/// Tells something about models, which may read the heads of their files.
pub(super) async fn of_all<T: Send + 'static>(
    app: Arc<App>,
    f: impl FnOnce(&[Listed]) -> T + Send + 'static,
) -> Result<T, ApiError> {
    app.models.refresh_soon().await;
    let told = tokio::task::spawn_blocking(move || f(&app.models.listed())).await;
    told.map_err(|_| ApiError::new(Kind::Internal, "the models cannot be listed"))
}

pub(super) async fn list(State(app): State<Arc<App>>) -> Result<Response<Body>, ApiError> {
    Ok(respond(&of_all(app, models::list).await?))
}

pub(super) async fn one(State(app): State<Arc<App>>, InPath(id): InPath) -> Result<Response<Body>, ApiError> {
    let missing = ApiError::new(Kind::Model, format!("the model `{id}` does not exist"));
    of_all(app, move |all| models::find(all, &id)).await?.map(|model| respond(&model)).ok_or(missing)
}

/// The id of the model that a body names.
async fn named(app: &App, request: Request) -> Result<String, ApiError> {
    let body = body::json(request.into_body(), app.bounds().max_body).await?;
    app.models.find(Some(models::named(&body)?), false).await
}

fn done() -> Response<Body> {
    respond(&json!({"success": true}))
}

/// Starts to load a model.
pub(super) async fn load(State(app): State<Arc<App>>, request: Request) -> Result<Response<Body>, ApiError> {
    app.models.load(&named(&app, request).await?).await.map(|()| done())
}

/// Frees a model when its requests have ended.
pub(super) async fn unload(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    app.models.unload(&named(&app, request).await?).map(|()| done())
}

/// Changes of models as they happen.
pub(super) async fn events(State(app): State<Arc<App>>) -> Response<Body> {
    let changes = app.models.changes();
    let mut news = News::default();
    news.next(app.models.shelf().entries());
    let chunks = futures_util::stream::unfold((app, changes, news), async |(app, mut changes, mut news)| {
        loop {
            let change = timeout(SILENCE, changes.changed()).await;
            let text = match change {
                // The server ends.
                Ok(Err(_)) => return None,
                Ok(Ok(())) => {
                    let events = news.next(app.models.shelf().entries());
                    events.iter().map(|event: &Value| format!("data: {event}\n\n")).collect::<String>()
                }
                Err(_) => ":\n\n".into(),
            };
            if !text.is_empty() {
                return Some((Ok::<_, Infallible>(text), (app, changes, news)));
            }
        }
    });
    let mut response = Response::new(Body::from_stream(chunks));
    stream_headers(response.headers_mut(), "text/event-stream");
    response
}
