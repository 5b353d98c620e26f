//! What is kept in the user's cache directory from run to run: the driver's compiled kernels and whether they compute
//! right here, measured limits in `peaks`.
//!
//! There is one file for each adapter and driver. Which one a start will need is known only once the device is open,
//! and then it is too late: so a second, tiny file remembers for each `--device` where it led the last time. A wrong
//! guess does no harm, wgpu checks for whom the data was made. Nothing here can fail a command.

use std::path::{Path, PathBuf};

use chaski::{AdapterSummary, DeviceChoice, Engine};

use crate::output::write_bytes;

/// The files for one choice of device.
pub(crate) struct WarmCache {
    folder: PathBuf,
    /// The file that remembers the adapter.
    last: PathBuf,
    /// Name of the adapter's file at the last start, and what it held.
    known: Option<(String, Vec<u8>)>,
}

impl WarmCache {
    /// Reads what the last start with this choice left; `None` if there is no place for it.
    pub(crate) fn open(choice: &DeviceChoice) -> Option<WarmCache> {
        let word = match choice {
            DeviceChoice::Cpu => return None,
            DeviceChoice::Auto | DeviceChoice::Gpu(None) => "fastest".to_owned(),
            DeviceChoice::Gpu(Some(name)) => plain(name),
        };
        let folder = folder("pipelines")?;
        let last = folder.join(format!("{word}.last"));
        let known = read(&folder, &last).inspect_err(|e| tracing::debug!(%e, "no pipeline cache is read"));
        Some(WarmCache { folder, last, known: known.ok() })
    }

    /// What the builder of an engine wants.
    pub(crate) fn data(&self) -> Option<Vec<u8>> {
        self.known.as_ref().map(|(_, data)| data.clone())
    }

    /// Saves what the driver has compiled by now, if that is anything new.
    pub(crate) fn save(&self, engine: &Engine) {
        let (Some(gpu), Some(data)) = (engine.gpu(), engine.pipeline_cache()) else { return };
        let now = (file_of(gpu.summary(), "bin"), data);
        if self.known.as_ref() == Some(&now) {
            return;
        }
        let saved = std::fs::create_dir_all(&self.folder)
            .map_err(anyhow::Error::from)
            .and_then(|()| write_bytes(&self.folder.join(&now.0), &[], &now.1))
            .and_then(|()| write_bytes(&self.last, &[], now.0.as_bytes()));
        if let Err(e) = saved {
            tracing::debug!(folder = %self.folder.display(), %e, "the pipeline cache is not written");
        }
    }
}

/// Whether this version of the command found an adapter to compute right with the features that are used.
pub(crate) fn is_tested(s: &AdapterSummary) -> bool {
    let path = folder("tested").map(|f| f.join(test_file(s)));
    path.and_then(|p| std::fs::read_to_string(p).ok()).is_some_and(|found| found == TESTED_BY)
}

/// Remembers that it did.
pub(crate) fn remember_test(s: &AdapterSummary) {
    let Some(folder) = folder("tested") else { return };
    let saved = std::fs::create_dir_all(&folder)
        .map_err(anyhow::Error::from)
        .and_then(|()| write_bytes(&folder.join(test_file(s)), &[], TESTED_BY.as_bytes()));
    if let Err(e) = saved {
        tracing::debug!(folder = %folder.display(), %e, "the self-test is not remembered");
    }
}

fn test_file(s: &AdapterSummary) -> String {
    file_of(s, s.caps.most().word())
}

/// Other versions have other kernels.
const TESTED_BY: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("CHASKI_COMMIT"));

/// A folder of the user's cache directory, where there is one.
pub(crate) fn folder(name: &str) -> Option<PathBuf> {
    Some(directories::ProjectDirs::from("", "", "chaski")?.cache_dir().join(name))
}

/// The name of the file for an adapter and its driver.
pub(crate) fn file_of(s: &AdapterSummary, extension: &str) -> String {
    format!("{}.{extension}", plain(&format!("{} {} {}", s.backend, s.name, s.driver)))
}

fn read(folder: &Path, last: &Path) -> std::io::Result<(String, Vec<u8>)> {
    let name = plain(&std::fs::read_to_string(last)?);
    let data = std::fs::read(folder.join(&name))?;
    Ok((name, data))
}

/// A text with only such characters as every file system takes.
fn plain(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars() {
        let c = if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        if !(c == '-' && name.ends_with('-')) {
            name.push(c);
        }
    }
    name.truncate(160);
    name.trim_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_adapters_become_names_of_files() {
        assert_eq!(plain("Vulkan NVIDIA H200 (535.1)/x"), "Vulkan-NVIDIA-H200-535.1-x");
        assert_eq!(plain("../../etc"), "etc");
    }
}
