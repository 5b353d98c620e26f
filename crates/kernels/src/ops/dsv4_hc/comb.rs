//! `dsv4_hc_comb`: the per-token matrix that mixes the streams.

use super::COMB;
use crate::call::{Call, Names, check_f32, names};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::tensor::Tensor;

const MIXES: Names = names!("mixes");
const SCALE: Names = names!("scale");
const BASE: Names = names!("base");

/// A call; all tensors are f32.
#[derive(Clone, Copy, Debug)]
pub struct HcComb {
    /// Per-token coefficients: [`Self::N_MIX`], tokens. Other operations read the first 2 [`Self::STREAMS`].
    pub mixes: Tensor,
    /// Scale factors, at least 3; the third is the matrix's.
    pub scale: Tensor,
    /// Added to the scaled mixes: [`Self::N_MIX`].
    pub base: Tensor,
    /// Added to each share before the first normalisation, and to all sums.
    pub eps: f32,
    /// Sinkhorn iterations, at least one.
    pub n_iter: u32,
    /// Shares: destination streams, source streams, tokens.
    pub y: Tensor,
}

impl HcComb {
    /// Number of streams; ggml supports no other.
    pub const STREAMS: u32 = 4;
    /// Coefficients per token: for the layer's input, its output, and the matrix.
    pub const N_MIX: u32 = (2 + Self::STREAMS) * Self::STREAMS;

    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not match, values overlap or `n_iter` is 0, [`DispatchError::Type`] if
    /// tensors are not f32.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let HcComb { mixes, scale, base, y, .. } = self;
        let (op, n_tok) = (COMB.name, y.ne[2]);
        let sources = [(MIXES, mixes), (SCALE, scale), (BASE, base)];
        check_f32(op, &sources, y)?;
        y.check_ne(op, "y", [Self::STREAMS, Self::STREAMS, n_tok, 1])?;
        mixes.check_ne(op, "mixes", [Self::N_MIX, n_tok, 1, 1])?;
        scale.check_ne(op, "scale", [scale.ne[0].max(3), 1, 1, 1])?;
        base.check_ne(op, "base", [Self::N_MIX, 1, 1, 1])?;
        if self.n_iter == 0 {
            let expected = "at least 1".into();
            return Err(DispatchError::Shape { op, what: "n_iter", expected, found: 0 });
        }
        Call {
            op: &COMB,
            variant: &[],
            sources: &sources,
            y,
            constants: vec![("EPS", self.eps.into()), ("N_ITER", self.n_iter.into())],
        }
        .threads(n_tok, caps)
    }
}
