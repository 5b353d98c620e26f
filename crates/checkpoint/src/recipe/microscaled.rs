//! mxfp4: 4-bit floats with a scale byte per group, which ggml stores with codes in another order.

use std::ops::Range;

use ggml_format::{ByteSource, GgmlType, SourceError, dequantize};

use super::context::{Context, bad_data};
use super::view::View;
use super::{RecipeError, wrong};

/// A matrix of E2M1 codes, two a byte, the first in the low half, and a scale 2^(byte - 127) for 32 of a row.
#[derive(Clone, Debug)]
pub struct Microscaled {
    /// Bytes of codes: half as many columns as values.
    pub codes: View,
    /// A scale byte per group.
    pub scales: View,
}

/// The type of ggml, whose blocks are the groups.
pub(super) const TYPE: GgmlType = GgmlType::MXFP4;
/// Values of a group.
pub(super) const GROUP: usize = 32;
/// The scale byte that is no number.
const NAN: u8 = 0xff;

impl Microscaled {
    /// Fails if these parts do not belong together.
    pub(super) fn check(&self) -> Result<(), RecipeError> {
        let (codes, scales) = (&self.codes, &self.scales);
        let n_byte = scales.n_col.checked_mul(GROUP as u64 / 2);
        let fits = codes.n_row == scales.n_row && n_byte == Some(codes.n_col);
        let is_bytes = codes.dtype.bits() == 8 && scales.dtype.bits() == 8;
        if fits && is_bytes {
            return Ok(());
        }
        let found = format!(
            "{:?} {} x {} and {:?} {} x {}",
            codes.dtype, codes.n_row, codes.n_col, scales.dtype, scales.n_row, scales.n_col
        );
        wrong(format!("bytes of codes and a scale byte per {GROUP} values"), found)
    }

    /// Reads whole ggml blocks.
    pub(super) async fn blocks<S: ByteSource>(
        &self,
        context: &Context<S>,
        rows: Range<u64>,
        cols: Range<u64>,
        out: &mut [u8],
    ) -> Result<(), SourceError> {
        let (codes, scales) = groups(context, &self.codes, &self.scales, GROUP, rows, cols).await?;
        if scales.contains(&NAN) {
            let why = format!("expected scales of {TYPE} below {NAN:#04x}, found {NAN:#04x}");
            return Err(bad_data(context.files[self.scales.file].name(), why));
        }
        let blocks = out.chunks_exact_mut(TYPE.block_bytes());
        for (block, (scale, codes)) in blocks.zip(scales.iter().zip(codes.chunks_exact(GROUP / 2))) {
            block[0] = *scale;
            split_halves(codes, &mut block[1..]);
        }
        Ok(())
    }

    /// Reads values as little-endian f32.
    pub(super) async fn values<S: ByteSource>(
        &self,
        context: &Context<S>,
        rows: Range<u64>,
        cols: Range<u64>,
        out: &mut [u8],
    ) -> Result<(), SourceError> {
        // Whole blocks around the columns.
        let n = GROUP as u64;
        let outer = cols.start / n * n..cols.end.next_multiple_of(n);
        let n_block = (rows.end - rows.start) * (outer.end - outer.start) / n;
        let mut blocks = vec![0; n_block as usize * TYPE.block_bytes()];
        self.blocks(context, rows, outer.clone(), &mut blocks).await?;
        let mut values = vec![0.0; (n_block * n) as usize];
        dequantize(TYPE, &blocks, &mut values).expect("the blocks are whole");
        let (width, skip) = ((outer.end - outer.start) as usize, (cols.start - outer.start) as usize);
        let n_col = (cols.end - cols.start) as usize;
        for (out, values) in out.chunks_exact_mut((n_col * 4).max(1)).zip(values.chunks_exact(width.max(1))) {
            for (out, v) in out.chunks_exact_mut(4).zip(&values[skip..]) {
                out.copy_from_slice(&v.to_le_bytes());
            }
        }
        Ok(())
    }
}

/// Codes of neighbours in a byte become codes of a group's two halves in a byte.
pub(super) fn split_halves(from: &[u8], to: &mut [u8]) {
    let code = |i: usize| from[i / 2] >> (4 * (i % 2)) & 15;
    let half = from.len();
    for (i, to) in to.iter_mut().enumerate() {
        *to = code(i) | code(i + half) << 4;
    }
}

/// Reads codes, two a byte, and a byte of scale for each `n` values: whole groups of columns.
pub(super) async fn groups<S: ByteSource>(
    context: &Context<S>,
    codes: &View,
    scales: &View,
    n: usize,
    rows: Range<u64>,
    cols: Range<u64>,
) -> Result<(Vec<u8>, Vec<u8>), SourceError> {
    let n_value = (rows.end - rows.start) as usize * (cols.end - cols.start) as usize;
    let (mut code_bytes, mut scale_bytes) = (vec![0; n_value / 2], vec![0; n_value / n]);
    codes.bytes(context, rows.clone(), cols.start / 2..cols.end / 2, &mut code_bytes).await?;
    let groups = cols.start / n as u64..cols.end / n as u64;
    scales.bytes(context, rows, groups, &mut scale_bytes).await?;
    Ok((code_bytes, scale_bytes))
}
