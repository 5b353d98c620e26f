//! Every example of the readmes and of each `--help` runs as it stands, with files under the names that it uses.
#![cfg(unix)]

#[allow(dead_code, reason = "the tests of the hub itself use all of it")]
#[path = "../../hub/tests/hub/fake.rs"]
mod fake;

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Examples that do not run here, and why.
const NOT_RUN: &[(&str, &str)] = &[
    ("cargo install --path crates/cli", "compiles the command"),
    ("cargo install chaski-cli", "downloads the command"),
    (
        "cargo run --release -- run -p \"Once upon a time\"",
        "compiles the command, which runs this text below",
    ),
    ("cargo xtask test", "runs this test"),
    ("cargo xtask web", "builds the package for browsers"),
    ("python3 -m http.server -d target/web-page", "serves until it is stopped"),
    ("chaski serve model.gguf", "serves until it is stopped: tests/cli/serve.rs has it"),
    ("chaski serve MODEL", "the same"),
    ("chaski serve --models-dir DIR", "the same"),
    ("chaski serve", "the same"),
    ("chaski run model.gguf", "a chat: tests/terminal has them"),
    ("chaski run MODEL", "a chat"),
    ("chaski run hf:org/repo:Q4_K_M", "a chat"),
    ("chaski run hf:org/repo-GGUF:Q4_K_M", "a chat"),
    ("chaski pull https://host/a.gguf", "there is no such host"),
    ("chaski run large.gguf --device 0,1 -ts 3,1", "needs two GPUs"),
    ("chaski run moe.gguf --experts-on-cpu 99", "a chat, and there is no MoE model with a vocabulary"),
    ("chaski run MODEL --swarm ADDR", "a chat: tests/cli/swarm.rs has hub and workers"),
    ("chaski worker wss://HOST:PORT --token-file FILE", "works until it is stopped: the same"),
    ("chaski worker ws://ADDR", "the same"),
    ("chaski worker ws://127.0.0.1:8090", "the same"),
    ("chaski swarm status ADDR", "needs a hub: the same"),
    ("chaski swarm plan MODEL ...", "there is no MoE model with a vocabulary: the same"),
    ("chaski devices --measure", "measures a GPU for a while: tests/cli/gpu.rs runs it"),
    ("chaski tune model.gguf", "tries kernels of a GPU for a while"),
];

/// Words of usage lines, and values for them.
const WORDS: [(&str, &str); 4] =
    [("MODEL", "model.gguf"), ("PROMPT", "\"Why?\""), ("TEXT", "\"Why?\""), ("FILE", "line.txt")];

/// Short measurements and answers, on the CPU, which every machine has.
const CONFIG: &str = "\
device = \"cpu\"
n-predict = 4
[embed]
pooling = \"mean\"
[bench]
n-prompt = 8
n-gen = 2
repetitions = 1
[imatrix]
chunks = 1
";

/// The lines of shell blocks of a Markdown file, without comments.
fn of_readme(text: &str) -> Vec<String> {
    let mut examples = Vec::new();
    for block in text.split("```sh\n").skip(1) {
        let block = block.split("```").next().unwrap();
        let lines = block.lines().map(|line| line.split(" #").next().unwrap().trim());
        examples.extend(lines.filter(|line| !line.is_empty()).map(str::to_owned));
    }
    examples
}

/// The lines of a `--help` that begin with the command, up to their explanations, and longer ones in its sentences.
fn of_help(text: &str) -> Vec<String> {
    let lines =
        text.lines().filter_map(|line| line.strip_prefix("  ").filter(|line| line.starts_with("chaski ")));
    let mut examples: Vec<String> =
        lines.map(|line| line.split("  ").next().unwrap().trim().to_owned()).collect();
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let quoted = flat.split('`').skip(1).step_by(2);
    examples.extend(quoted.filter(|text| text.contains("| chaski ")).map(str::to_owned));
    examples
}

fn chaski(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chaski"));
    command.args(args);
    command
}

fn text(o: &Output) -> String {
    assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
    String::from_utf8(o.stdout.clone()).unwrap()
}

/// All examples, each once, in order.
fn examples() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readmes = [root.join("../../README.md"), root.join("README.md")];
    let mut all: Vec<String> =
        readmes.iter().flat_map(|path| of_readme(&std::fs::read_to_string(path).unwrap())).collect();
    let help =
        |command: &[&str]| text(&chaski(command).arg("--help").env("COLUMNS", "200").output().unwrap());
    let top = help(&[]);
    let (_, list) = top.split_once("Commands:\n").unwrap();
    let list = list.split("\n\n").next().unwrap();
    let commands: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() > 12, "{commands:?}");
    all.extend(of_help(&top));
    for command in commands.iter().filter(|name| **name != "help") {
        all.extend(of_help(&help(&[command])));
    }
    let mut seen = BTreeSet::new();
    all.retain(|example| seen.insert(example.clone()));
    all
}

/// Usage lines have words in capitals for names.
fn filled(example: &str) -> String {
    let value = |word: &str| match WORDS.iter().find(|(name, _)| *name == word) {
        Some((_, value)) => (*value).to_owned(),
        None => word.to_owned(),
    };
    let example = example.replace("rerank MODEL", "rerank reranker.gguf");
    example.split(' ').map(value).collect::<Vec<_>>().join(" ")
}

/// A folder with the files that examples name.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../chaski/model/storyteller-Q4_K_M.gguf");
    std::fs::copy(&model, path("model.gguf")).unwrap();
    let reranker = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/encoders/reranker.gguf");
    std::fs::copy(&reranker, path("reranker.gguf")).unwrap();
    let f16 = path("model-f16.gguf");
    text(
        &chaski(&[
            "quantize",
            "-q",
            "--allow-requantize",
            model.to_str().unwrap(),
            f16.to_str().unwrap(),
            "f16",
        ])
        .output()
        .unwrap(),
    );
    let story = "Once upon a time there was a fox who lost a kite. ".repeat(60);
    std::fs::write(path("text.txt"), story).unwrap();
    std::fs::write(path("line.txt"), "Once upon a time\n").unwrap();
    std::fs::write(path("config.toml"), CONFIG).unwrap();
    // For `git diff`.
    assert!(Command::new("git").args(["init", "-q"]).current_dir(&folder).status().unwrap().success());
    folder
}

/// Time for one example; most take less than a second.
const LIMIT: Duration = Duration::from_secs(120);

/// The output of a command; `None` if it does not end in time: it is killed then, with the processes that it started.
fn output_in_time(mut command: Command) -> Option<Output> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let child = command.spawn().unwrap();
    let group = format!("-{}", child.id());
    let (sender, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output().unwrap()));
    let output = ended.recv_timeout(LIMIT).ok();
    if output.is_none() {
        assert!(Command::new("kill").args(["-KILL", "--", &group]).status().unwrap().success());
    }
    output
}

#[test]
fn every_example_runs_as_it_stands() {
    let examples = examples();
    assert!(examples.len() > 25, "{examples:?}");
    for (example, _) in NOT_RUN {
        assert!(examples.iter().any(|known| known == example), "no example any more: {example}");
    }
    let folder = folder();
    let model = std::fs::read(folder.path().join("model.gguf")).unwrap();
    let hub =
        fake::FakeHub::start().with("org/repo", &[("repo-Q4_K_M.gguf", model.clone()), ("file.gguf", model)]);
    let bin: PathBuf = Path::new(env!("CARGO_BIN_EXE_chaski")).parent().unwrap().into();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut failed = Vec::new();
    for example in examples.iter().filter(|example| NOT_RUN.iter().all(|(not, _)| not != example)) {
        let mut command = Command::new("sh");
        command.args(["-c", &filled(example)]).current_dir(&folder).stdin(Stdio::null());
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CHASKI_"))
        {
            command.env_remove(name);
        }
        command.env("PATH", format!("{}:{path}", bin.display())).env("CHASKI_CONFIG", "config.toml");
        command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
        command.env("HF_ENDPOINT", hub.endpoint()).env("HF_HOME", folder.path().join("hub"));
        let Some(o) = output_in_time(command) else {
            failed.push(format!("{example}: it runs for more than {} s", LIMIT.as_secs()));
            continue;
        };
        if !o.status.success()
            || o.stdout.is_empty()
                && ["quantize", "imatrix", " > "].iter().all(|word| !example.contains(word))
        {
            failed.push(format!("{example}: {}\n{}", o.status, String::from_utf8_lossy(&o.stderr)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
