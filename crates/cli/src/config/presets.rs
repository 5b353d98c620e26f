//! Options of single models, from a file with a table for each.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{ArgMatches, Command, FromArgMatches};

use super::file::{self, Entry, File};
use super::{
    Layer, Origin, Sources, Value, find, fitting, names_of, options, parse, parse_with, unknown, words_of,
};
use crate::failure::Usage;
use crate::model_names::{Aliases, is_name};

/// The key of a model's file.
const MODEL: &str = "model";

/// A command line that can be read again with other defaults.
#[derive(Clone)]
pub(crate) struct Again {
    pub(crate) args: Vec<OsString>,
    pub(crate) matches: ArgMatches,
    pub(crate) root: Command,
    pub(crate) fresh: fn() -> Command,
    pub(crate) sources: Sources,
}

/// A model of a file of presets.
pub(crate) struct Preset<T> {
    pub(crate) name: String,
    /// Its file; one that has no folder of its own is in that of the presets.
    pub(crate) model: Option<PathBuf>,
    /// The options of the command for it.
    pub(crate) args: T,
}

impl Again {
    /// The options of the whole command line, with variables and the configuration file as they are now.
    ///
    /// # Errors
    /// If the file cannot be read, or has keys or values that the command does not.
    pub(crate) fn now(&self) -> anyhow::Result<ArgMatches> {
        let sources = Sources::of_process(&self.matches, &self.root)?;
        let matches = (self.fresh)().try_get_matches_from(&self.args)?;
        Ok(parse(&self.args, matches, &self.root, (self.fresh)(), &sources)?)
    }

    /// Names for models of the configuration file.
    pub(crate) fn aliases(&self) -> Aliases {
        self.sources.aliases()
    }

    /// The tables of a file: what they say comes after the command line, and before variables and the configuration.
    /// Keys outside of tables are for all models.
    ///
    /// # Errors
    /// If the file cannot be read, or has keys or values that the command does not.
    pub(crate) fn presets<T: FromArgMatches>(&self, path: &Path) -> anyhow::Result<Vec<Preset<T>>> {
        let Some(file) = file::read(Some(path))? else { return Ok(Vec::new()) };
        let (name, given) = self.matches.subcommand().context("a command is missing")?;
        let command = self.root.find_subcommand(name).context("the command is unknown")?;
        check(&file, command, &self.root)?;
        let mut names: Vec<&str> = Vec::new();
        for name in file.entries.iter().filter_map(|entry| entry.table.as_deref()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let preset = |name: &&str| {
            let of_table = |entry: &&Entry| entry.table.as_deref() == Some(*name);
            let model = file.entries.iter().filter(of_table).find(|entry| entry.key == MODEL);
            let folder = path.parent().unwrap_or(Path::new(""));
            let values = self.values(&file, name, command);
            let values = fitting(values, command, &self.root, Some(given), &self.sources.aliases())?;
            let matches = parse_with(&self.args, (self.fresh)(), command.get_name(), &values)?;
            let (_, of_command) = matches.subcommand().context("a command is missing")?;
            Ok(Preset {
                name: (*name).to_owned(),
                model: model.and_then(|entry| entry.words.first()).map(|word| {
                    let is_name = is_name(Path::new(word)) || self.sources.aliases().contains_key(word);
                    if is_name { word.into() } else { folder.join(word) }
                }),
                args: T::from_arg_matches(of_command)?,
            })
        };
        names.iter().map(preset).collect()
    }

    /// The values for a model, those that come first in front.
    fn values(&self, file: &File, name: &str, command: &Command) -> Vec<Value> {
        let of_table = file.entries.iter().filter(|entry| entry.table.as_deref() == Some(name));
        let of_all = file.entries.iter().filter(|entry| entry.table.is_none());
        let own = of_table.chain(of_all).filter(|entry| entry.key != MODEL).filter_map(|entry| {
            let arg = find(command, &self.root, &entry.key)?;
            let origin = Origin::Line(file.path.clone(), entry.line);
            let option = arg.get_long()?.to_owned();
            Some(Value { option, words: words_of(arg, entry.words.clone()), origin, layer: Layer::Table })
        });
        let mut values: Vec<Value> = Vec::new();
        for value in own.chain(self.sources.values(command, &self.root)) {
            if !values.iter().any(|known| known.option == value.option) {
                values.push(value);
            }
        }
        values
    }
}

/// Refuses keys that are no options of the command.
fn check(file: &File, command: &Command, root: &Command) -> Result<(), Usage> {
    for entry in &file.entries {
        let at = |what: String| Usage(format!("`{}`, line {}: {what}", file.path.display(), entry.line));
        if entry.key == MODEL {
            match (&entry.table, entry.words.len()) {
                (Some(_), 1) => continue,
                _ => return Err(at("`model` is the file of one model, in its table".into())),
            }
        }
        if find(command, root, &entry.key).is_none() {
            return Err(at(unknown("key", &entry.key, options(command, root).flat_map(names_of))));
        }
    }
    Ok(())
}
