//! `test`: all checks that a change must pass.

mod binaries;
mod cmd;
mod packages;
mod report;

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;

use anyhow::{Context as _, ensure};

use self::cmd::{Cmd, check};
use self::packages::{Packages, changed};
use self::report::Report;
use crate::{kernels, tools, web};

/// Crates that build for the web: its frontend, the test cases, and everything below the frontends.
const FOR_WEB: &[&str] = &[
    "chaski-web",
    "chaski-cases",
    "ggml-format",
    "chaski-jinja",
    "wgsl-pre",
    "chaski-text",
    "chaski-schedule",
    "chaski-graph",
    "chaski-kernels",
    "chaski-runtime",
    "chaski-models",
    "chaski",
];

/// Arguments that make clippy fail on warnings.
const DENY: &[&str] = &["--", "-D", "warnings"];

/// Tests to run.
#[derive(Copy, Clone, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scope {
    /// Formatting, lints, features, documentation, and the tests that need neither a GPU nor weights.
    Unit,
    /// Every operation against its reference, and the CLI.
    Gpu,
    /// Whole models, and the CLI.
    Models,
    /// Builds of the crates for the web.
    Wasm,
    /// The npm package in a browser; takes several minutes.
    Web,
    /// Lints and tests of the crates that the working tree changes against main, and of their dependents.
    Changed,
    /// All of these; browser tests only if a browser is or can be installed.
    All,
}

impl Scope {
    fn has(self, part: Scope) -> bool {
        self == part || self == Scope::All
    }

    /// Packages to test; `None` for all.
    fn packages(self) -> Option<&'static [&'static str]> {
        match self {
            Scope::Unit => Some(&[
                "ggml-format",
                "chaski-jinja",
                "wgsl-pre",
                "chaski-graph",
                "chaski-text",
                "chaski-schedule",
                "chaski-kernels",
                "xtask",
            ]),
            // The CLI is always included: it reports whether there is a GPU.
            Scope::Gpu => Some(&["chaski-runtime", "chaski-cli"]),
            Scope::Models => Some(&["chaski-models", "chaski", "chaski-cli"]),
            Scope::Wasm | Scope::Web => Some(&[]),
            Scope::All | Scope::Changed => None,
        }
    }
}

/// Installs the tools that the tests need and runs them.
///
/// # Errors
/// A tool is missing and cannot be installed, or a step fails.
pub(crate) fn run(scope: Scope, full: bool, install: bool) -> anyhow::Result<()> {
    let mut run = Run { full, install, report: Report::default() };
    let ready = run.report.step("tools", "cargo xtask test", |_| bring(scope, install));
    // Without its tools, no step would give useful results.
    if ready {
        run.steps(scope)?;
    }
    run.report.summary()
}

fn bring(scope: Scope, install: bool) -> anyhow::Result<()> {
    let is_changed = scope == Scope::Changed;
    if scope.has(Scope::Unit) || is_changed {
        tools::component("fmt", "rustfmt", install)?;
    }
    if scope.has(Scope::Unit) || scope.has(Scope::Wasm) || is_changed {
        tools::component("clippy", "clippy", install)?;
    }
    if scope.has(Scope::Wasm) || scope.has(Scope::Web) || is_changed {
        tools::wasm_target(install)?;
    }
    Ok(())
}

/// The CLI, built with the tests: on its own it would have other features, which would rebuild most dependencies.
fn chaski() -> anyhow::Result<PathBuf> {
    let exe = std::env::current_exe().context("this program's own path")?;
    let chaski = exe.with_file_name(format!("chaski{}", std::env::consts::EXE_SUFFIX));
    ensure!(chaski.is_file(), "{} is missing: its own tests should have built it", chaski.display());
    Ok(chaski)
}

/// `-p NAME` for each name, or `--workspace`.
fn selection<S: AsRef<str>>(names: Option<&[S]>) -> Vec<String> {
    let Some(names) = names else { return vec!["--workspace".to_owned()] };
    names.iter().flat_map(|name| ["-p".to_owned(), name.as_ref().to_owned()]).collect()
}

struct Run {
    full: bool,
    install: bool,
    report: Report,
}

impl Run {
    fn steps(&mut self, scope: Scope) -> anyhow::Result<()> {
        if scope == Scope::Changed {
            return self.changed();
        }
        if scope.has(Scope::Unit) {
            self.format();
            self.kernels();
            self.lints(&selection::<&str>(None));
            self.features();
        }
        if scope.has(Scope::Wasm) {
            self.wasm(FOR_WEB);
        }
        if scope.has(Scope::Unit) {
            self.documents(&selection::<&str>(None));
        }
        if !matches!(scope, Scope::Wasm | Scope::Web) {
            self.tests(&selection(scope.packages()), scope != Scope::Unit);
        }
        if scope.has(Scope::Web) {
            self.browser(scope == Scope::Web);
        }
        Ok(())
    }

    /// Tests what the working tree's change affects; everything but the browser tests if that is all packages.
    fn changed(&mut self) -> anyhow::Result<()> {
        let all = Packages::read()?;
        let touched = changed(&all)?;
        let has = |name: &str| touched.as_ref().is_none_or(|t| t.contains(name));
        let names: Option<Vec<&str>> = touched.as_ref().map(|t| t.iter().map(String::as_str).collect());
        self.format();
        if names.as_ref().is_some_and(Vec::is_empty) {
            return Ok(());
        }
        let packages = selection(names.as_deref());
        if has("chaski-kernels") {
            self.kernels();
        }
        self.lints(&packages);
        let for_web: Vec<&str> = FOR_WEB.iter().copied().filter(|name| has(name)).collect();
        if !for_web.is_empty() {
            self.wasm(&for_web);
        }
        self.tests(&packages, has("chaski-cli"));
        Ok(())
    }

    fn command(&mut self, name: &'static str, cmd: Cmd) -> bool {
        self.report.step(name, &cmd.to_string(), |_| cmd.execute())
    }

    fn format(&mut self) {
        self.command("format", Cmd::cargo(&["fmt", "--all", "--check"]));
    }

    fn kernels(&mut self) {
        self.report.step("kernels", "cargo xtask gen-kernels --check", |_| kernels::generate(true, &[]));
    }

    fn lints(&mut self, packages: &[String]) {
        let lints = Cmd::cargo(&["clippy", "--all-targets", "--all-features", "--keep-going"]);
        self.command("lints", lints.args(packages).args(DENY));
    }

    /// The packages of `FOR_WEB` in `names`.
    fn wasm(&mut self, names: &[&str]) {
        let lints =
            Cmd::cargo(&["clippy", "--target", "wasm32-unknown-unknown"]).args(selection(Some(names)));
        let features: &[&str] =
            if names.contains(&"wgsl-pre") { &["--features", "wgsl-pre/wasm"] } else { &[] };
        self.command("web build", lints.args(features).args(DENY));
        if names.contains(&"chaski-text") {
            self.in_node("hostile inputs as WebAssembly", "cargo xtask web-hostile", web::hostile);
        }
    }

    /// A step with WebAssembly in Node.js, and the line that it adds to the summary.
    fn in_node(&mut self, name: &'static str, again: &str, f: fn(bool) -> anyhow::Result<String>) {
        if let Err(e) = tools::node() {
            let line = format!("SKIPPED: {name}: {e:#}");
            println!("\n{line}");
            self.report.notes.insert(line);
            return;
        }
        let full = self.full;
        self.report.step(name, again, |report| {
            report.notes.insert(f(full)?);
            Ok(())
        });
    }

    fn documents(&mut self, packages: &[String]) {
        let docs = Cmd::cargo(&["doc", "--all-features", "--no-deps", "--keep-going"]).args(packages);
        self.command("documents", docs.env("RUSTDOCFLAGS", "-D warnings"));
    }

    /// Compiles each library without features; with `--full` also each crate with each feature alone, without warnings.
    fn features(&mut self) {
        let full = self.full;
        let again = if full { "cargo xtask test unit --full" } else { "cargo xtask test unit" };
        self.report.step("features", again, |_| {
            let packages = Packages::read()?;
            let sets = packages.feature_sets();
            for (package, feature) in sets.iter().filter(|(p, f)| full || f.is_none() && packages.is_used(p))
            {
                let check = Cmd::cargo(&[
                    if full { "clippy" } else { "check" },
                    "-p",
                    package,
                    "--no-default-features",
                ]);
                let check = check.args(feature.iter().flat_map(|f| ["--features", f]));
                let check = check.args(if full { DENY } else { &[] });
                check.execute().with_context(|| format!("`{check}`"))?;
            }
            Ok(())
        });
    }

    /// Builds and runs the tests of some packages, and their doc tests.
    fn tests(&mut self, packages: &[String], needs_gpu: bool) {
        let test = Cmd::cargo(&["test", "--all-features"]).args(packages);
        let mut built = None;
        let build = test.clone().args(["--no-run"]);
        let is_built = self.report.step("build tests", &build.to_string(), |_| {
            built = Some(binaries::build(&build)?);
            Ok(())
        });
        let Some(built) = built.filter(|_| is_built) else { return };
        let install = self.install;
        if needs_gpu && !self.report.step("GPU", "chaski devices", |_| tools::adapter(&chaski()?, install)) {
            return;
        }
        let full = self.full;
        let mut again = test.clone().args(["--no-fail-fast"]);
        if full {
            again = again.env("CHASKI_TEST_FULL", "1");
        }
        self.report.step("tests", &again.to_string(), |report| {
            report.binaries = binaries::run(built, full)?;
            for b in &report.binaries {
                report.notes.extend(b.notes.iter().cloned());
            }
            let failed: Vec<&str> =
                report.binaries.iter().filter(|b| b.failed()).map(|b| b.name.as_str()).collect();
            ensure!(failed.is_empty(), "{}", failed.join("; "));
            Ok(())
        });
        let examples = test.args(["--doc", "--no-fail-fast"]);
        self.report.step("examples in documents", &examples.to_string(), |report| watch(report, &examples));
        if needs_gpu {
            self.main_job();
        }
    }

    /// The browser tests. Few machines have Node.js and a browser: unless requested explicitly, they may be skipped.
    fn browser(&mut self, asked: bool) {
        let (install, full) = (self.install, self.full);
        let ready = tools::browser(install).and_then(|browser| web::modules().map(|()| browser));
        match ready {
            Err(e) if !asked => {
                let line = format!("SKIPPED: tests in a browser (`cargo xtask test web`): {e:#}");
                println!("\n{line}");
                self.report.notes.insert(line);
            }
            ready => {
                self.report.step("browser", "cargo xtask test web", |report| {
                    report.notes.extend(web::test(&ready?, install, asked || full, full)?);
                    Ok(())
                });
            }
        }
    }

    /// The first command of a new user.
    fn main_job(&mut self) {
        self.report.step("main job", "cargo run --release -- run -p 'Once upon a time'", |_| {
            let args = ["run", "-p", "Once upon a time", "--temp", "0", "-n", "32"].map(str::to_owned);
            let cmd = Cmd { env: vec![], program: chaski()?, args: args.to_vec() };
            println!("$ {cmd}");
            let text = cmd.output()?;
            println!("{text}");
            ensure!(text.split_whitespace().count() > 8, "the answer is too short");
            Ok(())
        });
    }
}

/// Runs doc tests and records their results.
fn watch(report: &mut Report, cmd: &Cmd) -> anyhow::Result<()> {
    println!("$ {cmd}");
    let (reader, writer) = std::io::pipe()?;
    // The command holds the writing end of the pipe; drop it so that reading ends.
    let mut child = {
        let mut command = cmd.command();
        command.stdout(writer.try_clone()?).stderr(writer);
        command.spawn().with_context(|| format!("could not run `{cmd}`"))?
    };
    let mut package = String::new();
    for line in BufReader::new(reader).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        println!("{line}");
        let text = line.trim();
        if let Some(name) = text.strip_prefix("Doc-tests ") {
            package = name.to_owned();
        } else if let Some(result) = text.strip_prefix("test result: ") {
            report.documents.push(format!("{package}, examples in documents: test result: {result}"));
        }
    }
    check(child.wait()?)
}
