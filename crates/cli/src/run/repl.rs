//! The chat on the terminal.

use std::path::PathBuf;

use chaski::{Engine, Message};
use clap::Parser as _;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::answer::{self, Format, Prompt};
use super::question::Question;
use super::{AnswerArgs, Demands, conversation_text, encode, generate_options, note_broken_template};
use crate::failure::is_closed_stdout;
use crate::options::SamplingArgs;
use crate::stats;
use crate::ui::{LoadTimes, Ui, bytes};

const HELP: &str = "\
  /set OPTION VALUE   change an option: /set temp 0.5, /set special false, /set system You are a pirate.
                      Repeatable options such as stop then have this single value; json-schema, grammar and
                      regex replace one another, and are cleared without VALUE.
  /show               model, device, memory, and the options that were set
  /clear              forget the conversation
  /bye                exit (or Ctrl-D)
  \"\"\"                 begins and ends a multi-line message
  Ctrl-C              stops generation";

/// Options that `/set` changes: those of a generation.
#[derive(Clone, Debug, Default, clap::Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
pub(super) struct Settings {
    #[command(flatten)]
    pub(super) answer: AnswerArgs,
    #[command(flatten)]
    pub(super) sampling: SamplingArgs,
}

impl Settings {
    /// A copy with a new value for one option, named without dashes.
    fn with(&self, name: &str, value: &str) -> Result<Settings, clap::Error> {
        let dashes = if name.chars().count() == 1 { "-" } else { "--" };
        let word =
            if value.is_empty() { format!("{dashes}{name}") } else { format!("{dashes}{name}={value}") };
        let mut settings = self.clone();
        settings.sampling.make_room_for(name);
        let is_constraint = settings.answer.constraint.make_room_for(name);
        if !(is_constraint && value.is_empty()) {
            settings.try_update_from([word])?;
        }
        Ok(settings)
    }
}

struct Session<'a> {
    engine: &'a mut Engine,
    /// There is a draft model.
    has_draft: bool,
    /// Tokens of the conversation after the last answer.
    n_token: usize,
    settings: Settings,
    /// Parsed values that come from files or have a syntax of their own.
    demands: Demands,
    /// Arguments of `/set`, for `/show`.
    changes: Vec<String>,
    /// The conversation without the system prompt.
    messages: Vec<Message>,
    /// True if there is a usable chat template.
    chat: bool,
    times: &'a LoadTimes,
    ui: &'a Ui,
}

/// Runs the chat until the user exits.
pub(super) fn run(
    engine: &mut Engine,
    has_draft: bool,
    settings: Settings,
    demands: Demands,
    raw: bool,
    times: &LoadTimes,
    ui: &Ui,
) -> anyhow::Result<()> {
    let chat = match engine.template(!demands.tools.is_empty()) {
        Err(e) if raw => {
            note_broken_template(&e, ui);
            false
        }
        template => template?.is_some() && !raw,
    };
    if !ui.quiet() {
        let what = if chat { "Type a message" } else { "It has no chat template: texts are continued as is" };
        let hint = if chat { "; /help lists the commands." } else { ". /help lists the commands." };
        eprintln!("{} on {}. {what}{hint}", engine.info().description, engine.device().name);
    }
    let mut editor = DefaultEditor::new()?;
    let history = history_file();
    if let Some(path) = &history {
        // There is no history at the first start.
        let loaded = editor.load_history(path);
        tracing::debug!(?loaded, path = %path.display(), "history");
    }
    let mut session = Session {
        engine,
        has_draft,
        n_token: 0,
        settings,
        demands,
        changes: Vec::new(),
        messages: Vec::new(),
        chat,
        times,
        ui,
    };
    while let Some(input) = read(&mut editor)? {
        if input.text().trim().is_empty() {
            continue;
        }
        // A line that cannot be saved is no reason to stop.
        let _ = editor.add_history_entry(input.text());
        let goes_on = match input.command() {
            Some(command) => session.command(command)?,
            None => {
                session.answer(input.text())?;
                true
            }
        };
        if !goes_on {
            break;
        }
    }
    if let Some(path) = &history {
        let saved = path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(ReadlineError::from);
        if let Err(e) = saved.and_then(|()| editor.save_history(path)) {
            tracing::debug!(%e, path = %path.display(), "cannot save the history");
        }
    }
    Ok(())
}

fn history_file() -> Option<PathBuf> {
    directories::ProjectDirs::from("", "", "chaski").map(|d| d.data_dir().join("history.txt"))
}

/// User input.
#[derive(Debug, PartialEq, Eq)]
enum Input {
    /// One line, which may be a command.
    Line(String),
    /// A text between `"""`, always a message.
    Quoted(String),
}

impl Input {
    fn text(&self) -> &str {
        match self {
            Input::Line(text) | Input::Quoted(text) => text,
        }
    }

    /// The command, without its slash.
    fn command(&self) -> Option<&str> {
        match self {
            Input::Line(line) => line.trim().strip_prefix('/'),
            Input::Quoted(_) => None,
        }
    }
}

/// One line, or several between `"""`; `None` at end of input.
fn read(editor: &mut DefaultEditor) -> anyhow::Result<Option<Input>> {
    const QUOTES: &str = "\"\"\"";
    let mut text: Option<String> = None;
    loop {
        let line = match editor.readline(if text.is_some() { "... " } else { ">>> " }) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) if text.is_none() => {
                eprintln!("Use Ctrl-D or /bye to exit.");
                continue;
            }
            Err(ReadlineError::Interrupted) => {
                text = None;
                continue;
            }
            Err(ReadlineError::Eof) => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        match &mut text {
            None => match line.trim_start().strip_prefix(QUOTES) {
                None => return Ok(Some(Input::Line(line))),
                Some(rest) => match rest.strip_suffix(QUOTES) {
                    Some(all) => return Ok(Some(Input::Quoted(all.to_owned()))),
                    None if rest.is_empty() => text = Some(String::new()),
                    None => text = Some(format!("{rest}\n")),
                },
            },
            Some(so_far) => match line.trim_end().strip_suffix(QUOTES) {
                Some(last) => {
                    so_far.push_str(last);
                    return Ok(text.map(|t| Input::Quoted(t.strip_suffix('\n').unwrap_or(&t).to_owned())));
                }
                None => {
                    so_far.push_str(&line);
                    so_far.push('\n');
                }
            },
        }
    }
}

impl Session<'_> {
    /// Runs a command; `false` to exit.
    fn command(&mut self, command: &str) -> anyhow::Result<bool> {
        let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        match word {
            "bye" | "exit" | "quit" => return Ok(false),
            "help" | "?" => eprintln!("{HELP}"),
            "clear" => {
                self.messages.clear();
                self.engine.clear();
                self.n_token = 0;
                eprintln!("Conversation cleared.");
            }
            "show" => self.show(),
            "set" => self.set(rest.trim()),
            _ => eprintln!("Unknown command `/{word}`; /help lists the commands."),
        }
        Ok(true)
    }

    fn show(&mut self) {
        let info = self.engine.info();
        let device = self.engine.device().clone();
        let used = self.n_token;
        let n_ctx = self.engine.loaded().n_ctx();
        eprintln!("model    {} ({})", info.file, info.description);
        eprintln!("device   {} ({})", device.name, device.driver);
        eprintln!("context  {used} of {n_ctx} tokens used, {} messages", self.messages.len());
        eprintln!("memory   {}", bytes(self.engine.memory().n_byte()));
        if let Some(system) = &self.settings.answer.system {
            eprintln!("system   {system}");
        }
        for change in &self.changes {
            eprintln!("set      {change}");
        }
    }

    fn set(&mut self, rest: &str) {
        let (name, value) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let name = name.trim_start_matches('-');
        if name.is_empty() {
            eprintln!("Expected an option: /set temp 0.5");
            return;
        }
        let changed = self.settings.with(name, value.trim()).map_err(anyhow::Error::from);
        match changed.and_then(|settings| Ok((settings.answer.read()?, settings))) {
            Ok((demands, settings)) => {
                (self.demands, self.settings) = (demands, settings);
                self.changes.push(rest.to_owned());
            }
            // The first line of clap's message says it all; other errors have one line each.
            Err(e) => eprintln!("{}", format!("{e:#}").lines().next().unwrap_or_default()),
        }
    }

    /// Answers a message; errors are reported and the chat goes on, unless the terminal is gone.
    fn answer(&mut self, input: &str) -> anyhow::Result<()> {
        match self.try_answer(input) {
            Err(e) if is_closed_stdout(&e) => Err(e),
            Err(e) => {
                let _ = crate::failure::report(&e, self.ui);
                if self.chat {
                    eprintln!("(/clear clears the conversation.)");
                }
                self.recover()
            }
            Ok(()) => Ok(()),
        }
    }

    /// Reopens a lost device.
    fn recover(&mut self) -> anyhow::Result<()> {
        let lost = self.engine.gpu().is_some_and(|g| g.check().is_err());
        if lost {
            eprintln!("Device reopened.");
            pollster::block_on(self.engine.rebuild())?;
            // The draft model was on the same device.
            self.has_draft = false;
        }
        Ok(())
    }

    /// Number of tool calls in the conversation.
    fn n_call(&self) -> usize {
        let calls = self.messages.iter().filter_map(|m| m.fields.get("tool_calls")?.as_array());
        calls.map(Vec::len).sum()
    }

    fn try_answer(&mut self, input: &str) -> anyhow::Result<()> {
        let text = if self.chat {
            let mut messages = self.messages.clone();
            messages.push(Message::new("user", input));
            conversation_text(self.engine, &self.settings.answer, &self.demands.tools, &messages, self.ui)?
        } else {
            input.to_owned()
        };
        let tokens = encode(self.engine, &text)?;
        let Settings { answer, sampling } = &self.settings;
        let mut options =
            generate_options(self.engine, answer, sampling, self.demands.grammar.clone(), self.ui);
        options.shift = answer.shift(self.engine, tokens.len());
        options.speculate = answer.speculation(self.has_draft);
        let question = Question { prompt: text, tools: self.demands.tools.clone() };
        let prompt = if self.chat { Prompt::Question(&question) } else { Prompt::Tokens(&tokens) };
        let answer = answer::print(self.engine, prompt, options, Format::Text, self.times)?;
        self.n_token = tokens.len() + answer.tokens.len();
        answer::warn_of_context(&answer, self.engine, self.ui);
        if self.ui.verbose() {
            stats::print(self.ui, self.engine, self.times, &answer.stats);
            answer::explain_choice(&answer, self.ui);
        }
        if self.chat {
            self.messages.push(Message::new("user", input));
            // Reasoning is not part of the conversation.
            self.messages.push(answer.parts.into_message(self.n_call()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use chaski::{Grammar, SamplerParams};

    use super::*;

    #[test]
    fn setting_an_option_leaves_the_others_as_they_are() {
        let line = ["--no-think", "--ignore-eos", "--special", "--stop", "a", "--stop", "b"];
        let begun = Settings::try_parse_from(line).unwrap();
        let is_on = |settings: &Settings| {
            let mut p = SamplerParams::default();
            settings.sampling.apply(&mut p);
            [settings.answer.no_think, settings.answer.special, Some(p.ignore_eos)].map(|on| on == Some(true))
        };
        let changed = begun.with("temp", "0.5").unwrap();
        assert_eq!((is_on(&changed), changed.sampling.temp), ([true; 3], Some(0.5)));
        assert_eq!(changed.answer.stop, ["a", "b"]);
        let off = changed.with("special", "false").unwrap().with("ignore-eos", "false").unwrap();
        assert_eq!(is_on(&off), [true, false, false]);
        assert_eq!(is_on(&off.with("special", "").unwrap()), [true, true, false]);
        assert_eq!(changed.with("stop", "c").unwrap().answer.stop, ["c"]);
        assert_eq!(changed.with("n", "7").unwrap().answer.n_predict, Some(7));
    }

    #[test]
    fn a_constraint_takes_the_place_of_another_and_can_be_taken_away() {
        let grammar = |settings: &Settings| settings.answer.constraint.grammar().unwrap();
        let schema = Settings::default().with("json-schema", "{}").unwrap();
        assert!(matches!(grammar(&schema), Some(Grammar::JsonSchema(_))));
        let regex = schema.with("regex", "a+").unwrap();
        assert_eq!(grammar(&regex), Some(Grammar::Regex("a+".into())));
        let gbnf = regex.with("grammar", "root ::= \"a\"").unwrap();
        assert!(matches!(grammar(&gbnf), Some(Grammar::Gbnf(_))));
        assert_eq!(grammar(&gbnf.with("temp", "1").unwrap()), grammar(&gbnf));
        assert_eq!(grammar(&gbnf.with("json-schema", "").unwrap()), None);
    }

    #[test]
    fn the_last_sequence_of_samplers_counts_whichever_way_it_is_written() {
        use chaski::text::SamplerKind;
        let samplers = |settings: &Settings| {
            let mut p = SamplerParams::default();
            settings.sampling.apply(&mut p);
            p.samplers
        };
        let by_name = Settings::default().with("samplers", "top_k;temperature").unwrap();
        assert_eq!(samplers(&by_name), [SamplerKind::TopK, SamplerKind::Temperature]);
        let by_letter = by_name.with("sampling-seq", "p").unwrap();
        assert_eq!(samplers(&by_letter), [SamplerKind::TopP]);
        assert_eq!(samplers(&by_letter.with("samplers", "min_p").unwrap()), [SamplerKind::MinP]);
        assert!(by_letter.with("samplers", "nothing").is_err());
    }

    #[test]
    fn only_lines_are_commands() {
        assert_eq!(Input::Line(" /set temp 1".into()).command(), Some("set temp 1"));
        assert_eq!(Input::Line("hello /bye".into()).command(), None);
        assert_eq!(Input::Quoted("/bye".into()).command(), None);
        assert_eq!(Input::Quoted("/etc/passwd\nis a file".into()).text(), "/etc/passwd\nis a file");
    }
}
