//! Importance matrices as GGUF: each entry has a tensor `NAME.in_sum2`, `[n_mat, n_col]`, and a tensor
//! `NAME.counts`, `[n_mat, 1]`, both f32.

use std::collections::BTreeMap;
use std::io;

use super::{Imatrix, ImatrixEntry, ImatrixError};
use crate::gguf::{Gguf, GgufWriter, HeaderBytes, TensorInfo};
use crate::types::GgmlType;

const SUMS: &str = ".in_sum2";
const COUNTS: &str = ".counts";

pub(super) fn read(bytes: HeaderBytes) -> Result<Imatrix, ImatrixError> {
    let gguf = Gguf::parse(bytes.clone(), bytes.len() as u64)?;
    let found = gguf.opt_value::<&str>("general.type")?;
    if found != Some("imatrix") {
        return Err(ImatrixError::NotImatrix { found: found.map(str::to_owned) });
    }
    let datasets = gguf.opt_strings("imatrix.datasets")?;
    let mut imatrix = Imatrix {
        entries: BTreeMap::new(),
        datasets: datasets.map(|names| names.map(str::to_owned).collect()).unwrap_or_default(),
        n_chunk: gguf.opt_u32("imatrix.chunk_count")?.unwrap_or(0),
        chunk_len: gguf.opt_u32("imatrix.chunk_size")?.unwrap_or(0),
    };
    let missing = |entry: &str, missing| ImatrixError::Missing { entry: entry.to_owned(), missing };
    for tensor in gguf.tensors() {
        if let Some(entry) = tensor.name.strip_suffix(COUNTS) {
            gguf.tensor(&format!("{entry}{SUMS}")).ok_or_else(|| missing(entry, SUMS))?;
        }
        let Some(entry) = tensor.name.strip_suffix(SUMS) else { continue };
        let counts = gguf.tensor(&format!("{entry}{COUNTS}")).ok_or_else(|| missing(entry, COUNTS))?;
        let found = ImatrixEntry::new(entry, values(&bytes, tensor)?, values(&bytes, counts)?)?;
        imatrix.entries.insert(entry.to_owned(), found);
    }
    Ok(imatrix)
}

fn values(bytes: &[u8], tensor: &TensorInfo) -> Result<Vec<f32>, ImatrixError> {
    if tensor.ty != GgmlType::F32 {
        return Err(ImatrixError::Type { tensor: tensor.name.clone(), found: tensor.ty });
    }
    let bytes = &bytes[tensor.offset as usize..][..tensor.n_byte as usize];
    Ok(bytes.as_chunks::<4>().0.iter().map(|&b| f32::from_le_bytes(b)).collect())
}

impl Imatrix {
    /// Writes the GGUF format and returns the output.
    ///
    /// # Errors
    /// [`ImatrixError::Empty`] if there is no entry, because no reader accepts such a file;
    /// [`ImatrixError::Write`] for names that are too long with their suffix, and if the output fails.
    pub fn write<W: io::Write>(&self, out: W) -> Result<W, ImatrixError> {
        if self.entries.is_empty() {
            return Err(ImatrixError::Empty);
        }
        let mut head = GgufWriter::new();
        head.set("general.type", "imatrix")?
            .set("imatrix.datasets", self.datasets.as_slice())?
            .set("imatrix.chunk_count", self.n_chunk)?
            .set("imatrix.chunk_size", self.chunk_len)?;
        let tensors = || {
            self.entries.iter().flat_map(|(name, entry)| {
                [(format!("{name}{SUMS}"), &entry.sums), (format!("{name}{COUNTS}"), &entry.counts)]
                    .map(|(name, values)| (name, values, entry.counts.len() as u64))
            })
        };
        for (name, values, n_mat) in tensors() {
            head.tensor(&name, &[values.len() as u64 / n_mat, n_mat], GgmlType::F32)?;
        }
        let mut data = head.begin(out)?;
        for (name, values, _) in tensors() {
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            data.write(&name, &bytes)?;
        }
        Ok(data.finish()?)
    }
}
