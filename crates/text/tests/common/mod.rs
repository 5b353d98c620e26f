//! The location of the golden data, and a notice if it is missing.

#![allow(dead_code, reason = "each test file uses a part of this module")]

use std::path::{Path, PathBuf};

use ggml_format::Gguf;

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The file of the default model.
pub(crate) fn storyteller() -> PathBuf {
    root().join("crates/chaski/model/storyteller-Q4_K_M.gguf")
}

/// A folder of the golden data: `$CHASKI_TEST_DATA/name`, by default `../shared/data/name` beside the repository.
///
/// `None`, with a notice of what was skipped, if it does not exist.
pub(crate) fn test_data(name: &str, what: &str) -> Option<PathBuf> {
    let base = std::env::var_os("CHASKI_TEST_DATA").map(PathBuf::from);
    let folder = base.unwrap_or_else(|| root().join("../shared/data")).join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    say(&format!("SKIPPED: {what}: no folder {} (set CHASKI_TEST_DATA)", folder.display()));
    None
}

/// Reads the header of a GGUF file.
pub(crate) fn read_gguf(path: &Path) -> Gguf {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let n_byte = bytes.len() as u64;
    Gguf::parse(bytes.into(), n_byte).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Prints a line past the test harness, which hides what passing tests print.
pub(crate) fn say(line: &str) {
    use std::io::Write;
    // Only macros are captured.
    writeln!(std::io::stderr(), "{line}").expect("stderr can be written");
}
