//! The memory of a GPU, where the system tells it: in sysfs, by drivers such as amdgpu. Graphics APIs do not tell it
//! through wgpu.

use std::path::Path;

/// Bytes of a GPU's own memory, and those of them that are free.
pub(super) fn of(pci: &str) -> Option<(u64, u64)> {
    // The address becomes part of a path.
    let is_address =
        pci.contains(':') && pci.bytes().all(|b| b.is_ascii_hexdigit() || matches!(b, b':' | b'.'));
    is_address.then(|| read(&Path::new("/sys/bus/pci/devices").join(pci.to_ascii_lowercase())))?
}

/// The same from the folder of a device.
fn read(device: &Path) -> Option<(u64, u64)> {
    let number =
        |name: &str| -> Option<u64> { std::fs::read_to_string(device.join(name)).ok()?.trim().parse().ok() };
    let all = number("mem_info_vram_total")?;
    Some((all, all.saturating_sub(number("mem_info_vram_used")?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_what_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()), None);
        std::fs::write(folder.path().join("mem_info_vram_total"), "17163091968\n").unwrap();
        assert_eq!(read(folder.path()), None, "a driver that tells half of it");
        std::fs::write(folder.path().join("mem_info_vram_used"), "163091968\n").unwrap();
        assert_eq!(read(folder.path()), Some((17_163_091_968, 17_000_000_000)));
    }

    #[test]
    fn addresses_stay_in_their_folder() {
        for pci in ["", "..", "../../../tmp", "ffff:ff:1f.7"] {
            assert_eq!(of(pci), None, "{pci:?}");
        }
    }
}
