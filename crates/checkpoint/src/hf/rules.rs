//! Rules: the tensors of a GGUF file, and the tensors of a checkpoint that they are made of.

use super::config::{Config, ConfigError};
use super::part::{Part, PartError, same};

/// A tensor of every layer, or of the model.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Its name in GGUF, in layers without `blk.N.`; for a module without `.weight`.
    pub to: &'static str,
    /// The name in the checkpoint, in layers without the class's prefix; `{e}` is the number of an expert, whose
    /// matrices are stacked. For a module without `.weight`.
    pub from: &'static str,
    /// How it is made.
    pub how: How,
    /// A weight with perhaps a bias, or a tensor by its whole name.
    pub kind: Kind,
    /// Layers that need it.
    pub when: When,
}

/// A transformation.
pub(super) type How = fn(&Config, Part) -> Result<Part, PartError>;

/// The tensors of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `.weight`, and `.bias` if the checkpoint has one.
    Module,
    /// A single tensor.
    Tensor,
}

/// Layers that need a tensor. In others it is not even looked for.
#[derive(Clone, Copy)]
pub enum When {
    /// All of them.
    Always,
    /// Those for which the function is true.
    If(fn(&Config, u32) -> Result<bool, ConfigError>),
    /// None: it is taken where it exists.
    Optional,
    /// The output matrix: needed unless it is tied to the embeddings, which a checkpoint may leave to a default.
    Head,
}

/// A module that is needed.
pub(super) const fn module(to: &'static str, from: &'static str, how: How) -> Rule {
    Rule { to, from, how, kind: Kind::Module, when: When::Always }
}

/// A tensor that is needed.
pub(super) const fn tensor(to: &'static str, from: &'static str, how: How) -> Rule {
    Rule { to, from, how, kind: Kind::Tensor, when: When::Always }
}

impl Rule {
    /// The same where the checkpoint has it.
    pub(super) const fn optional(self) -> Rule {
        Rule { when: When::Optional, ..self }
    }

    /// The same as output matrix.
    pub(super) const fn head(self) -> Rule {
        Rule { when: When::Head, ..self }
    }

    /// The same in some layers.
    pub(super) const fn when(self, when: fn(&Config, u32) -> Result<bool, ConfigError>) -> Rule {
        Rule { when: When::If(when), ..self }
    }
}

/// Embeddings, the last norm, and the output matrix.
pub(super) const TOP: &[Rule] = &[
    module("token_embd", "model.embed_tokens", same),
    module("output_norm", "model.norm", same),
    module("output", "lm_head", same).head(),
];
