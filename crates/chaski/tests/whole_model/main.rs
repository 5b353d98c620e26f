//! Whole models: from a file's bytes to logits and text, compared with golden data from other sources.
//!
//! Tests run on any adapter, software Vulkan included. One binary, so that it is linked once.

mod archs;
mod lora;
mod loras_together;

mod after_cpu;
mod away;
mod caches;
mod checkpoints;
mod classes;
mod common;
mod constrained;
mod deterministic;
mod devices;
mod elsewhere;
mod embeddings;
mod encoders;
mod errors;
mod families;
mod fusions;
mod golden_text;
mod imatrix;
mod inputs;
mod interrupted;
mod memory;
mod mlc;
mod on_cpu;
mod pages;
mod perplexity;
mod pieces;
mod qkv;
mod recurrent;
mod rows;
mod sampling;
mod seeds;
mod separate;
mod sequences;
mod serve;
mod slots;
mod speculate;
mod stages;
mod stages_at_work;
mod steps;
mod streaming;
mod swarm;
mod threads;
