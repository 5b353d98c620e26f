//! `chaski pull`: fetches a model.

use std::io::Write as _;

use chaski_hub::{Bytes, Plan};
use serde_json::json;

use super::Models;
use super::args::OutputArgs;
use super::transfer::{Transfer, plan_json, print_line};
use crate::failure::Usage;
use crate::options::ModelArg;
use crate::ui::one_line;

pub(crate) const LONG: &str = "\
Fetches a model, or what is missing of it, and prints its path.

  chaski pull hf:org/repo            the usual file of a repository of Hugging Face
  chaski pull hf:org/repo:Q4_K_M     the one with this tag
  chaski pull hf:org/repo/file.gguf  this one; also an address of its page
  chaski pull https://host/a.gguf    a file at any address

A download that was interrupted goes on where it stopped. Every file is compared with the sha256 or the git blob id \
that the hub announces. The cache is the one of Hugging Face's programs and llama.cpp. With -o json, events are lines \
of JSON on stdout.";

#[derive(clap::Args)]
#[command(mut_arg("first", |arg| arg.help("Name of the model, such as hf:org/repo:Q4_K_M")))]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArg,
    /// Only tell what would be fetched
    #[arg(long)]
    dry_run: bool,
    /// Fetch the vision part of the model, too
    #[arg(long)]
    mmproj: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn pull(args: &Args, models: &Models) -> anyhow::Result<()> {
    let word = args.model.path().ok_or_else(|| Usage("which model? `chaski pull hf:ORG/REPO`".into()))?;
    let name = models.name_of(word)?;
    let (hub, ui) = (models.hub()?, models.ui());
    let is_json = args.output.is_json();
    let mut transfer = Transfer::new(ui, is_json);
    let plan = models.watched(&mut |event| transfer.show(event), |watch| match args.mmproj {
        true => hub.plan_with_projector(&name, watch),
        false => hub.plan(&name, watch),
    })?;
    if args.dry_run {
        return tell_plan(&plan, is_json);
    }
    let found = models.watched(&mut |event| transfer.show(event), |watch| hub.fetch(&plan, watch))?;
    transfer.finish();
    if is_json {
        let (path, projector) = (&found.path, &found.projector);
        print_line(
            &json!({ "event": "result", "name": name.to_string(), "path": path, "mmproj": projector }),
        );
        return Ok(());
    }
    writeln!(std::io::stdout(), "{}", found.path.display())?;
    if let Some(projector) = &found.projector {
        writeln!(std::io::stdout(), "{}", projector.display())?;
    }
    Ok(())
}

/// Prints what a download would do.
fn tell_plan(plan: &Plan, is_json: bool) -> anyhow::Result<()> {
    if is_json {
        print_line(&plan_json(plan));
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", plan.name)?;
    for file in &plan.files {
        let size = file.size.map_or("?".into(), |size| Bytes(size).to_string());
        let state = match (file.is_complete, file.n_present) {
            (true, _) => "here".to_owned(),
            (false, 0) => "to fetch".to_owned(),
            (false, _) => format!("{} to fetch", Bytes(file.n_missing())),
        };
        writeln!(out, "  {:<48} {size:>9}  {state}", one_line(&file.path))?;
    }
    writeln!(out, "{} of {} to fetch", Bytes(plan.n_missing()), Bytes(plan.n_byte()))?;
    Ok(())
}
