//! `chaski prune`: removes what no model needs.

use std::io::Write as _;
use std::time::Duration;

use chaski_hub::Bytes;
use serde_json::json;

use super::args::OutputArgs;
use super::{Models, settings};
use crate::ui::counted;

/// Remove incomplete downloads that nobody goes on with, and contents that no snapshot names
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only what is older than so many hours; running downloads are never touched
    #[arg(long, value_name = "HOURS", default_value_t = 24)]
    older_than: u64,
    /// Only tell what would be removed
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn prune(args: &Args, models: &Models) -> anyhow::Result<()> {
    let age = Duration::from_secs(args.older_than.saturating_mul(3600));
    let pruned = models.hub()?.prune(age, args.dry_run)?;
    let mut out = std::io::stdout().lock();
    if args.output.is_json() {
        let all = json!({ "files": pruned.files, "bytes": pruned.n_byte, "removed": !args.dry_run });
        writeln!(out, "{all:#}")?;
        return Ok(());
    }
    for file in &pruned.files {
        writeln!(out, "{}", settings::shown(file))?;
    }
    let done = if args.dry_run { "would be removed" } else { "removed" };
    writeln!(out, "{}, {} {done}", counted(pruned.files.len(), "file"), Bytes(pruned.n_byte))?;
    Ok(())
}
