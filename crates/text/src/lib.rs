//! The text side of language models: from messages to tokens, and from logits to answers.
//!
//! A [`ChatTemplate`] renders messages as a prompt and a [`Tokenizer`] encodes it; both are built from GGUF
//! metadata. A [`Sampler`] samples a token from logits, among those that a [`Constraint`] allows.
//! [`TextStream`] and [`StopStrings`] turn the bytes of tokens into text, which an [`AnswerParser`] splits
//! into reasoning, content and tool calls. Nothing here depends on GPUs or on the model's computation.

#![forbid(unsafe_code)]

mod answer;
#[cfg(feature = "constraint")]
mod compiled;
mod constraint;
mod sampler;
mod stop;
mod stream;
mod template;
mod threads;
mod tokenizer;
#[cfg(feature = "constraint")]
mod vocab_trie;

pub use answer::{Answer, AnswerEvent, AnswerParser, AnswerSyntax, CallChoice, CallGrammarError, ToolCall};
pub use constraint::{Constraint, ConstraintError, Grammar, Masks, OwnGrammar};
pub use sampler::{Candidate, Draws, Logprobs, Mirostat, SampleError, Sampler, SamplerKind, SamplerParams};
pub use stop::{StopStrings, Stopped};
pub use stream::TextStream;
pub use template::{
    CHATML, ChatTemplate, ChatTemplates, Content, LocalTime, Message, Rendered, TemplateError, TemplateFault,
    TemplateOptions, builtin_template, builtin_template_names, strip_added_special,
    strip_added_special_traced,
};
pub use tokenizer::{
    AddSpecial, FimTokens, MAX_PRE_EXPRESSION_BYTES, MAX_PRE_EXPRESSIONS, ParseSpecial, RenderSpecial,
    TokenKind, Tokenizer, TokenizerError, TokenizerSpec, Within, byte_to_char, is_pre_tokenizer,
    pre_tokenizer_name,
};

/// Runs the examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
