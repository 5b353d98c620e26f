//! Folders for the files of addresses: one for each address, with notes and locks beside the files.

use std::path::{Path, PathBuf};

/// The file in the folder of an address that has the address.
pub(crate) const ADDRESS_FILE: &str = ".chaski-address";

/// A note or lock beside a file of an address; names of files in addresses do not begin with a dot.
pub(crate) fn own_file(folder: &Path, name: &str, ending: &str) -> PathBuf {
    folder.join(format!(".chaski.{name}.{ending}"))
}
