//! Gated parts, shared by dense layers and experts.

use chaski_graph::{Act, Function, Op, ValueId};

use crate::build::{Builder, Linear};
use crate::error::ModelError;

/// A gated feed-forward part, `n_ff` wide, up to its last product: act(gate x) * (up x) and down; tensor names end in
/// `suffix`. A non-zero limit clamps SwiGLU.
///
/// # Errors
/// [`ModelError::NoTensor`], [`ModelError::Shape`].
pub(super) fn gate_up(
    b: &mut Builder<'_>,
    block: &str,
    suffix: &str,
    n_ff: u32,
    (act, limit): (Act, f32),
    x: ValueId,
) -> Result<(ValueId, Linear), ModelError> {
    let n_embd = b.config.n_embd;
    let gate = b.linear(&format!("{block}.ffn_gate{suffix}"), n_ff, n_embd)?;
    let up = b.linear(&format!("{block}.ffn_up{suffix}"), n_ff, n_embd)?;
    let down = b.linear(&format!("{block}.ffn_down{suffix}"), n_embd, n_ff)?;
    let (gate, up) = (b.mul(x, gate), b.mul(x, up)); // [n_ff] each
    Ok((gated(b, gate, up, (act, limit)), down))
}

/// act(gate) * up, with a limit likewise.
pub(super) fn gated(b: &mut Builder<'_>, gate: ValueId, up: ValueId, (act, limit): (Act, f32)) -> ValueId {
    let n_ff = b.width(gate);
    if limit == 0.0 {
        return b.push(Op::Glu { gate, up, act }, n_ff);
    }
    let mut apply = |name: &str, x, params| {
        let f = Function::find(name).expect("a row of the table");
        b.push(Op::Unary { x, f, params }, n_ff)
    };
    let gate = apply("silu", gate, [0.0; 4]);
    let gate = apply("clamp", gate, [f32::MIN, limit, 0.0, 0.0]);
    let up = apply("clamp", up, [-limit, limit, 0.0, 0.0]);
    b.push(Op::Mul { a: gate, b: up }, n_ff)
}
