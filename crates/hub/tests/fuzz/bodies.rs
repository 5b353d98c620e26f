//! Body of the fuzz target: any bytes give a result or an error. `random.rs` drives it, too.

use chaski_hub::{
    Address, Digest, HubName, ModelName, Pick, RepoId, System, check_path, next_page, projector, read_commit,
    read_page, select, strong_etag,
};

/// A name, headers, or a list of files, by the first byte.
pub(crate) fn hub(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    match kind {
        b'n' => name(&String::from_utf8_lossy(rest)),
        b'h' => headers(&String::from_utf8_lossy(rest)),
        _ => list(rest),
    }
}

/// A name is shown as one that means the same, and its parts make safe paths.
fn name(text: &str) {
    let Ok(name) = ModelName::parse(text) else { return };
    match &name {
        ModelName::Path(_) => return,
        ModelName::Hub(hub) => {
            assert_eq!(RepoId::of_folder(&hub.repo.folder()).as_ref(), Some(&hub.repo));
            check_path(hub.revision(), System::HERE).expect("a revision becomes a path");
            if let Pick::File(path) = &hub.pick {
                check_path(path, System::Unix).expect("a file becomes a path");
            }
        }
        ModelName::Ollama(ollama) => {
            for part in ollama.manifest() {
                check_path(part, System::Unix).expect("a part becomes a folder");
            }
        }
        ModelName::Address(_) => {}
    }
    assert_eq!(ModelName::parse(&name.to_string()).ok(), Some(name));
}

fn headers(text: &str) {
    let from = Address::parse("https://huggingface.co/api/models/org/repo/tree/main?recursive=true")
        .expect("an address");
    for line in text.lines() {
        if let Some(next) = next_page(line) {
            assert!(line.contains(next));
        }
        let location = next_page(line).unwrap_or(line);
        if let Ok(to) = from.join(location) {
            assert_eq!(Address::parse(&to.to_string()).as_ref(), Ok(&to));
            assert!(to.path().starts_with('/'));
        }
        if let Some(digest) = Digest::of_etag(line) {
            assert!(matches!(digest.digits().len(), 40 | 64));
        }
        if let Some(etag) = strong_etag(line) {
            assert!(!etag.starts_with("W/"));
        }
    }
}

/// Selected files are of the list, and their paths are safe.
fn list(bytes: &[u8]) {
    // A refused answer is as good as none.
    let _ = read_commit("fuzz", bytes);
    let repo = RepoId::parse("org/repo").expect("a repository");
    let mut files = Vec::new();
    if read_page(&repo, "fuzz", bytes, &mut files).is_err() {
        return;
    }
    for file in &files {
        check_path(&file.path, System::Unix).expect("a page has only safe paths");
        projector(&file.path, &files);
    }
    for text in ["org/repo", "org/repo:Q4_K_M", "org/repo/a.gguf"] {
        let name = HubName::parse(text).expect("a name");
        match select(&name, &files) {
            Ok(selection) => {
                assert!(!selection.files.is_empty() && selection.files.iter().all(|i| *i < files.len()))
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
