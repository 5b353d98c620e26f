//! Several processes: one download for two of them, and what a killed one leaves.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::fake::{FakeHub, Faults, sha256};
use crate::{Client, NAME, SIZE, bytes, tiny};

/// The variable by which this test program is a process that pulls: address and cache.
const CHILD: &str = "CHASKI_HUB_TEST_CHILD";

/// A process that pulls [`NAME`].
fn spawn(hub: &FakeHub, client: &Client) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::a_process_pulls", "--nocapture"])
        .env(CHILD, format!("{}\n{}", hub.endpoint(), client.config.cache.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Alone, this pulls from a hub of its own.
#[test]
fn a_process_pulls() {
    let hub = tiny();
    let mut client = Client::of(&hub);
    if let Ok(text) = std::env::var(CHILD) {
        let (endpoint, cache) = text.split_once('\n').unwrap();
        client.config.endpoint = endpoint.into();
        client.config.cache = cache.into();
    }
    let found = client.pull(NAME).unwrap();
    assert_eq!(std::fs::read(found.path).unwrap(), bytes(SIZE, 1));
}

#[test]
fn two_processes_make_one_download() {
    let hub = tiny();
    let client = Client::of(&hub);
    hub.set(Faults { slow: Some((20_000, Duration::from_millis(30))), ..Faults::default() });
    let mut children = [spawn(&hub, &client), spawn(&hub, &client)];
    assert!(children.iter_mut().all(|child| child.wait().unwrap().success()));
    let storage: Vec<_> = hub.take_log().into_iter().filter(|l| l.is_storage()).collect();
    assert_eq!(storage.len(), 1, "{storage:?}");
    assert_eq!(std::fs::read(client.find(NAME).unwrap().path).unwrap(), bytes(SIZE, 1));
}

#[test]
fn a_killed_process_leaves_a_part_that_the_next_one_uses() {
    let hub = tiny();
    for i in 0..20 {
        let client = Client::of(&hub);
        // Killed at any moment, or once bytes are on the disk for certain.
        let is_flushed = i >= 10;
        let n_byte = if is_flushed { 70_000 + 20_000 * (i - 10) } else { 20_000 * i };
        let (slow, silent_after) = (Some((10_000, Duration::from_millis(5))), is_flushed.then_some(n_byte));
        hub.set(Faults { slow, silent_after, ..Faults::default() });
        let (n_before, note) = (hub.n_sent(), client.repo().join("blobs").join(part_note()));
        let mut child = spawn(&hub, &client);
        let is_early = || hub.n_sent() - n_before < n_byte || is_flushed && !note.exists();
        while is_early() && child.try_wait().unwrap().is_none() {
            assert!(!hub.was_waited_for(), "{i}");
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        let was_killed = !child.wait().unwrap().success();
        hub.set(Faults::default());
        hub.take_log();
        let found = client.pull(NAME).unwrap();
        assert_eq!(std::fs::read(found.path).unwrap(), bytes(SIZE, 1), "{i}");
        assert_eq!(client.blobs().len(), 1, "{:?}", client.blobs());
        let log = hub.take_log();
        let storage: Vec<_> = log.iter().filter(|l| l.is_storage()).collect();
        assert!(storage.len() <= 1, "{storage:?}");
        if is_flushed {
            let resumed = storage[0];
            assert!(was_killed && resumed.header("range").is_some(), "{i}: {resumed:?}");
            assert!(resumed.header("if-range").is_some() && resumed.status == 206, "{resumed:?}");
        }
    }
}

/// The name of the note of a part of [`NAME`].
fn part_note() -> String {
    format!("{}.chaski-part.json", sha256(&bytes(SIZE, 1)))
}
