//! Inputs of commands: the model and text among the positional arguments, text files, and stdin.

use std::ffi::{OsStr, OsString};
#[cfg(unix)]
use std::fs::File;
use std::io::{BufRead as _, BufReader, ErrorKind, IsTerminal as _, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use anyhow::Context as _;

use crate::failure::Usage;
use crate::model_names::{Role, Visit, visit_path};
use crate::ui::{Ui, shortened};

/// A model and a text as positional arguments. The first is the model in every command, unless `-m` names it.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ModelAndText {
    /// GGUF file, or a name such as hf:org/repo:Q4_K_M [default: the built-in model]
    #[arg(value_name = "MODEL")]
    first: Option<OsString>,
    /// The text; without one, stdin is read
    #[arg(value_name = "TEXT")]
    second: Option<String>,
    /// The same, instead of MODEL
    #[arg(short, long, value_name = "FILE")]
    model: Option<PathBuf>,
}

impl ModelAndText {
    /// Visits the name of the model.
    pub(crate) fn models(&mut self, visit: Visit<'_>) -> anyhow::Result<()> {
        match (&mut self.model, &mut self.first) {
            (Some(model), _) => visit(model, Role::Main),
            (None, Some(first)) => visit_path(first, visit),
            (None, None) => Ok(()),
        }
    }

    /// True if a model other than the built-in one is named.
    pub(crate) fn has_model(&self) -> bool {
        self.model.is_some() || self.first.is_some()
    }

    /// The model's file and the text, as far as they are given.
    ///
    /// # Errors
    /// [`Usage`] for two models, a text that is not UTF-8, or one in place of the model.
    pub(crate) fn split(&self) -> Result<(Option<PathBuf>, Option<String>), Usage> {
        if let (None, Some(first)) = (&self.model, &self.first) {
            refuse_text(first)?;
        }
        let text =
            if self.model.is_some() { self.first.as_deref() } else { self.second.as_deref().map(OsStr::new) };
        if text == Some(OsStr::new("-")) {
            return Err(Usage("`-` is no text: `-f -` reads stdin, and `-p -` is a hyphen".into()));
        }
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

/// Refuses a text in place of the model: words that no file has as its name.
fn refuse_text(first: &OsStr) -> Result<(), Usage> {
    let path = Path::new(first);
    let has_words = first.to_str().is_some_and(|text| text.trim().contains(char::is_whitespace));
    let is_model = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"));
    if !has_words || is_model || path.exists() {
        return Ok(());
    }
    let text = shortened(&first.to_string_lossy(), 60);
    Err(Usage(format!(
        "no file is called `{text}`: the first argument is the model, and the text follows it (MODEL \"{text}\"), or is given \
         with -p for the built-in model (-p \"{text}\")"
    )))
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

/// How long a command that has a prompt waits for the first byte of a pipe.
const PATIENCE: Duration = Duration::from_secs(10);

/// Stdin beside a prompt.
#[derive(Debug, PartialEq, Eq)]
enum Piped {
    /// No input.
    Nothing,
    Text(String),
    /// A pipe that neither said anything nor ended in time.
    Silent,
}

/// A prompt with the text of stdin behind it, changed by `change`, if stdin is a file or a pipe.
///
/// Terminals, sockets and devices are not read: a program that runs this command may leave any of them open for ever.
/// It may also leave a pipe open, so a pipe has to begin or end within [`PATIENCE`].
///
/// # Errors
/// If stdin is not UTF-8.
pub(crate) fn with_stdin(
    prompt: String,
    change: impl FnOnce(String) -> String,
    ui: &Ui,
) -> anyhow::Result<String> {
    if !is_file_or_pipe() {
        return Ok(prompt);
    }
    Ok(match piped(std::io::stdin(), PATIENCE)? {
        Piped::Nothing => prompt,
        Piped::Text(text) => {
            ui.detail(&format!("stdin   {} bytes follow the prompt", text.len()));
            followed(&prompt, &change(text))
        }
        Piped::Silent => {
            ui.note(&format!(
                "stdin is a pipe without input for {} s, and was ignored: `-f -` waits for it, `< /dev/null` closes it",
                PATIENCE.as_secs()
            ));
            prompt
        }
    })
}

/// A prompt and a text, with a blank line between them.
pub(crate) fn followed(prompt: &str, text: &str) -> String {
    format!("{}\n\n{}", prompt.trim_end_matches(['\r', '\n']), without_last_line_break(text))
}

/// A text without the line break that ends a file, or that `echo` adds.
pub(crate) fn without_last_line_break(text: &str) -> &str {
    text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text))
}

/// True if stdin is a regular file or a pipe.
#[cfg(unix)]
fn is_file_or_pipe() -> bool {
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::FileTypeExt as _;
    let metadata = std::io::stdin().as_fd().try_clone_to_owned().and_then(|fd| File::from(fd).metadata());
    metadata.is_ok_and(|m| m.is_file() || m.file_type().is_fifo())
}

/// True if stdin is a file, a pipe, or the null device, which ends at once.
#[cfg(not(unix))]
fn is_file_or_pipe() -> bool {
    !std::io::stdin().is_terminal()
}

/// All of a reader that says something, or ends, within `patience`.
fn piped(reader: impl Read + Send + 'static, patience: Duration) -> anyhow::Result<Piped> {
    let (sender, receiver) = std::sync::mpsc::channel();
    // If nothing comes, the thread waits until the process ends.
    std::thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let begun = reader.fill_buf().map(|_| String::new());
        let mut text = String::new();
        // Nobody listens if it took too long.
        let _ = sender.send(begun).and_then(|()| sender.send(reader.read_to_string(&mut text).map(|_| text)));
    });
    match receiver.recv_timeout(patience) {
        Err(RecvTimeoutError::Timeout) => return Ok(Piped::Silent),
        begun => begun?.context("cannot read stdin")?,
    };
    let text = receiver.recv()?.context("cannot read stdin as UTF-8")?;
    Ok(if text.trim().is_empty() { Piped::Nothing } else { Piped::Text(text) })
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

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_pipe_is_read_to_its_end_once_it_begins() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let writing = std::thread::spawn(move || {
            writer.write_all(b"a text").unwrap();
            // Longer than the patience for the beginning.
            std::thread::sleep(Duration::from_millis(60));
            writer.write_all(b" in two parts\n").unwrap();
        });
        let patience = Duration::from_secs(5);
        assert_eq!(piped(reader, patience).unwrap(), Piped::Text("a text in two parts\n".into()));
        writing.join().unwrap();
        for empty in ["", "\n"] {
            assert_eq!(piped(empty.as_bytes(), patience).unwrap(), Piped::Nothing);
        }
        assert!(piped(&b"\xff"[..], patience).is_err());
    }

    #[test]
    fn a_pipe_that_stays_open_and_silent_is_left_alone() {
        let (reader, writer) = std::io::pipe().unwrap();
        assert_eq!(piped(reader, Duration::from_millis(30)).unwrap(), Piped::Silent);
        drop(writer);
    }

    #[test]
    fn a_blank_line_is_between_prompt_and_text() {
        assert_eq!(followed("Summarise:", "one\ntwo\r\n"), "Summarise:\n\none\ntwo");
        assert_eq!(followed("Summarise:\n", "one\n\n"), "Summarise:\n\none\n");
    }
}
