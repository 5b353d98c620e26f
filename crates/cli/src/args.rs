//! llama-style options of several letters behind one dash, such as `-ngl`, which clap has no notion of.

use std::ffi::OsString;

/// Short spelling, and the long option that it becomes.
const SPELLINGS: [(&str, &str); 13] = [
    ("-ngl", "--n-gpu-layers"),
    ("-pg", "--prompt-gen"),
    ("-ub", "--ubatch-size"),
    ("-ctk", "--cache-type-k"),
    ("-ctv", "--cache-type-v"),
    ("-dev", "--device"),
    ("-oe", "--output-err"),
    ("-fa", "--flash-attn"),
    ("-sys", "--system"),
    ("-mg", "--main-gpu"),
    ("-sm", "--split-mode"),
    ("-cnv", "--chat"),
    ("-no-cnv", "--raw"),
];

/// Spells out the llama-style options of a command line, up to `--`.
pub(crate) fn llama_style(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut literal = false;
    args.map(|arg| {
        literal |= arg == "--";
        let Some(text) = arg.to_str().filter(|_| !literal) else { return arg };
        let (name, value) = text.split_once('=').map_or((text, None), |(n, v)| (n, Some(v)));
        match SPELLINGS.iter().find(|(short, _)| *short == name) {
            Some((_, long)) => value.map_or((*long).into(), |v| format!("{long}={v}").into()),
            None => arg,
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        let args = llama_style(line.split(' ').map(OsString::from));
        args.into_iter().map(|a| a.into_string().unwrap()).collect()
    }

    #[test]
    fn short_options_of_several_letters_become_long_ones() {
        let long = "chaski bench --n-gpu-layers 99 --prompt-gen=8,9 -p 5";
        assert_eq!(words("chaski bench -ngl 99 -pg=8,9 -p 5").join(" "), long);
    }

    #[test]
    fn nothing_changes_after_two_dashes() {
        assert_eq!(words("chaski run -- -ngl").join(" "), "chaski run -- -ngl");
    }
}
