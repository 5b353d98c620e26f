//! `router`: the logits of the experts of one column, and their choice, in one dispatch.

mod cases;

use chaski_graph::Gate;

use crate::call::dispatch;
use crate::caps::{Caps, Features};
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::{Op, Value};
use crate::ops::topk_moe::TopkMoe;

/// The row of this operation.
pub const OP: Op = Op {
    name: "router",
    template: template!("router/router.wgsl.jinja"),
    variants: || {
        let needs = Features { coherent: true, ..Features::SUBGROUP };
        Gate::ALL.iter().map(|g| vec![("gate", Value::With(g.word(), needs))]).collect()
    },
    cases: Op::cases(cases::all),
    ggml: &[],
    grid: None,
};

/// A call: an f32 matrix times one column, whose product is the logits of a choice.
#[derive(Clone, Copy, Debug)]
pub struct Router {
    /// Values per row.
    pub k: u32,
    /// Normalise x with `aux[0..k]` and this epsilon first.
    pub norm: Option<f32>,
    /// The choice, of one column.
    pub choice: TopkMoe,
}

/// Threads of a workgroup.
const THREADS: u32 = 128;

impl Router {
    /// True if the device can run it: subgroups compute rows, and the last workgroup reads what the others wrote.
    pub fn fits(&self, caps: &Caps) -> bool {
        let fits = |(_, most): (u32, u32)| most <= THREADS && THREADS <= caps.max_threads;
        let one = self.choice.n_col == 1 && self.k % 4 == 0;
        one && caps.uses_coherent() && !caps.alone && caps.subgroup.is_some_and(fits)
    }

    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Lacks`] unless [`Self::fits`]; [`DispatchError::Shape`] for unsupported counts.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let Some((_, most)) = caps.subgroup.filter(|_| self.fits(caps)) else {
            return Err(DispatchError::Lacks { op: OP.name, what: "subgroups and coherent memory" });
        };
        let mut constants = self.choice.constants()?;
        constants.extend([
            ("WG", THREADS.into()),
            ("K", self.k.into()),
            ("EPS", self.norm.map_or(-1.0, f64::from)),
        ]);
        // Enough for subgroups of every size; those beyond the last row only arrive.
        let rows = THREADS / most;
        let groups = self.choice.routing.n_expert.div_ceil(rows);
        let why = format!("{rows} rows per workgroup, the last chooses");
        let gate = Value::Word(self.choice.routing.gate.word());
        dispatch(&OP, &[gate], constants, [groups, 1, 1], why)
    }
}
