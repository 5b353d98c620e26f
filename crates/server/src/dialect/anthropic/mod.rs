//! Anthropic's dialect.

pub(crate) mod messages;
mod parts;
mod request;
mod stream;

#[cfg(test)]
mod tests;
