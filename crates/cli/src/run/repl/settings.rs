//! Options that change during a chat: `/set`.

use clap::builder::Command;
use clap::{Arg, Args as _, CommandFactory as _, Parser as _};
use serde_json::Value;

use crate::failure::in_plain_words;
use crate::llama_cpp;
use crate::run::AnswerArgs;
use crate::sampling_options::SamplingArgs;

/// Options that `/set` changes: those of a generation.
#[derive(Clone, Debug, Default, clap::Parser, serde::Serialize)]
#[command(no_binary_name = true, disable_help_flag = true)]
pub(in crate::run) struct Settings {
    #[command(flatten)]
    #[serde(flatten)]
    pub(in crate::run) answer: AnswerArgs,
    #[command(flatten)]
    #[serde(flatten)]
    pub(in crate::run) sampling: SamplingArgs,
}

/// Options that `/set NAME` clears; it turns on those of which `true` and `false` are the values.
const CLEARED: [&str; 3] = ["system", "stop", "tools"];

impl Settings {
    /// The settings after `/set NAME VALUE`, and a line that says what they are.
    ///
    /// # Errors
    /// The mistake, in plain words.
    pub(super) fn set(&self, line: &str) -> Result<(Settings, String), String> {
        let split = line.find(|c: char| c.is_whitespace() || c == '=').unwrap_or(line.len());
        let (name, value) = (&line[..split], line[split..].trim_start_matches('=').trim());
        let option = long_name(name)?;
        let settings = self.with(&option, value)?;
        let said = match value {
            "" => match settings.in_force().iter().find(|(name, _)| *name == option) {
                Some((_, value)) => format!("{option} = {value}"),
                None => format!("{option} is cleared."),
            },
            value => format!("{option} = {value}"),
        };
        Ok((settings, said))
    }

    /// A copy with a new value for an option.
    fn with(&self, option: &str, value: &str) -> Result<Settings, String> {
        let mut settings = self.clone();
        settings.sampling.make_room_for(option);
        let is_constraint = settings.answer.constraint.make_room_for(option);
        let clears = is_constraint || CLEARED.contains(&option);
        match (value, clears) {
            ("", true) => settings.answer.clear(option),
            ("", false) => settings
                .try_update_from([format!("--{option}")])
                .map_err(|e| format!("{}: /set {option} VALUE", in_plain_words(&e, option, value)))?,
            _ => settings
                .try_update_from([format!("--{option}={value}")])
                .map_err(|e| in_plain_words(&e, option, value))?,
        }
        Ok(settings)
    }

    /// The options that have a value, by their long names.
    pub(super) fn in_force(&self) -> Vec<(String, String)> {
        // Through text, which has the shortest digits of a number of 32 bits.
        let text = serde_json::to_string(self).expect("texts, numbers and lists");
        let Value::Object(fields) = serde_json::from_str(&text).expect("it was written as JSON") else {
            return Vec::new();
        };
        let word = |value: &Value| match value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        let row = |(name, value): (String, Value)| {
            let text = match &value {
                Value::Null => return None,
                Value::Array(list) if list.is_empty() => return None,
                Value::Array(list) => list.iter().map(word).collect::<Vec<_>>().join(", "),
                value => word(value),
            };
            Some((name.replace('_', "-"), text))
        };
        fields.into_iter().filter_map(row).collect()
    }
}

/// True if an option has this name: long, short, or another one.
fn is_named(arg: &Arg, name: &str) -> bool {
    let aliases = arg.get_all_aliases().unwrap_or_default();
    let mut letters = name.chars();
    let letter = letters.next().filter(|_| letters.next().is_none());
    arg.get_long() == Some(name) || aliases.contains(&name) || (letter.is_some() && arg.get_short() == letter)
}

fn find<'c>(command: &'c Command, name: &str) -> Option<&'c Arg> {
    command.get_arguments().find(|arg| is_named(arg, name))
}

/// The long name of an option by any of its names on the command line.
fn long_name(name: &str) -> Result<String, String> {
    let given = name.trim_start_matches('-');
    if given.is_empty() {
        return Err("Which option? For example: /set temp 0.5".into());
    }
    let spelled =
        llama_cpp::long_of(&format!("-{given}")).unwrap_or(given).trim_start_matches('-').replace('_', "-");
    let known = Settings::command();
    if let Some(long) = find(&known, &spelled).and_then(Arg::get_long) {
        return Ok(long.to_owned());
    }
    let all = crate::run::Args::augment_args(Command::new("run"));
    Err(match find(&all, &spelled).and_then(Arg::get_long) {
        Some(long) => format!(
            "`{given}` cannot be changed during a chat: leave it, and start it again with `--{long}`. /save and /load \
             keep the conversation."
        ),
        None => format!("There is no option `{given}`; `chaski run --help` lists them."),
    })
}

#[cfg(test)]
mod tests {
    use chaski::{Grammar, SamplerParams};

    use super::*;

    #[test]
    fn setting_an_option_leaves_the_others_as_they_are() {
        let line = ["--no-think", "--ignore-eos", "--special", "--stop", "a", "--stop", "b"];
        let begun = Settings::try_parse_from(line).unwrap();
        let is_on = |settings: &Settings| {
            let mut p = SamplerParams::default();
            settings.sampling.apply(&mut p);
            [
                settings.answer.variables.enable_thinking().map(|on| !on),
                settings.answer.special,
                Some(p.ignore_eos),
            ]
            .map(|on| on == Some(true))
        };
        let changed = begun.with("temp", "0.5").unwrap();
        assert_eq!((is_on(&changed), changed.sampling.temp), ([true; 3], Some(0.5)));
        assert_eq!(changed.answer.stop, ["a", "b"]);
        let off = changed.with("special", "false").unwrap().with("ignore-eos", "false").unwrap();
        assert_eq!(is_on(&off), [true, false, false]);
        assert_eq!(is_on(&off.set("special").unwrap().0), [true, true, false]);
        assert_eq!(changed.with("stop", "c").unwrap().answer.stop, ["c"]);
        assert_eq!(changed.set("n 7").unwrap().0.answer.n_predict, Some(7));
    }

    #[test]
    fn a_constraint_takes_the_place_of_another_and_can_be_taken_away() {
        let grammar = |settings: &Settings| settings.answer.constraint.grammar().unwrap();
        let schema = Settings::default().with("json-schema", "{}").unwrap();
        assert!(matches!(grammar(&schema), Some(Grammar::JsonSchema(_))));
        let regex = schema.with("regex", "a+").unwrap();
        assert_eq!(grammar(&regex), Some(Grammar::Regex("a+".into())));
        let gbnf = regex.with("grammar", "root ::= \"a\"").unwrap();
        assert!(matches!(grammar(&gbnf), Some(Grammar::Gbnf(_))));
        assert_eq!(grammar(&gbnf.with("temp", "1").unwrap()), grammar(&gbnf));
        assert_eq!(grammar(&gbnf.set("json-schema").unwrap().0), None);
    }

    #[test]
    fn the_last_sequence_of_samplers_counts_whichever_way_it_is_written() {
        use chaski::text::SamplerKind;
        let samplers = |settings: &Settings| {
            let mut p = SamplerParams::default();
            settings.sampling.apply(&mut p);
            p.samplers
        };
        let by_name = Settings::default().with("samplers", "top_k;temperature").unwrap();
        assert_eq!(samplers(&by_name), [SamplerKind::TopK, SamplerKind::Temperature]);
        let by_letter = by_name.set("sampler-seq=p").unwrap().0;
        assert_eq!(samplers(&by_letter), [SamplerKind::TopP]);
        assert_eq!(samplers(&by_letter.with("samplers", "min_p").unwrap()), [SamplerKind::MinP]);
        assert!(by_letter.with("samplers", "nothing").is_err());
    }

    #[test]
    fn options_have_the_names_of_the_command_line() {
        let set =
            |line: &str| Settings::default().set(line).map(|(settings, said)| (settings.in_force(), said));
        let row = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        for (line, name, value) in [
            ("temp 0.5", "temp", "0.5"),
            ("--temp=0.5", "temp", "0.5"),
            ("top_k 7", "top-k", "7"),
            ("s 3", "seed", "3"),
            ("-n -1", "n-predict", "-1"),
            ("typical 0.9", "typical-p", "0.9"),
            ("-sys Be kind.", "system", "Be kind."),
            ("l 15+1", "logit-bias", "15+1"),
            ("special", "special", "true"),
        ] {
            let (rows, said) = set(line).unwrap();
            assert_eq!((rows, said), (row(name, value), format!("{name} = {value}")), "{line}");
        }
        let (settings, said) = Settings::default().set("system x").unwrap().0.set("system").unwrap();
        assert_eq!((settings.in_force(), said.as_str()), (vec![], "system is cleared."));
    }

    #[test]
    fn every_option_in_force_is_listed_once() {
        let mut settings = Settings::default();
        for line in ["temp 1", "temp 0.7", "stop a", "stop b", "regex x+", "json-schema {}", "special false"]
        {
            settings = settings.set(line).unwrap().0;
        }
        let rows: Vec<String> = settings.in_force().iter().map(|(n, v)| format!("{n}={v}")).collect();
        assert_eq!(rows, ["stop=b", "special=false", "json-schema={}", "temp=0.7"]);
    }

    #[test]
    fn mistakes_are_said_in_plain_words() {
        let said = |line: &str| Settings::default().set(line).unwrap_err();
        for (line, expected) in [
            ("", "Which option? For example: /set temp 0.5"),
            ("temp", "`temp` needs a value: /set temp VALUE"),
            ("temp much", "`much` is no value of `temp`: expected a number"),
            ("top-k 1.5", "`1.5` is no value of `top-k`: expected a whole number"),
            ("mirostat 7", "`7` is no value of `mirostat`: 7 is not in 0..=2"),
            ("special maybe", "`maybe` is no value of `special`: expected true, false"),
            ("temprature 1", "There is no option `temprature`; `chaski run --help` lists them."),
        ] {
            assert_eq!(said(line), expected, "{line}");
        }
        for line in ["c 1024", "ctx-size 1024", "--device cpu", "m x.gguf"] {
            assert!(said(line).contains("cannot be changed during a chat"), "{}", said(line));
        }
        assert!(said("c 1024").contains("`--ctx-size`"));
    }
}
