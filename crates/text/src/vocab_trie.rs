//! The vocabulary of constraints: the bytes of every token, in a trie.
//!
//! The constraint builds it and the tokenizer caches it, so this module is below both.

use std::sync::Arc;

use llguidance::ParserFactory;
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{
    ApproximateTokEnv, INVALID_TOKEN, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie,
};

/// A vocabulary prepared for constraints; it can be shared.
#[derive(Clone)]
pub(crate) struct VocabTrie(Arc<ParserFactory>);

impl std::fmt::Debug for VocabTrie {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("VocabTrie")
    }
}

impl VocabTrie {
    /// Builds the trie of `words`, one per token; the tokens in `ends` end a generation.
    ///
    /// This takes 0.1 to 0.5 s for the largest vocabularies.
    pub(crate) fn new(
        words: &[Vec<u8>],
        ends: &[u32],
    ) -> Result<VocabTrie, Box<dyn std::error::Error + Send + Sync>> {
        let mut trie = TokTrie::from(&TokRxInfo::new(words.len() as u32, INVALID_TOKEN), words);
        if !ends.is_empty() {
            trie = trie.with_eos_tokens(ends);
        }
        let env: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let slices = SlicedBiasComputer::general_slices();
        let mut factory = ParserFactory::new(&env, InferenceCapabilities::default(), &slices)?;
        // Libraries do not print; errors name the location, not the whole state.
        factory.quiet();
        factory.limits_mut().verbose_errors = false;
        Ok(VocabTrie(Arc::new(factory)))
    }

    /// The word of a control token: grammars refer to it by its text, which no plain text can produce.
    pub(crate) fn control_word(text: &str) -> Vec<u8> {
        [&[TokTrie::SPECIAL_TOKEN_MARKER], text.as_bytes()].concat()
    }

    /// The factory of parsers for this vocabulary.
    pub(crate) fn parsers(&self) -> &ParserFactory {
        &self.0
    }
}
