//! `topk_moe`: selects the experts of a column and their weights from the router's logits.

pub(crate) mod cases;
pub mod reference;

use chaski_graph::{Gate, Routing};

use crate::call::dispatch;
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError, fold};
use crate::op::{Op, Value};

/// The row of this operation.
pub const OP: Op = Op {
    name: "topk_moe",
    template: template!("topk_moe/topk_moe.wgsl.jinja"),
    variants: || Gate::ALL.iter().map(|g| vec![("gate", Value::Word(g.word()))]).collect(),
    cases: Op::cases(cases::cases),
    ggml: &[],
    grid: None,
};

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct TopkMoe {
    /// Routing parameters.
    pub routing: Routing,
    /// Add `aux[0..n_expert]` for the selection.
    pub bias: bool,
    /// Column stride of x, in values.
    pub ldx: u32,
    /// Columns.
    pub n_col: u32,
    /// Word offset of the weights in `route` ([`Route::weights_at`](crate::Route::weights_at)).
    pub weights_at: u32,
}

impl TopkMoe {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] for unsupported counts.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let r = &self.routing;
        let mut constants = self.constants()?;
        // Each thread ranks its own expert; there are at least as many threads as groups.
        let wg = r.n_expert.next_power_of_two().clamp(64, 256).min(caps.max_threads);
        constants.extend([("WG", wg.into()), ("LDX", self.ldx.into()), ("COLS", self.n_col.into())]);
        let [gx, gy] = fold(self.n_col, caps.max_groups);
        let why = format!("{wg} threads per column");
        dispatch(&OP, &[Value::Word(r.gate.word())], constants, [gx, gy, 1], why)
    }

    /// Constants of `shared/topk_moe`.
    pub(crate) fn constants(&self) -> Result<Vec<(&'static str, f64)>, DispatchError> {
        let r = &self.routing;
        if let Some((what, expected, found)) = r.wrong() {
            return Err(DispatchError::Shape { op: OP.name, what, expected, found: found.into() });
        }
        Ok(vec![
            ("X", r.n_expert.into()),
            ("USED", r.n_used.into()),
            ("BIAS", f64::from(u8::from(self.bias))),
            ("GROUPS", r.n_group.into()),
            ("GROUPS_USED", r.n_group_used.into()),
            ("NORM", f64::from(u8::from(r.norm.is_some()))),
            ("CLAMP", r.norm.unwrap_or(1.0).into()),
            ("SCALE", r.scale.into()),
            ("W0", self.weights_at.into()),
        ])
    }
}
