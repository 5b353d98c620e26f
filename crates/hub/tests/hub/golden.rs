//! Recorded exchanges of huggingface_hub with the hub's protocol, and the cache that it left.

use std::path::Path;

use chaski_hub::{Digest, RepoId, read_page, strong_etag};
use serde_json::Value;

use crate::{Client, tiny};

/// A file of fixtures/weights/hub.
fn golden(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/weights/hub");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn recorded_answers_are_understood() {
    let (transcript, ranges) = (golden("transcript.jsonl"), golden("ranges.jsonl"));
    let (mut n_digest, mut n_listed, mut n_strong) = (0, 0, 0);
    for line in transcript.lines().chain(ranges.lines()) {
        let exchange: Value = serde_json::from_str(line).unwrap();
        let (path, answer) = (exchange["request"]["path"].as_str().unwrap(), &exchange["response"]);
        let header = |name: &str| answer["headers"][name].as_str();
        if let Some(etag) = header("X-Linked-ETag") {
            assert!(matches!(Digest::of_etag(etag), Some(Digest::Sha256(_))), "{etag}");
            n_digest += 1;
        }
        if let Some(etag) = header("ETag") {
            assert_eq!(Digest::of_etag(etag).is_some(), !path.starts_with("/cdn/"), "{path} {etag}");
            n_strong += u32::from(strong_etag(etag).is_some());
        }
        let body = answer["body"].as_str().unwrap_or_default();
        if answer["status"] == 200 && path.contains("/tree/") {
            // Long bodies are cut in the record: the files that are whole.
            let (whole, _) = body.rsplit_once(", {\"type\"").unwrap();
            let mut files = Vec::new();
            let page = format!("{whole}]");
            read_page(&RepoId::parse("org/tiny").unwrap(), path, page.as_bytes(), &mut files).unwrap();
            n_listed += files.len();
        }
    }
    assert_eq!((n_digest, n_strong, n_listed), (7, 17, 1));
}

#[test]
fn our_cache_has_the_form_of_theirs() {
    let theirs = golden("cache-tree.txt");
    let hub = tiny();
    let client = Client::of(&hub);
    for name in ["tiny-Q4_0.gguf", "tiny-f32.gguf", "README.md"] {
        client.pull(&format!("hf:org/tiny-GGUF/{name}")).unwrap();
    }
    let mut ours = Vec::new();
    walk(&client.config.cache, "", &mut ours);
    // Names by digests differ with the contents; lists of commits are of later versions.
    let plain = |line: &str| {
        let mut text = String::new();
        for word in line.split_inclusive(['/', ' ', '.']) {
            let digits = word.trim_end_matches(['/', ' ', '.']);
            let is_digest = digits.len() >= 40 && digits.bytes().all(|b| b.is_ascii_hexdigit());
            text.push_str(&if is_digest {
                word.replace(digits, &format!("<{}>", digits.len()))
            } else {
                word.into()
            });
        }
        text
    };
    let of_repo = |line: &&str| {
        line.contains("models--org--tiny-GGUF") || line.contains("CACHEDIR") || line.ends_with(" .locks")
    };
    let mut theirs: Vec<String> = theirs.lines().filter(of_repo).map(plain).collect();
    let mut ours: Vec<String> = ours
        .iter()
        .map(String::as_str)
        .filter(|l| !l.contains("/trees"))
        .filter(of_repo)
        .map(plain)
        .collect();
    theirs.sort();
    ours.sort();
    assert_eq!(ours, theirs);
}

/// Lists a folder as the record does: kind, path, target of a link.
fn walk(folder: &Path, prefix: &str, lines: &mut Vec<String>) {
    for name in crate::names(folder) {
        let (path, place) = (format!("{prefix}{name}"), folder.join(&name));
        let kind = std::fs::symlink_metadata(&place).unwrap().file_type();
        if kind.is_dir() {
            lines.push(format!("d {path}"));
            walk(&place, &format!("{path}/"), lines);
        } else if kind.is_symlink() {
            lines.push(format!("l {path} -> {}", std::fs::read_link(&place).unwrap().display()));
        } else {
            lines.push(format!("f {path}"));
        }
    }
}
