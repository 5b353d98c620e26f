//! `chaski run`: runs a prompt, or starts a chat.

mod answer;
mod constraint;
mod escapes;
mod ollama;
mod question;
mod repl;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use chaski::options::ReasoningBudget;
use chaski::text::{LocalTime, RenderSpecial, TemplateOptions};
use chaski::{ChatPrompt, Engine, GenerateOptions, Grammar, Message, SamplerParams, Source};
use serde_json::Value;

use crate::draft::DraftArgs;
use crate::failure::{Interrupted, Usage};
use crate::hub::Models;
use crate::input::{ModelAndText, followed, note_file_name, read_text, with_stdin, without_last_line_break};
use crate::load::{self, Loaded};
use crate::model_names::{Role, Visit};
use crate::options::{self, EngineArgs};
use crate::overrides::TemplateArgs;
use crate::sampling_options::SamplingArgs;
use crate::ui::{Ui, chain};
use crate::variables::VariableArgs;
use crate::{interrupt, stats};

pub(crate) const LONG: &str = "\
Runs a prompt, or starts a chat.

  chaski run MODEL PROMPT         PROMPT is a chat message if the model has a chat template, else a text to continue
  chaski run MODEL PROMPT < FILE  the file follows PROMPT, after a blank line
  chaski run MODEL < FILE         the file is the PROMPT
  chaski run -p TEXT              continues TEXT as is: no chat template, special tokens are parsed
  chaski run MODEL                a chat on the terminal; /help lists its commands

Beside PROMPT, stdin is read if it is a file, or a pipe that begins or ends within 10 seconds: \
`git diff | chaski run MODEL \"Explain:\"`. `-f -` reads any stdin and waits for it, and `-f FILE` appends a file; \
`< /dev/null` keeps a loop's input from the prompt. With -p, stdin is not read.

In messages, the system prompt and files, the names of special tokens are text, unless --parse-special is given: only \
the chat template ends a turn.

Without MODEL, a small built-in model that tells children's stories is used. The answer is streamed to stdout; \
the prompt is not repeated.";

/// The second positional argument.
const PROMPT: &str = "Message to the model, or text to continue if it has no chat template";

#[derive(clap::Args)]
#[command(mut_arg("second", |arg| arg.value_name("PROMPT").help(PROMPT)))]
pub(crate) struct Args {
    #[command(flatten)]
    words: ModelAndText,
    /// Draft model for speculative decoding: smaller, with the same vocabulary (-md)
    #[arg(long, value_name = "FILE")]
    model_draft: Option<PathBuf>,
    /// Text to continue as is, without the chat template
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with_all = ["second", "file"])]
    prompt: Option<String>,
    /// File with the text to continue as is; beside PROMPT, the text that follows it; `-` is stdin
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Never use the chat template
    #[arg(long, conflicts_with = "chat")]
    raw: bool,
    /// Use the chat template even for -p and -f
    #[arg(long)]
    chat: bool,
    /// One answer, by the chat template if the model has one, also for -p and -f
    #[arg(long, hide = true, conflicts_with = "raw")]
    single_turn: bool,
    /// Go on as a chat after the answer to the prompt
    #[arg(short, long, conflicts_with_all = ["json", "jsonl", "single_turn"])]
    interactive: bool,
    /// Replace `\n`, `\t`, `\xHH` and other escape sequences in prompts, --system, --stop, --in-prefix and --in-suffix
    #[arg(short, long, value_name = "BOOL", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true", hide_possible_values = true)]
    escape: Option<bool>,
    /// System prompt from a file
    #[arg(long, value_name = "FILE", conflicts_with = "system")]
    system_file: Option<PathBuf>,
    /// Print one JSON object: text, tokens, stop reason, statistics
    #[arg(long, conflicts_with = "jsonl")]
    json: bool,
    /// Print one JSON object per piece of text, and a final one
    #[arg(long)]
    jsonl: bool,
    #[command(flatten)]
    answer: AnswerArgs,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    template: TemplateArgs,
}

/// Options of a generation, besides sampling.
#[derive(Clone, Debug, Default, clap::Args, serde::Serialize)]
pub(crate) struct AnswerArgs {
    /// Maximum number of tokens to generate; below 0: until the model ends or the context is full [default: -1]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true)]
    n_predict: Option<i64>,
    /// System prompt
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Stop sequence: end the answer before this text; may be repeated
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    stop: Vec<String>,
    /// Parse special tokens in messages, the system prompt and tools; otherwise they are text, and only those of the
    /// chat template are tokens
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(hide_possible_values = true)]
    parse_special: Option<bool>,
    /// Print special tokens
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(hide_possible_values = true)]
    special: Option<bool>,
    /// Tokens per readback on the GPU; 0 adapts to its speed [default: 0]
    #[arg(long, value_name = "N")]
    interval: Option<u32>,
    #[command(flatten)]
    #[serde(flatten)]
    draft: DraftArgs,
    /// In a chat: refuse a message that the context has no room for, instead of dropping the oldest turns
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(hide_possible_values = true)]
    no_context_drop: Option<bool>,
    /// When the context is full during an answer, drop its older half and process the rest again
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(hide_possible_values = true)]
    context_shift: Option<bool>,
    /// With --context-shift: number of tokens at the start, besides BOS, that are never dropped; below 0: the whole
    /// prompt [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    keep: Option<i64>,
    /// With --json or --jsonl: log probability of each token, and of the N most probable ones
    #[arg(long, value_name = "N")]
    logprobs: Option<usize>,
    /// File with tools that the model may call: a JSON list in OpenAI's format
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    #[command(flatten)]
    #[serde(flatten)]
    variables: VariableArgs,
    #[command(flatten)]
    #[serde(flatten)]
    constraint: constraint::ConstraintArgs,
}

/// Option values that come from files or have a syntax of their own, parsed.
#[derive(Clone, Debug, Default)]
struct Demands {
    /// The tools that the model may call.
    tools: Vec<Value>,
    grammar: Option<Grammar>,
}

/// The prompt.
enum Prompt {
    /// A text to continue.
    Text(String),
    /// A chat message.
    Message(String),
}

pub(crate) fn run(mut args: Args, models: &Models, ui: &Ui) -> anyhow::Result<()> {
    args.read_texts()?;
    if let Some(model) = models.ollama() {
        ollama::take(model, &mut args, ui);
    }
    let (model, message) = args.words.split()?;
    let message = message.map(|text| args.unescaped(text));
    let (prompt, first) = match prompt(&args, model.as_deref(), message, ui)? {
        Some(Prompt::Text(text) | Prompt::Message(text)) if args.interactive => (None, Some(text)),
        prompt => (prompt, None),
    };
    if args.answer.logprobs.is_some() && !args.json && !args.jsonl {
        return Err(Usage("--logprobs needs --json or --jsonl".into()).into());
    }
    // Before the model, which may take long to load.
    let demands = args.answer.read()?;
    let Loaded { mut engine, times } = load::load(options::source(model.as_deref()), &args.engine, ui)?;
    let draft = args.model_draft.as_deref();
    let draft = draft.map(|file| load::draft(file, &args.engine, &engine, ui)).transpose()?;
    let has_draft = draft.is_some();
    engine.set_draft(draft)?;
    interrupt::install()?;
    let Some(prompt) = prompt else {
        let models = models.clone();
        let settings = repl::Settings { answer: args.answer, sampling: args.sampling };
        let (engine_args, raw) = (args.engine, args.raw);
        let start = repl::Start {
            engine,
            file: model,
            engine_args,
            times,
            has_draft,
            settings,
            demands,
            raw,
            models,
        };
        return repl::run(start, first, ui);
    };
    let (tokens, chat) = tokens(&engine, prompt, &args, &demands.tools, ui)?;
    let mut options = generate_options(&engine, &args.answer, &args.sampling, demands.grammar, ui);
    options.shift = args.answer.shift(&engine, tokens.len());
    options.speculate = args.answer.draft.speculation(has_draft);
    let format = match (args.json, args.jsonl) {
        (true, _) => answer::Format::Json,
        (_, true) => answer::Format::JsonLines,
        _ => answer::Format::Text,
    };
    // Text is printed without the marks of its parts.
    let chat = chat.filter(|_| format != answer::Format::Text);
    let question = chat.map(|prompt| question::Question { prompt, tools: demands.tools });
    let prompt = question.as_ref().map_or(answer::Prompt::Tokens(&tokens), answer::Prompt::Question);
    let answer = answer::print(&mut engine, prompt, options, format, &times, ui)?;
    answer::warn_of_context(&answer, &engine, ui);
    answer::warn_of_cut(&answer, ui);
    if ui.verbose() {
        stats::print(ui, &engine, &times, &answer.stats);
        answer::explain_choice(&answer, ui);
    }
    if answer.finish.is_none() { Err(Interrupted.into()) } else { Ok(()) }
}

impl Args {
    /// Visits the names of models.
    pub(crate) fn models(&mut self, visit: Visit<'_>) -> anyhow::Result<()> {
        self.words.models(visit)?;
        self.model_draft.iter_mut().try_for_each(|draft| visit(draft, Role::Other))
    }

    /// Texts of options that come from files or contain escape sequences.
    ///
    /// # Errors
    /// If a file cannot be read, or a chat has no terminal.
    fn read_texts(&mut self) -> anyhow::Result<()> {
        if self.interactive && !std::io::stdin().is_terminal() {
            return Err(Usage("--interactive needs a terminal: stdin is none".into()).into());
        }
        if let Some(file) = &self.system_file {
            self.answer.system = Some(read_text(file)?);
        }
        if self.escape == Some(true) {
            let TemplateArgs { in_prefix, in_suffix, .. } = &mut self.template;
            let texts = [&mut self.prompt, &mut self.answer.system, in_prefix, in_suffix];
            let texts = texts.into_iter().filter_map(Option::as_mut).chain(&mut self.answer.stop);
            texts.for_each(|text| *text = escapes::unescaped(text));
        }
        self.engine.metadata.more = self.template.changes()?;
        Ok(())
    }

    /// True if the text may be meant as a message: the user's own model has not been told to leave the template away.
    fn continues_by_mistake(&self) -> bool {
        !self.raw && self.words.has_model()
    }

    /// A text of the prompt, with its escape sequences replaced if that is asked for.
    fn unescaped(&self, text: String) -> String {
        if self.escape == Some(true) { escapes::unescaped(&text) } else { text }
    }
}

/// The prompt, or `None` for a chat.
fn prompt(
    args: &Args,
    model: Option<&Path>,
    message: Option<String>,
    ui: &Ui,
) -> anyhow::Result<Option<Prompt>> {
    if message.is_some() && args.prompt.is_some() {
        return Err(Usage("two prompts given".into()).into());
    }
    let as_text = |text: String| match args.chat || args.single_turn {
        true => Prompt::Message(text),
        false => Prompt::Text(text),
    };
    if let Some(text) = &args.prompt {
        return Ok(Some(as_text(text.clone())));
    }
    let message = match (message, &args.file) {
        (Some(message), file) => {
            note_file_name(&message, ui);
            match file {
                Some(file) => followed(&message, &args.unescaped(read_text(file)?)),
                None => with_stdin(message, |text| args.unescaped(text), ui)?,
            }
        }
        (None, Some(file)) => return Ok(Some(as_text(args.unescaped(read_text(file)?)))),
        (None, None) if std::io::stdin().is_terminal() => {
            if args.json || args.jsonl || args.single_turn {
                return Err(Usage("--json, --jsonl and --single-turn need a prompt".into()).into());
            }
            return Ok(None);
        }
        (None, None) => {
            // A word that is no file is the likelier mistake.
            if let Some(model) = model.filter(|model| !model.exists()) {
                pollster::block_on(Source::path(model).open())?;
            }
            let text = read_text(Path::new("-"))?;
            if text.trim().is_empty() {
                return Err(Usage("no prompt: stdin is empty".into()).into());
            }
            args.unescaped(without_last_line_break(&text).to_owned())
        }
    };
    Ok(Some(if args.raw { Prompt::Text(message) } else { Prompt::Message(message) }))
}

/// The tokens to continue, and the prompt if it comes from the chat template.
fn tokens(
    engine: &Engine,
    prompt: Prompt,
    args: &Args,
    tools: &[Value],
    ui: &Ui,
) -> anyhow::Result<(Vec<u32>, Option<ChatPrompt>)> {
    let template = engine.template(!tools.is_empty());
    Ok(match prompt {
        Prompt::Message(m) if args.chat || !matches!(template, Ok(None)) => {
            let messages = with_system(&args.answer, &[Message::new("user", m)]);
            let options = args.answer.template_options(tools);
            // The only message cannot be dropped.
            let whole = GenerateOptions { drop_turns: false, ..GenerateOptions::default() };
            let prompt = engine.fit_prompt(&messages, &options, &whole)?;
            note_unused_tools(engine, &messages, &options, ui);
            (prompt.tokens.clone(), Some(prompt))
        }
        Prompt::Message(text) | Prompt::Text(text) => {
            if args.continues_by_mistake() && matches!(template, Ok(Some(_))) {
                ui.note(
                    "-p and -f continue the text as it is; `--chat` makes it a message by the model's chat template, \
                     `--raw` is silent about it",
                );
            }
            if let Err(e) = template {
                note_broken_template(&e, ui);
            }
            if args.answer.system.is_some() {
                ui.note("--system is ignored: the prompt is plain text, not a message");
            }
            if args.answer.tools.is_some() {
                ui.note("--tools is ignored: the prompt is plain text, not a message");
            }
            (encode(engine, &text)?, None)
        }
    })
}

/// A conversation after its system message.
fn with_system(answer: &AnswerArgs, conversation: &[Message]) -> Vec<Message> {
    let system = answer.system.as_ref().map(|s| Message::new("system", s));
    system.into_iter().chain(conversation.iter().cloned()).collect()
}

/// Reports tools that have no effect on the prompt of these messages.
fn note_unused_tools(engine: &Engine, messages: &[Message], options: &TemplateOptions, ui: &Ui) {
    if options.tools.is_empty() {
        return;
    }
    let prompt = |tools| engine.chat_prompt(messages, &TemplateOptions { tools, ..options.clone() });
    // A template that fails without tools does use them.
    if let (Ok(with), Ok(without)) = (prompt(options.tools.clone()), prompt(Vec::new()))
        && with == without
    {
        ui.note("--tools has no effect: the model's chat template does not support tools");
    }
}

/// Reports that the chat template is unusable, so the text is continued.
fn note_broken_template(e: &chaski::Error, ui: &Ui) {
    ui.note(&format!("the model has no usable chat template: {}", chain(e)));
}

/// The tokens of a text with special tokens; only BOS for an empty text, if the model has one.
fn encode(engine: &Engine, text: &str) -> anyhow::Result<Vec<u32>> {
    let mut tokens = engine.encode(text)?;
    if tokens.is_empty() {
        tokens.extend(engine.tokenizer().bos());
    }
    anyhow::ensure!(!tokens.is_empty(), "the prompt is empty, and the model has no BOS token");
    Ok(tokens)
}

impl AnswerArgs {
    /// Parses option values that come from files or have a syntax of their own.
    ///
    /// # Errors
    /// If a file cannot be read or parsed.
    fn read(&self) -> anyhow::Result<Demands> {
        let tools = match &self.tools {
            Some(path) => serde_json::from_str(&read_text(path)?)
                .with_context(|| format!("`{}` is not a JSON list of tools", path.display()))?,
            None => Vec::new(),
        };
        Ok(Demands { tools, grammar: self.constraint.grammar()? })
    }

    /// Clears an option without a value.
    fn clear(&mut self, option: &str) {
        match option {
            "system" => self.system = None,
            "stop" => self.stop.clear(),
            "tools" => self.tools = None,
            // Constraints are cleared as others take their place.
            _ => {}
        }
    }

    /// True if conversations longer than the context are refused.
    fn no_context_drop(&self) -> bool {
        self.no_context_drop.unwrap_or(false)
    }

    /// Number of tokens at the start to keep on a context shift, if it is enabled.
    fn shift(&self, engine: &Engine, n_prompt: usize) -> Option<usize> {
        let n_begin = usize::from(engine.tokenizer().adds_bos());
        self.context_shift
            .unwrap_or(false)
            .then(|| usize::try_from(self.keep.unwrap_or(0)).map_or(n_prompt, |n| n + n_begin))
    }

    fn template_options(&self, tools: &[Value]) -> TemplateOptions {
        let now = chrono::Local::now();
        let now = LocalTime::from_unix(now.timestamp(), now.offset().local_minus_utc());
        let has_budget = self.variables.reasoning_budget() != Some(0);
        let enable_thinking = Some(has_budget && self.variables.enable_thinking().unwrap_or(true));
        let extra = self.variables.extra();
        TemplateOptions {
            extra,
            now: Some(now),
            enable_thinking,
            tools: tools.to_vec(),
            parse_special: self.parse_special.unwrap_or(false),
            ..TemplateOptions::default()
        }
    }
}

fn generate_options(
    engine: &Engine,
    answer: &AnswerArgs,
    sampling: &SamplingArgs,
    grammar: Option<Grammar>,
    ui: &Ui,
) -> GenerateOptions {
    let mut sampler = SamplerParams::default();
    for unknown in sampler.apply_metadata(engine.model().metadata()) {
        ui.detail(&format!("the model recommends an unknown sampler: {unknown}"));
    }
    sampling.apply(&mut sampler);
    let special = answer.special.unwrap_or(false);
    GenerateOptions {
        max_tokens: answer.n_predict.and_then(|n| usize::try_from(n).ok()),
        sampler,
        stop: answer.stop.clone(),
        interval: answer.interval.unwrap_or(0),
        special: if special { RenderSpecial::Yes } else { RenderSpecial::No },
        shown: Vec::new(),
        grammar,
        reasoning: answer.variables.reasoning_budget().map(ReasoningBudget::new),
        logprobs: answer.logprobs,
        drop_turns: !answer.no_context_drop(),
        ..GenerateOptions::default()
    }
}
