//! Writing files of models: a progress bar, and files that appear only when they are complete.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};

/// A bar of bytes on standard error, if that is a terminal.
pub(crate) fn progress_bar(n_byte: u64) -> ProgressBar {
    const TEMPLATE: &str = "{bar:30} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta} {wide_msg}";
    let style = ProgressStyle::with_template(TEMPLATE).expect("the template is well formed");
    ProgressBar::new(n_byte).with_style(style)
}

/// Writes a file that appears under its name only when it is complete.
pub(crate) fn write_file(
    path: &Path,
    write: impl FnOnce(BufWriter<File>) -> Result<BufWriter<File>>,
) -> Result<()> {
    // Devices and pipes are written as they are.
    let is_special = fs::metadata(path).is_ok_and(|m| !m.is_file());
    let mut name =
        path.file_name().with_context(|| format!("`{}` names no file", path.display()))?.to_owned();
    if !is_special {
        name.push(".part");
    }
    let part = path.with_file_name(name);
    let file = File::create(&part).with_context(|| format!("`{}` cannot be written", part.display()))?;
    let written = write(BufWriter::with_capacity(1 << 20, file));
    if is_special {
        return written.map(drop);
    }
    match written {
        Ok(_) => fs::rename(&part, path).with_context(|| format!("`{}` cannot be replaced", path.display())),
        Err(e) => {
            // What matters is the first error.
            let _ = fs::remove_file(&part);
            Err(e.context(format!("`{}` was not written", path.display())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_could_not_be_completed_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model.gguf");
        assert!(write_file(&path, |_| anyhow::bail!("no more")).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
