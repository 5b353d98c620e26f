//! Constrained output: a JSON schema, a grammar or a regular expression.

use std::path::PathBuf;

use anyhow::Context as _;
use chaski::Grammar;
use clap::Args as _;

use crate::input::read_text;

/// At most one of these.
#[derive(Clone, Debug, Default, clap::Args, serde::Serialize)]
#[group(multiple = false)]
pub(crate) struct ConstraintArgs {
    /// Constrain the answer to JSON that matches this schema
    #[arg(long, value_name = "SCHEMA")]
    json_schema: Option<String>,
    /// JSON schema from a file
    #[arg(long, value_name = "FILE")]
    json_schema_file: Option<PathBuf>,
    /// Constrain the answer to this grammar: GBNF (`root ::= ...`) or Lark (`start: ...`)
    #[arg(long, value_name = "GRAMMAR")]
    grammar: Option<String>,
    /// Grammar from a file
    #[arg(long, value_name = "FILE")]
    grammar_file: Option<PathBuf>,
    /// Constrain the whole answer to this regular expression
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    regex: Option<String>,
}

impl ConstraintArgs {
    /// Clears the constraint if `option` sets another one, and returns whether it does: only one can be active.
    pub(crate) fn make_room_for(&mut self, option: &str) -> bool {
        let options = ConstraintArgs::augment_args(clap::Command::new("constraint"));
        let is_one = options.get_arguments().any(|arg| arg.get_long() == Some(option));
        if is_one {
            *self = ConstraintArgs::default();
        }
        is_one
    }

    /// The constraint, if any.
    pub(crate) fn grammar(&self) -> anyhow::Result<Option<Grammar>> {
        let schema = |text: &str, from: &str| {
            let schema = serde_json::from_str(text).with_context(|| format!("{from} is not valid JSON"))?;
            Ok(Some(Grammar::JsonSchema(schema)))
        };
        if let Some(text) = &self.json_schema {
            return schema(text, "the schema of --json-schema");
        }
        if let Some(path) = &self.json_schema_file {
            return schema(&read_text(path)?, &format!("`{}`", path.display()));
        }
        if let Some(path) = &self.grammar_file {
            return Ok(Some(Grammar::from_text(read_text(path)?)));
        }
        let grammar = self.grammar.clone().map(Grammar::from_text);
        Ok(grammar.or_else(|| self.regex.clone().map(Grammar::Regex)))
    }
}
