//! `chaski rm`: removes a model of the cache.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;

use chaski_hub::{Bytes, ModelName};

use super::Models;
use crate::failure::Usage;
use crate::ui::counted;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Name of the model; without a tag or file, the whole repository
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

pub(crate) fn rm(args: &Args, models: &Models) -> anyhow::Result<()> {
    let name = models.name_of(&args.model)?;
    match &name {
        ModelName::Path(path) => {
            let message =
                format!("`{}` is a file of yours; this command removes models of the cache", path.display());
            return Err(Usage(message).into());
        }
        ModelName::Ollama(_) => {
            return Err(Usage(format!("`{name}` belongs to ollama: `ollama rm` removes it")).into());
        }
        ModelName::Hub(_) | ModelName::Address(_) => {}
    }
    if !args.yes && !is_confirmed(&name)? {
        models.ui().say("nothing was removed");
        return Ok(());
    }
    let removed = models.hub()?.remove(&name)?;
    let kept = match removed.n_kept {
        0 => String::new(),
        n => format!("; {} stay, which others use", Bytes(n)),
    };
    models.ui().say(&format!("removed {}, {}{kept}", counted(removed.n_file, "file"), Bytes(removed.n_byte)));
    Ok(())
}

/// Asks on the terminal.
fn is_confirmed(name: &ModelName) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Err(Usage("without a terminal to ask on, `chaski rm` needs --yes".into()).into());
    }
    write!(std::io::stderr(), "remove {name}? [y/N] ")?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
