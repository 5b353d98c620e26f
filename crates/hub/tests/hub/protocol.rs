//! The hub's protocol: limits, pages, redirects, revisions, and answers that must be refused.

use std::time::{Duration, Instant};

use chaski_hub::{Event, FailureKind, HubError, Wait};

use crate::fake::{FakeHub, Faults};
use crate::{Client, NAME, SIZE, bytes, tiny};

#[test]
fn a_limited_client_waits_as_long_as_it_is_told() {
    let hub = tiny();
    hub.set(Faults { status: Some((429, Some(1), 1)), ..Faults::default() });
    let mut waits = Vec::new();
    let start = Instant::now();
    let tell = &mut |event| {
        if let Event::Waiting { reason, time } = event {
            waits.push((reason, time));
        }
    };
    Client::of(&hub).pull_with(NAME, tell).unwrap();
    assert_eq!(waits, [(Wait::Server, Some(Duration::from_secs(1)))]);
    assert!(start.elapsed() >= Duration::from_secs(1));
}

#[test]
fn servers_that_fail_are_asked_again() {
    let hub = tiny();
    for status in [408, 500, 502, 503, 504] {
        hub.set(Faults { status: Some((status, None, 3)), ..Faults::default() });
        Client::of(&hub).pull(NAME).unwrap();
        hub.set(Faults { status: Some((status, None, 100)), ..Faults::default() });
        let error = Client::of(&hub).pull(NAME).unwrap_err();
        assert!(
            matches!(&error, HubError::Status { status: s, message, .. } if *s == status && message == "slow down")
        );
        assert_eq!(error.kind(), FailureKind::Network);
    }
    hub.set(Faults { status: Some((418, None, 2)), ..Faults::default() });
    Client::of(&hub).pull(NAME).unwrap_err();
    hub.set(Faults::default());
    hub.take_log();
    let error = Client::of(&hub).with(|c| c.endpoint = "http://127.0.0.1:1".into()).pull(NAME).unwrap_err();
    assert!(
        matches!(&error, HubError::Connection { address, .. } if address.contains("127.0.0.1:1")),
        "{error:?}"
    );
}

#[test]
fn an_expired_address_is_resolved_again() {
    let hub = tiny();
    hub.set(Faults { expired: 2, cut: Some((100_000, 1)), ..Faults::default() });
    let client = Client::of(&hub);
    let found = client.pull(NAME).unwrap();
    assert_eq!(std::fs::read(found.path).unwrap(), bytes(SIZE, 1));
    let log = hub.take_log();
    assert_eq!(log.iter().filter(|l| l.path.contains("/resolve/")).count(), 4, "{log:?}");
}

#[test]
fn lists_of_more_than_a_thousand_files_have_pages() {
    let files: Vec<(String, Vec<u8>)> =
        (0..1100).map(|i| (format!("notes/{i:04}.txt"), vec![0; 3])).collect();
    let mut rows: Vec<(&str, Vec<u8>)> =
        files.iter().map(|(path, bytes)| (path.as_str(), bytes.clone())).collect();
    rows.push(("z-Q4_K_M.gguf", bytes(1000, 5)));
    let hub = FakeHub::start().with("org/many", &rows);
    hub.set(Faults { page: Some(1000), ..Faults::default() });
    let found = Client::of(&hub).pull("hf:org/many").unwrap();
    assert!(found.path.ends_with("z-Q4_K_M.gguf"));
    assert_eq!(hub.take_log().iter().filter(|l| l.path.contains("/tree/")).count(), 2);
}

#[test]
fn a_loop_of_redirects_ends() {
    let hub = tiny();
    hub.set(Faults { in_circles: true, ..Faults::default() });
    let error = Client::of(&hub).pull(NAME).unwrap_err();
    assert!(
        matches!(&error, HubError::Redirect { reason, .. } if reason.contains("more than 10")),
        "{error:?}"
    );
    assert!(hub.take_log().len() < 20);
}

#[test]
fn a_page_in_place_of_a_file_is_named() {
    let hub = tiny();
    hub.set(Faults { html: true, ..Faults::default() });
    let client = Client::of(&hub);
    let error = client.pull(NAME).unwrap_err();
    assert!(matches!(&error, HubError::Page { .. }) && error.to_string().contains("proxy"), "{error:?}");
    assert!(!error.to_string().contains("Signature"), "{error}");
}

#[test]
fn paths_that_leave_the_snapshot_are_refused() {
    let hub = tiny();
    for path in ["../../../evil.gguf", "/evil.gguf", "a/../../evil.gguf"] {
        hub.set(Faults { wicked: Some(path.into()), ..Faults::default() });
        let client = Client::of(&hub);
        let error = client.pull(NAME).unwrap_err();
        assert!(matches!(&error, HubError::UnsafePath { path: found, .. } if found == path), "{error:?}");
        assert!(!client.config.cache.exists());
    }
}

#[test]
fn revisions_and_files_that_do_not_exist() {
    let hub = tiny();
    let client = Client::of(&hub);
    let error = client.pull("hf:org/tiny-GGUF@v9:Q4_0").unwrap_err();
    assert!(matches!(&error, HubError::NoRevision { revision, .. } if revision == "v9"), "{error:?}");
    let error = client.pull("hf:org/tiny-GGUF/nope.gguf").unwrap_err();
    assert!(matches!(&error, HubError::NoFile { path, .. } if path == "nope.gguf"), "{error:?}");
    let error = client.pull("hf:org/tiny-GGUF:Q8_0").unwrap_err();
    assert!(error.to_string().contains("tiny-f32.gguf (600 kB)"), "{error}");
    assert_eq!(error.kind(), FailureKind::NoModel);
    // A commit needs no question about a revision, and no reference.
    let commit = hub.commit("org/tiny-GGUF");
    hub.take_log();
    client.pull(&format!("hf:org/tiny-GGUF@{commit}:Q4_0")).unwrap();
    assert!(hub.take_log().iter().all(|l| !l.path.contains("/revision/")));
    assert!(!client.repo().join("refs").exists());
}

#[test]
fn a_missing_part_of_a_set_is_an_error_before_the_download() {
    let hub = FakeHub::start().with("org/half", &[("a-Q8_0-00001-of-00002.gguf", bytes(1000, 1))]);
    let error = Client::of(&hub).pull("hf:org/half").unwrap_err();
    assert!(
        matches!(&error, HubError::MissingPart { path, .. } if path == "a-Q8_0-00002-of-00002.gguf"),
        "{error:?}"
    );
    assert!(hub.take_log().iter().all(|l| !l.path.contains("/resolve/")));
}

#[test]
fn a_file_of_another_size_than_listed_is_refused() {
    let hub = tiny();
    hub.set(Faults { claimed: Some(SIZE as u64 - 5), ..Faults::default() });
    let client = Client::of(&hub);
    let error = client.pull(NAME).unwrap_err();
    assert!(matches!(error, HubError::Size { .. }), "{error:?}");
    assert!(client.blobs().is_empty());
}

#[test]
fn paths_with_spaces_and_folders() {
    let hub = FakeHub::start().with("org/odd", &[("sub dir/ü a-Q4_0.gguf", bytes(1000, 7))]);
    let client = Client::of(&hub);
    let found = client.pull("hf:org/odd/sub dir/ü a-Q4_0.gguf").unwrap();
    assert_eq!(std::fs::read(&found.path).unwrap(), bytes(1000, 7));
    assert!(std::fs::read_link(&found.path).unwrap().starts_with("../../../blobs"));
    assert!(client.find("hf:org/odd:Q4_0").is_some());
}

#[test]
fn checkpoints_are_folders() {
    let files = ["config.json", "model.safetensors", "tokenizer.json", "README.md", "pytorch_model.bin"];
    let rows: Vec<(&str, Vec<u8>)> =
        files.iter().zip(1..).map(|(path, i)| (*path, bytes(100 * i, i as u64))).collect();
    let hub = FakeHub::start().with("org/dense", &rows);
    let client = Client::of(&hub);
    let found = client.pull("hf:org/dense").unwrap();
    assert!(found.path.is_dir() && found.form == chaski_hub::Form::Checkpoint);
    assert_eq!(crate::names(&found.path), ["config.json", "model.safetensors", "tokenizer.json"]);
    assert_eq!(client.find("hf:org/dense").unwrap(), found);
}

#[test]
fn a_checkpoint_that_lacks_a_file_is_not_here() {
    let rows = [("config.json", bytes(100, 1)), ("model.safetensors", bytes(9000, 2))];
    let hub = FakeHub::start().with("org/dense", &rows);
    let client = Client::of(&hub).with(|config| {
        config.limits.delays.clear();
        config.limits.n_parallel = 1;
    });
    let repo = client.config.cache.join("models--org--dense");
    let commit = hub.commit("org/dense");
    hub.set(Faults { cut: Some((4000, 1)), ..Faults::default() });
    client.pull("hf:org/dense").unwrap_err();
    // As another program leaves it, the branch is known.
    std::fs::create_dir_all(repo.join("refs")).unwrap();
    std::fs::write(repo.join("refs/main"), &commit).unwrap();
    assert!(repo.join("snapshots").join(&commit).join("config.json").exists());
    assert!(client.find("hf:org/dense").is_none());
    client.pull("hf:org/dense").unwrap();
    assert!(client.find("hf:org/dense").is_some());
    // Without the list of the commit, all that is here may not be all.
    std::fs::remove_file(repo.join("trees").join(format!("{commit}.json"))).unwrap();
    assert!(client.find("hf:org/dense").is_none());
    hub.take_log();
    client.pull("hf:org/dense").unwrap();
    assert!(client.find("hf:org/dense").is_some() && hub.take_log().iter().all(|l| !l.is_storage()));
}

#[test]
fn a_part_of_a_list_does_not_decide_between_recipes() {
    let rows = [("a-UD-Q4_K_XL.gguf", bytes(1000, 1)), ("a-Q4_K_XL.gguf", bytes(1000, 2))];
    let hub = FakeHub::start().with("org/two", &rows);
    let client = Client::of(&hub);
    client.pull("hf:org/two:UD-Q4_K_XL").unwrap();
    std::fs::remove_dir_all(client.config.cache.join("models--org--two/trees")).unwrap();
    assert!(client.find("hf:org/two:UD-Q4_K_XL").is_some() && client.find("hf:org/two:Q4_K_XL").is_none());
}
