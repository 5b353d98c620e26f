//! 4-bit floats with a scale byte per group: mxfp4 and nvfp4, which ggml stores with other bytes in another order.

use std::ops::Range;

use ggml_format::{ByteSource, GgmlType, SourceError, dequantize};

use super::context::{Context, bad_data};
use super::view::View;

/// A matrix of E2M1 codes, two neighbours a byte, the first in the low half, and a scale byte per group of a row.
#[derive(Clone, Debug)]
pub struct Microscaled {
    /// Bytes of codes: half as many columns as values.
    pub codes: View,
    /// A scale byte per group.
    pub scales: View,
    /// [`GgmlType::MXFP4`] (groups of 32, powers of two) or [`GgmlType::NVFP4`] (groups of 16, E4M3).
    pub ty: GgmlType,
}

/// A format.
struct Layout {
    /// Values of a group.
    group: usize,
    /// Groups of a ggml block.
    n_group: usize,
    /// Scale bytes from here on are no finite positive numbers.
    invalid: u8,
}

const MXFP4: Layout = Layout { group: 32, n_group: 1, invalid: 0xff };
const NVFP4: Layout = Layout { group: 16, n_group: 4, invalid: 0x7f };

impl Microscaled {
    fn layout(&self) -> &'static Layout {
        if self.ty == GgmlType::MXFP4 { &MXFP4 } else { &NVFP4 }
    }

    /// The reason why these parts do not belong together, if any.
    pub(super) fn mismatch(&self) -> Option<String> {
        let (codes, scales, group) = (&self.codes, &self.scales, self.layout().group as u64);
        let n_byte = scales.n_col.checked_mul(group / 2);
        let fits = codes.n_row == scales.n_row && n_byte == Some(codes.n_col);
        let is_bytes = codes.dtype.bits() == 8 && scales.dtype.bits() == 8;
        (!fits || !is_bytes).then(|| {
            format!(
                "bytes of codes and a scale byte per {group} values, found {:?} {} x {} and {:?} {} x {}",
                codes.dtype, codes.n_row, codes.n_col, scales.dtype, scales.n_row, scales.n_col
            )
        })
    }

    /// Reads whole ggml blocks.
    pub(super) async fn blocks<S: ByteSource>(
        &self,
        context: &Context<S>,
        rows: Range<u64>,
        cols: Range<u64>,
        out: &mut [u8],
    ) -> Result<(), SourceError> {
        let Layout { group, n_group, invalid } = *self.layout();
        let half = group / 2;
        let n_value = (rows.end - rows.start) as usize * (cols.end - cols.start) as usize;
        let mut codes = vec![0; n_value / 2];
        self.codes.bytes(context, rows.clone(), cols.start / 2..cols.end / 2, &mut codes).await?;
        let mut scales = vec![0; n_value / group];
        let groups = cols.start / group as u64..cols.end / group as u64;
        self.scales.bytes(context, rows, groups, &mut scales).await?;
        if let Some(scale) = scales.iter().find(|&&scale| scale >= invalid) {
            let why = format!("expected scales of {} below {invalid:#04x}, found {scale:#04x}", self.ty);
            return Err(bad_data(context.files[self.scales.file].name(), why));
        }
        let blocks = out.chunks_exact_mut(self.ty.block_bytes());
        let inputs = scales.chunks_exact(n_group).zip(codes.chunks_exact(half * n_group));
        for (block, (scales, codes)) in blocks.zip(inputs) {
            let (head, body) = block.split_at_mut(n_group);
            head.copy_from_slice(scales);
            for (to, from) in body.chunks_exact_mut(half).zip(codes.chunks_exact(half)) {
                split_halves(from, to);
            }
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
        let n = self.ty.block_len() as u64;
        let outer = cols.start / n * n..cols.end.next_multiple_of(n);
        let n_block = (rows.end - rows.start) * (outer.end - outer.start) / n;
        let mut blocks = vec![0; n_block as usize * self.ty.block_bytes()];
        self.blocks(context, rows, outer.clone(), &mut blocks).await?;
        let mut values = vec![0.0; (n_block * n) as usize];
        dequantize(self.ty, &blocks, &mut values).expect("the blocks are whole");
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
fn split_halves(from: &[u8], to: &mut [u8]) {
    let code = |i: usize| from[i / 2] >> (4 * (i % 2)) & 15;
    let half = from.len();
    for (i, to) in to.iter_mut().enumerate() {
        *to = code(i) | code(i + half) << 4;
    }
}
