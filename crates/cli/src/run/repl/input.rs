//! Input of the user: commands, and messages of one or several lines.

use crate::ui::tell;

/// Begins and ends a text of several lines.
const QUOTES: &str = "\"\"\"";

/// Source of lines.
pub(super) trait Lines {
    /// The next line.
    fn line(&mut self, prompt: &str) -> anyhow::Result<Line>;

    /// Keeps an input for the next sessions, before anything is done with it.
    fn remember(&mut self, input: &str);
}

/// A line, or its absence.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// It may have line breaks, if it was pasted.
    Text(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D.
    End,
}

/// User input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// A command without its slash, and its argument.
    Command(String, String),
    /// A message.
    Message(String),
}

impl Input {
    fn of_line(line: String) -> Input {
        match line.trim().strip_prefix('/') {
            Some(command) => {
                let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
                Input::Command(name.to_owned(), rest.trim().to_owned())
            }
            None => Input::Message(line),
        }
    }
}

/// The next input that is not empty; `None` at the end.
pub(super) fn read(lines: &mut impl Lines) -> anyhow::Result<Option<Input>> {
    loop {
        let line = match lines.line(">>> ")? {
            Line::Text(line) => line,
            Line::Interrupted => {
                tell("Use Ctrl-D or /bye to exit.");
                continue;
            }
            Line::End => return Ok(None),
        };
        if line.trim().is_empty() {
            continue;
        }
        let Some((command, begun)) = opened(&line) else {
            lines.remember(&line);
            return Ok(Some(Input::of_line(line)));
        };
        match quoted(lines, begun)? {
            Quoted::Text(text) => {
                lines.remember(&format!("{command}{QUOTES}{text}{QUOTES}"));
                let input = match command.trim().strip_prefix('/') {
                    Some(name) => Input::Command(name.to_owned(), text),
                    None => Input::Message(text),
                };
                if !matches!(&input, Input::Message(text) if text.trim().is_empty()) {
                    return Ok(Some(input));
                }
            }
            Quoted::Left(text, line) => {
                // It can be brought back and completed.
                lines.remember(&format!("{command}{QUOTES}{text}"));
                if line == Line::End {
                    return Ok(None);
                }
            }
        }
    }
}

/// A command and the text after the quotes, if a line opens a quoted text: as a message, or as a command's argument.
fn opened(line: &str) -> Option<(&str, &str)> {
    let begin = line.len() - line.trim_start().len();
    if let Some(text) = line[begin..].strip_prefix(QUOTES) {
        return Some(("", text));
    }
    let (command, rest) = line.split_once(QUOTES)?;
    let is_command = command.trim().starts_with('/') && command.split_whitespace().count() == 1;
    (is_command && command.ends_with(char::is_whitespace)).then_some((command, rest))
}

/// A quoted text.
enum Quoted {
    /// Complete.
    Text(String),
    /// Abandoned, with the key that did.
    Left(String, Line),
}

/// The text up to the closing quotes. Line breaks beside the quotes are not part of it.
fn quoted(lines: &mut impl Lines, begun: &str) -> anyhow::Result<Quoted> {
    let mut text = begun.to_owned();
    loop {
        if let Some(whole) = text.trim_end().strip_suffix(QUOTES) {
            let whole = whole.strip_prefix('\n').unwrap_or(whole);
            return Ok(Quoted::Text(whole.strip_suffix('\n').unwrap_or(whole).to_owned()));
        }
        match lines.line("... ")? {
            Line::Text(line) => {
                text.push('\n');
                text += &line;
            }
            other => return Ok(Quoted::Left(text, other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Typed<'a> {
        lines: std::str::Split<'a, char>,
        kept: Vec<String>,
    }

    impl Lines for Typed<'_> {
        fn line(&mut self, _: &str) -> anyhow::Result<Line> {
            Ok(match self.lines.next() {
                None => Line::End,
                Some("^C") => Line::Interrupted,
                Some(line) => Line::Text(line.replace('|', "\n")),
            })
        }

        fn remember(&mut self, input: &str) {
            self.kept.push(input.to_owned());
        }
    }

    fn all(typed: &str) -> (Vec<Input>, Vec<String>) {
        let mut lines = Typed { lines: typed.split('\n'), kept: Vec::new() };
        let inputs = std::iter::from_fn(|| read(&mut lines).unwrap()).collect();
        (inputs, lines.kept)
    }

    fn message(text: &str) -> Input {
        Input::Message(text.into())
    }

    fn command(name: &str, rest: &str) -> Input {
        Input::Command(name.into(), rest.into())
    }

    #[test]
    fn lines_are_messages_or_commands() {
        let (inputs, kept) = all("hello /bye\n\n /set  temp 1 \n/help");
        assert_eq!(inputs, [message("hello /bye"), command("set", "temp 1"), command("help", "")]);
        assert_eq!(kept, ["hello /bye", " /set  temp 1 ", "/help"]);
    }

    #[test]
    fn quotes_hold_several_lines() {
        for typed in [
            "\"\"\"\n/bye\n\nend\n\"\"\"",
            "\"\"\"/bye\n\nend\"\"\"",
            "\"\"\"/bye||end\"\"\"",
            "\"\"\"/bye|\nend\"\"\" ",
        ] {
            let (inputs, kept) = all(typed);
            assert_eq!(inputs, [message("/bye\n\nend")], "{typed}");
            // The same input again, when it is brought back.
            assert_eq!(all(&kept[0].replace('\n', "|")).0, inputs);
        }
        assert_eq!(all("\"\"\"one\"\"\"\n\"\"\"\n\"\"\"\nb").0, [message("one"), message("b")]);
        assert_eq!(all("/system \"\"\"\nBe\nkind.\n\"\"\"").0, [command("system", "Be\nkind.")]);
        assert_eq!(
            all("say \"\"\"\n/set system \"\"\"x").0,
            [message("say \"\"\""), command("set", "system \"\"\"x")]
        );
    }

    #[test]
    fn a_text_left_half_way_is_remembered() {
        let (inputs, kept) = all("\"\"\"\na\n^C\nb\n^C\n\"\"\"c\nd");
        assert_eq!((inputs, kept.len()), (vec![message("b")], 3));
        assert_eq!([&kept[0], &kept[2]], ["\"\"\"\na", "\"\"\"c\nd"]);
    }
}
