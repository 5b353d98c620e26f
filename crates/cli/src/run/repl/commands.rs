//! The commands of a chat, as a table.

use super::editor;
use super::session::{Next, Session};
use crate::ui::{one_line, tell};

/// A command.
pub(super) struct Command {
    /// The name without its slash, and other names.
    names: &'static [&'static str],
    /// Its argument, as `/help` shows it.
    argument: &'static str,
    help: &'static str,
    run: fn(&mut Session<'_>, &str) -> anyhow::Result<Next>,
}

/// All commands, in the order of `/help`.
const COMMANDS: &[Command] = &[
    Command {
        names: &["regen", "retry"],
        argument: "",
        help: "answer the last message again",
        run: |session, _| session.regenerate().map(|()| Next::Input),
    },
    Command {
        names: &["undo"],
        argument: "",
        help: "remove the last message and its answer",
        run: |session, _| {
            session.undo();
            Ok(Next::Input)
        },
    },
    Command {
        names: &["edit"],
        argument: "",
        help: "change the last message in $EDITOR and answer it anew",
        run: |session, _| session.edit(editor::edit).map(|()| Next::Input),
    },
    Command {
        names: &["read"],
        argument: "FILE",
        help: "put a text file before the next message;\nwithout FILE: forget such files",
        run: |session, file| session.read_file(file).map(|()| Next::Input),
    },
    Command {
        names: &["save"],
        argument: "FILE",
        help: "write the conversation as JSON in OpenAI's format",
        run: |session, file| session.save(file).map(|()| Next::Input),
    },
    Command {
        names: &["load"],
        argument: "FILE",
        help: "replace the conversation by that of a file",
        run: |session, file| session.load(file).map(|()| Next::Input),
    },
    Command {
        names: &["system"],
        argument: "TEXT",
        help: "change the system prompt; without TEXT: show it",
        run: |session, text| {
            session.system(text);
            Ok(Next::Input)
        },
    },
    Command {
        names: &["set"],
        argument: "OPTION VALUE",
        help: "change an option of the command line: /set temp 0.5\n\
               without VALUE: remove system, stop, tools, a grammar\n\
               or a schema, and turn others on: /set special",
        run: |session, line| {
            session.set(line);
            Ok(Next::Input)
        },
    },
    Command {
        names: &["show"],
        argument: "",
        help: "show model, device, context, and the options in force",
        run: |session, _| {
            session.show();
            Ok(Next::Input)
        },
    },
    Command {
        names: &["model"],
        argument: "FILE",
        help: "go on with another model; without FILE: name this one",
        run: |session, file| session.model(file),
    },
    Command {
        names: &["clear"],
        argument: "",
        help: "forget the conversation",
        run: |session, _| {
            session.clear();
            Ok(Next::Input)
        },
    },
    Command {
        names: &["help", "?"],
        argument: "",
        help: "show this list",
        run: |_, _| {
            eprint!("{}", help());
            Ok(Next::Input)
        },
    },
    Command {
        names: &["bye", "exit", "quit"],
        argument: "",
        help: "exit (or Ctrl-D)",
        run: |_, _| Ok(Next::Exit),
    },
];

/// Keys and texts that are no commands.
const KEYS: &[(&str, &str)] = &[
    ("\"\"\"", "begin and end a message (or a TEXT) of several lines"),
    ("Ctrl-C", "stop an answer and keep what there is of it"),
];

/// Runs a command.
pub(super) fn run(session: &mut Session<'_>, name: &str, argument: &str) -> anyhow::Result<Next> {
    match COMMANDS.iter().find(|command| command.names.contains(&name)) {
        Some(command) => (command.run)(session, argument),
        None => {
            let name = one_line(name);
            tell(&format!(
                "There is no command `/{name}`; /help lists them. A message that begins with `/` goes between \"\"\"."
            ));
            Ok(Next::Input)
        }
    }
}

/// The list of commands.
fn help() -> String {
    let usage = |c: &Command| format!("/{} {}", c.names[0], c.argument).trim_end().to_owned();
    let rows: Vec<(String, &str)> = COMMANDS
        .iter()
        .map(|c| (usage(c), c.help))
        .chain(KEYS.iter().map(|(key, help)| ((*key).to_owned(), *help)))
        .collect();
    let width = rows.iter().map(|(usage, _)| usage.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (usage, help) in rows {
        for (i, line) in help.lines().enumerate() {
            let usage = if i == 0 { usage.as_str() } else { "" };
            text += &format!("  {usage:<width$}   {line}\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_help_is_a_table() {
        let mut names: Vec<_> = COMMANDS.iter().flat_map(|c| c.names).collect();
        let n = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), n);
        let help = help();
        let column = help.lines().next().unwrap().find("answer").unwrap();
        for line in help.lines() {
            assert!(line.starts_with("  ") && line.len() < 80, "{line}");
            assert!(&line[column - 3..column] == "   " && !line[column..].starts_with(' '), "{line}");
        }
        for command in COMMANDS {
            assert!(
                help.contains(&format!("\n  /{}", command.names[0])) || help.starts_with("  /regen"),
                "{help}"
            );
        }
    }

    #[test]
    fn the_documentation_lists_every_command() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/chat.md");
        let page = std::fs::read_to_string(page).unwrap();
        for command in COMMANDS {
            for name in command.names {
                assert!(page.contains(&format!("`/{name}")), "docs/chat.md does not have /{name}");
            }
        }
    }
}
