//! Special tokens by their roles, and those that are added to every text.

use serde_json::Value;

use super::TokenizerFileError;
use super::files::TokenizerFiles;
use super::tokenizer_json::TokenizerJson;
use super::vocabulary::Vocabulary;

/// Roles: the name in `tokenizer_config.json` (`…_token`) and `config.json` (`…_token_id`), and in GGUF (`…_token_id`).
const ROLES: [(&str, &str); N_ROLE] = [
    ("bos", "bos"),
    ("eos", "eos"),
    ("unk", "unknown"),
    ("sep", "seperator"),
    ("pad", "padding"),
    ("cls", "cls"),
    ("mask", "mask"),
];
const N_ROLE: usize = 7;
const BOS: usize = 0;
const EOS: usize = 1;
const CLS: usize = 5;

/// The special tokens of a tokenizer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Special {
    /// Ids in the order of [`ROLES`].
    ids: [Option<u32>; N_ROLE],
    /// The end of a turn, where texts end with another token.
    eot: Option<u32>,
    pub(super) add_bos: Option<bool>,
    pub(super) add_eos: Option<bool>,
    /// Tokens that end a generation, besides EOS.
    pub(super) more_ends: Vec<u32>,
    /// Requests of the files that GGUF cannot express.
    pub(super) notes: Vec<String>,
}

/// JSON files that say something about special tokens.
pub(super) struct Configs {
    pub(super) tokenizer: Value,
    pub(super) special_map: Value,
    pub(super) model: Value,
    pub(super) generation: Value,
}

impl Configs {
    pub(super) fn read(files: &TokenizerFiles) -> Result<Configs, TokenizerFileError> {
        Ok(Configs {
            tokenizer: files.json("tokenizer_config.json")?,
            special_map: files.json("special_tokens_map.json")?,
            model: files.json("config.json")?,
            generation: files.json("generation_config.json")?,
        })
    }

    /// A value of `config.json`: at its top, or in that of the language model.
    pub(super) fn model(&self, key: &str) -> Option<&Value> {
        let nested = || self.model.get("text_config").and_then(|config| config.get(key));
        self.model.get(key).filter(|value| !value.is_null()).or_else(nested)
    }

    /// The text of the token with a role.
    fn text(&self, role: &str) -> Option<&str> {
        let key = format!("{role}_token");
        [&self.tokenizer, &self.special_map].into_iter().find_map(|file| text_of(file.get(&key)?))
    }

    /// The ids of a role in `config.json`, or in another file: a number or a list.
    fn ids<'v>(value: Option<&'v Value>) -> impl Iterator<Item = u32> + use<'v> {
        let list = match value {
            Some(Value::Array(list)) => list.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        list.iter().filter_map(|id| u32::try_from(id.as_u64()?).ok())
    }
}

/// The text of a token: itself, or the field `content`.
fn text_of(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value.get("content")?.as_str())
}

impl Special {
    /// Finds the special tokens. Texts of `tokenizer_config.json` come before ids of `config.json`; what a text begins
    /// and ends with is decided by the template of `tokenizer.json` before flags.
    pub(super) fn find(configs: &Configs, file: Option<&TokenizerJson>, vocabulary: &Vocabulary) -> Special {
        let n_token = vocabulary.tokens.len() as u32;
        let by_text = vocabulary.by_text();
        let added = |text: &str| {
            let token = file?.added_tokens.iter().find(|token| token.content == text)?;
            u32::try_from(token.id).ok()
        };
        let mut special = Special::default();
        for (role, (name, _)) in ROLES.into_iter().enumerate() {
            let text = configs.text(name);
            // Begin and end may be any token; other roles only matter for tokens that were added.
            let any = |text: &str| by_text.get(text).filter(|_| role <= EOS).map(|&id| id as u32);
            let found = text.and_then(|text| added(text).or_else(|| any(text)));
            let key = format!("{name}_token_id");
            let by_id = || {
                let generation = configs.generation.get(&key).filter(|_| role <= EOS);
                Configs::ids(configs.model(&key)).chain(Configs::ids(generation)).next()
            };
            special.ids[role] = found.or_else(by_id).filter(|&id| id < n_token);
        }
        let flag = |name: &str| configs.tokenizer.get(name).and_then(Value::as_bool);
        (special.add_bos, special.add_eos) = (flag("add_bos_token"), flag("add_eos_token"));
        if let Some(file) = file {
            special.read_template(file, |text| {
                added(text).or_else(|| by_text.get(text).map(|&id| id as u32)).filter(|&id| id < n_token)
            });
        }
        let ends = Configs::ids(configs.model("eos_token_id"));
        for id in ends.chain(Configs::ids(configs.generation.get("eos_token_id"))) {
            let is_known =
                special.ids[EOS] == Some(id) || special.eot == Some(id) || special.more_ends.contains(&id);
            if id < n_token && !is_known {
                special.more_ends.push(id);
            }
        }
        special
    }

    /// Takes what the template of single texts adds before and after them.
    fn read_template(&mut self, file: &TokenizerJson, id_of: impl Fn(&str) -> Option<u32>) {
        for (kind, step) in TokenizerJson::steps(&file.post_processor, "processors") {
            if kind == "ByteLevel" {
                continue;
            }
            if kind != "TemplateProcessing" {
                self.notes.push(format!("tokenizer.json: what {kind:?} adds to texts is left out"));
                continue;
            }
            let parts = step.get("single").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let token = |part: &Value| part.get("SpecialToken")?.get("id")?.as_str().map(str::to_owned);
            let n_before = parts.iter().take_while(|part| token(part).is_some()).count();
            let (before, rest) = parts.split_at(n_before);
            let after = rest.get(1..).unwrap_or_default();
            self.set_before(&before.iter().filter_map(token).collect::<Vec<_>>(), &id_of);
            self.set_after(&after.iter().filter_map(token).collect::<Vec<_>>(), &id_of);
        }
    }

    fn set_before(&mut self, texts: &[String], id_of: &impl Fn(&str) -> Option<u32>) {
        let [text] = texts else {
            if !texts.is_empty() {
                self.add_bos = Some(false);
                self.notes.push(format!("tokenizer.json: the tokens {texts:?} are not added before texts"));
            }
            return;
        };
        let id = id_of(text);
        let is_begin =
            id.is_some() && (id == self.ids[BOS] || id == self.ids[CLS] || self.ids[BOS].is_none());
        if is_begin {
            self.ids[BOS] = id;
        } else {
            self.notes.push(format!("tokenizer.json: {text:?}, which is not BOS, is not added before texts"));
        }
        self.add_bos = Some(is_begin);
    }

    fn set_after(&mut self, texts: &[String], id_of: &impl Fn(&str) -> Option<u32>) {
        let [text] = texts else {
            if !texts.is_empty() {
                self.add_eos = Some(false);
                self.notes.push(format!("tokenizer.json: the tokens {texts:?} are not added after texts"));
            }
            return;
        };
        let Some(id) = id_of(text) else { return };
        if self.ids[EOS] != Some(id) {
            // Embedding models end texts with another token than turns.
            self.eot = self.ids[EOS];
            self.ids[EOS] = Some(id);
        }
        self.add_eos = Some(true);
    }

    pub(super) fn bos(&self) -> Option<u32> {
        self.ids[BOS]
    }

    pub(super) fn eos(&self) -> Option<u32> {
        self.ids[EOS]
    }

    /// Names in GGUF (`tokenizer.ggml.…_token_id`) with ids.
    pub(super) fn named(&self) -> impl Iterator<Item = (&'static str, u32)> {
        let roles = ROLES.iter().zip(self.ids).filter_map(|((_, name), id)| Some((*name, id?)));
        roles.chain(self.eot.map(|id| ("eot", id)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEXTS: [&str; 5] = ["<s>", "</s>", "<end>", "a", "<pad>"];

    fn find(tokenizer: Value, model: Value, generation: Value, post_processor: Value) -> Special {
        let mut vocabulary = Vocabulary::unused(5, false).unwrap();
        vocabulary.tokens = TEXTS.map(str::to_owned).to_vec();
        let added: Vec<Value> =
            [0, 1, 2, 4].iter().map(|&id| json!({"id": id, "content": TEXTS[id], "special": true})).collect();
        let file = json!({"added_tokens": added, "post_processor": post_processor, "model": {"vocab": {}}});
        let file = serde_json::from_value(file).unwrap();
        let configs = Configs { tokenizer, special_map: json!({"pad_token": "<pad>"}), model, generation };
        Special::find(&configs, Some(&file), &vocabulary)
    }

    fn template(before: &[&str], after: &[&str]) -> Value {
        let token = |text: &&str| json!({"SpecialToken": {"id": text, "type_id": 0}});
        let text = json!({"Sequence": {"id": "A", "type_id": 0}});
        let single: Vec<Value> =
            before.iter().map(token).chain([text]).chain(after.iter().map(token)).collect();
        json!({"type": "Sequence", "processors": [{"type": "ByteLevel"}, {"type": "TemplateProcessing", "single": single}]})
    }

    #[test]
    fn texts_come_before_ids_and_lists_have_all_ends() {
        let tokenizer = json!({"bos_token": {"content": "<s>"}, "eos_token": "<end>", "unk_token": "a"});
        let model =
            json!({"bos_token_id": 3, "eos_token_id": [1, 2, 99], "text_config": {"pad_token_id": 3}});
        let found = find(tokenizer, model, json!({"eos_token_id": [2, 3]}), Value::Null);
        assert_eq!(found.named().collect::<Vec<_>>(), [("bos", 0), ("eos", 2), ("padding", 4)]);
        assert_eq!((found.more_ends, found.add_bos), (vec![1, 3], None));
    }

    #[test]
    fn ids_of_the_nested_and_of_the_generation_config_count() {
        let model = json!({"bos_token_id": null, "text_config": {"bos_token_id": 1}});
        let found = find(Value::Null, model, json!({"eos_token_id": 3}), Value::Null);
        assert_eq!(found.named().collect::<Vec<_>>(), [("bos", 1), ("eos", 3), ("padding", 4)]);
        assert!(found.more_ends.is_empty());
    }

    #[test]
    fn the_template_decides_before_flags() {
        let tokenizer = || json!({"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": false, "add_eos_token": true});
        let found = |template| find(tokenizer(), Value::Null, Value::Null, template);
        let begins = found(template(&["<s>"], &[]));
        assert_eq!((begins.add_bos, begins.add_eos), (Some(true), Some(true)));
        let flags = found(template(&[], &[]));
        assert_eq!((flags.add_bos, flags.add_eos), (Some(false), Some(true)));
        let others = found(template(&["<pad>", "<s>"], &["<end>"]));
        assert_eq!((others.add_bos, others.notes.len()), (Some(false), 1));
        assert_eq!((others.eos(), others.eot, others.add_eos), (Some(2), Some(1), Some(true)));
        let wrong = found(template(&["<pad>"], &["<nothing>"]));
        assert_eq!((wrong.add_bos, wrong.bos(), wrong.eos()), (Some(false), Some(0), Some(1)));
    }
}
