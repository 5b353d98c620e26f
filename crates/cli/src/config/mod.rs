//! Options from the environment and a configuration file. The order: command line, environment, file, defaults.
//!
//! They become clap's defaults of the subcommand that runs, so that they are parsed as the command line is, and what it
//! says comes first. No option is listed here: all that a command has can be set.

mod file;
mod presets;
mod show;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::failure::{self, Usage};
use crate::llama_cpp;
use crate::model_names::{Aliases, is_name};
use file::File;
pub(crate) use presets::{Again, Preset};
pub(crate) use show::{Args, LONG, run};

/// The beginning of the variables' names.
const PREFIX: &str = "CHASKI_";

/// The table of the file with names for models.
const ALIASES: &str = "aliases";

/// The command whose options the environment, and keys outside of tables, set in all commands.
const COMMON: &str = "run";

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    Variable(String),
    Line(PathBuf, usize),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Variable(name) => f.write_str(name),
            Origin::Line(path, line) => write!(f, "{}:{line}", path.display()),
        }
    }
}

/// A value of an option that the command line does not name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Value {
    /// The option's long name.
    option: String,
    words: Vec<String>,
    origin: Origin,
    layer: Layer,
}

/// The sources in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layer {
    Environment,
    /// The table of the command.
    Table,
    /// Keys of all commands.
    Common,
}

/// The variables and the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    variables: Vec<(String, String)>,
    file: Option<File>,
    /// The file that was named, or the usual place.
    path: Option<PathBuf>,
}

impl Sources {
    /// Those of this process, with the file that the command line names.
    ///
    /// # Errors
    /// If the file cannot be read, or has a key that is no option.
    pub(crate) fn of_process(matches: &ArgMatches, root: &Command) -> anyhow::Result<Sources> {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok().filter(|name| name.starts_with(PREFIX))?;
            Some((name, value.into_string().ok()?))
        });
        let variables: Vec<(String, String)> = variables.filter(|(_, value)| !value.is_empty()).collect();
        let by_variable = variables.iter().find(|(name, _)| name == "CHASKI_CONFIG");
        let named = matches.get_one::<PathBuf>("config").cloned();
        let named = named.or_else(|| by_variable.map(|(_, path)| path.into()));
        let file = file::read(named.as_deref())?;
        if let Some(file) = &file {
            check(file, root)?;
        }
        Ok(Sources { variables, file, path: named.or_else(file::usual_place) })
    }

    /// The names for models of the file.
    pub(crate) fn aliases(&self) -> Aliases {
        let entries = self.file.iter().flat_map(|file| &file.entries);
        let of_table = entries.filter(|entry| entry.table.as_deref() == Some(ALIASES));
        of_table.filter_map(|entry| Some((entry.key.clone(), entry.words.first()?.clone()))).collect()
    }

    /// The values for a command, those that come first in front.
    fn values(&self, command: &Command, root: &Command) -> Vec<Value> {
        let mut values: Vec<Value> = Vec::new();
        let mut add = |arg: &Arg, words: Vec<String>, origin, layer| {
            let Some(option) = arg.get_long() else { return };
            if !values.iter().any(|value| value.option == option) {
                values.push(Value { option: option.to_owned(), words: words_of(arg, words), origin, layer });
            }
        };
        for arg in options(command, root).filter(|arg| is_common(arg, root)) {
            let names = names_of(arg).map(variable);
            let found =
                names.filter_map(|name| self.variables.iter().find(|(known, _)| *known == name)).next();
            if let Some((name, text)) = found {
                add(arg, split(arg, text), Origin::Variable(name.clone()), Layer::Environment);
            }
        }
        if let Some(file) = &self.file {
            let of_command = |entry: &&file::Entry| entry.table.as_deref() == Some(command.get_name());
            let common = |entry: &&file::Entry| entry.table.is_none();
            let in_order = file.entries.iter().filter(of_command).chain(file.entries.iter().filter(common));
            for entry in in_order {
                if let Some(arg) = find(command, root, &entry.key) {
                    let layer = if entry.table.is_some() { Layer::Table } else { Layer::Common };
                    add(arg, entry.words.clone(), Origin::Line(file.path.clone(), entry.line), layer);
                }
            }
        }
        values
    }

    /// Variables that look like options but name none.
    fn strangers(&self, root: &Command) -> Vec<&str> {
        let run = common(root);
        let is_known = |name: &str| {
            name == "CHASKI_CONFIG"
                || options(run, root).any(|arg| names_of(arg).any(|n| variable(n) == name))
        };
        self.variables.iter().map(|(name, _)| name.as_str()).filter(|name| !is_known(name)).collect()
    }
}

/// Parses a command line again, with the values of the sources as defaults of a `fresh` command; `root` is the same,
/// built.
///
/// # Errors
/// [`Usage`] for a value that an option cannot have, with its origin, and values of one source that exclude each other.
pub(crate) fn parse(
    args: &[OsString],
    matches: ArgMatches,
    root: &Command,
    fresh: Command,
    sources: &Sources,
) -> Result<ArgMatches, Usage> {
    let Some((command, given)) =
        matches.subcommand().and_then(|(name, given)| Some((root.find_subcommand(name)?, given)))
    else {
        return Ok(matches);
    };
    let values = fitting(sources.values(command, root), command, root, Some(given), &sources.aliases())?;
    if values.is_empty() {
        return Ok(matches);
    }
    parse_with(args, fresh, command.get_name(), &values)
}

/// Parses a command line with these values as defaults.
fn parse_with(
    args: &[OsString],
    fresh: Command,
    command: &str,
    values: &[Value],
) -> Result<ArgMatches, Usage> {
    let changed = with_defaults(fresh, command, values);
    changed.try_get_matches_from(args).map_err(|e| {
        let shown = match e.get(clap::error::ContextKind::InvalidArg) {
            Some(clap::error::ContextValue::String(shown)) => shown.as_str(),
            _ => "",
        };
        let name = shown.trim_start_matches('-').split([' ', '=', '[']).next().unwrap_or_default();
        match values.iter().find(|value| value.option == name) {
            Some(value) => {
                let why = failure::in_plain_words(&e, &value.option, &value.words.join(", "));
                Usage(format!("{}: {why}", value.origin))
            }
            None => Usage(e.to_string().trim_start_matches("error: ").trim_end().to_owned()),
        }
    })
}

/// The values that the command line, or a source that comes first, leaves room for.
fn fitting(
    values: Vec<Value>,
    command: &Command,
    root: &Command,
    given: Option<&ArgMatches>,
    aliases: &Aliases,
) -> Result<Vec<Value>, Usage> {
    let on_line = |arg: &&Arg| {
        given.and_then(|given| given.value_source(arg.get_id().as_str())) == Some(ValueSource::CommandLine)
    };
    let on_line: Vec<&Arg> = command.get_arguments().filter(on_line).collect();
    let mut kept: Vec<(Value, &Arg)> = Vec::new();
    for value in values {
        let Some(arg) = find(command, root, &value.option) else { continue };
        let is_given =
            on_line.iter().any(|other| other.get_id() == arg.get_id() || exclude(command, arg, other));
        if is_given || (arg.get_id() == "model" && given.is_some_and(|given| names_model(given, aliases))) {
            continue;
        }
        let is_off = |value: &Value| value.words == ["false"];
        match kept.iter().find(|(other, of)| exclude(command, arg, of) && !is_off(other) && !is_off(&value)) {
            Some((other, _)) if other.layer == value.layer => {
                return Err(Usage(format!(
                    "{} and {}: `{}` and `{}` cannot be used together",
                    other.origin, value.origin, other.option, value.option
                )));
            }
            Some(_) => {}
            None => {
                check_number(&value, arg)?;
                kept.push((value, arg));
            }
        }
    }
    Ok(kept.into_iter().map(|(value, _)| value).collect())
}

/// Checks the number of words of a value, which clap counts on command lines only.
fn check_number(value: &Value, arg: &Arg) -> Result<(), Usage> {
    let (found, per_use) = (value.words.len(), arg.get_num_args().map_or(1, |n| n.min_values().max(1)));
    let is_list = matches!(arg.get_action(), ArgAction::Append) || arg.get_value_delimiter().is_some();
    let fits = if is_list { found > 0 && found % per_use == 0 } else { found == per_use };
    if fits {
        return Ok(());
    }
    let expected = match (is_list, per_use) {
        (true, 1) => "values".to_owned(),
        (true, n) => format!("{n} values for each use"),
        (false, 1) => "one value".to_owned(),
        (false, n) => format!("{n} values"),
    };
    Err(Usage(format!("{}: `{}` takes {expected}, found {found}", value.origin, value.option)))
}

/// True if the positional arguments name a model: two of them do, and one does if it is a file, called like one, or a
/// name. Otherwise one is a text for the model of the configuration.
fn names_model(given: &ArgMatches, aliases: &Aliases) -> bool {
    let word = |id: &str| match given.try_get_raw(id) {
        Ok(Some(mut words)) => words.next(),
        _ => None,
    };
    let is_model = |name: &OsStr| {
        let path = Path::new(name);
        let is_alias = name.to_str().is_some_and(|name| aliases.contains_key(name));
        is_alias
            || is_name(path)
            || path.is_file()
            || path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"))
    };
    word("second").is_some() || word("models").is_some() || word("first").is_some_and(is_model)
}

/// True if a command takes only one of two options.
fn exclude(command: &Command, a: &Arg, b: &Arg) -> bool {
    let names = |arg: &Arg, other: &Arg| {
        command.get_arg_conflicts_with(arg).iter().any(|arg| arg.get_id() == other.get_id())
    };
    let in_group = |group: &clap::ArgGroup| {
        let has = |arg: &Arg| group.get_args().any(|id| id == arg.get_id());
        !group.clone().is_multiple() && has(a) && has(b)
    };
    a.get_id() != b.get_id() && (names(a, b) || names(b, a) || command.get_groups().any(in_group))
}

/// A command line whose options have these defaults.
fn with_defaults(root: Command, command: &str, values: &[Value]) -> Command {
    values.iter().fold(root, |changed, value| {
        let change = |arg: Arg| arg.default_values(value.words.clone());
        let id = |command: &Command| {
            command
                .get_arguments()
                .find(|arg| arg.get_long() == Some(&value.option))
                .map(|arg| arg.get_id().clone())
        };
        match id(&changed) {
            // A global option, which subcommands inherit.
            Some(id) => changed.mut_arg(id, change),
            None => changed.mut_subcommand(command, |command| match id(&command) {
                Some(id) => command.mut_arg(id, change),
                None => command,
            }),
        }
    })
}

/// The options of a command that can be set elsewhere: those with a long name.
fn options<'c>(command: &'c Command, root: &'c Command) -> impl Iterator<Item = &'c Arg> {
    let global = root.get_arguments().filter(|arg| arg.is_global_set());
    let own = command.get_arguments().filter(|arg| !arg.is_global_set());
    own.chain(global)
        .filter(|arg| arg.get_long().is_some_and(|long| !["help", "version", "config"].contains(&long)))
}

fn common(root: &Command) -> &Command {
    root.find_subcommand(COMMON).expect("it is a command of ours")
}

/// True if all commands take the option from the environment and from keys outside of tables.
fn is_common(arg: &Arg, root: &Command) -> bool {
    options(common(root), root).any(|of_run| of_run.get_long() == arg.get_long())
}

/// The names of an option: the long one, and others, llama.cpp's among them.
fn names_of(arg: &Arg) -> impl Iterator<Item = &str> {
    let of_llama_cpp = arg.get_long().into_iter().flat_map(llama_cpp::names_of);
    arg.get_long().into_iter().chain(arg.get_all_aliases().into_iter().flatten()).chain(of_llama_cpp)
}

/// The variable of an option.
fn variable(long: &str) -> String {
    format!("{PREFIX}{}", long.replace('-', "_").to_uppercase())
}

/// An option of a command by a key, in which `_` may stand for `-`.
fn find<'c>(command: &'c Command, root: &'c Command, key: &str) -> Option<&'c Arg> {
    let key = key.replace('_', "-");
    options(command, root).find(|arg| names_of(arg).any(|name| name == key))
}

/// The text of a variable as words; lists are separated as on the command line.
fn split(arg: &Arg, text: &str) -> Vec<String> {
    let is_tuple = arg.get_num_args().is_some_and(|n| n.min_values() > 1);
    match arg.get_value_delimiter().or(is_tuple.then_some(',')) {
        Some(delimiter) => text.split(delimiter).map(str::to_owned).collect(),
        None => vec![text.to_owned()],
    }
}

/// Words for an option; a flag takes the usual ones for on and off.
fn words_of(arg: &Arg, words: Vec<String>) -> Vec<String> {
    let is_flag = !arg.get_action().takes_values()
        || arg.get_possible_values().iter().map(|v| v.get_name()).eq(["true", "false"]);
    let switch = |word: String| match word.to_lowercase().as_str() {
        "1" | "yes" | "on" | "true" => "true".into(),
        "0" | "no" | "off" | "false" => "false".into(),
        _ => word,
    };
    if is_flag { words.into_iter().map(switch).collect() } else { words }
}

/// Refuses keys that are no options.
fn check(file: &File, root: &Command) -> Result<(), Usage> {
    let mut seen: Vec<(Option<&str>, &str)> = Vec::new();
    for entry in &file.entries {
        let at = |what: String| Usage(format!("`{}`, line {}: {what}", file.path.display(), entry.line));
        let table = entry.table.as_deref();
        if table == Some(ALIASES) {
            check_alias(entry).map_err(at)?;
            continue;
        }
        let command = match table {
            None => common(root),
            Some(name) => match root.get_subcommands().find(|command| command.get_name() == name) {
                Some(command) => command,
                None => {
                    let commands = root.get_subcommands().map(Command::get_name);
                    return Err(at(unknown("table", name, commands)));
                }
            },
        };
        let Some(arg) = find(command, root, &entry.key) else {
            let tables: Vec<String> = root
                .get_subcommands()
                .filter(|command| find(command, root, &entry.key).is_some())
                .map(|command| format!("[{}]", command.get_name()))
                .collect();
            return Err(at(match (table, tables.is_empty()) {
                (None, false) => format!("`{}` belongs in a table: {}", entry.key, tables.join(", ")),
                _ => unknown("key", &entry.key, options(command, root).flat_map(names_of)),
            }));
        };
        let option = arg.get_long().unwrap_or_default();
        if seen.contains(&(table, option)) {
            return Err(at(format!("`{option}` is set twice")));
        }
        seen.push((table, option));
    }
    Ok(())
}

/// Checks a name for a model.
fn check_alias(entry: &file::Entry) -> Result<(), String> {
    match &entry.words[..] {
        [name] => chaski_hub::ModelName::parse(name).map(|_| ()).map_err(|e| e.to_string()),
        _ => Err(format!("`{}` stands for one model", entry.key)),
    }
}

/// An unknown name, with the one that may be meant.
fn unknown<'n>(what: &str, name: &str, known: impl Iterator<Item = &'n str>) -> String {
    let spelled = name.replace('_', "-");
    let distance = |known: &&str| strsim::damerau_levenshtein(known, &spelled);
    match known.min_by_key(distance).filter(|known| 2 * distance(known) <= spelled.len().max(4)) {
        Some(closest) => format!("unknown {what} `{name}`; is `{closest}` meant?"),
        None => format!("unknown {what} `{name}`; `chaski COMMAND --help` lists the options"),
    }
}

#[cfg(test)]
mod tests;
