//! Steps of a residual stream of several rows, of which layers work on the first (alternating updates).

use chaski_kernels::ops::altup::Kind;

use super::{ValueId, WeightId};

/// A step. Its result has all rows, after [`Kind::Merge`] one.
#[derive(Copy, Clone, Debug)]
pub struct AltUp {
    /// What is done.
    pub kind: Kind,
    /// The rows, before [`Kind::Spread`] one.
    pub x: ValueId,
    /// What comes to them, but for [`Kind::Predict`].
    pub other: Option<ValueId>,
    /// The router's products, one a row, and what makes coefficients of them: `[n, rows]`; for kinds that mix.
    pub mix: Option<(ValueId, WeightId)>,
    /// Rows of the stream.
    pub rows: u32,
}

impl AltUp {
    /// Values that it reads.
    pub fn inputs(&self) -> Vec<ValueId> {
        [self.x].into_iter().chain(self.other).chain(self.mix.map(|m| m.0)).collect()
    }

    /// The same with other values.
    pub fn moved(self, to: impl Fn(ValueId) -> ValueId) -> Self {
        let mix = self.mix.map(|(router, weight)| (to(router), weight));
        AltUp { x: to(self.x), other: self.other.map(&to), mix, ..self }
    }
}
