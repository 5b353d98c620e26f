//! Models that clients fetch, name and delete.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use chaski_server::{Key, Level, Offer, PullEvent, Removal, Store, StoreError};
use serde_json::{Value, json};

use crate::operation::begin;
use crate::serve::{Running, Setup, offer};

/// A store whose downloads end when the test says so.
#[derive(Default)]
pub(crate) struct Shop {
    /// Ids and names.
    models: Mutex<Vec<Vec<String>>>,
    /// Downloads may end.
    pub(crate) is_open: AtomicBool,
    n_pull: AtomicUsize,
    n_stopped: AtomicUsize,
    n_removed: AtomicUsize,
    own: Mutex<Weak<Shop>>,
}

impl Shop {
    pub(crate) fn new() -> Arc<Shop> {
        let shop: Arc<Shop> = Arc::default();
        *shop.own.lock().unwrap() = Arc::downgrade(&shop);
        shop
    }

    pub(crate) fn offers(&self) -> Vec<Offer> {
        let of = |names: &Vec<String>| {
            let mut offer = offer(&names[0]);
            offer.aliases = names[1..].to_vec();
            offer
        };
        self.models.lock().unwrap().iter().map(of).collect()
    }
}

const DIGEST: &str = "sha256:0a8c266910232fd3291e71e5ba1e058cc5af9d411192cf88b6d30e92b6e73163";

impl Store for Shop {
    fn pull(
        &self,
        name: &str,
        cancel: Arc<AtomicBool>,
        tell: &mut dyn FnMut(PullEvent),
    ) -> Result<(), StoreError> {
        self.n_pull.fetch_add(1, Ordering::Relaxed);
        match name {
            "missing" => return Err(StoreError::Missing("there is no such model".into())),
            "http://x/a.gguf" => return Err(StoreError::Name("it is an address".into())),
            "far" => return Err(StoreError::Network("the hub cannot be reached".into())),
            _ => {}
        }
        let mut file = |n_present| {
            tell(PullEvent::File { digest: DIGEST.into(), size: Some(100), n_present });
        };
        file(50);
        while !self.is_open.load(Ordering::Relaxed) {
            if cancel.load(Ordering::Relaxed) {
                self.n_stopped.fetch_add(1, Ordering::Relaxed);
                return Err(StoreError::Stopped("it was stopped".into()));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        file(100);
        tell(PullEvent::Verifying);
        if name == "damaged" {
            return Err(StoreError::Network("the file is damaged".into()));
        }
        self.models.lock().unwrap().push(vec![name.into()]);
        Ok(())
    }

    fn copy(&self, id: &str, name: &str) -> Result<(), StoreError> {
        let mut models = self.models.lock().unwrap();
        if models.iter().flatten().any(|known| known == name) {
            return Err(StoreError::Name("the name is taken".into()));
        }
        let own = || StoreError::Name("it is the server's own".into());
        models.iter_mut().find(|names| names[0] == id).ok_or_else(own)?.push(name.into());
        Ok(())
    }

    fn delete(&self, id: &str, name: &str) -> Result<Option<Removal>, StoreError> {
        let mut models = self.models.lock().unwrap();
        let own = || StoreError::Name("it is the server's own".into());
        let at = models.iter().position(|names| names[0] == id).ok_or_else(own)?;
        models[at].retain(|known| known != name);
        if !models[at].is_empty() {
            return Ok(None);
        }
        models.remove(at);
        let shop = self.own.lock().unwrap().upgrade().unwrap();
        Ok(Some(Box::new(move || {
            shop.n_removed.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })))
    }
}

/// A server that fetches models from a store.
pub(crate) fn setup() -> (Setup, Arc<Shop>) {
    let shop = Shop::new();
    let mut setup = Setup::offering(&[]);
    let of_server = shop.clone();
    setup.config.offers = Some(Arc::new(move || of_server.offers()));
    setup.config.store = Some(shop.clone());
    setup.config.any_model = Some(false);
    (setup, shop)
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn delete(running: &Running, name: &str) -> u16 {
    running.send(&json!({"method": "DELETE", "path": "/api/delete", "body": {"model": name}})).status
}

fn ids(running: &Running) -> Vec<String> {
    let list = running.get("/api/tags").body;
    list["models"].as_array().unwrap().iter().map(|model| model["name"].as_str().unwrap().into()).collect()
}

#[test]
fn a_model_is_fetched_named_and_deleted() {
    let (setup, shop) = setup();
    let running = setup.start();
    shop.is_open.store(true, Ordering::Relaxed);
    let answer = running.post("/api/pull", &json!({"model": "hf:org/a:Q8_0"}));
    assert_eq!(answer.headers["content-type"], "application/x-ndjson");
    let told = lines(&answer.text);
    let file =
        |n: u64| json!({"status": "pulling 0a8c26691023", "digest": DIGEST, "completed": n, "total": 100});
    let status = |text: &str| json!({"status": text});
    assert_eq!(told[0], status("pulling manifest"));
    let rest = [file(100), status("verifying sha256 digest"), status("writing manifest"), status("success")];
    assert!(told[1] == file(50) && told[2..] == rest || told[1..] == rest, "{told:?}");
    assert_eq!(ids(&running), ["hf:org/a:Q8_0"]);
    let asked = |model: &str| {
        running
            .post(
                "/api/generate",
                &json!({"model": model, "stream": false, "options": {"num_predict": 2}, "prompt": "A"}),
            )
            .status
    };
    assert_eq!(asked("hf:org/a:Q8_0"), 200);
    // The same as a whole, with the older name of the field.
    let whole = running.post("/api/pull", &json!({"name": "b", "stream": false}));
    assert_eq!((whole.status, &whole.body), (200, &status("success")));
    assert_eq!(ids(&running), ["hf:org/a:Q8_0", "b:latest"]);

    let copy = |source: &str, destination: &str| {
        running.post("/api/copy", &json!({"source": source, "destination": destination}))
    };
    let copied = copy("hf:org/a:Q8_0", "mine");
    assert_eq!((copied.status, &*copied.text), (200, ""));
    assert_eq!((asked("mine"), asked("mine:latest")), (200, 200));
    let refused = copy("b", "mine");
    assert_eq!((refused.status, &refused.body), (400, &json!({"error": "the name is taken"})));
    assert_eq!(copy("nobody", "x").status, 404);
    assert!(copy("b", "").text.contains("`destination`"));

    assert_eq!((delete(&running, "hf:org/a:Q8_0"), shop.n_removed.load(Ordering::Relaxed)), (200, 0));
    assert_eq!((asked("mine"), asked("hf:org/a:Q8_0")), (200, 404), "the copy stays");
    assert_eq!((delete(&running, "mine"), shop.n_removed.load(Ordering::Relaxed)), (200, 1));
    assert_eq!((delete(&running, "mine"), asked("mine")), (404, 404));
    assert_eq!(ids(&running), ["b:latest"]);
}

#[test]
fn a_further_name_means_the_model_also_while_its_first_one_leaves() {
    let (setup, shop) = setup();
    let running = setup.start();
    shop.is_open.store(true, Ordering::Relaxed);
    assert_eq!(running.post("/api/pull", &json!({"model": "first", "stream": false})).status, 200);
    let copied = running.post("/api/copy", &json!({"source": "first", "destination": "second"}));
    assert_eq!(copied.status, 200);
    let generate = |model: &str, n: u32| json!({"model": model, "prompt": "A", "raw": true, "options": {"num_predict": n}});
    // The model is in use, and there is room for one.
    let open = begin(&running, "/api/generate", &generate("first", 450), 1);
    assert_eq!(delete(&running, "first"), 200);
    let asked = std::thread::scope(|scope| {
        let asked = scope.spawn(|| running.post("/api/generate", &generate("second", 1)));
        std::thread::sleep(Duration::from_millis(100));
        drop(open);
        asked.join().unwrap()
    });
    assert_eq!(asked.status, 200, "{}", asked.text);
    assert_eq!(running.post("/api/generate", &generate("first", 1)).status, 404);
}

#[test]
fn downloads_that_fail_say_why() {
    let (setup, shop) = setup();
    let running = setup.start();
    shop.is_open.store(true, Ordering::Relaxed);
    for streams in [true, false] {
        for (name, status) in
            [("missing", 404), ("http://x/a.gguf", 400), ("far", 502), ("", 400), ("a\nb", 400)]
        {
            let answer = running.post("/api/pull", &json!({"model": name, "stream": streams}));
            assert_eq!(answer.status, status, "{name}");
            assert!(answer.body["error"].is_string(), "{name}: {}", answer.text);
        }
    }
    // Once lines are on their way, the last one tells.
    let answer = running.post("/api/pull", &json!({"model": "damaged"}));
    let last = lines(&answer.text).pop().unwrap();
    let early = answer.status == 502 && answer.body == json!({"error": "the file is damaged"});
    assert!(
        early || answer.status == 200 && last == json!({"error": "the file is damaged"}),
        "{}",
        answer.text
    );
    assert_eq!(running.post("/api/pull", &json!({"model": "damaged", "stream": false})).status, 502);
    assert!(ids(&running).is_empty());

    let plain = Setup::built_in(1).start();
    for (method, path) in [("POST", "/api/pull"), ("POST", "/api/copy"), ("DELETE", "/api/delete")] {
        let body = json!({"model": "golden", "source": "golden", "destination": "x"});
        let answer = plain.send(&json!({"method": method, "path": path, "body": body}));
        assert_eq!(answer.status, 501, "{path}");
    }
}

/// A client that reads lines of a download, and leaves when it is dropped.
fn client(running: &Running, name: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(running.address()).unwrap();
    let body = json!({"model": name}).to_string();
    let head =
        format!("POST /api/pull HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while !line.contains("0a8c26691023") {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0);
    }
    reader
}

fn wait(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn clients_share_a_download_which_ends_with_the_last() {
    let (setup, shop) = setup();
    let mut running = setup.start();
    let n = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    let (one, two) = (client(&running, "a"), client(&running, "a"));
    assert_eq!(n(&shop.n_pull), 1);
    drop(one);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(n(&shop.n_stopped), 0);
    drop(two);
    wait("it stops", || n(&shop.n_stopped) == 1);
    // A new client begins it again.
    let mut other = client(&running, "a");
    assert_eq!(n(&shop.n_pull), 2);
    // A server that ends waits for no download, and says so.
    running.stop();
    let mut text = String::new();
    while !text.contains("error") {
        assert!(other.read_line(&mut text).unwrap() > 0, "{text}");
    }
    assert!(text.contains("{\"error\":\"it was stopped\"}"), "{text}");
}

#[test]
fn operators_alone_fetch_name_and_delete() {
    let (mut setup, _) = setup();
    setup.config.keys = vec![Key::new("ann", "use"), Key::new("bob", "admin").level(Level::Admin)];
    let running = setup.start();
    for (method, path) in [("POST", "/api/pull"), ("POST", "/api/copy"), ("DELETE", "/api/delete")] {
        let body = json!({"model": "missing", "source": "missing", "destination": "x", "stream": false});
        let status = |key: &str| {
            let headers = json!({"authorization": format!("Bearer {key}")});
            running.send(&json!({"method": method, "path": path, "headers": headers, "body": body})).status
        };
        assert_eq!((status("no"), status("use"), status("admin")), (401, 403, 404), "{path}");
    }
}
