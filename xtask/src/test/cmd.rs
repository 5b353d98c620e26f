//! Commands with their environment, run in the repository's root and printed as in a shell.

use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context as _, ensure};

/// A command with its environment.
#[derive(Clone)]
pub(super) struct Cmd {
    pub(super) env: Vec<(&'static str, &'static str)>,
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
}

impl Cmd {
    pub(super) fn cargo<S: AsRef<str>>(args: &[S]) -> Cmd {
        let args = args.iter().map(|a| a.as_ref().to_owned()).collect();
        Cmd { env: vec![], program: "cargo".into(), args }
    }

    pub(super) fn env(mut self, name: &'static str, value: &'static str) -> Cmd {
        self.env.push((name, value));
        self
    }

    pub(super) fn args<S: AsRef<str>>(mut self, args: impl IntoIterator<Item = S>) -> Cmd {
        self.args.extend(args.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    pub(super) fn command(&self) -> Command {
        let mut c = Command::new(&self.program);
        c.args(&self.args).envs(self.env.iter().copied()).current_dir(crate::root()).stdin(Stdio::null());
        c
    }

    /// Runs the command with its output on the terminal.
    pub(super) fn execute(&self) -> anyhow::Result<()> {
        println!("$ {self}");
        check(self.command().status().with_context(|| format!("could not run `{self}`"))?)
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

/// An error for a command that failed.
pub(super) fn check(status: ExitStatus) -> anyhow::Result<()> {
    ensure!(status.success(), "{status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_typed_again() {
        let cmd = Cmd::cargo(&["doc", "-p", "a b"]).env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(cmd.to_string(), "RUSTDOCFLAGS='-D warnings' cargo doc -p 'a b'");
    }
}
