//! `gen-kernels`: renders and checks all kernels of `chaski-kernels`, and keeps samples in its `rendered/` folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use chaski_kernels::check;

/// Checks all kernels and writes the samples that changed, or with `only_check` fails if any would change.
pub(crate) fn generate(only_check: bool) -> anyhow::Result<()> {
    let dir = crate::root().join("crates/kernels/rendered");
    let n_kernel = check::check_all()?;
    let wanted = check::samples();
    let found = read(&dir)?;
    let stale: Vec<&String> =
        wanted.iter().filter(|(n, t)| found.get(*n) != Some(*t)).map(|(n, _)| n).collect();
    let extra: Vec<&String> = found.keys().filter(|n| !wanted.contains_key(*n)).collect();
    if only_check {
        if !stale.is_empty() || !extra.is_empty() {
            bail!(
                "rendered kernels are stale ({stale:?} differ, {extra:?} are left over): run `cargo xtask gen-kernels`"
            );
        }
        println!("{n_kernel} kernels are valid, {} samples up to date", wanted.len());
        return Ok(());
    }
    for name in &stale {
        fs::write(dir.join(name), &wanted[*name]).with_context(|| format!("could not write {name}"))?;
    }
    for name in &extra {
        fs::remove_file(dir.join(name)).with_context(|| format!("could not remove {name}"))?;
    }
    println!("{n_kernel} kernels; {} samples written, {} removed", stale.len(), extra.len());
    Ok(())
}

fn read(dir: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).with_context(|| format!("could not list {}", dir.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let text = fs::read_to_string(entry.path()).with_context(|| format!("could not read {name}"))?;
        found.insert(name, text);
    }
    Ok(found)
}
