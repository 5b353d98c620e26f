//! Hostile templates and grammars, each in a process of its own with little stack and memory: every one ends by
//! itself, with a result or an error.
#![cfg(all(target_os = "linux", feature = "constraint"))]

#[path = "hostile/grammars.rs"]
mod grammars;
#[path = "hostile/templates.rs"]
mod templates;

mod common;

use std::error::Error;
use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use chaski_text::{ChatTemplate, Constraint, LocalTime, Message, TemplateOptions, Tokenizer, TokenizerSpec};

/// Address space of a process, in KiB.
const MEMORY: u32 = 512 << 10;
/// Memory that a rendering may touch, in KiB: 64 MiB of values, as much for buffers that grow, and the process.
const TOUCHED: u64 = 192 << 10;
/// The machine may be busy.
const TIME: Duration = Duration::from_secs(60);
/// Stacks of the thread, in bytes.
const STACKS: [usize; 2] = [8 << 20, 1 << 20];
/// The test, which runs itself for each case.
const TEST: &str = "hostile_inputs_end_by_themselves";
/// The case that a process is for: the size of the stack, the kind, the index.
const CASE: &str = "CHASKI_HOSTILE_CASE";

/// Ends in one line: the result's length or the error.
fn run(case: &str) -> Result<usize, String> {
    let (kind, index) = case.split_once(' ').unwrap();
    let index: usize = index.parse().unwrap();
    if kind == "template" {
        let now = Some(LocalTime::from_unix(0, 0));
        let options = TemplateOptions { now, ..TemplateOptions::default() };
        let (_, source) = &templates::corpus()[index];
        let template = ChatTemplate::new(source.as_str()).map_err(words)?;
        return template
            .render_exact(&[Message::new("user", "Hi")], &options)
            .map(|text| text.len())
            .map_err(words);
    }
    let grammar = grammars::corpus()[index].1();
    let tokenizer = tokenizer();
    let mut constraint = Constraint::new(&tokenizer, &grammar).map_err(words)?;
    let mut n_token = 0;
    // Some steps, too: the first allowed token each time.
    while n_token < 20 && !constraint.is_finished() {
        let mut logits = vec![0.0; tokenizer.n_vocab()];
        constraint.mask(&mut logits).map_err(words)?;
        let Some(token) = logits.iter().position(|logit| *logit == 0.0) else { break };
        constraint.accept(token as u32).map_err(words)?;
        n_token += 1;
    }
    Ok(n_token)
}

/// A vocabulary of all bytes and some words.
fn tokenizer() -> Tokenizer {
    let bytes = (0..=255).map(|byte| (format!("<0x{byte:02X}>"), 6));
    let control = [("<unk>", 2), ("<s>", 3), ("</s>", 3)].map(|(text, kind)| (text.to_owned(), kind));
    let letters = (' '..='~').map(|c| (c.to_string(), 1));
    let words =
        ["true", "false", "null", "\":", "\", \"", "w1", "aa", "abc"].map(|text| (text.to_owned(), 1));
    let all = control.into_iter().chain(bytes).chain(letters).chain(words);
    let (tokens, token_types) = all.unzip();
    Tokenizer::from_spec(TokenizerSpec {
        model: "llama".into(),
        tokens,
        token_types,
        ..TokenizerSpec::default()
    })
    .unwrap()
}

fn words(error: impl Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}

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
    let cases: Vec<(String, &String, usize)> = names
        .chain(more)
        .filter(|(case, name)| name.contains(&only) || case.contains(&only))
        .flat_map(|(case, name)| STACKS.map(|stack| (case.clone(), name, stack)))
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
    common::say(&format!(
        "{n_template} hostile templates and {n_grammar} grammars, {} processes: {} ended otherwise",
        cases.len(),
        problems.lock().unwrap().len()
    ));
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}
