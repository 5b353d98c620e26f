//! rustdoc for examples and documents at once.
//!
//! `cargo doc` wants the metadata of all dependencies, which a build of tests does not leave: it would check every one
//! of them. `cargo test --doc` calls rustdoc with the crates as tests have them. So this program takes rustdoc's place
//! in it, passes the call on, and has the documents written by a second one.

use std::process::{Command, ExitCode, ExitStatus};

use anyhow::Context as _;

use super::cmd::Cmd;

/// Set in the place of rustdoc: the folder for documents.
const FOLDER: &str = "CHASKI_XTASK_DOC";

/// Options of examples, and the number of their values.
const OF_EXAMPLES: &[(&str, usize)] =
    &[("--test", 0), ("--test-args", 1), ("--test-run-directory", 1), ("--test-runtool", 1), ("--no-run", 0)];

/// The command, with this program in the place of rustdoc.
pub(super) fn with_documents(cargo: Cmd) -> anyhow::Result<Cmd> {
    let own = std::env::current_exe().context("this program's own path")?;
    let own = own.to_str().context("this program's path is not UTF-8")?.to_owned();
    let folder = crate::root().join("target/doc").display().to_string();
    Ok(cargo.env("RUSTDOC", &own).env(FOLDER, &folder))
}

/// Acts as rustdoc if this process was started in its place.
pub(crate) fn in_its_place() -> Option<ExitCode> {
    let folder = std::env::var(FOLDER).ok()?;
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rustdoc = |args: &[String]| -> anyhow::Result<ExitStatus> {
        Command::new("rustdoc").args(args).env_remove("RUSTDOC").status().context("could not run rustdoc")
    };
    let both = || -> anyhow::Result<bool> {
        let examples = rustdoc(&args)?.success();
        let documents = match of_documents(&args, &folder) {
            Some(args) => rustdoc(&args)?.success(),
            None => true,
        };
        Ok(examples && documents)
    };
    Some(match both() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::FAILURE
        }
    })
}

/// The call that writes documents, if `args` are those of one that runs examples. Warnings are errors.
fn of_documents(args: &[String], folder: &str) -> Option<Vec<String>> {
    args.iter().find(|a| *a == "--test")?;
    let mut out = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let name = arg.split('=').next().unwrap_or(arg);
        match OF_EXAMPLES.iter().find(|(option, _)| *option == name) {
            Some((_, n)) if !arg.contains('=') => rest.by_ref().take(*n).for_each(drop),
            Some(_) => {}
            None => out.push(arg.clone()),
        }
    }
    out.extend(["-o", folder, "-D", "warnings"].map(str::to_owned));
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::of_documents;

    #[test]
    fn documents_have_the_options_of_examples_but_those_of_tests() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let call = words(
            "--edition=2024 --crate-name a --test src/lib.rs --test-run-directory /w --extern b=libb.rlib --test-args -q",
        );
        let expected =
            words("--edition=2024 --crate-name a src/lib.rs --extern b=libb.rlib -o doc -D warnings");
        assert_eq!(of_documents(&call, "doc"), Some(expected));
        assert_eq!(of_documents(&words("-vV"), "doc"), None);
    }
}
