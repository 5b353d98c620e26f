//! Memory of a server while it is under load.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

/// Resident memory of a process after each tenth of a measurement, in bytes.
pub(crate) struct Memory {
    pid: u32,
    course: Course,
    n_ended: AtomicUsize,
    found: Mutex<Vec<u64>>,
}

/// Measures how far a measurement is.
enum Course {
    /// Requests.
    Requests(usize),
    /// From here on, for so long.
    Time(Instant, Duration),
}

impl Memory {
    /// Of `n` requests.
    pub(crate) fn of_requests(pid: u32, n: usize) -> Memory {
        Memory { pid, course: Course::Requests(n), n_ended: AtomicUsize::new(0), found: Mutex::default() }
    }

    /// Of a time that begins now.
    pub(crate) fn of_time(pid: u32, time: Duration) -> Memory {
        Memory { course: Course::Time(Instant::now(), time), ..Memory::of_requests(pid, 0) }
    }

    /// A request has ended.
    pub(crate) fn ended(&self) {
        let n_ended = self.n_ended.fetch_add(1, Ordering::Relaxed) + 1;
        let n_tenth = match self.course {
            Course::Requests(n) => n_ended * 10 / n.max(1),
            Course::Time(start, time) => (start.elapsed().as_secs_f64() * 10.0 / time.as_secs_f64()) as usize,
        };
        let mut found = self.found.lock().expect("no thread panics with it");
        if n_tenth.min(10) > found.len() {
            found.extend(resident(self.pid));
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
        let memory = Memory::of_requests(std::process::id(), 25);
        (0..25).for_each(|_| memory.ended());
        assert_eq!(memory.all().len(), 10);
        assert!(memory.all().iter().all(|n| *n > 1 << 20));
        let memory = Memory::of_time(std::process::id(), Duration::from_millis(50));
        for _ in 0..8 {
            memory.ended();
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!((2..=8).contains(&memory.all().len()), "{:?}", memory.all());
        assert!(Memory::of_requests(u32::MAX, 1).growth().is_err());
    }
}
