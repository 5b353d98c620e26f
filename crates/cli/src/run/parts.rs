//! The parts of an answer to a message: reasoning, content, tool calls.

use chaski::{AnswerParser, AnswerSyntax, Engine, Message};
use serde_json::Value;

/// How the model writes the parts of its answer.
pub(super) struct Parts {
    syntax: &'static AnswerSyntax,
    /// Before any of the answer has come.
    parser: AnswerParser,
}

impl Parts {
    /// By the chat template of the model, for an answer to `prompt`; `None` if it has none.
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

    /// Special tokens that must be shown in the answer's text, so that its parts can be told apart.
    pub(super) fn marker_tokens(&self, engine: &Engine) -> Vec<u32> {
        self.syntax.marker_tokens(engine.tokenizer())
    }

    /// The answer's text as a message of a conversation that has so many calls already.
    pub(super) fn message(&self, text: &str, n_call_before: usize) -> Message {
        self.parser.clone().parse(text).into_message(n_call_before)
    }
}
