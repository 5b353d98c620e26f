//! The implementation of constraints, with llguidance.

use std::borrow::Cow;

use super::own::Masks;
use super::{ConstraintError, Grammar};
use super::{closed, with_short_space};
use super::{gbnf, limits};
use crate::tokenizer::{RenderSpecial, TokenKind, Tokenizer};
use crate::vocab_trie::VocabTrie;
use llguidance::Matcher;
use llguidance::api::TopLevelGrammar;

/// A text under generation whose grammar llguidance compiled.
pub(super) struct Compiled {
    matcher: Matcher,
    n_token: usize,
}

/// The tokenizer's vocabulary in the form that grammars need.
fn vocab_trie(tokenizer: &Tokenizer) -> Result<VocabTrie, ConstraintError> {
    let word = |id: u32| match tokenizer.kind(id) {
        Some(TokenKind::Control) => VocabTrie::control_word(tokenizer.token_text(id).unwrap_or_default()),
        _ => tokenizer.token_bytes(id, RenderSpecial::No).into_owned(),
    };
    let words: Vec<Vec<u8>> = (0..tokenizer.n_vocab() as u32).map(word).collect();
    VocabTrie::new(&words, &tokenizer.eog_ids()).map_err(|source| ConstraintError::Vocabulary { source })
}

/// A grammar for the compiler, and a text that no other has.
fn top(grammar: &Grammar) -> Result<(TopLevelGrammar, String), ConstraintError> {
    Ok(match grammar {
        Grammar::JsonSchema(schema) => {
            let schema = with_short_space(&closed(schema));
            let text = format!("schema {schema}");
            (TopLevelGrammar::from_json_schema(schema), text)
        }
        Grammar::Regex(regex) => (TopLevelGrammar::from_regex(regex), format!("regex {regex}")),
        Grammar::Lark(text) => (TopLevelGrammar::from_lark(text.clone()), format!("lark {text}")),
        Grammar::Own(_) => unreachable!("`Constraint::new` starts it as it is"),
        Grammar::Gbnf(text) => {
            let lark = gbnf::to_lark(text)?;
            limits::check_translated(&lark)?;
            let text = format!("lark {lark}");
            (TopLevelGrammar::from_lark(lark), text)
        }
    })
}

/// Beginnings of llguidance's messages that only its authors understand, and their meanings.
const MEANINGS: [(&str, &str); 2] = [
    ("NoExtensionBias", "no token of the vocabulary can continue the text"),
    (
        "Current row has",
        "the grammar can read the text in too many ways; a list that begins with itself (`list item`) has fewer than one that \
         ends with itself (`item list`)",
    ),
];

/// A message in one line: its first one, and the reason that parsers of expressions put in the last. Messages
/// of panics, which llguidance catches, go on with a backtrace.
fn one_line(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default().trim_end_matches("<non-verbose/>").trim_end();
    if let Some((_, meaning)) = MEANINGS.iter().find(|(begin, _)| line.starts_with(begin)) {
        return (*meaning).to_owned();
    }
    let reason = message.lines().filter_map(|line| line.trim_start().strip_prefix("error: ")).next_back();
    let line = match (line.strip_prefix("panic: "), reason) {
        (Some(cause), _) => format!("the compiler failed: {cause}"),
        (None, Some(reason)) => format!("{reason}: {line}"),
        (None, None) => line.to_owned(),
    };
    shortened(&line).into_owned()
}

fn shortened(line: &str) -> Cow<'_, str> {
    match line.char_indices().nth(MAX_MESSAGE) {
        Some((at, _)) => format!("{} ...", &line[..at]).into(),
        None => line.into(),
    }
}

/// Maximum length of a message, in characters: some quote the whole grammar.
const MAX_MESSAGE: usize = 200;

impl Compiled {
    pub(super) fn new(tokenizer: &Tokenizer, grammar: &Grammar) -> Result<Compiled, ConstraintError> {
        limits::check(grammar)?;
        let (top, text) = top(grammar)?;
        let vocab = match tokenizer.vocab_trie.get() {
            Some(vocab) => vocab,
            None => {
                let vocab = vocab_trie(tokenizer)?;
                tokenizer.vocab_trie.get_or_init(|| vocab)
            }
        };
        let error =
            |e: String| ConstraintError::Grammar { kind: grammar.kind(), source: one_line(&e).into() };
        let matcher = vocab.matcher(&text, || top).map_err(error)?;
        Ok(Compiled { matcher, n_token: 0 })
    }

    fn step_error(&self, e: String) -> ConstraintError {
        ConstraintError::Step { n_token: self.n_token, source: one_line(&e).into() }
    }
}

impl Masks for Compiled {
    fn allowed(&mut self, words: &mut [u32]) -> Result<(), ConstraintError> {
        let allowed = self.matcher.compute_mask_or_eos().map_err(|e| self.step_error(e.to_string()))?;
        words.fill(0);
        for (word, bits) in words.iter_mut().zip(allowed.as_slice()) {
            *word = *bits;
        }
        // Bits behind the vocabulary's last mean nothing there.
        if let Some(last) = words.get_mut(allowed.len() / 32) {
            *last &= (1 << (allowed.len() % 32)) - 1;
        }
        Ok(())
    }

    fn accept(&mut self, token: u32) -> Result<(), ConstraintError> {
        match self.matcher.try_consume_tokens(&[token]) {
            Ok(1) => {
                self.n_token += 1;
                Ok(())
            }
            Ok(_) => Err(ConstraintError::Forbidden { token, n_token: self.n_token }),
            Err(e) => Err(self.step_error(e.to_string())),
        }
    }

    fn is_finished(&self) -> bool {
        self.matcher.is_stopped()
    }

    fn may_end(&mut self) -> Result<bool, ConstraintError> {
        self.matcher.is_accepting().map_err(|e| self.step_error(e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_for_those_who_write_grammars() {
        assert_eq!(
            one_line("NoExtensionBias <non-verbose/>"),
            "no token of the vocabulary can continue the text"
        );
        let deep = "Current row has 2007 items; max is 2000; consider making your grammar left-recursive";
        assert!(one_line(deep).starts_with("the grammar can read the text in too many ways"));
        assert_eq!(one_line("panic: x\n  at y"), "the compiler failed: x");
        assert_eq!(one_line("expression\n  error: open"), "open: expression");
    }
}
