//! Generation: options, pieces, and statistics.

use std::time::Duration;

use chaski_text::{Grammar, Logprobs, RenderSpecial, SamplerParams};

use super::ends::Ends;
#[cfg(not(target_arch = "wasm32"))]
use super::reasoning::ReasoningBudget;
use super::speculate::Speculation;

/// Options of a generation.
#[derive(Clone, Debug)]
pub struct GenerateOptions {
    /// Maximum number of tokens; `None`: until the context is full.
    pub max_tokens: Option<usize>,
    /// Sampling parameters.
    pub sampler: SamplerParams,
    /// Stop strings; excluded from the answer.
    pub stop: Vec<String>,
    /// Further ends of the answer, and a minimum of tokens; native only.
    pub ends: Ends,
    /// Tokens that run on the device between two readbacks; 0 adapts to the device's speed. Without effect if the CPU
    /// samples ([`Event::Started`](crate::serve::Event)), or with a grammar.
    pub interval: u32,
    /// A grammar for the text. Each token is read back for the mask of the next one, which runs on the device
    /// meanwhile.
    pub grammar: Option<Grammar>,
    /// The grammar is that of the text after this one, such as the end of reasoning; everything before it is free.
    pub grammar_after: Option<String>,
    /// In chats: the most tokens of reasoning; native only.
    #[cfg(not(target_arch = "wasm32"))]
    pub reasoning: Option<ReasoningBudget>,
    /// Log probabilities of each token and of this many most probable tokens. The CPU then samples, one token at a
    /// time.
    pub logprobs: Option<usize>,
    /// Log probabilities are those of the candidates that samplers left, from which the token was drawn, instead of the
    /// model's own.
    pub logprobs_after_sampling: bool,
    /// Speculative decoding: drafts of the next tokens, verified several at once. It is exact, and faster where many
    /// drafts are accepted, as in text that repeats itself. The CPU then samples. While more than
    /// [`Speculation::MAX_RUNNING`] requests run, there are no drafts, and the device samples where it can. Without
    /// effect in models with recurrent state, which cannot be truncated by a few tokens.
    pub speculate: Option<Speculation>,
    /// When the context is full, drop the older half of it except for this many tokens at its start, and continue;
    /// otherwise the answer ends ([`Finish::Context`]). The rest is processed again like a prompt.
    pub shift: Option<usize>,
    /// In chats: drop the oldest turns of a conversation that leaves too little of the context for an answer. Otherwise
    /// one that is longer than the context is refused.
    pub drop_turns: bool,
    /// LoRA scales for this answer; `None`: the default scales.
    pub lora: Option<Vec<f32>>,
    /// Render special tokens in the text.
    pub special: RenderSpecial,
    /// Special tokens that are always rendered, for example those around tool calls.
    pub shown: Vec<u32>,
}

impl Default for GenerateOptions {
    fn default() -> Self {
        GenerateOptions {
            max_tokens: None,
            sampler: SamplerParams::default(),
            stop: Vec::new(),
            ends: Ends::default(),
            interval: 0,
            grammar: None,
            grammar_after: None,
            #[cfg(not(target_arch = "wasm32"))]
            reasoning: None,
            logprobs: None,
            logprobs_after_sampling: false,
            speculate: None,
            shift: None,
            drop_turns: true,
            lora: None,
            special: RenderSpecial::No,
            shown: Vec::new(),
        }
    }
}

/// Reason for the end of a generation.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The model ended its answer, or chose a token of [`GenerateOptions::ends`].
    Stop,
    /// A stop string occurred.
    StopText,
    /// The maximum number of tokens, or the time limit of [`GenerateOptions::ends`].
    Length,
    /// The context is full.
    Context,
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// Final text; may be empty while a character or a stop string is incomplete.
    pub text: String,
    /// Its token; `None` for text held back until the end. After a context shift the text is empty.
    pub token: Option<u32>,
    /// Log probabilities, if requested.
    pub logprobs: Option<Logprobs>,
}

/// Statistics of a generation.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Tokens of the prompt that were run.
    pub n_prompt: usize,
    /// Tokens of the prompt that were cached.
    pub n_cached: usize,
    /// Tokens of the answer.
    pub n_token: usize,
    /// Time in the queue, before its prompt began to run.
    #[cfg(not(target_arch = "wasm32"))]
    pub queue: Duration,
    /// Time to the first token, the queue included.
    pub ttft: Duration,
    /// Time from the first token to the last.
    pub decode: Duration,
    /// Steps that produced tokens.
    pub n_submit: usize,
    /// Drafts that were verified ([`GenerateOptions::speculate`]).
    pub n_draft: usize,
    /// Number of drafted tokens.
    pub n_drafted: usize,
    /// Number of drafted tokens that were accepted.
    pub n_accepted: usize,
    /// Tokens dropped by context shifts ([`GenerateOptions::shift`]).
    pub n_dropped: usize,
    /// The stop string that ended it ([`Finish::StopText`]), an index of [`GenerateOptions::stop`].
    pub stop: Option<usize>,
    /// The token of [`GenerateOptions::ends`] that ended it.
    #[cfg(not(target_arch = "wasm32"))]
    pub stop_token: Option<u32>,
    /// The answer ended before its text was complete by the grammar ([`GenerateOptions::grammar`]): its length, the
    /// context or a stop string cut it.
    pub is_incomplete: bool,
}

impl Stats {
    /// Time in which the prompt ran, from the end of the queue to the first token.
    pub fn prefill(&self) -> Duration {
        // Pages for browsers serve one answer, and do not download the code.
        #[cfg(target_arch = "wasm32")]
        return self.ttft;
        #[cfg(not(target_arch = "wasm32"))]
        self.ttft.saturating_sub(self.queue)
    }

    /// Prompt tokens per second, including the first sampled token.
    pub fn prompt_rate(&self) -> f64 {
        self.n_prompt as f64 / self.prefill().as_secs_f64().max(1e-9)
    }

    /// Answer tokens per second, after the first.
    pub fn token_rate(&self) -> f64 {
        self.n_token.saturating_sub(1) as f64 / self.decode.as_secs_f64().max(1e-9)
    }
}
