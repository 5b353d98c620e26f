//! Admission: names of the host, origins of pages, keys.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Extension, MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::IntoResponse as _;

use super::page;
use super::respond::{request_id_header, told};
use crate::app::App;
use crate::config::{Access, Answered, Entry, Prompted};
use crate::error::{ApiError, Kind};
use crate::ids;
use crate::keys::{Level, find};
use crate::openapi::{self as api, Access as Allowed, Operation};
use crate::proxies::Sender;
use crate::spans::Span;
use crate::trace::{TRACEPARENT, Trace};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The client of a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// Name of the request.
    pub(crate) id: String,
    /// Name of its key, if keys are required.
    pub(crate) key: Option<String>,
    /// Address of the client, if it has one.
    pub(crate) address: Option<IpAddr>,
    /// Number of its key for the scheduler.
    pub(crate) client: u64,
    /// It may change what the server does for all.
    pub(crate) is_admin: bool,
    /// The trace of which the request is a part.
    pub(crate) trace: Option<Trace>,
    /// Its span, if somebody keeps it.
    pub(crate) span: Span,
    /// The log has a line of its results, or will have.
    pub(crate) is_told: Arc<AtomicBool>,
}

impl Caller {
    /// The key whose limits hold for it, if keys are required.
    pub(crate) fn limited(&self) -> Option<u64> {
        self.key.is_some().then_some(self.client)
    }

    /// Takes note of results without an answer: embeddings or scores of texts with so many tokens.
    pub(crate) fn read(&self, app: &App, what: &'static str, model: &str, n_token: usize, start: Instant) {
        app.metrics.read(model, n_token, start.elapsed());
        self.span.read(what, model, n_token);
        self.is_told.store(true, Ordering::Relaxed);
        app.log(&Entry::Answered(Answered {
            id: self.id.clone(),
            trace_id: self.trace.map(|trace| trace.name()),
            key: self.key.clone(),
            client: self.address,
            status: 200,
            model: model.to_owned(),
            n_prompt: n_token,
            finish: "stop",
            ..Answered::default()
        }));
    }

    /// Logs the texts that go to a model, where the configuration says so.
    pub(crate) fn prompts<T: Into<String>>(&self, app: &App, model: &str, texts: impl Iterator<Item = T>) {
        if !app.config.log_prompts {
            return;
        }
        for text in texts {
            let (id, key, model) = (self.id.clone(), self.key.clone(), model.to_owned());
            app.log(&Entry::Prompted(Prompted { id, key, model, text: text.into() }));
        }
    }

    /// Refuses a client that is no operator of the server.
    ///
    /// # Errors
    /// [`Kind::Forbidden`].
    pub(crate) fn admin(&self) -> Result<(), ApiError> {
        if self.is_admin {
            return Ok(());
        }
        let message = match self.key {
            Some(_) => "this key may not do that: it takes one with the level `admin`",
            None => "without keys, only programs of this machine may do that",
        };
        Err(ApiError::new(Kind::Forbidden, message))
    }
}

/// The address of a client; none on a socket of the file system.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Peer(pub(crate) Option<IpAddr>);

/// The outermost layer: it names requests, refuses, answers preflights, and writes errors and the log.
pub(crate) async fn guard(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response<Body> {
    let start = Instant::now();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let version = request.version();
    let id = request_id(request.headers());
    let origin = request.headers().get(header::ORIGIN).cloned();
    let peer = request.extensions().get::<Peer>().and_then(|peer| peer.0);
    let sender = Sender::of(peer, request.headers(), &app.config.trusted_proxies);
    let mut caller = Caller {
        id: id.clone(),
        key: None,
        address: sender.address,
        client: 0,
        is_admin: false,
        trace: app.spans.trace(Trace::of(request.headers())),
        span: Span::default(),
        is_told: Arc::default(),
    };
    let is_told = caller.is_told.clone();
    let admitted = admit(&app, &request, sender, &mut caller);
    let (key, trace) = (caller.key.clone(), caller.trace);
    let is_preflight = method == Method::OPTIONS;
    if admitted.is_ok() && !is_preflight {
        caller.span = app.spans.begin(trace, &method, &path, start);
    }
    let span = caller.span.clone();
    let response = match admitted {
        Err(error) => error.into_response(),
        Ok(()) if is_preflight => preflight(request.headers()),
        Ok(()) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
    };
    let route = response.extensions().get::<MatchedPath>().cloned();
    let refusal = response.extensions().get::<ApiError>().and_then(|error| error.kind.refusal());
    let mut response = told(response, &path, &id, app.config.full_status);
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id) {
        if let Some(name) = request_id_header(&path) {
            headers.insert(name, id.clone());
        }
        headers.insert(REQUEST_ID, id);
    }
    if let Some(value) = trace.and_then(|trace| HeaderValue::from_str(&trace.header()).ok()) {
        headers.insert(TRACEPARENT, value);
    }
    if let Some(origin) = origin.filter(|origin| allows_origin(&app, origin)) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.append(header::VARY, HeaderValue::from_static("origin"));
        headers.insert(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("x-request-id, request-id, x-chaski-model, x-chaski-queue, x-chaski-kv, retry-after, traceparent"),
        );
    }
    // Clients with connections that stay open go elsewhere; HTTP/2 says so by itself.
    if app.is_closed.load(Ordering::Relaxed) && version < Version::HTTP_2 {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let status = response.status().as_u16();
    let route = route.as_ref().map(MatchedPath::as_str);
    app.metrics.http(route, status, refusal);
    span.responded(status);
    let trace_id = trace.map(|trace| trace.name());
    let is_only = method == Method::POST && !is_told.load(Ordering::Relaxed);
    let (method, time) = (method.to_string(), start.elapsed());
    let access = Access { id, trace_id, key, client: sender.address, method, path, status, time, is_only };
    app.log(&Entry::Access(access));
    response
}

/// Tells the outermost layer which path of the router a request had.
pub(crate) async fn mark(path: MatchedPath, request: Request, next: Next) -> Response<Body> {
    let mut response = next.run(request).await;
    response.extensions_mut().insert(path);
    response
}

/// The layer of operations for operators of the server.
pub(crate) async fn admins(
    Extension(caller): Extension<Caller>,
    request: Request,
    next: Next,
) -> Result<Response<Body>, ApiError> {
    caller.admin()?;
    Ok(next.run(request).await)
}

/// The name of a request: the client's, or a new one.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let fits = |id: &&str| (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
    given.filter(fits).map_or_else(|| ids::new("req_"), String::from)
}

fn admit(app: &App, request: &Request, sender: Sender, caller: &mut Caller) -> Result<(), ApiError> {
    let keys = app.keys();
    let headers = request.headers();
    // Programs on the way and the server could mean different ones.
    if headers.get_all(header::HOST).iter().count() > 1 {
        return Err(ApiError::new(Kind::Invalid, "the request has several headers `host`"));
    }
    // Probes of routers may name no host, and nobody learns anything from their answers.
    if keys.is_empty() && !api::at(request.uri().path()).any(Operation::is_probe) {
        check_host(app, request)?;
    }
    let is_refused =
        |origin: &&HeaderValue| !allows_origin(app, origin) && !is_own_page(app, request, origin);
    if let Some(origin) = headers.get(header::ORIGIN).filter(is_refused) {
        let origin = origin.to_str().unwrap_or("?");
        let message = format!("pages of `{origin}` may not use this server (see --cors-origins)");
        return Err(ApiError::new(Kind::Forbidden, message));
    }
    let path = request.uri().path();
    let is_page = app.config.page && page::has(path);
    let is_open = |operation: &Operation| operation.access == Allowed::All;
    let is_public = is_page || api::at(path).any(is_open) || request.method() == Method::OPTIONS;
    if keys.is_empty() {
        caller.is_admin = sender.is_local;
        return Ok(());
    }
    if is_public {
        return Ok(());
    }
    let missing = || ApiError::new(Kind::Key, "this server requires a key: `Authorization: Bearer KEY`");
    let text = key_of(headers).ok_or_else(missing)?;
    let key = find(&keys, text).ok_or_else(|| ApiError::new(Kind::Key, "the key is not valid"))?;
    caller.key = Some(key.name.clone());
    caller.client = key.client();
    caller.is_admin = key.level == Level::Admin;
    Ok(())
}

fn key_of(headers: &HeaderMap) -> Option<&str> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| {
        let (scheme, key) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
    });
    bearer.or_else(|| headers.get(API_KEY).and_then(|value| value.to_str().ok()))
}

/// The name without its port.
fn host_name(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    }
}

fn is_loopback(name: &str) -> bool {
    let address = name.parse::<std::net::IpAddr>();
    name == "localhost" || name.ends_with(".localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// The name of the server and its port, as the client wrote them.
fn host(request: &Request) -> &str {
    let header = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    request.uri().authority().map(|authority| authority.as_str()).or(header).unwrap_or("")
}

/// True for a name of this server.
fn is_named(app: &App, name: &str) -> bool {
    let own = app.own_hosts.read().unwrap_or_else(|e| e.into_inner());
    is_one_of(&own, &app.config.allowed_hosts, name)
}

/// True for a name of a server with these addresses and names, which may also have the allowed ones. If it listens on
/// all addresses of the machine, any address is one: DNS cannot lead an address elsewhere.
fn is_one_of(own: &[String], allowed: &[String], name: &str) -> bool {
    let is_it = |known: &String| known.eq_ignore_ascii_case(name);
    let address = |name: &str| name.parse::<IpAddr>().ok();
    let is_any = |known: &String| address(known).is_some_and(|address| address.is_unspecified());
    is_loopback(&name.to_ascii_lowercase())
        || own.iter().chain(allowed).any(is_it)
        || address(name).is_some() && own.iter().any(is_any)
}

fn check_host(app: &App, request: &Request) -> Result<(), ApiError> {
    let host = host(request);
    let name = host_name(host);
    let takes_any = app.config.allowed_hosts.iter().any(|allowed| allowed == "*");
    if !name.is_empty() && (takes_any || is_named(app, name)) {
        return Ok(());
    }
    let message = format!("the host `{host}` is not a name of this server (see --allowed-host)");
    Err(ApiError::new(Kind::Forbidden, message))
}

/// True for a page of this machine.
fn is_local_page(origin: &str) -> bool {
    origin.split_once("://").is_some_and(|(_, rest)| is_loopback(host_name(rest)))
}

/// True for a page of this server: its origin is the host of the request, and that is a name of this server, or a key
/// is required. A host that only `*` allows may be any page's that leads here by a name of its own.
fn is_own_page(app: &App, request: &Request, origin: &HeaderValue) -> bool {
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    let host = host(request);
    let is_host = !host.is_empty() && origin.is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(host));
    is_host && (is_named(app, host_name(host)) || !app.keys().is_empty())
}

fn allows_origin(app: &App, origin: &HeaderValue) -> bool {
    let Ok(origin) = origin.to_str() else { return false };
    let listed = &app.config.cors_origins;
    if listed.is_empty() {
        return is_local_page(origin);
    }
    let is_it = |allowed: &String| match allowed.as_str() {
        "*" => true,
        // As llama-server has it: pages of this machine.
        "localhost" => is_local_page(origin),
        allowed => allowed == origin,
    };
    listed.iter().any(is_it)
}

/// Those of the headers that pages may send: the server's, and those of SDKs, such as `x-stainless-os`.
fn allowed_headers(asked: &str) -> String {
    const NAMES: [&str; 8] = [
        "accept",
        "authorization",
        "content-type",
        "traceparent",
        "tracestate",
        "x-api-key",
        "x-request-id",
        "x-session-id",
    ];
    const BEGINNINGS: [&str; 3] = ["anthropic-", "openai-", "x-stainless-"];
    let is_allowed = |name: &&str| {
        let name = name.to_ascii_lowercase();
        NAMES.contains(&&*name) || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
    };
    asked.split(',').map(str::trim).filter(is_allowed).collect::<Vec<_>>().join(", ")
}

/// The response to a browser's question before a request.
fn preflight(asked: &HeaderMap) -> Response<Body> {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers
        .insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE, OPTIONS"));
    let asked = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS).and_then(|names| names.to_str().ok());
    let allowed =
        allowed_headers(asked.unwrap_or("authorization, content-type, x-api-key, anthropic-version"));
    if let Ok(allowed) = HeaderValue::from_str(&allowed) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hosts_have_no_port() {
        for (host, name) in [
            ("localhost:8080", "localhost"),
            ("[::1]:8080", "::1"),
            ("10.0.0.1", "10.0.0.1"),
            ("evil.example:80", "evil.example"),
            ("", ""),
        ] {
            assert_eq!(host_name(host), name);
        }
        assert!(is_loopback("127.9.9.9") && is_loopback("::1") && is_loopback("a.localhost"));
        assert!(!is_loopback("localhost.evil.example") && !is_loopback("10.0.0.1"));
    }

    #[test]
    fn a_server_on_all_addresses_takes_any_address_as_its_host() {
        let is = |own: &[&str], name: &str| {
            let own: Vec<String> = own.iter().map(|name| (*name).to_owned()).collect();
            is_one_of(&own, &["box.example".to_owned()], name)
        };
        for any in ["0.0.0.0", "::"] {
            let own = ["127.0.0.1", any, "machine"];
            for name in
                ["10.0.0.1", "192.168.1.7", "fd00::7", "0.0.0.0", "Machine", "box.example", "localhost"]
            {
                assert!(is(&own, name), "{any}: {name}");
            }
            for name in ["evil.example", "10.0.0.1.evil.example", "10.0.0", "machine.evil.example", ""] {
                assert!(!is(&own, name), "{any}: {name}");
            }
        }
        assert!(is(&["10.0.0.1", "machine"], "10.0.0.1"));
        assert!(!is(&["10.0.0.1", "machine"], "10.0.0.2") && !is(&["127.0.0.1"], "10.0.0.1"));
    }
}
