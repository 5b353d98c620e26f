//! `expert_lists`: groups the (column, slot) pairs of each expert into tiles.

pub(crate) mod cases;
pub mod reference;

use crate::call::dispatch;
use crate::caps::Caps;
use crate::dispatch::{Dispatch, DispatchError};
use crate::op::Op;
use crate::route::Route;

/// The row of this operation.
pub const OP: Op = Op {
    name: "expert_lists",
    template: template!("expert_lists/expert_lists.wgsl.jinja"),
    variants: || vec![vec![]],
    cases: Op::cases(cases::cases),
    ggml: &["MUL_MAT_ID"],
    grid: None,
};

/// Threads per expert: with 64, 4,096 pairs took 25 us on an H200, most of it loads that nothing hid.
const THREADS: u32 = 256;

/// A call; the number of columns comes from the step buffer.
#[derive(Clone, Copy, Debug)]
pub struct ExpertLists {
    /// The buffer that holds the experts and receives the lists.
    pub route: Route,
}

impl ExpertLists {
    /// Chooses the kernel and its grid.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] for more experts than the kernel can count.
    pub fn dispatch(&self, caps: &Caps) -> Result<Dispatch, DispatchError> {
        let r = &self.route;
        if r.n_expert == 0 || r.n_expert > Route::MAX_EXPERT {
            let expected = format!("1 to {}", Route::MAX_EXPERT);
            let found = r.n_expert.into();
            return Err(DispatchError::Shape { op: OP.name, what: "experts", expected, found });
        }
        let wg = caps.max_threads.min(THREADS);
        let constants = vec![
            ("WG", wg.into()),
            ("X", r.n_expert.into()),
            ("USED", r.n_used.into()),
            ("TILE", r.tile.into()),
            ("TILES", r.tiles_at().into()),
            ("PAIRS", r.pairs_at().into()),
            ("PLACES", r.places_at().into()),
        ];
        let why = format!("{wg} threads per expert");
        dispatch(&OP, &[], constants, [r.n_expert, 1, 1], why)
    }
}
