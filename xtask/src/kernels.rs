//! `gen-kernels`: renders the templates of `chaski-kernels` into its `rendered/` folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use chaski_kernels::render;

/// Renders all kernels and writes what changed, or with `check` fails if anything would change.
pub(crate) fn generate(check: bool) -> anyhow::Result<()> {
    let dir = crate::root().join("crates/kernels/rendered");
    let rendered = render::render_all()?;
    let wanted = render::files(&rendered);
    let found = read(&dir)?;
    let stale: Vec<&String> =
        wanted.iter().filter(|(n, t)| found.get(*n) != Some(*t)).map(|(n, _)| n).collect();
    let extra: Vec<&String> = found.keys().filter(|n| !wanted.contains_key(*n)).collect();
    if check {
        if !stale.is_empty() || !extra.is_empty() {
            bail!(
                "rendered kernels are stale ({stale:?} differ, {extra:?} are left over): run `cargo xtask gen-kernels`"
            );
        }
        println!("{} rendered kernels are up to date", rendered.len());
        return Ok(());
    }
    for name in &stale {
        fs::write(dir.join(name), &wanted[*name]).with_context(|| format!("could not write {name}"))?;
    }
    for name in &extra {
        fs::remove_file(dir.join(name)).with_context(|| format!("could not remove {name}"))?;
    }
    println!("{} kernels; {} files written, {} removed", rendered.len(), stale.len(), extra.len());
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
