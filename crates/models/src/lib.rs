//! Placeholder line; see ARCHITECTURE.md.

mod tokenizer;

pub use tokenizer::{
    AddSpecial, FimTokens, ParseSpecial, RenderSpecial, TokenKind, Tokenizer, TokenizerError, TokenizerSpec,
};
