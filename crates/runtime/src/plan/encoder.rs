//! Expansion of attention in encoders.

use chaski_kernels::ops::attention_texts::AttentionTexts;

use super::error::PlanError;
use super::expand::{Expander, f32s};
use super::planned::{Growth, Slot};
use crate::graph::{Bidirectional, ValueId};

impl Expander<'_> {
    /// Attention among the columns of each text, from activations.
    pub(super) fn bidirectional(&mut self, o: &Bidirectional, y: ValueId) -> Result<(), PlanError> {
        let Bidirectional { q, k, v, n_head, n_kv, scale, max_bias, window } = *o;
        let width = |v: ValueId| self.graph.width(v);
        let d = [width(k), width(v)].map(|n| n / n_kv.max(1));
        let call = AttentionTexts {
            n_head,
            n_kv,
            d,
            scale,
            max_bias,
            window,
            ld: [q, k, v, y].map(|v| self.ld_of(v)),
            n_col: self.n_col,
            n_seq: self.config.n_seq,
            f16_tiles: self.config.f16_tiles,
        };
        let (moved, n_pair) =
            (f32s([q, k, v, y].map(width).iter().sum()), 4 * u64::from(n_head * (d[0] + d[1])));
        let bind = vec![
            ("q", self.act(q)),
            ("k", self.act(k)),
            ("v", self.act(v)),
            ("step", Slot::Step),
            ("y", self.act(y)),
        ];
        let columns = self.many(Growth::YTiles(call.tile_cols()));
        // A column sees twice as many others as if those after it were masked.
        self.push(call.dispatch(self.caps)?, bind, columns, "attention", 0).col(moved, 0).key(0, n_pair);
        Ok(())
    }
}
