//! Notes the commit and wgpu's version for `chaski --version`.

use std::path::Path;
use std::process::Command;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // The log of HEAD grows with every commit; HEAD itself names a branch only.
    for file in [".git/logs/HEAD", "Cargo.lock"] {
        let path = root.join(file);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    let git = |args: &[&str]| -> Option<String> {
        let out = Command::new("git").arg("-C").arg(&root).args(args).output().ok()?;
        let text = String::from_utf8(out.stdout).ok()?;
        (out.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
    };
    // A crate unpacked inside another repository must not take over that one's commit.
    let ours = root.join(".git").exists();
    let commit = ours.then(|| git(&["rev-parse", "--short", "HEAD"])).flatten();
    let number = ours.then(|| git(&["rev-list", "--count", "HEAD"])).flatten();
    println!("cargo::rustc-env=CHASKI_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
    println!("cargo::rustc-env=CHASKI_BUILD_NUMBER={}", number.as_deref().unwrap_or("0"));
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).unwrap_or_default();
    println!("cargo::rustc-env=CHASKI_WGPU_VERSION={}", wgpu_version(&lock).unwrap_or("30"));
}

/// The version of the package `wgpu` in a lock file.
fn wgpu_version(lock: &str) -> Option<&str> {
    let (_, entry) = lock.split_once("name = \"wgpu\"\nversion = \"")?;
    entry.split('"').next()
}
