//! llama.cpp-style options of several letters behind one dash, such as `-ngl`, which clap does not support.

use std::collections::HashSet;
use std::ffi::OsString;

use clap::{Command, ValueEnum as _};

use crate::progress::Mode;

/// Short spelling and the long option it stands for.
const SPELLINGS: [(&str, &str); 26] = [
    ("-ngl", "--n-gpu-layers"),
    ("-ncmoe", "--experts-on-cpu"),
    ("-npl", "--n-parallel"),
    ("-npp", "--n-prompt"),
    ("-ntg", "--n-gen"),
    ("-pg", "--prompt-gen"),
    ("-ub", "--ubatch-size"),
    ("-ctk", "--cache-type-k"),
    ("-md", "--model-draft"),
    ("-ctv", "--cache-type-v"),
    ("-dev", "--device"),
    ("-oe", "--output-err"),
    ("-fa", "--flash-attn"),
    ("-sys", "--system"),
    ("-mg", "--main-gpu"),
    ("-sm", "--split-mode"),
    ("-tb", "--threads-batch"),
    ("-ts", "--tensor-split"),
    ("-mmp", "--mmap"),
    ("-dio", "--direct-io"),
    ("-lm", "--load-mode"),
    ("-nkvo", "--no-kv-offload"),
    ("-embd", "--embeddings"),
    ("-nopo", "--no-op-offload"),
    ("-cnv", "--chat"),
    ("-no-cnv", "--raw"),
];

/// The long option for a short spelling of several letters.
pub(crate) fn long_of(spelling: &str) -> Option<&'static str> {
    SPELLINGS.iter().find(|(short, _)| *short == spelling).map(|(_, long)| *long)
}

/// Expands the llama.cpp-style options of a command line, up to `--`. An option's value is left alone, whatever it
/// begins with. The word of `--progress` may follow it, but llama-bench's option has none.
pub(crate) fn llama_style(args: impl Iterator<Item = OsString>, command: &Command) -> Vec<OsString> {
    let greedy = options_of_any_value(command);
    let (mut literal, mut is_value, mut is_mode) = (false, false, false);
    let mut out: Vec<OsString> = Vec::new();
    for arg in args {
        if std::mem::take(&mut is_value) {
            out.push(arg);
            continue;
        }
        literal |= arg == "--";
        let Some(text) = arg.to_str().filter(|_| !literal) else {
            out.push(arg);
            continue;
        };
        is_value = greedy.contains(text) || greedy.contains(&text.replace('_', "-"));
        if std::mem::replace(&mut is_mode, text == "--progress")
            && Mode::from_str(text, false).is_ok()
            && let Some(option) = out.last_mut()
        {
            option.push(format!("={text}"));
            continue;
        }
        let (name, value) = text.split_once('=').map_or((text, None), |(n, v)| (n, Some(v)));
        // llama.cpp takes options with both signs, too.
        let with_dashes = (name.starts_with("--") && name.contains('_')).then(|| name.replace('_', "-"));
        let spelled = SPELLINGS.iter().find(|(short, _)| *short == name).map(|(_, long)| *long);
        out.push(match spelled.or(with_dashes.as_deref()) {
            Some(long) => value.map_or(long.into(), |v| format!("{long}={v}").into()),
            None => arg,
        });
    }
    out
}

/// Options of a command and its subcommands whose value may begin with a dash.
fn options_of_any_value(command: &Command) -> HashSet<String> {
    let mut found: HashSet<String> = command.get_subcommands().flat_map(options_of_any_value).collect();
    for arg in command.get_arguments().filter(|arg| arg.is_allow_hyphen_values_set()) {
        let long = arg.get_long_and_visible_aliases().into_iter().flatten().map(|name| format!("--{name}"));
        found.extend(long.chain(arg.get_short().map(|letter| format!("-{letter}"))));
    }
    let spelled = SPELLINGS.iter().filter(|(_, long)| found.contains(*long));
    let spelled: Vec<String> = spelled.map(|(short, _)| (*short).to_owned()).collect();
    found.extend(spelled);
    found
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn words(line: &str) -> Vec<String> {
        let args = llama_style(line.split(' ').map(OsString::from), &crate::Cli::command());
        args.into_iter().map(|a| a.into_string().unwrap()).collect()
    }

    #[test]
    fn short_options_of_several_letters_become_long_ones() {
        let long = "chaski bench --n-gpu-layers 99 --prompt-gen=8,9 -p 5";
        assert_eq!(words("chaski bench -ngl 99 -pg=8,9 -p 5").join(" "), long);
    }

    #[test]
    fn values_of_options_are_left_alone() {
        for line in ["chaski run -p -fa", "chaski run --stop -sys x", "chaski run --regex -pg -n 1"] {
            assert_eq!(words(line).join(" "), line);
        }
        assert_eq!(words("chaski run -p a -fa").join(" "), "chaski run -p a --flash-attn");
        assert_eq!(words("chaski run --prompt=-fa -fa").join(" "), "chaski run --prompt=-fa --flash-attn");
        assert_eq!(words("chaski run -ngl -fa -fa").join(" "), "chaski run --n-gpu-layers -fa --flash-attn");
    }

    #[test]
    fn names_with_underscores_are_those_with_dashes() {
        assert_eq!(
            words("chaski bench --n_prompt=8_0 --n_gen 4").join(" "),
            "chaski bench --n-prompt=8_0 --n-gen 4"
        );
        assert_eq!(words("chaski run -p --a_b").join(" "), "chaski run -p --a_b");
    }

    #[test]
    fn the_word_of_progress_may_follow_it() {
        assert_eq!(words("chaski --progress json bench -n 1").join(" "), "chaski --progress=json bench -n 1");
        for line in ["chaski bench --progress m.gguf", "chaski run -p --progress json", "chaski run json"] {
            assert_eq!(words(line).join(" "), line);
        }
    }

    #[test]
    fn nothing_changes_after_two_dashes() {
        assert_eq!(words("chaski run -- -ngl").join(" "), "chaski run -- -ngl");
    }
}
