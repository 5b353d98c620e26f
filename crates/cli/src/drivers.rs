//! The state of a machine's GPU drivers, without loading them.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Folders with the manifests of Vulkan drivers, besides the user's own.
const MANIFESTS: [&str; 6] = [
    "/run/opengl-driver/share/vulkan/icd.d",
    "/etc/vulkan/icd.d",
    "/usr/share/vulkan/icd.d",
    "/usr/local/share/vulkan/icd.d",
    "/usr/local/etc/vulkan/icd.d",
    "/etc/xdg/vulkan/icd.d",
];

/// Folders with the device files of GPUs.
const DEVICES: [&str; 2] = ["/dev", "/dev/dri"];

/// Beginnings of the names of variables that choose drivers or devices.
const VARIABLES: [&str; 7] =
    ["VK_", "MESA_", "LIBGL_", "NVIDIA_", "CUDA_VISIBLE_", "XDG_DATA_", "LD_LIBRARY_"];

/// The index of shared libraries, which changes when one is installed, such as the loader of drivers.
const LIBRARIES: &str = "/etc/ld.so.cache";

/// Text that is another one once a driver or library is installed, changed or loaded, a GPU appears, the user may open
/// it, or the machine starts again; `None` on systems where there is no such text.
pub(crate) fn fingerprint(version: &str) -> Option<String> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let own = directories::BaseDirs::new().map(|dirs| dirs.data_dir().join("vulkan/icd.d"));
    let folders = MANIFESTS.iter().map(PathBuf::from).chain(own);
    let manifests: Vec<String> = folders.flat_map(|folder| entries(&folder, true)).collect();
    let devices: Vec<String> = DEVICES.iter().flat_map(|folder| entries(Path::new(folder), false)).collect();
    let mut variables: Vec<String> = std::env::vars_os()
        .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()))
        .filter(|text| VARIABLES.iter().any(|start| text.starts_with(start)))
        .collect();
    variables.sort();
    let libraries = changed(fs::metadata(LIBRARIES).ok());
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let is_user = |line: &&str| ["Uid:", "Gid:", "Groups:"].iter().any(|start| line.starts_with(start));
    let user: Vec<&str> = status.lines().filter(is_user).collect();
    // Another build may hash differently, and then finds out anew.
    let mut hasher = DefaultHasher::new();
    (version, boot, manifests, devices, variables, libraries, user).hash(&mut hasher);
    Some(format!("{:016x}", hasher.finish()))
}

/// The entries of a folder, sorted; with the times of their last changes.
fn entries(folder: &Path, with_time: bool) -> Vec<String> {
    let Ok(all) = fs::read_dir(folder) else { return Vec::new() };
    let text = |entry: fs::DirEntry| {
        let changed = changed(entry.metadata().ok().filter(|_| with_time));
        format!("{} {changed}", entry.path().display())
    };
    let mut all: Vec<String> = all.flatten().map(text).collect();
    all.sort();
    all
}

/// The time of a file's last change, in nanoseconds; 0 for none.
fn changed(of: Option<fs::Metadata>) -> u128 {
    let time = of.and_then(|m| m.modified().ok()).and_then(|t| t.duration_since(UNIX_EPOCH).ok());
    time.map_or(0, |t| t.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_manifest_and_a_changed_one_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let seen = || entries(folder.path(), true);
        let path = folder.path().join("driver.json");
        let mut states = vec![seen()];
        fs::write(&path, "{}").unwrap();
        states.push(seen());
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(UNIX_EPOCH + std::time::Duration::from_secs(1)).unwrap();
        states.push(seen());
        assert!(states[0] != states[1] && states[1] != states[2], "{states:?}");
        assert!(entries(Path::new("/no/such/folder"), true).is_empty());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_same_machine_has_the_same_fingerprint() {
        assert_eq!(fingerprint("1"), fingerprint("1"));
        assert_ne!(fingerprint("1"), fingerprint("2"));
    }
}
