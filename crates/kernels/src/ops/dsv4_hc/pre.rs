//! `dsv4_hc_pre`: the layer's input, a weighted sum of the streams.

use super::PRE;
use crate::call::{Call, Names, check_f32, names};
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::Value;
use crate::tensor::Tensor;

const X: Names = names!("x");
const W: Names = names!("w");

/// A call; all tensors are f32.
#[derive(Clone, Copy, Debug)]
pub struct HcPre {
    /// Streams: values of a stream, streams, tokens.
    pub x: Tensor,
    /// One weight per stream (streams, tokens), or one gate per value (the sizes of x).
    pub w: Tensor,
    /// w holds gates, to which the logistic function is applied.
    pub gated: bool,
    /// Multiplies the sum: 1, or 1 / streams for a mean.
    pub scale: f32,
    /// Values of a stream, tokens.
    pub y: Tensor,
}

impl HcPre {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if sizes do not match, values overlap or there is no stream, [`DispatchError::Type`] if
    /// tensors are not f32.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let HcPre { x, w, y, .. } = self;
        let (op, [n_embd, hc, n_tok, _]) = (PRE.name, x.ne);
        let sources = [(X, x), (W, w)];
        check_f32(op, &sources, y)?;
        x.check_ne(op, "x", [n_embd, hc, n_tok, 1])?;
        w.check_ne(op, "w", if self.gated { x.ne } else { [hc, n_tok, 1, 1] })?;
        y.check_ne(op, "y", [n_embd, n_tok, 1, 1])?;
        Call {
            op: &PRE,
            variant: &[Value::Word(if self.gated { "gate" } else { "stream" })],
            sources: &sources,
            y,
            constants: vec![("SCALE", self.scale.into())],
        }
        .values(caps)
    }
}
