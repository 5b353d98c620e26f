//! Constrained output: restricts the next token by a JSON schema, a regular expression or a grammar.
//!
//! [`Constraint::mask`] excludes all other tokens from the logits before a token is sampled, so the text is a
//! valid prefix at every step; [`Constraint::accept`] advances by the sampled token. [`Constraint::allowed`] is
//! the mask as bits, for a device that samples.

mod closed;
mod error;
#[cfg(feature = "constraint")]
mod gbnf;
#[cfg(feature = "constraint")]
mod limits;
#[cfg(feature = "constraint")]
mod matcher;
#[cfg(not(feature = "constraint"))]
mod none;
mod space;

use serde_json::Value;

pub(crate) use closed::COMBINING;
#[cfg(feature = "constraint")]
use closed::closed;
pub use error::ConstraintError;
#[cfg(feature = "constraint")]
pub use matcher::Constraint;
#[cfg(not(feature = "constraint"))]
pub use none::Constraint;
#[cfg(feature = "constraint")]
use space::with_short_space;
pub(crate) use space::with_space;

/// The grammar of the output.
#[derive(Clone, Debug, PartialEq)]
pub enum Grammar {
    /// JSON that conforms to this schema. Between its tokens there may be a space, or a line ending and a space or
    /// tab: two characters at most, unless `whitespace_pattern` or `whitespace_flexible` in the schema's
    /// `x-guidance` says otherwise. Objects have the properties that `properties` names, and others only if
    /// `additionalProperties` allows them, as in llama.cpp; a schema with `allOf` is taken as it stands.
    JsonSchema(Value),
    /// Text that this regular expression matches as a whole (syntax of the crate `regex`).
    Regex(String),
    /// Text of a grammar in llguidance's variant of Lark; `start` is the start rule.
    Lark(String),
    /// Text of a grammar in llama.cpp's notation; `root` is the start rule.
    Gbnf(String),
}

impl Grammar {
    /// Detects the notation of a grammar: in GBNF some line begins with a rule name and `::=`.
    pub fn from_text(text: impl Into<String>) -> Grammar {
        let text = text.into();
        let is_rule = |line: &str| {
            let line = line.trim_start();
            let rest = line.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
            rest.len() < line.len() && rest.trim_start().starts_with("::=")
        };
        if text.lines().any(is_rule) { Grammar::Gbnf(text) } else { Grammar::Lark(text) }
    }

    /// Its name in messages.
    #[cfg(feature = "constraint")]
    fn kind(&self) -> &'static str {
        match self {
            Grammar::JsonSchema(_) => "JSON schema",
            Grammar::Regex(_) => "regular expression",
            Grammar::Lark(_) | Grammar::Gbnf(_) => "grammar",
        }
    }
}
