//! Rows of embeddings that take the place of a prompt's tokens.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows of embeddings in place of tokens of a prompt ([`crate::Request::embeddings`]), such as the parts of an image.
/// Clones share the values.
///
/// The prefix cache knows rows by object, not by value: a cached prefix with rows is reused by prompts with a clone of
/// the same object, and by no others. Two objects are equal if one is a clone of the other.
#[derive(Clone)]
pub struct Embeddings(Arc<Inner>);

struct Inner {
    /// Key of the first row; the others follow.
    first: u64,
    width: usize,
    values: Vec<f32>,
    /// Positions of the rows, relative to that of the first; empty for running ones.
    offsets: Vec<[u32; 3]>,
    /// Positions that the rows take.
    span: usize,
}

/// Rows that are no embeddings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddingsError {
    /// No row, or part of one.
    #[error("{found} values are not rows of {width}")]
    Values {
        /// Number of values.
        found: usize,
        /// Values per row.
        width: usize,
    },
    /// Another number of positions than of rows.
    #[error("{found} positions for {expected} rows")]
    Positions {
        /// Number of positions.
        found: usize,
        /// Number of rows.
        expected: usize,
    },
    /// Rows that take more positions than there are rows.
    #[error("the rows take {found} positions, but there are only {limit} rows")]
    Span {
        /// The largest component and one more.
        found: u64,
        /// Number of rows.
        limit: usize,
    },
}

/// Distinguishes keys of rows from tokens.
const ROW: u64 = 1 << 63;

impl Embeddings {
    /// Rows of `width` values, `[n, width]`: as many as the model's embeddings have. They enter the model unchanged:
    /// scales of embeddings do not apply to them.
    ///
    /// # Errors
    /// [`EmbeddingsError::Values`] for no value, or values that are not whole rows.
    pub fn new(values: Vec<f32>, width: usize) -> Result<Self, EmbeddingsError> {
        let found = values.len();
        if found == 0 || width == 0 || found % width != 0 {
            return Err(EmbeddingsError::Values { found, width });
        }
        let span = found / width;
        Ok(Embeddings::with(values, width, Vec::new(), span))
    }

    /// The same rows at positions of three components (M-RoPE: time, height, width), relative to the position that the
    /// first row would have as a token. The token after the rows follows the largest component.
    ///
    /// # Errors
    /// [`EmbeddingsError::Positions`] unless each row has a position; [`EmbeddingsError::Span`] for a component that is
    /// not below the number of rows.
    pub fn at(&self, offsets: Vec<[u32; 3]>) -> Result<Self, EmbeddingsError> {
        let (found, n) = (offsets.len(), self.len());
        if found != n {
            return Err(EmbeddingsError::Positions { found, expected: n });
        }
        let span = offsets.iter().flatten().max().map_or(0, |most| u64::from(*most) + 1);
        if span > n as u64 {
            return Err(EmbeddingsError::Span { found: span, limit: n });
        }
        Ok(Embeddings::with(self.0.values.clone(), self.width(), offsets, span as usize))
    }

    fn with(values: Vec<f32>, width: usize, offsets: Vec<[u32; 3]>, span: usize) -> Self {
        // Keys are unique within the process, and 63 bits do not run out.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let n = (values.len() / width) as u64;
        let first = ROW | NEXT.fetch_add(n, Ordering::Relaxed);
        Embeddings(Arc::new(Inner { first, width, values, offsets, span }))
    }

    /// Number of rows, at least one.
    #[allow(clippy::len_without_is_empty, reason = "there is always a row")]
    pub fn len(&self) -> usize {
        self.0.values.len() / self.0.width
    }

    /// Values per row.
    pub fn width(&self) -> usize {
        self.0.width
    }

    /// The values of a row.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.0.values[i * self.0.width..][..self.0.width]
    }

    /// Positions of the rows, relative to the first; empty for running ones.
    pub fn offsets(&self) -> &[[u32; 3]] {
        &self.0.offsets
    }
}

impl PartialEq for Embeddings {
    fn eq(&self, other: &Self) -> bool {
        self.0.first == other.0.first
    }
}

impl Eq for Embeddings {}

impl fmt::Debug for Embeddings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Embeddings({} rows of {})", self.len(), self.width())
    }
}

/// Embeddings of a prompt, with the positions of their first rows, in order.
pub(crate) type Placed = [(usize, Embeddings)];

/// The row at a position, if there is one.
pub(crate) fn row_at(placed: &Placed, pos: usize) -> Option<(&Embeddings, usize)> {
    let n_before = placed.partition_point(|(at, _)| *at <= pos);
    let (at, rows) = placed[..n_before].last()?;
    let i = pos - at;
    (i < rows.len()).then_some((rows, i))
}

/// Components of a position; `None` if all equal it because no rows up to it have components.
pub(crate) fn components(placed: &Placed, pos: usize) -> Option<[u32; 3]> {
    // Positions that rows before this one did not take.
    let (mut n_saved, mut has_components) = (0, false);
    for (at, rows) in placed.iter().take_while(|(at, _)| *at <= pos) {
        has_components |= !rows.offsets().is_empty();
        if let Some(offset) = rows.offsets().get(pos - at) {
            return Some(offset.map(|o| (at - n_saved) as u32 + o));
        }
        if pos - at >= rows.len() {
            n_saved += rows.len() - rows.0.span;
        }
    }
    has_components.then(|| [(pos - n_saved) as u32; 3])
}

/// Keys of positions for the prefix cache: of tokens, or of the rows in their place.
pub(crate) fn keys(placed: &Placed, tokens: &[u32], range: Range<usize>) -> Vec<u64> {
    let key = |pos: usize| match row_at(placed, pos) {
        Some((rows, i)) => rows.0.first + i as u64,
        None => tokens[pos].into(),
    };
    range.map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(n: usize) -> Embeddings {
        Embeddings::new(vec![0.5; 2 * n], 2).expect("whole rows")
    }

    #[test]
    fn rows_that_are_none_are_errors_with_the_numbers() {
        let error = |n, width| Embeddings::new(vec![0.0; n], width).expect_err("no rows").to_string();
        assert_eq!(error(7, 4), "7 values are not rows of 4");
        assert_eq!(error(0, 4), "0 values are not rows of 4");
        assert_eq!(error(7, 0), "7 values are not rows of 0");
        let e = rows(2).at(vec![[0; 3]]).expect_err("a row without a position");
        assert_eq!(e.to_string(), "1 positions for 2 rows");
        let e = rows(2).at(vec![[0; 3], [0, u32::MAX, 0]]).expect_err("a far position");
        assert_eq!(e.to_string(), "the rows take 4294967296 positions, but there are only 2 rows");
    }

    #[test]
    fn positions_go_on_after_the_largest_component() {
        // An image of 2 x 3 rows at 2, and one of 2 x 2 rows at 9, between tokens.
        let grid = |h: u32, w: u32| (0..h * w).map(|i| [0, i / w, i % w]).collect::<Vec<_>>();
        let placed =
            [(2, rows(6).at(grid(2, 3)).expect("an image")), (9, rows(4).at(grid(2, 2)).expect("another"))];
        let found: Vec<_> = (0..15).map(|pos| components(&placed, pos)).collect();
        let text = |p: u32| Some([p; 3]);
        assert_eq!(found[..2], [None, None]);
        assert_eq!(found[2..8], [[2, 2, 2], [2, 2, 3], [2, 2, 4], [2, 3, 2], [2, 3, 3], [2, 3, 4]].map(Some));
        assert_eq!(found[8], text(5));
        assert_eq!(found[9..13], [[6, 6, 6], [6, 6, 7], [6, 7, 6], [6, 7, 7]].map(Some));
        assert_eq!(found[13..], [text(8), text(9)]);
        // Rows at running positions need no components.
        assert_eq!(components(&[(1, rows(3))], 9), None);
    }

    #[test]
    fn keys_of_rows_are_those_of_their_object() {
        let (a, b) = (rows(2), rows(2));
        let of = |rows: &Embeddings| keys(&[(1, rows.clone())], &[7, 0, 0, 7], 0..4);
        assert_eq!(of(&a), of(&a.clone()));
        assert_ne!(of(&a)[1..3], of(&b)[1..3]);
        assert_eq!((of(&a)[0], of(&a)[3]), (7, 7));
        assert!(of(&a)[1..3].iter().all(|key| *key > u64::from(u32::MAX)));
        assert_ne!(of(&a.at(vec![[0; 3]; 2]).expect("positions"))[1], of(&a)[1]);
    }
}
