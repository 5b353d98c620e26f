//! `tensor-cache.json`, or `ndarray-cache.json` of older converters: the tensors and the files that they are in.

use ggml_format::ByteSource;
use serde::Deserialize;

use super::MlcError;
use crate::folder::{Folder, FolderError, is_plain_name};
use crate::safetensors::{Dtype, MAX_RANK, MAX_TENSOR, TensorEntry};
use crate::tensor_set::{Entry, TensorSet};

/// Names of the index, today's first.
pub(super) const NAMES: [&str; 2] = ["tensor-cache.json", "ndarray-cache.json"];

/// Types of elements by name.
const DTYPES: &[(&str, Dtype)] = &[
    ("float32", Dtype::F32),
    ("float16", Dtype::F16),
    ("bfloat16", Dtype::BF16),
    ("uint32", Dtype::U32),
    ("int32", Dtype::I32),
    ("uint8", Dtype::U8),
    ("int8", Dtype::I8),
    ("float8_e4m3fn", Dtype::F8_E4M3),
    ("e4m3_float8", Dtype::F8_E4M3),
    ("float8_e5m2", Dtype::F8_E5M2),
    ("e5m2_float8", Dtype::F8_E5M2),
];

#[derive(Deserialize)]
struct Cache {
    records: Vec<Shard>,
}

/// A file with tensors.
#[derive(Deserialize)]
pub(super) struct Shard {
    #[serde(rename = "dataPath")]
    pub(super) file: String,
    pub(super) format: String,
    #[serde(rename = "nbytes")]
    pub(super) n_byte: u64,
    /// Hash of the file in hexadecimal digits.
    #[serde(default)]
    pub(super) md5sum: String,
    records: Vec<Record>,
}

#[derive(Deserialize)]
struct Record {
    name: String,
    shape: Vec<u64>,
    dtype: String,
    #[serde(default)]
    format: String,
    #[serde(rename = "nbytes")]
    n_byte: u64,
    #[serde(rename = "byteOffset")]
    offset: u64,
}

/// Names of the files with weights; none if the folder has no index.
pub(crate) async fn weight_files<S: ByteSource>(folder: &Folder<S>) -> Result<Vec<String>, MlcError> {
    if !NAMES.into_iter().any(|name| folder.file(name).is_some()) {
        return Ok(Vec::new());
    }
    Ok(read(folder).await?.1.into_iter().map(|shard| shard.file).collect())
}

/// Reads the index of a folder: its name, and the files, which are there in full length.
pub(super) async fn shards<S: ByteSource>(
    folder: &Folder<S>,
) -> Result<(&'static str, Vec<Shard>), MlcError> {
    let (file, shards) = read(folder).await?;
    for shard in &shards {
        let missing = || FolderError::Missing { folder: folder.name().to_owned(), file: shard.file.clone() };
        let found = folder.file(&shard.file).ok_or_else(missing)?.len();
        if found != shard.n_byte {
            return Err(MlcError::FileSize { file: shard.file.clone(), expected: shard.n_byte, found });
        }
    }
    Ok((file, shards))
}

/// Reads the index of a folder: its name, and what it says of the files.
async fn read<S: ByteSource>(folder: &Folder<S>) -> Result<(&'static str, Vec<Shard>), MlcError> {
    let file = NAMES.into_iter().find(|name| folder.file(name).is_some()).unwrap_or(NAMES[0]);
    let json = folder.read(file).await?;
    let cache: Cache = serde_json::from_slice(&json).map_err(|source| MlcError::Json { file, source })?;
    let wrong =
        |expected: &str, found: String| MlcError::Value { file, expected: expected.to_owned(), found };
    for shard in &cache.records {
        if shard.format != "raw-shard" {
            return Err(wrong("files of the format raw-shard", format!("{:?}", shard.format)));
        }
        if !is_plain_name(&shard.file) {
            return Err(wrong("plain file names", format!("{:?}", shard.file)));
        }
    }
    let n_tensor = cache.records.iter().map(|shard| shard.records.len()).sum::<usize>();
    if n_tensor > MAX_TENSOR {
        return Err(wrong(&format!("at most {MAX_TENSOR} tensors"), n_tensor.to_string()));
    }
    Ok((file, cache.records))
}

/// All tensors by name.
pub(super) async fn tensors<S: ByteSource>(folder: &Folder<S>) -> Result<TensorSet, MlcError> {
    let (file, shards) = shards(folder).await?;
    let mut tensors = TensorSet::default();
    for shard in shards {
        let number = folder.position(&shard.file).expect("the size of the file was compared");
        for record in shard.records {
            let tensor = entry(record, shard.n_byte)?;
            let name = tensor.name.clone();
            if !tensors.insert(name.clone(), Entry { file: number, tensor }) {
                let expected = "names that differ".to_owned();
                return Err(MlcError::Value { file, expected, found: format!("{name:?} twice") });
            }
        }
    }
    Ok(tensors)
}

/// A tensor of a file of `n_byte_file` bytes.
fn entry(record: Record, n_byte_file: u64) -> Result<TensorEntry, MlcError> {
    let Record { name, shape, dtype, format, n_byte, offset } = record;
    let wrong = |expected: String, found: String| MlcError::Tensor { tensor: name.clone(), expected, found };
    let known = DTYPES.iter().find(|row| row.0 == dtype);
    let known = known.ok_or_else(|| wrong("a known type of elements".into(), format!("{dtype:?}")))?;
    // Only numbers of 32 bits are stored as bf16; for others the word means nothing.
    let dtype = match (known.1, format.as_str()) {
        (Dtype::F32, "f32-to-bf16") => Dtype::BF16,
        (dtype, "f32-to-bf16" | "raw" | "") => dtype,
        (_, other) => return Err(wrong("the format raw or f32-to-bf16".into(), format!("{other:?}"))),
    };
    if shape.len() > MAX_RANK {
        return Err(wrong(format!("at most {MAX_RANK} dimensions"), shape.len().to_string()));
    }
    let n_elem = shape.iter().try_fold(1_u64, |n, &size| n.checked_mul(size));
    if n_elem.and_then(|n| dtype.n_byte(n)) != Some(n_byte) {
        return Err(wrong(format!("{n_byte} bytes"), format!("the shape {shape:?} of {dtype:?}")));
    }
    if offset.checked_add(n_byte).is_none_or(|end| end > n_byte_file) {
        return Err(wrong(
            format!("a range of a file of {n_byte_file} bytes"),
            format!("{n_byte} bytes at {offset}"),
        ));
    }
    Ok(TensorEntry { name, dtype, shape, offset, n_byte })
}
