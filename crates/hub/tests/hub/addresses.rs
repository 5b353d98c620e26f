//! Files at addresses that are no hub.

use std::sync::Arc;
use std::time::Duration;

use chaski_hub::{Event, FailureKind, HubError, ModelName, Verdict, Watch};

use crate::fake::Faults;
use crate::{Client, SIZE, bytes, tiny};

#[test]
fn a_file_at_an_address_is_kept_with_its_validator() {
    let hub = tiny();
    let client = Client::of(&hub);
    let name = format!("{}/plain/org/tiny-GGUF/tiny-Q4_0.gguf?v=2", hub.endpoint());
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
    let parsed = ModelName::parse(&name).unwrap();
    let mut watch = Watch { cancel: Arc::default(), tell: &mut |_| {} };
    let verified = client.hub().verify(Some(&parsed), &mut watch).unwrap();
    assert!(verified.len() == 1 && verified[0].verdict == Verdict::Unknown, "{verified:?}");
    // A download that runs is not removed.
    let lock = found.path.parent().unwrap().join(".chaski.tiny-Q4_0.gguf.lock");
    let lock = std::fs::File::options().write(true).open(lock).unwrap();
    lock.lock().unwrap();
    assert!(matches!(client.hub().remove(&parsed, false), Err(HubError::Busy { .. })));
    lock.unlock().unwrap();
    client.hub().remove(&parsed, false).unwrap();
    assert!(client.find(&name).is_none());
    assert!(matches!(client.hub().verify(Some(&parsed), &mut watch), Err(HubError::NotCached { .. })));
}

#[test]
fn pieces_of_two_files_are_never_joined() {
    let hub = tiny();
    let name = format!("http://localhost:{}/cdn/org/tiny-GGUF/tiny-Q4_0.gguf", hub.port());
    let cut = Some((100_000, 1));
    for (beginning, rest) in [
        (Faults { cut, ..Faults::default() }, Faults { ignores_if_range: true, ..Faults::default() }),
        (Faults { cut, no_etag: true, ..Faults::default() }, Faults { no_etag: true, ..Faults::default() }),
    ] {
        hub.change("org/tiny-GGUF", |repo| drop(repo.files.insert("tiny-Q4_0.gguf".into(), bytes(SIZE, 1))));
        hub.set(beginning.clone());
        let client = Client::of(&hub).with(|config| config.limits.delays.clear());
        client.pull(&name).unwrap_err();
        hub.change("org/tiny-GGUF", |repo| drop(repo.files.insert("tiny-Q4_0.gguf".into(), bytes(SIZE, 4))));
        hub.set(rest.clone());
        assert_eq!(std::fs::read(client.pull(&name).unwrap().path).unwrap(), bytes(SIZE, 4));
        // The same within one download: the file changes while the client waits for its next try.
        hub.change("org/tiny-GGUF", |repo| drop(repo.files.insert("tiny-Q4_0.gguf".into(), bytes(SIZE, 1))));
        hub.set(beginning);
        let change = &mut |event| {
            if matches!(event, Event::Waiting { .. }) {
                hub.change("org/tiny-GGUF", |repo| {
                    repo.files.insert("tiny-Q4_0.gguf".into(), bytes(SIZE, 4));
                });
                hub.set(rest.clone());
            }
        };
        let client = Client::of(&hub).with(|config| config.limits.delays = vec![Duration::from_millis(200)]);
        let found = client.pull_with(&name, change).unwrap();
        assert_eq!(std::fs::read(found.path).unwrap(), bytes(SIZE, 4));
    }
}

#[test]
fn a_file_that_another_program_fetches_meanwhile_is_not_fetched_again() {
    let hub = tiny();
    hub.set(Faults { slow: Some((20_000, Duration::from_millis(30))), ..Faults::default() });
    let name = format!("http://localhost:{}/cdn/org/tiny-GGUF/tiny-Q4_0.gguf", hub.port());
    let client = Client::of(&hub);
    let plan = client.plan(&name).unwrap();
    hub.take_log();
    let fetch = || {
        let mut watch = Watch { cancel: Arc::default(), tell: &mut |_| {} };
        client.hub().fetch(&plan, &mut watch).unwrap()
    };
    let (one, two) = std::thread::scope(|scope| {
        let (one, two) = (scope.spawn(fetch), scope.spawn(fetch));
        (one.join().unwrap(), two.join().unwrap())
    });
    assert_eq!((one.path.clone(), std::fs::read(one.path).unwrap()), (two.path, bytes(SIZE, 1)));
    let log = hub.take_log();
    assert_eq!(log.len(), 1, "{log:?}");
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
    client.hub().remove(&ModelName::parse(&name).unwrap(), false).unwrap();
    hub.set(Faults { cut: Some((100_000, 1)), ..Faults::default() });
    client.pull(&name).unwrap_err();
    hub.change("org/tiny-GGUF", |repo| drop(repo.files.insert("tiny-Q4_0.gguf".into(), bytes(SIZE, 4))));
    assert_eq!(std::fs::read(client.pull(&name).unwrap().path).unwrap(), bytes(SIZE, 4));
}

#[test]
fn a_part_behind_the_end_of_its_file_begins_again_at_once() {
    let hub = tiny();
    let client = Client::of(&hub).with(|config| config.limits.delays.clear());
    let name = format!("http://localhost:{}/cdn/org/tiny-GGUF/tiny-Q4_0.gguf", hub.port());
    hub.set(Faults { cut: Some((100_000, 1)), ..Faults::default() });
    client.pull(&name).unwrap_err();
    hub.change("org/tiny-GGUF", |repo| drop(repo.files.insert("tiny-Q4_0.gguf".into(), bytes(1000, 4))));
    hub.set(Faults { ignores_if_range: true, ..Faults::default() });
    hub.take_log();
    let mut plan = client.plan(&name).unwrap();
    // The size was not known when the plan was made.
    plan.files[0].size = None;
    let mut events = Vec::new();
    let mut tell = |event| events.push(event);
    let found = client.hub().fetch(&plan, &mut Watch { cancel: Arc::default(), tell: &mut tell }).unwrap();
    assert_eq!(std::fs::read(found.path).unwrap(), bytes(1000, 4));
    assert!(!events.iter().any(|event| matches!(event, Event::Waiting { .. })), "{events:?}");
    let statuses: Vec<u16> = hub.take_log()[1..].iter().map(|l| l.status).collect();
    assert_eq!(statuses, [416, 200]);
}

#[test]
fn signatures_are_not_stored() {
    let hub = tiny();
    let client = Client::of(&hub);
    let plain = format!("http://localhost:{}/cdn/org/tiny-GGUF/tiny-Q4_0.gguf", hub.port());
    let found = client.pull(&format!("{plain}?Expires=17&Signature=s3cret&Key-Pair-Id=k")).unwrap();
    for path in crate::names(found.path.parent().unwrap()) {
        let contents = std::fs::read(found.path.with_file_name(&path)).unwrap();
        assert!(!contents.windows(6).any(|word| word == b"s3cret"), "{path}");
    }
    assert_eq!(client.hub().list(false)[0].name, plain);
    // Whoever signed it, and without a signature, it is the same file.
    assert_eq!(client.find(&format!("{plain}?Expires=99&Signature=other")).unwrap().path, found.path);
    client.hub().remove(&ModelName::parse(&plain).unwrap(), false).unwrap();
    assert!(client.find(&plain).is_none());
}

#[test]
fn a_missing_file_and_a_page() {
    let hub = tiny();
    let client = Client::of(&hub);
    let error = client.pull(&format!("{}/cdn/org/tiny-GGUF/no.gguf", hub.endpoint())).unwrap_err();
    assert!(matches!(error, HubError::Status { status: 404, .. }), "{error:?}");
    assert_eq!(error.kind(), FailureKind::NoModel);
    hub.set(Faults { html: true, ..Faults::default() });
    let error = client.pull(&format!("{}/cdn/org/tiny-GGUF/tiny-Q4_0.gguf", hub.endpoint())).unwrap_err();
    assert!(matches!(error, HubError::Page { .. }), "{error:?}");
}
