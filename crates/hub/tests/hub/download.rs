//! Downloads: fresh, cached, cut, changed and damaged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chaski_hub::{Event, HubError, Links, ModelName, Wait, Watch};

use crate::fake::{FakeHub, Faults, Logged, sha256};
use crate::{Client, NAME, SIZE, bytes, tiny};

#[test]
fn a_fresh_download_is_whole_and_linked() {
    let hub = tiny();
    let client = Client::of(&hub);
    let mut events = Vec::new();
    let found = client.pull_with(NAME, &mut |event| events.push(event)).unwrap();
    assert_eq!(std::fs::read(&found.path).unwrap(), bytes(SIZE, 1));
    let commit = hub.commit("org/tiny-GGUF");
    assert_eq!(found.commit.as_deref(), Some(commit.as_str()));
    assert_eq!(found.path, client.repo().join("snapshots").join(&commit).join("tiny-Q4_0.gguf"));
    let target = std::fs::read_link(&found.path).unwrap();
    assert_eq!(target.to_str().unwrap(), format!("../../blobs/{}", sha256(&bytes(SIZE, 1))));
    assert_eq!(std::fs::read_to_string(client.repo().join("refs/main")).unwrap(), commit);
    assert_eq!(client.blobs(), [sha256(&bytes(SIZE, 1))]);
    assert!(client.config.cache.join("CACHEDIR.TAG").exists());
    // The list names size and digest, so there is one request for contents and none for a head.
    let log = hub.take_log();
    let paths: Vec<&str> = log.iter().map(|l| l.path.split('?').next().unwrap()).collect();
    assert_eq!(paths.len(), 4, "{paths:?}");
    assert!(paths[0].ends_with("/revision/main") && paths[1].ends_with(&format!("/tree/{commit}")));
    assert!(log.iter().all(|l| l.header("accept-encoding") == Some("identity")));
    assert!(log[2].path.contains(&format!("/resolve/{commit}/")) && log[3].is_storage());
    assert!(matches!(&events[0], Event::Planned(plan) if plan.n_missing() == SIZE as u64));
    assert!(matches!(events[1], Event::Started { file: 0, n_present: 0 }));
    let n = events.len();
    assert!(matches!(events[n - 2], Event::Verified { file: 0, .. }), "{events:?}");
    assert!(matches!(events[n - 1], Event::Done { was_cached: false, .. }), "{events:?}");
}

#[test]
fn a_cached_model_needs_no_request_to_start_and_no_body_to_pull() {
    let hub = tiny();
    let client = Client::of(&hub);
    let found = client.pull(NAME).unwrap();
    hub.take_log();
    assert_eq!(client.find(NAME).unwrap().path, found.path);
    assert!(client.find("hf:org/tiny-GGUF:Q8_0").is_none() && client.find("hf:org/tiny-GGUF:F32").is_none());
    assert!(hub.take_log().is_empty());
    let mut was_cached = None;
    let tell = &mut |event| {
        if let Event::Done { was_cached: cached, .. } = event {
            was_cached = Some(cached);
        }
    };
    assert_eq!(client.pull_with(NAME, tell).unwrap().path, found.path);
    assert_eq!(was_cached, Some(true));
    let log = hub.take_log();
    assert!(log.len() == 1 && log[0].path.ends_with("/revision/main"), "{log:?}");
}

#[test]
fn a_cut_body_goes_on_by_range_and_gives_the_same_bytes() {
    let hub = tiny();
    for at in [1, 100, 65_535, 65_536, 131_072, 200_000, SIZE - 1] {
        let client = Client::of(&hub);
        hub.set(Faults { cut: Some((at, 3)), ..Faults::default() });
        hub.take_log();
        let found = client.pull(NAME).unwrap();
        assert_eq!(std::fs::read(found.path).unwrap(), bytes(SIZE, 1), "{at}");
        let ranges: Vec<Logged> =
            hub.take_log().into_iter().filter(|l| l.header("range").is_some() && l.is_storage()).collect();
        assert!(!ranges.is_empty(), "{at}");
        let first = &ranges[0];
        assert_eq!((first.header("range"), first.status), (Some(format!("bytes={at}-").as_str()), 206));
        assert!(first.header("if-range").unwrap().starts_with('"'));
    }
}

#[test]
fn tries_that_bring_bytes_do_not_count() {
    let hub = tiny();
    hub.set(Faults { cut: Some((20_000, 12)), ..Faults::default() });
    let client = Client::of(&hub);
    let found = client.pull(NAME).unwrap();
    assert_eq!(std::fs::read(found.path).unwrap(), bytes(SIZE, 1));
    hub.set(Faults { cut: Some((0, 100)), ..Faults::default() });
    let client = Client::of(&hub);
    let error = client.pull(NAME).unwrap_err();
    assert!(matches!(error, HubError::Cut { .. } | HubError::Broken { .. }), "{error:?}");
    let n = hub.take_log().iter().filter(|l| l.is_storage()).count();
    assert_eq!(n, 13 + 6, "a first try and five more");
}

#[test]
fn a_part_of_an_earlier_run_is_used() {
    let hub = tiny();
    let client = Client::of(&hub).with(|config| config.limits.delays.clear());
    hub.set(Faults { cut: Some((150_000, 1)), ..Faults::default() });
    client.pull(NAME).unwrap_err();
    let part = format!("{}.chaski-part", sha256(&bytes(SIZE, 1)));
    assert_eq!(client.blobs(), [part.clone(), format!("{part}.json")]);
    assert_eq!(client.plan(NAME).unwrap().n_missing(), SIZE as u64 - 150_000);
    assert!(client.find(NAME).is_none());
    hub.take_log();
    let mut start = None;
    let tell = &mut |event| {
        if let Event::Started { n_present, .. } = event {
            start = Some(n_present);
        }
    };
    let found = client.pull_with(NAME, tell).unwrap();
    assert_eq!((std::fs::read(found.path).unwrap(), start), (bytes(SIZE, 1), Some(150_000)));
    let log = hub.take_log();
    let storage: Vec<&Logged> = log.iter().filter(|l| l.is_storage()).collect();
    assert_eq!((storage.len(), storage[0].n_byte), (1, SIZE - 150_000));
    assert_eq!(client.blobs(), [sha256(&bytes(SIZE, 1))]);
}

#[test]
fn a_changed_validator_or_a_server_without_ranges_begins_again() {
    let hub = tiny();
    for fault in
        [Faults { new_etag: true, ..Faults::default() }, Faults { no_ranges: true, ..Faults::default() }]
    {
        let client = Client::of(&hub).with(|config| config.limits.delays.clear());
        hub.set(Faults { cut: Some((150_000, 1)), ..Faults::default() });
        client.pull(NAME).unwrap_err();
        hub.set(fault);
        hub.take_log();
        let found = client.pull(NAME).unwrap();
        assert_eq!(std::fs::read(found.path).unwrap(), bytes(SIZE, 1));
        let log = hub.take_log();
        let storage: Vec<&Logged> = log.iter().filter(|l| l.is_storage()).collect();
        assert_eq!((storage.len(), storage[0].status, storage[0].n_byte), (1, 200, SIZE));
    }
}

#[test]
fn a_part_with_other_bytes_is_thrown_away() {
    let hub = tiny();
    let client = Client::of(&hub).with(|config| config.limits.delays.clear());
    hub.set(Faults { cut: Some((150_000, 1)), ..Faults::default() });
    client.pull(NAME).unwrap_err();
    let part = client.repo().join("blobs").join(format!("{}.chaski-part", sha256(&bytes(SIZE, 1))));
    let mut half = std::fs::read(&part).unwrap();
    half[7] ^= 1;
    std::fs::write(&part, half).unwrap();
    let found = client.pull(NAME).unwrap();
    assert_eq!(std::fs::read(found.path).unwrap(), bytes(SIZE, 1));
}

#[test]
fn damaged_bytes_are_refused_and_nothing_is_left() {
    let hub = tiny();
    hub.set(Faults { corrupt: 10, ..Faults::default() });
    let client = Client::of(&hub);
    let error = client.pull(NAME).unwrap_err();
    let HubError::Damaged { file, expected, found } = &error else { panic!("{error:?}") };
    assert_eq!((file.as_str(), expected.digits()), ("tiny-Q4_0.gguf", sha256(&bytes(SIZE, 1)).as_str()));
    assert_ne!(expected, found);
    assert!(client.blobs().is_empty() && client.find(NAME).is_none());
    assert!(!client.repo().join("snapshots").exists() && !client.repo().join("refs").exists());
    assert_eq!(
        hub.take_log().iter().filter(|l| l.is_storage()).count(),
        1,
        "no second try of a whole answer"
    );
    // Behind a cut, the pieces may belong to different files: once more from the beginning.
    hub.set(Faults { corrupt: 2, cut: Some((100_000, 1)), ..Faults::default() });
    assert_eq!(std::fs::read(client.pull(NAME).unwrap().path).unwrap(), bytes(SIZE, 1));
}

#[test]
fn a_server_that_always_cuts_and_damages_is_given_up() {
    let hub = tiny();
    let client = Client::of(&hub);
    // So often that a client without an end would be seen, and the test ends anyway.
    hub.set(Faults { corrupt: 60, cut: Some((200_000, 30)), ..Faults::default() });
    assert!(matches!(client.pull(NAME).unwrap_err(), HubError::Damaged { .. }));
    let log = hub.take_log();
    let n_begun = log.iter().filter(|l| l.is_storage() && l.header("range").is_none()).count();
    assert_eq!(n_begun, 3, "a download and two repairs");
    assert!(client.blobs().is_empty());
}

#[test]
fn small_files_are_verified_by_git() {
    let hub = tiny();
    let client = Client::of(&hub);
    let found = client.pull("hf:org/tiny-GGUF/README.md").unwrap();
    assert_eq!(std::fs::read(&found.path).unwrap(), b"# tiny\n");
    let name = std::fs::read_link(&found.path).unwrap();
    assert_eq!(name.file_name().unwrap().to_str().unwrap(), crate::fake::git_oid(b"# tiny\n"));
}

#[test]
fn a_stop_keeps_the_part_and_returns_at_once() {
    let hub = tiny();
    hub.set(Faults { silent_after: Some(100_000), ..Faults::default() });
    let client = Client::of(&hub);
    let cancel = Arc::new(AtomicBool::new(false));
    let flag = cancel.clone();
    let note = format!("{}.chaski-part.json", sha256(&bytes(SIZE, 1)));
    let (note, server) = (client.repo().join("blobs").join(note), hub.clone());
    std::thread::spawn(move || {
        // Written with the first flush.
        while !note.exists() && !server.was_waited_for() {
            std::thread::sleep(Duration::from_millis(5));
        }
        flag.store(true, Ordering::Relaxed);
    });
    let plan = client.plan(NAME).unwrap();
    let error = client.hub().fetch(&plan, &mut Watch { cancel, tell: &mut |_| {} }).unwrap_err();
    assert!(matches!(error, HubError::Interrupted), "{error:?}");
    assert!(!hub.was_waited_for());
    // At least the bytes of the first flush; the thread that is stuck in a read does not flush the rest.
    let left = client.plan(NAME).unwrap().n_missing();
    assert!(left < SIZE as u64 && left >= SIZE as u64 - 100_000, "{left}");
}

#[test]
fn silence_is_a_broken_connection() {
    let hub = tiny();
    hub.set(Faults { silent_after: Some(100_000), ..Faults::default() });
    let client = Client::of(&hub).with(|config| {
        config.limits.silence = Duration::from_secs(1);
        config.limits.delays.truncate(1);
    });
    let waits = &mut Vec::new();
    let tell = &mut |event| {
        if let Event::Waiting { reason, .. } = event {
            waits.push(reason);
            hub.set(Faults::default());
        }
    };
    let found = client.pull_with(NAME, tell).unwrap();
    assert_eq!(std::fs::read(found.path).unwrap(), bytes(SIZE, 1));
    assert!(matches!(&waits[..], [Wait::Retry(text)] if text.contains("/cdn/")), "{waits:?}");
    assert!(!hub.was_waited_for());
}

#[test]
fn several_files_come_at_once_and_the_vision_part_on_request() {
    let files: Vec<(String, Vec<u8>)> =
        (1..=6).map(|i| (format!("a-Q8_0-{i:05}-of-00006.gguf"), bytes(50_000 + i, i as u64))).collect();
    let rows: Vec<(&str, Vec<u8>)> =
        files.iter().map(|(path, bytes)| (path.as_str(), bytes.clone())).collect();
    let hub = tiny().with("org/split", &rows);
    let client = Client::of(&hub);
    hub.set(Faults { together: Some(client.config.limits.n_parallel), ..Faults::default() });
    let found = client.pull("hf:org/split:Q8_0").unwrap();
    assert_eq!(hub.most_running(), client.config.limits.n_parallel);
    assert_eq!(found.files.len(), 6);
    for (path, (name, bytes)) in found.files.iter().zip(&files) {
        assert!(path.ends_with(name) && std::fs::read(path).unwrap() == *bytes);
    }
    assert_eq!(found.path, found.files[0]);
    hub.set(Faults::default());
    let mut watch = Watch { cancel: Arc::default(), tell: &mut |_| {} };
    let plan = client.hub().plan_with_projector(&ModelName::parse(NAME).unwrap(), &mut watch).unwrap();
    let found = client.hub().fetch(&plan, &mut watch).unwrap();
    assert!(found.files.len() == 1 && found.projector.unwrap().ends_with("mmproj-F16.gguf"));
    assert!(client.find(NAME).unwrap().projector.is_some());
}

#[test]
fn contents_that_two_files_have_come_once() {
    let rows =
        [("a-Q8_0-00001-of-00002.gguf", bytes(50_000, 1)), ("a-Q8_0-00002-of-00002.gguf", bytes(50_000, 1))];
    let hub = FakeHub::start().with("org/twins", &rows);
    for links in [Links::Auto, Links::Never] {
        let client = Client::of(&hub).with(|config| config.links = links);
        let found = client.pull("hf:org/twins").unwrap();
        assert!(found.files.iter().all(|path| std::fs::read(path).unwrap() == bytes(50_000, 1)));
        assert_eq!(hub.take_log().iter().filter(|l| l.is_storage()).count(), 1);
    }
}

#[test]
fn without_locks_each_download_has_a_part_of_its_own() {
    let hub = tiny();
    let client = Client::of(&hub).with(|config| config.limits.delays.clear());
    std::fs::create_dir_all(client.repo().join("blobs")).unwrap();
    std::fs::write(client.config.cache.join(".locks"), "no folder").unwrap();
    // Another program writes this one.
    let part = format!("{}.chaski-part", sha256(&bytes(SIZE, 1)));
    let place = client.repo().join("blobs").join(&part);
    std::fs::write(&place, bytes(1000, 7)).unwrap();
    hub.set(Faults { cut: Some((100_000, 1)), ..Faults::default() });
    client.pull(NAME).unwrap_err();
    assert_eq!(client.blobs(), [part.as_str()], "nobody could use what came");
    hub.set(Faults { slow: Some((20_000, Duration::from_millis(10))), ..Faults::default() });
    let pull = || std::fs::read(client.pull(NAME).unwrap().path).unwrap();
    let (one, two) = std::thread::scope(|scope| {
        let (one, two) = (scope.spawn(pull), scope.spawn(pull));
        (one.join().unwrap(), two.join().unwrap())
    });
    assert!(one == bytes(SIZE, 1) && two == one);
    assert_eq!(std::fs::read(&place).unwrap(), bytes(1000, 7));
    assert_eq!(client.blobs(), [sha256(&bytes(SIZE, 1)), part]);
}

#[test]
fn pieces_of_other_ranges_are_refused() {
    let hub = tiny();
    let name = format!("http://localhost:{}/cdn/org/tiny-GGUF/tiny-Q4_0.gguf", hub.port());
    for claimed in ["bytes 5-9/300000", "bytes 100000-299999/50000", "bytes 1", "lines 100000-299999/300000"]
    {
        let client = Client::of(&hub);
        hub.set(Faults::default());
        // Each file of the hub and of an address; plans are made before the server goes wrong.
        let plans = [client.plan(NAME).unwrap(), client.plan(&name).unwrap()];
        for mut plan in plans {
            plan.files[0].size = plan.files[0].size.filter(|_| plan.files[0].digest.is_some());
            let claimed = Some(claimed.to_owned());
            hub.set(Faults { cut: Some((100_000, 1)), content_range: claimed, ..Faults::default() });
            let mut watch = Watch { cancel: Arc::default(), tell: &mut |_| {} };
            let error = client.hub().fetch(&plan, &mut watch).unwrap_err();
            assert!(matches!(error, HubError::Answer { .. }), "{error:?}");
        }
        let plan = client.plan(NAME).unwrap();
        let file = client.hub().remote(&plan, 0).unwrap();
        let mut watch = Watch { cancel: Arc::default(), tell: &mut |_| {} };
        let error = file.read_at(0, &mut [0; 10], &mut watch).unwrap_err();
        assert!(matches!(error, HubError::Answer { .. }), "{error:?}");
    }
}

#[test]
fn a_header_is_read_by_ranges() {
    let hub = tiny().with("org/large", &[("a-Q4_0.gguf", bytes(5 << 20, 9))]);
    let client = Client::of(&hub);
    let plan = client.plan("hf:org/large").unwrap();
    let file = client.hub().remote(&plan, 0).unwrap();
    let mut watch = Watch { cancel: Arc::default(), tell: &mut |_| {} };
    let whole = bytes(5 << 20, 9);
    hub.take_log();
    let mut read = |at: usize, n: usize| {
        let mut out = vec![0; n];
        file.read_at(at as u64, &mut out, &mut watch).map(|()| assert_eq!(out, whole[at..at + n]))
    };
    read(0, 24).unwrap();
    read(24, 1000).unwrap();
    assert_eq!(hub.take_log().iter().filter(|l| l.is_storage()).count(), 1);
    read(500_000, 2_000_000).unwrap();
    read((5 << 20) - 10, 10).unwrap();
    assert!(matches!(read((5 << 20) - 10, 11), Err(HubError::Size { .. })));
    assert!(file.n_fetched() < 5 << 20 && client.blobs().is_empty());
}
