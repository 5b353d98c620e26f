//! Golden data outside of the tree.

use std::path::{Path, PathBuf};

/// A folder of golden data: `$CHASKI_TEST_DATA/name`, by default `../shared/data/name` beside the repository. Says that the
/// test is skipped if it is missing.
pub(crate) fn data(name: &str) -> Option<PathBuf> {
    let base = std::env::var_os("CHASKI_TEST_DATA").map(PathBuf::from);
    let base = base.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"));
    let found = Some(base.join(name)).filter(|path| path.exists());
    if found.is_none() {
        use std::io::Write;
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("a test");
        // Past the test harness, which captures only what macros print.
        writeln!(std::io::stderr(), "SKIPPED {test}: for want of {name} (set CHASKI_TEST_DATA)")
            .expect("stderr");
    }
    found
}

/// A file's bytes.
pub(crate) fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
