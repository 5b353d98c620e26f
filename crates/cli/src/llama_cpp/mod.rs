//! Command lines as people type them for llama.cpp: its options become ours, change nothing, or are refused with a
//! reason.

mod table;

use std::collections::VecDeque;
use std::ffi::OsString;

use clap::{Arg, Command};

use crate::failure::Instead;
use table::{Here, Row, TABLE, Takes};

/// A command line in our own options.
#[derive(Debug, Default)]
pub(crate) struct Line {
    pub(crate) args: Vec<OsString>,
    /// Options without an effect: what to tell about each.
    pub(crate) notes: Vec<String>,
    /// The subcommand's name.
    command: Option<String>,
}

impl Line {
    /// The options that the subcommand takes, in all their spellings.
    pub(crate) fn spellings(&self, root: &Command) -> Vec<String> {
        let Some(command) = self.command.as_ref().and_then(|name| root.find_subcommand(name)) else {
            return Vec::new();
        };
        let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
        let own = shown.filter_map(|arg| arg.get_long()).map(|long| format!("--{long}"));
        let fitting = TABLE.iter().filter(|row| row.fits(command, root));
        own.chain(fitting.flat_map(|row| row.names).map(|name| (*name).to_owned())).collect()
    }
}

/// The row of a spelling: the first that a command knows, else the first.
fn row_of(spelling: &str, command: &Command, root: &Command) -> Option<&'static Row> {
    let mut rows = TABLE.iter().filter(|row| row.names.contains(&spelling));
    rows.clone().find(|row| row.fits(command, root)).or_else(|| rows.next())
}

/// The long option for a spelling of llama.cpp.
pub(crate) fn long_of(spelling: &str) -> Option<&'static str> {
    match TABLE.iter().find(|row| row.names.contains(&spelling))?.here {
        Here::Option(long) | Here::Argument(long) | Here::Joined(long) => long.split('=').next(),
        _ => None,
    }
}

/// The names that llama.cpp has for an option of ours with a value, without their dashes.
pub(crate) fn names_of(long: &str) -> impl Iterator<Item = &str> {
    let is_it =
        move |row: &&Row| matches!(row.here, Here::Option(ours) if ours.strip_prefix("--") == Some(long));
    TABLE.iter().filter(is_it).flat_map(|row| row.names).filter_map(|name| name.strip_prefix("--"))
}

/// The command line in our own options, for the subcommand that it names. A spelling that the subcommand has itself
/// stays, as does the value of an option, whatever it begins with, and everything after `--`.
///
/// # Errors
/// [`Instead`] for an option that is refused, or a value that it cannot have.
pub(crate) fn expand(args: impl IntoIterator<Item = OsString>, root: &Command) -> Result<Line, Instead> {
    let mut rest: VecDeque<OsString> = args.into_iter().collect();
    let mut line = Line::default();
    line.args.extend(rest.pop_front());
    let mut command = None;
    while let Some(arg) = rest.pop_front() {
        let Some(text) = arg.to_str().filter(|text| text.starts_with('-') && text.len() > 1) else {
            // The first word is the subcommand.
            command = command.or_else(|| Some(subcommand(root, arg.to_str()?)));
            line.args.push(arg);
            continue;
        };
        if text == "--" {
            line.args.push(arg);
            break;
        }
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(OsString::from(value))),
            None => (text, None),
        };
        // llama.cpp takes long names with both signs.
        let name = if name.starts_with("--") { name.replace('_', "-") } else { name.to_owned() };
        let known = command.unwrap_or(root);
        let row = row_of(&name, known, root).filter(|row| row.adapts() || find(known, root, &name).is_none());
        if let (Some(row), None) = (row, command)
            && find(root, root, &name).is_none()
        {
            return Err(row.before_command(&name));
        }
        match row.filter(|row| row.fits(known, root)) {
            Some(row) => row.take(&name, value, &mut rest, &mut line)?,
            None => {
                let n_word = if value.is_some() { 0 } else { n_value(known, root, &name) };
                line.args.push(with_value(name.into(), value));
                line.args.extend(rest.drain(..n_word.min(rest.len())));
            }
        }
    }
    line.args.extend(rest);
    line.command = command.map(|command| command.get_name().to_owned());
    Ok(line)
}

/// The subcommand of a word, which may be an unambiguous beginning of its name.
fn subcommand<'c>(root: &'c Command, word: &str) -> &'c Command {
    let mut begun = root.get_subcommands().filter(|command| command.get_name().starts_with(word));
    match (root.find_subcommand(word), begun.next(), begun.next()) {
        (Some(command), ..) | (None, Some(command), None) => command,
        _ => root,
    }
}

/// An option of a command, or of all, by a spelling with its dashes.
fn find<'c>(command: &'c Command, root: &'c Command, spelling: &str) -> Option<&'c Arg> {
    let is_it = |arg: &&Arg| match spelling.strip_prefix("--") {
        Some(long) => {
            arg.get_long() == Some(long) || arg.get_all_aliases().is_some_and(|all| all.contains(&long))
        }
        None => {
            let mut letters = spelling.chars().skip(1);
            match (letters.next(), letters.next()) {
                (Some(letter), None) => arg.get_short() == Some(letter),
                _ => false,
            }
        }
    };
    let global = root.get_arguments().filter(|arg| arg.is_global_set());
    command.get_arguments().chain(global).find(is_it)
}

/// Number of words after an option of ours that belong to it.
fn n_value(command: &Command, root: &Command, name: &str) -> usize {
    let option = match name.strip_prefix("--") {
        Some(_) => find(command, root, name),
        // The last of several letters may have a value.
        None => name.chars().last().and_then(|letter| find(command, root, &format!("-{letter}"))),
    };
    let is_attached = |name: &str| {
        // `-n5`: a letter before the last one has the value.
        let letters = name.strip_prefix('-').filter(|rest| !rest.starts_with('-')).unwrap_or_default();
        let mut before = letters.chars().rev().skip(1);
        before.any(|letter| {
            find(command, root, &format!("-{letter}")).is_some_and(|arg| arg.get_action().takes_values())
        })
    };
    match option {
        Some(arg)
            if arg.get_action().takes_values() && !arg.is_require_equals_set() && !is_attached(name) =>
        {
            arg.get_num_args().map_or(1, |n| n.min_values())
        }
        _ => 0,
    }
}

impl Row {
    /// True if a command has the option of ours; others report it by the name that was typed.
    fn fits(&self, command: &Command, root: &Command) -> bool {
        let ours = match self.here {
            Here::Option(argument)
            | Here::Argument(argument)
            | Here::Joined(argument)
            | Here::Pairs(argument) => argument,
            Here::Words(words) => {
                words.iter().map(|(_, to)| *to).find(|to| !to.is_empty()).unwrap_or_default()
            }
            Here::Ignored(_) | Here::Refused(_) => return true,
        };
        ours.split('=').next().is_some_and(|long| find(command, root, long).is_some())
    }

    /// True if our own option of this name takes other words.
    fn adapts(&self) -> bool {
        matches!(self.here, Here::Pairs(_) | Here::Words(_))
    }

    /// True if a word after a switch belongs to it.
    fn is_switch(&self, word: &str) -> bool {
        match self.here {
            Here::Words(known) => {
                // One letter away, it is a mistake rather than the next argument.
                let is_like = |known: &str| known.len() > 2 && strsim::damerau_levenshtein(known, word) < 2;
                words_of(known).any(|known| known == word || is_like(known))
            }
            _ => is_switch(word),
        }
    }

    /// The error for the option in front of a command.
    fn before_command(&self, name: &str) -> Instead {
        Instead(match self.here {
            Here::Refused(why) => format!("`{name}`: {why}"),
            _ => format!("`{name}` belongs behind a command: `chaski run {name} ...`"),
        })
    }

    /// Adds the option, with the words after it, to a line of ours.
    fn take(
        &self,
        name: &str,
        value: Option<OsString>,
        rest: &mut VecDeque<OsString>,
        line: &mut Line,
    ) -> Result<(), Instead> {
        let n_word = match self.takes {
            Takes::Nothing if value.is_some() => return Err(Instead(format!("`{name}` takes no value"))),
            Takes::Nothing => 0,
            _ if value.is_some() => 0,
            Takes::One => 1,
            Takes::Two => 2,
            Takes::Switch => usize::from(
                rest.front().and_then(|word| word.to_str()).is_some_and(|word| self.is_switch(word)),
            ),
        };
        let words: Vec<OsString> = value.into_iter().chain(rest.drain(..n_word.min(rest.len()))).collect();
        match self.here {
            Here::Refused(why) => return Err(Instead(format!("`{name}`: {why}"))),
            Here::Ignored(why) => line.notes.push(format!("`{name}` has no effect: {why}")),
            Here::Argument(argument) => line.args.push(argument.into()),
            Here::Joined(argument) => {
                let value = words.into_iter().next();
                let value = value.ok_or_else(|| Instead(format!("`{name}` needs a value")))?;
                let mut joined = OsString::from(argument);
                joined.push(value);
                line.args.push(joined);
            }
            Here::Option(option) => {
                line.args.push(with_value(option.into(), words.into_iter().next()));
            }
            Here::Words(known) => line.args.extend(argument_of(name, known, words.first())?),
            Here::Pairs(option) => pairs(option, words, line),
        }
        Ok(())
    }
}

/// An option and its value, if it has one, as one argument.
fn with_value(mut option: OsString, value: Option<OsString>) -> OsString {
    if let Some(value) = value {
        option.push("=");
        option.push(value);
    }
    option
}

/// The words of an option, llama.cpp's and ours.
fn words_of<'k>(known: &'k [(&str, &str)]) -> impl Iterator<Item = &'k str> {
    let ours = known.iter().filter_map(|(_, to)| Some(to.split_once('=')?.1));
    known.iter().map(|(from, _)| *from).chain(ours)
}

/// The argument for a word of an option, if there is one.
fn argument_of(
    name: &str,
    known: &[(&str, &str)],
    word: Option<&OsString>,
) -> Result<Option<OsString>, Instead> {
    let word = word.map_or("", |word| word.to_str().unwrap_or_default());
    // A word of our own option also counts, as in `--color never`.
    let is_ours = |to: &str| to.split_once('=').is_some_and(|(_, own)| own == word);
    let found = known.iter().find(|(from, to)| *from == word || is_ours(to));
    match found {
        Some((_, "")) => Ok(None),
        Some((_, argument)) => Ok(Some((*argument).into())),
        None => {
            let mut words: Vec<&str> = Vec::new();
            words_of(known).filter(|word| !word.is_empty()).for_each(|word| {
                if !words.contains(&word) {
                    words.push(word);
                }
            });
            Err(Instead(format!("`{name} {word}`: expected one of {}", words.join(", "))))
        }
    }
}

/// `FILE:SCALE,FILE:SCALE` as options of two words; other words stay as they are.
fn pairs(option: &str, words: Vec<OsString>, line: &mut Line) {
    let split = |word: &OsString| -> Option<Vec<(String, String)>> {
        let pair = |part: &str| {
            let (file, scale) = part.rsplit_once(':')?;
            scale.parse::<f32>().ok()?;
            Some((file.to_owned(), scale.to_owned()))
        };
        word.to_str()?.split(',').map(pair).collect()
    };
    match words.first().and_then(split) {
        Some(all) => {
            for (file, scale) in all {
                line.args.extend([option, &file, &scale].map(OsString::from));
            }
        }
        None => {
            line.args.push(option.into());
            line.args.extend(words);
        }
    }
}

/// True for the words of switches, such as `on`, and lists of them.
fn is_switch(word: &str) -> bool {
    const WORDS: [&str; 14] = [
        "on", "off", "auto", "0", "1", "-1", "true", "false", "enabled", "disabled", "yes", "no", "always",
        "never",
    ];
    word.split(',').all(|part| WORDS.contains(&part))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use clap::CommandFactory as _;

    use super::*;
    use crate::Cli;

    fn expanded(text: &str) -> Result<Line, Instead> {
        expand(text.split(' ').map(OsString::from), &Cli::command())
    }

    fn words(text: &str) -> String {
        let args = expanded(text).unwrap().args;
        args.into_iter().map(|arg| arg.into_string().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn options_of_llama_cpp_become_ours() {
        for (typed, ours) in [
            ("chaski bench -npp 9 -pg=8,9 -p 5", "chaski bench --n-prompt=9 --prompt-gen=8,9 -p 5"),
            ("chaski run -hf a/b:Q8_0 -hff c", "chaski run --model=hf:a/b:Q8_0 --hf-file=c"),
            (
                "chaski serve -hfd a/b -mu https://c/d",
                "chaski serve --model-draft=hf:a/b --model=https://c/d",
            ),
            ("chaski run -sys x -st -p y", "chaski run --system=x --single-turn -p y"),
            ("chaski run --temperature 0 --predict 5", "chaski run --temp=0 --n-predict=5"),
            ("chaski run -rea off -co -p y", "chaski run --no-think --color=always -p y"),
            ("chaski run --color never --color off", "chaski run --color=never --color=never"),
            ("chaski run --lora-scaled a 1 x", "chaski run --lora-scaled a 1 x"),
            ("chaski run --lora-scaled a:1,b:.5 x", "chaski run --lora-scaled a 1 --lora-scaled b .5 x"),
            ("chaski bench --n_prompt=8_0 --n_gen 4", "chaski bench --n-prompt=8_0 --n-gen 4"),
            ("chaski run -p --a_b", "chaski run -p --a_b"),
            ("chaski --progress json bench -n 1", "chaski --progress=json bench -n 1"),
            ("chaski bench --progress m.gguf", "chaski bench --progress m.gguf"),
            ("chaski run -p --progress json", "chaski run -p --progress json"),
            ("chaski run -dev none -cmoe", "chaski run --device=none --experts-on-cpu=65535"),
            ("chaski ru -ub 8", "chaski ru --ubatch-size=8"),
            ("chaski serve -np 8 -embd -cb", "chaski serve --parallel=8 --embeddings"),
        ] {
            assert_eq!(words(typed), ours);
        }
    }

    #[test]
    fn a_flag_takes_no_value_and_a_switch_none_that_it_does_not_know() {
        for (typed, says) in [
            ("chaski run --conversation=false", "`--conversation` takes no value"),
            ("chaski run --no-escape=false", "`--no-escape` takes no value"),
            ("chaski run --color nevr hi", "`--color nevr`: expected one of on, off, auto, always, never"),
        ] {
            let Instead(error) = expanded(typed).map(|line| line.args).unwrap_err();
            assert_eq!(error, says);
        }
        assert_eq!(words("chaski run --color hi"), "chaski run --color=always hi");
    }

    #[test]
    fn what_has_no_effect_is_taken_with_its_value() {
        for (typed, left, n) in [
            ("chaski run -ngl 99 -fa on --mlock m.gguf", "chaski run --gpu-layers=99 m.gguf", 2),
            ("chaski run -fa m.gguf -mmp 0 --no-mmap", "chaski run m.gguf --no-mmap", 2),
            ("chaski run -b 512 -np=4 --no-warmup --jinja", "chaski run", 4),
            ("chaski serve --reranking m.gguf", "chaski serve m.gguf", 1),
            ("chaski imatrix --device gpu -ngl 99 m.gguf", "chaski imatrix m.gguf", 2),
        ] {
            let line = expanded(typed).unwrap();
            assert_eq!((words(typed).as_str(), line.notes.len()), (left, n), "{typed}");
        }
        // A command's own options come first.
        assert_eq!(words("chaski bench -b 512 --no-warmup"), "chaski bench -b 512 --no-warmup");
    }

    #[test]
    fn values_of_options_are_left_alone() {
        for line in [
            "chaski run -p -fa",
            "chaski run --stop -sys x",
            "chaski run --regex -pg -n 1",
            "chaski run -vp -fa",
            "chaski run -- -ngl",
        ] {
            assert_eq!(words(line), line);
        }
        assert_eq!(words("chaski run -p a -fa"), "chaski run -p a");
        assert_eq!(words("chaski run --prompt=-fa -fa"), "chaski run --prompt=-fa");
        assert_eq!(words("chaski run -n5 -st"), "chaski run -n5 --single-turn");
    }

    #[test]
    fn refusals_say_how_else() {
        for (typed, says) in [
            ("chaski -hf org/repo", "`-hf` belongs behind a command: `chaski run -hf ...`"),
            ("chaski run -hf", "`-hf` needs a value"),
            ("chaski run -cl", "`chaski list`"),
            ("chaski -m x.gguf -p y", "`-m` belongs behind a command: `chaski run -m ...`"),
            ("chaski show --prompt-cache x", "/save and /load"),
            ("chaski run --reasoning-budget-message x", "the model's own marker"),
            ("chaski run --rpc=a", "`--device A,B`"),
        ] {
            let Instead(error) = expanded(typed).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn each_spelling_has_one_row_and_each_row_an_option_of_ours() {
        let root = Cli::command();
        let mut seen = HashSet::new();
        for row in TABLE {
            for name in row.names {
                // A second row tells why other commands have no such option.
                let is_rest = matches!(row.here, Here::Ignored(_));
                assert!(seen.insert(*name) || is_rest, "{name} twice");
                assert!(name.starts_with('-') && !name.contains(' '), "{name}");
            }
            let fits = root.get_subcommands().any(|command| row.fits(command, &root));
            assert!(fits, "{:?} has no option of ours", row.names);
        }
        let run = root.find_subcommand("run").unwrap();
        let listed = |long: &str| {
            find(run, &root, long).unwrap_or_else(|| panic!("{long}")).get_action().takes_values()
        };
        for row in TABLE.iter().filter(|row| row.fits(run, &root)) {
            match row.here {
                Here::Option(long) => assert!(listed(long), "{long} takes no value"),
                Here::Argument(argument) => {
                    let _ = listed(argument.split('=').next().unwrap());
                }
                _ => {}
            }
        }
    }
}
