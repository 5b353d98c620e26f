//! The tensor directory of a file: name, shape, type and offset of each tensor.

use std::collections::HashMap;

use super::align_up;
use super::cursor::{Cursor, Field};
use super::error::GgufError;
use super::fork;
use super::tensor::TensorInfo;
use crate::types::GgmlType;

/// Bytes of the shortest record: an empty name, no dimensions.
const MIN_TENSOR_BYTES: u64 = 8 + 4 + 4 + 8;

/// A name must be shorter than this, in bytes.
const NAME_LIMIT: u64 = 64;

pub(super) struct Directory {
    pub(super) tensors: Vec<TensorInfo>,
    pub(super) index: HashMap<String, u32>,
    pub(super) data_start: u64,
}

/// File offsets for error messages about a tensor.
struct At {
    record: u64,
    offset: u64,
}

pub(super) fn read(cursor: &mut Cursor<'_>, n_tensor: u64, alignment: u32) -> Result<Directory, GgufError> {
    cursor.expect_in_file(n_tensor, MIN_TENSOR_BYTES, Field::TensorCount)?;
    let mut tensors: Vec<TensorInfo> = Vec::new();
    let mut at = Vec::new();
    let mut index = HashMap::new();
    for i in 0..n_tensor {
        let (tensor, tensor_at) = record(cursor, i)?;
        if index.insert(tensor.name.clone(), i as u32).is_some() {
            return Err(GgufError::DuplicateTensor { tensor: tensor.name, offset: tensor_at.record });
        }
        tensors.push(tensor);
        at.push(tensor_at);
    }
    let data_start = if n_tensor == 0 {
        cursor.position()
    } else {
        align_up(cursor.position(), alignment).expect("a position in memory and a u32 alignment")
    };
    place(&mut tensors, &at, data_start, alignment, cursor.file_len())?;
    Ok(Directory { tensors, index, data_start })
}

/// Bytes of a tensor's data, without padding; `None` for 2^63 values or bytes and more, and for rows that are
/// not a whole number of blocks.
///
/// # Shapes
/// `ne`: sizes in ggml's order; omitted trailing sizes are 1
pub(super) fn data_bytes(ty: GgmlType, ne: &[u64]) -> Option<u64> {
    // A size of 0 must not hide that the other sizes are too large: zeros count as 1 here.
    let n_elem = ne.iter().try_fold(1u64, |n, &size| n.checked_mul(size.max(1)))?;
    let (row, rest) = ne.split_first().unwrap_or((&1, &[]));
    let n_byte = rest.iter().try_fold(ty.row_bytes(*row)?, |n, &size| n.checked_mul(size))?;
    (n_elem.max(n_byte) <= i64::MAX as u64).then_some(n_byte)
}

/// Reads one record; `offset` is still relative to the start of the data.
fn record(cursor: &mut Cursor<'_>, index: u64) -> Result<(TensorInfo, At), GgufError> {
    let record = cursor.position();
    let name = cursor.str(Field::TensorName(index))?;
    let n_name = name.len() as u64;
    if n_name >= NAME_LIMIT {
        return Err(GgufError::TensorNameLength { index, offset: record, found: n_name });
    }
    let tensor = || name.to_owned();

    let offset = cursor.position();
    let n_dims = cursor.u32(Field::DimensionCount(name))?;
    if n_dims > 4 {
        return Err(GgufError::DimensionCount { tensor: tensor(), offset, found: n_dims });
    }
    let shape_at = cursor.position();
    let mut ne = [1; 4];
    for i in 0..n_dims {
        let offset = cursor.position();
        let found = cursor.i64(Field::Dimension(name, i))?;
        ne[i as usize] = u64::try_from(found).map_err(|_| GgufError::NegativeDimension {
            tensor: tensor(),
            index: i,
            offset,
            found,
        })?;
    }
    let type_at = cursor.position();
    let id = cursor.u32(Field::TensorType(name))?;
    let ty = GgmlType::from_id(id).ok_or_else(|| GgufError::TensorTypeId {
        tensor: tensor(),
        offset: type_at,
        found: id,
    })?;

    if !ne[0].is_multiple_of(ty.block_len() as u64) {
        return Err(GgufError::RowLength { tensor: tensor(), offset: shape_at, ty, found: ne[0] });
    }
    let n_byte =
        data_bytes(ty, &ne).ok_or_else(|| GgufError::TooLarge { tensor: tensor(), offset: shape_at, ne })?;

    let offset_at = cursor.position();
    let offset = cursor.u64(Field::TensorOffset(name))?;
    let info = TensorInfo { name: tensor(), ne, n_dims, ty, offset, n_byte, shard: 0 };
    Ok((info, At { record, offset: offset_at }))
}

/// Checks that the tensor data is contiguous and within the file, and makes the offsets absolute.
fn place(
    tensors: &mut [TensorInfo],
    at: &[At],
    data_start: u64,
    alignment: u32,
    file_len: u64,
) -> Result<(), GgufError> {
    let mut expected = 0u64;
    for i in 0..tensors.len() {
        let found = tensors[i].offset;
        if found != expected {
            if i > 0 {
                // Offsets before this one are absolute already, and were checked.
                let previous = &tensors[i - 1];
                let n_byte = found.wrapping_sub(previous.offset - data_start);
                fork::explain(previous, at[i - 1].record, n_byte, alignment)?;
            }
            return Err(GgufError::TensorOffset {
                tensor: tensors[i].name.clone(),
                offset: at[i].offset,
                expected,
                found,
            });
        }
        let n_byte = tensors[i].n_byte;
        let past_end = || GgufError::TensorPastEnd {
            tensor: tensors[i].name.clone(),
            offset: data_start.saturating_add(found),
            n_byte,
            file_len,
        };
        let start = data_start.checked_add(found).ok_or_else(past_end)?;
        let end = start.checked_add(n_byte).ok_or_else(past_end)?;
        let next = align_up(n_byte, alignment).and_then(|n| expected.checked_add(n)).ok_or_else(past_end)?;
        let is_last = i + 1 == tensors.len();
        if is_last && end != file_len && align_up(end, alignment) != Some(file_len) {
            fork::explain(&tensors[i], at[i].record, file_len.saturating_sub(start), alignment)?;
        }
        if end > file_len {
            // The next tensor may distinguish a fork's type from a truncated file.
            if let Some(next) = tensors.get(i + 1) {
                fork::explain(&tensors[i], at[i].record, next.offset.wrapping_sub(found), alignment)?;
            }
            return Err(past_end());
        }
        tensors[i].offset = start;
        expected = next;
    }
    Ok(())
}
