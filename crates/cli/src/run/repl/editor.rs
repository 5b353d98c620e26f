//! The user's own editor, for a message.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use crate::interrupt;

/// The text after the user has edited it.
///
/// # Errors
/// If the editor cannot be started or fails; its text then is not used.
pub(super) fn edit(text: &str) -> anyhow::Result<String> {
    let editor = name();
    let mut file = tempfile::Builder::new().prefix("chaski-").suffix(".txt").tempfile()?;
    file.write_all(text.as_bytes())?;
    // Some editors replace the file, so it is closed and read by its name.
    let path = file.into_temp_path();
    let status = {
        // Ctrl-C belongs to the editor.
        let _away = interrupt::Away::begin();
        command(&editor, &path).status().with_context(|| format!("cannot start the editor `{editor}`"))?
    };
    anyhow::ensure!(status.success(), "the editor `{editor}` failed ({status}); nothing is changed");
    let edited = fs::read_to_string(&path).context("cannot read what the editor wrote as UTF-8")?;
    // Editors end a file with a line break.
    let end = if text.ends_with('\n') { "" } else { "\n" };
    Ok(edited.strip_suffix(end).unwrap_or(&edited).to_owned())
}

fn name() -> String {
    let set = |name| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let usual = if cfg!(windows) { "notepad" } else { "vi" };
    set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| usual.to_owned())
}

/// The editor with its own arguments: the variables hold a shell's command.
fn command(editor: &str, path: &Path) -> Command {
    if cfg!(windows) {
        let mut words = editor.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or("notepad"));
        command.args(words).arg(path);
        return command;
    }
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(path);
    command
}
