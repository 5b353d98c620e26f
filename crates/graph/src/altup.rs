//! AltUp (alternating updates): a residual stream of several rows, of which layers process the first.

use crate::id::{ValueId, WeightId};

/// Kinds of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Expands one row to all: the row itself and projections of it, scaled to its length.
    Spread,
    /// Mixes the rows.
    Predict,
    /// Adds the layer's change of the first row to all rows, weighted.
    Correct,
    /// Adds a row to all but the first.
    Inject,
    /// Averages the first row and projections of the others, scaled to its length.
    Merge,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 5] = [Kind::Spread, Kind::Predict, Kind::Correct, Kind::Inject, Kind::Merge];

    /// The name in kernel names.
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Spread => "spread",
            Kind::Predict => "predict",
            Kind::Correct => "correct",
            Kind::Inject => "inject",
            Kind::Merge => "merge",
        }
    }

    /// True if the step uses router coefficients, bound as `router` and `aux`.
    pub const fn mixes(self) -> bool {
        matches!(self, Kind::Predict | Kind::Correct)
    }
}

/// A step. Its result has all rows, or one after [`Kind::Merge`].
#[derive(Copy, Clone, Debug)]
pub struct AltUp {
    /// Kind of step.
    pub kind: Kind,
    /// The rows; one before [`Kind::Spread`].
    pub x: ValueId,
    /// Second operand, except for [`Kind::Predict`].
    pub other: Option<ValueId>,
    /// The router's outputs, one per row, and the matrix that maps them to coefficients, `[n, rows]`; for kinds that
    /// mix.
    pub mix: Option<(ValueId, WeightId)>,
    /// Rows of the stream.
    pub rows: u32,
}

impl AltUp {
    /// Input values.
    pub fn inputs(&self) -> Vec<ValueId> {
        [self.x].into_iter().chain(self.other).chain(self.mix.map(|m| m.0)).collect()
    }

    /// The same step on other values.
    pub fn moved(self, to: impl Fn(ValueId) -> ValueId) -> Self {
        let mix = self.mix.map(|(router, weight)| (to(router), weight));
        AltUp { x: to(self.x), other: self.other.map(&to), mix, ..self }
    }
}
