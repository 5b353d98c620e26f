//! `chaski run`: answers a prompt, or talks.

mod answer;
mod constraint;
mod parts;
mod repl;

use std::io::{ErrorKind, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use chaski::{
    AddSpecial, Engine, GenerateOptions, Grammar, LocalTime, Message, ParseSpecial, RenderSpecial,
    SamplerParams, Speculation, TemplateOptions,
};
use serde_json::Value;

use crate::failure::{Interrupted, Usage};
use crate::load::{self, Loaded};
use crate::options::{self, EngineArgs, Ignored, SamplingArgs};
use crate::ui::{Ui, chain};
use crate::{interrupt, stats};

pub(crate) const LONG: &str = "\
Answers a prompt, or talks.

  chaski run MODEL PROMPT   PROMPT is a message to the model if it has a chat template, else a text to continue
  chaski run -p TEXT        continues TEXT as it stands: no chat template, special tokens in it count
  chaski run MODEL < FILE   the file is the PROMPT
  chaski run MODEL          a conversation on the terminal; /help lists its commands

Without MODEL, a small teller of children's stories answers that is part of this program. The answer goes to stdout as \
it comes; the prompt is not repeated.";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// GGUF file; of a split set, the first
    #[arg(value_name = "MODEL")]
    first: Option<String>,
    /// Message to the model, or text to continue if it has no chat template
    #[arg(value_name = "PROMPT")]
    second: Option<String>,
    /// GGUF file, in place of MODEL
    #[arg(short, long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Smaller model with the same vocabulary, which guesses tokens (-md)
    #[arg(long, value_name = "FILE")]
    model_draft: Option<PathBuf>,
    /// Text to continue as it stands
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with_all = ["second", "file"])]
    prompt: Option<String>,
    /// File with the text to continue as it stands; `-` is stdin
    #[arg(short, long, value_name = "FILE", conflicts_with = "second")]
    file: Option<PathBuf>,
    /// No chat template, whatever the prompt is
    #[arg(long, conflicts_with = "chat")]
    raw: bool,
    /// The chat template, even for -p and -f
    #[arg(long)]
    chat: bool,
    /// Print one JSON object: text, tokens, why it ended, statistics
    #[arg(long, conflicts_with = "jsonl")]
    json: bool,
    /// Print one JSON object for every piece of text, and one at the end
    #[arg(long)]
    jsonl: bool,
    #[command(flatten)]
    answer: AnswerArgs,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    ignored: Ignored,
}

/// What an answer is like, beside the choice of tokens.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct AnswerArgs {
    /// Tokens at most; below 0: until the model ends or the context is full [default: -1]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true)]
    n_predict: Option<i64>,
    /// What the model is told before the conversation
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// End the answer before this text; may be given several times
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    stop: Vec<String>,
    /// Show special tokens in the answer
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(hide_possible_values = true)]
    special: Option<bool>,
    /// Tokens that run on the GPU between two readings; 0 adapts to its speed [default: 0]
    #[arg(long, value_name = "N")]
    interval: Option<u32>,
    /// Guess up to N tokens, by the draft model or by what followed the last ones earlier in the text, and check them all
    /// at once: the same answer, sooner where guesses are good; at most 7 [default: 0, with a draft model 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=Speculation::MAX as i64))]
    draft_max: Option<u32>,
    /// When the context is full, forget its older half and go on with the rest, which is read again
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(hide_possible_values = true)]
    context_shift: Option<bool>,
    /// With --context-shift: so many tokens of the beginning are never forgotten, the one that begins every text beside
    /// them; below 0: the whole prompt [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    keep: Option<i64>,
    /// With --json or --jsonl: the logarithm of each token's probability, and of the N most probable ones
    #[arg(long, value_name = "N")]
    logprobs: Option<usize>,
    /// File with tools that the model may call: a JSON list in OpenAI's form
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// Ask the chat template for an answer without reasoning
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(hide_possible_values = true)]
    no_think: Option<bool>,
    #[command(flatten)]
    constraint: constraint::ConstraintArgs,
}

/// What the options of an answer hold in files and notations of their own, read.
#[derive(Clone, Debug, Default)]
struct Demands {
    /// The tools that the model may call.
    tools: Vec<Value>,
    grammar: Option<Grammar>,
}

/// What to answer.
enum Prompt {
    /// A text to continue.
    Text(String),
    /// A message.
    Message(String),
}

pub(crate) fn run(args: Args, ui: &Ui) -> anyhow::Result<()> {
    args.ignored.notes().iter().for_each(|n| ui.note(n));
    let (model, message) = names(&args)?;
    let prompt = prompt(&args, message)?;
    if args.answer.logprobs.is_some() && !args.json && !args.jsonl {
        return Err(Usage("--logprobs needs --json or --jsonl".into()).into());
    }
    // Before the model, which may take long to load.
    let demands = args.answer.read()?;
    let Loaded { mut engine, times } = load::load(options::source(model.as_deref()), &args.engine, ui)?;
    let draft = args.model_draft.as_deref();
    let mut draft = draft.map(|file| load::draft(file, &args.engine, &mut engine, ui)).transpose()?;
    interrupt::install()?;
    let Some(prompt) = prompt else {
        let settings = repl::Settings { answer: args.answer, sampling: args.sampling };
        return repl::run(&mut engine, draft, settings, demands, args.raw, &times, ui);
    };
    let (text, is_chat) = prompt_text(&engine, prompt, &args, &demands.tools, ui)?;
    let tokens = encode(&engine, &text)?;
    let mut options = generate_options(&engine, &args.answer, &args.sampling, demands.grammar, ui);
    options.shift = args.answer.shift(&engine, tokens.len());
    options.speculate = args.answer.speculation(draft.is_some());
    let format = match (args.json, args.jsonl) {
        (true, _) => answer::Format::Json,
        (_, true) => answer::Format::JsonLines,
        _ => answer::Format::Text,
    };
    let parts = if is_chat { parts::Parts::new(&engine, &text, &demands.tools)? } else { None };
    if let Some(parts) = &parts
        && format != answer::Format::Text
    {
        options.shown = parts.marker_tokens(&engine);
    }
    let answer =
        answer::print(&mut engine, draft.as_mut(), &tokens, options, format, parts.as_ref(), &times)?;
    answer::warn_of_context(&answer, &mut engine, ui);
    if ui.verbose() {
        stats::print(ui, &mut engine, &times, &answer.stats);
        answer::explain_choice(&answer, ui);
    }
    if answer.finish.is_none() { Err(Interrupted.into()) } else { Ok(()) }
}

/// Model and message: `-m` makes the first word the message.
fn names(args: &Args) -> anyhow::Result<(Option<PathBuf>, Option<String>)> {
    match (&args.model, &args.first, &args.second) {
        (Some(_), Some(_), Some(_)) => {
            Err(Usage("the model is named twice, by -m and by MODEL".into()).into())
        }
        (Some(m), message, None) => {
            if message.is_some() && (args.prompt.is_some() || args.file.is_some()) {
                return Err(Usage("there are two prompts".into()).into());
            }
            Ok((Some(m.clone()), message.clone()))
        }
        (_, m, message) => Ok((m.as_ref().map(PathBuf::from), message.clone())),
    }
}

/// The prompt, or `None` for a conversation.
fn prompt(args: &Args, message: Option<String>) -> anyhow::Result<Option<Prompt>> {
    let as_text = |text: String| if args.chat { Prompt::Message(text) } else { Prompt::Text(text) };
    if let Some(text) = &args.prompt {
        return Ok(Some(as_text(text.clone())));
    }
    if let Some(path) = &args.file {
        return Ok(Some(as_text(read_text(path)?)));
    }
    let message = match message {
        Some(m) => m,
        None if std::io::stdin().is_terminal() => {
            if args.json || args.jsonl {
                return Err(Usage("--json and --jsonl need a prompt".into()).into());
            }
            return Ok(None);
        }
        None => {
            let text = read_text(Path::new("-"))?;
            if text.trim().is_empty() {
                return Err(Usage("there is no prompt: stdin is empty".into()).into());
            }
            // The line end of `echo` is not meant.
            text.strip_suffix('\n').map(|t| t.strip_suffix('\r').unwrap_or(t).to_owned()).unwrap_or(text)
        }
    };
    Ok(Some(if args.raw { Prompt::Text(message) } else { Prompt::Message(message) }))
}

/// The text of a file, or of stdin for `-`.
pub(crate) fn read_text(path: &Path) -> anyhow::Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("stdin cannot be read as UTF-8 text")?;
        return Ok(text);
    }
    std::fs::read_to_string(path).map_err(|e| {
        let what = if e.kind() == ErrorKind::InvalidData { "is no UTF-8 text" } else { "cannot be read" };
        anyhow::Error::from(e).context(format!("`{}` {what}", path.display()))
    })
}

/// The text that the model continues, and whether it comes from the chat template.
fn prompt_text(
    engine: &Engine,
    prompt: Prompt,
    args: &Args,
    tools: &[Value],
    ui: &Ui,
) -> anyhow::Result<(String, bool)> {
    let template = engine.template(!tools.is_empty());
    Ok(match prompt {
        Prompt::Message(m) if args.chat || !matches!(template, Ok(None)) => {
            (conversation_text(engine, &args.answer, tools, &[Message::new("user", m)], ui)?, true)
        }
        Prompt::Message(text) | Prompt::Text(text) => {
            if let Err(e) = template {
                note_broken_template(&e, ui);
            }
            if args.answer.system.is_some() {
                ui.note("--system is left out: the prompt is a plain text, not a message");
            }
            if args.answer.tools.is_some() {
                ui.note("--tools is left out: the prompt is a plain text, not a message");
            }
            (text, false)
        }
    })
}

/// The prompt of a conversation, by the chat template. At its first message it says if tools make no difference.
fn conversation_text(
    engine: &Engine,
    answer: &AnswerArgs,
    tools: &[Value],
    conversation: &[Message],
    ui: &Ui,
) -> Result<String, chaski::Error> {
    let system = answer.system.as_ref().map(|s| Message::new("system", s));
    let messages: Vec<Message> = system.into_iter().chain(conversation.iter().cloned()).collect();
    let options = answer.template_options(tools);
    let text = engine.chat_prompt(&messages, &options)?;
    if !tools.is_empty() && conversation.len() == 1 {
        let without = TemplateOptions { tools: Vec::new(), ..options };
        // A template that cannot do without tools does use them.
        if engine.chat_prompt(&messages, &without).is_ok_and(|other| other == text) {
            ui.note("--tools changes nothing: the model's chat template does not mention them");
        }
    }
    Ok(text)
}

/// Says that a text is continued by a model whose chat template is of no use.
fn note_broken_template(e: &chaski::Error, ui: &Ui) {
    ui.note(&format!("the model cannot hold a conversation: {}", chain(e)));
}

/// The tokens of a text, special ones in it included; BOS alone for an empty text, where the model has one.
fn encode(engine: &Engine, text: &str) -> anyhow::Result<Vec<u32>> {
    let tokenizer = engine.tokenizer();
    let mut tokens =
        tokenizer.encode(text, AddSpecial::Yes, ParseSpecial::Yes).map_err(chaski::ModelError::from)?;
    if tokens.is_empty() {
        tokens.extend(tokenizer.bos());
    }
    anyhow::ensure!(!tokens.is_empty(), "the prompt is empty, and the model has no token to begin with");
    Ok(tokens)
}

impl AnswerArgs {
    /// Reads files and notations.
    ///
    /// # Errors
    /// If a file cannot be read, or is not what it should be.
    fn read(&self) -> anyhow::Result<Demands> {
        let tools = match &self.tools {
            Some(path) => serde_json::from_str(&read_text(path)?)
                .with_context(|| format!("`{}` is no JSON list of tools", path.display()))?,
            None => Vec::new(),
        };
        Ok(Demands { tools, grammar: self.constraint.grammar()? })
    }

    /// Tokens at the beginning that are kept when the context is full, if it is to be shifted then.
    fn shift(&self, engine: &Engine, n_prompt: usize) -> Option<usize> {
        let n_begin = usize::from(engine.tokenizer().adds_bos());
        self.context_shift
            .unwrap_or(false)
            .then(|| usize::try_from(self.keep.unwrap_or(0)).map_or(n_prompt, |n| n + n_begin))
    }

    /// How tokens are guessed, if they are.
    fn speculation(&self, has_draft: bool) -> Option<Speculation> {
        let by_default = if has_draft { Speculation::default().n_max } else { 0 };
        let n_max = self.draft_max.map_or(by_default, |n| n as usize);
        (n_max > 0).then(|| Speculation { n_max, ..Speculation::default() })
    }

    fn template_options(&self, tools: &[Value]) -> TemplateOptions {
        let now = chrono::Local::now();
        let now = LocalTime::from_unix(now.timestamp(), now.offset().local_minus_utc());
        let enable_thinking = Some(!self.no_think.unwrap_or(false));
        TemplateOptions {
            now: Some(now),
            enable_thinking,
            tools: tools.to_vec(),
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
        ui.detail(&format!("the model recommends a sampler that is not known: {unknown}"));
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
        logprobs: answer.logprobs,
        ..GenerateOptions::default()
    }
}
