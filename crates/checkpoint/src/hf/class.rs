//! Classes of transformers, as rows of a table.

use super::config::{Config, ConfigError};
use super::keys::Key;
use super::rules::{Rule, TOP};

/// A class: its family in GGUF, the keys and tensors of such a file, and how they are made.
pub struct HfArch {
    /// Name of the class, under `architectures` of config.json.
    pub class: &'static str,
    /// Value of `general.architecture`.
    pub arch: &'static str,
    /// Evidence that the row is right.
    pub proof: Proof,
    /// Values of keys that config.json leaves out, as JSON: those of the class.
    pub defaults: &'static str,
    /// Keys of the file; of keys that several groups have, the last one counts.
    pub keys: &'static [&'static [Key]],
    /// Tensors of the model.
    pub top: &'static [Rule],
    /// The names of a layer's tensors begin with this, with `{i}` for its number.
    pub prefix: &'static str,
    /// Tensors of every layer.
    pub layers: &'static [&'static [Rule]],
    /// Refuses configurations that a GGUF file cannot describe.
    pub check: fn(&Config) -> Result<(), ConfigError>,
}

/// Evidence for a row of [`HF_ARCHS`](crate::hf::HF_ARCHS).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Proof {
    /// Tensors, keys and logits of a checkpoint are those of transformers and of llama.cpp's converter.
    Tested,
    /// Logits of a small checkpoint are those of transformers; its tensors were not compared with those of llama.cpp's
    /// converter.
    Logits,
    /// Another class, which is tested, has the same tensors and keys.
    Like(&'static str),
    /// Taken from llama.cpp's converter, never compared. Such checkpoints are refused unless the caller insists.
    None,
}

impl HfArch {
    /// A row with the usual tensors of the model and names of layers.
    pub(super) const fn new(
        class: &'static str,
        arch: &'static str,
        keys: &'static [&'static [Key]],
        layers: &'static [&'static [Rule]],
    ) -> HfArch {
        HfArch {
            class,
            arch,
            proof: Proof::None,
            defaults: "{}",
            keys,
            top: TOP,
            prefix: "model.layers.{i}.",
            layers,
            check: |_| Ok(()),
        }
    }

    pub(super) const fn proof(self, proof: Proof) -> HfArch {
        HfArch { proof, ..self }
    }

    pub(super) const fn defaults(self, defaults: &'static str) -> HfArch {
        HfArch { defaults, ..self }
    }

    pub(super) const fn check(self, check: fn(&Config) -> Result<(), ConfigError>) -> HfArch {
        HfArch { check, ..self }
    }

    pub(super) const fn top(self, top: &'static [Rule]) -> HfArch {
        HfArch { top, ..self }
    }

    pub(super) const fn prefix(self, prefix: &'static str) -> HfArch {
        HfArch { prefix, ..self }
    }

    /// True if such checkpoints are opened without asking.
    pub fn is_proven(&self) -> bool {
        self.proof != Proof::None
    }
}
