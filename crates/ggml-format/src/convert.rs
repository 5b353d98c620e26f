//! Conversion of whole tensors, with length checks.

use crate::types::{GgmlType, QuantizeFn, iq4_nl};

/// A length mismatch, or a conversion that is not supported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum ConvertError {
    #[error("{ty}: expected a whole number of blocks of {} bytes, found {found} bytes", .ty.block_bytes())]
    Bytes { ty: GgmlType, found: usize },
    #[error("{ty}: expected an output of {expected} values, found {found}")]
    Values { ty: GgmlType, expected: usize, found: usize },
    #[error("{ty}: expected rows of a multiple of {} values, found {found}", .ty.block_len())]
    RowLength { ty: GgmlType, found: usize },
    #[error("{ty}: expected a whole number of rows of {n_per_row} values, found {found} values")]
    Rows { ty: GgmlType, n_per_row: usize, found: usize },
    #[error("{ty}: expected an output of {expected} bytes, found {found}")]
    Room { ty: GgmlType, expected: usize, found: usize },
    #[error("{ty}: expected an importance value for each of {expected} columns, found {found}")]
    Importance { ty: GgmlType, expected: usize, found: usize },
    #[error("{ty}: dequantisation is not supported")]
    NoDequantizer { ty: GgmlType },
    #[error("{ty}: quantisation to this type is not supported")]
    NoQuantizer { ty: GgmlType },
}

/// Dequantises all blocks in `bytes` into `y`.
///
/// ```
/// use ggml_format::{GgmlType, dequantize};
/// let mut y = [0.0; 2];
/// dequantize(GgmlType::BF16, &[0x80, 0x3f, 0x00, 0xc0], &mut y)?;
/// assert_eq!(y, [1.0, -2.0]);
/// # Ok::<(), ggml_format::ConvertError>(())
/// ```
///
/// # Errors
/// If the lengths do not match.
pub fn dequantize(ty: GgmlType, bytes: &[u8], y: &mut [f32]) -> Result<(), ConvertError> {
    let convert = ty.info().dequantize.ok_or(ConvertError::NoDequantizer { ty })?;
    if !bytes.len().is_multiple_of(ty.block_bytes()) {
        return Err(ConvertError::Bytes { ty, found: bytes.len() });
    }
    let expected = bytes.len() / ty.block_bytes() * ty.block_len();
    if y.len() != expected {
        return Err(ConvertError::Values { ty, expected, found: y.len() });
    }
    convert(bytes, y);
    Ok(())
}

/// Quantises rows of `n_per_row` values; `importance` weighs the error of each column.
///
/// # Shapes
/// `x`: `[n_row, n_per_row]`; `importance`: `[n_per_row]`, not negative; `out`: the rows' bytes
///
/// # Errors
/// If the lengths do not match, and for types that have no quantiser ([`crate::TypeInfo::quantize`]).
pub fn quantize(
    ty: GgmlType,
    x: &[f32],
    n_per_row: usize,
    importance: Option<&[f32]>,
    out: &mut [u8],
) -> Result<(), ConvertError> {
    rows_of(ty, ty.info().quantize, x, n_per_row, importance, out)
}

/// Quantises KV cache rows the way devices write them: as [`quantize`], but without the search for a scale
/// that some formats do.
///
/// # Errors
/// As [`quantize`].
pub fn quantize_cells(ty: GgmlType, x: &[f32], n_per_row: usize, out: &mut [u8]) -> Result<(), ConvertError> {
    let convert = match ty {
        GgmlType::IQ4_NL => Some((|x, _, out| iq4_nl::quantize_fast(x, out)) as QuantizeFn),
        _ => ty.info().quantize,
    };
    rows_of(ty, convert, x, n_per_row, None, out)
}

fn rows_of(
    ty: GgmlType,
    convert: Option<QuantizeFn>,
    x: &[f32],
    n_per_row: usize,
    importance: Option<&[f32]>,
    out: &mut [u8],
) -> Result<(), ConvertError> {
    let convert = convert.ok_or(ConvertError::NoQuantizer { ty })?;
    if n_per_row == 0 || !n_per_row.is_multiple_of(ty.block_len()) {
        return Err(ConvertError::RowLength { ty, found: n_per_row });
    }
    if !x.len().is_multiple_of(n_per_row) {
        return Err(ConvertError::Rows { ty, n_per_row, found: x.len() });
    }
    let row_bytes = n_per_row / ty.block_len() * ty.block_bytes();
    let expected = x.len() / n_per_row * row_bytes;
    if out.len() != expected {
        return Err(ConvertError::Room { ty, expected, found: out.len() });
    }
    if let Some(w) = importance.filter(|w| w.len() != n_per_row) {
        return Err(ConvertError::Importance { ty, expected: n_per_row, found: w.len() });
    }
    for (x, out) in x.chunks_exact(n_per_row).zip(out.chunks_exact_mut(row_bytes)) {
        convert(x, importance, out);
    }
    Ok(())
}
