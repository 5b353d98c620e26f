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
use chaski_server::TlsAcceptor;
use chaski_wire::{HEADER, Hex, Limits};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::catalogue::SKELETON;
use super::door::{Caller, Door};
use super::join::{self, JOIN};
use super::pages::{NO_PAGES, PLAN, PagePlan, Pages};
use super::session::{self, Hall};
use super::status::{self, STATUS};

/// Path of the WebSocket.
pub(crate) const SOCKET: &str = "/swarm";
/// Connections of workers at once, joined or not yet.
const CONNECTIONS: usize = 128;
/// Longest range of a tensor in one answer, in bytes. A packed expert comes as a whole.
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
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<Arc<TlsAcceptor>>,
    hall: Arc<Hall>,
) -> std::io::Result<()> {
    let shared = Shared { hall, connections: Arc::new(Semaphore::new(CONNECTIONS)) };
    let mut router = Router::new()
        .route(SOCKET, get(enter))
        .route(SKELETON, get(skeleton))
        .route("/swarm/tensor/{name}", get(tensor))
        .route(STATUS, get(show));
    if shared.hall.pages.is_some() {
        router = router
            .route("/", get(join::page))
            .route(JOIN, get(join::page))
            .route("/join/{name}", get(join::file))
            .route(PLAN, get(plan).options(preflight))
            .route("/swarm/packed/{layer}", get(packed).options(preflight));
    }
    let router = router.with_state(shared);
    axum::serve(Door::new(listener, tls), router.into_make_service_with_connect_info::<Caller>()).await
}

/// A worker: a program, or a page of the hub or of an origin that it allows. A browser sends `Origin`, and a program
/// none.
async fn enter(
    State(shared): State<Shared>,
    ConnectInfo(Caller(peer)): ConnectInfo<Caller>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response<Body> {
    let is_page = headers.contains_key(ORIGIN);
    match &shared.hall.pages {
        None if is_page => return refused(StatusCode::FORBIDDEN, NO_PAGES),
        Some(pages) if is_page && !join::is_welcome(&headers, &pages.origins) => {
            return refused(
                StatusCode::FORBIDDEN,
                "pages of this origin cannot join: --swarm-origin allows it",
            );
        }
        _ => {}
    }
    let Ok(permit) = shared.connections.clone().try_acquire_owned() else {
        return refused(StatusCode::SERVICE_UNAVAILABLE, "too many workers");
    };
    let longest = Limits::default().frame as usize + HEADER;
    let upgrade = upgrade.max_message_size(longest).max_frame_size(longest);
    upgrade.on_upgrade(move |socket| async move {
        session::serve(socket, shared.hall, peer.ip(), is_page).await;
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
    let of_head = key(&headers).zip(range(&headers)).filter(|(_, range)| range.end - range.start <= LONGEST);
    let Some((key, range)) = of_head else {
        return refused(StatusCode::BAD_REQUEST, "expected a key and one range of at most 64 MiB");
    };
    let hall = shared.hall.clone();
    let made = tokio::task::spawn_blocking(move || {
        let catalogue = &hall.catalogue;
        let units = hall.core.units_of(&key);
        let is_allowed = units.is_some_and(|units| catalogue.is_within(&units, &name, &range));
        is_allowed.then(|| (catalogue.read(&name, range.start, range.end - range.start), range))
    });
    ranged(made.await)
}

/// Bytes of a range, or why they cannot be read; `None` if they are not the worker's.
type Ranged = Option<(anyhow::Result<Vec<u8>>, Range<u64>)>;

/// The answer to a request for a range.
fn ranged(made: Result<Ranged, tokio::task::JoinError>) -> Response<Body> {
    match made {
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

/// Answers a browser that asks what it may ask.
async fn preflight(State(shared): State<Shared>, headers: HeaderMap) -> Response<Body> {
    for_page(&shared, &headers, StatusCode::NO_CONTENT.into_response())
}

fn for_page(shared: &Shared, headers: &HeaderMap, response: Response<Body>) -> Response<Body> {
    let others = shared.hall.pages.as_ref().map_or(&[][..], |pages| &pages.origins);
    join::unkept(join::shared(headers, others, response))
}

/// The plan of the page that asks.
async fn plan(State(shared): State<Shared>, headers: HeaderMap) -> Response<Body> {
    let plan = key(&headers).and_then(|key| plan_of(&shared, &key));
    let response = match plan {
        Some(plan) => ([(CONTENT_TYPE, "application/json")], plan.json()).into_response(),
        None => refused(StatusCode::FORBIDDEN, "no page has this key"),
    };
    for_page(&shared, &headers, response)
}

fn plan_of(shared: &Shared, key: &Hex<16>) -> Option<Arc<PagePlan>> {
    shared.hall.core.units_of(key)?;
    shared.hall.pages.as_ref().and_then(|pages: &Pages| pages.of(key))
}

/// A packed expert of a page's units.
async fn packed(State(shared): State<Shared>, Path(layer): Path<u16>, headers: HeaderMap) -> Response<Body> {
    let Some((key, range)) = key(&headers).zip(range(&headers)) else {
        let response = refused(StatusCode::BAD_REQUEST, "expected a key and the range of one expert");
        return for_page(&shared, &headers, response);
    };
    let of_key = shared.hall.core.units_of(&key).zip(plan_of(&shared, &key));
    let made = tokio::task::spawn_blocking(move || {
        let (units, plan) = of_key?;
        plan.range(&units, layer, &range).map(|bytes| (bytes, range))
    });
    for_page(&shared, &headers, ranged(made.await))
}

/// The state of the swarm, for programs on this machine: pages of somebody's name that points here are none.
async fn show(
    State(shared): State<Shared>,
    ConnectInfo(Caller(peer)): ConnectInfo<Caller>,
    headers: HeaderMap,
) -> Response<Body> {
    if !peer.ip().is_loopback() {
        return refused(StatusCode::FORBIDDEN, "only programs on the hub's machine may ask");
    }
    if !join::is_here(&headers) {
        return refused(StatusCode::FORBIDDEN, "the hub is asked by an address or as localhost");
    }
    match serde_json::to_vec(&status::of(&shared.hall.core)) {
        Ok(json) => ([(CONTENT_TYPE, "application/json")], json).into_response(),
        Err(_) => refused(StatusCode::INTERNAL_SERVER_ERROR, "the status cannot be written"),
    }
}

fn refused(status: StatusCode, text: &'static str) -> Response<Body> {
    // Strangers do not stay.
    join::unkept((status, [(CONNECTION, "close")], text).into_response())
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
    (first < end).then_some(first..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_one() {
        let of = |text: &str| range(&HeaderMap::from_iter([(RANGE, text.parse().unwrap())]));
        assert_eq!(of("bytes=0-0"), Some(0..1));
        assert_eq!(of("bytes=5-9"), Some(5..10));
        assert_eq!(of("bytes=0-99000000"), Some(0..99_000_001));
        let most = format!("bytes=0-{}", u64::MAX);
        for wrong in ["bytes=5-4", "bytes=-5", "bytes=5-", "5-9", "bytes=0-1,4-5", &most] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
