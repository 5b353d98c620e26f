//! Downloads on stderr: a bar on a terminal, else a line each tenth; and events as JSON on stdout for programs.

use std::io::Write as _;
use std::time::{Duration, Instant};

use chaski_hub::{Bytes, Event, Origin, Plan, PlannedFile, Wait};
use serde_json::{Value, json};

use crate::progress::{Progress, Unit};
use crate::ui::{Ui, counted};

/// Time between two JSON events of progress, whatever their files.
const INTERVAL: Duration = Duration::from_millis(100);

/// The display of a download, which may have several plans one after another.
pub(crate) struct Transfer {
    ui: Ui,
    is_json: bool,
    plan: Option<Plan>,
    progress: Option<Progress>,
    /// Bytes of each file that are here.
    present: Vec<u64>,
    started: Instant,
    /// Bytes that were here at the start.
    n_before: u64,
    /// The last tenth that was told.
    tenth: u64,
    told: Instant,
    /// Files of all plans that were not here, and those that were verified.
    n_file: usize,
    n_verified: usize,
    /// Bytes that came for the plans before.
    n_came: u64,
}

impl Transfer {
    /// For a command; with `is_json` events go to stdout.
    pub(crate) fn new(ui: &Ui, is_json: bool) -> Self {
        Transfer {
            ui: ui.clone(),
            is_json,
            plan: None,
            progress: None,
            present: Vec::new(),
            started: Instant::now(),
            n_before: 0,
            tenth: 0,
            told: Instant::now(),
            n_file: 0,
            n_verified: 0,
            n_came: 0,
        }
    }

    /// Shows an event.
    pub(crate) fn show(&mut self, event: Event) {
        if self.is_json {
            self.json(&event);
        }
        match event {
            Event::Planned(plan) => self.begin(plan),
            Event::Started { file, n_present } => {
                self.set(file, n_present);
                if let (Some(progress), Some(plan)) = (&self.progress, &self.plan) {
                    progress.message(plan.files[file].path.clone());
                }
            }
            Event::Progress { file, n_present, .. } => self.set(file, n_present),
            Event::Waiting { reason, time } => self.wait(&reason, time),
            Event::Verified { .. } => self.n_verified += 1,
            Event::Done { file, was_cached, .. } => {
                let size = self.plan.as_ref().and_then(|plan| plan.files[file].size);
                let (before, n) = (self.present[file], size.unwrap_or(self.present[file]));
                if was_cached {
                    // Contents that another file has did not come again.
                    self.n_before += n.saturating_sub(before);
                    self.n_file -= 1;
                }
                self.set(file, n);
            }
            _ => {}
        }
    }

    fn begin(&mut self, plan: Plan) {
        match self.progress.take() {
            Some(progress) => progress.finish(),
            None => self.started = Instant::now(),
        }
        self.n_came += self.n_current();
        self.present = plan.files.iter().map(|file| file.n_present).collect();
        self.n_before = self.present.iter().sum();
        self.n_file += plan.files.len();
        if !plan.is_complete() {
            let here = match self.n_before {
                0 => String::new(),
                n => format!(", {} are here", Bytes(n)),
            };
            let (n, size) = (counted(plan.files.len(), "file"), Bytes(plan.n_byte()));
            self.ui.say(&format!("downloading {}: {n}, {size}{here}", plan.name));
            self.tenth = tenths(self.n_before, plan.n_byte());
            self.progress = Some(self.ui.progress("download", Unit::Bytes, plan.n_byte()));
        }
        self.plan = Some(plan);
    }

    /// Bytes that came for the current plan.
    fn n_current(&self) -> u64 {
        self.present.iter().sum::<u64>().saturating_sub(self.n_before)
    }

    fn set(&mut self, file: usize, n_present: u64) {
        self.present[file] = n_present;
        let (Some(plan), Some(progress)) = (&self.plan, &self.progress) else { return };
        let (n, total) = (self.present.iter().sum::<u64>(), plan.n_byte());
        progress.set(n, total);
        let tenth = tenths(n, total);
        if tenth > self.tenth {
            self.tenth = tenth;
            if !self.is_json {
                self.ui.line(&format!("download: {} % of {}", 10 * tenth, Bytes(total)));
            }
        }
    }

    fn wait(&self, reason: &Wait, time: Option<Duration>) {
        let seconds = time.map_or(String::new(), |time| format!(" for {} s", time.as_secs_f32().ceil()));
        let text = match reason {
            Wait::Lock(path) => {
                format!("another program downloads the same file; waiting for its lock `{}`", path.display())
            }
            Wait::Server => format!("the server limits requests; waiting{seconds}"),
            Wait::Retry(why) => format!("{why}; trying again{}", seconds.replace(" for", " in")),
        };
        match &self.progress {
            Some(progress) => progress.suspend(|| self.ui.note(&text)),
            None => self.ui.note(&text),
        }
    }

    /// Ends it, with a line about what came.
    pub(crate) fn finish(&mut self) {
        let Some(progress) = self.progress.take() else { return };
        progress.finish();
        let n = self.n_came + self.n_current();
        let seconds = self.started.elapsed().as_secs_f64();
        let speed = Bytes((n as f64 / seconds.max(0.001)) as u64);
        let verified = if self.n_verified < self.n_file { "" } else { ", verified" };
        self.ui.say(&format!("downloaded {} in {seconds:.1} s ({speed}/s){verified}", Bytes(n)));
    }

    /// Prints an event as a line of JSON.
    fn json(&mut self, event: &Event) {
        if let Event::Progress { .. } = event {
            if self.told.elapsed() < INTERVAL {
                return;
            }
            self.told = Instant::now();
        }
        let path = |file: &usize| self.plan.as_ref().map(|plan| plan.files[*file].path.clone());
        let line = match event {
            Event::Planned(plan) => plan_json(plan),
            Event::Started { file, n_present } => {
                let size = self.plan.as_ref().and_then(|plan| plan.files[*file].size);
                json!({ "event": "download", "file": path(file), "done": n_present, "total": size })
            }
            Event::Progress { file, n_present, size } => {
                json!({ "event": "download", "file": path(file), "done": n_present, "total": size })
            }
            Event::Waiting { reason, time } => {
                let (why, detail) = match reason {
                    Wait::Lock(path) => ("lock", path.display().to_string()),
                    Wait::Server => ("server", String::new()),
                    Wait::Retry(why) => ("retry", why.clone()),
                };
                let seconds = time.map(|time| time.as_secs_f64());
                json!({ "event": "wait", "reason": why, "detail": detail, "seconds": seconds })
            }
            Event::Verified { file, digest } => {
                json!({ "event": "verify", "file": path(file), "digest": digest.digits() })
            }
            Event::Done { file, path: place, was_cached } => {
                json!({ "event": "done", "file": path(file), "path": place, "cached": was_cached })
            }
            _ => return,
        };
        print_line(&line);
    }
}

/// Whole tenths of `total`; 0 if that is not known.
fn tenths(n: u64, total: u64) -> u64 {
    (10 * u128::from(n)).checked_div(total.into()).unwrap_or(0).min(10) as u64
}

/// A line of stdout; the work goes on if nobody reads it.
pub(super) fn print_line(value: &Value) {
    let _ = writeln!(std::io::stdout(), "{value}");
}

/// A plan as an event.
pub(super) fn plan_json(plan: &Plan) -> Value {
    let file = |file: &PlannedFile| {
        json!({
            "path": file.path,
            "bytes": file.size,
            "digest": file.digest.as_ref().map(|digest| digest.digits()),
            "missing": file.n_missing(),
        })
    };
    let (repo, commit) = match &plan.origin {
        Origin::Hub { repo, commit, .. } => (Some(repo.to_string()), Some(commit.clone())),
        Origin::Address { .. } => (None, None),
    };
    json!({
        "event": "resolve",
        "name": plan.name.to_string(),
        "repo": repo,
        "commit": commit,
        "files": plan.files.iter().map(file).collect::<Vec<_>>(),
        "bytes": plan.n_byte(),
        "missing": plan.n_missing(),
    })
}
