//! Builds the test binaries and runs them, two at a time.
//!
//! `cargo test` runs one binary after another, which leaves cores idle while a long test runs, and does not report how
//! long tests took. The standard harness does, but on stable compilers only with `RUSTC_BOOTSTRAP` set at run time;
//! nothing is compiled with it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{BufRead as _, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::cmd::{Cmd, Cpu, check};
use super::report::{Binary, Outcome, Skip, Test};
use super::watch::{Signs, watch};

/// The longest binaries, which start first, so that only short ones remain at the end.
const LONG: &[&str] = &[
    "whole_model",
    "cli",
    "ops",
    "http",
    "sim",
    "kernels",
    "hostile",
    "schedules",
    "xtask",
    "chaski",
    "chaski_text",
    "plans",
    "serve",
    "chaski_runtime",
];

/// Binaries in which Mesa's software device compiles far longer than it runs, so it does without optimizations. What
/// models compile runs many times.
const COMPILES: &[&str] = &["ops"];

/// A binary that writes nothing for so long hangs: no test takes a quarter of it.
const SILENCE: Duration = Duration::from_secs(600);

/// Number of binaries that run at the same time. Most run their tests in several threads.
const AT_ONCE: usize = 2;

/// A test binary.
pub(super) struct Executable {
    /// `whole_model`, or the crate's name for unit tests.
    pub(super) name: String,
    /// The main source file, relative to the package.
    source: String,
    path: PathBuf,
    /// The package's folder, the working directory of its tests.
    folder: PathBuf,
}

/// Builds with a command of the form `cargo test ... --no-run`; also returns the number of warnings, which it prints.
pub(super) fn build(cmd: &Cmd) -> anyhow::Result<(Vec<Executable>, usize)> {
    println!("$ {cmd}");
    let build = cmd.clone().args(["--message-format=json-diagnostic-rendered-ansi"]);
    let mut command = build.command();
    let out =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("could not run `{build}`"))?;
    let messages = String::from_utf8(out.stdout).with_context(|| format!("the output of `{build}`"))?;
    let diagnostics: Vec<String> = messages.lines().filter_map(diagnostic).collect();
    diagnostics.iter().for_each(|text| println!("{text}"));
    check(out.status).with_context(|| format!("`{build}`"))?;
    let mut found: Vec<Executable> = messages.lines().filter_map(executable).collect();
    ensure!(!found.is_empty(), "`{cmd}` built no tests");
    let rank = |e: &Executable| LONG.iter().position(|l| *l == e.name).unwrap_or(LONG.len());
    found.sort_by_key(rank);
    Ok((found, diagnostics.len()))
}

/// The text of a warning or an error that a message of cargo has.
fn diagnostic(line: &str) -> Option<String> {
    let message: Value = serde_json::from_str(line).ok()?;
    let found = &message["message"];
    let counts = matches!(found["level"].as_str()?, "warning" | "error");
    // A summary has no place.
    let has_place = found["spans"].as_array().is_some_and(|spans| !spans.is_empty());
    let text = found["rendered"].as_str()?.to_owned();
    (message["reason"] == "compiler-message" && counts && has_place).then_some(text)
}

/// The test binary that a message of cargo reports.
fn executable(line: &str) -> Option<Executable> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let folder = PathBuf::from(message["manifest_path"].as_str()?).parent()?.to_owned();
    let source = PathBuf::from(message["target"]["src_path"].as_str()?);
    Some(Executable {
        name: message["target"]["name"].as_str()?.replace('-', "_"),
        source: source.strip_prefix(&folder).unwrap_or(&source).display().to_string(),
        path: message["executable"].as_str()?.into(),
        folder,
    })
}

/// Runs all binaries and prints the results of each when it ends.
pub(super) fn run(all: Vec<Executable>, full: bool) -> anyhow::Result<Vec<Binary>> {
    let n_binary = all.len();
    let (queue, done) = (Mutex::new(VecDeque::from(all)), Mutex::new(Vec::new()));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let worker = || -> anyhow::Result<()> {
        while let Some(next) = take(&queue) {
            let binary = run_one(&next, full).with_context(|| format!("running {}", next.path.display()))?;
            binary.print();
            done.lock().expect("no worker panics").push(binary);
        }
        Ok(())
    };
    let results: Vec<anyhow::Result<()>> = std::thread::scope(|s| {
        let threads: Vec<_> = (0..AT_ONCE.min(cores)).map(|_| s.spawn(worker)).collect();
        threads.into_iter().map(|t| t.join().expect("a worker does not panic")).collect()
    });
    results.into_iter().collect::<anyhow::Result<()>>()?;
    let done = done.into_inner().expect("no worker panics");
    assert_eq!(done.len(), n_binary, "each binary runs once");
    Ok(done)
}

fn take(queue: &Mutex<VecDeque<Executable>>) -> Option<Executable> {
    queue.lock().expect("no worker panics").pop_front()
}

fn run_one(exe: &Executable, full: bool) -> anyhow::Result<Binary> {
    println!("running {}, {}", exe.name, exe.source);
    let start = Instant::now();
    let mut command = Command::new(&exe.path);
    // At least two threads, so that each test runs in a thread named after it.
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    command.arg(format!("--test-threads={}", cores.max(2)));
    command.args(["-Zunstable-options", "--report-time"]).env("RUSTC_BOOTSTRAP", "1");
    command.env("CARGO_MANIFEST_DIR", &exe.folder).current_dir(&exe.folder);
    if full {
        command.env("CHASKI_TEST_FULL", "1");
    }
    // Mesa's software device starts one thread per core for each device that a test opens.
    if std::env::var_os("LP_NUM_THREADS").is_none() {
        command.env("LP_NUM_THREADS", "1");
    }
    if COMPILES.contains(&exe.name.as_str()) && std::env::var_os("GALLIVM_PERF").is_none() {
        command.env("GALLIVM_PERF", "nopt");
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("it does not start")?;
    let (stdout, stderr) = (child.stdout.take().expect("a pipe"), child.stderr.take().expect("a pipe"));
    let (sign, signs) = mpsc::channel();
    // Tests write notices to standard error; the harness writes results to standard output.
    let (output, notices, hangs) = std::thread::scope(|s| {
        let child = &mut child;
        let watch = s.spawn(move || watch(child, &signs, SILENCE));
        let (mut stdout, stderr) = (Signs { from: stdout, sign: sign.clone() }, Signs { from: stderr, sign });
        let notices = s.spawn(|| notices(&exe.name, stderr));
        let mut output = Vec::new();
        let read = stdout.read_to_end(&mut output);
        let notices = notices.join().expect("reading does not panic");
        drop(stdout);
        let hangs = watch.join().expect("watching does not panic");
        (read.map(|_| String::from_utf8_lossy(&output).into_owned()), notices, hangs)
    });
    let (mut output, (skips, notes)) = (output?, notices?);
    if hangs? {
        output.push_str(&format!("\nkilled: it wrote nothing for {} s\n", SILENCE.as_secs()));
    }
    let mut cpu = Cpu::default();
    cpu.add(child.id());
    let status = child.wait()?;
    let mut tests = parse(&output);
    let unknown = skips.keys().find(|name| tests.iter().all(|t| t.name != **name));
    ensure!(unknown.is_none(), "no test has the name of one that was skipped: {unknown:?}");
    for test in tests.iter_mut().filter(|t| t.outcome == Outcome::Passed) {
        if let Some(skip) = skips.get(&test.name) {
            test.outcome = Outcome::Skipped(skip.clone());
        }
    }
    Ok(Binary {
        name: format!("{}, {}", exe.name, exe.source),
        tests,
        output,
        status,
        time: start.elapsed(),
        cpu,
        notes,
    })
}

/// Prints the lines that tests write, and returns those about skipped tests, by name, and other notices.
fn notices(name: &str, stderr: impl Read) -> anyhow::Result<(BTreeMap<String, Skip>, BTreeSet<String>)> {
    let (mut skips, mut notes, mut unread) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
    for line in BufReader::new(stderr).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        println!("{name} | {line}");
        if let Some(skip) = Skip::parse(&line) {
            skips.insert(skip.test.clone(), skip);
        } else if line.starts_with("SKIPPED: ") || line.starts_with("NOTE: ") {
            notes.insert(line);
        } else if line.starts_with("SKIPPED") {
            unread.push(line);
        }
    }
    // Otherwise a test that does not run would count as passed.
    ensure!(unread.is_empty(), "neither `SKIPPED TEST: for want of ...` nor `SKIPPED: PART`: {unread:?}");
    Ok((skips, notes))
}

/// The tests that the harness reports: `test a::b ... ok <0.012s>`.
fn parse(output: &str) -> Vec<Test> {
    let test = |line: &str| {
        let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
        let (word, time) = rest.split_once(" <").unwrap_or((rest, ""));
        let outcome = match word.split(',').next()? {
            "ok" => Outcome::Passed,
            "ignored" => Outcome::Ignored,
            "FAILED" => Outcome::Failed,
            _ => return None,
        };
        let time = time.trim_end_matches("s>").parse().unwrap_or(0.0);
        Some(Test { name: name.to_owned(), outcome, time: Duration::from_secs_f64(time) })
    };
    output.lines().filter_map(test).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_harness_are_understood() {
        let output = "\nrunning 3 tests\ntest a::b ... ok <0.250s>\ntest c ... FAILED <1.000s>\ntest d ... ignored, why\n\
                      test e has been running for over 60 seconds\ntest result: FAILED. 1 passed; 1 failed\n";
        let found: Vec<_> =
            parse(output).into_iter().map(|t| (t.name, t.outcome, t.time.as_millis())).collect();
        let expected =
            [("a::b", Outcome::Passed, 250), ("c", Outcome::Failed, 1000), ("d", Outcome::Ignored, 0)];
        assert_eq!(found, expected.map(|(n, o, t)| (n.to_owned(), o, t)));
    }

    #[test]
    fn tests_that_are_skipped_are_known_and_no_such_line_is_overlooked() {
        let lines = "SKIPPED a::b: for want of files\nSKIPPED: 3 cases\nSKIPPED by the way\n".as_bytes();
        let (skips, notes) = notices("a", &lines[..lines.len() - 19]).expect("lines of both forms");
        assert_eq!(skips.keys().collect::<Vec<_>>(), ["a::b"]);
        assert_eq!(notes.len(), 1);
        assert!(notices("a", lines).is_err());
    }

    #[test]
    fn warnings_are_found_and_summaries_are_not() {
        let line = |spans| {
            let message =
                serde_json::json!({"level": "warning", "spans": spans, "rendered": "warning: unused"});
            serde_json::json!({"reason": "compiler-message", "message": message}).to_string()
        };
        assert_eq!(diagnostic(&line(serde_json::json!([{}]))).as_deref(), Some("warning: unused"));
        assert_eq!(diagnostic(&line(serde_json::json!([]))), None);
        assert_eq!(diagnostic(r#"{"reason":"build-finished","success":true}"#), None);
    }

    #[test]
    fn messages_of_cargo_name_test_binaries() {
        let line = r#"{"reason":"compiler-artifact","manifest_path":"/w/crates/a/Cargo.toml","target":{"name":"a-b",
            "src_path":"/w/crates/a/src/lib.rs"},"profile":{"test":true},"executable":"/w/target/debug/deps/a_b-01"}"#;
        let found = executable(line).expect("a test binary");
        assert_eq!((found.name.as_str(), found.folder), ("a_b", PathBuf::from("/w/crates/a")));
        assert!(executable(&line.replace("true", "false")).is_none());
    }
}
