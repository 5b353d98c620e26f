//! `chaski config`: the options in force, and where their values come from.

use std::io::Write as _;

use clap::Command;
use serde_json::json;

use super::{Sources, Value, fitting, options};
use crate::failure::Usage;
use crate::options::Form;
use crate::ui::one_line;

pub(crate) const LONG: &str = "\
Prints the options of a command that have a value, and where it comes from.

The command line comes first, then the environment (CHASKI_TEMP for --temp), then the configuration file, then defaults. \
The file is TOML: `temp = 0.5` sets --temp in all commands that have it, and a table such as [bench] sets options of one \
command. Variables and keys outside of tables are the options of `chaski run`.";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The command whose options are listed
    #[arg(value_name = "COMMAND", default_value = "run")]
    of: String,
    /// Print the configuration file's path
    #[arg(long)]
    path: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value = "md")]
    output: Form,
}

/// A row: option, value, source.
struct Row {
    option: String,
    value: String,
    source: Option<Value>,
}

pub(crate) fn run(args: &Args, root: &Command, sources: &Sources) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let path = sources.path.as_ref().map(|path| path.display().to_string());
    if args.path {
        let path = path.ok_or_else(|| Usage("this system has no place for configuration files".into()))?;
        writeln!(out, "{path}")?;
        return Ok(());
    }
    let command = root.get_subcommands().find(|command| command.get_name() == args.of);
    let command = command.ok_or_else(|| Usage(format!("there is no command `{}`", args.of)))?;
    let rows = rows(command, root, sources)?;
    let strangers = sources.strangers(root);
    if args.output == Form::Json {
        let options: Vec<_> = rows.iter().map(as_json).collect();
        let file = json!({ "path": path, "exists": sources.file.is_some() });
        let all =
            json!({ "command": args.of, "file": file, "options": options, "unknown_variables": strangers });
        writeln!(out, "{all:#}")?;
        return Ok(());
    }
    let width = |of: fn(&Row) -> &str| rows.iter().map(|row| of(row).chars().count()).max().unwrap_or(0);
    let (names, values) = (width(|row| &row.option), width(|row| &row.value).min(40));
    for Row { option, value, source } in &rows {
        let source = source.as_ref().map_or("default".into(), |value| value.origin.to_string());
        writeln!(out, "{option:names$}  {:values$}  {source}", one_line(value))?;
    }
    let state = if sources.file.is_some() { "" } else { " (not there)" };
    writeln!(out, "\nfile: {}{state}", path.unwrap_or_default())?;
    for name in strangers {
        writeln!(out, "unknown variable: {name}")?;
    }
    Ok(())
}

/// The options of a command that have a value without a command line.
fn rows(command: &Command, root: &Command, sources: &Sources) -> Result<Vec<Row>, Usage> {
    let values = fitting(sources.values(command, root), command, root, None, &sources.aliases())?;
    let mut rows = Vec::new();
    for arg in options(command, root) {
        let option = arg.get_long().unwrap_or_default();
        let source = values.iter().find(|value| value.option == option);
        let words: Vec<String> = match source {
            Some(value) => value.words.clone(),
            None => arg.get_default_values().iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        };
        if !words.is_empty() && arg.get_action().takes_values() || source.is_some() {
            // Keys and tokens are nobody's business.
            let is_secret = arg.is_hide_env_values_set();
            let value = if is_secret { "(secret)".to_owned() } else { words.join(", ") };
            rows.push(Row { option: option.to_owned(), value, source: source.cloned() });
        }
    }
    Ok(rows)
}

fn as_json(row: &Row) -> serde_json::Value {
    let mut object = json!({ "option": row.option, "value": row.value });
    match row.source.as_ref().map(|value| &value.origin) {
        None => object["source"] = "default".into(),
        Some(super::Origin::Variable(name)) => {
            object["source"] = "environment".into();
            object["variable"] = name.as_str().into();
        }
        Some(super::Origin::Line(path, line)) => {
            object["source"] = "file".into();
            object["file"] = path.display().to_string().into();
            object["line"] = (*line).into();
        }
    }
    object
}
