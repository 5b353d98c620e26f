//! The rule by which texts are split into words before they are merged: known by its expressions, or by a hash of the
//! ids of a text, else made of its expressions.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use chaski_text::{
    AddSpecial, MAX_PRE_EXPRESSION_BYTES, MAX_PRE_EXPRESSIONS, ParseSpecial, Tokenizer, TokenizerSpec,
    is_pre_tokenizer, pre_tokenizer_name,
};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::TokenizerFileError;
use super::tokenizer_json::{FILE, TokenizerJson};

/// The rule of a tokenizer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PreTokenizer {
    /// The kind of tokenizer has no such rule.
    NotNeeded,
    /// The caller's name.
    Requested(String),
    /// A rule with the same expressions.
    SameExpressions {
        /// Its name in `tokenizer.ggml.pre`.
        name: &'static str,
        /// True if it treats words that are tokens as the file does, else metadata say that it should.
        same_words: bool,
    },
    /// llama.cpp knows the vocabulary by a hash, under this name.
    KnownVocabulary(String),
    /// The expressions of the file. Only this program runs them (`tokenizer.chaski.pre_expressions`): a GGUF file for
    /// others needs a name from the caller.
    Expressions(Vec<String>),
}

/// The expression of `ByteLevel`, by GPT-2.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// ASCII punctuation, and that of Unicode.
const PUNCTUATION: &str = r"[\p{P}\$\+<=>\^~\|`]";

/// The expressions of a file, in the order in which they split.
#[derive(Debug, PartialEq)]
pub(super) struct Steps {
    expressions: Vec<Cow<'static, str>>,
    /// True if some see bytes as characters, for which there are no expressions: only a hash can tell the rule.
    sees_bytes: bool,
}

impl Steps {
    /// Reads `pre_tokenizer`.
    pub(super) fn read(file: &TokenizerJson) -> Result<Steps, TokenizerFileError> {
        let mut steps = Steps { expressions: Vec::new(), sees_bytes: false };
        let mut is_bytes = false;
        for (kind, step) in TokenizerJson::steps(&file.pre_tokenizer, "pretokenizers") {
            let flag = |name: &str, usual: bool| step.get(name).and_then(Value::as_bool).unwrap_or(usual);
            steps.sees_bytes |= is_bytes;
            match kind {
                "ByteLevel" => {
                    if flag("add_prefix_space", true) {
                        return Err(unsupported("a space before every text (`add_prefix_space`)".to_owned()));
                    }
                    if flag("use_regex", true) {
                        steps.expressions.push(GPT2.into());
                    }
                    is_bytes = true;
                }
                "Digits" if flag("individual_digits", false) => steps.expressions.push(r"\p{N}".into()),
                "Digits" => steps.expressions.push(r"\p{N}+".into()),
                "Punctuation" => match step.get("behavior").and_then(Value::as_str) {
                    None | Some("Isolated") => steps.expressions.push(PUNCTUATION.into()),
                    Some("Contiguous") => steps.expressions.push(format!("{PUNCTUATION}+").into()),
                    Some(other) => return Err(unsupported(format!("punctuation that is {other}"))),
                },
                "Split" => steps.expressions.push(split_expression(step)?.into()),
                other => return Err(unsupported(format!("the pre-tokenizer {other:?}"))),
            }
            let n_byte: usize = steps.expressions.iter().map(|text| text.len()).sum();
            if steps.expressions.len() > MAX_PRE_EXPRESSIONS || n_byte > MAX_PRE_EXPRESSION_BYTES {
                return Err(unsupported(format!(
                    "a pre-tokenizer of more than {MAX_PRE_EXPRESSIONS} expressions or {MAX_PRE_EXPRESSION_BYTES} bytes"
                )));
            }
        }
        Ok(steps)
    }

    /// The rule of a byte-level tokenizer with these steps. `spec` is called for its vocabulary if only a hash can
    /// tell.
    pub(super) fn rule(
        &self,
        ignore_merges: bool,
        spec: impl FnOnce() -> TokenizerSpec,
    ) -> Result<PreTokenizer, TokenizerFileError> {
        let texts: Vec<&str> = self.expressions.iter().map(|text| &**text).collect();
        if let Some((name, same_words)) =
            pre_tokenizer_name(&texts, ignore_merges).filter(|_| !self.sees_bytes)
        {
            return Ok(PreTokenizer::SameExpressions { name, same_words });
        }
        let expressions: Vec<String> = texts.into_iter().map(str::to_owned).collect();
        let spec = TokenizerSpec {
            pre_expressions: expressions.clone(),
            ignore_merges: Some(ignore_merges),
            ..spec()
        };
        let wrong = |source| TokenizerFileError::PreTokenizer { source };
        let tokenizer = Tokenizer::from_spec(spec).map_err(wrong)?;
        let ids = tokenizer.encode(&KNOWN.text, AddSpecial::Yes, ParseSpecial::Yes).map_err(wrong)?;
        if let Some(name) = known_vocabulary(&ids).filter(|name| is_pre_tokenizer(name)) {
            return Ok(PreTokenizer::KnownVocabulary(name.to_owned()));
        }
        if self.sees_bytes || expressions.is_empty() {
            return Err(unsupported(
                "a way to split texts into words without an expression for it".to_owned(),
            ));
        }
        Ok(PreTokenizer::Expressions(expressions))
    }
}

/// The expression of a `Split`, all of whose matches become words.
fn split_expression(step: &Value) -> Result<String, TokenizerFileError> {
    let behavior = step.get("behavior").and_then(Value::as_str).unwrap_or_default();
    let invert = step.get("invert").and_then(Value::as_bool).unwrap_or(false);
    let pattern =
        |name: &str| step.get("pattern").and_then(|pattern| pattern.get(name)).and_then(Value::as_str);
    let expression = match (pattern("Regex"), pattern("String")) {
        (Some(regex), _) => regex.to_owned(),
        (None, Some(text)) if !text.is_empty() => escape(text),
        _ => return Err(unsupported("a split without a pattern".to_owned())),
    };
    match (behavior, invert) {
        ("Isolated", false) => Ok(expression),
        // Only the matches are kept: the same if nothing lies between them.
        ("Removed", true) if expression.ends_with(r"|\s+") => Ok(expression),
        _ => Err(unsupported(format!("a split that is {behavior:?} (inverted: {invert})"))),
    }
}

/// The expression that matches `text`.
fn escape(text: &str) -> String {
    let escaped = |c: char| c.is_ascii_punctuation().then_some('\\').into_iter().chain([c]);
    text.chars().flat_map(escaped).collect()
}

fn unsupported(what: String) -> TokenizerFileError {
    let advice = "name a known pre-tokenizer if one splits texts alike";
    TokenizerFileError::Unsupported { file: FILE.to_owned(), what, advice }
}

/// llama.cpp's table of vocabularies.
#[derive(Deserialize)]
struct Known {
    /// The text whose ids are hashed.
    text: String,
    /// Names by hash.
    pre: BTreeMap<String, String>,
}

static KNOWN: LazyLock<Known> =
    LazyLock::new(|| serde_json::from_str(include_str!("pre_hashes.json")).expect("a test parses our table"));

/// The name of the vocabulary that gives llama.cpp's text these ids.
///
/// # Source
///
/// llama.cpp `conversion/base.py`, autumn 2026: sha256 of the list as Python prints it.
fn known_vocabulary(ids: &[u32]) -> Option<&'static str> {
    let list: Vec<String> = ids.iter().map(u32::to_string).collect();
    let hash = Sha256::digest(format!("[{}]", list.join(", ")));
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    KNOWN.pre.get(&hex).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn steps(pre_tokenizer: Value) -> Result<Vec<String>, TokenizerFileError> {
        let file = json!({"pre_tokenizer": pre_tokenizer, "model": {"vocab": {}}});
        let steps = Steps::read(&serde_json::from_value(file).unwrap())?;
        Ok(steps.expressions.into_iter().map(Cow::into_owned).collect())
    }

    fn byte_level(use_regex: bool) -> Value {
        json!({"type": "ByteLevel", "add_prefix_space": false, "use_regex": use_regex})
    }

    fn split(pattern: Value, behavior: &str, invert: bool) -> Value {
        json!({"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert})
    }

    #[test]
    fn steps_are_expressions() {
        let sequence = |list: Vec<Value>| json!({"type": "Sequence", "pretokenizers": list});
        let digits = |alone: bool| json!({"type": "Digits", "individual_digits": alone});
        assert_eq!(steps(byte_level(true)).unwrap(), [GPT2]);
        assert_eq!(steps(sequence(vec![digits(true), byte_level(true)])).unwrap(), [r"\p{N}", GPT2]);
        let parts = vec![
            json!({"type": "Punctuation", "behavior": "Contiguous"}),
            digits(false),
            split(json!({"String": "a.b"}), "Isolated", false),
            split(json!({"Regex": r"x|\s+"}), "Removed", true),
            byte_level(false),
        ];
        let expected = [r"[\p{P}\$\+<=>\^~\|`]+", r"\p{N}+", r"a\.b", r"x|\s+"];
        assert_eq!(steps(sequence(parts)).unwrap(), expected);
    }

    #[test]
    fn steps_without_an_expression_are_refused() {
        let cases = [
            json!({"type": "ByteLevel", "use_regex": true}),
            json!({"type": "Metaspace"}),
            json!({"type": "Punctuation", "behavior": "Removed"}),
            split(json!({"Regex": "a"}), "MergedWithNext", false),
            split(json!({"Regex": "a"}), "Removed", true),
            split(json!({"String": ""}), "Isolated", false),
            split(json!({"Regex": "a".repeat(MAX_PRE_EXPRESSION_BYTES + 1)}), "Isolated", false),
            json!({"type": "Sequence", "pretokenizers": vec![byte_level(true); MAX_PRE_EXPRESSIONS + 1]}),
            json!(3),
        ];
        for case in cases {
            assert!(steps(case.clone()).is_err(), "{case}");
        }
    }

    #[test]
    fn the_table_has_95_vocabularies() {
        assert_eq!(KNOWN.pre.len(), 95);
        assert!(KNOWN.text.contains("🦙"));
    }
}
