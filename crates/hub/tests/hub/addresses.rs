//! Files at addresses that are no hub.

use chaski_hub::HubError;

use crate::fake::Faults;
use crate::{Client, SIZE, bytes, tiny};

#[test]
fn a_file_at_an_address_is_kept_with_its_validator() {
    let hub = tiny();
    let client = Client::of(&hub);
    let name = format!("{}/plain/org/tiny-GGUF/tiny-Q4_0.gguf?key=x", hub.endpoint());
    assert!(client.find(&name).is_none());
    let found = client.pull(&name).unwrap();
    assert_eq!(std::fs::read(&found.path).unwrap(), bytes(SIZE, 1));
    assert!(found.path.ends_with("tiny-Q4_0.gguf"));
    hub.take_log();
    assert_eq!(client.find(&name).unwrap().path, found.path);
    assert!(hub.take_log().is_empty());
    // To pull again asks whether it has changed.
    client.pull(&name).unwrap();
    let log = hub.take_log();
    assert!(log.len() == 1 && log[0].status == 304 && log[0].header("if-none-match").is_some(), "{log:?}");
    hub.change("org/tiny-GGUF", |repo| drop(repo.files.insert("tiny-Q4_0.gguf".into(), bytes(1000, 4))));
    assert_eq!(std::fs::read(client.pull(&name).unwrap().path).unwrap(), bytes(1000, 4));
    let models = client.hub().list(false);
    assert_eq!((models.len(), models[0].name.as_str(), models[0].n_byte), (1, name.as_str(), 1000));
    client.hub().remove(&chaski_hub::ModelName::parse(&name).unwrap()).unwrap();
    assert!(client.find(&name).is_none());
}

#[test]
fn an_interrupted_file_goes_on() {
    let hub = tiny();
    let client = Client::of(&hub).with(|config| config.limits.delays.clear());
    let name = format!("http://localhost:{}/cdn/org/tiny-GGUF/tiny-Q4_0.gguf", hub.port());
    hub.set(Faults { cut: Some((100_000, 1)), ..Faults::default() });
    client.pull(&name).unwrap_err();
    hub.take_log();
    let found = client.pull(&name).unwrap();
    assert_eq!(std::fs::read(found.path).unwrap(), bytes(SIZE, 1));
    let log = hub.take_log();
    let last = log.last().unwrap();
    assert!(last.header("range") == Some("bytes=100000-") && last.header("if-range").is_some(), "{log:?}");
    // A part of a file that has changed meanwhile is no beginning.
    client.hub().remove(&chaski_hub::ModelName::parse(&name).unwrap()).unwrap();
    hub.set(Faults { cut: Some((100_000, 1)), ..Faults::default() });
    client.pull(&name).unwrap_err();
    hub.change("org/tiny-GGUF", |repo| drop(repo.files.insert("tiny-Q4_0.gguf".into(), bytes(SIZE, 4))));
    assert_eq!(std::fs::read(client.pull(&name).unwrap().path).unwrap(), bytes(SIZE, 4));
}

#[test]
fn a_missing_file_and_a_page() {
    let hub = tiny();
    let client = Client::of(&hub);
    let error = client.pull(&format!("{}/cdn/org/tiny-GGUF/no.gguf", hub.endpoint())).unwrap_err();
    assert!(matches!(error, HubError::Status { status: 404, .. }), "{error:?}");
    hub.set(Faults { html: true, ..Faults::default() });
    let error = client.pull(&format!("{}/cdn/org/tiny-GGUF/tiny-Q4_0.gguf", hub.endpoint())).unwrap_err();
    assert!(matches!(error, HubError::Page { .. }), "{error:?}");
}
