//! A command on a pseudo-terminal.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use ptyprocess::{PtyProcess, Signal, WaitStatus};

/// Longer than any answer takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A home folder, which sessions may share.
pub(crate) struct Home(tempfile::TempDir);

impl Home {
    pub(crate) fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Entries of the history, as the file has them.
    pub(crate) fn history(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("data/chaski/history.txt")).unwrap_or_default();
        text.lines().skip(1).map(str::to_owned).collect()
    }

    /// A chat of 80 columns; `args` follow those for short greedy answers.
    pub(crate) fn chat(&self, args: &[&str]) -> Terminal {
        // On a busy machine a bar would appear before some answers.
        let first = ["run", "--device", "cpu", "--temp", "0", "--no-warm-cache", "--progress", "none"];
        let mut terminal = self.command(&[&first[..], args].concat(), 80);
        terminal.wait(">>> ");
        terminal
    }

    /// The command on a terminal of so many columns.
    pub(crate) fn command(&self, args: &[&str], columns: u16) -> Terminal {
        self.command_in("xterm", args, columns)
    }

    /// The command on a kind of terminal.
    pub(crate) fn command_in(&self, term: &str, args: &[&str], columns: u16) -> Terminal {
        let mut command = Command::new(env!("CARGO_BIN_EXE_chaski"));
        for name in ["RUST_LOG", "CHASKI_DEVICE", "VISUAL", "CLICOLOR_FORCE", "NO_COLOR"] {
            command.env_remove(name);
        }
        command.env("HOME", self.0.path()).env("XDG_DATA_HOME", self.path("data"));
        command.env("XDG_CACHE_HOME", self.path("cache")).env("XDG_CONFIG_HOME", self.path("config"));
        // The editor of `/edit` replaces a word.
        command.env("TERM", term).env("EDITOR", "sed -i s/dog/frog/");
        command.args(args).current_dir(self.0.path());
        Terminal::new(command, columns)
    }
}

#[derive(Default)]
struct Output {
    bytes: Mutex<Vec<u8>>,
    more: Condvar,
}

/// A program on a terminal. Dropping it closes the terminal.
pub(crate) struct Terminal {
    process: PtyProcess,
    keys: std::fs::File,
    output: Arc<Output>,
    /// Text up to here was waited for.
    at: usize,
}

impl Terminal {
    fn new(command: Command, columns: u16) -> Terminal {
        let mut process = PtyProcess::spawn(command).unwrap();
        process.set_window_size(columns, 40).unwrap();
        let keys = process.get_raw_handle().unwrap();
        let mut screen = process.get_raw_handle().unwrap();
        let output = Arc::new(Output::default());
        let shared = output.clone();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // The end of the program is an error on Linux.
            while let Ok(n @ 1..) = screen.read(&mut piece) {
                shared.bytes.lock().unwrap().extend_from_slice(&piece[..n]);
                shared.more.notify_all();
            }
            shared.more.notify_all();
        });
        Terminal { process, keys, output, at: 0 }
    }

    /// Types keys.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Types a line and waits for the next prompt; returns what stands in between.
    pub(crate) fn line(&mut self, line: &str) -> String {
        self.keys(&format!("{line}\r"));
        let text = self.wait("\n>>> ");
        // The line editor shows the line while it is typed, and once more; the answer begins after it.
        let (_, answer) = text.split_once(&format!("{}\n", tail(line))).unwrap_or(("", &text));
        answer.trim_end_matches(">>> ").trim().to_owned()
    }

    /// Text that the terminal got since the last call, up to and with `text`, without control sequences.
    pub(crate) fn wait(&mut self, text: &str) -> String {
        let begin = Instant::now();
        let mut bytes = self.output.bytes.lock().unwrap();
        loop {
            let shown = plain(&bytes);
            if let Some(found) = shown[self.at..].find(text) {
                let end = self.at + found + text.len();
                let passed = shown[self.at..end].to_owned();
                self.at = end;
                return passed;
            }
            assert!(begin.elapsed() < PATIENCE, "`{text}` did not come after: {}", &shown[self.at..]);
            bytes = self.output.more.wait_timeout(bytes, Duration::from_millis(100)).unwrap().0;
        }
    }

    /// Everything so far, with control sequences.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.output.bytes.lock().unwrap()).into_owned()
    }

    /// Changes the width of the window.
    pub(crate) fn resize(&mut self, columns: u16) {
        self.process.set_window_size(columns, 40).unwrap();
    }

    /// Sends a signal.
    pub(crate) fn signal(&mut self, signal: Signal) {
        self.process.kill(signal).unwrap();
    }

    /// Waits for the end of the program; its exit code.
    pub(crate) fn exit(self) -> i32 {
        match self.process.wait().unwrap() {
            WaitStatus::Exited(_, code) => code,
            other => panic!("{other:?}"),
        }
    }
}

/// The text of output without control sequences. It only grows as output does.
fn plain(bytes: &[u8]) -> String {
    // The rest of a character may still come.
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => {
                // `ESC [`, parameters, and a letter; nothing else is sent.
                let _ = chars.by_ref().skip(1).find(|c| ('@'..='~').contains(c));
            }
            '\r' => {}
            c => out.push(c),
        }
    }
    out
}

/// The last characters of a typed line, which stand in one row of the terminal.
fn tail(line: &str) -> &str {
    let start = line.char_indices().rev().nth(5).map_or(0, |(i, _)| i);
    &line[start..]
}

/// Columns of the widest line.
pub(crate) fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

/// A file with this text.
pub(crate) fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}
