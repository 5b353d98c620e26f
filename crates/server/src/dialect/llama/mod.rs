//! llama-server's own dialect.

pub(crate) mod completion;
pub(crate) mod props;
pub(crate) mod tokens;
