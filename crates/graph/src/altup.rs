//! Steps of a residual stream of several rows, of which layers work on the first (alternating updates).

use crate::id::{ValueId, WeightId};

/// Which step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One row and products of it become all rows, each as long as the first.
    Spread,
    /// Every row becomes a mixture of all.
    Predict,
    /// What the layer changed in the first row changes all, each by its share.
    Correct,
    /// A row is added to all but the first.
    Inject,
    /// The first row and products of the others, each as long as the first, become their mean.
    Merge,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 5] = [Kind::Spread, Kind::Predict, Kind::Correct, Kind::Inject, Kind::Merge];

    /// The word in kernel names.
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Spread => "spread",
            Kind::Predict => "predict",
            Kind::Correct => "correct",
            Kind::Inject => "inject",
            Kind::Merge => "merge",
        }
    }

    /// Whether coefficients of a router take part, bound as `router` and `aux`.
    pub const fn mixes(self) -> bool {
        matches!(self, Kind::Predict | Kind::Correct)
    }
}

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
