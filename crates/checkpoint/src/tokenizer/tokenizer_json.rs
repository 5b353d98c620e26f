//! `tokenizer.json`: the vocabulary and the steps of a tokenizer, as the library `tokenizers` writes them.

use std::fmt;

use serde::Deserialize;
use serde::de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The name of the file.
pub(super) const FILE: &str = "tokenizer.json";

/// The parts of the file that decide about token ids.
#[derive(Debug, Deserialize)]
pub(super) struct TokenizerJson {
    #[serde(default)]
    pub(super) added_tokens: Vec<AddedToken>,
    #[serde(default)]
    pub(super) normalizer: Value,
    #[serde(default)]
    pub(super) pre_tokenizer: Value,
    #[serde(default)]
    pub(super) post_processor: Value,
    pub(super) model: Model,
}

/// A token beside the model's vocabulary.
#[derive(Debug, Deserialize)]
pub(super) struct AddedToken {
    pub(super) id: u64,
    pub(super) content: String,
    #[serde(default)]
    pub(super) special: bool,
}

/// The vocabulary, and how words become tokens.
#[derive(Debug, Deserialize)]
pub(super) struct Model {
    /// Old files have no type.
    #[serde(default, rename = "type")]
    pub(super) kind: Option<String>,
    #[serde(default)]
    pub(super) vocab: Vocab,
    #[serde(default)]
    pub(super) merges: Vec<Merge>,
    #[serde(default)]
    pub(super) unk_token: Option<String>,
    #[serde(default)]
    pub(super) continuing_subword_prefix: Option<String>,
    #[serde(default)]
    pub(super) end_of_word_suffix: Option<String>,
    #[serde(default)]
    pub(super) byte_fallback: bool,
    #[serde(default)]
    pub(super) ignore_merges: bool,
}

impl TokenizerJson {
    /// The steps of kind `field` of a sequence, or the only one: objects with their `type`.
    pub(super) fn steps<'v>(value: &'v Value, field: &str) -> Vec<(&'v str, &'v Value)> {
        let kind = |step: &'v Value| step.get("type").and_then(Value::as_str).unwrap_or_default();
        match (kind(value), value.get(field).and_then(Value::as_array)) {
            ("Sequence", Some(steps)) => steps.iter().map(|step| (kind(step), step)).collect(),
            _ if value.is_null() => Vec::new(),
            (only, _) => vec![(only, value)],
        }
    }

    /// True if texts become bytes, and bytes characters, before they are merged.
    pub(super) fn is_byte_level(&self) -> bool {
        TokenizerJson::steps(&self.pre_tokenizer, "pretokenizers").iter().any(|step| step.0 == "ByteLevel")
    }
}

/// Texts with their ids; or a list, as models other than BPE have it.
#[derive(Debug, Default)]
pub(super) enum Vocab {
    #[default]
    None,
    Ids(Vec<(String, u64)>),
    List,
}

impl<'de> Deserialize<'de> for Vocab {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Vocab, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Vocab;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of token ids")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vocab, A::Error> {
                let mut ids = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    ids.push(entry);
                }
                Ok(Vocab::Ids(ids))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vocab, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Vocab::List)
            }
        }
        from.deserialize_any(Reader)
    }
}

/// A merge in GGUF's spelling: both parts with a space between them, and U+0120 for a space in a part.
#[derive(Debug, PartialEq)]
pub(super) struct Merge(pub(super) String);

impl<'de> Deserialize<'de> for Merge {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Merge, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Merge;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a merge: two texts, or one with a space between them")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Merge, E> {
                Ok(Merge(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Merge, A::Error> {
                let mut part = || -> Result<String, A::Error> {
                    let part: Option<String> = list.next_element()?;
                    Ok(part
                        .ok_or_else(|| A::Error::custom("a merge of fewer than two texts"))?
                        .replace(' ', "Ġ"))
                };
                let (left, right) = (part()?, part()?);
                match list.next_element::<IgnoredAny>()? {
                    None => Ok(Merge(format!("{left} {right}"))),
                    Some(_) => Err(A::Error::custom("a merge of more than two texts")),
                }
            }
        }
        from.deserialize_any(Reader)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(value: Value) -> Result<TokenizerJson, serde_json::Error> {
        serde_json::from_value(value)
    }

    #[test]
    fn merges_have_two_spellings() {
        let file = parse(json!({"model": {"vocab": {"a": 0}, "merges": ["a b", ["a", "b c"], ["é", "b"]]}}));
        let merges: Vec<String> = file.unwrap().model.merges.into_iter().map(|merge| merge.0).collect();
        assert_eq!(merges, ["a b", "a bĠc", "é b"]);
        for merges in [json!([["a"]]), json!([["a", "b", "c"]]), json!([1]), json!({})] {
            assert!(parse(json!({"model": {"vocab": {}, "merges": merges}})).is_err());
        }
    }

    #[test]
    fn steps_are_a_sequence_or_one() {
        let steps = json!({"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type": "ByteLevel"}]});
        let kinds = |value: &Value| -> Vec<String> {
            TokenizerJson::steps(value, "pretokenizers").iter().map(|step| step.0.to_owned()).collect()
        };
        assert_eq!(kinds(&steps), ["Digits", "ByteLevel"]);
        assert_eq!(kinds(&json!({"type": "ByteLevel"})), ["ByteLevel"]);
        assert!(kinds(&Value::Null).is_empty());
        let file =
            parse(json!({"pre_tokenizer": steps, "model": {"type": "Unigram", "vocab": [["a", 0.0]]}}));
        assert!(file.as_ref().unwrap().is_byte_level());
        assert!(matches!(file.unwrap().model.vocab, Vocab::List));
    }
}
