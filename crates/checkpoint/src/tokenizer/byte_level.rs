//! Byte-level BPE: `tokenizer.json` with the pre-tokenizer `ByteLevel`.

use chaski_text::TokenizerSpec;
use serde_json::Value;

use super::pre::{PreTokenizer, Steps};
use super::special::{Configs, Special};
use super::tokenizer_json::{FILE, TokenizerJson};
use super::{Found, TokenizerFileError, TokenizerOptions};

/// The value of `tokenizer.ggml.model`.
pub(super) const MODEL: &str = "gpt2";

/// Normalizers by type, with the names of the forms in metadata.
const FORMS: [(&str, &str); 4] = [("NFC", "nfc"), ("NFD", "nfd"), ("NFKC", "nfkc"), ("NFKD", "nfkd")];

/// Reads the tokenizer.
pub(super) fn read(
    json: TokenizerJson,
    configs: &Configs,
    options: TokenizerOptions<'_>,
) -> Result<Found, TokenizerFileError> {
    json.check_bpe()?;
    let form = form(&json.normalizer)?;
    let vocabulary = json.vocabulary(configs, options, false)?;
    let mut special = Special::find(configs, Some(&json), &vocabulary);
    // The rule's default is not this file's.
    special.add_bos.get_or_insert(false);
    let (steps, ignore_merges) = (Steps::read(&json), json.model.ignore_merges);
    let merges: Vec<String> = json.model.merges.into_iter().map(|merge| merge.0).collect();
    let spec = || TokenizerSpec {
        model: MODEL.to_owned(),
        tokens: vocabulary.tokens.clone(),
        token_types: vocabulary.kind_numbers(),
        merges: merges.clone(),
        bos: special.bos(),
        eos: special.eos(),
        add_bos: special.add_bos,
        add_eos: special.add_eos,
        normalizer: form.map(str::to_owned),
        ..TokenizerSpec::default()
    };
    let pre = match options.pre {
        Some(name) => PreTokenizer::Requested(name.to_owned()),
        None => steps?.rule(ignore_merges, spec)?,
    };
    Ok(Found {
        model: MODEL,
        pre,
        vocabulary,
        merges,
        special,
        ignore_merges,
        form,
        add_space_prefix: None,
        notes: Vec::new(),
    })
}

/// The form of Unicode that the normalizer makes.
fn form(normalizer: &Value) -> Result<Option<&'static str>, TokenizerFileError> {
    let mut form = None;
    for (kind, _) in TokenizerJson::steps(normalizer, "normalizers") {
        match FORMS.iter().find(|row| row.0 == kind) {
            Some((_, name)) if form.is_none() => form = Some(*name),
            _ => {
                let (file, what) = (FILE.to_owned(), format!("the normalizer {kind:?}"));
                let advice = "its texts would have other ids; convert the model with a tool of its author";
                return Err(TokenizerFileError::Unsupported { file, what, advice });
            }
        }
    }
    Ok(form)
}
