//! `dsv4_hc_post`: the streams after a layer.

use super::POST;
use crate::call::{Call, Names, check_f32, names};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::Value;
use crate::tensor::Tensor;

const X: Names = names!("x");
const RESIDUAL: Names = names!("residual");
const GIVEN: Names = names!("post");
const COMB: Names = names!("comb");

/// A call; all tensors are f32.
#[derive(Clone, Copy, Debug)]
pub struct HcPost {
    /// The layer's output: values of a stream, tokens.
    pub x: Tensor,
    /// Streams before the layer: values of a stream, streams, tokens.
    pub residual: Tensor,
    /// Share of x that each stream gets: streams, tokens.
    pub post: Tensor,
    /// Mixing matrix: destination streams, source streams, tokens. `None` does not mix.
    pub comb: Option<Tensor>,
    /// The sizes of `residual`.
    pub y: Tensor,
}

impl HcPost {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not match or values overlap, [`DispatchError::Type`] if they are not f32.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let HcPost { x, residual, post, comb, y } = self;
        let (op, [n_embd, hc, n_tok, _]) = (POST.name, y.ne);
        let mut sources = vec![(X, x), (RESIDUAL, residual), (GIVEN, post)];
        y.check_ne(op, "y", [n_embd, hc, n_tok, 1])?;
        x.check_ne(op, "x", [n_embd, n_tok, 1, 1])?;
        residual.check_ne(op, "residual", y.ne)?;
        post.check_ne(op, "post", [hc, n_tok, 1, 1])?;
        if let Some(comb) = comb {
            comb.check_ne(op, "comb", [hc, hc, n_tok, 1])?;
            sources.push((COMB, comb));
        }
        check_f32(op, &sources, y)?;
        Call {
            op: &POST,
            variant: &[Value::Word(if comb.is_some() { "matrix" } else { "none" })],
            sources: &sources,
            y,
            constants: vec![],
        }
        .values(caps)
    }
}
