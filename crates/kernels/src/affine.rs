//! Scales and biases of the results of products.

/// (scale, bias) pairs of a product's results: r becomes r * scale + bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Affine {
    /// Word of `aux` at which the pairs begin.
    pub at: u32,
    /// Which pair a result has.
    pub by: AffineBy,
}

/// The pair of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AffineBy {
    /// That of its row; rows of all experts are counted.
    Row,
    /// That of its column; by experts, of its token.
    Column,
}

impl Affine {
    /// Constants of a kernel of one column, which has the first pair if pairs are by column.
    pub(crate) fn of_one(self) -> impl Iterator<Item = (&'static str, f64)> {
        let first = (self.by == AffineBy::Column).then_some(("AFF_ROW", 0.0));
        [("AFFINE", 1.0), ("AFF", self.at.into())].into_iter().chain(first)
    }

    /// Constants of a kernel of many columns.
    pub(crate) fn of_many(self) -> impl Iterator<Item = (&'static str, f64)> {
        let next = (self.by == AffineBy::Column).then_some(("AFF_COL", 2.0));
        self.of_one().chain(next)
    }
}
