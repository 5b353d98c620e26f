//! Answers in parts: reasoning, content and tool calls, told apart while the text comes.
//!
//! Each model family writes these in its own way ([`AnswerSyntax`], found by what the chat template says).
//! [`AnswerParser`] takes text in pieces, wherever it is cut, and gives [`AnswerEvent`]s as soon as they are certain.

mod call;
mod event;
mod harmony;
mod parser;
mod scan;
mod syntax;
mod value;

pub use event::{Answer, AnswerEvent, ToolCall};
pub use parser::AnswerParser;
pub use syntax::AnswerSyntax;
