//! Progress of everything that takes a while, on stderr: a bar on a terminal, or lines for logs and programs.

use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chaski::gpu::Stage;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::names::{NAME, shortened};

/// The form of progress.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mode {
    /// A bar if stderr is a terminal, else nothing
    #[default]
    Auto,
    /// Lines of text
    Text,
    /// One JSON object a line
    Json,
    /// Nothing
    None,
}

/// The form in use.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Display {
    Bar,
    Text,
    Json,
    Hidden,
}

impl Display {
    /// For an option; a quiet command has no bar unless it is asked for one.
    pub(crate) fn of(mode: Mode, quiet: bool) -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        match mode {
            Mode::Auto if !quiet && !is_dumb && std::io::stderr().is_terminal() => Display::Bar,
            Mode::Auto | Mode::None => Display::Hidden,
            Mode::Text => Display::Text,
            Mode::Json => Display::Json,
        }
    }
}

/// The unit of progress.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    Chunks,
    Devices,
    Formats,
    Kernels,
    Seconds,
    Texts,
    Tokens,
    Windows,
}

impl Unit {
    /// The word in every form.
    fn word(self) -> &'static str {
        match self {
            Unit::Bytes => "bytes",
            Unit::Chunks => "chunks",
            Unit::Devices => "devices",
            Unit::Formats => "formats",
            Unit::Kernels => "kernels",
            Unit::Seconds => "seconds",
            Unit::Texts => "texts",
            Unit::Tokens => "tokens",
            Unit::Windows => "windows",
        }
    }
}

/// Faster work needs no bar.
const PATIENCE: Duration = Duration::from_millis(250);
/// Time between two JSON lines of a phase.
const JSON_INTERVAL: Duration = Duration::from_millis(100);
/// Time between two lines of text.
const TEXT_INTERVAL: Duration = Duration::from_secs(1);

/// Progress of one phase of work, from any thread. Dropping it removes the bar.
#[derive(Debug)]
pub(crate) struct Progress(Mutex<State>);

#[derive(Debug)]
struct State {
    display: Display,
    phase: &'static str,
    unit: Unit,
    done: u64,
    /// 0 if unknown.
    total: u64,
    message: String,
    start: Instant,
    /// The last line.
    last: Option<Instant>,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Begins a phase of `total` units; 0 if their number is not known.
    pub(crate) fn start(display: Display, phase: &'static str, unit: Unit, total: u64) -> Self {
        let mut state = State {
            display,
            phase,
            unit,
            done: 0,
            total,
            message: String::new(),
            start: Instant::now(),
            last: None,
            bar: None,
        };
        match display {
            Display::Bar => {
                let bar = ProgressBar::new(total);
                bar.set_style(state.style());
                // The first tick draws it, even if a step takes long.
                bar.enable_steady_tick(PATIENCE);
                state.bar = Some(bar);
            }
            Display::Json => state.line(),
            Display::Text | Display::Hidden => {}
        }
        Progress(Mutex::new(state))
    }

    /// Sets the number of units done, and of all.
    pub(crate) fn set(&self, done: u64, total: u64) {
        let mut state = self.state();
        if state.total != total {
            state.total = total;
            if let Some(bar) = &state.bar {
                // The bar may be drawn at any time, and its style for a known number shows it.
                bar.set_length(total);
                bar.set_style(state.style());
            }
        }
        state.done = done;
        state.show(false);
    }

    /// Adds units done.
    pub(crate) fn add(&self, n: u64) {
        let mut state = self.state();
        state.done += n;
        state.show(false);
    }

    /// Sets a word about what is being done, or a result so far.
    pub(crate) fn message(&self, text: impl Into<String>) {
        // It may have names of a file, which cannot write lines of ours.
        let text = shortened(&text.into(), NAME);
        let mut state = self.state();
        let is_new = state.message != text;
        state.message = text;
        if let Some(bar) = &state.bar {
            bar.set_message(state.message.clone());
        }
        // Lines of text tell of each step, as a log.
        let at_once = is_new && state.display == Display::Text;
        state.show(at_once);
    }

    /// Calls a function that prints, without the bar in its way.
    pub(crate) fn suspend<R>(&self, print: impl FnOnce() -> R) -> R {
        let bar = self.state().bar.clone();
        match bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Ends the phase.
    pub(crate) fn finish(self) {
        let mut state = self.state();
        if state.display == Display::Json {
            state.line();
        }
    }

    /// Time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.state().start.elapsed()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn style(&self) -> ProgressStyle {
        let template = match (self.total, self.unit) {
            (0, Unit::Bytes) => "{prefix} {bytes} {elapsed} {wide_msg}",
            (0, _) => "{prefix} {spinner} {elapsed} {wide_msg}",
            (_, Unit::Bytes) => {
                "{prefix} [{bar:30}] {bytes}/{total_bytes} {binary_bytes_per_sec} {eta} {wide_msg}"
            }
            (_, Unit::Kernels) => "{prefix} {spinner} {len} kernels {elapsed} {wide_msg}",
            (_, Unit::Seconds) => "{prefix} [{bar:30}] {pos}/{len} s {wide_msg}",
            (_, Unit::Devices) => "{prefix} [{bar:30}] {pos}/{len} devices {wide_msg}",
            (_, Unit::Chunks) => "{prefix} [{bar:30}] {pos}/{len} chunks {eta} {wide_msg}",
            (_, Unit::Formats) => "{prefix} [{bar:30}] {pos}/{len} formats {eta} {wide_msg}",
            (_, Unit::Texts) => "{prefix} [{bar:30}] {pos}/{len} texts {eta} {wide_msg}",
            (_, Unit::Tokens) => "{prefix} [{bar:30}] {pos}/{len} tokens {per_sec} {eta} {wide_msg}",
            (_, Unit::Windows) => "{prefix} [{bar:30}] {pos}/{len} windows {eta} {wide_msg}",
        };
        let template = template.replace("{prefix}", self.phase);
        ProgressStyle::with_template(&template).expect("our templates are well formed").progress_chars("=> ")
    }

    /// Shows the state, if it is time.
    fn show(&mut self, at_once: bool) {
        let since = self.last.map_or(self.start.elapsed(), |last| last.elapsed());
        match self.display {
            Display::Bar => {
                if let Some(bar) = self.bar.as_ref().filter(|_| self.start.elapsed() > PATIENCE) {
                    bar.set_position(self.done);
                }
            }
            Display::Json if at_once || since >= JSON_INTERVAL => self.line(),
            Display::Text if at_once || since >= TEXT_INTERVAL => self.line(),
            _ => {}
        }
    }

    /// Writes a line.
    fn line(&mut self) {
        self.last = Some(Instant::now());
        let line = if self.display == Display::Json { self.json() } else { self.text() };
        // A closed stderr must not end the work.
        let _ = writeln!(std::io::stderr().lock(), "{line}");
    }

    fn json(&self) -> String {
        let seconds = (self.start.elapsed().as_secs_f64() * 1e3).round() / 1e3;
        let mut object = json!({
            "phase": self.phase,
            "done": self.done,
            "total": (self.total > 0).then_some(self.total),
            "unit": self.unit.word(),
            "seconds": seconds,
        });
        if !self.message.is_empty() {
            object["message"] = self.message.as_str().into();
        }
        object.to_string()
    }

    fn text(&self) -> String {
        let total = if self.total > 0 { format!("/{}", self.total) } else { String::new() };
        let message = if self.message.is_empty() { String::new() } else { format!(", {}", self.message) };
        format!("{}: {}{total} {}{message}", self.phase, self.done, self.unit.word())
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.state().bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Progress of loading: kernels are compiled and weights uploaded at once.
#[derive(Clone)]
pub(crate) struct Loading(Arc<Mutex<Stages>>);

struct Stages {
    display: Display,
    compile: Option<Progress>,
    load: Option<Progress>,
}

impl Loading {
    pub(crate) fn new(display: Display) -> Self {
        Loading(Arc::new(Mutex::new(Stages { display, compile: None, load: None })))
    }

    /// The callback of an engine's builder.
    pub(crate) fn callback(&self) -> impl FnMut(chaski::Progress) + Send + Sync + use<> {
        let stages = self.0.clone();
        move |p| lock(&stages).report(p)
    }

    /// Ends all stages.
    pub(crate) fn finish(&self) {
        let mut stages = lock(&self.0);
        [stages.compile.take(), stages.load.take()].into_iter().flatten().for_each(Progress::finish);
    }
}

fn lock(stages: &Mutex<Stages>) -> MutexGuard<'_, Stages> {
    stages.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stages {
    fn report(&mut self, p: chaski::Progress) {
        let display = self.display;
        let (stage, phase, unit) = match p.stage {
            Stage::Compile => (&mut self.compile, "compile", Unit::Kernels),
            Stage::Upload => {
                // A terminal has one bar, that of the stage with steps.
                if display == Display::Bar {
                    self.compile = None;
                }
                (&mut self.load, "load", Unit::Bytes)
            }
        };
        stage.get_or_insert_with(|| Progress::start(display, phase, unit, p.total)).set(p.done, p.total);
        if p.done >= p.total
            && let Some(done) = stage.take()
        {
            done.finish();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(display: Display, total: u64) -> Progress {
        Progress::start(display, "load", Unit::Bytes, total)
    }

    #[test]
    fn lines_have_the_documented_fields() {
        let progress = state(Display::Hidden, 0);
        let object = |p: &Progress| serde_json::from_str::<serde_json::Value>(&p.state().json()).unwrap();
        let first = object(&progress);
        let keys: Vec<&str> = first.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["phase", "done", "total", "unit", "seconds"]);
        assert!(first["total"].is_null() && first["unit"] == "bytes" && first["phase"] == "load", "{first}");
        progress.set(3, 8);
        progress.add(2);
        progress.message("a tensor");
        let next = object(&progress);
        assert_eq!(
            (&next["done"], &next["total"], &next["message"]),
            (&5.into(), &8.into(), &"a tensor".into())
        );
        assert_eq!(progress.state().text(), "load: 5/8 bytes, a tensor");
    }

    #[test]
    fn a_bar_knows_its_length_before_it_shows_it() {
        let progress = state(Display::Bar, 0);
        let length = |p: &Progress| p.state().bar.as_ref().unwrap().length();
        progress.set(0, 8);
        // A tick may draw it at once.
        assert_eq!(length(&progress), Some(8));
        progress.set(8, 9);
        assert_eq!(length(&progress), Some(9));
    }

    #[test]
    fn every_unit_has_a_bar() {
        use Unit::*;
        for unit in [Bytes, Devices, Chunks, Formats, Kernels, Seconds, Texts, Tokens, Windows] {
            for total in [0, 9] {
                Progress::start(Display::Hidden, "load", unit, total).state().style();
            }
        }
    }

    #[test]
    fn without_a_terminal_nothing_is_shown_unless_asked_for() {
        for quiet in [false, true] {
            assert_eq!(Display::of(Mode::Json, quiet), Display::Json);
            assert_eq!(Display::of(Mode::None, quiet), Display::Hidden);
        }
        assert_eq!(Display::of(Mode::Auto, true), Display::Hidden);
    }
}
