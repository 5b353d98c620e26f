//! Private and gated repositories, and the token, which no other host sees.

use chaski_hub::{FailureKind, HubError};

use crate::fake::{FakeHub, Faults, TOKEN};
use crate::{Client, NAME, tiny};

fn gated() -> FakeHub {
    let hub = tiny();
    hub.change("org/tiny-GGUF", |repo| repo.is_gated = true);
    hub
}

#[test]
fn gated_repositories_say_what_to_do() {
    let hub = gated();
    let error = Client::of(&hub).pull(NAME).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, HubError::Gated { has_token: false, .. }), "{error:?}");
    assert_eq!(error.kind(), FailureKind::NoModel);
    let page = format!("{}/org/tiny-GGUF", hub.endpoint());
    assert!(text.contains("accept its terms") && text.contains(&page) && text.contains("HF_TOKEN"), "{text}");
    let error = Client::of(&hub).with_token("hf_bad").pull(NAME).unwrap_err();
    assert!(matches!(error, HubError::Gated { has_token: true, .. }), "{error:?}");
    assert!(!error.to_string().contains("hf_bad"));
    Client::of(&hub).with_token(&format!(" {TOKEN}\n")).pull(NAME).unwrap();
}

#[test]
fn private_repositories_look_like_missing_ones() {
    let hub = tiny();
    hub.change("org/tiny-GGUF", |repo| repo.is_private = true);
    let error = Client::of(&hub).pull(NAME).unwrap_err();
    assert!(
        matches!(&error, HubError::NoRepo { has_token: false, .. }) && error.to_string().contains("HF_TOKEN")
    );
    let error = Client::of(&hub).with_token("hf_bad").pull(NAME).unwrap_err();
    assert!(matches!(error, HubError::NoRepo { has_token: true, .. }), "{error:?}");
    Client::of(&hub).with_token(TOKEN).pull(NAME).unwrap();
    let error = Client::of(&hub).pull("hf:org/nothing").unwrap_err();
    assert!(matches!(&error, HubError::NoRepo { repo, .. } if repo == "org/nothing"), "{error:?}");
}

#[test]
fn a_token_that_is_refused_is_named() {
    let hub = tiny();
    hub.set(Faults { checks_tokens: true, ..Faults::default() });
    let error = Client::of(&hub).with_token("hf_old").pull(NAME).unwrap_err();
    assert!(matches!(error, HubError::Token { .. }) && error.kind() == FailureKind::NoModel, "{error:?}");
    let text = error.to_string();
    assert!(text.contains("renew or unset HF_TOKEN") && !text.contains("hf_old"), "{text}");
    Client::of(&hub).pull(NAME).unwrap();
    Client::of(&hub).with_token(TOKEN).pull(NAME).unwrap();
}

#[test]
fn the_token_stays_with_the_hub() {
    let hub = gated();
    Client::of(&hub).with_token(TOKEN).pull(NAME).unwrap();
    let log = hub.take_log();
    assert_eq!(log.iter().filter(|l| l.is_storage()).count(), 1);
    for logged in log {
        assert_eq!(logged.header("authorization").is_some(), !logged.is_storage(), "{logged:?}");
        // One host under two names.
        let host = logged.header("host").unwrap();
        assert_eq!(host.starts_with("localhost"), logged.is_storage(), "{host}");
    }
}

#[test]
fn no_message_shows_the_token() {
    let hub = tiny();
    let client = Client::of(&hub).with_token(TOKEN);
    assert!(!format!("{:?}", client.config).contains(TOKEN));
}

#[test]
fn a_renamed_repository_is_followed_with_the_token() {
    let hub = gated();
    hub.change("org/tiny-GGUF", |repo| repo.is_private = true);
    let hub = hub.with("old/name", &[]);
    hub.change("old/name", |repo| repo.moved_to = Some("org/tiny-GGUF".into()));
    let client = Client::of(&hub).with_token(TOKEN);
    let found = client.pull("hf:old/name:Q4_0").unwrap();
    assert!(found.path.to_str().unwrap().contains("models--old--name"));
    assert!(client.find("hf:old/name:Q4_0").is_some());
}
