//! Options about models by name.

use crate::options::Form;

/// Options of all commands that take names of models.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Options for models by name")]
pub(crate) struct HubArgs {
    /// Use no network: only models that are here (also HF_HUB_OFFLINE)
    #[arg(long, global = true)]
    pub(super) offline: bool,
    /// Token of Hugging Face, for gated and private models [default: HF_TOKEN, or the file of `hf auth login`]
    #[arg(long, global = true, value_name = "TOKEN", hide_env_values = true)]
    pub(super) hf_token: Option<String>,
    /// Branch, tag or commit of the repository [default: main]
    #[arg(long, global = true, value_name = "REV")]
    pub(super) revision: Option<String>,
    /// File of the repository, instead of a tag
    #[arg(long, global = true, value_name = "PATH")]
    pub(super) hf_file: Option<String>,
    /// Certificates that are trusted: built-in or system, such as a company's [default: built-in, or system with
    /// SSL_CERT_FILE]
    #[arg(long, global = true, value_enum, value_name = "ROOTS", hide_possible_values = true)]
    pub(super) tls_roots: Option<RootsWord>,
}

/// Certificates that are trusted.
#[derive(Copy, Clone, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum RootsWord {
    /// Mozilla's
    BuiltIn,
    /// Those of the system
    System,
}

/// The form of what a command prints.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct OutputArgs {
    /// Output format
    #[arg(short, long, value_enum, default_value = "md")]
    output: Form,
    /// Print JSON, as `-o json`
    #[arg(long)]
    json: bool,
}

impl OutputArgs {
    pub(crate) fn is_json(&self) -> bool {
        self.json || self.output == Form::Json
    }
}
