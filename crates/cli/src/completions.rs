//! `chaski completions` and the hidden `chaski man`, generated from the command-line definition.

use std::io::Write as _;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

pub(crate) fn run(args: &Args, mut command: clap::Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "chaski", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(())
}

pub(crate) fn man(command: clap::Command) -> anyhow::Result<()> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    std::io::stdout().lock().write_all(&page)?;
    Ok(())
}
