//! `gen-kernels`: checks all kernels of `chaski-kernels`, and renews the samples in its `rendered/` folder.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use chaski_kernels::{Kernel, check};

/// Checks all kernels, adds those named to the samples, and writes the samples that changed, or with `only_check` fails if
/// any would change.
pub(crate) fn generate(only_check: bool, add: &[String]) -> anyhow::Result<()> {
    let dir = crate::root().join("crates/kernels/rendered");
    let n_kernel = check::check_all()?;
    for name in add {
        sample(name)?;
        fs::write(dir.join(format!("{name}.wgsl")), "").with_context(|| format!("could not write {name}"))?;
    }
    let names = names(&dir)?;
    let mut stale = Vec::new();
    for name in &names {
        let path = dir.join(format!("{name}.wgsl"));
        let wanted = sample(name)?;
        let found = fs::read_to_string(&path).with_context(|| format!("could not read {name}"))?;
        if found != wanted {
            if !only_check {
                fs::write(&path, wanted).with_context(|| format!("could not write {name}"))?;
            }
            stale.push(name);
        }
    }
    if only_check && !stale.is_empty() {
        bail!("samples of rendered kernels are stale ({stale:?}): run `cargo xtask gen-kernels`");
    }
    println!("{n_kernel} kernels are valid; of {} samples {} changed", names.len(), stale.len());
    Ok(())
}

fn sample(name: &str) -> anyhow::Result<&'static str> {
    let kernel = Kernel::find(name);
    Ok(kernel.ok_or_else(|| anyhow!("rendered/{name}.wgsl: there is no such kernel (any more)"))?.source)
}

/// The samples that are there.
fn names(dir: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("could not list {}", dir.display()))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let stem = name.strip_suffix(".wgsl").ok_or_else(|| anyhow!("rendered/{name} is no kernel"))?;
        names.push(stem.to_owned());
    }
    names.sort_unstable();
    Ok(names)
}
