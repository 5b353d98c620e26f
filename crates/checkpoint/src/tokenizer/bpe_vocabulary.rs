//! The vocabulary of `tokenizer.json`, for both kinds of BPE.

use super::special::Configs;
use super::tokenizer_json::{FILE, TokenizerJson, Vocab};
use super::vocabulary::{MAX_TOKENS, TokenType, Vocabulary};
use super::{TokenizerFileError, TokenizerOptions, n_vocab};

impl TokenizerJson {
    /// Refuses what has no counterpart: models other than BPE, and marks of words within tokens.
    pub(super) fn check_bpe(&self) -> Result<(), TokenizerFileError> {
        let model = &self.model;
        let marks = [&model.continuing_subword_prefix, &model.end_of_word_suffix];
        let what = match &model.kind {
            Some(kind) if kind != "BPE" => format!("the model {kind:?}"),
            _ if marks.into_iter().flatten().any(|mark| !mark.is_empty()) => {
                "a mark of parts of words".to_owned()
            }
            _ => return Ok(()),
        };
        let advice = "only BPE tokenizers are";
        Err(TokenizerFileError::Unsupported { file: FILE.to_owned(), what, advice })
    }

    /// The vocabulary: texts by id, then added tokens; other ids are unused.
    pub(super) fn vocabulary(
        &self,
        configs: &Configs,
        options: TokenizerOptions<'_>,
        has_scores: bool,
    ) -> Result<Vocabulary, TokenizerFileError> {
        let ids = match &self.model.vocab {
            Vocab::Ids(ids) => ids.as_slice(),
            Vocab::None => &[],
            Vocab::List => return Err(TokenizerFileError::VocabularyKind { file: FILE.to_owned() }),
        };
        let added = self.added_tokens.iter().map(|token| (&token.content, token.id));
        let all = || ids.iter().map(|(text, id)| (text, *id)).chain(added.clone());
        if let Some((text, id)) = all().find(|(_, id)| *id >= MAX_TOKENS as u64) {
            let (file, text) = (FILE.to_owned(), text.clone());
            return Err(TokenizerFileError::TokenId { file, text, id, max: MAX_TOKENS });
        }
        let n = n_vocab(options, configs, all().map(|(_, id)| id).max());
        let mut vocabulary = Vocabulary::unused(n, has_scores)?;
        for (text, id) in ids {
            let id = *id as usize;
            if vocabulary.kinds.get(id).is_some_and(|&kind| kind != TokenType::Unused) {
                let (file, first) = (FILE.to_owned(), vocabulary.tokens[id].clone());
                return Err(TokenizerFileError::SameId { file, id, first, second: text.clone() });
            }
            vocabulary.set(id, text.clone(), TokenType::Normal, 0.0);
        }
        for token in &self.added_tokens {
            vocabulary.add(token.id as usize, &token.content, token.special);
        }
        Ok(vocabulary)
    }
}
