//! The chat on the terminal.

mod commands;
mod conversation;
mod editor;
mod history;
mod input;
mod session;
mod settings;

use chaski::Engine;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::Demands;
use crate::failure::{self, is_closed_stdout};
use crate::hub::Models;
use crate::options::EngineArgs;
use crate::ui::{LoadTimes, Ui};
use history::History;
use input::{Input, Line, Lines};
use session::{Next, Session};
pub(super) use settings::Settings;

/// A chat to begin.
pub(super) struct Start {
    pub(super) engine: Engine,
    /// The model's file; `None` for the built-in model.
    pub(super) file: Option<std::path::PathBuf>,
    pub(super) engine_args: EngineArgs,
    pub(super) times: LoadTimes,
    pub(super) has_draft: bool,
    pub(super) settings: Settings,
    pub(super) demands: Demands,
    /// Texts are continued as they are, whatever template there is.
    pub(super) raw: bool,
    /// Models by name.
    pub(super) models: Models,
}

/// Runs the chat until the user exits; it begins with a message, if there is one.
pub(super) fn run(start: Start, first: Option<String>, ui: &Ui) -> anyhow::Result<()> {
    let mut session = Session::new(start, ui)?;
    session.greet();
    if let Some(text) = first {
        session.say(&text)?;
    }
    let mut terminal = Terminal::new()?;
    while let Some(input) = input::read(&mut terminal)? {
        let done = match &input {
            Input::Command(name, argument) => commands::run(&mut session, name, argument),
            Input::Message(text) => session.say(text).map(|()| Next::Input),
        };
        match done {
            Ok(Next::Input) => {}
            Ok(Next::Exit) => break,
            Ok(Next::Model(path)) => session = session.with_model(path)?,
            Err(e) if is_closed_stdout(&e) => return Err(e),
            Err(e) => drop(failure::report(&e, ui)),
        }
    }
    Ok(())
}

/// The line editor of the terminal, with the lines of this chat and earlier ones.
struct Terminal {
    editor: DefaultEditor,
    history: Option<History>,
}

impl Terminal {
    fn new() -> anyhow::Result<Terminal> {
        let mut editor = DefaultEditor::new()?;
        let history = History::of_user();
        for entry in history.iter().flat_map(History::load) {
            editor.add_history_entry(entry)?;
        }
        Ok(Terminal { editor, history })
    }
}

impl Lines for Terminal {
    fn line(&mut self, prompt: &str) -> anyhow::Result<Line> {
        match self.editor.readline(prompt) {
            // A terminal that pastes without marks may write line breaks of its own kind.
            Ok(line) => Ok(Line::Text(line.replace("\r\n", "\n").replace('\r', "\n"))),
            Err(ReadlineError::Interrupted) => Ok(Line::Interrupted),
            Err(ReadlineError::Eof) => Ok(Line::End),
            Err(e) => Err(e.into()),
        }
    }

    fn remember(&mut self, input: &str) {
        // An input that cannot be kept is no reason to stop.
        let added = self.editor.add_history_entry(input);
        let kept = self.history.as_ref().map(|history| history.append(input));
        tracing::debug!(?added, ?kept, "history");
    }
}
