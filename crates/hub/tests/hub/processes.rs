//! Several processes: one download for two of them, and what a killed one leaves.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::fake::{FakeHub, Faults};
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
    let (mut n_resumed, mut n_killed) = (0, 0);
    for i in 0..20 {
        let client = Client::of(&hub);
        hub.set(Faults { slow: Some((10_000, Duration::from_millis(10))), ..Faults::default() });
        hub.take_log();
        let mut child = spawn(&hub, &client);
        // The whole takes 300 ms from the request on.
        let begun = Instant::now();
        while !hub.log_has_storage() && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(15 * i));
        child.kill().unwrap();
        n_killed += u32::from(!child.wait().unwrap().success());
        hub.set(Faults::default());
        hub.take_log();
        let found = client.pull(NAME).unwrap();
        assert_eq!(std::fs::read(found.path).unwrap(), bytes(SIZE, 1), "{i}");
        assert_eq!(client.blobs().len(), 1, "{:?}", client.blobs());
        let log = hub.take_log();
        let resumed = log.iter().find(|l| l.is_storage() && l.header("range").is_some());
        if let Some(resumed) = resumed {
            assert!(resumed.header("if-range").is_some() && resumed.status == 206, "{resumed:?}");
            n_resumed += 1;
        }
        assert!(log.iter().filter(|l| l.is_storage()).count() <= 1);
    }
    assert!(n_killed >= 15 && n_resumed >= 8, "{n_killed} killed, {n_resumed} resumed");
}
