//! The classes, by family.

pub(super) mod common;
pub(super) mod deepseek;
pub(super) mod dense;
pub(super) mod gemma;
pub(super) mod gpt_oss;
pub(super) mod llama;
pub(super) mod qwen_hybrid;
pub(super) mod recurrent;
