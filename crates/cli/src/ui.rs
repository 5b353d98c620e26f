//! Output besides the answer: colours and notes on stderr.

use std::borrow::Cow;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

pub(crate) use crate::names::{LINE, NAME, one_line, shortened};
use crate::progress::{Display, Loading, Mode, Progress, Unit};
use crate::terminal::for_stderr;

/// When to use colours.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set or TERM is `dumb`; CLICOLOR_FORCE turns them on.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Options of all commands.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "General options")]
pub(crate) struct UiArgs {
    /// Colours on stderr
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "WHEN",
        hide_possible_values = true
    )]
    color: Color,
    /// Configuration file [default: the one that `chaski config --path` names]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<std::path::PathBuf>,
    /// Verbose: statistics, memory, the device
    #[arg(short, long, global = true)]
    verbose: bool,
    /// Quiet: only the answer and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Progress on stderr: auto (a bar on a terminal), text, json (an object a line), none; without a word: text
    #[arg(long, global = true, value_enum, value_name = "FORM", num_args = 0..=1, require_equals = true)]
    #[arg(default_value = "auto", default_missing_value = "text", hide_default_value = true)]
    #[arg(hide_possible_values = true)]
    progress: Mode,
}

/// A line on stderr, as it is. The work goes on if nobody reads it, or its disk is full.
pub(crate) fn write_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// A message on stderr, without colours; on a terminal it is wrapped at words.
pub(crate) fn tell(text: &str) {
    write_line(&for_stderr(text));
}

/// Style and verbosity of messages on stderr.
#[derive(Clone, Debug)]
pub(crate) struct Ui {
    color: bool,
    verbose: bool,
    quiet: bool,
    display: Display,
    /// Nobody chose a form of progress, and there is no terminal: long work may tell some lines.
    tells_lines: bool,
}

impl Ui {
    pub(crate) fn new(args: &UiArgs) -> Ui {
        let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        let force = set("CLICOLOR_FORCE") && std::env::var_os("CLICOLOR_FORCE").is_some_and(|v| v != "0");
        let color = match args.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
                !set("NO_COLOR") && (force || !is_dumb && std::io::stderr().is_terminal())
            }
        };
        let display = Display::of(args.progress, args.quiet);
        let tells_lines = args.progress == Mode::Auto && display == Display::Hidden && !args.quiet;
        Ui { color, verbose: args.verbose, quiet: args.quiet, display, tells_lines }
    }

    /// Before the options are known.
    pub(crate) fn plain() -> Ui {
        let display = Display::of(Mode::None, true);
        Ui { color: false, verbose: false, quiet: false, display, tells_lines: false }
    }

    /// A silent one.
    pub(crate) fn silent() -> Ui {
        Ui { color: false, verbose: false, quiet: true, display: Display::Hidden, tells_lines: false }
    }

    /// The same without progress.
    pub(crate) fn without_progress(&self) -> Ui {
        Ui { display: Display::Hidden, tells_lines: false, ..self.clone() }
    }

    pub(crate) fn verbose(&self) -> bool {
        self.verbose
    }

    pub(crate) fn quiet(&self) -> bool {
        self.quiet
    }

    /// `text` in a colour of the terminal, given as the number of its escape sequence.
    pub(crate) fn paint<'a>(&self, code: &str, text: &'a str) -> Cow<'a, str> {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m").into() } else { text.into() }
    }

    /// A message after a word, which has a colour.
    pub(crate) fn tell_after(&self, code: &str, word: &str, text: &str) {
        let line = format!("{word} {text}");
        let line = for_stderr(&line);
        match line.strip_prefix(word) {
            Some(text) => write_line(&format!("{}{text}", self.paint(code, word))),
            // The terminal is narrower than the word.
            None => write_line(&line),
        }
    }

    /// A message for most users.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            self.tell_after("1;33", "note:", text);
        }
    }

    /// A message that reports a result.
    pub(crate) fn say(&self, text: &str) {
        if !self.quiet {
            tell(text);
        }
    }

    /// A line about the progress of long work where there is no bar.
    pub(crate) fn line(&self, text: &str) {
        if self.tells_lines {
            tell(text);
        }
    }

    /// A message for verbose users.
    pub(crate) fn detail(&self, text: &str) {
        if self.verbose {
            write_line(&self.paint("2", &for_stderr(text)));
        }
    }

    /// Begins a phase of work of `total` units; 0 if their number is not known.
    pub(crate) fn progress(&self, phase: &'static str, unit: Unit, total: u64) -> Progress {
        Progress::start(self.display, phase, unit, total)
    }

    /// Progress of loading a model.
    pub(crate) fn loading(&self) -> Loading {
        Loading::new(self.display)
    }
}

/// Sends the log to stderr if RUST_LOG is set.
pub(crate) fn log_to_stderr(ui: &Ui) {
    if std::env::var_os("RUST_LOG").is_none() {
        return;
    }
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .with_ansi(ui.color)
        .init();
}

/// Durations of the stages of loading.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct LoadTimes {
    /// Until the last kernel was compiled.
    pub(crate) compile: Duration,
    /// Until the last weight was submitted; both stages overlap.
    pub(crate) upload: Duration,
    /// Everything, from opening the file.
    pub(crate) total: Duration,
}

/// A byte count as text.
pub(crate) fn bytes(n: u64) -> String {
    let (mut value, mut unit) = (n as f64, "B");
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    if unit == "B" { format!("{n} B") } else { format!("{value:.2} {unit}") }
}

/// A number of things: `1 chunk`, `2 chunks`.
pub(crate) fn counted(n: impl TryInto<u64>, thing: &str) -> String {
    let n = n.try_into().unwrap_or(u64::MAX);
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}

/// An error and its causes in one line.
pub(crate) fn chain(e: &(dyn std::error::Error + 'static)) -> String {
    let mut text = e.to_string();
    let mut next = e.source();
    while let Some(e) = next {
        text = format!("{text}: {e}");
        next = e.source();
    }
    one_line(&text)
}

/// Alignment of a column.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A row of a Markdown table, from the text, width and alignment of each cell.
pub(crate) fn row<'t>(cells: impl Iterator<Item = (&'t str, usize, Side)>) -> String {
    let cells = cells.map(|(text, width, side)| match side {
        Side::Left => format!("{text:<width$}"),
        Side::Right => format!("{text:>width$}"),
    });
    format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
}

/// The line below the header of a Markdown table.
pub(crate) fn rule(columns: impl Iterator<Item = (usize, Side)>) -> String {
    let rules = columns.map(|(width, side)| match side {
        Side::Left => "-".repeat(width + 2),
        Side::Right => format!("{}:", "-".repeat(width + 1)),
    });
    format!("|{}|", rules.collect::<Vec<_>>().join("|"))
}

/// A Markdown table with columns as wide as needed; the first row is the header.
pub(crate) fn table<const N: usize>(rows: &[[String; N]], sides: [Side; N]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for (index, cells) in rows.iter().enumerate() {
        text += &row(cells
            .iter()
            .zip(widths)
            .zip(sides)
            .map(|((cell, width), side)| (cell.as_str(), width, side)));
        text.push('\n');
        if index == 0 {
            text += &rule(widths.into_iter().zip(sides));
            text.push('\n');
        }
    }
    text
}
