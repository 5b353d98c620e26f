//! Hostile templates and grammars, each in a process of its own with little stack and memory: every one ends by
//! itself, with a result or an error. `cargo xtask web-hostile` runs the same cases as WebAssembly (`hostile/wasm.rs`).
#![cfg(all(target_os = "linux", feature = "constraint"))]

#[path = "hostile/cases.rs"]
mod cases;
mod common;

use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cases::{grammars, run, templates};

/// Address space of a process, in KiB.
const MEMORY: u32 = 512 << 10;
/// Memory that a rendering may touch, in KiB: 64 MiB of values, as much for buffers that grow, and the process.
const TOUCHED: u64 = 192 << 10;
/// The machine may be busy.
const TIME: Duration = Duration::from_secs(60);
/// Stacks of the thread, in bytes; by default the smallest alone, and every second case.
const STACKS: [usize; 2] = [1 << 20, 8 << 20];
/// The test, which runs itself for each case.
const TEST: &str = "hostile_inputs_end_by_themselves";
/// The case that a process is for: the size of the stack, the kind, the index.
const CASE: &str = "CHASKI_HOSTILE_CASE";

/// The part of the test in the process that it starts for each case: says how the case ended, and the memory touched.
fn child(case: &str) {
    let (stack, case) = case.split_once(' ').unwrap();
    let (stack, case) = (stack.parse().unwrap(), case.to_owned());
    let thread = std::thread::Builder::new().stack_size(stack).spawn(move || run(&case)).unwrap();
    let line = match thread.join().unwrap() {
        Ok(n) => format!("ended: {n}"),
        Err(error) => format!("ended: error: {error}"),
    };
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let touched = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    common::say(&format!("{line}\n{touched}"));
}

/// Runs one case; the problem, if there is one.
fn problem(case: &str, stack: usize) -> Option<String> {
    let exe = std::env::current_exe().unwrap();
    let shell = format!("ulimit -c 0; ulimit -v {MEMORY}; exec \"$0\" {TEST} --exact --nocapture");
    let mut process = Command::new("sh")
        .args(["-c", &shell])
        .arg(exe)
        .env(CASE, format!("{stack} {case}"))
        .env_remove("RUST_BACKTRACE")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = process.stderr.take().unwrap();
    let reader = std::thread::spawn(move || std::io::read_to_string(stderr).unwrap_or_default());
    let started = Instant::now();
    let status = loop {
        match process.try_wait().unwrap() {
            Some(status) => break status,
            None if started.elapsed() > TIME => {
                process.kill().unwrap();
                process.wait().unwrap();
                return Some(format!("runs for more than {TIME:?}"));
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let output = reader.join().unwrap();
    let Some(ended) = output.lines().find(|line| line.starts_with("ended: ")).filter(|_| status.success())
    else {
        return Some(format!("{status}: {}", output.lines().take(4).collect::<Vec<_>>().join(" / ")));
    };
    if std::env::var_os("CHASKI_HOSTILE_VERBOSE").is_some() {
        let line: String = ended.chars().take(200).collect();
        common::say(&format!("{:6.2} s {case} ({stack}): {line}", started.elapsed().as_secs_f64()));
    }
    if output.contains("stack backtrace") || output.contains("<backtrace>") || output.contains("panicked") {
        return Some(format!("prints a backtrace: {ended}"));
    }
    // The line of the result, that of the memory, and those of the test harness.
    if ended.contains("panic") || output.lines().filter(|line| !line.is_empty()).count() > 2 {
        return Some(format!(
            "its error is not one line: {}",
            output.lines().take(4).collect::<Vec<_>>().join(" / ")
        ));
    }
    let touched: Option<u64> =
        output.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
    let Some(touched) = touched else { return Some("does not say the memory that it touched".into()) };
    (case.starts_with("template") && touched > TOUCHED).then(|| format!("touches {touched} KiB"))
}

#[test]
fn hostile_inputs_end_by_themselves() {
    if let Ok(case) = std::env::var(CASE) {
        return child(&case);
    }
    let templates = templates::corpus();
    let grammars = grammars::corpus();
    let names =
        templates.iter().map(|(name, _)| name).enumerate().map(|(i, name)| (format!("template {i}"), name));
    let more =
        grammars.iter().map(|(name, _)| name).enumerate().map(|(i, name)| (format!("grammar {i}"), name));
    let only = std::env::var("CHASKI_HOSTILE_ONLY").unwrap_or_default();
    let is_full = std::env::var("CHASKI_TEST_FULL").is_ok_and(|full| full != "0");
    let stacks = &STACKS[..if is_full { 2 } else { 1 }];
    let cases: Vec<(String, &String, usize)> = names
        .chain(more)
        .filter(|(case, name)| name.contains(&only) || case.contains(&only))
        .step_by(if is_full || !only.is_empty() { 1 } else { 2 })
        .flat_map(|(case, name)| stacks.iter().map(move |stack| (case.clone(), name, *stack)))
        .collect();
    let (next, problems) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((case, name, stack)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(problem) = problem(case, *stack) {
                        let stack = stack >> 20;
                        problems
                            .lock()
                            .unwrap()
                            .push(format!("{case} ({name}, {stack} MB of stack): {problem}"));
                    }
                }
            });
        }
    });
    let (n_template, n_grammar) = (templates.len(), grammars.len());
    let part = if is_full { "" } else { ", of which every second one ran" };
    common::say(&format!(
        "NOTE: {n_template} hostile templates and {n_grammar} grammars{part}, {} processes: {} ended otherwise",
        cases.len(),
        problems.lock().unwrap().len()
    ));
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}
