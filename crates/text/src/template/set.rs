//! The chat templates of a model file: a default one, and in some files another one for conversations with
//! tools.

use ggml_format::Metadata;

use super::{ChatTemplate, TemplateError};

/// The chat templates of a model file.
///
/// A template that cannot be parsed is an error only when it is requested: the model can complete texts all
/// the same.
#[derive(Debug)]
pub struct ChatTemplates {
    usual: Option<Result<ChatTemplate, TemplateError>>,
    tool_use: Option<Result<ChatTemplate, TemplateError>>,
}

impl ChatTemplates {
    /// Compiles `tokenizer.chat_template` and `tokenizer.chat_template.tool_use`, if the file has them.
    pub fn from_metadata(metadata: &Metadata) -> ChatTemplates {
        let compiled = |key: &str| {
            let source = metadata.get(key).and_then(|value| value.to::<&str>());
            source.map(ChatTemplate::new)
        };
        ChatTemplates {
            usual: compiled("tokenizer.chat_template"),
            tool_use: compiled("tokenizer.chat_template.tool_use"),
        }
    }

    /// The template for a conversation with or without tools; `None` if the file has none. A model without a
    /// template may not support chat; otherwise [`CHATML`](super::CHATML) is the best guess.
    ///
    /// # Errors
    ///
    /// As [`ChatTemplate::new`], if it cannot be parsed.
    pub fn get(&self, has_tools: bool) -> Result<Option<&ChatTemplate>, TemplateError> {
        let special = self.tool_use.as_ref().filter(|_| has_tools);
        special.or(self.usual.as_ref()).map(Result::as_ref).transpose().map_err(Clone::clone)
    }
}
