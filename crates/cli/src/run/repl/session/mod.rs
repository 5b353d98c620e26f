//! A chat: its conversation, its settings, and answers.

mod model;

use std::path::{Path, PathBuf};

use chaski::{ChatPrompt, Engine, Message};

use super::Start;
use super::conversation::Conversation;
use super::settings::Settings;
use crate::failure::{self, is_closed_stdout};
use crate::hub::Models;
use crate::input::read_text;
use crate::interrupt::Answering;
use crate::options::EngineArgs;
use crate::run::answer::{self, Format, Prompt};
use crate::run::question::Question;
use crate::run::{Demands, encode, generate_options, note_broken_template, note_unused_tools, with_system};
use crate::stats;
use crate::ui::{LoadTimes, Ui, bytes, one_line, tell};

/// The step after an input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The next input.
    Input,
    /// The end of the chat.
    Exit,
    /// Another model.
    Model(PathBuf),
}

/// A chat with a loaded model.
pub(super) struct Session<'a> {
    engine: Engine,
    /// The model's file; `None` for the built-in model.
    file: Option<PathBuf>,
    /// Options with which models are loaded.
    engine_args: EngineArgs,
    times: LoadTimes,
    /// There is a draft model.
    has_draft: bool,
    settings: Settings,
    /// Parsed values that come from files or have a syntax of their own.
    demands: Demands,
    /// Texts are continued as they are, whatever template there is.
    raw: bool,
    /// Models by name.
    models: Models,
    ui: &'a Ui,
    /// There is a usable chat template.
    chat: bool,
    conversation: Conversation,
    /// Tokens of the context in use after the last answer.
    n_token: usize,
    /// Names and texts of files for the next message.
    files: Vec<(String, String)>,
}

impl<'a> Session<'a> {
    /// A new chat.
    ///
    /// # Errors
    /// If the chat template is needed and cannot be used.
    pub(super) fn new(start: Start, ui: &'a Ui) -> Result<Session<'a>, chaski::Error> {
        let Start { engine, file, engine_args, times, has_draft, settings, demands, raw, models } = start;
        let (chat, conversation) = (false, Conversation::default());
        let (n_token, files) = (0, Vec::new());
        let mut session = Session {
            engine,
            file,
            engine_args,
            times,
            has_draft,
            settings,
            demands,
            raw,
            models,
            ui,
            chat,
            conversation,
            n_token,
            files,
        };
        session.begin()?;
        Ok(session)
    }

    /// Finds out how prompts are made.
    ///
    /// # Errors
    /// If the chat template is needed and cannot be used.
    fn begin(&mut self) -> Result<(), chaski::Error> {
        self.chat = match self.engine.template(!self.demands.tools.is_empty()) {
            Err(e) if self.raw => {
                note_broken_template(&e, self.ui);
                false
            }
            template => template?.is_some() && !self.raw,
        };
        Ok(())
    }

    /// Greets the user.
    pub(super) fn greet(&self) {
        if self.ui.quiet() {
            return;
        }
        let how = if self.chat {
            "Type a message; /help lists the commands."
        } else {
            "It has no chat template: texts are continued as is. /help lists the commands."
        };
        tell(&format!("{} on {}. {how}", self.engine.info().description, self.engine.device().name));
    }

    /// Answers a message; errors are reported and the chat goes on, unless the terminal is gone.
    pub(super) fn say(&mut self, text: &str) -> anyhow::Result<()> {
        let files = std::mem::take(&mut self.files);
        let parts: Vec<&str> = files.iter().map(|(_, file)| file.trim_end()).chain([text]).collect();
        let is_kept = self.ask(vec![Message::new("user", parts.join("\n\n"))])?;
        if !is_kept {
            self.files = files;
        }
        Ok(())
    }

    /// Answers the conversation with new messages at its end. False if it failed or was stopped before the answer
    /// began; the conversation is unchanged then.
    ///
    /// # Errors
    /// If the terminal is gone, or a lost device cannot be opened again.
    fn ask(&mut self, new: Vec<Message>) -> anyhow::Result<bool> {
        match self.try_ask(new) {
            Ok(is_kept) => Ok(is_kept),
            Err(e) if is_closed_stdout(&e) => Err(e),
            Err(e) => {
                let _ = failure::report(&e, self.ui);
                if self.chat && !self.conversation.messages().is_empty() {
                    tell("The conversation is as it was; /undo removes its last message, /clear all of it.");
                }
                self.recover()?;
                Ok(false)
            }
        }
    }

    /// Reopens a lost device.
    fn recover(&mut self) -> anyhow::Result<()> {
        let lost = self.engine.gpu().is_some_and(|g| g.check().is_err());
        if lost {
            tell("Device reopened.");
            pollster::block_on(self.engine.rebuild())?;
            // The draft model was on the same device.
            self.has_draft = false;
        }
        Ok(())
    }

    fn try_ask(&mut self, new: Vec<Message>) -> anyhow::Result<bool> {
        // Ctrl-C counts from here on: a long conversation takes a while to become a prompt.
        let answering = Answering::begin();
        let Settings { answer, sampling } = &self.settings;
        let mut options =
            generate_options(&self.engine, answer, sampling, self.demands.grammar.clone(), self.ui);
        let (tokens, chat) = self.prompt(&new, &options)?;
        let n_dropped = chat.as_ref().map_or(0, |prompt| prompt.n_dropped);
        options.shift = answer.shift(&self.engine, tokens.len());
        options.speculate = answer.draft.speculation(self.has_draft);
        if n_dropped > 0 {
            let (n_ctx, n) = (self.engine.loaded().n_ctx(), self.conversation.n_dropped() + n_dropped);
            self.ui.note(&format!(
                "the context of {n_ctx} tokens is full: the model no longer sees the {n} oldest messages"
            ));
        }
        let question = chat.map(|prompt| Question { prompt, tools: self.demands.tools.clone() });
        let prompt = question.as_ref().map_or(Prompt::Tokens(&tokens), Prompt::Question);
        let answer = answer::print(&mut self.engine, prompt, options, Format::Text, &self.times, self.ui)?;
        drop(answering);
        if answer.finish.is_none() && answer.text.is_empty() {
            self.ui.say("Stopped before the answer began; the message is not part of the conversation.");
            return Ok(false);
        }
        self.n_token = tokens.len() + answer.tokens.len();
        self.warn_of_context(&answer);
        answer::warn_of_cut(&answer, self.ui);
        if self.ui.verbose() {
            stats::print(self.ui, &self.engine, &self.times, &answer.stats);
            answer::explain_choice(&answer, self.ui);
        }
        // Reasoning is not part of the conversation.
        let reply = if self.chat {
            answer.parts.into_message(self.conversation.n_call())
        } else {
            Message::new("assistant", answer.text)
        };
        self.conversation.drop_oldest(n_dropped);
        self.conversation.extend(new);
        self.conversation.extend([reply]);
        Ok(true)
    }

    /// The tokens to continue, and the prompt with the messages that the context has no more room for, if it is of a
    /// chat.
    fn prompt(
        &self,
        new: &[Message],
        options: &chaski::GenerateOptions,
    ) -> anyhow::Result<(Vec<u32>, Option<ChatPrompt>)> {
        if !self.chat {
            let last = new.last().or(self.conversation.messages().last());
            return Ok((encode(&self.engine, &last.map(Message::text).unwrap_or_default())?, None));
        }
        let conversation = [self.conversation.kept(), new].concat();
        let messages = with_system(&self.settings.answer, &conversation);
        let template = self.settings.answer.template_options(&self.demands.tools);
        let prompt = self.engine.fit_prompt(&messages, &template, options)?;
        if self.conversation.messages().is_empty() {
            note_unused_tools(&self.engine, &messages, &template, self.ui);
        }
        Ok((prompt.tokens.clone(), Some(prompt)))
    }

    /// Reports an answer that the end of the context cut, and how the chat goes on.
    fn warn_of_context(&self, answer: &answer::Answer) {
        let is_cut = answer.finish == Some(chaski::Finish::Context);
        if is_cut && self.chat && !self.settings.answer.no_context_drop() {
            let n = self.engine.loaded().n_ctx();
            self.ui.note(&format!(
                "the context of {n} tokens is full, so the answer is cut; the next message goes on without the oldest ones"
            ));
        } else {
            answer::warn_of_context(answer, &self.engine, self.ui);
        }
    }

    /// `/regen`.
    pub(super) fn regenerate(&mut self) -> anyhow::Result<()> {
        let old = self.conversation.pop_answer();
        if self.conversation.messages().is_empty() {
            self.conversation.extend(old);
            tell("There is no message to answer.");
            return Ok(());
        }
        if !self.ask(Vec::new())? {
            self.conversation.extend(old);
        }
        Ok(())
    }

    /// `/undo`.
    pub(super) fn undo(&mut self) {
        match self.conversation.pop_turn() {
            Some(turn) => {
                let text = turn[0].text();
                let begin: String = text.chars().take(60).collect();
                let more = if begin.len() < text.len() { " ..." } else { "" };
                tell(&format!("Removed: {}{more}", one_line(&begin)));
            }
            None => tell("There is no message to remove."),
        }
    }

    /// `/edit`, with an editor.
    pub(super) fn edit(&mut self, edit: fn(&str) -> anyhow::Result<String>) -> anyhow::Result<()> {
        let old = self.conversation.last_question().unwrap_or_default();
        let new = edit(&old)?;
        if new.trim().is_empty() || new == old {
            tell("Nothing is changed.");
            return Ok(());
        }
        tell(&format!("> {}", crate::terminal::escaped(&new)));
        let turn = self.conversation.pop_turn();
        if !self.ask(vec![Message::new("user", new)])? {
            self.conversation.extend(turn.into_iter().flatten());
        }
        Ok(())
    }

    /// `/read`.
    pub(super) fn read_file(&mut self, argument: &str) -> anyhow::Result<()> {
        let Some(path) = path(argument) else {
            let n = std::mem::take(&mut self.files).len();
            let said = match n {
                0 => "/read FILE puts a file before the next message.",
                _ => "The files are forgotten.",
            };
            tell(said);
            return Ok(());
        };
        let text = read_text(&path)?;
        let (n_token, n_ctx) = (encode(&self.engine, &text)?.len(), self.engine.loaded().n_ctx() as usize);
        let name = path.display().to_string();
        anyhow::ensure!(n_token < n_ctx, "`{name}` has {n_token} tokens, but the context has {n_ctx}");
        tell(&format!("`{name}` ({n_token} tokens) goes before the next message."));
        self.files.push((name, text));
        Ok(())
    }

    /// `/save`.
    pub(super) fn save(&mut self, argument: &str) -> anyhow::Result<()> {
        let Some(path) = path(argument) else {
            tell("Where to? /save FILE");
            return Ok(());
        };
        self.conversation.save(&path, self.settings.answer.system.as_deref())?;
        tell(&format!("Saved {} messages as `{}`.", self.conversation.messages().len(), path.display()));
        Ok(())
    }

    /// `/load`.
    pub(super) fn load(&mut self, argument: &str) -> anyhow::Result<()> {
        let Some(path) = path(argument) else {
            tell("From where? /load FILE");
            return Ok(());
        };
        let (system, conversation) = Conversation::load(&path)?;
        let n = conversation.messages().len();
        let about = if system.is_some() { "with" } else { "without" };
        tell(&format!("Loaded {n} messages {about} a system prompt from `{}`.", path.display()));
        self.settings.answer.system = system;
        self.conversation = conversation;
        self.n_token = 0;
        Ok(())
    }

    /// `/system`.
    pub(super) fn system(&mut self, text: &str) {
        if !text.is_empty() {
            self.settings.answer.system = Some(text.to_owned());
        }
        match &self.settings.answer.system {
            Some(system) => tell(&format!("system = {}", crate::terminal::escaped(system))),
            None => tell("There is no system prompt; /system TEXT sets one."),
        }
        if !self.chat {
            tell("It has no effect: texts are continued as is.");
        }
    }

    /// `/set`.
    pub(super) fn set(&mut self, line: &str) {
        let changed = self.settings.set(line).and_then(|(settings, said)| {
            let demands = settings.answer.read().map_err(|e| format!("{e:#}"))?;
            Ok((settings, demands, said))
        });
        match changed {
            Ok((settings, demands, said)) => {
                (self.settings, self.demands) = (settings, demands);
                tell(&one_line(&said));
            }
            Err(mistake) => tell(&one_line(&mistake)),
        }
    }

    /// `/show`.
    pub(super) fn show(&mut self) {
        let info = self.engine.info();
        let device = self.engine.device();
        let row = |name: &str, value: &str| tell(&format!("{name:<18} {}", one_line(value)));
        row("model", &format!("{} ({})", info.file, info.description));
        row("device", &format!("{} ({})", device.name, device.driver));
        let (n_message, n_dropped) = (self.conversation.messages().len(), self.conversation.n_dropped());
        let dropped =
            if n_dropped > 0 { format!(", the {n_dropped} oldest no longer seen") } else { String::new() };
        let n_ctx = self.engine.loaded().n_ctx();
        row("context", &format!("{} of {n_ctx} tokens, {n_message} messages{dropped}", self.n_token));
        row("memory", &bytes(self.engine.memory().n_byte()));
        for (name, _) in &self.files {
            row("next message", &format!("begins with `{name}`"));
        }
        for (name, value) in self.in_force() {
            row(&name, &value);
        }
    }

    /// Options in force: those that were set, and the samplers that an answer has in any case.
    fn in_force(&self) -> Vec<(String, String)> {
        let mut rows = self.settings.in_force();
        let Settings { answer, sampling } = &self.settings;
        let sampler = generate_options(&self.engine, answer, sampling, None, self.ui).sampler;
        let always = [
            ("temp", sampler.temp.to_string()),
            ("top-k", sampler.top_k.to_string()),
            ("top-p", sampler.top_p.to_string()),
            ("min-p", sampler.min_p.to_string()),
        ];
        for (name, value) in always {
            if !rows.iter().any(|(other, _)| other == name) {
                rows.push((name.to_owned(), format!("{value} (default)")));
            }
        }
        rows
    }

    /// `/model`.
    pub(super) fn model(&mut self, argument: &str) -> anyhow::Result<Next> {
        match path(argument) {
            Some(path) => Ok(Next::Model(path)),
            None => {
                let info = self.engine.info();
                tell(&format!(
                    "{}: {} ({})",
                    one_line(&info.file),
                    one_line(&info.description),
                    bytes(info.n_byte)
                ));
                Ok(Next::Input)
            }
        }
    }

    /// `/clear`.
    pub(super) fn clear(&mut self) {
        self.conversation.clear();
        self.files.clear();
        self.engine.clear();
        self.n_token = 0;
        tell("Conversation cleared.");
    }
}

/// The path that an argument names: as it stands, or in quotes; `~/` is the user's folder. `None` if it is empty.
fn path(argument: &str) -> Option<PathBuf> {
    let quoted = |c| argument.strip_prefix(c).and_then(|rest: &str| rest.strip_suffix(c));
    let name = quoted('"').or_else(|| quoted('\'')).unwrap_or(argument);
    if name.is_empty() {
        return None;
    }
    let home = || directories::UserDirs::new().map(|dirs| dirs.home_dir().to_owned());
    match name.strip_prefix("~/").zip(home()) {
        Some((rest, home)) => Some(home.join(rest)),
        None => Some(Path::new(name).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_may_have_quotes_and_spaces() {
        let is = |argument: &str, expected: &str| path(argument) == Some(PathBuf::from(expected));
        assert!(is("a b.json", "a b.json") && is("\"a b\"", "a b") && is("'x'", "x") && is("\"x", "\"x"));
        assert_eq!(path(""), None);
        let home = directories::UserDirs::new().unwrap().home_dir().join("c.json");
        assert_eq!(path("~/c.json"), Some(home));
    }
}
