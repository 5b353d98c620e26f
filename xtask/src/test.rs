//! `test`: everything that a change must pass.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use crate::{kernels, tools, web};

/// Crates that build for the web: the frontend there, the test cases, and all below the frontends.
const FOR_WEB: &[&str] = &[
    "chaski-web",
    "chaski-cases",
    "ggml-format",
    "wgsl-pre",
    "chaski-text",
    "chaski-schedule",
    "chaski-graph",
    "chaski-kernels",
    "chaski-runtime",
    "chaski-models",
    "chaski",
];

/// What clippy gets to fail on any warning.
const DENY: &[&str] = &["--", "-D", "warnings"];

/// What to test.
#[derive(Copy, Clone, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scope {
    /// Formatting, lints, features, documentation, and the tests that need neither a GPU nor weights.
    Unit,
    /// Every operation against its reference, and the command.
    Gpu,
    /// Whole models, and the command.
    Models,
    /// That the crates for the web build for it.
    Wasm,
    /// The package for browsers, in a browser; takes several minutes.
    Web,
    /// All of these; what is in a browser only if there is one, or one can be installed.
    All,
}

impl Scope {
    fn has(self, part: Scope) -> bool {
        self == part || self == Scope::All
    }

    /// Which packages' tests run.
    fn packages(self) -> &'static [&'static str] {
        match self {
            Scope::Unit => &[
                "-p",
                "ggml-format",
                "-p",
                "wgsl-pre",
                "-p",
                "chaski-text",
                "-p",
                "chaski-kernels",
                "-p",
                "xtask",
            ],
            // The command is always among them: it tells whether there is a GPU.
            Scope::Gpu => &["-p", "chaski-runtime", "-p", "chaski-cli"],
            Scope::Models => &["-p", "chaski-models", "-p", "chaski", "-p", "chaski-cli"],
            Scope::Wasm | Scope::Web => &[],
            Scope::All => &["--workspace"],
        }
    }
}

/// Brings what the tests need and runs them.
///
/// # Errors
/// If something is missing and cannot be brought, or if any step fails.
pub(crate) fn run(scope: Scope, full: bool, install: bool) -> anyhow::Result<()> {
    let mut run = Run { full, install, ..Run::default() };
    let ready = run.step("tools", "cargo xtask test", |_| bring(scope, install));
    // Without its tools no step would say anything of use.
    if ready {
        run.steps(scope);
    }
    run.summary()
}

fn bring(scope: Scope, install: bool) -> anyhow::Result<()> {
    if scope.has(Scope::Unit) {
        tools::component("fmt", "rustfmt", install)?;
    }
    if scope.has(Scope::Unit) || scope.has(Scope::Wasm) {
        tools::component("clippy", "clippy", install)?;
    }
    if scope.has(Scope::Wasm) || scope.has(Scope::Web) {
        tools::wasm_target(install)?;
    }
    Ok(())
}

/// The command, built with the tests. It must come from that build: on its own it would have other features, and
/// most of its dependencies would be compiled again.
fn chaski() -> anyhow::Result<PathBuf> {
    let exe = std::env::current_exe().context("this program's own path")?;
    let chaski = exe.with_file_name(format!("chaski{}", std::env::consts::EXE_SUFFIX));
    ensure!(chaski.is_file(), "{} is missing: its own tests should have built it", chaski.display());
    Ok(chaski)
}

/// A command with its environment.
#[derive(Clone)]
struct Cmd {
    env: Vec<(&'static str, &'static str)>,
    program: PathBuf,
    args: Vec<String>,
}

impl Cmd {
    fn cargo(args: &[&str]) -> Cmd {
        Cmd { env: vec![], program: "cargo".into(), args: args.iter().map(|a| (*a).to_owned()).collect() }
    }

    fn env(mut self, name: &'static str, value: &'static str) -> Cmd {
        self.env.push((name, value));
        self
    }

    fn command(&self) -> Command {
        let mut c = Command::new(&self.program);
        c.args(&self.args).envs(self.env.iter().copied()).current_dir(crate::root()).stdin(Stdio::null());
        c
    }
}

/// As one would type it.
impl std::fmt::Display for Cmd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let quote = |s: &str| if s.contains(' ') { format!("'{s}'") } else { s.to_owned() };
        for (name, value) in &self.env {
            write!(f, "{name}={} ", quote(value))?;
        }
        f.write_str(&self.program.display().to_string())?;
        self.args.iter().try_for_each(|a| write!(f, " {}", quote(a)))
    }
}

struct Done {
    name: &'static str,
    time: Duration,
    /// What to run to see it fail again; none if it passed.
    failed: Option<String>,
}

#[derive(Default)]
struct Run {
    full: bool,
    install: bool,
    done: Vec<Done>,
    /// The line of every test binary.
    results: Vec<String>,
    /// What tests say that they left out.
    left_out: BTreeSet<String>,
}

impl Run {
    fn steps(&mut self, scope: Scope) {
        if scope.has(Scope::Unit) {
            self.command("format", Cmd::cargo(&["fmt", "--all", "--check"]));
            self.step("kernels", "cargo xtask gen-kernels --check", |_| kernels::generate(true, &[]));
            let lints = ["clippy", "--workspace", "--all-targets", "--all-features", "--keep-going"];
            self.command("lints", Cmd::cargo(&[&lints[..], DENY].concat()));
            self.features();
        }
        if scope.has(Scope::Wasm) {
            let mut args =
                vec!["clippy", "--target", "wasm32-unknown-unknown", "--features", "wgsl-pre/wasm"];
            args.extend(FOR_WEB.iter().flat_map(|p| ["-p", p]));
            args.extend(DENY);
            self.command("web build", Cmd::cargo(&args));
        }
        if scope.has(Scope::Unit) {
            let docs = Cmd::cargo(&["doc", "--workspace", "--all-features", "--no-deps", "--keep-going"]);
            self.command("documents", docs.env("RUSTDOCFLAGS", "-D warnings"));
        }
        if !matches!(scope, Scope::Wasm | Scope::Web) {
            self.tests(scope);
        }
        if scope.has(Scope::Web) {
            self.browser(scope == Scope::Web);
        }
    }

    /// Runs one step; whether it passed.
    fn step(
        &mut self,
        name: &'static str,
        command: &str,
        f: impl FnOnce(&mut Self) -> anyhow::Result<()>,
    ) -> bool {
        println!("\n=== {name}");
        let start = Instant::now();
        let result = f(self);
        let time = start.elapsed();
        let failed = match result {
            Ok(()) => {
                println!("=== {name}: ok, {}", seconds(time));
                None
            }
            Err(e) => {
                println!("=== {name}: FAILED after {}: {e:#}", seconds(time));
                Some(command.to_owned())
            }
        };
        let passed = failed.is_none();
        self.done.push(Done { name, time, failed });
        passed
    }

    fn command(&mut self, name: &'static str, cmd: Cmd) -> bool {
        self.step(name, &cmd.to_string(), |_| execute(&cmd))
    }

    /// Each crate without features, and with each of them alone.
    fn features(&mut self) {
        let mut at_fault = String::new();
        self.step("features", "cargo xtask test unit", |_| {
            for (package, features) in feature_sets()? {
                let mut args = vec!["clippy", "-p", &package, "--no-default-features"];
                if let Some(f) = &features {
                    args.extend(["--features", f]);
                }
                args.extend(DENY);
                let cmd = Cmd::cargo(&args);
                at_fault = cmd.to_string();
                execute(&cmd)?;
            }
            Ok(())
        });
        if let Some(Done { failed: Some(command), .. }) = self.done.last_mut()
            && !at_fault.is_empty()
        {
            *command = at_fault;
        }
    }

    fn tests(&mut self, scope: Scope) {
        let mut args = vec!["test", "--all-features"];
        args.extend(scope.packages());
        let mut build = Cmd::cargo(&[&args[..], &["--no-run"]].concat());
        let mut test = Cmd::cargo(&[&args[..], &["--no-fail-fast"]].concat());
        if self.full {
            build = build.env("CHASKI_TEST_FULL", "1");
            test = test.env("CHASKI_TEST_FULL", "1");
        }
        if !self.command("build tests", build) {
            return;
        }
        let needs_gpu = scope != Scope::Unit;
        if needs_gpu && !self.step("GPU", "chaski devices", |run| tools::adapter(&chaski()?, run.install)) {
            return;
        }
        self.step("tests", &test.to_string(), |run| run.watch(&test));
        if needs_gpu {
            self.main_job();
        }
    }

    /// The tests in a browser. Few machines have Node.js and a browser: unless they are asked for, tests may be left out.
    fn browser(&mut self, asked: bool) {
        let ready = tools::browser(self.install).and_then(|browser| web::modules().map(|()| browser));
        match ready {
            Err(e) if !asked => {
                let line = format!("SKIPPED: tests in a browser (`cargo xtask test web`): {e:#}");
                println!("\n{line}");
                self.left_out.insert(line);
            }
            ready => {
                self.step("browser", "cargo xtask test web", |run| {
                    run.left_out.extend(web::test(&ready?, run.install, run.full)?);
                    Ok(())
                });
            }
        }
    }

    /// Runs tests and notes their results.
    fn watch(&mut self, cmd: &Cmd) -> anyhow::Result<()> {
        println!("$ {cmd}");
        let (reader, writer) = std::io::pipe()?;
        // The command holds the pipe's writing end; it must be gone for the reading to end.
        let mut child = {
            let mut command = cmd.command();
            command.stdout(writer.try_clone()?).stderr(writer);
            command.spawn().with_context(|| format!("could not run `{cmd}`"))?
        };
        let mut what = String::new();
        for line in BufReader::new(reader).split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            println!("{line}");
            let text = line.trim();
            if let Some(rest) = text.strip_prefix("Running ").or(text.strip_prefix("Doc-tests ")) {
                what = test_name(rest);
            } else if let Some(result) = text.strip_prefix("test result: ") {
                self.results.push(format!("{what}: test result: {result}"));
            } else if text.starts_with("SKIPPED") || text.starts_with("LEFT OUT") {
                self.left_out.insert(text.to_owned());
            }
        }
        check(child.wait()?)
    }

    /// What a user does first.
    fn main_job(&mut self) {
        self.step("main job", "cargo run --release -- run -p 'Once upon a time'", |_| {
            let args = ["run", "-p", "Once upon a time", "--temp", "0", "-n", "32"].map(str::to_owned);
            let cmd = Cmd { env: vec![], program: chaski()?, args: args.to_vec() };
            println!("$ {cmd}");
            let out = cmd.command().stderr(Stdio::inherit()).output()?;
            let text = String::from_utf8_lossy(&out.stdout);
            println!("{text}");
            check(out.status)?;
            ensure!(text.split_whitespace().count() > 8, "the answer is too short");
            Ok(())
        });
    }

    fn summary(&self) -> anyhow::Result<()> {
        println!("\n=== summary");
        for d in &self.done {
            let mark = if d.failed.is_none() { "ok" } else { "FAILED" };
            println!("{mark:>6} {:>9}  {}", seconds(d.time), d.name);
        }
        println!("{:>16}  in all", seconds(self.done.iter().map(|d| d.time).sum()));
        for line in &self.left_out {
            println!("{line}");
        }
        let mut sums = [0; 3];
        for line in &self.results {
            let counts = ["passed", "failed", "ignored"].map(|word| count(line, word));
            if counts != [0; 3] {
                println!("{line}");
            }
            sums.iter_mut().zip(counts).for_each(|(s, c)| *s += c);
        }
        if !self.results.is_empty() {
            println!("tests in all: {} passed; {} failed; {} ignored", sums[0], sums[1], sums[2]);
        }
        let failed: Vec<&Done> = self.done.iter().filter(|d| d.failed.is_some()).collect();
        for d in &failed {
            println!("{} failed; to see it again: {}", d.name, d.failed.as_deref().unwrap_or_default());
        }
        if !failed.is_empty() {
            bail!("{} of {} steps failed", failed.len(), self.done.len());
        }
        println!("all {} steps passed", self.done.len());
        Ok(())
    }
}

fn execute(cmd: &Cmd) -> anyhow::Result<()> {
    println!("$ {cmd}");
    check(cmd.command().status().with_context(|| format!("could not run `{cmd}`"))?)
}

fn check(status: ExitStatus) -> anyhow::Result<()> {
    ensure!(status.success(), "{status}");
    Ok(())
}

/// Every package that has features, with none of them and with each alone.
fn feature_sets() -> anyhow::Result<Vec<(String, Option<String>)>> {
    let out = Cmd::cargo(&["metadata", "--no-deps", "--format-version", "1"]).command().output()?;
    check(out.status).context("`cargo metadata`")?;
    let metadata: Value = serde_json::from_slice(&out.stdout).context("the answer of `cargo metadata`")?;
    let packages = metadata["packages"].as_array().context("`cargo metadata` lists packages")?;
    let mut sets = Vec::new();
    for package in packages {
        let name = package["name"].as_str().context("a package has a name")?;
        let features = package["features"].as_object().context("a package has features")?;
        let features: Vec<&String> = features.keys().filter(|f| *f != "default").collect();
        if !features.is_empty() {
            sets.push((name.to_owned(), None));
            sets.extend(features.into_iter().map(|f| (name.to_owned(), Some(f.clone()))));
        }
    }
    Ok(sets)
}

/// `unittests src/lib.rs (target/debug/deps/chaski_kernels-0123456789abcdef)` to `chaski_kernels, src/lib.rs`.
fn test_name(line: &str) -> String {
    let Some((source, path)) = line.split_once(" (") else { return format!("{line}, examples in documents") };
    let file = path.trim_end_matches(')').rsplit(['/', '\\']).next().unwrap_or(path);
    let name = file.rsplit_once('-').map_or(file, |(name, _)| name);
    format!("{name}, {}", source.trim_start_matches("unittests "))
}

/// The number in front of a word of `... 3 passed; 0 failed; ...`.
fn count(line: &str, word: &str) -> u64 {
    let words: Vec<&str> = line.split([' ', ';']).collect();
    words.windows(2).find(|w| w[1] == word).and_then(|w| w[0].parse().ok()).unwrap_or(0)
}

fn seconds(t: Duration) -> String {
    format!("{:.1} s", t.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_cargo_test_are_understood() {
        assert_eq!(test_name("unittests src/lib.rs (target/debug/deps/a_b-0123)"), "a_b, src/lib.rs");
        assert_eq!(test_name("tests/ops.rs (C:\\t\\debug\\deps\\ops-0123.exe)"), "ops, tests/ops.rs");
        assert_eq!(test_name("chaski"), "chaski, examples in documents");
        let line = "x: test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; finished in 0.01s";
        assert_eq!(["passed", "failed", "ignored"].map(|w| count(line, w)), [12, 3, 0]);
    }

    #[test]
    fn commands_can_be_typed_again() {
        let cmd = Cmd::cargo(&["doc", "-p", "a b"]).env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(cmd.to_string(), "RUSTDOCFLAGS='-D warnings' cargo doc -p 'a b'");
    }
}
