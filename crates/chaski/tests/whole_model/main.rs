//! Whole models: from the bytes of a file to logits and text, against golden data of a second source.
//!
//! Everything runs on whatever adapter there is; software Vulkan counts. One binary, so that it is linked once.

mod adapters;
mod archs;

mod caches;
mod common;
mod constrained;
mod devices;
mod embeddings;
mod errors;
mod families;
mod fusions;
mod golden_text;
mod imatrix;
mod interrupted;
mod memory;
mod perplexity;
mod pieces;
mod recurrent;
mod sampling;
mod separate;
mod sequences;
mod serve;
mod speculate;
mod steps;
mod streaming;
