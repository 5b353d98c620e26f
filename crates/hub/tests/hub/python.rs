//! The same cache with huggingface_hub: it reads ours and we its, without a byte from the network.
//!
//! `CHASKI_HF_PYTHON` names one or several Pythons, separated by colons, that have the package.

use std::process::Command;

use crate::{Client, NAME, SIZE, bytes, skipped, tiny};

fn pythons() -> Vec<String> {
    let names = std::env::var("CHASKI_HF_PYTHON").unwrap_or_default();
    let names: Vec<String> = names.split(':').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    if names.is_empty() {
        skipped("huggingface_hub (set CHASKI_HF_PYTHON to a Python that has it)");
    }
    names
}

/// Runs a script with the hub's address and the cache, and gives what it prints.
fn python(python: &str, client: &Client, script: &str) -> String {
    let output = Command::new(python)
        .args(["-c", script])
        .env("HF_ENDPOINT", &client.config.endpoint)
        .env("HF_HUB_CACHE", &client.config.cache)
        .env("HF_HOME", client.folder().join("home"))
        .env("HF_HUB_DISABLE_XET", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

const GET: &str = "from huggingface_hub import hf_hub_download as get\n";

#[test]
fn huggingface_hub_reads_our_cache() {
    for program in pythons() {
        let hub = tiny();
        let client = Client::of(&hub);
        let found = client.pull(NAME).unwrap();
        hub.take_log();
        let script = format!("{GET}print(get('org/tiny-GGUF', 'tiny-Q4_0.gguf', local_files_only=True))");
        assert_eq!(python(&program, &client, &script), found.path.to_str().unwrap());
        // It may ask for other things, such as a list of programs that it counts.
        let of_repo =
            || hub.take_log().into_iter().filter(|l| l.path.contains("org/tiny-GGUF")).collect::<Vec<_>>();
        assert!(of_repo().is_empty());
        // Online it asks for the head, and takes the file that is here.
        let script = format!("{GET}print(get('org/tiny-GGUF', 'tiny-Q4_0.gguf'))");
        assert_eq!(python(&program, &client, &script), found.path.to_str().unwrap());
        let log = of_repo();
        assert!(!log.is_empty() && log.iter().all(|l| !l.is_storage()), "{log:?}");
        // Its own look at the cache finds nothing wrong with ours, the list of the commit included; old versions do
        // not know the tag that new ones write, too.
        let script = "from huggingface_hub import scan_cache_dir\n\
            info = scan_cache_dir()\n\
            warnings = [str(w) for w in info.warnings if 'CACHEDIR.TAG' not in str(w)]\n\
            print(warnings, [(r.repo_id, r.size_on_disk, r.nb_files) for r in info.repos])";
        assert_eq!(python(&program, &client, script), format!("[] [('org/tiny-GGUF', {SIZE}, 1)]"));
    }
}

#[test]
fn we_read_the_cache_of_huggingface_hub() {
    for program in pythons() {
        let hub = tiny();
        let client = Client::of(&hub);
        let script = format!("{GET}print(get('org/tiny-GGUF', 'tiny-Q4_0.gguf'))");
        let path = python(&program, &client, &script);
        hub.take_log();
        assert_eq!(client.find(NAME).unwrap().path.to_str(), Some(path.as_str()));
        assert!(hub.take_log().is_empty());
        let found = client.pull(NAME).unwrap();
        assert_eq!(std::fs::read(found.path).unwrap(), bytes(SIZE, 1));
        assert!(hub.take_log().iter().all(|l| !l.is_storage()));
        // A whole snapshot of theirs has the list of its commit in later versions.
        python(
            &program,
            &client,
            "from huggingface_hub import snapshot_download as get\nget('org/tiny-GGUF')",
        );
        assert!(client.find("hf:org/tiny-GGUF:F32").is_some());
    }
}
