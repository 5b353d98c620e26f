//! Room on the disk.

use chaski_hub::{FailureKind, HubError};

use crate::fake::Faults;
use crate::{Client, NAME, tiny};

#[test]
fn a_file_larger_than_the_disk_is_refused_before_the_first_byte() {
    let hub = tiny();
    hub.set(Faults { claimed: Some(1 << 60), ..Faults::default() });
    let client = Client::of(&hub);
    let error = client.pull(NAME).unwrap_err();
    assert!(matches!(error, HubError::NoRoom { n_needed, .. } if n_needed == 1 << 60), "{error:?}");
    assert_eq!(error.kind(), FailureKind::NoRoom);
    assert!(error.to_string().contains("lack"), "{error}");
    assert!(hub.take_log().iter().all(|l| !l.path.contains("/resolve/")));
}

/// A folder of its own file system, unmounted when it is dropped.
#[cfg(target_os = "linux")]
struct Mounted(tempfile::TempDir);

#[cfg(target_os = "linux")]
impl Mounted {
    /// `None` where mounting is not permitted.
    fn of_size(size: usize) -> Option<Mounted> {
        let folder = tempfile::tempdir().unwrap();
        let options = format!("size={size}");
        let status = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(folder.path())
            .stderr(std::process::Stdio::null())
            .status();
        status.is_ok_and(|status| status.success()).then(|| Mounted(folder))
    }
}

#[cfg(target_os = "linux")]
impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(self.0.path()).status();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_keeps_the_part() {
    let Some(disk) = Mounted::of_size(256 << 10) else {
        return crate::skipped("the right to mount a tmpfs");
    };
    // The list says how long the file is.
    let hub = tiny();
    let client = Client::of(&hub).with(|config| config.cache = disk.0.path().join("hub"));
    let plan = client.plan(NAME).unwrap();
    let error = client.pull(NAME).unwrap_err();
    assert!(matches!(error, HubError::NoRoom { .. }), "{error:?}");
    assert!(client.blobs().is_empty(), "refused before the first byte");
    // The room vanishes after the plan was made.
    let mut smaller = plan;
    smaller.files[0].n_present = 200_000;
    let mut watch = chaski_hub::Watch { cancel: Default::default(), tell: &mut |_| {} };
    let error = client.hub().fetch(&smaller, &mut watch).unwrap_err();
    assert!(matches!(error, HubError::NoRoom { n_free, .. } if n_free < 100_000), "{error:?}");
    assert!(client.blobs().iter().any(|name| name.ends_with(".chaski-part")), "{:?}", client.blobs());
}
