//! `dsv4_hc_comb`: the matrix by which streams mix, for every token.

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
    /// What the token asks for: [`Self::N_MIX`], tokens. The first 2 [`Self::STREAMS`] are for other operations.
    pub mixes: Tensor,
    /// Factors, of which the third is that of the matrix: 3 or more.
    pub scale: Tensor,
    /// Added to the scaled mixes: [`Self::N_MIX`].
    pub base: Tensor,
    /// Added to each share before the first sum, and to all sums.
    pub eps: f32,
    /// How often sums over sources become 1, at least once.
    pub n_iter: u32,
    /// Shares: streams that they go to, streams that they come from, tokens.
    pub y: Tensor,
}

impl HcComb {
    /// Streams; ggml knows no other number here.
    pub const STREAMS: u32 = 4;
    /// Mixes of a token: what goes into the layer, what comes out of it, and the matrix.
    pub const N_MIX: u32 = (2 + Self::STREAMS) * Self::STREAMS;

    /// The kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not fit, values overlap or there is no iteration, [`DispatchError::Type`] if
    /// they are not f32.
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
