//! A preprocessor for WGSL.

#![forbid(unsafe_code)]

mod error;
mod jinja;
mod literal;
mod words;

pub use error::{Error, ErrorKind, Location};
pub use jinja::Renderer;
