//! Size limits of the package.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use flate2::Compression;
use flate2::write::GzEncoder;

/// Maximum bytes of the module, raw and compressed: the current sizes and a little more. The targets are 1,500,000 and
/// 600,000; lower these with an improvement, and raise them only for something that pages use, with a row in
/// docs/web.md.
const WASM: [usize; 2] = [1_948_000, 880_000];
/// Maximum bytes of all JavaScript that a page loads, compressed.
const JS: usize = 40_000;

/// Prints the sizes, and fails if one exceeds its limit.
pub(crate) fn check(package: &Path) -> anyhow::Result<()> {
    let wasm = read(&package.join("wasm/chaski_web_bg.wasm"))?;
    let mut js = Vec::new();
    for file in scripts(package)? {
        js.extend(read(&file)?);
    }
    let found = [
        ("wasm", wasm.len(), WASM[0]),
        ("wasm, gzip", gzip(&wasm)?, WASM[1]),
        ("JavaScript, gzip", gzip(&js)?, JS),
    ];
    for (what, n_byte, bound) in found {
        println!("{what}: {n_byte} bytes of {bound}");
    }
    if let Some((what, n_byte, bound)) = found.into_iter().find(|(_, n, bound)| n > bound) {
        bail!("{what}: {n_byte} bytes, at most {bound} are allowed (xtask/src/web/size.rs)");
    }
    Ok(())
}

/// The sizes of a module, raw and compressed, in words.
///
/// # Errors
/// If one exceeds its limit.
pub(super) fn module(path: &Path, limits: [usize; 2]) -> anyhow::Result<String> {
    let wasm = read(path)?;
    let found = [wasm.len(), gzip(&wasm)?];
    let line = format!("{} bytes, {} with gzip", found[0], found[1]);
    if found.iter().zip(limits).any(|(n, limit)| *n > limit) {
        bail!("{}: {line}; at most {limits:?} are allowed", path.display());
    }
    Ok(line)
}

/// JavaScript files among the package's `files`.
fn scripts(package: &Path) -> anyhow::Result<Vec<std::path::PathBuf>> {
    let mut found = Vec::new();
    for folder in ["", "src", "wasm"] {
        let folder = package.join(folder);
        for entry in fs::read_dir(&folder).with_context(|| format!("could not list {}", folder.display()))? {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == "js") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("could not read {}", path.display()))
}

fn gzip(bytes: &[u8]) -> anyhow::Result<usize> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len())
}
