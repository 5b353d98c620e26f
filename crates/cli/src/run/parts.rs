//! The parts of a chat answer: reasoning, content, tool calls.

use chaski::{AnswerParser, AnswerSyntax, Engine, Message};
use serde_json::Value;

/// The format of the model's answers.
pub(super) struct Parts {
    syntax: &'static AnswerSyntax,
    /// State before the answer begins.
    parser: AnswerParser,
}

impl Parts {
    /// Derived from the model's chat template, for an answer to `prompt`; `None` if it has none.
    ///
    /// # Errors
    /// If the template cannot be read.
    pub(super) fn new(
        engine: &Engine,
        prompt: &str,
        tools: &[Value],
    ) -> Result<Option<Parts>, chaski::Error> {
        let Some(template) = engine.template(!tools.is_empty())? else { return Ok(None) };
        let syntax = AnswerSyntax::of_template(template.source());
        Ok(Some(Parts { syntax, parser: AnswerParser::new(syntax, prompt, tools) }))
    }

    /// Special tokens that must appear in the answer's text, so that its parts can be told apart.
    pub(super) fn marker_tokens(&self, engine: &Engine) -> Vec<u32> {
        self.syntax.marker_tokens(engine.tokenizer())
    }

    /// The answer as a message of a conversation that already has `n_call` tool calls.
    pub(super) fn message(&self, text: &str, n_call_before: usize) -> Message {
        self.parser.clone().parse(text).into_message(n_call_before)
    }
}
