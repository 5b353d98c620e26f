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

/// A folder of golden data outside the tree: `$CHASKI_TEST_DATA/name`, by default `../shared/data/name` beside the
/// repository.
fn outside(name: &str) -> Option<PathBuf> {
    let base = std::env::var_os("CHASKI_TEST_DATA").map(PathBuf::from);
    Some(base.unwrap_or_else(|| root().join("../shared/data")).join(name)).filter(|folder| folder.is_dir())
}

/// A folder of golden data that a test cannot do without. `None` if it is missing, with the line by which `cargo xtask
/// test` counts this test as skipped.
pub(crate) fn test_data(name: &str) -> Option<PathBuf> {
    let found = outside(name);
    if found.is_none() {
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("a test");
        say(&format!("SKIPPED {test}: for want of {name} (set CHASKI_TEST_DATA)"));
    }
    found
}

/// A folder of golden data for a part of a test; a line says which part is skipped if it is missing.
pub(crate) fn more_data(name: &str, part: &str) -> Option<PathBuf> {
    let found = outside(name);
    if found.is_none() {
        say(&format!("SKIPPED: {part}, for want of {name} (set CHASKI_TEST_DATA)"));
    }
    found
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
