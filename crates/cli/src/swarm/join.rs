//! The join page, and the pages that may be workers.

use axum::body::Body;
use axum::extract::Path;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse as _;

/// Path of the join page.
pub(crate) const JOIN: &str = "/join";
/// Scripts come from the hub alone, and no other page may frame this one, so that nobody else's button is clicked.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A row for each file.
macro_rules! files {
    ($($name:literal $kind:literal),* $(,)?) => {
        [$(($name, concat!($kind, "; charset=utf-8"), include_str!(concat!("page/", $name)))),*]
    };
}

/// Name, type and text of all files. The modules are those of the npm package.
const FILES: [(&str, &str, &str); 12] = files![
    "index.html" "text/html",
    "join.css" "text/css",
    "join.js" "text/javascript",
    "device.js" "text/javascript",
    "frames.js" "text/javascript",
    "plan.js" "text/javascript",
    "proof.js" "text/javascript",
    "replay.js" "text/javascript",
    "rows.js" "text/javascript",
    "session.js" "text/javascript",
    "store.js" "text/javascript",
    "work.js" "text/javascript",
];

/// The page itself.
pub(crate) async fn page() -> Response<Body> {
    let (_, kind, text) = FILES[0];
    of(kind, text)
}

/// A file of the page.
pub(crate) async fn file(Path(name): Path<String>) -> Response<Body> {
    match FILES[1..].iter().find(|(found, ..)| *found == name) {
        Some((_, kind, text)) => of(kind, text),
        None => (StatusCode::NOT_FOUND, "there is no such file").into_response(),
    }
}

fn of(kind: &'static str, text: &'static str) -> Response<Body> {
    let headers: [(HeaderName, &str); 6] = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_FRAME_OPTIONS, "DENY"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}

/// True if the origin of a request is that of the hub's own page, or one of `others`.
///
/// The hub's own is that of `Host`, if [`is_here`] takes it.
pub(crate) fn is_welcome(headers: &HeaderMap, others: &[String]) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let (Some(origin), Some(host)) = (text(ORIGIN), text(HOST)) else { return false };
    if others.iter().any(|other| other == origin) {
        return true;
    }
    is_here(headers) && ["http://", "https://"].iter().any(|scheme| origin.strip_prefix(scheme) == Some(host))
}

/// True if `Host` is an address or `localhost`, and no name that somebody else could have point here.
pub(crate) fn is_here(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
    host.is_some_and(|authority| {
        let name = authority.host().trim_start_matches('[').trim_end_matches(']');
        name == "localhost" || name.parse::<std::net::IpAddr>().is_ok()
    })
}

/// Keeps an answer out of caches, and browsers from guessing its type.
pub(crate) fn unkept(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Lets a page of an allowed origin read an answer.
pub(crate) fn shared(headers: &HeaderMap, others: &[String], mut response: Response<Body>) -> Response<Body> {
    if let Some(origin) = headers.get(ORIGIN)
        && is_welcome(headers, others)
    {
        let answer = response.headers_mut();
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("authorization, range"));
        answer.insert(VARY, HeaderValue::from_static("origin"));
    }
    response
}

/// An origin of `--swarm-origin`: scheme, host and port, as browsers send it.
pub(crate) fn origin(text: &str) -> Result<String, String> {
    let expected = || format!("expected an origin such as https://example.com, found `{text}`");
    let rest = ["http://", "https://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    let is_right = rest.and_then(|rest| rest.parse::<Authority>().ok()).is_some_and(|authority| {
        !authority.as_str().contains('@') && !text.chars().any(|c| c.is_ascii_uppercase())
    });
    if is_right { Ok(text.to_owned()) } else { Err(expected()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn welcome(origin: &str, host: &str) -> bool {
        let headers = [(ORIGIN, origin.parse().unwrap()), (HOST, host.parse().unwrap())];
        is_welcome(&headers.into_iter().collect(), &["https://friend.example".to_owned()])
    }

    #[test]
    fn pages_come_from_the_hub_or_an_origin_that_it_names() {
        for host in ["127.0.0.1:8090", "localhost:8090", "[::1]:8090", "192.168.1.2"] {
            assert!(welcome(&format!("http://{host}"), host), "{host}");
            assert!(welcome(&format!("https://{host}"), host), "{host}");
            assert!(welcome("https://friend.example", host));
            for other in [
                "http://127.0.0.1:8091",
                "http://127.0.0.1",
                "http://evil.example",
                "https://friend.example.evil",
                "https://friend.example:1",
                "null",
                "",
            ] {
                assert!(!welcome(other, host), "{other} at {host}");
            }
        }
        // A name that somebody has point to this machine.
        assert!(!welcome("http://evil.example:8090", "evil.example:8090"));
        let is_here = |host: &str| is_here(&HeaderMap::from_iter([(HOST, host.parse().unwrap())]));
        assert!(is_here("127.0.0.1:8090") && is_here("[::1]:8090") && is_here("localhost"));
        assert!(!is_here("evil.example:8090") && !is_here("localhost.evil.example") && !is_here(""));
        assert!(!is_welcome(&HeaderMap::new(), &[]));
    }

    #[test]
    fn origins_have_a_scheme_and_no_path() {
        for right in ["https://example.com", "http://localhost:3000", "http://[::1]:3000"] {
            assert_eq!(origin(right).as_deref(), Ok(right));
        }
        for wrong in
            ["example.com", "https://", "https://example.com/", "https://a@b", "ws://a", "https://A.b", "*"]
        {
            assert!(origin(wrong).unwrap_err().contains(wrong));
        }
    }

    #[test]
    fn modules_are_files_and_not_names_of_files() {
        let mut names: Vec<&str> = FILES.iter().map(|f| f.0).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FILES.len());
        // Without symbolic links a checkout has the path in place of the text.
        for (name, _, text) in FILES {
            assert!(text.len() > 200, "{name}: {text}");
        }
        let (_, _, work) = FILES.iter().find(|f| f.0 == "work.js").unwrap();
        assert!(work.contains(&format!("const BUILD = \"{}\";", env!("CARGO_PKG_VERSION"))));
    }
}
