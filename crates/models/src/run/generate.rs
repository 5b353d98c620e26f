//! Answers: how they are asked for, what they consist of, and what is counted.

use std::time::Duration;

use chaski_text::{Grammar, Logprobs, RenderSpecial, SamplerParams};

use super::speculate::Speculation;

/// How to generate.
#[derive(Clone, Debug)]
pub struct GenerateOptions {
    /// Tokens at most; `None` until the context is full.
    pub max_tokens: Option<usize>,
    /// How tokens are chosen.
    pub sampler: SamplerParams,
    /// Texts that end the answer; they are not part of it.
    pub stop: Vec<String>,
    /// Tokens that run on the device between two readbacks; 0 adapts to the device's speed. Without effect if the CPU
    /// samples ([`Event::Started`](crate::serve::Event)).
    pub interval: u32,
    /// The language of the text. The CPU then samples, and every token is read back before the next runs.
    pub grammar: Option<Grammar>,
    /// Log probabilities: of every token, and of so many most probable tokens. The CPU then samples, one token at a time.
    pub logprobs: Option<usize>,
    /// Speculative decoding: drafts of the next tokens, verified several at once. It is exact, and faster where many drafts
    /// are accepted, as in text that repeats itself. The CPU then samples. Without effect in models with recurrent state,
    /// which cannot be truncated by a few tokens.
    pub speculate: Option<Speculation>,
    /// When the context is full, drop the older half of it except for so many tokens at its beginning, and continue;
    /// otherwise the answer ends ([`Finish::Context`]). The rest is processed again like a prompt.
    pub shift: Option<usize>,
    /// Scales of the model's LoRAs for this answer; `None`: those that the LoRAs were loaded with.
    pub lora: Option<Vec<f32>>,
    /// Show special tokens in the text.
    pub special: RenderSpecial,
    /// Special tokens that are shown in any case, such as the marks of tool calls.
    pub shown: Vec<u32>,
}

impl Default for GenerateOptions {
    fn default() -> Self {
        GenerateOptions {
            max_tokens: None,
            sampler: SamplerParams::default(),
            stop: Vec::new(),
            interval: 0,
            grammar: None,
            logprobs: None,
            speculate: None,
            shift: None,
            lora: None,
            special: RenderSpecial::No,
            shown: Vec::new(),
        }
    }
}

/// Why a generation ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The model ended its answer.
    Stop,
    /// A stop text came.
    StopText,
    /// As many tokens as were asked for.
    Length,
    /// The context is full.
    Context,
}

/// A piece of the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// Text that is certain now; may be empty while a character or a stop text is incomplete.
    pub text: String,
    /// The token that brought it; `None` for text held back until the end, and without any text once the context was shifted.
    pub token: Option<u32>,
    /// How probable the token was, if that was asked for.
    pub logprobs: Option<Logprobs>,
}

/// Counts and times of a generation.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Tokens of the prompt that had to be run.
    pub n_prompt: usize,
    /// Tokens of the prompt that were in the cache already.
    pub n_cached: usize,
    /// Tokens of the answer.
    pub n_token: usize,
    /// Time to the first token.
    pub ttft: Duration,
    /// Time from the first token to the last.
    pub decode: Duration,
    /// Steps that gave it tokens.
    pub n_submit: usize,
    /// Drafted tokens ([`GenerateOptions::speculate`]).
    pub n_drafted: usize,
    /// Drafted tokens that were accepted.
    pub n_accepted: usize,
    /// Tokens that were dropped to make room ([`GenerateOptions::shift`]).
    pub n_dropped: usize,
}

impl Stats {
    /// Prompt tokens a second, the first token's choice included.
    pub fn prompt_rate(&self) -> f64 {
        self.n_prompt as f64 / self.ttft.as_secs_f64().max(1e-9)
    }

    /// Answer tokens a second, after the first.
    pub fn token_rate(&self) -> f64 {
        self.n_token.saturating_sub(1) as f64 / self.decode.as_secs_f64().max(1e-9)
    }
}
