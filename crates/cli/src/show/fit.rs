//! Room for a model that is not here: on the disk, and in main memory.

use std::io::Write;

use serde_json::{Value, json};
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

use crate::hub::Remote;
use crate::ui::{bytes, one_line};

/// Prints the files of a model on a server, and the room for them.
pub(super) fn print(out: &mut impl Write, remote: &Remote) -> std::io::Result<()> {
    let plan = &remote.plan;
    writeln!(out, "\nDownload")?;
    for file in &plan.files {
        let size = file.size.map_or("?".into(), bytes);
        writeln!(out, "  {:<48} {size:>12}", one_line(&file.path))?;
    }
    let free = match remote.n_free {
        Some(free) if plan.n_missing() <= free => format!("{} are free: it fits on the disk", bytes(free)),
        Some(free) => format!("{} are free: it does not fit on the disk", bytes(free)),
        None => "the free room of the disk is not known".into(),
    };
    writeln!(out, "  {} to fetch; {free}", bytes(plan.n_missing()))
}

/// A line that compares a need with main memory.
pub(super) fn in_memory(n_byte: u64) -> String {
    let all = main_memory();
    let fits = if n_byte <= all { "fits" } else { "does not fit" };
    format!("{fits} into the {} of main memory here", bytes(all))
}

/// The same for programs.
pub(super) fn json(remote: &Remote) -> Value {
    let plan = &remote.plan;
    let files: Vec<Value> =
        plan.files.iter().map(|file| json!({ "path": file.path, "bytes": file.size })).collect();
    json!({
        "files": files,
        "bytes": plan.n_byte(),
        "missing": plan.n_missing(),
        "free": remote.n_free,
        "fits_disk": remote.n_free.map(|free| plan.n_missing() <= free),
        "main_memory": main_memory(),
    })
}

/// Bytes of main memory.
fn main_memory() -> u64 {
    let memory = MemoryRefreshKind::nothing().with_ram();
    System::new_with_specifics(RefreshKind::nothing().with_memory(memory)).total_memory()
}
