//! Names of commands that do not exist yet: each says what to do instead. They are not among the commands of clap, so that
//! neither completions nor manual pages offer them.

use std::ffi::OsString;

use crate::failure::Instead;

/// Names, and what to do instead.
const RESERVED: [(&str, &str); 3] = [
    ("pull", "download a GGUF file, for instance from huggingface.co, then `chaski run FILE`"),
    ("list", "models are files of yours, and `chaski show FILE` describes one"),
    ("serve", "`chaski run` answers on the command line, and the library serves programs"),
];

/// The answer to a command line whose first word is such a name.
pub(crate) fn answer(args: &[OsString]) -> Option<Instead> {
    let word = args.iter().skip(1).filter_map(|arg| arg.to_str()).find(|arg| !arg.starts_with('-'))?;
    let (name, instead) = RESERVED.iter().find(|(name, _)| *name == word)?;
    Some(Instead(format!("`chaski {name}` does not exist yet: {instead}")))
}
