//! Details of the APIs that a server speaks.

use chaski_server::{DialectOptions, PatternError, ReasoningNames};

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DialectArgs {
    /// Most answers to a prompt that a request may ask for (`n`)
    #[arg(long, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
    max_n: u32,
    /// Most tokens of an answer to a request of Anthropic's API that has no `max_tokens` [default: such requests are
    /// refused]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    anthropic_default_max: Option<u32>,
    /// Leave out lines of Anthropic's `system` in which this regular expression matches, as one that changes with each
    /// request and keeps prompts from being cached; may be repeated
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    anthropic_strip_system: Vec<String>,
    /// Fields of OpenAI's chats that have the reasoning: both, reasoning_content or reasoning
    #[arg(long, value_name = "NAMES", default_value = "both")]
    reasoning_names: ReasoningNames,
    /// Form of the reasoning in OpenAI's chats without `reasoning_format`: auto or deepseek for fields of its own, none
    /// for the content, with its markers
    #[arg(long, value_name = "FORMAT", default_value = "auto", value_parser = ["auto", "deepseek", "none"])]
    #[arg(hide_possible_values = true)]
    reasoning_format: String,
}

/// A regular expression as it was written.
fn pattern(text: &str) -> Result<String, String> {
    regex::Regex::new(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

impl DialectArgs {
    /// The details.
    ///
    /// # Errors
    /// [`PatternError`].
    pub(super) fn options(&self) -> Result<DialectOptions, PatternError> {
        let mut options = DialectOptions::default();
        options.max_n = self.max_n;
        options.anthropic_max_tokens = self.anthropic_default_max.map(|n| n as usize);
        options.reasoning_names = self.reasoning_names;
        options.keeps_reasoning = self.reasoning_format == "none";
        options.strip_system(self.anthropic_strip_system.iter().map(String::as_str))?;
        Ok(options)
    }
}
