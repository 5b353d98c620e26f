//! Names of commands that do not exist yet: each says what to do instead. They are not among the commands of clap, so that
//! neither completions nor manual pages offer them.

use std::ffi::OsString;

use clap::Command;

use crate::failure::Instead;

/// Names, and what to do instead.
const RESERVED: [(&str, &str); 2] = [
    ("pull", "download a GGUF file, for instance from huggingface.co, then `chaski run FILE`"),
    ("list", "models are files of yours, and `chaski show FILE` describes one"),
];

/// The answer to a command line of `root` whose command is such a name.
pub(crate) fn answer(args: &[OsString], root: &Command) -> Option<Instead> {
    let mut words = args.iter().skip(1).filter_map(|arg| arg.to_str());
    let word = loop {
        let word = words.next()?;
        if !word.starts_with('-') {
            break word;
        }
        let has_value = |long: &str| {
            root.get_arguments().any(|arg| arg.get_long() == Some(long) && arg.get_action().takes_values())
        };
        if word.strip_prefix("--").is_some_and(has_value) {
            words.next();
        }
    };
    let (name, instead) = RESERVED.iter().find(|(name, _)| *name == word)?;
    Some(Instead(format!("`chaski {name}` does not exist yet: {instead}")))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::Cli;

    #[test]
    fn the_value_of_an_option_is_no_command() {
        let mut root = Cli::command();
        root.build();
        let is_reserved = |line: &str| {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            answer(&args, &root).is_some()
        };
        for line in ["chaski pull x", "chaski -v list", "chaski --color never pull"] {
            assert!(is_reserved(line), "{line}");
        }
        for line in ["chaski", "chaski --config list run x", "chaski run list", "chaski --color=never run"] {
            assert!(!is_reserved(line), "{line}");
        }
    }
}
