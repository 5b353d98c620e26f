//! The cache: read only, without links, shared, listed, verified, repaired, removed, pruned.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chaski_hub::{HubError, Links, ModelName, Verdict, Verified, Watch};

use crate::fake::{Faults, sha256};
use crate::{Client, NAME, SIZE, bytes, names, tiny};

fn verify(client: &Client, name: Option<&str>) -> Vec<Verified> {
    let name = name.map(|name| ModelName::parse(name).unwrap());
    client.hub().verify(name.as_ref(), &mut Watch { cancel: Arc::default(), tell: &mut |_| {} }).unwrap()
}

fn remove(client: &Client, name: &str) -> Result<chaski_hub::Removed, HubError> {
    client.hub().remove(&ModelName::parse(name).unwrap(), false)
}

#[cfg(unix)]
#[test]
fn a_read_only_cache_is_used_as_it_is() {
    use std::os::unix::fs::PermissionsExt as _;
    fn set(folder: &Path, mode: u32) {
        for entry in
            std::fs::read_dir(folder).unwrap().map(Result::unwrap).filter(|e| e.file_type().unwrap().is_dir())
        {
            set(&entry.path(), mode);
        }
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let hub = tiny();
    let client = Client::of(&hub);
    let found = client.pull(NAME).unwrap();
    // A reference that cannot be renewed must not matter.
    std::fs::write(client.repo().join("refs/main"), "0".repeat(40)).unwrap();
    set(&client.config.cache, 0o555);
    let is_root = std::fs::write(client.config.cache.join("probe"), "x").is_ok();
    let cached = client.pull(NAME);
    let other = client.pull("hf:org/tiny-GGUF:F32");
    set(&client.config.cache, 0o755);
    assert_eq!(cached.unwrap().path, found.path);
    if is_root {
        return crate::skipped("a user other than root, for its second half");
    }
    assert!(matches!(other.unwrap_err(), HubError::File { .. }));
}

#[test]
fn without_links_files_lie_in_the_snapshot() {
    let hub = tiny();
    let client = Client::of(&hub).with(|config| config.links = Links::Never);
    let found = client.pull(NAME).unwrap();
    assert!(std::fs::symlink_metadata(&found.path).unwrap().is_file() && client.blobs().is_empty());
    hub.take_log();
    assert_eq!(client.find(NAME), Some(found.clone()));
    client.pull(NAME).unwrap();
    assert!(hub.take_log().iter().all(|l| !l.is_storage()));
    // The list of the commit has the digest.
    let verified = verify(&client, None);
    assert!(verified.len() == 1 && verified[0].verdict == Verdict::Intact, "{verified:?}");
    // Of an old blob, which another snapshot links to, a copy is made.
    let linked = Client::of(&hub);
    linked.pull(NAME).unwrap();
    hub.change("org/tiny-GGUF", |repo| drop(repo.files.insert("new.txt".into(), vec![1])));
    let linked = linked.with(|config| config.links = Links::Never);
    let copied = linked.pull(NAME).unwrap();
    assert!(std::fs::symlink_metadata(&copied.path).unwrap().is_file() && linked.blobs().len() == 1);
    assert_eq!(remove(&client, NAME).unwrap().n_byte, SIZE as u64);
    assert!(client.find(NAME).is_none());
}

#[test]
fn a_new_commit_shares_the_blobs_of_the_old_one() {
    let hub = tiny();
    let client = Client::of(&hub);
    let old = client.pull(NAME).unwrap();
    hub.change("org/tiny-GGUF", |repo| drop(repo.files.insert("README.md".into(), b"new".to_vec())));
    hub.take_log();
    let new = client.pull(NAME).unwrap();
    assert!(new.path != old.path && old.path.exists());
    assert!(hub.take_log().iter().all(|l| !l.is_storage()));
    let models = client.hub().list(false);
    assert_eq!((models.len(), models[0].n_byte, models[0].revisions.len()), (1, SIZE as u64, 2));
    assert!(models[0].revisions.iter().all(|r| r.files[0].n_user == 2));
    let current = hub.commit("org/tiny-GGUF");
    for revision in &models[0].revisions {
        assert_eq!(revision.refs == ["main"], revision.commit == current, "{revision:?}");
    }
}

#[test]
fn removal_leaves_what_others_use() {
    let hub = tiny();
    let client = Client::of(&hub);
    client.pull(NAME).unwrap();
    client.pull("hf:org/tiny-GGUF:F32").unwrap();
    let removed = remove(&client, "hf:org/tiny-GGUF:F32").unwrap();
    assert_eq!((removed.files.len(), removed.n_byte, removed.n_kept), (1, 2 * SIZE as u64, 0));
    assert!(client.find(NAME).is_some() && client.find("hf:org/tiny-GGUF:F32").is_none());
    assert!(matches!(remove(&client, "hf:org/other"), Err(HubError::NotCached { .. })));
    remove(&client, "hf:org/tiny-GGUF:F32").unwrap_err();
    remove(&client, "hf:org/tiny-GGUF").unwrap();
    assert!(!client.repo().exists() && client.hub().list(true).is_empty());
}

#[test]
fn removal_of_a_revision_leaves_other_commits() {
    let hub = tiny();
    let client = Client::of(&hub);
    client.pull(NAME).unwrap();
    let old = hub.commit("org/tiny-GGUF");
    hub.change("org/tiny-GGUF", |repo| drop(repo.files.insert("tiny-Q4_0.gguf".into(), bytes(SIZE, 6))));
    let new = client.pull(NAME).unwrap();
    client.pull("hf:org/tiny-GGUF:F32").unwrap();
    client.pull(&format!("hf:org/tiny-GGUF@{old}:F32")).unwrap();
    let trial = client.hub().remove(&ModelName::parse(&format!("hf:org/tiny-GGUF@{old}")).unwrap(), true);
    let trial = trial.unwrap();
    // The commits share one of the contents.
    assert_eq!((trial.files.len(), trial.n_byte, trial.n_kept), (2, SIZE as u64, 2 * SIZE as u64));
    assert!(trial.files.iter().all(|path| path.exists()));
    assert_eq!(remove(&client, &format!("hf:org/tiny-GGUF@{old}:Q4_0")).unwrap().n_byte, SIZE as u64);
    assert_eq!(remove(&client, &format!("hf:org/tiny-GGUF@{old}")).unwrap().n_kept, 2 * SIZE as u64);
    assert!(!client.repo().join("snapshots").join(&old).exists());
    assert_eq!(client.find(NAME).unwrap(), new);
    assert!(matches!(remove(&client, &format!("hf:org/tiny-GGUF@{old}")), Err(HubError::NotCached { .. })));
    assert!(matches!(remove(&client, "hf:org/tiny-GGUF@v9"), Err(HubError::NotCached { .. })));
    // A branch whose commit is gone is dropped.
    assert_eq!(remove(&client, "hf:org/tiny-GGUF@main:F32").unwrap().files.len(), 1);
    assert!(client.repo().join("refs/main").exists());
    remove(&client, "hf:org/tiny-GGUF@main").unwrap();
    assert!(!client.repo().exists());
}

#[test]
fn removal_of_a_file_leaves_parts_and_locks() {
    let hub = tiny();
    let client = Client::of(&hub).with(|config| config.limits.delays.clear());
    client.pull(NAME).unwrap();
    hub.set(Faults { cut: Some((100_000, 1)), ..Faults::default() });
    client.pull("hf:org/tiny-GGUF:F32").unwrap_err();
    let unnamed = "ab".repeat(32);
    std::fs::write(client.repo().join("blobs").join(&unnamed), [0; 10]).unwrap();
    assert_eq!(remove(&client, NAME).unwrap().n_byte, SIZE as u64);
    let part = format!("{}.chaski-part", sha256(&bytes(2 * SIZE, 2)));
    let mut expected = [unnamed.clone(), part.clone(), format!("{part}.json")];
    expected.sort();
    assert_eq!(client.blobs(), expected);
    hub.set(Faults::default());
    hub.take_log();
    client.pull("hf:org/tiny-GGUF:F32").unwrap();
    assert!(hub.take_log().iter().any(|l| l.header("range") == Some("bytes=100000-")));
    // Contents that somebody locks stay, and so do locks.
    let blob = sha256(&bytes(2 * SIZE, 2));
    let locks = client.config.cache.join(".locks/models--org--tiny-GGUF");
    let file = std::fs::File::options().write(true).open(locks.join(format!("{blob}.lock"))).unwrap();
    file.lock().unwrap();
    let removed = remove(&client, "hf:org/tiny-GGUF").unwrap();
    assert_eq!((removed.files.len(), removed.n_byte, removed.n_kept), (1, 10, 2 * SIZE as u64));
    assert_eq!(client.blobs(), [blob]);
    file.unlock().unwrap();
    remove(&client, "hf:org/tiny-GGUF").unwrap();
    assert!(!client.repo().exists());
    assert_eq!(names(&locks).len(), 2);
}

#[test]
fn removal_of_a_repository_frees_parts_one_by_one() {
    let hub = tiny();
    let client = Client::of(&hub).with(|config| config.limits.delays.clear());
    client.pull(NAME).unwrap();
    hub.set(Faults { cut: Some((100_000, 1)), ..Faults::default() });
    client.pull("hf:org/tiny-GGUF:F32").unwrap_err();
    let other = "ab".repeat(32);
    std::fs::write(client.repo().join("blobs").join(format!("{other}.1234abcd.incomplete")), [0; 20])
        .unwrap();
    std::fs::write(client.repo().join("blobs").join("note.chaski-part.json"), [0; 3]).unwrap();
    let name = ModelName::parse("hf:org/tiny-GGUF").unwrap();
    assert_eq!(client.hub().remove(&name, true).unwrap().n_byte, SIZE as u64 + 100_023);
    // Another program goes on with one of them.
    let lock = client.config.cache.join(".locks/models--org--tiny-GGUF").join(format!("{other}.lock"));
    let file = std::fs::File::create(&lock).unwrap();
    file.lock().unwrap();
    let removed = client.hub().remove(&name, false).unwrap();
    assert_eq!((removed.files.len(), removed.n_byte), (1, SIZE as u64 + 100_003));
    assert_eq!(client.blobs(), [format!("{other}.1234abcd.incomplete")]);
    file.unlock().unwrap();
    assert_eq!(client.hub().remove(&name, false).unwrap().n_byte, 20);
    assert!(!client.repo().exists());
}

#[cfg(unix)]
#[test]
fn removal_does_not_follow_links_to_folders() {
    use std::os::unix::fs::symlink;
    let hub = tiny();
    let client = Client::of(&hub);
    client.pull(NAME).unwrap();
    let snapshots = client.repo().join("snapshots");
    let snapshot = snapshots.join(hub.commit("org/tiny-GGUF"));
    let (mine, empty) = (client.folder().join("mine"), client.folder().join("mine/empty"));
    std::fs::create_dir_all(&empty).unwrap();
    std::fs::write(mine.join("a.gguf"), "x").unwrap();
    // Links to a folder within a snapshot, to a snapshot, and in the place of a snapshot.
    symlink(&mine, snapshot.join("mine")).unwrap();
    symlink(&snapshot, snapshots.join("main")).unwrap();
    symlink(&mine, snapshots.join("elsewhere")).unwrap();
    let removed = remove(&client, "hf:org/tiny-GGUF").unwrap();
    assert_eq!((removed.files.len(), removed.n_byte), (2, SIZE as u64));
    assert!(!client.repo().exists());
    assert!(empty.exists() && mine.join("a.gguf").exists());
}

#[test]
fn split_sets_that_are_not_whole_are_verified_repaired_and_removed() {
    let files: Vec<(String, Vec<u8>)> =
        (1..=3).map(|i| (format!("a-Q8_0-{i:05}-of-00003.gguf"), bytes(50_000, i as u64))).collect();
    let rows: Vec<(&str, Vec<u8>)> =
        files.iter().map(|(path, bytes)| (path.as_str(), bytes.clone())).collect();
    let hub = tiny().with("org/split", &rows);
    let client = Client::of(&hub);
    let name = "hf:org/split:Q8_0";
    let found = client.pull(name).unwrap();
    for (n, i) in [(1, 0), (2, 2)] {
        std::fs::remove_file(&found.files[i]).unwrap();
        for verified in [verify(&client, Some(name)), verify(&client, None)] {
            assert_eq!(verified.len(), 3);
            assert_eq!((&verified[i].path, &verified[i].verdict), (&files[i].0, &Verdict::Missing));
            assert_eq!(verified.iter().filter(|v| v.verdict == Verdict::Intact).count(), 3 - n);
        }
    }
    // The blob of one is there, that of the other is not.
    std::fs::remove_file(client.config.cache.join("models--org--split/blobs").join(sha256(&files[2].1)))
        .unwrap();
    let verified = verify(&client, Some(name));
    let mut watch = Watch { cancel: Arc::default(), tell: &mut |_| {} };
    assert_eq!(client.hub().repair(&verified, &mut watch).unwrap(), 2);
    assert_eq!(client.find(name).unwrap(), found);
    std::fs::remove_file(&found.files[0]).unwrap();
    assert_eq!(remove(&client, name).unwrap().files.len(), 2);
    assert!(client.find(name).is_none() && client.hub().list(false).is_empty());
}

#[cfg(unix)]
#[test]
fn names_that_lists_leave_out_keep_their_blobs() {
    let hub = tiny();
    let client = Client::of(&hub);
    client.pull(NAME).unwrap();
    client.pull("hf:org/tiny-GGUF:F32").unwrap();
    // The one link to a blob is below many folders, or of a temporary name.
    let snapshot = client.repo().join("snapshots").join(hub.commit("org/tiny-GGUF"));
    let blob = std::fs::canonicalize(snapshot.join("tiny-f32.gguf")).unwrap();
    for path in ["a/".repeat(20) + "a.gguf", "a.gguf.tmp".into()] {
        let link = snapshot.join(path);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(snapshot.join("tiny-f32.gguf"));
        std::os::unix::fs::symlink(&blob, &link).unwrap();
        assert_eq!(client.hub().prune(Duration::ZERO, false).unwrap().files.len(), 0);
        let trial = client.hub().remove(&ModelName::parse(NAME).unwrap(), true).unwrap();
        assert_eq!((trial.files.len(), trial.n_byte), (1, SIZE as u64));
        std::fs::remove_file(&link).unwrap();
    }
    assert_eq!(client.hub().prune(Duration::ZERO, true).unwrap().files, [blob]);
    // Snapshots that cannot be read.
    let snapshots = client.repo().join("snapshots");
    std::fs::rename(&snapshots, client.folder().join("kept")).unwrap();
    std::fs::write(&snapshots, "").unwrap();
    assert!(matches!(client.hub().prune(Duration::ZERO, false), Err(HubError::File { .. })));
    assert!(matches!(remove(&client, "hf:org/tiny-GGUF"), Err(HubError::File { .. })));
    assert_eq!(client.blobs().len(), 2);
}

#[cfg(unix)]
#[test]
fn blobs_shared_by_repositories_are_followed_and_never_written_or_removed() {
    let hub = tiny();
    let client = Client::of(&hub);
    let blob = sha256(&bytes(SIZE, 1));
    // As huggingface_hub 2 lays them out.
    let shared = client.config.cache.join("blobs/ab/abcd");
    std::fs::create_dir_all(shared.parent().unwrap()).unwrap();
    std::fs::create_dir_all(client.repo().join("blobs")).unwrap();
    std::fs::write(&shared, bytes(SIZE, 1)).unwrap();
    std::os::unix::fs::symlink("../../blobs/ab/abcd", client.repo().join("blobs").join(&blob)).unwrap();
    let found = client.pull(NAME).unwrap();
    assert_eq!(std::fs::read(&found.path).unwrap(), bytes(SIZE, 1));
    assert!(hub.take_log().iter().all(|l| !l.is_storage()));
    assert_eq!(verify(&client, Some(NAME))[0].verdict, Verdict::Intact);
    // A damaged one is replaced by a blob of this repository alone.
    std::fs::write(&shared, bytes(SIZE, 8)).unwrap();
    let verified = verify(&client, None);
    assert!(matches!(verified[0].verdict, Verdict::Damaged { .. }));
    let mut watch = Watch { cancel: Arc::default(), tell: &mut |_| {} };
    assert_eq!(client.hub().repair(&verified, &mut watch).unwrap(), 1);
    assert_eq!(std::fs::read(&found.path).unwrap(), bytes(SIZE, 1));
    assert_eq!(std::fs::read(&shared).unwrap(), bytes(SIZE, 8));
    remove(&client, "hf:org/tiny-GGUF").unwrap();
    assert!(shared.exists());
}

#[test]
fn verification_finds_damage_and_repair_mends_it() {
    let hub = tiny();
    let client = Client::of(&hub);
    let found = client.pull(NAME).unwrap();
    client.pull("hf:org/tiny-GGUF/README.md").unwrap();
    let verified = verify(&client, None);
    assert!(verified.len() == 2 && verified.iter().all(|v| v.verdict == Verdict::Intact), "{verified:?}");
    let blob = client.repo().join("blobs").join(sha256(&bytes(SIZE, 1)));
    std::fs::write(&blob, bytes(SIZE, 9)).unwrap();
    // A blob of the right size is trusted until somebody asks.
    assert!(client.find(NAME).is_some());
    let verified = verify(&client, Some(NAME));
    let [Verified { verdict: Verdict::Damaged { expected, found: digest }, .. }] = &verified[..] else {
        panic!("{verified:?}")
    };
    assert_eq!(expected.digits(), sha256(&bytes(SIZE, 1)));
    assert_eq!(digest.digits(), sha256(&bytes(SIZE, 9)));
    let mut watch = Watch { cancel: Arc::default(), tell: &mut |_| {} };
    assert_eq!(client.hub().repair(&verified, &mut watch).unwrap(), 1);
    assert_eq!(std::fs::read(&found.path).unwrap(), bytes(SIZE, 1));
    assert!(matches!(
        client.hub().verify(Some(&ModelName::parse("hf:org/other").unwrap()), &mut watch),
        Err(HubError::NotCached { .. })
    ));
}

#[test]
fn verification_of_a_name_checks_its_files() {
    let hub = tiny();
    hub.change("org/tiny-GGUF", |repo| drop(repo.files.insert("a-copy.gguf".into(), bytes(SIZE, 1))));
    let client = Client::of(&hub);
    client.pull(NAME).unwrap();
    client.pull("hf:org/tiny-GGUF/a-copy.gguf").unwrap();
    assert_eq!(verify(&client, None).len(), 1, "contents once");
    for name in ["tiny-Q4_0.gguf", "a-copy.gguf"] {
        let verified = verify(&client, Some(&format!("hf:org/tiny-GGUF/{name}")));
        assert!(verified.len() == 1 && verified[0].path == name, "{verified:?}");
    }
    assert_eq!(verify(&client, Some("hf:org/tiny-GGUF@main")).len(), 1);
    let other = ModelName::parse("hf:org/tiny-GGUF@v9:Q4_0").unwrap();
    let mut watch = Watch { cancel: Arc::default(), tell: &mut |_| {} };
    assert!(matches!(client.hub().verify(Some(&other), &mut watch), Err(HubError::NotCached { .. })));
}

#[test]
fn a_repair_that_fails_leaves_what_was_there() {
    let hub = tiny();
    for links in [Links::Auto, Links::Never] {
        let client = Client::of(&hub).with(|config| config.links = links);
        let path = client.pull(NAME).unwrap().path;
        std::fs::write(&path, bytes(SIZE, 9)).unwrap();
        let verified = verify(&client, None);
        let repair = |client: &Client| {
            client.hub().repair(&verified, &mut Watch { cancel: Arc::default(), tell: &mut |_| {} })
        };
        hub.set(Faults { corrupt: 10, ..Faults::default() });
        assert!(matches!(repair(&client), Err(HubError::Damaged { .. })));
        hub.set(Faults::default());
        hub.change("org/tiny-GGUF", |repo| repo.is_private = true);
        repair(&client).unwrap_err();
        assert_eq!(std::fs::read(&path).unwrap(), bytes(SIZE, 9));
        hub.change("org/tiny-GGUF", |repo| repo.is_private = false);
        assert_eq!(repair(&client).unwrap(), 1);
        assert_eq!(std::fs::read(&path).unwrap(), bytes(SIZE, 1));
        assert_eq!(client.blobs().len(), usize::from(links == Links::Auto));
        assert_eq!(verify(&client, None)[0].verdict, Verdict::Intact);
    }
}

#[test]
fn pruning_takes_old_parts_and_unnamed_blobs() {
    let hub = tiny();
    let client = Client::of(&hub).with(|config| config.limits.delays.clear());
    client.pull(NAME).unwrap();
    hub.set(Faults { cut: Some((100_000, 1)), ..Faults::default() });
    client.pull("hf:org/tiny-GGUF:F32").unwrap_err();
    let blobs = client.repo().join("blobs");
    let unnamed = "ab".repeat(32);
    std::fs::write(blobs.join(&unnamed), [0; 10]).unwrap();
    std::fs::write(blobs.join(format!("{unnamed}.1234abcd.incomplete")), [0; 20]).unwrap();
    let names = names(&blobs);
    assert_eq!(names.len(), 5);
    assert_eq!(client.hub().prune(Duration::from_secs(3600), false).unwrap().files.len(), 0);
    let trial = client.hub().prune(Duration::ZERO, true).unwrap();
    assert_eq!((trial.files.len(), trial.n_byte), (3, 100_030));
    // A locked part is somebody's.
    let lock = client
        .config
        .cache
        .join(".locks/models--org--tiny-GGUF")
        .join(format!("{}.lock", sha256(&bytes(2 * SIZE, 2))));
    let file = std::fs::File::options().create(true).append(true).open(lock).unwrap();
    file.lock().unwrap();
    assert_eq!(client.hub().prune(Duration::ZERO, true).unwrap().n_byte, 30);
    file.unlock().unwrap();
    // So is a blob that is about to be linked.
    let lock = client.config.cache.join(".locks/models--org--tiny-GGUF").join(format!("{unnamed}.lock"));
    let file = std::fs::File::create(&lock).unwrap();
    file.lock().unwrap();
    assert_eq!(client.hub().prune(Duration::ZERO, true).unwrap().n_byte, 100_000);
    file.unlock().unwrap();
    assert_eq!(client.hub().prune(Duration::ZERO, false).unwrap(), trial);
    assert_eq!(client.blobs(), [sha256(&bytes(SIZE, 1))]);
    assert!(client.find(NAME).is_some());
}

#[test]
fn a_damaged_reference_or_list_is_as_none() {
    let hub = tiny();
    let client = Client::of(&hub);
    client.pull(NAME).unwrap();
    let tree = client.repo().join("trees").join(format!("{}.json", hub.commit("org/tiny-GGUF")));
    std::fs::write(&tree, "{").unwrap();
    assert!(client.find(NAME).is_some());
    // It is renewed; one of a later form is left to those who read it.
    client.pull(NAME).unwrap();
    let list = std::fs::read_to_string(&tree).unwrap();
    assert!(list.contains("tiny-Q4_0.gguf"), "{list}");
    let later = r#"{"format_version": 2, "files": []}"#;
    std::fs::write(&tree, later).unwrap();
    client.pull(NAME).unwrap();
    assert_eq!(std::fs::read_to_string(&tree).unwrap(), later);
    std::fs::write(client.repo().join("refs/main"), "../../../x").unwrap();
    assert!(client.find(NAME).is_none());
    client.pull(NAME).unwrap();
    assert!(client.find(NAME).is_some());
}
