//! The chat page: its files, and pages that may use the server.

use chaski_server::Key;
use serde_json::{Value, json};

use crate::serve::{Answer, Running, Setup};

fn get(running: &Running, path: &str, headers: Value) -> Answer {
    running.send(&json!({"method": "GET", "path": path, "headers": headers}))
}

/// The headers of a browser that opens an address.
fn browser() -> Value {
    json!({"accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
}

#[test]
fn browsers_get_a_page_and_programs_an_answer() {
    let running = Setup::built_in(1).start();
    let page = get(&running, "/", browser());
    assert_eq!(
        (page.status, &page.headers["content-type"]),
        (200, &"text/html; charset=utf-8".parse().unwrap())
    );
    assert!(page.text.starts_with("<!doctype html>"), "{}", page.text);
    assert_eq!(page.headers["vary"], "accept");
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"),
        "{policy}"
    );
    for accept in ["*/*", "application/json"] {
        let other = get(&running, "/", json!({"accept": accept}));
        assert_eq!((other.status, other.text.as_str()), (200, "Ollama is running"));
        assert_eq!(other.headers["vary"], "accept");
    }
    let of_page = get(&running, "/", json!({"accept": "*/*", "origin": "http://localhost:3000"}));
    let vary: Vec<_> = of_page.headers.get_all("vary").iter().collect();
    assert_eq!(vary, ["accept", "origin"]);
    assert_eq!(running.send(&json!({"method": "HEAD", "path": "/", "headers": browser()})).status, 200);
    // Each file that the page names is there.
    let mut names = vec!["marked.LICENSE".to_owned(), "katex.js".to_owned(), "katex.LICENSE".to_owned()];
    let mut n = 0;
    names.extend(
        page.text
            .split(['"'])
            .filter(|word| [".js", ".css", ".svg", ".webmanifest"].iter().any(|end| word.ends_with(end)))
            .map(String::from),
    );
    while let Some(name) = names.get(n).cloned() {
        let file = get(&running, &format!("/{name}"), json!({}));
        let kind = match name.rsplit('.').next() {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml; charset=utf-8",
            Some("webmanifest") => "application/manifest+json; charset=utf-8",
            _ => "text/plain; charset=utf-8",
        };
        assert_eq!((file.status, file.headers["content-type"].to_str().unwrap()), (200, kind), "{name}");
        assert_eq!(
            (&file.headers["x-content-type-options"], &file.headers["cache-control"]),
            (&"nosniff".parse().unwrap(), &"no-cache".parse().unwrap())
        );
        let imported = file.text.split("from \"./").skip(1).filter_map(|rest| rest.split('"').next());
        for other in imported {
            if !names.iter().any(|known| known == other) {
                names.push(other.to_owned());
            }
        }
        n += 1;
    }
    assert!(n >= 30, "{names:?}");
    assert_eq!(get(&running, "/other.js", json!({})).status, 404);
}

#[test]
fn a_file_that_the_browser_has_is_not_sent_again() {
    let running = Setup::built_in(1).start();
    let first = get(&running, "/chat.js", json!({}));
    let tag = first.headers["etag"].to_str().unwrap().to_owned();
    assert_ne!(running.get("/model.js").headers["etag"], *tag);
    for known in [tag.clone(), format!("\"other\", W/{tag}"), "*".into()] {
        let again = get(&running, "/chat.js", json!({"if-none-match": known}));
        assert_eq!(
            (again.status, again.text.as_str(), again.headers["etag"].to_str().unwrap()),
            (304, "", &*tag)
        );
    }
    assert_eq!(get(&running, "/chat.js", json!({"if-none-match": "\"other\""})).status, 200);
}

#[test]
fn the_page_needs_no_key_and_its_requests_do() {
    let mut setup = Setup::built_in(1);
    setup.config.keys = vec![Key::new("ann", "secret")];
    let running = setup.start();
    assert_eq!(get(&running, "/", browser()).status, 200);
    assert_eq!(get(&running, "/chat.js", json!({})).status, 200);
    assert_eq!(get(&running, "/v1/models", json!({})).status, 401);
    assert_eq!(get(&running, "/chat.js/../v1/models", json!({})).status, 401);
}

#[test]
fn a_server_without_a_page_has_none() {
    let mut setup = Setup::built_in(1);
    setup.config.page = false;
    let running = setup.start();
    assert_eq!(get(&running, "/", browser()).text, "Ollama is running");
    assert_eq!(get(&running, "/chat.js", json!({})).status, 404);
    assert_eq!(get(&running, "/index.html", json!({})).status, 404);
}

#[test]
fn its_own_page_may_use_the_server_under_each_of_its_names() {
    let mut setup = Setup::built_in(1);
    setup.config.allowed_hosts = vec!["box.example".into()];
    let mut running = setup.start();
    let ask = |running: &Running, host: &str, origin: &str| {
        get(running, "/v1/models", json!({"host": host, "origin": origin})).status
    };
    assert_eq!(ask(&running, "box.example:8080", "http://box.example:8080"), 200);
    assert_eq!(ask(&running, "box.example", "https://BOX.example"), 200, "behind a proxy with TLS");
    for (host, origin) in [
        ("box.example:8080", "http://box.example:9090"),
        ("box.example", "http://evil.example"),
        ("evil.example", "http://evil.example"),
        ("box.example", "null"),
    ] {
        assert_eq!(ask(&running, host, origin), 403, "{host} {origin}");
    }
    running.stop();
    // Any page can lead a name of its own here: that a server takes all hosts makes it no page of this server.
    let mut setup = Setup::built_in(1);
    setup.config.allowed_hosts = vec!["*".into(), "box.example".into()];
    let mut running = setup.start();
    assert_eq!(ask(&running, "evil.example", "http://evil.example"), 403);
    assert_eq!(ask(&running, "box.example", "http://box.example"), 200);
    let direct = get(&running, "/v1/models", json!({"host": "any.example"}));
    assert_eq!(direct.status, 200, "programs send no origin");
    running.stop();
    // With a key the host is not checked, and the key is what a page has to know.
    let mut setup = Setup::built_in(1);
    setup.config.keys = vec![Key::new("ann", "secret")];
    let running = setup.start();
    assert_eq!(ask(&running, "any.example", "http://any.example"), 401);
    assert_eq!(ask(&running, "any.example", "http://evil.example"), 403);
}
