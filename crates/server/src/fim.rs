//! Prompts for the text between two others, in the tokens that some models have for it.

use chaski::text::FimTokens;

use crate::ask::Part;
use crate::error::{ApiError, Kind};
use crate::fields::Fields;
use crate::model::Facts;

/// A gap in a text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gap<'a> {
    pub(crate) prefix: Vec<Part>,
    pub(crate) suffix: &'a str,
    /// The beginning of what fills it.
    pub(crate) begun: &'a str,
    /// Other files: names and texts.
    pub(crate) files: Vec<(&'a str, &'a str)>,
}

/// Name of the project, and of the file with the gap, where a model expects some.
const PROJECT: &str = "myproject\n";
const FILE: &str = "filename\n";
/// Name of a file that has none.
const UNNAMED: &str = "tmp";
/// Between the texts of files, for models without a token for it.
const BETWEEN: &str = "\n\n--- snippet ---\n\n";

impl<'a> Gap<'a> {
    /// Reads the fields of llama-server's `/infill`.
    pub(crate) fn read(fields: &Fields<'a>) -> Result<Gap<'a>, ApiError> {
        let prefix = fields.need("input_prefix", fields.text("input_prefix")?)?;
        let mut files = Vec::new();
        for (i, file) in fields.list("input_extra")?.unwrap_or_default().iter().enumerate() {
            let file = Fields::of(file, fields.path(&format!("input_extra[{i}]")))?;
            files.push((file.text("filename")?.unwrap_or(UNNAMED), file.need("text", file.text("text")?)?));
        }
        Ok(Gap {
            prefix: vec![Part::Text(prefix.into())],
            suffix: fields.need("input_suffix", fields.text("input_suffix")?)?,
            begun: fields.text("prompt")?.unwrap_or_default(),
            files,
        })
    }

    /// The prompt in a model's tokens. Nothing in the texts is a control token.
    ///
    /// # Errors
    /// [`Kind::Unsupported`] for a model without such tokens; those of the tokenizer.
    pub(crate) fn prompt(&self, facts: &Facts) -> Result<Vec<Part>, ApiError> {
        let (fim, bos) = facts.with_tokenizer(|t| (t.fim(), t.bos().filter(|_| t.adds_bos())))?;
        let tokens = [fim.prefix, fim.suffix, fim.middle];
        let [Some(prefix), Some(suffix), Some(middle)] = tokens else {
            let message =
                "this model cannot fill in: its vocabulary has no tokens for prefix, suffix and middle";
            return Err(ApiError::new(Kind::Unsupported, message));
        };
        let mut out: Vec<u32> = bos.into_iter().collect();
        self.push_files(facts, fim, &mut out)?;
        let text = |text: &str| facts.tokens_within(text, false, false, facts.n_ctx);
        let mut before = vec![prefix];
        for part in &self.prefix {
            match part {
                Part::Text(part) => before.extend(text(part)?),
                Part::Tokens(tokens) => before.extend(tokens),
            }
        }
        before.extend(text(self.begun)?);
        let mut after = vec![suffix];
        after.extend(text(self.suffix)?);
        let (first, second) = if facts.suffix_first { (after, before) } else { (before, after) };
        out.extend(first.into_iter().chain(second).chain([middle]));
        Ok(vec![Part::Tokens(out)])
    }

    /// Adds the other files, and the head of the one with the gap.
    fn push_files(&self, facts: &Facts, fim: FimTokens, out: &mut Vec<u32>) -> Result<(), ApiError> {
        let text = |text: &str| facts.tokens_within(text, false, false, facts.n_ctx);
        if let Some(repo) = fim.repo {
            out.push(repo);
            out.extend(text(PROJECT)?);
        }
        for (name, content) in &self.files {
            match fim.sep {
                Some(sep) => {
                    out.push(sep);
                    out.extend(text(&format!("{name}\n"))?);
                }
                None => out.extend(text(BETWEEN)?),
            }
            out.extend(text(content)?);
        }
        if let Some(sep) = fim.sep {
            out.push(sep);
            out.extend(text(FILE)?);
        }
        Ok(())
    }
}

/// The prompt for a text before a `suffix`.
///
/// # Errors
/// Those of [`Gap::prompt`].
pub(crate) fn before(prefix: Vec<Part>, suffix: &str, facts: &Facts) -> Result<Vec<Part>, ApiError> {
    let prompt = Gap { prefix, suffix, ..Gap::default() }.prompt(facts);
    prompt.map_err(|error| ApiError { param: Some("suffix".into()), ..error })
}

/// The text after the gap that a request is about, if it is.
///
/// # Errors
/// Another type.
pub(crate) fn suffix<'a>(fields: &Fields<'a>) -> Result<Option<&'a str>, ApiError> {
    Ok(fields.text("suffix")?.filter(|suffix| !suffix.is_empty()))
}
