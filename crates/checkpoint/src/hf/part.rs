//! A tensor on its way from the checkpoint to the GGUF file, and the transformations of all families.

use super::config::{Config, ConfigError};
use crate::recipe::{Recipe, RecipeError, Strides};

/// A tensor that cannot be transformed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartError {
    /// Its recipe does not allow it.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// The configuration lacks a number.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Another shape.
    #[error("expected the shape {expected}, found {found:?}")]
    Shape {
        /// The shape that the family has.
        expected: String,
        /// The shape of the checkpoint, rows first.
        found: Vec<u64>,
    },
}

/// A recipe with all dimensions of the tensor.
#[derive(Clone, Debug)]
pub struct Part {
    /// Sizes, outermost first.
    pub shape: Vec<u64>,
    /// Its rows.
    pub recipe: Recipe,
}

impl Part {
    /// The number of rows: those of a matrix, or the values of a vector.
    pub(super) fn n_row(&self) -> u64 {
        self.shape.first().copied().unwrap_or(1)
    }

    /// The rows of a matrix or the values of a vector with these numbers.
    pub(super) fn pick(self, map: Strides) -> Result<Part, PartError> {
        let n = map.n().unwrap_or(u64::MAX);
        match self.shape[..] {
            [_] => Ok(Part { shape: vec![n], recipe: self.recipe.cols(map)? }),
            [_, n_col] => Ok(Part { shape: vec![n, n_col], recipe: self.recipe.rows(map)? }),
            _ => Err(PartError::Shape { expected: "of a matrix or a vector".into(), found: self.shape }),
        }
    }

    /// The same values in another shape.
    pub(super) fn reshape(self, shape: &[u64]) -> Result<Part, PartError> {
        let n: Option<u64> = shape.iter().try_fold(1u64, |n, &size| n.checked_mul(size));
        if n.is_none() || n != self.recipe.n_row().checked_mul(self.recipe.n_col()) {
            return Err(PartError::Shape { expected: format!("of {shape:?}"), found: self.shape });
        }
        let recipe = self.recipe.fold(shape.last().copied().unwrap_or(1))?;
        Ok(Part { shape: shape.to_vec(), recipe })
    }

    /// Fails unless there are so many dimensions.
    pub(super) fn rank(self, n: usize) -> Result<Part, PartError> {
        if self.shape.len() == n {
            return Ok(self);
        }
        Err(PartError::Shape { expected: format!("of {n} dimensions"), found: self.shape })
    }

    /// Every matrix transposed.
    pub(super) fn swapped(self) -> Result<Part, PartError> {
        let n = self.shape.len();
        let mut part = if n < 2 { self.rank(2)? } else { self };
        let recipe = part.recipe.transpose(part.shape[n - 2])?;
        part.shape.swap(n - 2, n - 1);
        Ok(Part { shape: part.shape, recipe })
    }
}

/// As it is.
pub(super) fn same(_: &Config, part: Part) -> Result<Part, PartError> {
    Ok(part)
}

/// Norms whose weights are stored without their 1.
pub(super) fn plus_one(_: &Config, part: Part) -> Result<Part, PartError> {
    Ok(Part { recipe: part.recipe.plus(1.0), ..part })
}

/// A of state space models, from its logarithm.
pub(super) fn neg_exp(_: &Config, part: Part) -> Result<Part, PartError> {
    Ok(Part { recipe: part.recipe.neg_exp(), ..part })
}

/// A column: `[n]` to `[n, 1]`.
pub(super) fn column(_: &Config, part: Part) -> Result<Part, PartError> {
    let n = part.n_row();
    part.rank(1)?.reshape(&[n, 1])
}

/// A of Mamba 2: a column of -exp(x).
pub(super) fn neg_exp_column(c: &Config, part: Part) -> Result<Part, PartError> {
    neg_exp(c, column(c, part)?)
}

/// Weights of a depthwise convolution: `[channels, 1, n]` to `[channels, n]`.
pub(super) fn squeeze(_: &Config, part: Part) -> Result<Part, PartError> {
    let part = part.rank(3)?;
    let shape = [part.shape[0].saturating_mul(part.shape[1]), part.shape[2]];
    part.reshape(&shape)
}

/// Rows, or a bias, of the heads of q.
pub(super) fn rope_q(c: &Config, part: Part) -> Result<Part, PartError> {
    rope(part, c.n_head()?)
}

/// Rows, or a bias, of the heads of k.
pub(super) fn rope_k(c: &Config, part: Part) -> Result<Part, PartError> {
    rope(part, c.n_head_kv()?)
}

/// The halves of each head become neighbours.
fn rope(part: Part, n_head: u32) -> Result<Part, PartError> {
    let (n, n_head) = (part.n_row(), u64::from(n_head));
    if n_head == 0 || !n.is_multiple_of(2 * n_head) {
        return Err(PartError::Shape {
            expected: format!("of {n_head} heads of even size"),
            found: part.shape,
        });
    }
    part.pick(Strides::swapped(n_head, 2, n / n_head / 2, 1))
}

/// The first half of the rows, as of a gate above its input; of each expert if there are several.
pub(super) fn first_half(_: &Config, part: Part) -> Result<Part, PartError> {
    half(part, 0)
}

/// The second half of the rows.
pub(super) fn second_half(_: &Config, part: Part) -> Result<Part, PartError> {
    half(part, 1)
}

fn half(part: Part, which: u64) -> Result<Part, PartError> {
    let n = part.shape.len();
    if !(2..=3).contains(&n) || part.shape[n - 2] % 2 != 0 {
        return Err(PartError::Shape {
            expected: "of matrices with an even number of rows".into(),
            found: part.shape,
        });
    }
    let mut shape = part.shape;
    let n_row = shape[n - 2] / 2;
    let n_mat = shape[..n - 2].iter().product();
    shape[n - 2] = n_row;
    let recipe = part.recipe.rows(Strides::new(which * n_row, &[(n_mat, 2 * n_row), (n_row, 1)]))?;
    Ok(Part { shape, recipe })
}
