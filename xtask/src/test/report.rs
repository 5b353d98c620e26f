//! The steps and tests of a run, and the summary.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::bail;

use super::cmd::{Cpu, age};

/// Number of tests listed by time.
const SLOWEST: usize = 10;

/// A test that did not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Skip {
    /// Its name.
    pub(super) test: String,
    /// The missing files, or other requirement.
    want: String,
}

impl Skip {
    /// Reads `SKIPPED some::test: for want of FILES`, which tests write to standard error.
    pub(super) fn parse(line: &str) -> Option<Skip> {
        let (test, want) = line.strip_prefix("SKIPPED ")?.split_once(": for want of ")?;
        Some(Skip { test: test.to_owned(), want: want.to_owned() })
    }
}

/// Outcome of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    Failed,
    Ignored,
    Skipped(Skip),
}

/// A test and its time.
pub(super) struct Test {
    pub(super) name: String,
    pub(super) outcome: Outcome,
    pub(super) time: Duration,
}

/// A test binary that ran.
pub(super) struct Binary {
    /// With its main source file.
    pub(super) name: String,
    pub(super) tests: Vec<Test>,
    /// The harness's output.
    pub(super) output: String,
    pub(super) status: ExitStatus,
    pub(super) time: Duration,
    pub(super) cpu: Cpu,
    /// Cases that it skipped, and its own counts.
    pub(super) notes: BTreeSet<String>,
}

impl Binary {
    pub(super) fn failed(&self) -> bool {
        !self.status.success()
    }

    fn count(&self, is: impl Fn(&Outcome) -> bool) -> usize {
        self.tests.iter().filter(|t| is(&t.outcome)).count()
    }

    /// Passed, failed, ignored, skipped.
    fn counts(&self) -> [usize; 4] {
        let skipped = self.count(|o| matches!(o, Outcome::Skipped(_)));
        let [passed, failed, ignored] =
            [Outcome::Passed, Outcome::Failed, Outcome::Ignored].map(|is| self.count(|o| *o == is));
        // A crashed program reports no failed test.
        [passed, failed.max(usize::from(!self.status.success())), ignored, skipped]
    }

    /// Line in the summary.
    fn line(&self) -> String {
        let [passed, failed, ignored, skipped] = self.counts();
        let word = if failed == 0 { "ok" } else { "FAILED" };
        let mut line = format!(
            "{}: test result: {word}. {passed} passed; {failed} failed; {ignored} ignored",
            self.name
        );
        if skipped > 0 {
            line += &format!("; SKIPPED {skipped} of {}", self.tests.len());
        }
        let cpu = self.cpu.0.map(|t| format!(", {} of CPU time", seconds(t))).unwrap_or_default();
        format!("{line}; finished in {}{cpu}", seconds(self.time))
    }

    /// Prints its tests, and the harness's output for failures.
    pub(super) fn print(&self) {
        let mut text = format!("\n{}\n", self.name);
        for t in &self.tests {
            let word = match &t.outcome {
                Outcome::Passed => "ok".to_owned(),
                Outcome::Failed => "FAILED".to_owned(),
                Outcome::Ignored => "ignored".to_owned(),
                Outcome::Skipped(skip) => format!("SKIPPED, for want of {}", skip.want),
            };
            text += &format!("test {} ... {word} {}\n", t.name, seconds(t.time));
        }
        if !self.status.success() {
            text += &format!("{}\n{}\n", self.output, self.status);
        }
        println!("{text}{}\n", self.line());
    }
}

struct Step {
    name: &'static str,
    time: Duration,
    cpu: Cpu,
    /// The command that reproduces the failure; `None` if it passed.
    failed: Option<String>,
}

/// Results of a run, whose steps may run side by side.
pub(super) struct Report {
    start: Instant,
    results: Mutex<Results>,
}

/// Results of the steps that have ended.
#[derive(Default)]
pub(super) struct Results {
    steps: Vec<Step>,
    pub(super) binaries: Vec<Binary>,
    /// Results of doc tests: the crate and the line of the harness.
    pub(super) documents: Vec<String>,
    /// Cases, devices and programs that were skipped, and counts that tests report.
    pub(super) notes: BTreeSet<String>,
}

impl Report {
    /// An empty report, but for the build of this command.
    pub(super) fn new() -> Report {
        let now = Instant::now();
        let start = age().and_then(|age| now.checked_sub(age)).unwrap_or(now);
        let results = Mutex::<Results>::default();
        let cpu = Cpu::of_children();
        let step = Step { name: "build of this command", time: now - start, cpu, failed: None };
        results.lock().unwrap_or_else(PoisonError::into_inner).steps.push(step);
        Report { start, results }
    }

    pub(super) fn results(&self) -> MutexGuard<'_, Results> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one step, which adds its CPU time; returns whether it passed.
    pub(super) fn step(
        &self,
        name: &'static str,
        command: &str,
        f: impl FnOnce(&mut Cpu) -> anyhow::Result<()>,
    ) -> bool {
        println!("\n=== {name}");
        let (start, mut cpu) = (Instant::now(), Cpu::default());
        let result = f(&mut cpu);
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
        self.results().steps.push(Step { name, time, cpu, failed });
        passed
    }

    /// Prints times, skipped tests, and all results.
    ///
    /// # Errors
    /// If a step failed.
    pub(super) fn summary(self) -> anyhow::Result<()> {
        let total = Cpu::of_children();
        let results = self.results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.summary(self.start.elapsed(), total)
    }
}

impl Results {
    fn summary(mut self, time: Duration, cpu: Cpu) -> anyhow::Result<()> {
        println!("\n=== summary");
        self.slowest();
        self.notes.iter().for_each(|line| println!("{line}"));
        self.results();
        self.times(time, cpu);
        let failed: Vec<&Step> = self.steps.iter().filter(|s| s.failed.is_some()).collect();
        for s in &failed {
            println!("{} failed; to see it again: {}", s.name, s.failed.as_deref().unwrap_or_default());
        }
        if !failed.is_empty() {
            bail!("{} of {} steps failed", failed.len(), self.steps.len());
        }
        println!("all {} steps passed", self.steps.len());
        Ok(())
    }

    /// The steps by time. They run side by side, so their times exceed that of the whole.
    fn times(&mut self, time: Duration, cpu: Cpu) {
        let column = |cpu: Cpu| cpu.0.map(seconds).unwrap_or_default();
        self.steps.sort_by_key(|s| std::cmp::Reverse(s.time));
        println!("{:6} {:>9} {:>10}  step", "", "time", "CPU");
        for s in &self.steps {
            let mark = if s.failed.is_none() { "ok" } else { "FAILED" };
            println!("{mark:>6} {:>9} {:>10}  {}", seconds(s.time), column(s.cpu), s.name);
        }
        println!("{:6} {:>9} {:>10}  in all", "", seconds(time), column(cpu));
    }

    fn slowest(&self) {
        let of = |b: &'_ Binary| b.name.split(',').next().unwrap_or_default().to_owned();
        let mut tests: Vec<(String, &Test)> =
            self.binaries.iter().flat_map(|b| b.tests.iter().map(move |t| (of(b), t))).collect();
        tests.sort_by_key(|(_, t)| std::cmp::Reverse(t.time));
        if !tests.is_empty() {
            println!("slowest tests:");
        }
        for (binary, t) in tests.iter().take(SLOWEST) {
            println!("{:>16}  {binary} {}", seconds(t.time), t.name);
        }
    }

    /// The line of each binary, the skipped tests, and the totals.
    fn results(&self) {
        let mut sums = [0; 4];
        let mut wanted: BTreeMap<&str, usize> = BTreeMap::new();
        for b in self.binaries.iter().filter(|b| b.counts() != [0; 4]) {
            println!("{}", b.line());
            sums.iter_mut().zip(b.counts()).for_each(|(s, n)| *s += n);
            for t in &b.tests {
                if let Outcome::Skipped(skip) = &t.outcome {
                    *wanted.entry(&skip.want).or_default() += 1;
                }
            }
        }
        for line in &self.documents {
            let counts = ["passed", "failed", "ignored"].map(|word| count(line, word));
            if counts != [0; 3] {
                println!("{line}");
            }
            sums.iter_mut().zip(counts).for_each(|(s, n)| *s += n);
        }
        let n_test: usize = sums.iter().sum();
        for (want, n) in wanted {
            println!("SKIPPED {n} of {n_test} tests, for want of {want}");
        }
        if n_test > 0 {
            let [passed, failed, ignored, skipped] = sums;
            println!("tests in all: {passed} passed; {failed} failed; {ignored} ignored; {skipped} skipped");
        }
    }
}

/// The number in front of a word of `... 3 passed; 0 failed; ...`.
fn count(line: &str, word: &str) -> usize {
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
    fn results_of_documents_are_counted() {
        let line = "x: test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; finished in 0.01s";
        assert_eq!(["passed", "failed", "ignored"].map(|w| count(line, w)), [12, 3, 0]);
    }

    #[test]
    fn a_skipped_test_says_what_it_needs() {
        let skip =
            Skip::parse("SKIPPED a::b: for want of vocab (set CHASKI_TEST_DATA)").expect("a skipped test");
        assert_eq!((skip.test.as_str(), skip.want.as_str()), ("a::b", "vocab (set CHASKI_TEST_DATA)"));
        assert_eq!(Skip::parse("SKIPPED: 3 cases: more bytes than a binding has"), None);
    }

    #[test]
    fn skipped_tests_do_not_count_as_passed() {
        let skip = Skip { test: "b".into(), want: "vocab".into() };
        let test = |name: &str, outcome| Test { name: name.into(), outcome, time: Duration::ZERO };
        let mut binary = Binary {
            name: "tokenizers, tests/tokenizers.rs".into(),
            tests: vec![test("a", Outcome::Passed), test("b", Outcome::Skipped(skip))],
            output: String::new(),
            status: ExitStatus::default(),
            time: Duration::ZERO,
            cpu: Cpu::default(),
            notes: BTreeSet::new(),
        };
        let line =
            "tokenizers, tests/tokenizers.rs: test result: ok. 1 passed; 0 failed; 0 ignored; SKIPPED 1 of 2";
        assert_eq!(binary.line(), format!("{line}; finished in 0.0 s"));
        binary.cpu = Cpu(Some(Duration::from_millis(1500)));
        assert_eq!(binary.line(), format!("{line}; finished in 0.0 s, 1.5 s of CPU time"));
        binary.tests.push(test("c", Outcome::Failed));
        assert_eq!(binary.counts(), [1, 1, 0, 1]);
    }
}
