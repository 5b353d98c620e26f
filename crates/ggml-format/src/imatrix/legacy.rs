//! Importance matrices in the format of `llama-imatrix` until 2025, mostly called `imatrix.dat`.
//!
//! ```text
//! file  := n_entry:i32 entry* (n_chunk:i32 (n_byte:i32 dataset)?)?        all numbers little endian
//! entry := n_byte:i32 name n_call:i32 n_value:i32 value:f32*              values are means times n_call
//! ```

use super::{Imatrix, ImatrixEntry, ImatrixError};

/// The rest of a file, and the index of the current entry.
struct Reader<'a> {
    bytes: &'a [u8],
    n_byte: usize,
    index: u32,
}

impl<'a> Reader<'a> {
    fn wrong(&self, field: &'static str, expected: &'static str, found: String) -> ImatrixError {
        let offset = (self.n_byte - self.bytes.len()) as u64;
        ImatrixError::Legacy { field, index: self.index, offset, expected, found }
    }

    fn take(&mut self, field: &'static str, n: u64) -> Result<&'a [u8], ImatrixError> {
        let taken = usize::try_from(n).ok().and_then(|n| self.bytes.split_at_checked(n));
        let Some((taken, rest)) = taken else {
            let offset = (self.n_byte - self.bytes.len()) as u64;
            let (n_needed, n_left) = (n, self.bytes.len());
            return Err(ImatrixError::Truncated { field, index: self.index, offset, n_needed, n_left });
        };
        self.bytes = rest;
        Ok(taken)
    }

    fn number(&mut self, field: &'static str) -> Result<i32, ImatrixError> {
        let bytes = self.take(field, 4)?;
        Ok(i32::from_le_bytes(bytes.try_into().expect("four bytes were taken")))
    }

    /// A count that precedes the items it counts.
    fn count(&mut self, field: &'static str) -> Result<u64, ImatrixError> {
        match self.bytes.first_chunk::<4>().map(|&bytes| i32::from_le_bytes(bytes)) {
            Some(n) if n <= 0 => Err(self.wrong(field, "a positive number", n.to_string())),
            _ => Ok(self.number(field)? as u64),
        }
    }

    fn text(&mut self, field: &'static str, n: u64) -> Result<String, ImatrixError> {
        let before = Reader { ..*self };
        let text = std::str::from_utf8(self.take(field, n)?);
        text.map(str::to_owned).map_err(|e| before.wrong(field, "UTF-8", e.to_string()))
    }
}

pub(super) fn read(bytes: &[u8]) -> Result<Imatrix, ImatrixError> {
    let mut reader = Reader { bytes, n_byte: bytes.len(), index: 0 };
    let mut imatrix = Imatrix::default();
    let n_entry = reader.count("number of entries, before the first,")?;
    for index in 0..n_entry {
        reader.index = index as u32;
        let n = reader.count("length of the name")?;
        let name = reader.text("name", n)?;
        let n_call = reader.number("number of calls")?;
        let n_value = reader.count("number of values")?;
        let values = reader.take("values", 4 * n_value)?;
        let values = values.as_chunks::<4>().0.iter().map(|&b| f32::from_le_bytes(b)).collect();
        // Files without a number of calls already store means.
        let entry = ImatrixEntry::new(&name, values, vec![n_call.max(1) as f32])?;
        if imatrix.entries.insert(name.clone(), entry).is_some() {
            return Err(ImatrixError::Duplicate { entry: name });
        }
    }
    if !reader.bytes.is_empty() {
        imatrix.n_chunk = reader.number("number of chunks, after the last,")?.max(0) as u32;
    }
    if !reader.bytes.is_empty() {
        let n = reader.number("length of the dataset's name, after the last,")?.max(0);
        imatrix.datasets.push(reader.text("name of the dataset, after the last,", n as u64)?);
    }
    Ok(imatrix)
}
