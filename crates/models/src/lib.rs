//! Placeholder line; see ARCHITECTURE.md.

mod sampler;
mod template;
mod text;
mod tokenizer;

pub use sampler::{Candidate, Mirostat, SampleError, Sampler, SamplerKind, SamplerParams};
pub use template::{
    CHATML, ChatTemplate, Content, LocalTime, Message, TemplateError, TemplateOptions, strip_added_special,
};
pub use text::{StopStrings, Stopped, TextStream};
pub use tokenizer::{
    AddSpecial, FimTokens, ParseSpecial, RenderSpecial, TokenKind, Tokenizer, TokenizerError, TokenizerSpec,
};
