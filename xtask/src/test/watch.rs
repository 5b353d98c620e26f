//! A process that hangs is killed, with all that it started.

use std::io::Read;
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use super::cmd::children;

/// A reader that gives a sign for each read.
pub(super) struct Signs<R> {
    pub(super) from: R,
    pub(super) sign: Sender<()>,
}

impl<R: Read> Read for Signs<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let n = self.from.read(into)?;
        // Nobody hears it once the process is killed.
        let _ = self.sign.send(());
        Ok(n)
    }
}

/// Kills a process that gives no sign for `silence`; true if it did.
///
/// On Linux the processes that it started are killed, too. They keep its process group, so that Ctrl-C ends all.
pub(super) fn watch(child: &mut Child, signs: &Receiver<()>, silence: Duration) -> anyhow::Result<bool> {
    loop {
        match signs.recv_timeout(silence) {
            Ok(()) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(false),
            Err(RecvTimeoutError::Timeout) => {
                // Listed before their parents end, who would leave them to another.
                let below = descendants(child.id());
                child.kill()?;
                if !below.is_empty() {
                    std::process::Command::new("kill").arg("-KILL").args(below).status()?;
                }
                return Ok(true);
            }
        }
    }
}

/// The processes below a process.
fn descendants(process: u32) -> Vec<String> {
    let (mut found, mut open) = (Vec::new(), vec![process]);
    while let Some(parent) = open.pop() {
        let own = children(parent);
        found.extend(own.iter().map(u32::to_string));
        open.extend(own);
    }
    found
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::mpsc::channel;

    use super::*;

    fn start(script: &str) -> Child {
        Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().expect("a shell")
    }

    #[test]
    fn what_gives_no_sign_is_killed_with_all_that_it_started() {
        // The second one holds the pipe.
        let mut child = start("sh -c 'sleep 3600; true' & echo on; wait; true");
        let (sign, signs) = channel();
        let mut out = Signs { from: child.stdout.take().expect("a pipe"), sign };
        let mut line = [0; 3];
        out.read_exact(&mut line).expect("a line");
        assert!(watch(&mut child, &signs, Duration::from_millis(200)).expect("it is killed"));
        let mut rest = Vec::new();
        assert_eq!(out.read_to_end(&mut rest).expect("nobody holds the pipe"), 0);
        assert!(!child.wait().expect("it has ended").success());
    }

    #[test]
    fn what_ends_by_itself_is_left_alone() {
        let mut child = start("echo on");
        let (sign, signs) = channel();
        let mut out = Signs { from: child.stdout.take().expect("a pipe"), sign };
        out.read_to_end(&mut Vec::new()).expect("a line");
        drop(out);
        assert!(!watch(&mut child, &signs, Duration::from_secs(60)).expect("it is watched"));
        assert!(child.wait().expect("it has ended").success());
    }
}
