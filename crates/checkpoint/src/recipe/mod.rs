//! Recipes: how the rows of a tensor are made of ranges of files.
//!
//! A [`Recipe`] is plain data. It gives any rows of a matrix (a tensor of more dimensions is a matrix whose rows are
//! those of its last dimension) as f32, and often as the bytes of a ggml type, without rounding: [`Recipe::native`].

mod blocks;
mod context;
mod eval;
mod float8;
mod microscaled;
mod node;
mod nvfp4;
mod quantized;
mod read;
mod view;

use ggml_format::GgmlType;

pub(crate) use context::Context;
pub use microscaled::Microscaled;
pub use node::Strides;
pub use nvfp4::{MatrixScale, Nvfp4};
pub use quantized::{Codes, Index, Order, Packing, Quantized, Zero};
pub use view::View;

use node::{Function, Node};

/// Longest row of a matrix that is transposed or quantised, in values: rows of this length are read whole.
pub const MAX_ROW: u64 = 1 << 24;

/// Operands that do not fit an operation.
#[derive(Clone, Debug, thiserror::Error)]
#[error("expected {expected}, found {found}")]
pub struct RecipeError {
    expected: String,
    found: String,
}

fn wrong<T>(expected: impl Into<String>, found: impl Into<String>) -> Result<T, RecipeError> {
    Err(RecipeError { expected: expected.into(), found: found.into() })
}

/// The rows of a matrix, made of ranges of files.
///
/// # Example
/// ```
/// use chaski_checkpoint::{Dtype, Recipe, View};
/// // The first tensor of file 0: 64 rows of 32 values in bf16, as a projection to 4 heads of RoPE.
/// let view = View { file: 0, offset: 136, dtype: Dtype::BF16, n_row: 64, n_col: 32 };
/// let recipe = Recipe::plain(view)?.rope_rows(4)?;
/// assert_eq!((recipe.n_row(), recipe.n_col(), recipe.native().name()), (64, 32, "bf16"));
/// # Ok::<(), chaski_checkpoint::RecipeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Recipe {
    node: Node,
    n_row: u64,
    n_col: u64,
    native: GgmlType,
    /// Factors of the values of the native type: none, one, or one for each of stacked matrices.
    factors: Vec<MatrixScale>,
}

impl Recipe {
    /// A recipe whose native type has the values themselves.
    fn of(node: Node, n_row: u64, n_col: u64, native: GgmlType) -> Recipe {
        Recipe { node, n_row, n_col, native, factors: Vec::new() }
    }

    /// The elements of a file.
    ///
    /// # Errors
    /// [`RecipeError`] if they are no numbers, or too many.
    pub fn plain(view: View) -> Result<Recipe, RecipeError> {
        if !view::is_number(view.dtype) {
            return wrong("numbers", format!("elements of type {:?}", view.dtype));
        }
        let (n_row, n_col) = (view.n_row, view.n_col);
        if n_row.checked_mul(n_col).is_none_or(|n| n > i64::MAX as u64 / 16) {
            return wrong("fewer than 2^59 values", format!("{n_row} x {n_col}"));
        }
        let native = view.dtype.ggml().unwrap_or(GgmlType::F32);
        Ok(Recipe::of(Node::Plain(view), n_row, n_col, native))
    }

    /// Codes with scales.
    ///
    /// # Errors
    /// [`RecipeError`] if codes, scales and zero points do not belong together.
    pub fn quantized(quantized: Quantized) -> Result<Recipe, RecipeError> {
        quantized.check()?;
        Recipe::plain(quantized.scale.clone())?;
        let Codes { n_row, n_col, .. } = quantized.codes;
        Ok(Recipe::of(Node::Quantized(Box::new(quantized)), n_row, n_col, GgmlType::F32))
    }

    /// Codes with scale bytes, whose native type is mxfp4.
    ///
    /// # Errors
    /// [`RecipeError`] if codes and scales do not belong together.
    pub fn microscaled(microscaled: Microscaled) -> Result<Recipe, RecipeError> {
        microscaled.check()?;
        let (n_row, n_byte) = (microscaled.codes.n_row, microscaled.codes.n_col);
        let Some(n_col) = n_byte.checked_mul(2) else {
            return wrong("rows of fewer than 2^64 values", format!("{n_byte} bytes of two each"));
        };
        let node = Node::Microscaled(Box::new(microscaled));
        Ok(Recipe::of(node, n_row, n_col, microscaled::TYPE))
    }

    /// Codes with two levels of scales, whose native type is nvfp4 with a [`factor`](Recipe::factors); f32 for rows
    /// that are no whole blocks.
    ///
    /// # Errors
    /// [`RecipeError`] if codes and scales do not belong together.
    pub fn nvfp4(nvfp4: Nvfp4) -> Result<Recipe, RecipeError> {
        nvfp4.check()?;
        let (n_row, n_byte) = (nvfp4.codes.n_row, nvfp4.codes.n_col);
        let Some(n_col) = n_byte.checked_mul(2) else {
            return wrong("rows of fewer than 2^64 values", format!("{n_byte} bytes of two each"));
        };
        let factors = vec![nvfp4.matrix.clone()];
        let recipe = Recipe::of(Node::Nvfp4(Box::new(nvfp4)), n_row, n_col, GgmlType::F32);
        if !n_col.is_multiple_of(nvfp4::TYPE.block_len() as u64) {
            return Ok(recipe);
        }
        Ok(Recipe { native: nvfp4::TYPE, factors, ..recipe })
    }

    /// Numbers in memory, in rows of `n_col`.
    ///
    /// # Errors
    /// [`RecipeError`] unless they are whole rows.
    pub fn numbers(values: Vec<f32>, n_col: u64) -> Result<Recipe, RecipeError> {
        let n = values.len() as u64;
        if n_col == 0 || !n.is_multiple_of(n_col) {
            return wrong(format!("rows of {n_col} values"), format!("{n} values"));
        }
        Ok(Recipe::of(Node::Numbers { values, n_col }, n / n_col, n_col, GgmlType::F32))
    }

    /// Rows of matrices below each other. The native type is f32 unless all have the same, with the same factor.
    ///
    /// # Errors
    /// [`RecipeError`] unless there is one, and all have rows of one length.
    pub fn concat(parts: Vec<Recipe>) -> Result<Recipe, RecipeError> {
        let factors = parts.first().map(|part| part.factors.clone()).unwrap_or_default();
        let is_same = factors.len() <= 1 && parts.iter().all(|part| part.factors == factors);
        Ok(Recipe::below(parts)?.with_factors(is_same.then_some(factors)))
    }

    /// Matrices below each other, such as those of experts. The native type is f32 unless all have the same, each with
    /// one factor or none.
    ///
    /// # Errors
    /// As [`Recipe::concat`].
    pub fn stack(parts: Vec<Recipe>) -> Result<Recipe, RecipeError> {
        let n = parts.first().map_or(0, |part| part.factors.len());
        let is_each = n <= 1 && parts.iter().all(|part| part.factors.len() == n);
        let factors = parts.iter().flat_map(|part| part.factors.iter().cloned()).collect();
        Ok(Recipe::below(parts)?.with_factors(is_each.then_some(factors)))
    }

    /// The same rows with these factors of the native type, or as f32.
    fn with_factors(self, factors: Option<Vec<MatrixScale>>) -> Recipe {
        match factors {
            Some(factors) => Recipe { factors, ..self },
            None => Recipe::of(self.node, self.n_row, self.n_col, GgmlType::F32),
        }
    }

    /// Rows below each other, without their factors.
    fn below(parts: Vec<Recipe>) -> Result<Recipe, RecipeError> {
        let Some(first) = parts.first() else { return wrong("a matrix", "none") };
        let (n_col, native) = (first.n_col, first.native);
        if let Some(other) = parts.iter().find(|p| p.n_col != n_col) {
            return wrong(format!("rows of {n_col} values"), format!("rows of {}", other.n_col));
        }
        let native = if parts.iter().all(|p| p.native == native) { native } else { GgmlType::F32 };
        let mut n_row = 0u64;
        let mut ends = Vec::with_capacity(parts.len());
        for part in &parts {
            n_row = n_row.saturating_add(part.n_row);
            ends.push(n_row);
        }
        let node = Node::Concat { parts: parts.into_iter().map(|p| p.node).collect(), ends };
        Ok(Recipe::of(node, n_row, n_col, native))
    }

    /// Number of rows.
    pub fn n_row(&self) -> u64 {
        self.n_row
    }

    /// Values of a row.
    pub fn n_col(&self) -> u64 {
        self.n_col
    }

    /// The type that the recipe gives without rounding; f32 if there is no other.
    pub fn native(&self) -> GgmlType {
        self.native
    }

    /// The factors by which values of the native type are multiplied, as one row: of the matrix, or of each of stacked
    /// ones. None for most types.
    pub fn factors(&self) -> Option<Recipe> {
        let n = self.factors.len() as u64;
        (n > 0).then(|| Recipe::of(Node::Factors(self.factors.clone()), 1, n, GgmlType::F32))
    }

    /// The same values, whose native type is f32 if it had factors.
    pub fn decoded(self) -> Recipe {
        if self.factors.is_empty() { self } else { self.with_factors(None) }
    }

    /// True if values are made of codes with scales.
    pub fn is_coded(&self) -> bool {
        self.node.is_coded()
    }

    /// The rows with these numbers.
    ///
    /// # Errors
    /// [`RecipeError`] if some do not exist.
    pub fn rows(self, map: Strides) -> Result<Recipe, RecipeError> {
        let Recipe { node, n_row: found, n_col, native, factors } = self;
        match (map.n(), map.end()) {
            (Some(n_row), Some(end)) if end <= found => {
                let rows = Recipe::of(Node::Rows { of: Box::new(node), map }, n_row, n_col, native);
                // Rows of several matrices are no whole ones.
                Ok(rows.with_factors((factors.len() <= 1).then_some(factors)))
            }
            (_, end) => wrong(format!("at least {} rows", end.unwrap_or(u64::MAX)), found.to_string()),
        }
    }

    /// The columns with these numbers. The native type stays if it has no blocks.
    ///
    /// # Errors
    /// [`RecipeError`] if some do not exist.
    pub fn cols(self, map: Strides) -> Result<Recipe, RecipeError> {
        let native = self.blockless();
        let Recipe { node, n_row, n_col: found, .. } = self;
        match (map.n(), map.end()) {
            (Some(n_col), Some(end)) if end <= found && found <= MAX_ROW => {
                Ok(Recipe::of(Node::Cols { of: Box::new(node), map }, n_row, n_col, native))
            }
            (_, end) => {
                let expected = format!("{} to {MAX_ROW} columns", end.unwrap_or(u64::MAX));
                wrong(expected, found.to_string())
            }
        }
    }

    /// Rows of RoPE as ggml's Llama has them: the two halves of each head become neighbours.
    ///
    /// # Errors
    /// [`RecipeError`] unless the rows are heads of even size.
    pub fn rope_rows(self, n_head: u64) -> Result<Recipe, RecipeError> {
        if n_head == 0 || !self.n_row.is_multiple_of(n_head.saturating_mul(2)) {
            return wrong(format!("rows of {n_head} heads of even size"), format!("{} rows", self.n_row));
        }
        let half = self.n_row / n_head / 2;
        self.rows(Strides::swapped(n_head, 2, half, 1))
    }

    /// x + c of all values.
    pub fn plus(self, c: f32) -> Recipe {
        self.each(Function::Add(c))
    }

    /// x c of all values.
    pub fn times(self, c: f32) -> Recipe {
        self.each(Function::Scale(c))
    }

    /// -exp(x) of all values.
    pub fn neg_exp(self) -> Recipe {
        self.each(Function::NegExp)
    }

    fn each(self, f: Function) -> Recipe {
        Recipe::of(Node::Each { of: Box::new(self.node), f }, self.n_row, self.n_col, GgmlType::F32)
    }

    /// The same values in rows of `n_col`. The native type stays if it has no blocks.
    ///
    /// # Errors
    /// [`RecipeError`] unless the values are whole rows.
    pub fn fold(self, n_col: u64) -> Result<Recipe, RecipeError> {
        if n_col == self.n_col {
            return Ok(self);
        }
        let is_short = n_col > 0 && n_col <= MAX_ROW && self.n_col <= MAX_ROW;
        let n = self.n_row.checked_mul(self.n_col).filter(|n| is_short && n.is_multiple_of(n_col));
        let Some(n) = n else {
            return wrong(
                format!("rows of {n_col} values, at most {MAX_ROW}"),
                format!("{} x {}", self.n_row, self.n_col),
            );
        };
        let native = self.blockless();
        // The elements of a file have any shape.
        let node = match self.node {
            Node::Plain(view) => Node::Plain(View { n_row: n / n_col, n_col, ..view }),
            node => Node::Fold { of: Box::new(node), from: self.n_col, to: n_col },
        };
        Ok(Recipe::of(node, n / n_col, n_col, native))
    }

    /// Matrices of `n_row` rows below each other, each transposed. The native type stays if it has no blocks.
    ///
    /// # Errors
    /// [`RecipeError`] unless the rows are whole matrices, for columns of more than [`MAX_ROW`] values, and for more
    /// than three transpositions within each other.
    pub fn transpose(self, n_row: u64) -> Result<Recipe, RecipeError> {
        if n_row == 0 || !self.n_row.is_multiple_of(n_row) || n_row > MAX_ROW {
            return wrong(
                format!("matrices of {n_row} rows, at most {MAX_ROW}"),
                format!("{} rows", self.n_row),
            );
        }
        let native = self.blockless();
        let n_col = self.n_col;
        let Some(n_row_all) = (self.n_row / n_row).checked_mul(n_col) else {
            return wrong("fewer than 2^64 rows", format!("{} x {n_col} transposed", self.n_row));
        };
        let node = Node::Transpose { of: Box::new(self.node), n_row, n_col };
        if !node.fits_levels() {
            return wrong("at most 3 transpositions within each other", "more");
        }
        Ok(Recipe::of(node, n_row_all, n_row, native))
    }

    /// Values of 4-bit integers (code - 8) * scale whose native type is q4_0.
    ///
    /// # Shapes
    /// `self`: `[n_row, n_col]`; `scales`: `[n_row, n_col / 32]`
    ///
    /// # Errors
    /// [`RecipeError`] if the shapes do not match.
    pub fn as_q4_0(self, scales: Recipe) -> Result<Recipe, RecipeError> {
        let is_whole = self.n_col.is_multiple_of(32);
        if !is_whole || (scales.n_row, scales.n_col) != (self.n_row, self.n_col / 32) {
            let expected = format!("a scale for each 32 of {} x {} values", self.n_row, self.n_col);
            return wrong(expected, format!("{} x {}", scales.n_row, scales.n_col));
        }
        let node = Node::Blocks { values: Box::new(self.node), scales: Box::new(scales.node) };
        Ok(Recipe::of(node, self.n_row, self.n_col, GgmlType::Q4_0))
    }

    /// The native type, or f32 if that has blocks.
    fn blockless(&self) -> GgmlType {
        if self.native.block_len() == 1 { self.native } else { GgmlType::F32 }
    }

    /// Fails if tensors of this type cannot be made.
    ///
    /// # Errors
    /// [`RecipeError`]
    pub fn check(&self, ty: GgmlType) -> Result<(), RecipeError> {
        if !self.n_col.is_multiple_of(ty.block_len() as u64) {
            return wrong(
                format!("rows of a multiple of {} values for {ty}", ty.block_len()),
                self.n_col.to_string(),
            );
        }
        if ty == self.native || ty == GgmlType::F32 {
            return Ok(());
        }
        if ty.info().quantize.is_none() {
            return wrong("a type that can be quantised to", ty.name());
        }
        if self.n_col > MAX_ROW {
            return wrong(format!("rows of at most {MAX_ROW} values"), self.n_col.to_string());
        }
        Ok(())
    }
}
