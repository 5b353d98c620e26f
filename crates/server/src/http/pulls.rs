//! Models that operators fetch, name and delete, as ollama's clients ask for it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;
use tokio::sync::watch::Receiver;
use tokio::time::timeout;

use super::body;
use super::respond::{json as respond, stream_headers, with_type};
use crate::app::App;
use crate::dialect::ollama::{models, pulls};
use crate::error::{ApiError, Kind};
use crate::models::Store;
use crate::pulls::{Progress, Pull};

/// Time between two lines of progress.
const PACE: Duration = Duration::from_millis(100);

/// Time in which requests of a model that is deleted may end.
const USED: Duration = Duration::from_secs(60);

/// The store of models.
fn store(app: &App) -> Result<&Arc<dyn Store>, ApiError> {
    let missing =
        || ApiError::new(Kind::Unsupported, "this server keeps no models: it cannot fetch or name any");
    app.config.store.as_ref().ok_or_else(missing)
}

pub(super) async fn pull(State(app): State<Arc<App>>, request: Request) -> Result<Response<Body>, ApiError> {
    let asked = body::json(request.into_body(), app.bounds().max_body).await?;
    let (name, streams) = pulls::pulled(&asked)?;
    let pull = app.pulls.of(name, store(&app)?, &app.models)?;
    let mut progress = pull.progress();
    if !streams {
        ended(&mut progress).await?;
        return Ok(respond(&pulls::success()));
    }
    // A failure before the files are known is a status.
    let begun = progress.wait_for(|now| !now.files.is_empty() || now.ended.is_some());
    let _ = timeout(app.config.stream_head, begun).await;
    if let Some(Err(error)) = &progress.borrow().ended {
        return Err(error.clone());
    }
    let told =
        Told { _pull: pull, progress, lines: pulls::Lines::default(), has_begun: false, has_ended: false };
    let mut response = Response::new(Body::from_stream(futures_util::stream::unfold(told, Told::next)));
    stream_headers(response.headers_mut(), "application/x-ndjson");
    Ok(response)
}

/// Waits for the end of a download.
async fn ended(progress: &mut Receiver<Progress>) -> Result<(), ApiError> {
    let ended = progress.wait_for(|now| now.ended.is_some()).await;
    ended.ok().and_then(|now| now.ended.clone()).unwrap_or_else(|| Err(lost()))
}

fn lost() -> ApiError {
    ApiError::new(Kind::Internal, "the download ended without a result")
}

/// A client that is told the progress of a download.
struct Told {
    /// The download goes on as long as somebody holds it.
    _pull: Arc<Pull>,
    progress: Receiver<Progress>,
    lines: pulls::Lines,
    has_begun: bool,
    has_ended: bool,
}

impl Told {
    /// The next lines.
    async fn next(mut self) -> Option<(Result<String, Infallible>, Told)> {
        while !self.has_ended {
            if std::mem::replace(&mut self.has_begun, true) {
                let mut end = self.progress.clone();
                let _ = timeout(PACE, ended(&mut end)).await;
            }
            let lines = {
                let now = self.progress.borrow_and_update();
                self.has_ended = now.ended.is_some();
                self.lines.next(&now)
            };
            if !lines.is_empty() {
                return Some((Ok(lines.iter().map(|line| format!("{line}\n")).collect()), self));
            }
            if self.progress.changed().await.is_err() {
                self.has_ended = true;
                return Some((Ok(format!("{}\n", lost().ollama())), self));
            }
        }
        None
    }
}

pub(super) async fn copy(State(app): State<Arc<App>>, request: Request) -> Result<Response<Body>, ApiError> {
    let asked = body::json(request.into_body(), app.bounds().max_body).await?;
    let (source, name) = pulls::copied(&asked)?;
    let store = store(&app)?.clone();
    let id = app.models.find(Some(source), false).await?;
    let (name, models) = (name.to_owned(), app.models.clone());
    body::read(move || {
        store
            .copy(&id, &name)
            .map_err(|error| ApiError { param: Some("destination".into()), ..error.into() })?;
        models.refresh();
        Ok(())
    })
    .await?;
    Ok(with_type("", "text/plain"))
}

pub(super) async fn delete(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response<Body>, ApiError> {
    let asked = body::json(request.into_body(), app.bounds().max_body).await?;
    let name = models::shown(&asked)?.to_owned();
    let store = store(&app)?.clone();
    let id = app.models.find(Some(&name), false).await?;
    let (of_thread, models) = (id.clone(), app.models.clone());
    let removal = body::read(move || {
        let removal = store.delete(&of_thread, &name)?;
        models.refresh();
        Ok(removal)
    })
    .await?;
    if let Some(removal) = removal {
        // Files that are in use cannot be deleted everywhere.
        app.models.gone(&id, USED).await;
        body::read(move || removal().map_err(ApiError::from)).await?;
    }
    Ok(with_type("", "text/plain"))
}
