//! The vocabulary of constraints: the bytes of every token, in a trie, with the grammars that were compiled for it.
//!
//! The constraint builds it and the tokenizer caches it, so this module is below both.

use std::sync::{Arc, Mutex, PoisonError};

use llguidance::api::TopLevelGrammar;
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{
    ApproximateTokEnv, INVALID_TOKEN, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie,
};
use llguidance::{Matcher, ParserFactory};

use crate::compiled::Compiled;

/// A vocabulary prepared for constraints; it can be shared.
#[derive(Clone)]
pub(crate) struct VocabTrie(Arc<Prepared>);

struct Prepared {
    factory: ParserFactory,
    compiled: Mutex<Compiled>,
}

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
        Ok(VocabTrie(Arc::new(Prepared { factory, compiled: Mutex::default() })))
    }

    /// The word of a control token: grammars refer to it by its text, which no plain text can produce.
    pub(crate) fn control_word(text: &str) -> Vec<u8> {
        [&[TokTrie::SPECIAL_TOKEN_MARKER], text.as_bytes()].concat()
    }

    /// The matcher of a grammar with this text, compiled by `compile` if it is not known, and the last error of its
    /// compiler.
    pub(crate) fn matcher(
        &self,
        text: &str,
        compile: impl FnOnce() -> TopLevelGrammar,
    ) -> Result<Matcher, String> {
        let known = || self.0.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(matcher) = known().find(text) {
            return Ok(matcher);
        }
        let matcher = Matcher::new(self.0.factory.create_parser(compile()));
        match matcher.get_error() {
            Some(error) => Err(error),
            None => {
                known().add(text, matcher.deep_clone());
                Ok(matcher)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiled::{MAX_BYTES, MAX_GRAMMARS};

    #[test]
    fn compiled_grammars_are_kept_within_bounds() {
        let words: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte]).collect();
        let vocab = VocabTrie::new(&words, &[255]).unwrap();
        let n_compiled = std::cell::Cell::new(0);
        let compile = |text: &str, regex: &str| {
            let top = || {
                n_compiled.set(n_compiled.get() + 1);
                TopLevelGrammar::from_regex(regex)
            };
            vocab.matcher(text, top)
        };
        for _ in 0..2 {
            let mut matcher = compile("ab", "ab").unwrap();
            // A text that was begun leaves no trace in the next.
            assert_eq!(matcher.try_consume_tokens(&[97]).unwrap(), 1);
        }
        assert_eq!(n_compiled.get(), 1);
        // The last used stay.
        for i in 0..MAX_GRAMMARS - 1 {
            compile(&format!("x{i}"), "x").unwrap();
            compile("ab", "ab").unwrap();
        }
        assert_eq!(n_compiled.get(), MAX_GRAMMARS);
        compile("one more", "x").unwrap();
        compile("ab", "ab").unwrap();
        assert_eq!(n_compiled.get(), MAX_GRAMMARS + 1);
        compile("x0", "x").unwrap();
        assert_eq!(n_compiled.get(), MAX_GRAMMARS + 2);
        // Texts that are too long stay not, and those that do not compile neither.
        for _ in 0..2 {
            compile(&"y".repeat(MAX_BYTES + 1), "y").unwrap();
            assert!(compile("[", "[").is_err());
        }
        assert_eq!(n_compiled.get(), MAX_GRAMMARS + 6);
        // Together they have at most so many bytes.
        compile(&"z".repeat(MAX_BYTES - 10), "z").unwrap();
        compile("ab", "ab").unwrap();
        compile("a longer text", "ab").unwrap();
        let known = vocab.0.compiled.lock().unwrap();
        assert_eq!(known.texts(), (vec!["ab", "a longer text"], 15));
    }
}
