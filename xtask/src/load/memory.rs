//! Memory of a server while it is under load.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

/// Resident memory of a process after each tenth of the requests, in bytes.
pub(crate) struct Memory {
    pid: u32,
    n: usize,
    n_ended: AtomicUsize,
    found: Mutex<Vec<u64>>,
}

impl Memory {
    pub(crate) fn new(pid: u32, n: usize) -> Memory {
        Memory { pid, n, n_ended: AtomicUsize::new(0), found: Mutex::default() }
    }

    /// A request has ended.
    pub(crate) fn ended(&self) {
        let n_ended = self.n_ended.fetch_add(1, Ordering::Relaxed) + 1;
        if n_ended * 10 / self.n > (n_ended - 1) * 10 / self.n {
            self.found.lock().expect("no thread panics with it").extend(resident(self.pid));
        }
    }

    fn all(&self) -> Vec<u64> {
        self.found.lock().expect("no thread panics with it").clone()
    }

    /// The largest of all after the first tenth, as a part of the latter, above it.
    pub(crate) fn growth(&self) -> anyhow::Result<f64> {
        let all = self.all();
        ensure!(!all.is_empty(), "the memory of process {} cannot be read", self.pid);
        growth(&all).context("a process has memory")
    }

    pub(crate) fn json(&self) -> Value {
        json!(self.all())
    }

    pub(crate) fn line(&self) -> String {
        let mib: Vec<String> =
            self.all().iter().map(|n| format!("{:.1}", *n as f64 / f64::from(1 << 20))).collect();
        format!("resident MiB after each tenth: {}", mib.join(" "))
    }
}

fn growth(all: &[u64]) -> Option<f64> {
    let (first, most) = (*all.first()?, *all.iter().max()?);
    (first > 0).then(|| most as f64 / first as f64 - 1.0)
}

/// Resident memory of a process, on Linux.
fn resident(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_that_after_the_first_tenth() {
        assert_eq!(growth(&[100, 90, 102, 101]), Some(0.020_000_000_000_000_018));
        assert_eq!(growth(&[100, 90]), Some(0.0));
        assert_eq!(growth(&[]), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_has_memory_after_each_tenth() {
        let memory = Memory::new(std::process::id(), 25);
        (0..25).for_each(|_| memory.ended());
        assert_eq!(memory.all().len(), 10);
        assert!(memory.all().iter().all(|n| *n > 1 << 20));
        assert!(Memory::new(u32::MAX, 1).growth().is_err());
    }
}
