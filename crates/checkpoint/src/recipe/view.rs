//! A contiguous range of a file as a matrix of elements.

use std::ops::Range;

use ggml_format::{ByteSource, GgmlType, SourceError};

use super::context::{Context, bad_data};
use super::float8;
use crate::safetensors::{Dtype, TensorEntry};

/// Rows are read with their unused ends when those are at most so many times what is used.
const MAX_WASTE: u64 = 3;
/// Bytes that one such read takes at most.
const SPAN_BYTES: u64 = 1 << 20;

/// Elements of a file, row by row.
#[derive(Clone, PartialEq, Debug)]
pub struct View {
    /// Index of the file.
    pub file: usize,
    /// First byte in the file.
    pub offset: u64,
    /// Type of the elements.
    pub dtype: Dtype,
    /// Number of rows.
    pub n_row: u64,
    /// Elements of a row.
    pub n_col: u64,
}

impl View {
    /// A tensor as rows of its last dimension.
    pub fn of(file: usize, tensor: &TensorEntry) -> View {
        let n_col = tensor.shape.last().copied().unwrap_or(1);
        // An empty tensor has no rows, whichever size is 0; the sizes of others were multiplied when the header was
        // read.
        let n_row = match tensor.shape.split_last() {
            Some(_) if tensor.shape.contains(&0) => 0,
            Some((_, outer)) => outer.iter().fold(1, |n: u64, &size| n.saturating_mul(size)),
            None => 1,
        };
        View { file, offset: tensor.offset, dtype: tensor.dtype, n_row, n_col }
    }

    /// Number of elements.
    pub fn n_elem(&self) -> u64 {
        self.n_row * self.n_col
    }

    /// Bytes of an element of whole bytes.
    fn n_byte(&self) -> u64 {
        self.dtype.bits() / 8
    }

    /// Reads elements as they are.
    pub(super) async fn bytes<S: ByteSource>(
        &self,
        context: &Context<S>,
        rows: Range<u64>,
        cols: Range<u64>,
        out: &mut [u8],
    ) -> Result<(), SourceError> {
        let file = &context.files[self.file];
        let (row, used) = (self.n_col * self.n_byte(), (cols.end - cols.start) * self.n_byte());
        let first = cols.start * self.n_byte();
        if used == row || rows.end - rows.start <= 1 {
            return file.read_at(self.offset + rows.start * row + first, out).await;
        }
        if used == 0 {
            return Ok(());
        }
        // A span begins with the first element that is used and ends with the last one.
        let n_span = if row <= used * (1 + MAX_WASTE) { (SPAN_BYTES / row).max(1) } else { 1 };
        let mut span = Vec::new();
        for (i, out) in out.chunks_mut((n_span * used) as usize).enumerate() {
            let offset = self.offset + (rows.start + i as u64 * n_span) * row + first;
            let n_row = out.len() as u64 / used;
            if n_row == 1 {
                file.read_at(offset, out).await?;
                continue;
            }
            span.resize(((n_row - 1) * row + used) as usize, 0);
            file.read_at(offset, &mut span).await?;
            for (out, from) in out.chunks_exact_mut(used as usize).zip(span.chunks(row as usize)) {
                out.copy_from_slice(&from[..used as usize]);
            }
        }
        Ok(())
    }

    /// Reads elements of 4 bytes as words.
    pub(super) async fn words<S: ByteSource>(
        &self,
        context: &Context<S>,
        rows: Range<u64>,
        cols: Range<u64>,
    ) -> Result<Vec<u32>, SourceError> {
        let n_word = (rows.end - rows.start) as usize * (cols.end - cols.start) as usize;
        let mut bytes = vec![0; n_word * 4];
        self.bytes(context, rows, cols, &mut bytes).await?;
        Ok(bytes.as_chunks().0.iter().map(|&b| u32::from_le_bytes(b)).collect())
    }

    /// Reads elements as little-endian f32.
    pub(super) async fn values<S: ByteSource>(
        &self,
        context: &Context<S>,
        rows: Range<u64>,
        cols: Range<u64>,
        out: &mut [u8],
    ) -> Result<(), SourceError> {
        if self.dtype == Dtype::F32 {
            return self.bytes(context, rows, cols, out).await;
        }
        let n_byte = self.n_byte() as usize;
        let mut bytes = vec![0; out.len() / 4 * n_byte];
        self.bytes(context, rows, cols, &mut bytes).await?;
        decode(self.dtype, &bytes, out).map_err(|why| bad_data(context.files[self.file].name(), why))
    }
}

/// True for types that [`decode`] knows.
pub(super) fn is_number(dtype: Dtype) -> bool {
    use Dtype as D;
    matches!(
        dtype,
        D::F32
            | D::F16
            | D::BF16
            | D::F64
            | D::I8
            | D::U8
            | D::I32
            | D::I64
            | D::F8_E4M3
            | D::F8_E5M2
            | D::F8_E8M0
    )
}

/// Converts elements to f32.
fn decode(dtype: Dtype, bytes: &[u8], out: &mut [u8]) -> Result<(), String> {
    let out = out.chunks_exact_mut(4);
    match dtype {
        Dtype::F32 => each::<4>(bytes, out, f32::from_le_bytes),
        Dtype::BF16 => each::<2>(bytes, out, |b| f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16)),
        Dtype::F16 => {
            let mut values = vec![0.0; bytes.len() / 2];
            ggml_format::dequantize(GgmlType::F16, bytes, &mut values).map_err(|e| e.to_string())?;
            out.zip(values).for_each(|(out, v)| out.copy_from_slice(&v.to_le_bytes()));
        }
        Dtype::F64 => each::<8>(bytes, out, |b| f64::from_le_bytes(b) as f32),
        Dtype::I32 => each::<4>(bytes, out, |b| i32::from_le_bytes(b) as f32),
        Dtype::I64 => each::<8>(bytes, out, |b| i64::from_le_bytes(b) as f32),
        Dtype::I8 => each::<1>(bytes, out, |b| f32::from(b[0] as i8)),
        Dtype::U8 => each::<1>(bytes, out, |b| f32::from(b[0])),
        Dtype::F8_E4M3 | Dtype::F8_E5M2 | Dtype::F8_E8M0 => {
            let (table, is_nan) = float8::table(dtype);
            if let Some(code) = bytes.iter().find(|&&code| is_nan(code)) {
                return Err(format!("expected finite {dtype:?} values, found NaN (code {code:#04x})"));
            }
            each::<1>(bytes, out, |b| table[usize::from(b[0])]);
        }
        other => return Err(format!("expected numbers, found elements of type {other:?}")),
    }
    Ok(())
}

fn each<const N: usize>(bytes: &[u8], out: std::slice::ChunksExactMut<'_, u8>, f: impl Fn([u8; N]) -> f32) {
    for (out, b) in out.zip(bytes.as_chunks::<N>().0) {
        out.copy_from_slice(&f(*b).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_tensor_of_any_sizes_has_no_rows() {
        let big = 1 << 40;
        for shape in [vec![0, 4], vec![big, big, 0], vec![big, 0, big, big], vec![0]] {
            let tensor = TensorEntry { name: "x".into(), dtype: Dtype::F32, shape, offset: 0, n_byte: 0 };
            assert_eq!(View::of(0, &tensor).n_row, 0, "{:?}", tensor.shape);
        }
        let of = |shape| TensorEntry { name: "x".into(), dtype: Dtype::F32, shape, offset: 0, n_byte: 0 };
        let view = |shape| View::of(0, &of(shape));
        assert_eq!([view(vec![]).n_row, view(vec![5]).n_row, view(vec![2, 3, 5]).n_row], [1, 1, 6]);
    }
}
