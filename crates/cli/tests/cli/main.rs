//! The command from outside: what it prints, what it refuses, and its exit codes.

mod answers;
mod config;
mod doctor;
mod gpu;
mod hub;
mod inputs;
mod numbers;
mod pages;
mod progress;
mod pulls;
mod renewal;
mod routers;
mod serve;
mod show;
mod slow;
mod stopped;
mod strangers;
mod swarm;
mod templates;
mod usage;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The default model's greedy continuation of "Once upon a time" begins so, as llama.cpp has it.
pub(crate) const GOLDEN: &str = ", there lived a small,";

/// Counts a test as skipped, past the test harness, which hides what macros of passing tests print.
pub(crate) fn skip(want: &str) {
    let thread = std::thread::current();
    let line = format!("SKIPPED {}: for want of {want}\n", thread.name().unwrap_or("a test"));
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

/// True if long tests run in full.
pub(crate) fn full() -> bool {
    std::env::var_os("CHASKI_TEST_FULL").is_some_and(|v| v != "0")
}

/// True if long tests run in full; otherwise the test counts as skipped.
pub(crate) fn full_run() -> bool {
    if !full() {
        skip("a full run (CHASKI_TEST_FULL=1)");
    }
    full()
}

pub(crate) fn chaski(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chaski"));
    // Neither the user's settings nor their cache shall matter.
    for name in [
        "RUST_LOG",
        "NO_COLOR",
        "CLICOLOR_FORCE",
        "HF_ENDPOINT",
        "HF_TOKEN",
        "HF_HUB_CACHE",
        "HF_HUB_OFFLINE",
    ] {
        command.env_remove(name);
    }
    let ours = std::env::vars_os()
        .map(|(name, _)| name)
        .filter(|name| name.to_string_lossy().starts_with("CHASKI_"));
    for name in ours {
        command.env_remove(name);
    }
    command
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .env("CHASKI_CONFIG", "/dev/null")
        .args(args)
        .stdin(Stdio::null());
    command
}

pub(crate) fn run(args: &[&str]) -> Output {
    chaski(args).output().unwrap()
}

pub(crate) fn piped(args: &[&str], input: &str) -> Output {
    let mut child =
        chaski(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command may end before it reads.
    match child.stdin.take().unwrap().write_all(input.as_bytes()) {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => {}
        written => written.unwrap(),
    }
    child.wait_with_output().unwrap()
}

pub(crate) fn out(o: &Output) -> String {
    assert!(o.status.success(), "{}: {}", o.status, String::from_utf8_lossy(&o.stderr));
    String::from_utf8(o.stdout.clone()).unwrap()
}

pub(crate) fn err(o: &Output) -> String {
    String::from_utf8_lossy(&o.stderr).into_owned()
}

pub(crate) fn json(o: &Output) -> Value {
    serde_json::from_str(&out(o)).unwrap()
}

pub(crate) fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../chaski/model/storyteller-Q4_K_M.gguf")
}

pub(crate) const GREEDY: [&str; 8] = ["run", "--device", "cpu", "-n", "8", "--temp", "0", "-q"];
