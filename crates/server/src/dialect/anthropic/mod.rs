//! Anthropic's dialect.

pub(crate) mod messages;
mod request;
mod stream;

#[cfg(test)]
mod tests;
