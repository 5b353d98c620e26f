//! Answers that are interrupted, as by a lost device, and go on later.

use std::collections::VecDeque;

use chaski_runtime::gpu::Choose;

use super::generate::{Chooser, GenerateOptions, Generation};
use super::writer::Writer;
use chaski_text::{Logprobs, Sampler, SamplerParams};

/// What is left of a [`Generation`] without its device: [`Generation::resume`] goes on.
pub struct Suspended {
    /// The prompt, and what was chosen after it.
    pub(super) tokens: Vec<u32>,
    pub(super) writer: Writer,
    /// Has looked at the tokens.
    pub(super) sampler: Sampler,
    /// The last of the tokens, which nobody has looked at.
    pub(super) chosen: VecDeque<(u32, Option<Logprobs>)>,
}

impl std::fmt::Debug for Suspended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Suspended").field("tokens", &self.tokens).finish_non_exhaustive()
    }
}

impl Generation<'_> {
    /// Lets the device go. Tokens that it has not given back are chosen anew when the answer goes on.
    pub fn suspend(mut self) -> Suspended {
        self.settle_history();
        let chosen = std::mem::take(&mut self.chosen);
        // Of the tokens that were chosen, some may be part of the prompt since an earlier interruption.
        let known = self.n_before.saturating_sub(self.writer.accepted.len());
        let new: Vec<u32> =
            self.answered().iter().copied().chain(chosen.iter().skip(known).map(|c| c.0)).collect();
        // What stays behind ends here.
        let nothing =
            Writer::without_constraint(GenerateOptions { max_tokens: Some(0), ..GenerateOptions::default() });
        let writer = std::mem::replace(&mut self.writer, nothing);
        let idle = Box::new(Sampler::new(SamplerParams::greedy(), self.tokenizer()));
        self.chooser.catch_up(&new);
        let (Chooser::Processor(sampler, _) | Chooser::Device(_, sampler, _)) =
            std::mem::replace(&mut self.chooser, Chooser::Device(Choose::Greedy, idle, None));
        let sampler = *sampler;
        Suspended { tokens: [std::mem::take(&mut self.prompt), new].concat(), writer, sampler, chosen }
    }
}
