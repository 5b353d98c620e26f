//! A model, from one file or from a split set.

use std::collections::HashMap;
use std::ops::Range;

use crate::gguf::{Gguf, GgufError, HeaderBytes, Metadata, Scan, TensorInfo};
use crate::source::{ByteSource, SourceError};
use crate::split::SplitName;

/// A failure to open a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum OpenError {
    #[error("could not read a model file")]
    Source(#[from] SourceError),
    #[error("in `{file}`")]
    Gguf {
        file: String,
        #[source]
        source: Box<GgufError>,
    },
    #[error("`{file}`: expected a header of at most {limit} bytes, found at least {n_byte} bytes")]
    HeadTooLong { file: String, n_byte: u64, limit: u64 },
    #[error("`{file}`: key `split.no`: expected 0, the first of {count} files, found {found}{}", hint(.first))]
    NotFirst { file: String, found: u16, count: u16, first: Option<String> },
    #[error(
        "`{file}`: expected a name that ends in `-00001-of-{count:05}.gguf`, because it is the first of {count} files"
    )]
    SplitName { file: String, count: u16 },
    #[error("`{file}`: key `split.no`: expected {expected}, found {found}; the file name does not match")]
    SplitNumber { file: String, expected: u16, found: u16 },
    #[error("`{file}`: key `split.count`: expected {expected}, as in the first file, found {found}")]
    SplitCount { file: String, expected: u16, found: u16 },
    #[error("tensor `{tensor}`: expected in one file of the set, found in `{first}` and in `{second}`")]
    DuplicateTensor { tensor: String, first: String, second: String },
    #[error("key `split.tensors.count`: expected {expected} tensors over all files, found {found}")]
    TensorCount { expected: u64, found: u64 },
}

fn hint(first: &Option<String>) -> String {
    first.as_ref().map(|name| format!("; open `{name}`")).unwrap_or_default()
}

/// A model: metadata, tensors, and the sources of the tensor data.
#[derive(Debug)]
pub struct ModelFile<S> {
    shards: Vec<S>,
    metadata: Metadata,
    tensors: Vec<TensorInfo>,
    index: HashMap<String, u32>,
    n_byte_data: u64,
}

/// Bytes in the first read of a file that is not in memory.
const FIRST_READ: u64 = 1 << 20;

/// Upper limit on the header in bytes: some forty times the largest known one.
const HEAD_LIMIT: u64 = 1 << 30;

/// Reads the header of a file from its source, in a few growing reads if it is not in memory.
///
/// # Errors
/// [`OpenError::Source`], [`OpenError::Gguf`], and [`OpenError::HeadTooLong`] beyond 1 GiB.
pub async fn read_header<S: ByteSource>(source: &S) -> Result<Gguf, OpenError> {
    let located = |e| OpenError::Gguf { file: source.name().to_owned(), source: Box::new(e) };
    let len = source.len();
    if let Some(bytes) = source.shared() {
        return Gguf::parse(bytes, len).map_err(located);
    }
    let mut bytes = Vec::new();
    let mut wanted = FIRST_READ;
    loop {
        let start = bytes.len();
        bytes.resize(wanted.min(len) as usize, 0);
        source.read_at(start as u64, &mut bytes[start..]).await?;
        match Scan::new(&bytes, len) {
            Ok(scan) => {
                // The read may include the start of the tensor data; the metadata outlives it.
                bytes.truncate(scan.n_byte_header() as usize);
                bytes.shrink_to_fit();
                return Ok(scan.with_bytes(HeaderBytes::from(bytes)));
            }
            Err(GgufError::NeedMore { n_byte }) if n_byte > HEAD_LIMIT => {
                return Err(OpenError::HeadTooLong {
                    file: source.name().to_owned(),
                    n_byte,
                    limit: HEAD_LIMIT,
                });
            }
            Err(GgufError::NeedMore { n_byte }) => {
                wanted = n_byte.max(bytes.len() as u64 * 4).min(HEAD_LIMIT)
            }
            Err(e) => return Err(located(e)),
        }
    }
}

impl<S: ByteSource> ModelFile<S> {
    /// Opens a model, given its first file.
    ///
    /// If `first` is the first file of a split set, `open_sibling` is called with the name of each other
    /// file: `first`'s [`ByteSource::name`] with another number in it.
    ///
    /// # Errors
    /// For files that are damaged, missing, or not from one set.
    pub async fn open(
        first: S,
        mut open_sibling: impl FnMut(&str) -> Result<S, SourceError>,
    ) -> Result<ModelFile<S>, OpenError> {
        let gguf = read_header(&first).await?;
        let name = first.name().to_owned();
        let located = |e| OpenError::Gguf { file: name.clone(), source: Box::new(e) };
        let count = gguf.opt_u16("split.count").map_err(located)?.unwrap_or(0);
        let number = gguf.opt_u16("split.no").map_err(located)?.unwrap_or(0);
        let split = SplitName::parse(&name).filter(|split| split.count == u32::from(count));
        if number != 0 {
            let first = split.map(|split| split.sibling(0));
            return Err(OpenError::NotFirst { file: name, found: number, count, first });
        }
        let n_expected = match count {
            0 | 1 => None,
            _ => Some(gguf.u64("split.tensors.count").map_err(located)?),
        };
        let (metadata, tensors) = gguf.into_parts();
        let mut model = ModelFile {
            shards: vec![first],
            metadata,
            tensors: Vec::new(),
            index: HashMap::new(),
            n_byte_data: 0,
        };
        model.add(tensors)?;
        if let Some(expected) = n_expected {
            let Some(split) = split.filter(|split| split.index == 0) else {
                return Err(OpenError::SplitName { file: name, count });
            };
            for i in 1..count {
                let sibling = open_sibling(&split.sibling(u32::from(i)))?;
                let tensors = read_sibling(&sibling, i, count).await?;
                model.shards.push(sibling);
                model.add(tensors)?;
            }
            let found = model.tensors.len() as u64;
            if found != expected {
                return Err(OpenError::TensorCount { expected, found });
            }
        }
        Ok(model)
    }

    /// Adds the tensors of the most recently pushed file.
    fn add(&mut self, tensors: Vec<TensorInfo>) -> Result<(), OpenError> {
        let shard = (self.shards.len() - 1) as u16;
        for mut tensor in tensors {
            tensor.shard = shard;
            if let Some(first) = self.index.insert(tensor.name.clone(), self.tensors.len() as u32) {
                let first = &self.tensors[first as usize];
                return Err(OpenError::DuplicateTensor {
                    tensor: tensor.name,
                    first: self.shards[usize::from(first.shard)].name().to_owned(),
                    second: self.shards[usize::from(shard)].name().to_owned(),
                });
            }
            self.n_byte_data = self.n_byte_data.saturating_add(tensor.n_byte);
            self.tensors.push(tensor);
        }
        Ok(())
    }

    /// The metadata of the first file.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Replaces the metadata, for instance by [`Metadata::with`].
    pub fn set_metadata(&mut self, metadata: Metadata) {
        self.metadata = metadata;
    }

    /// The tensors of all files, in order.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The tensor with this name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.index.get(name).map(|&i| &self.tensors[i as usize])
    }

    /// Bytes of all tensors together, without padding.
    pub fn n_byte_data(&self) -> u64 {
        self.n_byte_data
    }

    /// The files, in order.
    pub fn shards(&self) -> &[S] {
        &self.shards
    }

    /// Fills `buf` with data of a tensor of this model, starting at byte `offset` of the tensor.
    ///
    /// # Errors
    /// [`SourceError::OutOfRange`] beyond the tensor's end; otherwise any error of the source.
    pub async fn read_tensor(
        &self,
        tensor: &TensorInfo,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<(), SourceError> {
        SourceError::check_range(&tensor.name, tensor.n_byte, offset, buf.len() as u64)?;
        self.shards[usize::from(tensor.shard)].read_at(tensor.offset + offset, buf).await
    }

    /// True if several threads may read at once ([`ByteSource::in_parallel`]).
    pub fn in_parallel(&self) -> bool {
        self.shards.iter().all(ByteSource::in_parallel)
    }

    /// The file that holds a tensor of this model, and the tensor's place in it, if the file is in memory or can be
    /// mapped.
    pub fn map_tensor(&self, tensor: &TensorInfo) -> Option<(HeaderBytes, Range<usize>)> {
        let bytes = self.shards[usize::from(tensor.shard)].mapped()?;
        let start = usize::try_from(tensor.offset).ok()?;
        let range = start..start.checked_add(usize::try_from(tensor.n_byte).ok()?)?;
        bytes.get(range.clone())?;
        Some((bytes, range))
    }

    /// The data of a tensor of this model, if its file is in memory.
    pub fn tensor_bytes(&self, tensor: &TensorInfo) -> Option<&[u8]> {
        let bytes = self.shards[usize::from(tensor.shard)].as_slice()?;
        bytes.get(tensor.offset as usize..)?.get(..tensor.n_byte as usize)
    }
}

async fn read_sibling<S: ByteSource>(
    source: &S,
    number: u16,
    count: u16,
) -> Result<Vec<TensorInfo>, OpenError> {
    let gguf = read_header(source).await?;
    let file = || source.name().to_owned();
    let located = |e| OpenError::Gguf { file: file(), source: Box::new(e) };
    let found = gguf.u16("split.no").map_err(located)?;
    if found != number {
        return Err(OpenError::SplitNumber { file: file(), expected: number, found });
    }
    let found = gguf.opt_u16("split.count").map_err(located)?.unwrap_or(count);
    if found != count {
        return Err(OpenError::SplitCount { file: file(), expected: count, found });
    }
    Ok(gguf.into_parts().1)
}
