//! Text of a model or a file on a terminal: wrapped at words, with control characters as escapes.

mod escape;
mod wrap;

use std::io::{IsTerminal as _, StdoutLock, Write as _};

pub(crate) use escape::escaped;
use wrap::Wrap;

/// Stdout. On a terminal, text is escaped and wrapped for its width; elsewhere it is written as it is.
pub(crate) struct Screen {
    out: StdoutLock<'static>,
    wrap: Option<Wrap>,
    /// Last character of the text so far.
    last: Option<char>,
}

impl Screen {
    pub(crate) fn new() -> Screen {
        let out = std::io::stdout().lock();
        let wrap = out.is_terminal().then(Wrap::default);
        Screen { out, wrap, last: None }
    }

    /// Writes a piece of text; the word at its end may wait for the rest of it.
    pub(crate) fn write(&mut self, text: &str) -> std::io::Result<()> {
        self.last = text.chars().next_back().or(self.last);
        match &mut self.wrap {
            None => self.out.write_all(text.as_bytes())?,
            Some(wrap) => {
                // The width is asked for each time, so that a resized window takes effect.
                let columns = terminal_size::terminal_size_of(&self.out).map(|(width, _)| width.0.into());
                self.out.write_all(wrap.push(&escaped(text), columns).as_bytes())?;
            }
        }
        self.out.flush()
    }

    /// Writes what waits, and a line break unless the text ends with one.
    pub(crate) fn end(mut self) -> std::io::Result<()> {
        if let Some(wrap) = &mut self.wrap {
            self.out.write_all(wrap.finish().as_bytes())?;
        }
        if self.last != Some('\n') {
            writeln!(self.out)?;
        }
        self.out.flush()
    }

    /// Ends the line of a text that an error ends, if there is any.
    pub(crate) fn abandon(self) -> std::io::Result<()> {
        if self.last.is_some() { self.end() } else { Ok(()) }
    }
}

/// A message for stderr: wrapped at words on a terminal.
pub(crate) fn for_stderr(text: &str) -> std::borrow::Cow<'_, str> {
    let err = std::io::stderr();
    let size = terminal_size::terminal_size_of(&err).filter(|_| err.is_terminal());
    let Some((width, _)) = size else { return text.into() };
    let mut wrap = Wrap::default();
    let begin = wrap.push(text, Some(width.0.into()));
    (begin + &wrap.finish()).into()
}

/// A text for stdout: escaped on a terminal.
pub(crate) fn for_stdout(text: &str) -> std::borrow::Cow<'_, str> {
    if std::io::stdout().is_terminal() { escaped(text) } else { text.into() }
}
