//! `test`: all checks that a change must pass.

mod binaries;
mod cmd;
mod packages;
mod report;
mod rustdoc;
mod watch;

use std::path::PathBuf;

use anyhow::{Context as _, ensure};

use self::binaries::Executable;
use self::cmd::{Cmd, Cpu};
use self::packages::{Packages, changed};
use self::report::Report;
pub(crate) use self::rustdoc::in_its_place as in_place_of_rustdoc;
use crate::{tools, web};

/// Crates that build for the web without features: its frontend, and everything below the frontends.
const FOR_WEB: &[&str] = &[
    "chaski-web",
    "ggml-format",
    "chaski-jinja",
    "wgsl-pre",
    "chaski-hub",
    "chaski-wire",
    "chaski-swarm",
    "chaski-checkpoint",
    "chaski-text",
    "chaski-folder",
    "chaski-grammar",
    "chaski-schedule",
    "chaski-graph",
    "chaski-kernels",
    "chaski-runtime",
    "chaski-models",
    "chaski",
];

/// Arguments that make clippy fail on warnings.
const DENY: &[&str] = &["--", "-D", "warnings"];

/// Features that the program has only on request.
const LEFT_OUT: &str = "otlp";

/// Tests to run.
#[derive(Copy, Clone, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scope {
    /// Formatting, lints, documents, and the tests that need neither a GPU nor weights.
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
                "chaski-hub",
                "chaski-wire",
                "chaski-swarm",
                "chaski-checkpoint",
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
    let run = Run { full, install, report: Report::new() };
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

/// A program of the workspace, built with the tests: on its own it would have other features, which would rebuild most
/// dependencies.
fn program(name: &str) -> anyhow::Result<PathBuf> {
    let exe = std::env::current_exe().context("this program's own path")?;
    let program = exe.with_file_name(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    ensure!(program.is_file(), "{} is missing: its own tests should have built it", program.display());
    Ok(program)
}

/// A command of this program, in a process of its own.
fn xtask(args: &[&str]) -> anyhow::Result<Cmd> {
    let args = args.iter().map(|a| (*a).to_owned()).collect();
    Ok(Cmd { env: vec![], program: program("xtask")?, args })
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
    fn steps(&self, scope: Scope) -> anyhow::Result<()> {
        if scope == Scope::Changed {
            return self.changed();
        }
        let checks = || {
            if scope.has(Scope::Unit) && self.full {
                self.all_lints();
                self.features();
                self.all_documents();
            }
            if scope.has(Scope::Wasm) {
                self.wasm(FOR_WEB, scope == Scope::Wasm || self.full);
            }
            if scope.has(Scope::Web) {
                self.browser(scope == Scope::Web);
                self.package(scope == Scope::Web);
            }
        };
        if scope.has(Scope::Unit) {
            self.format();
        }
        if matches!(scope, Scope::Wasm | Scope::Web) {
            checks();
        } else {
            self.tests(&selection(scope.packages()), scope != Scope::Unit, checks);
        }
        Ok(())
    }

    /// Tests what the working tree's change affects; everything but the browser tests if that is all packages.
    fn changed(&self) -> anyhow::Result<()> {
        let all = Packages::read()?;
        let touched = changed(&all)?;
        let has = |name: &str| touched.as_ref().is_none_or(|t| t.contains(name));
        let names: Option<Vec<&str>> = touched.as_ref().map(|t| t.iter().map(String::as_str).collect());
        self.format();
        if names.as_ref().is_some_and(Vec::is_empty) {
            return Ok(());
        }
        let packages = selection(names.as_deref());
        let checks = || {
            let for_web: Vec<&str> = FOR_WEB.iter().copied().filter(|name| has(name)).collect();
            if !for_web.is_empty() {
                self.wasm(&for_web, self.full);
            }
        };
        self.tests(&packages, has("chaski-cli"), checks);
        Ok(())
    }

    fn command(&self, name: &'static str, cmd: &Cmd) -> bool {
        self.report.step(name, &cmd.to_string(), |cpu| cmd.follow(name, cpu, |_| {}))
    }

    fn format(&self) {
        self.command("format", &Cmd::cargo(&["fmt", "--all", "--check"]));
    }

    /// Lints of all targets, benchmarks included. Those that are built for tests have theirs from the build.
    fn all_lints(&self) {
        let lints = Cmd::cargo(&["clippy", "--workspace", "--all-targets", "--all-features", "--keep-going"]);
        self.command("lints of all targets", &lints.args(DENY));
    }

    /// The packages of `FOR_WEB` in `names`, without features, as pages have them: by default libraries are compiled so
    /// only here. Test cases, and `wgsl-pre` for JavaScript, want features of the others; by default they are compiled
    /// where they run, without lints. With `hostile`, what native tests give to templates and grammars runs there, too.
    fn wasm(&self, names: &[&str], hostile: bool) {
        let lints = Cmd::cargo(&["clippy", "--target", "wasm32-unknown-unknown", "--no-default-features"]);
        self.command("web build", &lints.clone().args(selection(Some(names))).args(DENY));
        if self.full {
            let more = ["-p", "chaski-cases", "-p", "wgsl-pre", "--features", "wgsl-pre/wasm"];
            self.command("web build with features", &lints.args(more).args(DENY));
        }
        if hostile && names.contains(&"chaski-text") {
            self.in_node(
                "hostile inputs as WebAssembly",
                &[&["web-hostile"], self.sample()].concat(),
                tools::node(),
            );
        }
    }

    /// Options of a command that by default takes a part of its cases.
    fn sample(&self) -> &'static [&'static str] {
        if self.full { &[] } else { &["--sample"] }
    }

    /// A command of this program that needs Node.js, and the lines that it adds to the summary.
    fn in_node(&self, name: &'static str, command: &[&str], ready: anyhow::Result<()>) {
        if let Err(e) = ready {
            let line = format!("SKIPPED: {name}: {e:#}");
            println!("\n{line}");
            self.report.results().notes.insert(line);
            return;
        }
        self.report.step(name, &format!("cargo xtask {}", command.join(" ")), |cpu| {
            xtask(command)?.follow(name, cpu, |line| {
                if line.starts_with("NOTE: ") {
                    self.report.results().notes.insert(line.to_owned());
                }
            })
        });
    }

    /// Documents all packages; those of libraries are written beside their examples. With an example among them, cargo
    /// gives dependencies the features that tests want, too, and with clippy as the compiler of our crates all that
    /// rustdoc reads is what `lints` has left.
    fn all_documents(&self) {
        let targets = ["--lib", "--bin", "xtask", "--example", "simple"];
        let docs = Cmd::cargo(&["doc", "--workspace", "--all-features", "--no-deps", "--keep-going"]);
        let docs = docs.args(targets).env("RUSTDOCFLAGS", "-D warnings");
        self.command("documents of all targets", &cmd::as_clippy(docs).env("CLIPPY_ARGS", cmd::DENY));
    }

    /// Checks what `cargo run` builds, without the features that it leaves out, and each crate without features, and
    /// with each alone; `web build` compiles the libraries without features.
    fn features(&self) {
        self.report.step("features", "cargo xtask test unit --full", |cpu| {
            let packages = Packages::read()?;
            let clippy = |args: &[&str]| Cmd::cargo(&[&["clippy"], args].concat());
            // Cargo takes the same features of dependencies as for `lints`, which has checked all but a few.
            let targets = ["--workspace", "--lib", "--bins", "--example", "simple", "--features"];
            let mut checks = vec![clippy(&targets).args([packages.features_but(LEFT_OUT)])];
            checks.push(clippy(&["-p", "wgsl-pre", "--no-default-features"]));
            let sets = packages.feature_sets();
            for (package, feature) in &sets {
                let check = clippy(&["-p", package, "--no-default-features"]);
                checks.push(check.args(feature.iter().flat_map(|f| ["--features", f])));
            }
            for check in checks {
                let check = check.args(DENY);
                check.follow("features", cpu, |_| {}).with_context(|| format!("`{check}`"))?;
            }
            Ok(())
        });
    }

    /// Builds and runs the tests of some packages, and their doc tests. While tests run, which compile nothing, so do
    /// the checks, which wait for each other: cargo runs once at a time.
    fn tests(&self, packages: &[String], needs_gpu: bool, checks: impl FnOnce() + Send) {
        let test = cmd::as_clippy(Cmd::cargo(&["test", "--all-features"]).args(packages));
        let built = self.build(&test);
        let examples = built.is_some().then(|| test.clone().args(["--doc", "--no-fail-fast"]));
        let mut again = test.args(["--no-fail-fast"]);
        if self.full {
            again = again.env("CHASKI_TEST_FULL", "1");
        }
        std::thread::scope(|s| {
            s.spawn(|| {
                examples.iter().for_each(|examples| self.examples(examples));
                checks();
            });
            if let Some(built) = built.filter(|_| !needs_gpu || self.gpu()) {
                self.report.step("tests", &again.to_string(), |cpu| self.run(built, cpu));
                if needs_gpu {
                    self.main_job();
                }
            }
        });
    }

    /// Builds what a command of the form `cargo test ...` would run. The compiler of our crates is clippy, so lints
    /// cost no second analysis; cargo repeats the warnings of what was built before.
    fn build(&self, test: &Cmd) -> Option<Vec<Executable>> {
        let mut built = None;
        let build = test.clone().args(["--no-run"]);
        let mut n_warning = 0;
        self.report.step("build tests", &build.to_string(), |cpu| {
            // Nothing runs beside it.
            let before = Cpu::of_children();
            let (executables, warnings) = binaries::build(&build)?;
            *cpu = Cpu::of_children().since(before);
            (built, n_warning) = (Some(executables), warnings);
            Ok(())
        });
        if built.is_some() {
            self.report.step("lints", &build.to_string(), |_| {
                ensure!(n_warning == 0, "{n_warning} warnings, above");
                Ok(())
            });
        }
        built
    }

    fn gpu(&self) -> bool {
        self.report.step("GPU", "chaski devices", |_| tools::adapter(&program("chaski")?, self.install))
    }

    fn run(&self, built: Vec<Executable>, cpu: &mut Cpu) -> anyhow::Result<()> {
        let binaries = binaries::run(built, self.full)?;
        binaries.iter().for_each(|b| cpu.plus(b.cpu.0));
        let failed: Vec<String> = binaries.iter().filter(|b| b.failed()).map(|b| b.name.clone()).collect();
        let mut results = self.report.results();
        results.notes.extend(binaries.iter().flat_map(|b| b.notes.iter().cloned()));
        results.binaries = binaries;
        ensure!(failed.is_empty(), "{}", failed.join("; "));
        Ok(())
    }

    /// Writes the documents of libraries, runs their examples and records the results.
    fn examples(&self, examples: &Cmd) {
        let name = "examples in documents";
        self.report.step(name, &examples.to_string(), |cpu| {
            let mut package = String::new();
            rustdoc::with_documents(examples.clone())?.follow(name, cpu, |line| {
                let text = line.trim();
                if let Some(name) = text.strip_prefix("Doc-tests ") {
                    package = name.to_owned();
                } else if let Some(result) = text.strip_prefix("test result: ") {
                    let line = format!("{package}, {name}: test result: {result}");
                    self.report.results().documents.push(line);
                }
            })
        });
    }

    /// The browser tests. Few machines have Node.js and a browser: unless requested explicitly, they may be skipped.
    fn browser(&self, asked: bool) {
        let (install, full) = (self.install, self.full);
        let ready = tools::browser(install).and_then(|browser| web::modules().map(|()| browser));
        let name = "browser";
        if asked && ready.is_ok() {
            // Otherwise it was built with the tests.
            self.command("program", &Cmd::cargo(&["build", "-p", "chaski-cli"]));
        }
        match ready {
            Err(e) if !asked => {
                let line = format!("SKIPPED: tests in a browser (`cargo xtask test web`): {e:#}");
                println!("\n{line}");
                self.report.results().notes.insert(line);
            }
            ready => {
                self.report.step(name, "cargo xtask test web", |cpu| {
                    let flags = [("--whole", asked || full), ("--full", full), ("--no-install", !install)];
                    let flags = flags.into_iter().filter(|(_, is)| *is).map(|(flag, _)| flag);
                    let paths = [ready?, program("chaski")?].map(|path| path.display().to_string());
                    let cmd = xtask(&["test-browser"])?.args(paths).args(flags);
                    cmd.follow(name, cpu, |line| {
                        if line.starts_with("SKIPPED: ") {
                            self.report.results().notes.insert(line.to_owned());
                        }
                    })
                });
            }
        }
    }

    /// The npm package of `wgsl-pre`. Its module has no other build to share: left for full runs, unless asked for.
    fn package(&self, asked: bool) {
        let name = "package of wgsl-pre";
        if asked || self.full {
            let ready = tools::node().and_then(|()| web::modules());
            self.in_node(name, &[&["wgsl-pre"], self.sample()].concat(), ready);
        } else {
            let line = format!("SKIPPED: {name}, for want of a full run (or `cargo xtask test web`)");
            self.report.results().notes.insert(line);
        }
    }

    /// The first command of a new user.
    fn main_job(&self) {
        self.report.step("main job", "cargo run --release -- run -p 'Once upon a time'", |_| {
            let args = ["run", "-p", "Once upon a time", "--temp", "0", "-n", "32"].map(str::to_owned);
            let cmd = Cmd { env: vec![], program: program("chaski")?, args: args.to_vec() };
            println!("$ {cmd}");
            let text = cmd.output()?;
            println!("{text}");
            ensure!(text.split_whitespace().count() > 8, "the answer is too short");
            Ok(())
        });
    }
}
