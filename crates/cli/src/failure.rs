//! Error reports and exit codes.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;

use chaski::Error;
use chaski::errors::{ModelError, PlanError, RuntimeError, TokenizerError};
use chaski::gguf::{GgufError, OpenError, SourceError};
use chaski::serve::{Refused, ServeError};
use chaski_hub::{FailureKind, HubError};

use clap::error::{ContextKind, ContextValue};

use crate::ui::{LINE, Ui, shortened, tell};

pub(crate) const FAILED: u8 = 1;
const USAGE: u8 = 2;
const NO_MODEL: u8 = 3;
const OUT_OF_MEMORY: u8 = 4;
/// Exit code of a program that Ctrl-C ended, as shells report it.
pub(crate) const INTERRUPTED: u8 = 130;

/// A usage error that clap does not catch.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// A request that cannot be met, with the way to the same end.
#[derive(Debug)]
pub(crate) struct Instead(pub(crate) String);

impl std::fmt::Display for Instead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Instead {}

/// The user pressed Ctrl-C; everything was already reported.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// A failure that was already reported.
#[derive(Debug)]
pub(crate) struct Reported;

impl std::fmt::Display for Reported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("failed")
    }
}

impl std::error::Error for Reported {}

/// A file that was not written; context of the underlying error.
#[derive(Debug)]
pub(crate) struct NotWritten(pub(crate) PathBuf);

impl std::fmt::Display for NotWritten {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` was not written", self.0.display())
    }
}

/// True if the reader of stdout has closed the pipe. A pipe that is an output file of ours is a failure instead.
pub(crate) fn is_closed_stdout(e: &anyhow::Error) -> bool {
    let closed = |c: &(dyn std::error::Error + 'static)| {
        c.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == ErrorKind::BrokenPipe)
    };
    e.chain().any(closed) && e.downcast_ref::<NotWritten>().is_none()
}

/// True if one word may be a slip of the other: few letters differ, and both or neither turn something off.
pub(crate) fn is_alike(given: &str, word: &str) -> bool {
    let (given, word) = (given.trim_start_matches('-'), word.trim_start_matches('-'));
    let n_edit = match given.chars().count().max(word.chars().count()) {
        0..=3 => 0,
        4..=5 => 1,
        6..=11 => 2,
        _ => 3,
    };
    given.starts_with("no-") == word.starts_with("no-") && strsim::damerau_levenshtein(given, word) <= n_edit
}

/// Prints clap's message, with a suggestion if one of the `known` options may be meant; asking for help or the version
/// is not a failure.
pub(crate) fn usage(mut e: clap::Error, known: Vec<String>) -> ExitCode {
    for (given, suggested) in [
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
    ] {
        let Some(ContextValue::String(given)) = e.get(given).cloned() else { continue };
        let mut words: Vec<String> = match e.remove(suggested) {
            Some(ContextValue::String(word)) => vec![word],
            Some(ContextValue::Strings(words)) => words,
            _ => Vec::new(),
        };
        if e.kind() == clap::error::ErrorKind::UnknownArgument {
            words.extend(known.iter().cloned());
        }
        let name = given.split('=').next().unwrap_or_default();
        words.retain(|word| is_alike(name, word));
        if let Some(word) = words.into_iter().min_by_key(|word| strsim::damerau_levenshtein(name, word)) {
            let value = match suggested {
                ContextKind::SuggestedArg => ContextValue::String(word),
                _ => ContextValue::Strings(vec![word]),
            };
            e.insert(suggested, value);
        }
    }
    let plain = e.render().to_string();
    if plain.lines().any(|line| line.chars().count() > LINE) {
        eprintln!("{}", lines(&plain, "\n"));
    } else {
        // If this fails, nobody can be told.
        let _ = e.print();
    }
    if e.use_stderr() { USAGE.into() } else { ExitCode::SUCCESS }
}

/// Prints the error chain and, if known, a hint.
pub(crate) fn report(e: &anyhow::Error, ui: &Ui) -> ExitCode {
    if e.chain().any(|c| c.is::<Interrupted>()) {
        return INTERRUPTED.into();
    }
    if e.is::<Reported>() {
        return FAILED.into();
    }
    if is_closed_stdout(e) {
        return ExitCode::SUCCESS;
    }
    let (code, help) = classify(e);
    // Wrappers that display their source as their own text would repeat it.
    let mut said = String::new();
    for (i, frame) in e.chain().enumerate() {
        let text = frame.to_string();
        if text == said {
            continue;
        }
        let line = lines(&text, "\n    ");
        match i {
            0 => ui.tell_after("1;31", "error:", &line),
            _ => tell(&format!("  because: {line}")),
        }
        said = text;
    }
    if let Some(help) = help {
        ui.tell_after("1;32", "help:", help);
    }
    code.into()
}

/// The lines of a text, such as a compiler's, with this between them; shortens lines and escapes other control
/// characters, since names in files may have any length and contain anything.
fn lines(text: &str, between: &str) -> String {
    text.lines().map(|line| shortened(line, LINE)).collect::<Vec<_>>().join(between)
}

/// True if memory was missing.
pub(crate) fn is_out_of_memory(e: &anyhow::Error) -> bool {
    classify(e).0 == OUT_OF_MEMORY
}

fn classify(e: &anyhow::Error) -> (u8, Option<&'static str>) {
    e.chain().find_map(frame).unwrap_or((FAILED, None))
}

/// Exit code and hint, if this frame of the chain determines them.
fn frame(e: &(dyn std::error::Error + 'static)) -> Option<(u8, Option<&'static str>)> {
    if e.is::<Usage>() {
        return Some((USAGE, Some("`chaski --help` and `chaski COMMAND --help` list the options")));
    }
    if e.is::<Instead>() {
        return Some((USAGE, None));
    }
    if let Some(e) = e.downcast_ref::<Error>() {
        return match e {
            Error::Model(e) => model(e),
            Error::Runtime(e) => runtime(e),
            Error::Source(e) => Some(source(e)),
            Error::Serve(e) => serve(e),
            Error::NoDefaultModel => Some((NO_MODEL, None)),
            Error::Lora { .. } => Some((NO_MODEL, None)),
            _ => None,
        };
    }
    if let Some(e) = e.downcast_ref::<HubError>() {
        return Some(hub(e));
    }
    e.downcast_ref::<ModelError>()
        .and_then(model)
        .or_else(|| e.downcast_ref().and_then(serve))
        .or_else(|| e.downcast_ref().and_then(runtime))
        .or_else(|| e.downcast_ref().map(source))
        .or_else(|| e.downcast_ref().map(open))
        .or_else(|| e.downcast_ref().and_then(file))
}

fn hub(e: &HubError) -> (u8, Option<&'static str>) {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    match e.kind() {
        FailureKind::Usage => {
            (USAGE, Some("a name is `hf:ORG/REPO[@REVISION][:TAG]`, an address, `ollama:NAME` or a path"))
        }
        FailureKind::NoModel => (NO_MODEL, None),
        FailureKind::NoRoom => {
            (OUT_OF_MEMORY, Some("`chaski list` and `chaski rm` make room; the part that came is kept"))
        }
        FailureKind::Interrupted => (INTERRUPTED, None),
        FailureKind::Network if matches!(e, HubError::Tls { .. }) => {
            (FAILED, Some("`--tls-roots system` trusts the certificates of this machine"))
        }
        FailureKind::Network => {
            (FAILED, Some("what came is kept; `--offline` uses the models that are here"))
        }
        FailureKind::Damaged => (FAILED, None),
        FailureKind::File => match e {
            HubError::File { source, .. }
                if matches!(source.kind(), PermissionDenied | ReadOnlyFilesystem) =>
            {
                (FAILED, Some("HF_HUB_CACHE names a folder that can be written"))
            }
            _ => (FAILED, None),
        },
    }
}

fn serve(e: &ServeError) -> Option<(u8, Option<&'static str>)> {
    match e {
        ServeError::Model(e) => model(e),
        ServeError::Refused(Refused::Context { .. }) => {
            Some((FAILED, Some("set a larger context with `-c N`")))
        }
        _ => None,
    }
}

fn model(e: &ModelError) -> Option<(u8, Option<&'static str>)> {
    match e {
        ModelError::Runtime(e) => runtime(e),
        ModelError::Source(e) => Some(source(e)),
        ModelError::Open(e) => Some(open(e)),
        ModelError::Tokenizer(TokenizerError::TooLong { .. }) => {
            Some((FAILED, Some("set a larger context with `-c N`")))
        }
        ModelError::Tokenizer(_) => Some((NO_MODEL, None)),
        ModelError::Context { .. } => Some((FAILED, Some("set a larger context with `-c N`"))),
        ModelError::Metadata(_)
        | ModelError::Architecture { .. }
        | ModelError::NoTensor { .. }
        | ModelError::Shape { .. }
        | ModelError::Values { .. }
        | ModelError::Config { .. } => {
            Some((NO_MODEL, Some("`chaski show FILE` prints the file's metadata")))
        }
        _ => None,
    }
}

/// True if a file ends before its contents do.
fn ends_early(e: &GgufError) -> bool {
    matches!(e, GgufError::NeedMore { .. } | GgufError::Truncated { .. } | GgufError::TensorPastEnd { .. })
}

/// Any file that a command takes may be missing, such as a text file.
fn file(e: &std::io::Error) -> Option<(u8, Option<&'static str>)> {
    (e.kind() == ErrorKind::NotFound).then_some((NO_MODEL, Some("check the path")))
}

fn open(e: &OpenError) -> (u8, Option<&'static str>) {
    match e {
        OpenError::Source(e) => source(e),
        // The error itself names the files.
        OpenError::NotFirst { .. } | OpenError::SplitName { .. } => (NO_MODEL, None),
        OpenError::Gguf { source, .. } if ends_early(source) => {
            (NO_MODEL, Some("the file ends too early; was its download interrupted?"))
        }
        _ => (NO_MODEL, None),
    }
}

fn source(e: &SourceError) -> (u8, Option<&'static str>) {
    let help = match e {
        SourceError::Io { name, source } if source.kind() == ErrorKind::NotFound => {
            Some(if name.to_lowercase().ends_with(".gguf") {
                "check the path; `hf:ORG/REPO` names a model of Hugging Face"
            } else {
                "check the path; a text for the built-in model is given with `-p TEXT`"
            })
        }
        _ => None,
    };
    (NO_MODEL, help)
}

fn runtime(e: &RuntimeError) -> Option<(u8, Option<&'static str>)> {
    match e {
        RuntimeError::OutOfMemory { .. } => {
            let help = "`chaski show MODEL -c N` prints the memory for a context of N tokens; for MoE models, \
                `--experts-on-cpu N` keeps the experts of N layers in host memory";
            Some((OUT_OF_MEMORY, Some(help)))
        }
        RuntimeError::NoAdapter { .. } => Some((FAILED, Some("`--device cpu` runs on the CPU"))),
        RuntimeError::NoSuchAdapter { .. } => Some((FAILED, Some("`chaski devices` lists the GPUs"))),
        RuntimeError::Limit { what: "tokens of the sequence", .. } => {
            Some((FAILED, Some("set a larger context with `-c N`")))
        }
        RuntimeError::NeedsOneDevice { .. } => Some((FAILED, Some("name one GPU with `--device`"))),
        RuntimeError::NeedsExperts { .. } => Some((FAILED, Some("remove `--experts-on-cpu`"))),
        RuntimeError::Plan(PlanError::NoExperts) => {
            Some((FAILED, Some("`--experts-on-cpu` needs an MoE model")))
        }
        RuntimeError::DeviceLost { .. } => {
            Some((FAILED, Some("the driver may need a restart; `--chunk 64` makes each submission shorter")))
        }
        _ => None,
    }
}

/// An error of a value in plain words.
pub(crate) fn in_plain_words(e: &clap::Error, option: &str, value: &str) -> String {
    let list = |kind| match e.get(kind) {
        Some(ContextValue::Strings(words)) => words.join(", "),
        _ => String::new(),
    };
    match e.kind() {
        _ if value.is_empty() => format!("`{option}` needs a value"),
        clap::error::ErrorKind::InvalidValue => {
            format!("`{value}` is no value of `{option}`: expected {}", list(ContextKind::ValidValue))
        }
        clap::error::ErrorKind::ValueValidation => {
            let why = std::error::Error::source(e).map(ToString::to_string).unwrap_or_default();
            let why = match why.as_str() {
                "invalid float literal" => "expected a number",
                "invalid digit found in string" => "expected a whole number",
                why => why,
            };
            format!("`{value}` is no value of `{option}`: {why}")
        }
        // The first line of clap's message says it all.
        _ => e.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn only_a_reader_of_stdout_may_leave() {
        let broken = || anyhow::Error::from(std::io::Error::from(ErrorKind::BrokenPipe));
        assert!(is_closed_stdout(&broken().context("the table")));
        assert!(!is_closed_stdout(&anyhow::anyhow!("another")));
        let file: anyhow::Error = Err::<(), _>(broken().context("the end"))
            .context(NotWritten("a.gguf".into()))
            .context("the command")
            .unwrap_err();
        assert!(!is_closed_stdout(&file));
        assert!(format!("{file:#}").contains("`a.gguf` was not written"), "{file:#}");
    }

    #[test]
    fn suggestions_are_slips_of_the_same_kind() {
        for (given, word) in
            [("--temprature", "--temperature"), ("--topk", "--top-k"), ("tokenise", "tokenize")]
        {
            assert!(is_alike(given, word), "{given} {word}");
        }
        for (given, word) in [
            ("--no-mmap", "--top-nsigma"),
            ("--mmap", "--no-mmap"),
            ("list", "logits"),
            ("--tep", "--top-k"),
            ("-x", "-y"),
        ] {
            assert!(!is_alike(given, word), "{given} {word}");
        }
    }

    #[test]
    fn names_cannot_write_lines_of_ours() {
        assert_eq!(
            lines("tensor `a\x1b[31m`\nerror: b\tc", "\n    "),
            "tensor `a\\u{1b}[31m`\n    error: b\\tc"
        );
    }

    #[test]
    fn long_names_lose_their_middle() {
        let text = lines(&format!("tensor `{}`: no such type", "ü".repeat(100_000)), "\n");
        assert!(text.starts_with("tensor `ü") && text.ends_with("ü`: no such type"), "{text}");
        assert!(text.contains(" ... (99023 characters) ... ") && text.chars().count() < 1100, "{text}");
        assert_eq!(lines(&"x".repeat(1000), "\n").len(), 1000);
    }
}
