//! One generation: streamed, stopped by Ctrl-C, as text or JSON.

use std::io::Write as _;

use chaski::text::{RenderSpecial, Tokenizer};
use chaski::{ChatEvent, Engine, Finish, GenerateOptions, Piece, Stats};
use serde_json::{Value, json};

use super::question::Question;
use crate::interrupt::Answering;
use crate::progress::{Progress, Unit};
use crate::stats;
use crate::terminal::Screen;
use crate::ui::{LoadTimes, Ui};

/// Output format.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Text as it is generated.
    Text,
    /// One object at the end.
    Json,
    /// One object per piece.
    JsonLines,
}

/// A finished generation.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) tokens: Vec<u32>,
    /// Log probabilities per token, if requested.
    pub(super) logprobs: Vec<Value>,
    /// Its parts, if it answers a question to a chat model.
    pub(super) parts: chaski::text::Answer,
    /// `None` if it was interrupted.
    pub(super) finish: Option<Finish>,
    pub(super) stats: Stats,
    /// The reason for CPU sampling, if the CPU sampled.
    pub(super) on_cpu: Option<&'static str>,
}

impl Answer {
    /// Takes a piece, which goes to `sink`.
    fn push(
        &mut self,
        tokenizer: &Tokenizer,
        piece: &Piece,
        sink: &mut impl FnMut(&Piece, Option<&Value>) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let found = logprobs_of(tokenizer, piece);
        sink(piece, found.as_ref())?;
        self.logprobs.extend(found);
        self.text.push_str(&piece.text);
        self.tokens.extend(piece.token);
        Ok(())
    }
}

/// Continues tokens; every piece goes to `sink`.
fn continue_tokens(
    engine: &mut Engine,
    prompt: &[u32],
    options: GenerateOptions,
    ui: &Ui,
    mut sink: impl FnMut(&Piece, Option<&Value>) -> std::io::Result<()>,
) -> anyhow::Result<Answer> {
    let answering = Answering::begin();
    let mut generation = engine.generate_tokens(prompt, options)?;
    let mut out = Answer::default();
    let mut progress = Some(ui.progress("prompt", Unit::Tokens, prompt.len() as u64));
    while !answering.interrupted() {
        // The prompt is processed in chunks.
        if pollster::block_on(generation.prompt())? {
            let (done, total) = generation.progress();
            progress.iter().for_each(|p| p.set(done as u64, total as u64));
            continue;
        }
        end_of_prompt(&mut progress, generation.progress());
        let Some(piece) = pollster::block_on(generation.next())? else { break };
        out.push(generation.tokenizer(), &piece, &mut sink)?;
    }
    (out.finish, out.stats, out.on_cpu) =
        (generation.finish(), generation.stats().clone(), generation.on_cpu());
    Ok(out)
}

/// Answers a question; every piece goes to `sink`.
fn answer_question(
    engine: &mut Engine,
    question: &Question,
    options: GenerateOptions,
    ui: &Ui,
    mut sink: impl FnMut(&Piece, Option<&Value>) -> std::io::Result<()>,
) -> anyhow::Result<Answer> {
    let answering = Answering::begin();
    let mut conversation = engine.answer(&question.prompt, &question.tools, options)?;
    let mut out = Answer::default();
    let (mut progress, mut n) = (Some(ui.progress("prompt", Unit::Tokens, 0)), 0);
    while !answering.interrupted() {
        match pollster::block_on(conversation.next())? {
            None => break,
            Some(ChatEvent::Started { on_cpu, n_prompt, .. }) => (out.on_cpu, n) = (on_cpu, n_prompt),
            Some(ChatEvent::Prompt { n_sent }) => {
                progress.iter().for_each(|p| p.set(n_sent as u64, n as u64));
            }
            Some(ChatEvent::Piece(piece)) => {
                end_of_prompt(&mut progress, (n, n));
                out.push(conversation.tokenizer(), &piece, &mut sink)?;
            }
            Some(ChatEvent::Part(part)) => out.parts.extend([part]),
            Some(ChatEvent::Finished { answer, finish, .. }) => {
                (out.parts, out.finish) = (answer, Some(finish))
            }
            Some(_) => {}
        }
    }
    out.stats = conversation.stats().clone();
    Ok(out)
}

/// Removes the bar, which would be in the way of the answer.
fn end_of_prompt(progress: &mut Option<Progress>, (done, total): (usize, usize)) {
    if let Some(progress) = progress.take() {
        progress.set(done as u64, total as u64);
        progress.finish();
    }
}

/// The prompt of an answer.
pub(super) enum Prompt<'a> {
    /// Tokens to continue.
    Tokens(&'a [u32]),
    /// A question to a chat model.
    Question(&'a Question),
}

/// Generates an answer and prints it on stdout.
pub(super) fn print(
    engine: &mut Engine,
    prompt: Prompt<'_>,
    options: GenerateOptions,
    format: Format,
    times: &LoadTimes,
    ui: &Ui,
) -> anyhow::Result<Answer> {
    let mut screen = (format == Format::Text).then(Screen::new);
    let mut out = std::io::stdout();
    let sink = |piece: &Piece, logprobs: Option<&Value>| match format {
        Format::Json => Ok(()),
        Format::Text => screen.as_mut().map_or(Ok(()), |screen| screen.write(&piece.text)),
        Format::JsonLines => {
            let mut object = json!({ "type": "piece", "text": piece.text, "token": piece.token });
            if let Some(logprobs) = logprobs {
                object["logprobs"] = logprobs.clone();
            }
            writeln!(out, "{object}")?;
            out.flush()
        }
    };
    let is_chat = matches!(prompt, Prompt::Question(_));
    let answer = match prompt {
        Prompt::Tokens(tokens) => continue_tokens(engine, tokens, options, ui, sink),
        Prompt::Question(question) => answer_question(engine, question, options, ui, sink),
    };
    // An error stands in a line of its own, too.
    let end = if answer.is_ok() { Screen::end } else { Screen::abandon };
    let ended = screen.map_or(Ok(()), end);
    let answer = answer?;
    ended?;
    match format {
        Format::Text => {}
        Format::Json => writeln!(out, "{:#}", summary(engine, &answer, is_chat, times, true))?,
        Format::JsonLines => writeln!(out, "{}", summary(engine, &answer, is_chat, times, false))?,
    }
    out.flush()?;
    Ok(answer)
}

/// The log probabilities of a piece.
fn logprobs_of(tokenizer: &Tokenizer, piece: &Piece) -> Option<Value> {
    let (token, logprobs) = (piece.token?, piece.logprobs.as_ref()?);
    let entry = |token: u32, logprob: f32| {
        let text = tokenizer.decode_lossy(&[token], RenderSpecial::Yes);
        json!({ "token": token, "text": text, "logprob": logprob })
    };
    Some(logprobs.to_json(token, "top", entry))
}

fn summary(engine: &Engine, answer: &Answer, is_chat: bool, times: &LoadTimes, whole: bool) -> Value {
    let info = engine.info();
    let device = engine.device().clone();
    let mut object = serde_json::Map::new();
    if whole {
        object.insert("text".into(), answer.text.as_str().into());
        object.insert("tokens".into(), answer.tokens.clone().into());
        if !answer.logprobs.is_empty() {
            object.insert("logprobs".into(), answer.logprobs.clone().into());
        }
    } else {
        object.insert("type".into(), "end".into());
    }
    if is_chat {
        object.insert("message".into(), json!(answer.parts.clone().into_message(0)));
    }
    object.insert("finish_reason".into(), stats::finish_word(answer.finish).into());
    object.insert("incomplete".into(), answer.stats.is_incomplete.into());
    object.insert("model".into(), json!({ "file": info.file, "description": info.description }));
    object.insert("device".into(), json!({ "name": device.name, "driver": device.driver }));
    object.insert("stats".into(), stats::json(engine, times, &answer.stats));
    Value::Object(object)
}

/// Tells verbose users why sampling took a readback per token.
pub(super) fn explain_choice(answer: &Answer, ui: &Ui) {
    if let Some(why) = answer.on_cpu {
        ui.detail(&format!("{:<12}tokens sampled on the CPU: {why}", "sampler"));
    }
}

/// Reports an answer that is not complete by its grammar, schema or expression.
pub(super) fn warn_of_cut(answer: &Answer, ui: &Ui) {
    if answer.stats.is_incomplete {
        let by = match answer.finish {
            Some(Finish::StopText) => "a stop string cut it",
            Some(Finish::Context) => "the context is full",
            _ => "`-n` allows no more",
        };
        let n = answer.stats.n_token;
        ui.note(&format!("the answer does not match its constraint yet: {by} after {n} tokens"));
    }
}

/// Reports that the answer ended because the context is full, or that old tokens were dropped.
pub(super) fn warn_of_context(answer: &Answer, engine: &Engine, ui: &Ui) {
    let n = engine.loaded().n_ctx();
    if answer.finish == Some(Finish::Context) {
        ui.note(&format!(
            "the context of {n} tokens is full; `-c N` sets a larger one, --context-shift drops the oldest tokens"
        ));
    }
    if answer.stats.n_dropped > 0 {
        let n_dropped = answer.stats.n_dropped;
        ui.note(&format!("the context of {n} tokens was full: dropped {n_dropped} of the oldest tokens"));
    }
}
