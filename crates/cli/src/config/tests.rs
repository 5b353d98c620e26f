use std::sync::LazyLock;

use clap::CommandFactory as _;

use super::*;
use crate::Cli;

/// A copy of the command: tests parse thousands of lines, and to make it anew takes most of their time.
fn command() -> Command {
    static COMMAND: LazyLock<Command> = LazyLock::new(Cli::command);
    COMMAND.clone()
}

fn built() -> Command {
    static BUILT: LazyLock<Command> = LazyLock::new(|| {
        let mut root = command();
        root.build();
        root
    });
    BUILT.clone()
}

fn sources(variables: &[(&str, &str)], file: &[(Option<&str>, &str, &str)]) -> Sources {
    let variables = variables.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let entry = |(i, (table, key, word)): (usize, &(Option<&str>, &str, &str))| file::Entry {
        table: table.map(str::to_owned),
        key: (*key).to_owned(),
        words: vec![(*word).to_owned()],
        line: i + 1,
    };
    let entries = file.iter().enumerate().map(entry).collect();
    let file = File { path: "c.toml".into(), entries };
    Sources { variables, path: Some(file.path.clone()), file: Some(file) }
}

/// A file with one key, whose value is a list.
fn list_in_file(key: &str, list: &[String]) -> Sources {
    let mut sources = sources(&[], &[(None, key, "")]);
    sources.file.as_mut().unwrap().entries[0].words = list.to_vec();
    sources
}

/// The words of an option, as the command line and the sources have it.
fn words(line: &str, sources: &Sources, id: &str) -> Result<Vec<String>, String> {
    let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    let matches = command().try_get_matches_from(&args).map_err(|e| e.to_string())?;
    let matches = parse(&args, matches, &built(), command(), sources).map_err(|Usage(e)| e)?;
    let (_, of) = matches.subcommand().unwrap();
    let raw = of.get_raw(id).into_iter().flatten();
    Ok(raw.map(|word| word.to_string_lossy().into_owned()).collect())
}

#[test]
fn every_option_of_run_has_a_variable_and_a_key() {
    let root = built();
    let run = common(&root);
    // Some value that the option takes.
    let candidates = [
        "true", "7", "1", "0.5", "f16", "f32", "base", "json", "always", "linear", "top_k", "k", "1+1",
        "a=int:1", "{}", "3,1", "x,1", "x", "system", "layer", "[::1]:1", "http://a",
    ];
    let mut n = 0;
    for arg in options(run, &root) {
        let (long, id) = (arg.get_long().unwrap(), arg.get_id().as_str());
        let works = |word: &&&str| {
            let by_variable = sources(&[(&variable(long), word)], &[]);
            words("chaski run", &by_variable, id)
                .is_ok_and(|found| found.concat() == split(arg, word).concat())
        };
        let word = candidates.iter().find(works).unwrap_or_else(|| panic!("no variable sets --{long}"));
        let list = split(arg, word);
        let by_key = list_in_file(&long.replace('-', "_"), &list);
        check(by_key.file.as_ref().unwrap(), &root).unwrap();
        assert_eq!(words("chaski run", &by_key, id).unwrap().concat(), list.concat(), "{long}");
        n += 1;
    }
    assert!(n > 80, "{n}");
}

#[test]
fn the_command_line_comes_before_the_environment_before_the_file_before_defaults() {
    let both = sources(
        &[("CHASKI_TEMP", "0.5")],
        &[(None, "temp", "0.6"), (None, "chunk", "64"), (Some("run"), "chunk", "32")],
    );
    let temp = |line: &str| words(line, &both, "temp").unwrap();
    assert_eq!(temp("chaski run --temp 0.4"), ["0.4"]);
    assert_eq!(temp("chaski run"), ["0.5"]);
    assert_eq!(words("chaski run", &both, "chunk").unwrap(), ["32"]);
    assert_eq!(words("chaski embed -p a", &both, "chunk").unwrap(), ["64"]);
    assert_eq!(words("chaski run", &sources(&[], &[]), "chunk").unwrap(), ["512"]);
}

#[test]
fn values_give_way_to_what_excludes_them() {
    let of_file = sources(
        &[("CHASKI_JSON", "1")],
        &[(None, "regex", "a+"), (None, "verbose", "true"), (None, "jsonl", "true")],
    );
    let on = |line: &str, id: &str| words(line, &of_file, id).unwrap() == ["true"];
    assert!(on("chaski run", "json") && !on("chaski run", "jsonl") && on("chaski run", "verbose"));
    assert!(!on("chaski run --jsonl", "json") && !on("chaski run -q", "verbose"));
    assert_eq!(words("chaski run", &of_file, "regex").unwrap(), ["a+"]);
    assert!(words("chaski run --grammar x", &of_file, "regex").unwrap().is_empty());
    let e = words("chaski run", &sources(&[], &[(None, "json", "true"), (None, "jsonl", "true")]), "json")
        .unwrap_err();
    assert_eq!(e, "c.toml:1 and c.toml:2: `json` and `jsonl` cannot be used together");
}

#[test]
fn a_model_of_the_configuration_is_one_by_m() {
    let model = sources(&[("CHASKI_MODEL", "mine.gguf")], &[]);
    let of = |line: &str| words(line, &model, "model").unwrap();
    assert_eq!(of("chaski run Hello"), ["mine.gguf"]);
    for line in [
        "chaski run other.gguf",
        "chaski run other hello",
        "chaski run -m other",
        "chaski bench other",
        "chaski logits other",
    ] {
        assert!(!of(line).contains(&"mine.gguf".to_owned()), "{line}");
    }
}

#[test]
fn a_list_has_as_many_values_as_its_option_takes() {
    let of = |key: &str, list: &[&str]| {
        let list: Vec<String> = list.iter().map(|word| (*word).to_owned()).collect();
        words("chaski run", &list_in_file(key, &list), &key.replace('-', "_"))
    };
    assert_eq!(of("stop", &["a", "b"]).unwrap(), ["a", "b"]);
    assert_eq!(of("lora-scaled", &["a", "1", "b", "2"]).unwrap(), ["a", "1", "b", "2"]);
    for (key, list, says) in [
        ("temp", &["0.5", "0.9"][..], "c.toml:1: `temp` takes one value, found 2"),
        ("temp", &[], "c.toml:1: `temp` takes one value, found 0"),
        ("stop", &[], "c.toml:1: `stop` takes values, found 0"),
        ("lora-scaled", &["a"], "c.toml:1: `lora-scaled` takes 2 values for each use, found 1"),
    ] {
        assert_eq!(of(key, list).unwrap_err(), says);
    }
    // A command's table comes before keys of all commands, also for options that exclude each other.
    let tables = sources(&[], &[(None, "json", "true"), (Some("run"), "jsonl", "true")]);
    assert_eq!(words("chaski run", &tables, "jsonl").unwrap(), ["true"]);
}

#[test]
fn mistakes_have_their_place() {
    let e = words("chaski run", &sources(&[("CHASKI_TEMP", "warm")], &[]), "temp").unwrap_err();
    assert_eq!(e, "CHASKI_TEMP: `warm` is no value of `temp`: expected a number");
    let e = words("chaski run", &sources(&[], &[(None, "top-k", "x")]), "top_k").unwrap_err();
    assert_eq!(e, "c.toml:1: `x` is no value of `top-k`: expected a whole number");
    for (entry, says) in [
        ((None, "temprature", "1"), "is `temperature` meant?"),
        ((None, "tempp", "1"), "`c.toml`, line 1: unknown key `tempp`; is `temp` meant?"),
        ((None, "ctx_sise", "1"), "unknown key `ctx_sise`; is `ctx-size` meant?"),
        ((Some("runn"), "temp", "1"), "unknown table `runn`; is `run` meant?"),
        ((None, "n-prompt", "1"), "`n-prompt` belongs in a table: [bench]"),
        ((Some("show"), "temp", "1"), "unknown key `temp`"),
    ] {
        let Usage(error) = check(sources(&[], &[entry]).file.as_ref().unwrap(), &built()).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
    assert_eq!(
        sources(&[("CHASKI_TMP", "1"), ("CHASKI_CONFIG", "x")], &[]).strangers(&built()),
        ["CHASKI_TMP"]
    );
}
