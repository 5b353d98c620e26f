//! Details of the dialects that an operator chooses.

use std::str::FromStr;

use regex::Regex;

/// Details of the dialects of a model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DialectOptions {
    /// Most answers to a prompt: `n` of OpenAI's requests.
    pub max_n: u32,
    /// Most tokens of an answer to one of Anthropic's requests without `max_tokens`; `None`: it is refused, as there.
    pub anthropic_max_tokens: Option<usize>,
    /// Fields of OpenAI's chats that have the reasoning.
    pub reasoning_names: ReasoningNames,
    /// The reasoning stays in the content of OpenAI's chats that have no `reasoning_format`.
    pub keeps_reasoning: bool,
    /// Lines of Anthropic's `system` with a match of one of these are left out. A line that changes with each request
    /// would otherwise keep the prompt from being cached.
    strip_system: Vec<Regex>,
}

impl Default for DialectOptions {
    fn default() -> DialectOptions {
        DialectOptions {
            max_n: 8,
            anthropic_max_tokens: None,
            reasoning_names: ReasoningNames::Both,
            keeps_reasoning: false,
            strip_system: Vec::new(),
        }
    }
}

/// A pattern that is no regular expression.
#[derive(Clone, Debug, thiserror::Error)]
#[error("`{pattern}` is no regular expression")]
pub struct PatternError {
    pattern: String,
    #[source]
    source: regex::Error,
}

impl DialectOptions {
    /// Leaves out the lines of Anthropic's `system` in which one of these regular expressions matches.
    ///
    /// # Errors
    /// [`PatternError`].
    pub fn strip_system<'p>(
        &mut self,
        patterns: impl IntoIterator<Item = &'p str>,
    ) -> Result<(), PatternError> {
        for pattern in patterns {
            let wrong = |source| PatternError { pattern: pattern.to_owned(), source };
            self.strip_system.push(Regex::new(pattern).map_err(wrong)?);
        }
        Ok(())
    }

    /// A text of `system` as the model gets it.
    pub(crate) fn system(&self, text: String) -> String {
        if self.strip_system.is_empty() {
            return text;
        }
        let is_kept = |line: &&str| !self.strip_system.iter().any(|pattern| pattern.is_match(line));
        text.split_inclusive('\n').filter(is_kept).collect()
    }
}

/// Fields with the reasoning of an answer, which programs know by either name.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum ReasoningNames {
    /// `reasoning_content` and `reasoning`.
    #[default]
    Both,
    /// `reasoning_content`, as most servers have it.
    ReasoningContent,
    /// `reasoning`, as newer vLLM has it.
    Reasoning,
}

impl ReasoningNames {
    /// The names.
    pub(crate) fn names(self) -> &'static [&'static str] {
        match self {
            ReasoningNames::Both => &["reasoning_content", "reasoning"],
            ReasoningNames::ReasoningContent => &["reasoning_content"],
            ReasoningNames::Reasoning => &["reasoning"],
        }
    }
}

/// A word that names no choice of fields.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("both, reasoning_content or reasoning")]
pub struct ReasoningNamesError(());

impl FromStr for ReasoningNames {
    type Err = ReasoningNamesError;

    fn from_str(word: &str) -> Result<ReasoningNames, ReasoningNamesError> {
        match word {
            "both" => Ok(ReasoningNames::Both),
            "reasoning_content" => Ok(ReasoningNames::ReasoningContent),
            "reasoning" => Ok(ReasoningNames::Reasoning),
            _ => Err(ReasoningNamesError(())),
        }
    }
}
