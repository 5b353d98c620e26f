//! `chaski rm`: removes a model of the cache.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;

use chaski_hub::{Bytes, Hub, ModelName};

use super::Models;
use crate::failure::Usage;
use crate::ui::{counted, one_line};

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
    let hub = models.hub()?;
    if !args.yes && !is_confirmed(&name, hub)? {
        models.ui().say("nothing was removed");
        return Ok(());
    }
    let removed = hub.remove(&name, false)?;
    let kept = match removed.n_kept {
        0 => String::new(),
        n => format!("; {} stay, which others use", Bytes(n)),
    };
    models.ui().say(&format!(
        "removed {}, {}{kept}",
        counted(removed.files.len(), "file"),
        Bytes(removed.n_byte)
    ));
    Ok(())
}

/// Most files that the question lists.
const MOST_SHOWN: usize = 20;

/// Asks on the terminal, with the files and their bytes.
fn is_confirmed(name: &ModelName, hub: &Hub) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Err(Usage("without a terminal to ask on, `chaski rm` needs --yes".into()).into());
    }
    let trial = hub.remove(name, true)?;
    let mut err = std::io::stderr().lock();
    for file in trial.files.iter().take(MOST_SHOWN) {
        writeln!(err, "{}", one_line(&file.display().to_string()))?;
    }
    if let Some(n @ 1..) = trial.files.len().checked_sub(MOST_SHOWN) {
        writeln!(err, "and {n} more")?;
    }
    write!(err, "remove {name}: {}, {}? [y/N] ", counted(trial.files.len(), "file"), Bytes(trial.n_byte))?;
    drop(err);
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
