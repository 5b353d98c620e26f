//! `chaski verify`: compares the files of the cache with their digests.

use std::io::Write as _;
use std::path::PathBuf;

use chaski_hub::{Bytes, Event, Verdict, Verified};
use serde_json::{Value, json};

use super::Models;
use super::args::OutputArgs;
use super::transfer::Transfer;
use crate::failure::Reported;
use crate::progress::Unit;
use crate::ui::{counted, one_line};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Name of the model [default: all models of the cache]
    #[arg(value_name = "MODEL")]
    model: Option<PathBuf>,
    /// Fetch damaged files again
    #[arg(long)]
    repair: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn verify(args: &Args, models: &Models) -> anyhow::Result<()> {
    let name = args.model.as_deref().map(|word| models.name_of(word)).transpose()?;
    let (hub, ui) = (models.hub()?, models.ui());
    let progress = ui.progress("verify", Unit::Bytes, 0);
    let mut done: Vec<u64> = Vec::new();
    let mut tell = |event| {
        if let Event::Progress { file, n_present, .. } = event {
            done.resize(done.len().max(file + 1), 0);
            done[file] = n_present;
            progress.set(done.iter().sum(), 0);
        }
    };
    let verified = models.watched(&mut tell, |watch| hub.verify(name.as_ref(), watch))?;
    progress.finish();
    if args.output.is_json() {
        let all: Vec<Value> = verified.iter().map(as_json).collect();
        writeln!(std::io::stdout(), "{:#}", Value::from(all))?;
    } else {
        print(&verified)?;
    }
    let is_bad = |file: &&Verified| matches!(file.verdict, Verdict::Damaged { .. } | Verdict::Missing);
    let n_bad = verified.iter().filter(is_bad).count();
    if n_bad == 0 {
        return Ok(());
    }
    if !args.repair {
        ui.say("`chaski verify --repair` fetches them again");
        return Err(Reported.into());
    }
    let mut transfer = Transfer::new(ui, false);
    let n = models.watched(&mut |event| transfer.show(event), |watch| hub.repair(&verified, watch))?;
    transfer.finish();
    ui.say(&format!("repaired {}", counted(n, "file")));
    Ok(())
}

fn print(verified: &[Verified]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for file in verified {
        let place = format!("{}/{}", file.name, one_line(&file.path));
        match &file.verdict {
            Verdict::Intact => {}
            Verdict::Damaged { expected, found } => {
                writeln!(out, "damaged  {place}: expected {expected}, found {found}")?;
            }
            Verdict::Missing => writeln!(out, "missing  {place}")?,
            Verdict::Unknown => writeln!(out, "unknown  {place}: no digest is known")?,
        }
    }
    let intact = verified.iter().filter(|file| file.verdict == Verdict::Intact);
    let n_byte: u64 = intact.clone().map(|file| file.size).sum();
    writeln!(out, "{} of {} intact, {}", intact.count(), counted(verified.len(), "file"), Bytes(n_byte))?;
    Ok(())
}

fn as_json(file: &Verified) -> Value {
    let (verdict, digests) = match &file.verdict {
        Verdict::Intact => ("intact", None),
        Verdict::Damaged { expected, found } => ("damaged", Some((expected.digits(), found.digits()))),
        Verdict::Missing => ("missing", None),
        Verdict::Unknown => ("unknown", None),
    };
    json!({
        "name": file.name,
        "path": file.path,
        "commit": file.commit,
        "bytes": file.size,
        "verdict": verdict,
        "expected": digests.map(|(expected, _)| expected),
        "found": digests.map(|(_, found)| found),
    })
}
