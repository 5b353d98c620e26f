//! Without the network: what is here is found, and no request is made.

use chaski_hub::{FailureKind, HubError};

use crate::{Client, NAME, tiny};

#[test]
fn offline_finds_what_is_here() {
    let hub = tiny();
    let client = Client::of(&hub);
    let online = client.pull(NAME).unwrap();
    hub.take_log();
    let client = client.with(|config| config.offline = true);
    assert_eq!(client.pull(NAME).unwrap().path, online.path);
    assert_eq!(client.pull("hf:org/tiny-GGUF/tiny-Q4_0.gguf").unwrap().path, online.path);
    assert!(hub.take_log().is_empty());
}

#[test]
fn offline_misses_say_so() {
    let hub = tiny();
    let client = Client::of(&hub);
    client.pull(NAME).unwrap();
    hub.take_log();
    let client = client.with(|config| config.offline = true);
    for name in ["hf:org/other", "hf:org/tiny-GGUF@v2:Q4_0", "https://example.org/a.gguf"] {
        let error = client.pull(name).unwrap_err();
        assert!(matches!(error, HubError::Offline { .. }), "{name}: {error:?}");
        assert_eq!(error.kind(), FailureKind::NoModel);
        assert!(error.to_string().contains(name) && error.to_string().contains("--offline"), "{error}");
    }
    let error = client.pull("hf:org/tiny-GGUF:F32").unwrap_err();
    assert!(error.to_string().contains("tiny-Q4_0.gguf"), "{error}");
    assert!(hub.take_log().is_empty());
}

#[test]
fn without_a_list_of_all_files_a_name_that_leaves_a_choice_is_asked_for() {
    let hub = tiny();
    let client = Client::of(&hub);
    client.pull("hf:org/tiny-GGUF:F32").unwrap();
    // As older programs leave the cache.
    std::fs::remove_dir_all(client.repo().join("trees")).unwrap();
    assert!(client.find("hf:org/tiny-GGUF:F32").is_some() && client.find("hf:org/tiny-GGUF").is_none());
    let client = client.with(|config| config.offline = true);
    assert!(client.pull("hf:org/tiny-GGUF").unwrap().path.ends_with("tiny-f32.gguf"));
}
