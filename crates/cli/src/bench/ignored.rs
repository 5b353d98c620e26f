//! Options of llama-bench that have no effect here.

/// These options; each takes a value, or a list of values.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct LlamaBench {
    #[arg(long, hide = true, value_name = "0|1")]
    mmap: Option<String>,
    #[arg(long, hide = true, value_name = "0|1")]
    direct_io: Option<String>,
    #[arg(long, hide = true, value_name = "MODE")]
    load_mode: Option<String>,
    #[arg(long, hide = true, value_name = "0|1")]
    no_kv_offload: Option<String>,
    #[arg(long, hide = true, value_name = "0|1")]
    no_op_offload: Option<String>,
    #[arg(long, hide = true, value_name = "0|1")]
    no_host: Option<String>,
    #[arg(long, hide = true, value_name = "0|1")]
    embeddings: Option<String>,
    #[arg(short = 'C', long, hide = true, value_name = "MASK")]
    cpu_mask: Option<String>,
    #[arg(long, hide = true, value_name = "0|1")]
    cpu_strict: Option<String>,
    #[arg(long, hide = true, value_name = "N")]
    poll: Option<String>,
    #[arg(long, hide = true, value_name = "N", allow_hyphen_values = true)]
    prio: Option<String>,
    #[arg(long, hide = true, value_name = "MODE")]
    numa: Option<String>,
}

const FILES: &str = "files are read piece by piece, not mapped";
const PLACES: &str = "a model is on its device as a whole; `--device` selects it";
const THREADS: &str = "threads are not bound to cores; `-t N` sets their number";

impl LlamaBench {
    /// A note for each option that was given.
    pub(super) fn notes(&self) -> Vec<String> {
        let all = [
            (&self.mmap, "-mmp", FILES),
            (&self.direct_io, "-dio", FILES),
            (&self.load_mode, "-lm", FILES),
            (&self.no_kv_offload, "-nkvo", PLACES),
            (&self.no_op_offload, "-nopo", PLACES),
            (&self.no_host, "--no-host", PLACES),
            (&self.embeddings, "-embd", "tests compute logits; `chaski embed` computes embeddings"),
            (&self.cpu_mask, "-C", THREADS),
            (&self.cpu_strict, "--cpu-strict", THREADS),
            (&self.poll, "--poll", THREADS),
            (&self.prio, "--prio", "priorities are left to the system, as with `nice`"),
            (&self.numa, "--numa", THREADS),
        ];
        all.into_iter()
            .filter(|(given, ..)| given.is_some())
            .map(|(_, name, why)| format!("`{name}` has no effect: {why}"))
            .collect()
    }
}
