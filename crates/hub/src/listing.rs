//! Files in messages, with their sizes.

use std::fmt;

use crate::bytes::Bytes;

/// Paths and sizes of files, to choose from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing(pub Vec<(String, u64)>);

/// Most files of a message.
const MOST: usize = 60;

/// A line for each file.
impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str(" none");
        }
        for (path, size) in self.0.iter().take(MOST) {
            write!(f, "\n{path} ({})", Bytes(*size))?;
        }
        match self.0.len().checked_sub(MOST) {
            Some(n @ 1..) => write!(f, "\nand {n} more"),
            _ => Ok(()),
        }
    }
}
