//! The kernels of the browser's feature sets, as files whose contents a page can compile.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use chaski_kernels::{Dialect, Kernel};
use serde_json::json;

/// Kernels per file: as many as a page compiles at once.
const PER_FILE: usize = 500;

/// Writes `kernels-0.json`, `kernels-1.json` ... with name and text of every browser kernel, and returns the number of
/// files.
pub(crate) fn write(folder: &Path) -> anyhow::Result<usize> {
    fs::create_dir_all(folder).with_context(|| format!("could not make {}", folder.display()))?;
    let names = Kernel::names();
    let kernels: Vec<serde_json::Value> = names
        .iter()
        .filter_map(|name| Kernel::find(name))
        .filter(|k| k.is_for_web())
        .map(|k| {
            json!({
                "name": k.name,
                "text": k.text(Dialect::Web),
                "f16": k.features.f16,
                "subgroups": k.features.subgroup,
            })
        })
        .collect();
    let files = kernels.chunks(PER_FILE);
    let n = files.len();
    for (i, part) in files.enumerate() {
        let path = folder.join(format!("kernels-{i}.json"));
        fs::write(&path, serde_json::to_vec(part)?)
            .with_context(|| format!("could not write {}", path.display()))?;
    }
    println!("{} kernels for browsers, of {}", kernels.len(), names.len());
    Ok(n)
}
