//! Checkpoints that are no GGUF files, read as if they were.
//!
//! A folder of Hugging Face (config.json, safetensors, tokenizer) or of MLC becomes a virtual GGUF: metadata in memory, and
//! tensors that are made from ranges of the folder's files whenever they are read. Nothing is written, and memory does not
//! depend on the size of the model.

#![forbid(unsafe_code)]
