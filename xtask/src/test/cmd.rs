//! Commands with their environment, run in the repository's root and printed as in a shell.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};

/// A command with its environment.
#[derive(Clone)]
pub(super) struct Cmd {
    pub(super) env: Vec<(&'static str, String)>,
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
}

impl Cmd {
    pub(super) fn cargo<S: AsRef<str>>(args: &[S]) -> Cmd {
        let args = args.iter().map(|a| a.as_ref().to_owned()).collect();
        Cmd { env: vec![], program: "cargo".into(), args }
    }

    pub(super) fn env(mut self, name: &'static str, value: &str) -> Cmd {
        self.env.push((name, value.to_owned()));
        self
    }

    pub(super) fn args<S: AsRef<str>>(mut self, args: impl IntoIterator<Item = S>) -> Cmd {
        self.args.extend(args.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    pub(super) fn command(&self) -> Command {
        let mut c = Command::new(&self.program);
        c.args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(crate::root())
            .stdin(Stdio::null());
        c
    }

    /// Runs the command beside others: prints each line that it writes after `name`, passes it to `line`, and adds its
    /// CPU time to `cpu`.
    pub(super) fn follow(&self, name: &str, cpu: &mut Cpu, mut line: impl FnMut(&str)) -> anyhow::Result<()> {
        println!("{name} | $ {self}");
        let (reader, writer) = std::io::pipe()?;
        // The command holds the writing end of the pipe; drop it so that reading ends.
        let mut child = {
            let mut command = self.command();
            command.stdout(writer.try_clone()?).stderr(writer);
            command.spawn().with_context(|| format!("could not run `{self}`"))?
        };
        for bytes in BufReader::new(reader).split(b'\n') {
            let text = String::from_utf8_lossy(&bytes?).into_owned();
            println!("{name} | {text}");
            line(&text);
        }
        cpu.add(child.id());
        check(child.wait()?)
    }

    /// Runs the command and returns its standard output; standard error goes to the terminal.
    pub(super) fn output(&self) -> anyhow::Result<String> {
        let mut command = self.command();
        let out = command.stderr(Stdio::inherit()).output();
        let out = out.with_context(|| format!("could not run `{self}`"))?;
        check(out.status).with_context(|| format!("`{self}`"))?;
        String::from_utf8(out.stdout).with_context(|| format!("the output of `{self}`"))
    }
}

/// Shell syntax.
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

/// The variable `CLIPPY_ARGS` of the compiler of `cargo clippy -- -D warnings`.
pub(super) const DENY: &str = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";

/// A command of cargo whose compiler of our crates is clippy's. Without clippy beside the compiler it is the command
/// itself.
pub(super) fn as_clippy(cargo: Cmd) -> Cmd {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).current_dir(crate::root()).output();
    let sysroot = sysroot.ok().and_then(|out| String::from_utf8(out.stdout).ok()).unwrap_or_default();
    let name = format!("clippy-driver{}", std::env::consts::EXE_SUFFIX);
    let driver = PathBuf::from(sysroot.trim()).join("bin").join(name);
    match driver.to_str().filter(|_| driver.is_file()) {
        Some(driver) => cargo.env("RUSTC_WORKSPACE_WRAPPER", driver),
        None => cargo,
    }
}

/// Processor time of a step, where the system tells it.
#[derive(Copy, Clone, Default)]
pub(super) struct Cpu(pub(super) Option<Duration>);

impl Cpu {
    /// Adds the time of a process that has ended or is about to, and that of its children; call it before waiting for
    /// the process.
    pub(super) fn add(&mut self, process: u32) {
        self.plus(of_process(&process.to_string()).map(|[own, children, _]| own + children));
    }

    /// Adds a time.
    pub(super) fn plus(&mut self, time: Option<Duration>) {
        self.0 = time.map(|t| t + self.0.unwrap_or_default()).or(self.0);
    }

    /// The time of all processes that this one has waited for.
    pub(super) fn of_children() -> Cpu {
        Cpu(of_process("self").map(|[_, children, _]| children))
    }

    /// The time that has passed since an earlier value.
    pub(super) fn since(self, earlier: Cpu) -> Cpu {
        Cpu(self.0.zip(earlier.0).map(|(now, then)| now.saturating_sub(then)))
    }
}

/// Processor time of a process and of its children, and when it started, since the system did. Linux counts in
/// hundredths of a second, whatever its clock; elsewhere there is no such file.
fn of_process(name: &str) -> Option<[Duration; 3]> {
    times(&std::fs::read_to_string(format!("/proc/{name}/stat")).ok()?)
}

/// The processes that a process has started; none where the system does not tell.
pub(super) fn children(process: u32) -> Vec<u32> {
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    let ids = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let parent = |id: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    ids.filter(|id| parent(id) == Some(process)).collect()
}

fn times(stat: &str) -> Option<[Duration; 3]> {
    // The name in parentheses may have spaces.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |i: usize| Some(Duration::from_millis(10 * fields.get(i)?.parse::<u64>().ok()?));
    Some([field(11)? + field(12)?, field(13)? + field(14)?, field(19)?])
}

/// The age of this process. `cargo run` becomes the program that it has built, so the build is part of it.
pub(super) fn age() -> Option<Duration> {
    let [.., start] = of_process("self")?;
    let up = std::fs::read_to_string("/proc/uptime").ok()?;
    let up = up.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_secs_f64(up).saturating_sub(start))
}

/// An error for a command that failed.
pub(super) fn check(status: ExitStatus) -> anyhow::Result<()> {
    ensure!(status.success(), "{status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_after_the_name() {
        let stat = "7 (a b) c) R 1 2 3 4 5 6 7 8 9 10 150 50 300 100 20 0 1 0 12345 0";
        let [own, children, start] = times(stat).expect("all fields");
        assert_eq!([own, children, start].map(|t| t.as_millis()), [2_000, 4_000, 123_450]);
        assert!(times("7 (a) R 1").is_none());
    }

    #[test]
    fn commands_can_be_typed_again() {
        let cmd = Cmd::cargo(&["doc", "-p", "a b"]).env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(cmd.to_string(), "RUSTDOCFLAGS='-D warnings' cargo doc -p 'a b'");
    }
}
