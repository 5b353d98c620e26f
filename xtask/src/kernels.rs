//! `gen-kernels`: checks all kernels of `chaski-kernels`, and updates the samples in its `rendered/` folder.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use chaski_kernels::{Kernel, check};

/// Checks all kernels, adds those named to the samples, and updates samples and index; with `only_check`, fails if
/// anything would change.
pub(crate) fn generate(only_check: bool, add: &[String]) -> anyhow::Result<()> {
    let dir = crate::root().join("crates/kernels/rendered");
    let index = check::check_all()?;
    for name in add {
        sample(name)?;
        fs::write(dir.join(format!("{name}.wgsl")), "").with_context(|| format!("could not write {name}"))?;
    }
    let mut wanted = Vec::new();
    for name in names(&dir, ".wgsl")? {
        wanted.push((format!("{name}.wgsl"), sample(&name)?));
    }
    let n_sample = wanted.len();
    for (op, lines) in &index {
        wanted.push((format!("index/{op}.txt"), lines));
    }
    let mut stale = Vec::new();
    for (name, text) in wanted {
        let path = dir.join(&name);
        if fs::read_to_string(&path).ok().as_deref() == Some(text) {
            continue;
        }
        if !only_check {
            fs::write(&path, text).with_context(|| format!("could not write {name}"))?;
        }
        stale.push(name);
    }
    for op in names(&dir.join("index"), ".txt")?.into_iter().filter(|op| !index.contains_key(op.as_str())) {
        let name = format!("index/{op}.txt");
        if !only_check {
            fs::remove_file(dir.join(&name)).with_context(|| format!("could not remove {name}"))?;
        }
        stale.push(name);
    }
    if only_check && !stale.is_empty() {
        bail!("samples or index of rendered kernels are stale ({stale:?}): run `cargo xtask gen-kernels`");
    }
    let n_kernel: usize = index.values().map(|lines| lines.lines().count()).sum();
    println!(
        "{n_kernel} kernels are valid; of {n_sample} samples and their index {} files changed",
        stale.len()
    );
    Ok(())
}

fn sample(name: &str) -> anyhow::Result<&'static str> {
    let kernel = Kernel::find(name);
    Ok(kernel.ok_or_else(|| anyhow!("rendered/{name}.wgsl: no such kernel"))?.source)
}

/// Files of a folder with this suffix, without the suffix.
fn names(dir: &Path, end: &str) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    fs::create_dir_all(dir).with_context(|| format!("could not make {}", dir.display()))?;
    for entry in fs::read_dir(dir).with_context(|| format!("could not list {}", dir.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() {
            continue;
        }
        let stem =
            name.strip_suffix(end).ok_or_else(|| anyhow!("{name} in {} is no {end}", dir.display()))?;
        names.push(stem.to_owned());
    }
    names.sort_unstable();
    Ok(names)
}
