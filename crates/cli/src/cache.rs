//! Data kept in the user's cache directory between runs: the driver's compiled kernels, self-test results, and measured
//! limits (`peaks`).
//!
//! There is one file per adapter and driver. Which one a start needs is known only after the device is open, which is
//! too late. So a second, tiny file remembers the adapter of the last start for each `--device`. A wrong guess does no
//! harm: data of another device or driver are not used. No error here fails a command.

use std::path::{Path, PathBuf};

use chaski::gpu::AdapterSummary;
use chaski::{DeviceChoice, Engine};

use crate::drivers;
use crate::output::write_bytes;

/// The files for one choice of device.
pub(crate) struct WarmCache {
    folder: PathBuf,
    /// The file that remembers the adapter.
    last: PathBuf,
    /// Name and contents of the adapter's file at the last start.
    known: Option<(String, Vec<u8>)>,
}

impl WarmCache {
    /// Reads the cache left by the last start with this choice; `None` without a cache directory.
    pub(crate) fn open(choice: &DeviceChoice) -> Option<WarmCache> {
        let word = match choice {
            DeviceChoice::Cpu => return None,
            DeviceChoice::Auto | DeviceChoice::Gpu(None) => "fastest".to_owned(),
            DeviceChoice::Gpu(Some(name)) => plain(name),
            DeviceChoice::Gpus(names) => plain(&names.join("+")),
            DeviceChoice::AllGpus => "all".to_owned(),
        };
        let folder = folder("pipelines")?;
        let last = folder.join(format!("{word}.last"));
        let known =
            read(&folder, &last).inspect_err(|e| tracing::debug!(%e, "cannot read the pipeline cache"));
        Some(WarmCache { folder, last, known: known.ok() })
    }

    /// The data that an engine's builder takes.
    pub(crate) fn data(&self) -> Option<Vec<u8>> {
        self.known.as_ref().map(|(_, data)| data.clone())
    }

    /// Saves the driver's compiled kernels if they changed.
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
            tracing::debug!(folder = %self.folder.display(), %e, "cannot write the pipeline cache");
        }
    }
}

/// True if an adapter passed the self-test with these features in this version of the command.
pub(crate) fn is_tested(s: &AdapterSummary) -> bool {
    let path = folder("tested").map(|f| f.join(test_file(s)));
    path.and_then(|p| std::fs::read_to_string(p).ok()).is_some_and(|found| found == TESTED_BY)
}

/// Records that the self-test passed.
pub(crate) fn remember_test(s: &AdapterSummary) {
    let Some(folder) = folder("tested") else { return };
    let saved = std::fs::create_dir_all(&folder)
        .map_err(anyhow::Error::from)
        .and_then(|()| write_bytes(&folder.join(test_file(s)), &[], TESTED_BY.as_bytes()));
    if let Err(e) = saved {
        tracing::debug!(folder = %folder.display(), %e, "cannot record the self-test");
    }
}

fn test_file(s: &AdapterSummary) -> String {
    file_of(s, s.caps.most().word())
}

/// Other versions have other kernels.
const TESTED_BY: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("CHASKI_COMMIT"));

/// The reason why `auto` took the CPU at an earlier start on this machine as it is now. Finding that out again would
/// load every driver, with a compiler in each.
pub(crate) fn known_fallback() -> Option<String> {
    let text = std::fs::read_to_string(folder("tested")?.join(FALLBACK)).ok()?;
    let (machine, reason) = text.split_once('\n')?;
    (machine == drivers::fingerprint(TESTED_BY)?).then(|| reason.to_owned())
}

/// Records that `auto` took the CPU.
pub(crate) fn remember_fallback(reason: &str) {
    let (Some(folder), Some(machine)) = (folder("tested"), drivers::fingerprint(TESTED_BY)) else { return };
    let saved = std::fs::create_dir_all(&folder)
        .map_err(anyhow::Error::from)
        .and_then(|()| write_bytes(&folder.join(FALLBACK), &[], format!("{machine}\n{reason}").as_bytes()));
    if let Err(e) = saved {
        tracing::debug!(folder = %folder.display(), %e, "cannot record that there is no GPU");
    }
}

const FALLBACK: &str = "no-gpu";

/// A folder of the user's cache directory, if there is one.
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

/// Replaces characters that some file system does not accept.
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
