//! Processes of a swarm on this machine: hubs, workers behind proxies, and the lines that they print.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

/// Time for anything that happens soon on an idle machine.
const LONG: Duration = Duration::from_secs(120);

/// A process that is killed with this.
pub(super) struct Process {
    child: Child,
    lines: Receiver<String>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Process {
    /// Starts a command of `chaski`.
    pub(super) fn start(program: &Path, args: &[&str]) -> anyhow::Result<Process> {
        let mut command = Command::new(program);
        command.args(args).env("CHASKI_CONFIG", "/dev/null");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        let stderr = BufReader::new(child.stderr.take().context("stderr is piped")?);
        let (sender, lines) = channel();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let all = seen.clone();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                all.lock().expect("nobody panics with it").push(line.clone());
                let _ = sender.send(line);
            }
        });
        Ok(Process { child, lines, seen })
    }

    /// The rest of the next line that contains a text.
    pub(super) fn after(&self, text: &str) -> anyhow::Result<String> {
        let end = Instant::now() + LONG;
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            if let Some((_, rest)) = line.split_once(text) {
                return Ok(rest.to_owned());
            }
        }
        bail!("no line with `{text}`:\n{}", self.stderr())
    }

    /// All lines of stderr so far.
    pub(super) fn stderr(&self) -> String {
        self.seen.lock().expect("nobody panics with it").join("\n")
    }

    /// Its standard output.
    ///
    /// # Errors
    /// It was taken before.
    pub(super) fn stdout(&mut self) -> anyhow::Result<ChildStdout> {
        self.child.stdout.take().context("stdout is taken once")
    }

    /// Waits for its end, and for its last lines.
    pub(super) fn wait(&mut self) -> anyhow::Result<ExitStatus> {
        let status = self.child.wait()?;
        // The thread that reads ends a moment later.
        while self.lines.recv_timeout(LONG).is_ok() {}
        Ok(status)
    }

    /// Ends it as `kill -9` does.
    pub(super) fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Sends it a signal, such as `STOP`.
    pub(super) fn signal(&self, name: &str) -> anyhow::Result<()> {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args([&format!("-{name}"), &id]).status()?;
        ensure!(status.success(), "kill -{name} {id}: {status}");
        Ok(())
    }

    /// Memory that it has in RAM, in bytes.
    pub(super) fn rss(&self) -> anyhow::Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id()))?;
        let pages = text.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok());
        Ok(4096 * pages.context("statm has a second number")?)
    }

    /// Stdout of a process that ends well.
    pub(super) fn output(mut self) -> anyhow::Result<String> {
        let mut text = String::new();
        self.stdout()?.read_to_string(&mut text)?;
        let status = self.wait()?;
        ensure!(status.success(), "{status}:\n{}", self.stderr());
        Ok(text)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Programs and files of the lab.
pub(super) struct Site {
    /// The command `chaski`.
    pub(super) program: PathBuf,
    /// A folder for models and stores of workers.
    pub(super) folder: PathBuf,
}

impl Site {
    /// A model that `chaski synth` writes once.
    pub(super) fn model(&self, layers: u32) -> anyhow::Result<String> {
        std::fs::create_dir_all(&self.folder)?;
        let path = self.folder.join(format!("tiny-moe-{layers}.gguf"));
        let shown = path.to_str().context("the folder's name is UTF-8")?.to_owned();
        if !path.exists() {
            let layers = layers.to_string();
            let args = [
                "synth", "--preset", "tiny-moe", "--mix", "q8_0", "--layers", &layers, "--out", &shown, "-q",
            ];
            Process::start(&self.program, &args)?.output()?;
        }
        Ok(shown)
    }

    /// A worker with a store of its own.
    pub(super) fn worker(&self, address: &str, n: usize) -> anyhow::Result<Process> {
        let (url, store) = (format!("ws://{address}"), self.folder.join(format!("store-{n}")));
        let store = store.to_str().context("the folder's name is UTF-8")?;
        Process::start(&self.program, &["worker", &url, "--store", store, "-t", "1", "--memory", "1G", "-v"])
    }

    /// Has a worker be somebody else when it starts again; its weights stay.
    pub(super) fn forget_id(&self, n: usize) -> anyhow::Result<()> {
        Ok(std::fs::remove_file(self.folder.join(format!("store-{n}")).join("id"))?)
    }

    /// The status of a hub.
    pub(super) fn status(&self, address: &str) -> anyhow::Result<Value> {
        let args = ["swarm", "status", address, "--format", "json"];
        Ok(serde_json::from_str(&Process::start(&self.program, &args)?.output()?)?)
    }
}

/// Load of the machine and its cores, which every table of times needs.
pub(super) fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, |n| n.get());
    format!("load average {}, {cores} cores", load.split(' ').next().unwrap_or("?"))
}
