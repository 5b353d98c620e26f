//! The hub's socket: workers join here, and fetch weights.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::body::Body;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::header::{AUTHORIZATION, CONNECTION, CONTENT_RANGE, CONTENT_TYPE, HeaderMap, ORIGIN, RANGE};
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse as _;
use axum::routing::get;
use chaski_wire::{HEADER, Hex, Limits};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::catalogue::SKELETON;
use super::door::{Caller, Door};
use super::session::{self, Hall};
use super::status::{self, STATUS};

/// Path of the WebSocket.
pub(crate) const SOCKET: &str = "/swarm";
/// Connections of workers at once, joined or not yet.
const CONNECTIONS: usize = 128;
/// Longest range in one answer, in bytes.
pub(crate) const LONGEST: u64 = 64 << 20;

#[derive(Clone)]
struct Shared {
    hall: Arc<Hall>,
    connections: Arc<Semaphore>,
}

/// Binds the socket.
///
/// # Errors
/// Those of the system.
pub(crate) async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen for workers on {address}"))
}

/// Serves workers; never ready unless the socket fails.
pub(crate) async fn serve(listener: TcpListener, hall: Arc<Hall>) -> std::io::Result<()> {
    let shared = Shared { hall, connections: Arc::new(Semaphore::new(CONNECTIONS)) };
    let router = Router::new()
        .route(SOCKET, get(join))
        .route(SKELETON, get(skeleton))
        .route("/swarm/tensor/{name}", get(tensor))
        .route(STATUS, get(show))
        .with_state(shared);
    axum::serve(Door::new(listener), router.into_make_service_with_connect_info::<Caller>()).await
}

/// A worker. Pages of other origins may not join: a browser sends `Origin`, and a native worker none.
async fn join(
    State(shared): State<Shared>,
    ConnectInfo(Caller(peer)): ConnectInfo<Caller>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response<Body> {
    if headers.contains_key(ORIGIN) {
        return refused(StatusCode::FORBIDDEN, "pages cannot join");
    }
    let Ok(permit) = shared.connections.clone().try_acquire_owned() else {
        return refused(StatusCode::SERVICE_UNAVAILABLE, "too many workers");
    };
    let longest = Limits::default().frame as usize + HEADER;
    let upgrade = upgrade.max_message_size(longest).max_frame_size(longest);
    upgrade.on_upgrade(move |socket| async move {
        session::serve(socket, shared.hall, peer.ip()).await;
        drop(permit);
    })
}

/// The skeleton of the model, for workers that have joined.
async fn skeleton(State(shared): State<Shared>, headers: HeaderMap) -> Response<Body> {
    if !is_worker(&shared, &headers) {
        return refused(StatusCode::FORBIDDEN, "no worker has this key");
    }
    shared.hall.catalogue.skeleton().0.to_vec().into_response()
}

fn is_worker(shared: &Shared, headers: &HeaderMap) -> bool {
    key(headers).is_some_and(|key| shared.hall.core.units_of(&key).is_some())
}

/// A range of a tensor, within the units of the worker that asks.
async fn tensor(
    State(shared): State<Shared>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response<Body> {
    let (Some(key), Some(range)) = (key(&headers), range(&headers)) else {
        return refused(StatusCode::BAD_REQUEST, "expected a key and one range of at most 64 MiB");
    };
    let hall = shared.hall.clone();
    let made = tokio::task::spawn_blocking(move || {
        let catalogue = &hall.catalogue;
        let units = hall.core.units_of(&key);
        let is_allowed = units.is_some_and(|units| catalogue.is_within(&units, &name, &range));
        is_allowed.then(|| (catalogue.read(&name, range.start, range.end - range.start), range))
    });
    match made.await {
        Ok(Some((Ok(bytes), range))) => {
            let part = format!("bytes {}-{}/*", range.start, range.end - 1);
            (StatusCode::PARTIAL_CONTENT, [(CONTENT_RANGE, part)], bytes).into_response()
        }
        Ok(None) => refused(StatusCode::FORBIDDEN, "the range is not assigned to a worker with this key"),
        Ok(Some((Err(error), _))) => {
            tracing::error!("weights for a worker: {error:#}");
            refused(StatusCode::INTERNAL_SERVER_ERROR, "the weights cannot be read")
        }
        Err(_) => refused(StatusCode::INTERNAL_SERVER_ERROR, "the weights cannot be read"),
    }
}

/// The state of the swarm, for programs on this machine.
async fn show(
    State(shared): State<Shared>,
    ConnectInfo(Caller(peer)): ConnectInfo<Caller>,
) -> Response<Body> {
    if !peer.ip().is_loopback() {
        return refused(StatusCode::FORBIDDEN, "only programs on the hub's machine may ask");
    }
    match serde_json::to_vec(&status::of(&shared.hall.core)) {
        Ok(json) => ([(CONTENT_TYPE, "application/json")], json).into_response(),
        Err(_) => refused(StatusCode::INTERNAL_SERVER_ERROR, "the status cannot be written"),
    }
}

fn refused(status: StatusCode, text: &'static str) -> Response<Body> {
    // Strangers do not stay.
    (status, [(CONNECTION, "close")], text).into_response()
}

/// The key of a request.
fn key(headers: &HeaderMap) -> Option<Hex<16>> {
    headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")?.parse().ok()
}

/// The range of a request: `bytes=FIRST-LAST`.
fn range(headers: &HeaderMap) -> Option<Range<u64>> {
    let (first, last) = headers.get(RANGE)?.to_str().ok()?.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let end = last.checked_add(1)?;
    (first < end && end - first <= LONGEST).then_some(first..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_one_and_bounded() {
        let of = |text: &str| range(&HeaderMap::from_iter([(RANGE, text.parse().unwrap())]));
        assert_eq!(of("bytes=0-0"), Some(0..1));
        assert_eq!(of("bytes=5-9"), Some(5..10));
        let most = format!("bytes=0-{}", LONGEST - 1);
        assert_eq!(of(&most), Some(0..LONGEST));
        let most = format!("bytes=0-{}", u64::MAX);
        for wrong in ["bytes=5-4", "bytes=-5", "bytes=5-", "5-9", "bytes=0-1,4-5", "bytes=0-67108864", &most]
        {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
