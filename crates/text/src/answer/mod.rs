//! Answers in parts: reasoning, content and tool calls, separated while the text streams.
//!
//! Each model family has its own notation ([`AnswerSyntax`], detected from the chat template).
//! [`AnswerParser`] takes text in pieces of any size, and emits [`AnswerEvent`]s as soon as they are certain.

mod call;
mod event;
mod force;
mod harmony;
mod parser;
mod scan;
mod schema;
mod syntax;
mod tool_name;
mod value;

pub use event::{Answer, AnswerEvent, ToolCall};
pub use force::{CallChoice, CallGrammarError};
pub use parser::AnswerParser;
pub use syntax::AnswerSyntax;
