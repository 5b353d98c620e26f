//! Texts of templates for browsers: used by the build script and tests.

/// A template without indentation and without lines that are WGSL comments, which nobody reads in a browser.
pub(crate) fn shorter(text: &str) -> String {
    let lines = text.lines().map(str::trim_start).filter(|line| !line.starts_with("//"));
    lines.flat_map(|line| [line, "\n"]).collect()
}
