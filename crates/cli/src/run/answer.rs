//! One generation: streamed, stopped by Ctrl-C, as text or JSON.

use std::io::Write as _;

use chaski::{Engine, Finish, GenerateOptions, Piece, RenderSpecial, Stats, Tokenizer};
use serde_json::{Value, json};

use super::parts::Parts;
use crate::interrupt::Answering;
use crate::stats;
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
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) tokens: Vec<u32>,
    /// Log probabilities per token, if requested.
    pub(super) logprobs: Vec<Value>,
    /// `None` if it was interrupted.
    pub(super) finish: Option<Finish>,
    pub(super) stats: Stats,
    /// The reason for CPU sampling, if the CPU sampled.
    pub(super) on_processor: Option<&'static str>,
}

/// Generates an answer; every piece goes to `sink`.
fn generate(
    engine: &mut Engine,
    draft: Option<&mut Engine>,
    prompt: &[u32],
    options: GenerateOptions,
    mut sink: impl FnMut(&Piece, Option<&Value>) -> std::io::Result<()>,
) -> anyhow::Result<Answer> {
    let answering = Answering::begin();
    let mut generation = engine.generate_tokens(prompt, options)?;
    if let Some(draft) = draft {
        generation = generation.with_draft(draft.runner())?;
    }
    let (mut text, mut logprobs) = (String::new(), Vec::new());
    while !answering.interrupted() {
        // The prompt, and the rest of a shifted context, are processed in chunks.
        if pollster::block_on(generation.prompt())? {
            continue;
        }
        let Some(piece) = pollster::block_on(generation.next())? else { break };
        let found = logprobs_of(generation.tokenizer(), &piece);
        sink(&piece, found.as_ref())?;
        logprobs.extend(found);
        text.push_str(&piece.text);
    }
    Ok(Answer {
        text,
        tokens: generation.tokens().to_vec(),
        logprobs,
        finish: generation.finish(),
        stats: generation.stats().clone(),
        on_processor: generation.on_processor(),
    })
}

/// Generates an answer and prints it on stdout.
pub(super) fn print(
    engine: &mut Engine,
    draft: Option<&mut Engine>,
    prompt: &[u32],
    options: GenerateOptions,
    format: Format,
    parts: Option<&Parts>,
    times: &LoadTimes,
) -> anyhow::Result<Answer> {
    let mut out = std::io::stdout().lock();
    let answer = generate(engine, draft, prompt, options, |piece, logprobs| match format {
        Format::Json => Ok(()),
        Format::Text => {
            out.write_all(piece.text.as_bytes())?;
            out.flush()
        }
        Format::JsonLines => {
            let mut object = json!({ "type": "piece", "text": piece.text, "token": piece.token });
            if let Some(logprobs) = logprobs {
                object["logprobs"] = logprobs.clone();
            }
            writeln!(out, "{object}")?;
            out.flush()
        }
    })?;
    match format {
        Format::Text if answer.text.ends_with('\n') => {}
        Format::Text => writeln!(out)?,
        Format::Json => writeln!(out, "{:#}", summary(engine, &answer, parts, times, true))?,
        Format::JsonLines => writeln!(out, "{}", summary(engine, &answer, parts, times, false))?,
    }
    out.flush()?;
    Ok(answer)
}

/// The log probabilities of a piece.
fn logprobs_of(tokenizer: &Tokenizer, piece: &Piece) -> Option<Value> {
    let (token, logprobs) = (piece.token?, piece.logprobs.as_ref()?);
    let entry = |token: u32, logprob: f32| {
        let text = tokenizer.decode_lossy(&[token], RenderSpecial::Yes);
        // JSON has no infinity; a probability of 0 is null.
        json!({ "token": token, "text": text, "logprob": logprob })
    };
    let top: Vec<Value> = logprobs.top.iter().map(|&(token, logprob)| entry(token, logprob)).collect();
    let mut object = entry(token, logprobs.logprob);
    object["top"] = top.into();
    Some(object)
}

fn summary(
    engine: &mut Engine,
    answer: &Answer,
    parts: Option<&Parts>,
    times: &LoadTimes,
    whole: bool,
) -> Value {
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
    if let Some(parts) = parts {
        object.insert("message".into(), json!(parts.message(&answer.text, 0)));
    }
    object.insert("finish_reason".into(), stats::finish_word(answer.finish).into());
    object.insert("model".into(), json!({ "file": info.file, "description": info.description }));
    object.insert("device".into(), json!({ "name": device.name, "driver": device.driver }));
    object.insert("stats".into(), stats::json(engine, times, &answer.stats));
    Value::Object(object)
}

/// Tells verbose users why sampling took a readback per token.
pub(super) fn explain_choice(answer: &Answer, ui: &Ui) {
    if let Some(why) = answer.on_processor {
        ui.detail(&format!("{:<12}tokens sampled on the CPU: {why}", "sampler"));
    }
}

/// Reports that the answer ended because the context is full, or that old tokens were dropped.
pub(super) fn warn_of_context(answer: &Answer, engine: &mut Engine, ui: &Ui) {
    let n = engine.runner().n_ctx();
    if answer.finish == Some(Finish::Context) {
        ui.note(&format!(
            "the context of {n} tokens is full; `-c N` sets a larger one, --context-shift drops the oldest tokens"
        ));
    }
    if answer.stats.n_forgotten > 0 {
        let n_forgotten = answer.stats.n_forgotten;
        ui.note(&format!("the context of {n} tokens was full: dropped {n_forgotten} of the oldest tokens"));
    }
}
