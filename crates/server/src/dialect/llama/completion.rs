//! `/completion`.

use chaski::text::AnswerEvent;
use chaski::{ChatEvent, Finish, GenerateOptions, Stats};
use serde_json::{Value, json};

use crate::answers::{Gathered, Outcome, Token};
use crate::ask::{Ask, Part, Prompt};
use crate::dialect::openai::completions::prompts;
use crate::dialect::openai::logprobs;
use crate::dialect::timings::{PromptProgress, timings};
use crate::dialect::{Frame, Told, Writer, per_answer};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::fim::Gap;
use crate::model::Facts;
use crate::openapi::field::check;
use crate::openapi::requests::NATIVE_FIXED;
use crate::sampling;

/// Reads a body.
pub(crate) fn ask(body: &Value, facts: &Facts) -> Result<(Ask, Box<dyn Writer>), ApiError> {
    let fields = Fields::of(body, "")?;
    let prompts = prompts(&fields, "prompt")?;
    completion(&fields, prompts, facts)
}

/// Reads the body of `/infill`.
pub(crate) fn infill(body: &Value, facts: &Facts) -> Result<(Ask, Box<dyn Writer>), ApiError> {
    let fields = Fields::of(body, "")?;
    let prompt = Gap::read(&fields)?.prompt(facts)?;
    completion(&fields, vec![prompt], facts)
}

fn completion(
    fields: &Fields<'_>,
    prompts: Vec<Vec<Part>>,
    facts: &Facts,
) -> Result<(Ask, Box<dyn Writer>), ApiError> {
    let mut options = sampling::options(fields, facts)?;
    options.max_tokens = sampling::max_tokens(fields, &["n_predict", "max_tokens"], facts)?;
    options.ends = sampling::ends(fields, options.max_tokens, facts)?;
    let n_probs = fields.integer("n_probs", 0..=100)?.unwrap_or(0) as usize;
    options.logprobs = (n_probs > 0).then_some(n_probs);
    options.logprobs_after_sampling = fields.flag("post_sampling_probs")?.unwrap_or(false);
    check(fields, &NATIVE_FIXED)?;
    let writer = Completion {
        options: options.clone(),
        stream: fields.flag("stream")?.unwrap_or(false),
        tokens: fields.flag("return_tokens")?.unwrap_or(false),
        timings: fields.flag("timings_per_token")?.unwrap_or(false),
        progress: fields.flag("return_progress")?.unwrap_or(false),
        chosen: fields.texts("response_fields", 64)?.unwrap_or_default(),
        answers: Vec::new(),
    };
    let slot = sampling::slot(fields, facts)?;
    let silence = sampling::silence(fields)?;
    let ask = Ask { stream: writer.stream, slot, silence, ..Ask::new(Prompt::Texts(prompts), options) };
    Ok((ask, Box::new(writer)))
}

/// Writes answers.
struct Completion {
    options: GenerateOptions,
    stream: bool,
    tokens: bool,
    timings: bool,
    progress: bool,
    /// Only these fields are told.
    chosen: Vec<String>,
    answers: Vec<OneAnswer>,
}

#[derive(Clone, Default)]
struct OneAnswer {
    gathered: Gathered,
    progress: PromptProgress,
    has_new_line: bool,
}

/// A value below these names, `a/b`.
fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('/').try_fold(value, |value, name| value.get(name))
}

/// `completion_probabilities` of tokens.
fn probabilities(options: &GenerateOptions, told: &Told, tokens: &[Token]) -> Value {
    match options.logprobs_after_sampling {
        false => logprobs::content(&told.facts, tokens).into(),
        true => logprobs::probabilities(&told.facts, tokens).into(),
    }
}

impl Completion {
    /// The settings that were in force.
    fn settings(&self, told: &Told) -> Value {
        let mut settings = sampling::told(&self.options.sampler, &told.facts);
        let scale = |(id, scale): (usize, &f32)| json!({"id": id, "scale": scale});
        let lora = told.lora.iter().enumerate().map(scale).collect();
        let limit = self.options.max_tokens.map_or(json!(-1), |n| json!(n));
        for (name, value) in [
            ("max_tokens", limit.clone()),
            ("n_predict", limit),
            ("n_keep", json!(self.options.shift.unwrap_or(0))),
            ("n_discard", json!(0)),
            ("stop", json!(self.options.stop)),
            ("stream", json!(self.stream)),
            ("n_probs", json!(self.options.logprobs.unwrap_or(0))),
            ("post_sampling_probs", json!(self.options.logprobs_after_sampling)),
            ("n_ctx", json!(told.facts.n_ctx)),
            ("timings_per_token", json!(self.timings)),
            ("lora", lora),
            ("speculative.n_max", json!(self.options.speculate.map_or(0, |s| s.n_max))),
            ("speculative.n_min", json!(self.options.speculate.map_or(0, |s| s.n_min))),
            ("speculative.p_min", json!(self.options.speculate.map_or(0.0, |s| s.p_min))),
        ] {
            settings.insert(name.into(), value);
        }
        settings.into()
    }

    /// The last object of an answer.
    fn last(
        &self,
        told: &Told,
        index: usize,
        text: &str,
        ids: Vec<u32>,
        finish: Finish,
        stats: &Stats,
    ) -> Value {
        let (kind, word) = match finish {
            Finish::Stop => ("eos", ""),
            Finish::StopText => ("word", stats.stop.map_or("", |i| &*self.options.stop[i])),
            Finish::Length | Finish::Context => ("limit", ""),
        };
        let prompt = &told.prompts[index / told.n];
        let n_prompt = prompt.tokens.len();
        json!({
            "index": index,
            "content": text,
            "tokens": ids,
            "id_slot": told.slot(index),
            "stop": true,
            "model": told.model,
            "tokens_predicted": stats.n_token,
            "tokens_evaluated": n_prompt,
            "generation_settings": self.settings(told),
            "prompt": told.facts.text_of(&prompt.tokens).unwrap_or_default(),
            "has_new_line": text.contains('\n'),
            "truncated": stats.n_dropped > 0 || (kind == "limit" && n_prompt + stats.n_token >= told.facts.n_ctx),
            "stop_type": kind,
            "stopping_word": word,
            "tokens_cached": n_prompt + stats.n_token.saturating_sub(1),
            "timings": timings(stats),
        })
    }

    /// The asked fields; each is called by its path.
    fn choose(&self, value: Value) -> Value {
        if self.chosen.is_empty() {
            return value;
        }
        let field = |path: &String| at(&value, path).map(|value| (path.clone(), value.clone()));
        Value::Object(self.chosen.iter().filter_map(field).collect())
    }

    fn piece(&mut self, told: &Told, index: usize, text: &str) -> Frame {
        let answer = &mut self.answers[index];
        answer.has_new_line |= text.contains('\n');
        let (untold, stats) = (answer.gathered.untold(), &answer.gathered.stats);
        let ids: Vec<u32> = untold.iter().map(|token| token.id).collect();
        let mut chunk = json!({
            "index": index,
            "content": text,
            "tokens": ids,
            "stop": false,
            "id_slot": told.slot(index),
            "tokens_predicted": stats.n_token,
            "tokens_evaluated": stats.n_prompt + stats.n_cached,
        });
        if self.options.logprobs.is_some() {
            chunk["completion_probabilities"] = probabilities(&self.options, told, &untold);
        }
        if self.timings {
            chunk["timings"] = timings(stats);
        }
        Frame::Data(chunk)
    }

    /// The progress of the prompt, if this event changes it.
    fn progress(&mut self, index: usize, event: &ChatEvent) -> Option<Frame> {
        let answer = &mut self.answers[index];
        let (progress, timings) =
            answer.progress.next(event, &answer.gathered.stats).filter(|_| self.progress)?;
        let mut chunk = json!({"index": index, "content": "", "stop": false, "prompt_progress": progress});
        if self.timings {
            chunk["timings"] = timings;
        }
        Some(Frame::Data(chunk))
    }
}

impl Writer for Completion {
    fn whole(&mut self, told: &Told, outcomes: &[Outcome]) -> Value {
        let object = |(index, outcome): (usize, &Outcome)| {
            let ids = outcome.tokens.iter().filter(|_| self.tokens).map(|token| token.id).collect();
            let text = &outcome.parts.content();
            let mut value = self.last(told, index, text, ids, outcome.finish, &outcome.stats);
            if self.options.logprobs.is_some() {
                value["completion_probabilities"] = probabilities(&self.options, told, &outcome.tokens);
            }
            self.choose(value)
        };
        let mut objects: Vec<Value> = outcomes.iter().enumerate().map(object).collect();
        match objects.len() {
            1 => objects.remove(0),
            _ => objects.into(),
        }
    }

    fn event(&mut self, told: &Told, index: usize, event: &ChatEvent) -> Vec<Frame> {
        per_answer(told, &mut self.answers);
        self.answers[index].gathered.take(event);
        let mut frames: Vec<Frame> = self.progress(index, event).into_iter().collect();
        frames.extend(match event {
            ChatEvent::Part(AnswerEvent::Content(text)) => vec![self.piece(told, index, text)],
            ChatEvent::Finished { finish, stats, .. } => {
                let mut last = self.last(told, index, "", Vec::new(), *finish, stats);
                last["has_new_line"] = self.answers[index].has_new_line.into();
                vec![Frame::Data(self.choose(last))]
            }
            _ => Vec::new(),
        });
        frames
    }

    fn end(&mut self, _: &Told) -> Vec<Frame> {
        Vec::new()
    }
}
