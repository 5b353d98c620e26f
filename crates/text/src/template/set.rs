//! The chat templates of a model file: one for any conversation, and in some files another for those with tools.

use ggml_format::Metadata;

use super::{ChatTemplate, TemplateError};

/// The chat templates of a model file.
///
/// A template that cannot be read is an error only for those who ask for it: the model can continue texts all the same.
#[derive(Debug)]
pub struct ChatTemplates {
    usual: Option<Result<ChatTemplate, TemplateError>>,
    tool_use: Option<Result<ChatTemplate, TemplateError>>,
}

impl ChatTemplates {
    /// Compiles `tokenizer.chat_template` and `tokenizer.chat_template.tool_use`, as far as the file has them.
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

    /// The template for a conversation with or without tools; `None` if the file has none. A model without any may be
    /// one that does not chat; [`CHATML`](super::CHATML) is the best guess otherwise.
    ///
    /// # Errors
    ///
    /// As [`ChatTemplate::new`], if it cannot be read.
    pub fn get(&self, has_tools: bool) -> Result<Option<&ChatTemplate>, TemplateError> {
        let special = self.tool_use.as_ref().filter(|_| has_tools);
        special.or(self.usual.as_ref()).map(Result::as_ref).transpose().map_err(Clone::clone)
    }
}
