//! A vocabulary as constraints see it: the bytes of every token, in a trie.

use std::sync::Arc;

use llguidance::ParserFactory;
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{
    ApproximateTokEnv, INVALID_TOKEN, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie,
};

use super::ConstraintError;
use crate::tokenizer::{RenderSpecial, TokenKind, Tokenizer};

/// A vocabulary that is prepared for constraints; it can be shared.
#[derive(Clone)]
pub(crate) struct ConstraintVocab(pub(super) Arc<ParserFactory>);

impl std::fmt::Debug for ConstraintVocab {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ConstraintVocab")
    }
}

impl ConstraintVocab {
    /// Takes some time: 0.1 to 0.5 s for the largest vocabularies.
    pub(super) fn new(tokenizer: &Tokenizer) -> Result<ConstraintVocab, ConstraintError> {
        let n_vocab = tokenizer.n_vocab() as u32;
        let word = |id: u32| match tokenizer.kind(id) {
            // Grammars name control tokens by their text, which no other text can spell.
            Some(TokenKind::Control) => {
                let mut word = vec![TokTrie::SPECIAL_TOKEN_MARKER];
                word.extend_from_slice(tokenizer.token_text(id).unwrap_or_default().as_bytes());
                word
            }
            _ => tokenizer.token_bytes(id, RenderSpecial::No).into_owned(),
        };
        let words: Vec<Vec<u8>> = (0..n_vocab).map(word).collect();
        let mut trie = TokTrie::from(&TokRxInfo::new(n_vocab, INVALID_TOKEN), &words);
        let ends = tokenizer.eog_ids();
        if !ends.is_empty() {
            trie = trie.with_eos_tokens(&ends);
        }
        let env: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let slices = SlicedBiasComputer::general_slices();
        let factory = ParserFactory::new(&env, InferenceCapabilities::default(), &slices);
        let mut factory = factory.map_err(|e| ConstraintError::Vocabulary { source: e.into() })?;
        // Libraries do not print; errors name the place, not the whole state.
        factory.quiet();
        factory.limits_mut().verbose_errors = false;
        Ok(ConstraintVocab(Arc::new(factory)))
    }
}
