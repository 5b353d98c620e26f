//! `chaski completions` and `chaski man`, generated from the command-line definition.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Command;
use clap::builder::{PossibleValue, PossibleValuesParser};

use crate::failure::Usage;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

pub(crate) fn run(args: &Args, command: Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut with_devices(command), "chaski", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(())
}

/// The command line, whose `--device` knows the words for devices and the GPUs of this machine.
fn with_devices(command: Command) -> Command {
    let adapters = pollster::block_on(chaski::gpu::adapters());
    let gpus = adapters.iter().enumerate().map(|(i, gpu)| (i.to_string(), gpu.name.clone()));
    let words = [
        ("auto", "the fastest GPU, else the CPU"),
        ("gpu", "the fastest GPU"),
        ("all", "all GPUs, each with some of the layers"),
        ("cpu", "the CPU backend"),
    ];
    let words = words.map(|(word, about)| (word.to_owned(), about.to_owned()));
    let values: Vec<PossibleValue> =
        words.into_iter().chain(gpus).map(|(word, about)| PossibleValue::new(word).help(about)).collect();
    let names: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |subcommand| {
            let has_device = subcommand.get_arguments().any(|arg| arg.get_id() == "device");
            if !has_device {
                return subcommand;
            }
            subcommand.mut_arg("device", |arg| arg.value_parser(PossibleValuesParser::new(values.clone())))
        })
    })
}

#[derive(clap::Args)]
pub(crate) struct ManArgs {
    /// The command whose page is printed [default: the page of chaski itself]
    #[arg(value_name = "COMMAND")]
    of: Option<String>,
    /// Write all pages to this folder, as chaski.1, chaski-run.1 and so on
    #[arg(long, value_name = "DIR", conflicts_with = "of")]
    dir: Option<PathBuf>,
}

pub(crate) fn man(args: &ManArgs, command: Command) -> anyhow::Result<()> {
    let mut command = command.disable_help_subcommand(true);
    if let Some(dir) = &args.dir {
        std::fs::create_dir_all(dir)?;
        return Ok(clap_mangen::generate_to(command, dir)?);
    }
    command.build();
    let of = match &args.of {
        None => &command,
        Some(name) => command
            .find_subcommand(name)
            .filter(|command| !command.is_hide_set())
            .ok_or_else(|| Usage(format!("there is no command `{name}`")))?,
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(of.clone()).render(&mut page)?;
    std::io::stdout().lock().write_all(&page)?;
    Ok(())
}
