//! Requests of the package's JavaScript: options of an engine, and of an answer.

use std::fmt::Display;
use std::str::FromStr;

use chaski::kernels::ActivationPrecision;
use chaski::options::Ends;
use chaski::text::{LocalTime, RenderSpecial, TemplateOptions};
use chaski::{DeviceChoice, GenerateOptions, KvType, Message, SamplerParams};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use wasm_bindgen::JsValue;

use crate::error::bad_request;

/// Parses JSON text from JavaScript.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, JsValue> {
    serde_json::from_str(text).map_err(bad_request)
}

/// The device; the package has excluded software adapters.
#[derive(Clone, Copy, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Device {
    /// WebGPU; the CPU if there is none or it computes wrong values.
    Auto,
    #[default]
    Gpu,
    Cpu,
}

impl From<Device> for DeviceChoice {
    fn from(d: Device) -> DeviceChoice {
        match d {
            Device::Auto => DeviceChoice::Auto,
            Device::Gpu => DeviceChoice::Gpu(None),
            Device::Cpu => DeviceChoice::Cpu,
        }
    }
}

/// A precision of activations; `auto` is `None`.
fn precision<'de, D: Deserializer<'de>>(from: D) -> Result<Option<ActivationPrecision>, D::Error> {
    let word = String::deserialize(from)?;
    let found = ActivationPrecision::ALL.into_iter().find(|p| p.word() == word);
    match found {
        None if word != "auto" => {
            Err(D::Error::custom(format!("expected `inputs` of auto, f32, i16 or i8, found `{word}`")))
        }
        found => Ok(found),
    }
}

/// A value that the engine parses from a word.
pub(crate) fn word<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(from: D) -> Result<T, D::Error> {
    String::deserialize(from)?.parse().map_err(D::Error::custom)
}

/// Options of an engine.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct CreateOptions {
    /// Context size in tokens; 0: the model's own, at most 4096.
    pub(crate) context_length: u32,
    #[serde(deserialize_with = "word")]
    pub(crate) kv_type: KvType,
    /// Precision of activations in products with quantised weights.
    #[serde(deserialize_with = "precision")]
    pub(crate) inputs: Option<ActivationPrecision>,
    /// Prompt tokens per run; 0: the engine's default.
    pub(crate) chunk: u32,
    /// Requests that run at once, each with a context of its own; 0: one.
    pub(crate) sequences: u32,
    /// Memory budget in bytes, of the device or the CPU.
    pub(crate) memory_budget: Option<f64>,
    /// The device.
    pub(crate) device: Device,
    /// Scales of the LoRAs where requests do not say theirs.
    pub(crate) loras: Vec<f32>,
    /// The device passed its self-test before.
    pub(crate) trusted: bool,
    /// The page makes `requestDevice` request subgroups.
    pub(crate) subgroups: bool,
}

/// Scale of a LoRA in a request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scale {
    id: usize,
    scale: f32,
}

/// The scales of `n` LoRAs that a request lists: 0 for those that its list lacks.
pub(crate) fn scales(list: Option<&[Scale]>, n: usize) -> Result<Option<Vec<f32>>, JsValue> {
    let Some(list) = list else { return Ok(None) };
    let mut out = vec![0.0; n];
    for Scale { id, scale } in list {
        let wrong = || bad_request(format!("lora: there is no LoRA {id}, the engine has {n} (`loras`)"));
        *out.get_mut(*id).ok_or_else(wrong)? = *scale;
    }
    Ok(Some(out))
}

/// A conversation with its options.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Chat {
    pub(crate) messages: Vec<Value>,
    tools: Vec<Value>,
    enable_thinking: Option<bool>,
    /// Begin an answer; by default unless the last message is the assistant's, which then is continued.
    add_generation_prompt: Option<bool>,
    /// The opposite.
    continue_final_message: Option<bool>,
    variables: Map<String, Value>,
    /// Special tokens in messages are tokens, not text.
    parse_special: bool,
    /// Year, month, day, hour, minute, second.
    now: Option<[i32; 6]>,
}

impl Chat {
    pub(crate) fn messages(&self) -> Result<Vec<Message>, JsValue> {
        let read = |(i, m): (usize, &Value)| {
            let wrong = || bad_request(format!("messages[{i}]: expected an object with role and content"));
            Message::from_json(m.clone()).ok_or_else(wrong)
        };
        self.messages.iter().enumerate().map(read).collect()
    }

    pub(crate) fn tools(&self) -> &[Value] {
        &self.tools
    }

    pub(crate) fn template(&self) -> TemplateOptions {
        let now = self.now.map(|[year, month, day, hour, minute, second]| LocalTime {
            year,
            month: month as u32,
            day: day as u32,
            hour: hour as u32,
            minute: minute as u32,
            second: second as u32,
        });
        let is_answer = |m: &Value| m["role"] == "assistant" && m["tool_calls"].is_null();
        let continues =
            self.continue_final_message.unwrap_or_else(|| self.messages.last().is_some_and(is_answer));
        let mut options = TemplateOptions {
            tools: self.tools.clone(),
            add_generation_prompt: self.add_generation_prompt.unwrap_or(!continues),
            extra: self.variables.clone(),
            parse_special: self.parse_special,
            now,
            ..TemplateOptions::default()
        };
        if self.enable_thinking.is_some() {
            options.enable_thinking = self.enable_thinking;
        }
        options
    }
}

/// A request for an answer.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Request {
    /// A conversation, a text, or tokens.
    pub(crate) chat: Option<Chat>,
    pub(crate) prompt: Option<String>,
    pub(crate) tokens: Option<Vec<u32>>,
    max_tokens: Option<usize>,
    stop: Vec<String>,
    special: bool,
    logprobs: Option<usize>,
    /// The answer has to consist of calls, by its rule.
    pub(crate) calls: bool,
    /// The answer may have calls, by its rule.
    pub(crate) strict: bool,
    interval: u32,
    seed: Option<u32>,
    temperature: Option<f32>,
    top_k: Option<i32>,
    top_p: Option<f32>,
    min_p: Option<f32>,
    typical_p: Option<f32>,
    repeat_penalty: Option<f32>,
    repeat_last_n: Option<i32>,
    frequency_penalty: Option<f32>,
    presence_penalty: Option<f32>,
    logit_bias: Vec<(u32, f32)>,
    ignore_eos: bool,
    /// Tokens at the start to keep in a context shift.
    context_shift: Option<usize>,
    /// Drop the oldest turns of a conversation that is longer than the context; the default.
    context_drop: Option<bool>,
    /// Scales of LoRAs; others are off.
    pub(crate) lora: Option<Vec<Scale>>,
}

impl Request {
    pub(crate) fn options(&self) -> GenerateOptions {
        let d = SamplerParams::default();
        let sampler = SamplerParams {
            seed: self.seed,
            temp: self.temperature.unwrap_or(d.temp),
            top_k: self.top_k.unwrap_or(d.top_k),
            top_p: self.top_p.unwrap_or(d.top_p),
            min_p: self.min_p.unwrap_or(d.min_p),
            typical_p: self.typical_p.unwrap_or(d.typical_p),
            penalty_repeat: self.repeat_penalty.unwrap_or(d.penalty_repeat),
            penalty_last_n: self.repeat_last_n.unwrap_or(d.penalty_last_n),
            penalty_freq: self.frequency_penalty.unwrap_or(d.penalty_freq),
            penalty_present: self.presence_penalty.unwrap_or(d.penalty_present),
            logit_bias: self.logit_bias.clone(),
            ignore_eos: self.ignore_eos,
            ..d
        };
        GenerateOptions {
            max_tokens: self.max_tokens,
            sampler,
            stop: self.stop.clone(),
            ends: Ends::default(),
            interval: self.interval,
            grammar: None,
            // The grammar of an answer with calls has its reasoning, too, and holds from the first token.
            grammar_after: (self.calls || self.strict).then(String::new),
            logprobs: self.logprobs,
            logprobs_after_sampling: false,
            special: if self.special { RenderSpecial::Yes } else { RenderSpecial::No },
            shown: Vec::new(),
            speculate: None,
            shift: self.context_shift,
            drop_turns: self.context_drop.unwrap_or(true),
            lora: None,
        }
    }
}
