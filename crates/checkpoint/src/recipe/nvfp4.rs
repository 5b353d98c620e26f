//! nvfp4: 4-bit floats with an 8-bit float per group of 16, and a number for the whole matrix, which GGUF has as a
//! tensor of its own.

use std::ops::Range;

use ggml_format::{ByteSource, GgmlType, SourceError};

use super::context::{Context, bad_data};
use super::float8;
use super::microscaled::{groups, split_halves};
use super::view::View;
use super::{RecipeError, wrong};
use crate::safetensors::Dtype;

/// A matrix of E2M1 codes, two a byte, the first in the low half, with an E4M3 scale for each 16 of a row.
#[derive(Clone, Debug)]
pub struct Nvfp4 {
    /// Bytes of codes: half as many columns as values.
    pub codes: View,
    /// A scale per group, at least 0.
    pub scales: View,
    /// The factor of all values.
    pub matrix: MatrixScale,
}

/// A number in a file that all values of a matrix are multiplied with, or divided by.
#[derive(Clone, PartialEq, Debug)]
pub struct MatrixScale {
    /// Its place, a single element.
    pub view: View,
    /// True if values are divided by it.
    pub divides: bool,
}

/// The type of ggml.
pub(super) const TYPE: GgmlType = GgmlType::NVFP4;
/// Values of a scale.
const GROUP: usize = 16;
/// Scales of a block, which is these and then the codes.
const PER_BLOCK: usize = 4;
/// Bytes of the codes of a group.
const GROUP_BYTES: usize = GROUP / 2;

/// The values of codes.
const E2M1: [f32; 16] =
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

impl MatrixScale {
    /// Reads the number as it is.
    async fn number<S: ByteSource>(&self, context: &Context<S>) -> Result<f32, SourceError> {
        let mut bytes = [0; 4];
        self.view.values(context, 0..1, 0..1, &mut bytes).await?;
        let number = f32::from_le_bytes(bytes);
        let is_good = if self.divides { number.is_normal() } else { number.is_finite() };
        if is_good && number >= 0.0 {
            return Ok(number);
        }
        let why = format!("expected a positive scale of a matrix in {TYPE}, found {number}");
        Err(bad_data(context.files[self.view.file].name(), why))
    }

    /// Reads the factor of the values.
    pub(super) async fn factor<S: ByteSource>(&self, context: &Context<S>) -> Result<f32, SourceError> {
        let number = self.number(context).await?;
        Ok(if self.divides { 1.0 / number } else { number })
    }
}

impl Nvfp4 {
    /// Fails if these parts do not belong together.
    pub(super) fn check(&self) -> Result<(), RecipeError> {
        let (codes, scales, matrix) = (&self.codes, &self.scales, &self.matrix.view);
        let n_byte = scales.n_col.checked_mul(GROUP_BYTES as u64);
        if codes.dtype != Dtype::U8 || codes.n_row != scales.n_row || n_byte != Some(codes.n_col) {
            let found = format!(
                "{:?} {} x {} and {} x {}",
                codes.dtype, codes.n_row, codes.n_col, scales.n_row, scales.n_col
            );
            return wrong(format!("bytes of codes and a scale per {GROUP} values"), found);
        }
        if scales.dtype != Dtype::F8_E4M3 {
            return wrong("scales of type F8_E4M3", format!("{:?}", scales.dtype));
        }
        if (matrix.n_row, matrix.n_col) != (1, 1) || matrix.dtype != Dtype::F32 {
            let found = format!("{:?} {} x {}", matrix.dtype, matrix.n_row, matrix.n_col);
            return wrong("one scale of type F32 for the matrix", found);
        }
        Ok(())
    }

    /// Reads the codes and scale bytes of whole groups.
    async fn groups<S: ByteSource>(
        &self,
        context: &Context<S>,
        rows: Range<u64>,
        cols: Range<u64>,
    ) -> Result<(Vec<u8>, Vec<u8>), SourceError> {
        let (codes, mut scales) = groups(context, &self.codes, &self.scales, GROUP, rows, cols).await?;
        for scale in &mut scales {
            match *scale {
                // Blocks have no bit for a sign.
                0x80 => *scale = 0,
                0..=0x7e => {}
                bad => {
                    let why = format!("expected scales of {TYPE} from 0 to 448, found the code {bad:#04x}");
                    return Err(bad_data(context.files[self.scales.file].name(), why));
                }
            }
        }
        Ok((codes, scales))
    }

    /// Reads whole ggml blocks, without the scale of the matrix.
    pub(super) async fn blocks<S: ByteSource>(
        &self,
        context: &Context<S>,
        rows: Range<u64>,
        cols: Range<u64>,
        out: &mut [u8],
    ) -> Result<(), SourceError> {
        let (codes, scales) = self.groups(context, rows, cols).await?;
        let parts = scales.chunks_exact(PER_BLOCK).zip(codes.chunks_exact(PER_BLOCK * GROUP_BYTES));
        for (block, (scales, codes)) in out.chunks_exact_mut(TYPE.block_bytes()).zip(parts) {
            let (head, to) = block.split_at_mut(PER_BLOCK);
            head.copy_from_slice(scales);
            for (to, from) in to.chunks_exact_mut(GROUP_BYTES).zip(codes.chunks_exact(GROUP_BYTES)) {
                split_halves(from, to);
            }
        }
        Ok(())
    }

    /// Reads values as little-endian f32, with the scale of the matrix.
    pub(super) async fn values<S: ByteSource>(
        &self,
        context: &Context<S>,
        rows: Range<u64>,
        cols: Range<u64>,
        out: &mut [u8],
    ) -> Result<(), SourceError> {
        // Whole groups around the columns.
        let n = GROUP as u64;
        let outer = cols.start / n * n..cols.end.next_multiple_of(n);
        let (codes, scales) = self.groups(context, rows, outer.clone()).await?;
        let number = self.matrix.number(context).await?;
        let table = float8::table(Dtype::F8_E4M3).0;
        // In the order of the programs that pack such matrices: the scales first.
        let step = |scale: u8| {
            let scale = table[usize::from(scale)];
            if self.matrix.divides { scale / number } else { scale * number }
        };
        let steps: Vec<f32> = scales.into_iter().map(step).collect();
        let (width, skip) = ((outer.end - outer.start) as usize, (cols.start - outer.start) as usize);
        let n_col = (cols.end - cols.start) as usize;
        for (row, out) in out.chunks_exact_mut((n_col * 4).max(1)).enumerate() {
            for (i, out) in out.chunks_exact_mut(4).enumerate() {
                let at = row * width + skip + i;
                let code = codes[at / 2] >> (4 * (at % 2)) & 15;
                out.copy_from_slice(&(E2M1[usize::from(code)] * steps[at / GROUP]).to_le_bytes());
            }
        }
        Ok(())
    }
}

/// Reads some factors of matrices as little-endian f32.
pub(super) async fn factors<S: ByteSource>(
    scales: &[MatrixScale],
    context: &Context<S>,
    out: &mut [u8],
) -> Result<(), SourceError> {
    for (scale, out) in scales.iter().zip(out.chunks_exact_mut(4)) {
        out.copy_from_slice(&scale.factor(context).await?.to_le_bytes());
    }
    Ok(())
}
