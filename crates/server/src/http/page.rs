//! The chat page: the files of the folder `page`, embedded.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use axum::routing::get;
use sha2::{Digest as _, Sha256};

use super::respond::with_type;
use crate::app::App;
use crate::hex;

/// A file of the page.
struct File {
    path: &'static str,
    kind: &'static str,
    text: &'static str,
}

/// A row for each file.
macro_rules! files {
    ($($name:literal $kind:literal),* $(,)?) => {
        [$(File {
            path: concat!("/", $name),
            kind: concat!($kind, "; charset=utf-8"),
            text: include_str!(concat!("../../page/", $name)),
        }),*]
    };
}

/// All files; the first is the page itself.
static FILES: [File; 31] = files![
    "index.html" "text/html",
    "answer.js" "text/javascript",
    "blocks.js" "text/javascript",
    "chat.js" "text/javascript",
    "composer.js" "text/javascript",
    "conversations.js" "text/javascript",
    "dom.js" "text/javascript",
    "events.js" "text/javascript",
    "exchange.js" "text/javascript",
    "highlight.js" "text/javascript",
    "icon.svg" "image/svg+xml",
    "katex.LICENSE" "text/plain",
    "katex.js" "text/javascript",
    "log.js" "text/javascript",
    "manifest.webmanifest" "application/manifest+json",
    "markdown.js" "text/javascript",
    "marked.LICENSE" "text/plain",
    "marked.js" "text/javascript",
    "math.js" "text/javascript",
    "message.js" "text/javascript",
    "model.js" "text/javascript",
    "notices.js" "text/javascript",
    "prose.js" "text/javascript",
    "scroller.js" "text/javascript",
    "settings.js" "text/javascript",
    "sidebar.js" "text/javascript",
    "storage.js" "text/javascript",
    "style.css" "text/css",
    "text.css" "text/css",
    "turns.js" "text/javascript",
    "welcome.js" "text/javascript",
];

/// Names of the files' contents, in their order.
static TAGS: LazyLock<Vec<String>> = LazyLock::new(|| FILES.iter().map(|file| tag(file.text)).collect());

/// The page is all that it needs: nothing comes from elsewhere, and no text becomes markup or a script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

/// Headers of all files.
const HEADERS: [(HeaderName, &str); 4] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    // They change with the program.
    (header::CACHE_CONTROL, "no-cache"),
];

fn tag(text: &str) -> String {
    format!("\"{}\"", hex::text(&Sha256::digest(text)[..16]))
}

/// True for paths of the page's files.
pub(super) fn has(path: &str) -> bool {
    FILES.iter().any(|file| file.path == path)
}

/// Adds the paths of the files.
pub(super) fn files(mut router: Router<Arc<App>>) -> Router<Arc<App>> {
    for (index, file) in FILES.iter().enumerate() {
        router = router.route(file.path, get(async move |headers: HeaderMap| send(index, &headers)));
    }
    router
}

/// The page for those who read HTML, ollama's words for others.
pub(super) async fn root(State(app): State<Arc<App>>, headers: HeaderMap) -> Response<Body> {
    let wants_html = mentions(&headers, &header::ACCEPT, |kind| kind.starts_with("text/html"));
    let mut response = match app.config.page && wants_html {
        true => send(0, &headers),
        false => with_type("Ollama is running", "text/plain; charset=utf-8"),
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response
}

/// True if an element of a list in a header fits.
fn mentions(headers: &HeaderMap, name: &HeaderName, fits: impl Fn(&str) -> bool) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|element| fits(element.trim()))
}

/// A file, unless the client has it.
fn send(index: usize, headers: &HeaderMap) -> Response<Body> {
    let (file, tag) = (&FILES[index], &TAGS[index]);
    let is_known = mentions(headers, &header::IF_NONE_MATCH, |known| {
        known == "*" || known.trim_start_matches("W/") == tag
    });
    let mut response = match is_known {
        true => Response::new(Body::empty()),
        false => with_type(file.text, file.kind),
    };
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.extend(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
    if let Ok(tag) = HeaderValue::from_str(tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_of_the_folder_are_offered() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        let names = std::fs::read_dir(folder).expect("the folder is there");
        let mut found: Vec<String> =
            names.map(|entry| format!("/{}", entry.expect("it can be read").file_name().display())).collect();
        let mut offered: Vec<&str> = FILES.iter().map(|file| file.path).collect();
        found.sort();
        offered.sort();
        assert_eq!(found, offered);
    }

    #[test]
    fn files_ask_for_nothing_elsewhere() {
        for file in FILES.iter().filter(|file| !file.path.starts_with("/marked")) {
            let is_foreign = ["https://", "http://", "//cdn", "innerHTML", "eval("];
            // Names of XML's vocabularies look like addresses.
            let text = file.text.replace("http://www.w3.org/", "");
            let found: Vec<_> = is_foreign.into_iter().filter(|what| text.contains(what)).collect();
            assert!(found.is_empty(), "{} has {found:?}", file.path);
        }
    }
}
