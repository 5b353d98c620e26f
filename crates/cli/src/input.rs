//! Inputs of commands: the model and text among the positional arguments, text files, and stdin.

use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::failure::Usage;
use crate::ui::Ui;

/// A model and a text as positional arguments. The first is the model in every command, unless `-m` names it.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ModelAndText {
    /// GGUF file [default: the built-in model]
    #[arg(value_name = "MODEL")]
    first: Option<OsString>,
    /// The text; without one, stdin is read
    #[arg(value_name = "TEXT")]
    second: Option<String>,
    /// GGUF file, instead of MODEL
    #[arg(short, long, value_name = "FILE")]
    model: Option<PathBuf>,
}

impl ModelAndText {
    /// The model's file and the text, as far as they are given.
    ///
    /// # Errors
    /// [`Usage`] for two models, or a text that is not UTF-8.
    pub(crate) fn split(&self) -> Result<(Option<PathBuf>, Option<String>), Usage> {
        match (&self.model, &self.first, &self.second) {
            (Some(_), Some(_), Some(_)) => Err(Usage("the model is given twice, as -m and as MODEL".into())),
            (Some(model), Some(text), None) => match text.to_str() {
                Some(text) => Ok((Some(model.clone()), Some(text.to_owned()))),
                None => Err(Usage("the text is not valid UTF-8".into())),
            },
            (model, first, text) => {
                Ok((model.clone().or_else(|| first.as_ref().map(PathBuf::from)), text.clone()))
            }
        }
    }
}

/// Notes that an argument is used as text although a file has its name.
pub(crate) fn note_file_name(text: &str, ui: &Ui) {
    if Path::new(text).is_file() {
        ui.note(&format!("`{text}` is a file, but is used as text; `-f {text}` reads the file"));
    }
}

/// The text of a file, or of stdin for `-`.
pub(crate) fn read_text(path: &Path) -> anyhow::Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("cannot read stdin as UTF-8")?;
        return Ok(text);
    }
    std::fs::read_to_string(path).map_err(|e| {
        let what = if e.kind() == ErrorKind::InvalidData { "is not valid UTF-8" } else { "cannot be read" };
        anyhow::Error::from(e).context(format!("`{}` {what}", path.display()))
    })
}

/// The text of `file`, by default of stdin.
///
/// # Errors
/// [`Usage`] with `missing` if stdin is a terminal; those of [`read_text`].
pub(crate) fn file_or_stdin(file: Option<&Path>, missing: &str) -> anyhow::Result<String> {
    match file {
        None if std::io::stdin().is_terminal() => Err(Usage(missing.to_owned()).into()),
        file => read_text(file.unwrap_or(Path::new("-"))),
    }
}
