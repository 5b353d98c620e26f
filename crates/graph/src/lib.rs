//! The computation of a language model for a batch of tokens, as plain data.
//!
//! A [`Graph`] is a list of [`Node`]s, each an operation ([`Op`]) and the value that it computes. Models build it once.
//! It knows no device: `chaski-runtime` plans it for a GPU, fusing nodes and choosing kernels, or interprets it on the
//! CPU. A value has one column per token of the batch, so the same graph serves a prompt and a single token.
//!
//! The vocabulary of models is defined here as well, since operations refer to it: activations ([`Act`], [`Function`]),
//! RoPE ([`Rope`]), attention scores ([`Score`]), the routing of experts ([`Routing`]) and norms ([`NormKind`]).

mod act;
mod bidirectional;
mod function;
mod id;
mod norm;
mod rope;
mod routing;
mod score;
mod weight;

pub mod altup;
pub mod latent;
pub mod recurrent;

mod describe;
mod experts;
mod graph;
mod walk;

pub use act::Act;
pub use bidirectional::Bidirectional;
pub use experts::{ExpertLayer, ExpertPiece};
pub use function::{FUNCTIONS, Function};
pub use graph::{Graph, KvLayer, LoraScale, Node, Op, Product, RowNorm};
pub use id::{ValueId, WeightId};
pub use norm::NormKind;
pub use rope::{Rope, RopePairing, Sections, turn};
pub use routing::{Gate, Routing};
pub use score::{Score, Warmth};
pub use weight::Weight;

/// Runs the examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
