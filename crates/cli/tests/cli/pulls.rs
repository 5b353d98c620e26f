//! Models that clients of a server fetch from the hub, name and delete.
#![cfg(unix)]

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::fixture;
use crate::hub::fake::{Faults, sha256};
use crate::hub::{FILE, NAME, Place};
use crate::serve::{Server, ask, started};

/// A server of a model that no request means by chance.
fn start(place: &Place, more: &[&str]) -> Server {
    let mut command = place.command(&["serve", "--device", "cpu", "--no-any-model"]);
    command.args(more).stdout(Stdio::null());
    started(command)
}

/// Status and body of a response.
fn asked(server: &Server, method: &str, path: &str, body: Value) -> (u16, String) {
    let answer = ask(server, method, path, &body.to_string());
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    (status, if is_chunked { unchunked(body) } else { body.to_owned() })
}

/// A body without the sizes of its chunks.
fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let n = usize::from_str_radix(size, 16).unwrap();
        whole.push_str(&rest[..n]);
        body = &rest[n + 2..];
        if n == 0 {
            break;
        }
    }
    whole
}

fn pull(server: &Server, name: &str) -> (u16, Vec<Value>) {
    let (status, body) = asked(server, "POST", "/api/pull", json!({"model": name}));
    (status, body.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn tells(server: &Server, model: &str) -> u16 {
    let body = json!({"model": model, "prompt": "Once", "raw": true, "stream": false, "options": {"num_predict": 2}});
    asked(server, "POST", "/api/generate", body).0
}

fn copy(server: &Server, source: &str, destination: &str) -> (u16, String) {
    asked(server, "POST", "/api/copy", json!({"source": source, "destination": destination}))
}

fn delete(server: &Server, name: &str) -> (u16, String) {
    asked(server, "DELETE", "/api/delete", json!({"model": name}))
}

#[test]
fn a_fetched_model_is_served_named_and_deleted() {
    let place = Place::new();
    let server = start(&place, &[]);
    assert_eq!(tells(&server, NAME), 404);
    let (status, lines) = pull(&server, NAME);
    let story = std::fs::read(fixture()).unwrap();
    let (digest, size) = (format!("sha256:{}", sha256(&story)), story.len());
    let statuses: Vec<&str> = lines.iter().map(|line| line["status"].as_str().unwrap_or_default()).collect();
    assert_eq!((status, statuses[0]), (200, "pulling manifest"), "{lines:?}");
    assert_eq!(
        statuses[statuses.len() - 3..],
        ["verifying sha256 digest", "writing manifest", "success"],
        "{lines:?}"
    );
    let last = lines.iter().rfind(|line| line["digest"].is_string()).unwrap();
    assert_eq!(
        (&last["digest"], &last["total"], &last["completed"]),
        (&json!(digest), &json!(size), &json!(size))
    );
    assert_eq!((tells(&server, NAME), place.n_storage()), (200, 1));
    // Once more: nothing comes, and another spelling is another name.
    let other = "hf.co/org/story-GGUF:Q4_K_M";
    assert_eq!((pull(&server, NAME).0, pull(&server, other).0, place.n_storage()), (200, 200, 0));
    assert_eq!((tells(&server, other), copy(&server, other, "tales")), (200, (200, String::new())));
    assert_eq!(tells(&server, "tales:latest"), 200);
    // A name is given anew to another model.
    assert_eq!(copy(&server, "storyteller-Q4_K_M", "tales").0, 200);
    assert_eq!((delete(&server, NAME).0, tells(&server, NAME), tells(&server, other)), (200, 404, 200));
    assert!(place.blobs().join(sha256(&story)).is_file());
    assert_eq!((delete(&server, other).0, tells(&server, other), tells(&server, "tales")), (200, 404, 200));
    assert!(!place.blobs().join(sha256(&story)).exists(), "the last name went, and the file with it");

    // The server's own model stays, and so does its name.
    let (status, said) = delete(&server, "storyteller-Q4_K_M");
    assert!(status == 400 && said.contains("was started with"), "{said}");
    let (status, said) = copy(&server, "tales", "storyteller-Q4_K_M");
    assert!(status == 400 && said.contains("cannot be given"), "{said}");
    assert_eq!((delete(&server, "tales").0, delete(&server, "tales").0), (200, 404));
}

#[test]
fn names_of_other_places_are_refused() {
    let place = Place::new();
    let server = start(&place, &[]);
    let address = format!("{}/org/story-GGUF/resolve/main/{FILE}", place.hub.endpoint());
    for (name, status, says) in [
        (&*address, 400, "from one hub only"),
        ("llama3.2:1b", 404, "is in no folder of ollama"),
        ("ollama:qwen3", 404, "is in no folder of ollama"),
        ("evil.example/a/b", 404, "is in no folder of ollama"),
        ("/etc/passwd", 404, "is in no folder of ollama"),
        ("../secret", 400, "is not a model's name"),
        ("hf:org", 400, "owner/name"),
        ("hf:org/nothing", 404, "no repository"),
        ("hf:org/story-GGUF:Q8_0", 404, "no GGUF file has the tag"),
    ] {
        let (found, lines) = pull(&server, name);
        let said = lines[0]["error"].as_str().unwrap_or_default();
        assert!(found == status && said.contains(says), "{name}: {found} {said}");
    }
    let asked_for: Vec<String> = place.hub.take_log().into_iter().map(|logged| logged.path).collect();
    assert!(asked_for.iter().all(|path| path.contains("/org/")), "{asked_for:?}");
    assert_eq!(place.n_storage(), 0);
}

#[test]
fn a_model_of_ollama_is_pulled_by_its_name_and_its_files_stay() {
    let place = Place::new();
    let ollama = place.folder.path().join(".ollama/models");
    let story = std::fs::read(fixture()).unwrap();
    let digest = sha256(&story);
    let manifest = ollama.join("manifests/registry.ollama.ai/library/story/latest");
    std::fs::create_dir_all(manifest.parent().unwrap()).unwrap();
    std::fs::create_dir_all(ollama.join("blobs")).unwrap();
    let blob = ollama.join(format!("blobs/sha256-{digest}"));
    std::fs::write(&blob, &story).unwrap();
    let layer = json!({"mediaType": "application/vnd.ollama.image.model", "digest": format!("sha256:{digest}"), "size": story.len()});
    std::fs::write(manifest, json!({"schemaVersion": 2, "layers": [layer]}).to_string()).unwrap();
    let server = start(&place, &[]);
    let (status, lines) = pull(&server, "story");
    assert!(status == 200 && lines.last().unwrap()["status"] == "success", "{lines:?}");
    assert_eq!((tells(&server, "story"), tells(&server, "story:latest")), (200, 200));
    assert_eq!((delete(&server, "story:latest").0, tells(&server, "story")), (200, 404));
    assert!(blob.is_file() && place.hub.take_log().is_empty());
}

#[test]
fn a_download_goes_on_where_a_client_left_it() {
    let place = Place::new();
    let server = start(&place, &[]);
    place.hub.set(Faults { slow: Some((20_000, Duration::from_millis(20))), ..Faults::default() });
    let part = || -> Option<u64> {
        let files = std::fs::read_dir(place.blobs()).ok()?.flatten();
        files.map(|file| file.metadata().map_or(0, |about| about.len())).max()
    };
    let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
    let body = json!({"model": NAME}).to_string();
    let head =
        format!("POST /api/pull HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
    std::io::Write::write_all(&mut stream, (head + &body).as_bytes()).unwrap();
    while part().is_none_or(|n| n < 100_000) {
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(stream);
    // It stops, and the part stays.
    let mut before = None;
    while part() != before || before.is_none() {
        before = part();
        std::thread::sleep(Duration::from_millis(400));
    }
    place.hub.set(Faults::default());
    place.hub.take_log();
    assert_eq!(pull(&server, NAME).0, 200);
    let log = place.hub.take_log();
    let ranges: Vec<&str> =
        log.iter().filter(|one| one.is_storage()).filter_map(|one| one.header("range")).collect();
    assert!(ranges.len() == 1 && !ranges[0].starts_with("bytes=0-"), "{ranges:?}");
    assert_eq!(tells(&server, NAME), 200);
}

#[test]
fn a_file_that_the_server_was_started_with_is_only_renamed() {
    let place = Place::new();
    let o = place.command(&["pull", NAME]).output().unwrap();
    let path = PathBuf::from(String::from_utf8(o.stdout).unwrap().trim());
    let server = start(&place, &[NAME]);
    assert_eq!((pull(&server, NAME).0, tells(&server, NAME), delete(&server, NAME).0), (200, 200, 200));
    assert_eq!((tells(&server, NAME), tells(&server, "storyteller-Q4_K_M")), (404, 200));
    assert!(path.is_file());
}

/// A server for one list of models after another.
fn restart(place: &Place, server: Server, more: &[&str]) -> Server {
    drop(server);
    start(place, more)
}

#[test]
fn fetched_models_and_given_names_outlive_their_server() {
    let place = Place::new();
    let server = start(&place, &[]);
    assert_eq!((pull(&server, NAME).0, copy(&server, NAME, "tales").0), (200, 200));
    assert_eq!((copy(&server, "storyteller-Q4_K_M", "mine").0, copy(&server, NAME, "gone").0), (200, 200));
    assert_eq!(delete(&server, "gone").0, 200);
    place.hub.take_log();
    // It ended without a word: the file is written with each change.
    let server = restart(&place, server, &[]);
    let told = [NAME, "tales", "mine", "mine:latest", "gone"].map(|name| tells(&server, name));
    assert_eq!(told, [200, 200, 200, 200, 404]);
    assert!(place.hub.take_log().is_empty(), "nothing is asked of the hub");
    // Two servers at once share the list.
    let other = start(&place, &[]);
    assert_eq!(copy(&other, "tales", "third").0, 200);
    let begin = std::time::Instant::now();
    // The list is read again once a second.
    while tells(&server, "third") == 404 {
        assert!(begin.elapsed() < Duration::from_secs(20), "the other server's name is not there");
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(other);

    // The names that a server is started with come first, and no client takes them away.
    let server = restart(&place, server, &["--alias", "own,tales"]);
    assert_eq!((tells(&server, NAME), tells(&server, "tales"), tells(&server, "mine")), (200, 200, 404));
    let (_, list) = asked(&server, "GET", "/v1/models", json!(null));
    let list: Value = serde_json::from_str(&list).unwrap();
    let ids: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["own", NAME], "{list}");
    let (status, said) = delete(&server, "tales");
    assert!(status == 400 && said.contains("was started with"), "{said}");

    // A server that keeps none of its own sees none of the others'.
    let server = restart(&place, server, &["--models-file", "none"]);
    assert_eq!((tells(&server, NAME), copy(&server, "storyteller-Q4_K_M", "short").0), (404, 200));
    let server = restart(&place, server, &[]);
    assert_eq!((tells(&server, "short"), tells(&server, "mine")), (404, 200));
    let story = std::fs::read(fixture()).unwrap();
    for name in [NAME, "tales", "third", "mine"] {
        assert_eq!(delete(&server, name).0, 200, "{name}");
    }
    assert!(!place.blobs().join(sha256(&story)).exists(), "the files went with the last name");
    let server = restart(&place, server, &[]);
    assert_eq!([NAME, "tales", "mine"].map(|name| tells(&server, name)), [404; 3]);
}

#[test]
fn a_fetched_model_whose_files_are_gone_is_not_listed() {
    let place = Place::new();
    let server = start(&place, &[]);
    assert_eq!(pull(&server, NAME).0, 200);
    assert!(place.command(&["rm", NAME, "--yes"]).output().unwrap().status.success());
    let server = restart(&place, server, &[]);
    assert_eq!((tells(&server, NAME), pull(&server, NAME).0, tells(&server, NAME)), (404, 200, 200));
}
