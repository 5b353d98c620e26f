//! Indices of weights and values.

/// Index of a weight in [`Graph::weights`](crate::Graph::weights).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WeightId(pub usize);

/// Index of a value in [`Graph::widths`](crate::Graph::widths).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub usize);
