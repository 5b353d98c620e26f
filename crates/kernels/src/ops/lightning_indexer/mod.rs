//! `lightning_indexer`: scores that select the keys of sparse attention.

mod cases;
pub mod reference;

use ggml_format::GgmlType;

use crate::call::{Call, Names, names};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::format::FORMATS;
use crate::grid::Grid;
use crate::op::{Op, Value};
use crate::tensor::Tensor;

/// The row of this operation.
pub const OP: Op = Op {
    name: "lightning_indexer",
    template: template!("lightning_indexer/lightning_indexer.wgsl.jinja"),
    variants: || FORMATS.iter().map(|f| vec![("k", Value::Word(f.name))]).collect(),
    cases: Vec::new,
    ggml: &["LIGHTNING_INDEXER"],
    grid: Some(Grid::new(include_str!("grid.txt"), cases::of).random(cases::random)),
};

const Q: Names = names!("q");
const KEYS: Names = names!("keys");
const W: Names = names!("w");
const MASK: Names = names!("mask");

/// A call; all tensors but keys and mask are f32.
#[derive(Clone, Copy, Debug)]
pub struct LightningIndexer {
    /// Queries: values of a head, heads, tokens, sequences.
    pub q: Tensor,
    /// Keys of any format: values of a head, 1, keys, sequences.
    pub k: Tensor,
    /// Weights: heads, tokens, 1, sequences.
    pub w: Tensor,
    /// Added to the scores, f16: keys, tokens, 1, sequences or fewer, which broadcast.
    pub mask: Tensor,
    /// Scores: keys, tokens, 1, sequences.
    pub y: Tensor,
}

impl LightningIndexer {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not match or values overlap, [`DispatchError::Type`] or
    /// [`DispatchError::Format`] for other types.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let op = OP.name;
        let [n, heads, n_tok, n_seq] = self.q.ne;
        let n_key = self.k.ne[2];
        for (what, t) in [("q", &self.q), ("w", &self.w), ("y", &self.y)] {
            t.check_type(op, what, GgmlType::F32)?;
        }
        self.mask.check_type(op, "mask", GgmlType::F16)?;
        self.k.check_ne(op, "k", [n, 1, n_key, n_seq])?;
        self.w.check_ne(op, "w", [heads, n_tok, 1, n_seq])?;
        self.y.check_ne(op, "y", [n_key, n_tok, 1, n_seq])?;
        self.mask.check_ne(op, "mask", [n_key, n_tok, 1, self.mask.ne[3]])?;
        self.mask.check_repeats(op, "mask", self.y.ne)?;
        Call {
            op: &OP,
            variant: &[Value::Word(self.k.ty.name())],
            sources: &[(Q, &self.q), (KEYS, &self.k), (W, &self.w), (MASK, &self.mask)],
            y: &self.y,
            constants: vec![],
        }
        .values(caps)
    }
}
