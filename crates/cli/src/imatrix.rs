//! `chaski imatrix`: computes an importance matrix from a text.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use chaski::gguf::{GgmlType, Imatrix};
use chaski::tools::ImatrixOptions;
use chaski::{DeviceChoice, Engine, KvType};

use crate::input::file_or_stdin;
use crate::options::{Chunks, ModelArg, ThreadArgs};
use crate::output::{files_of_model, try_to_write, write_file};
use crate::progress::Unit;
use crate::ui::{Ui, counted};

pub(crate) const LONG: &str = "\
Computes an importance matrix from a text, for `chaski quantize --imatrix`.

The text, which should resemble real use of the model, is split into chunks of -c tokens; a hundred chunks are \
enough. Use an unquantised model if possible. The file has llama.cpp's format. Everything runs on the CPU: \
large models take long.";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) model: ModelArg,
    /// File with the text [default: stdin]
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The file to write
    #[arg(short, long, value_name = "FILE", default_value = "imatrix.gguf")]
    output: PathBuf,
    /// Tokens per chunk
    #[arg(short = 'c', long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    ctx_size: u32,
    /// Maximum number of chunks; below 0: all
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "-1")]
    chunks: Chunks,
    /// Skip this many chunks at the start
    #[arg(long, value_name = "N", default_value_t = 0, alias = "from-chunk")]
    chunk: usize,
    /// Include the output matrix
    #[arg(long)]
    process_output: bool,
    /// Parse special tokens in the text
    #[arg(long)]
    parse_special: bool,
    /// Write the file after every N chunks, so that an interruption costs little
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    output_frequency: u32,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// Measures and writes the file.
///
/// # Errors
/// If the model or the text cannot be read, the text is too short, or the file cannot be written.
pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    let mut inputs = files_of_model(args.model.path());
    inputs.extend(args.file.clone());
    try_to_write(&args.output, &inputs)?;
    let text = file_or_stdin(args.file.as_deref(), "no text: give -f FILE, or pipe it")?;
    let loading = ui.loading();
    let builder = Engine::builder(args.model.source())
        .context(args.ctx_size)
        .kv(KvType::Of { k: GgmlType::F32, v: GgmlType::F32 })
        .threads(args.threads.threads, args.threads.threads_batch)
        .device(DeviceChoice::Cpu)
        .on_progress(loading.callback());
    let mut engine = pollster::block_on(builder.build())?;
    loading.finish();
    let n_mat: HashMap<String, usize> =
        engine.model().tensors().iter().map(|t| (t.name.clone(), (t.ne[2] * t.ne[3]) as usize)).collect();
    let options = ImatrixOptions {
        n_ctx: args.ctx_size as usize,
        skip: args.chunk,
        max_chunks: args.chunks.0,
        process_output: args.process_output,
        parse_special: args.parse_special,
    };
    let save = |mut imatrix: Imatrix| {
        let dataset = args.file.as_ref().map_or("-".into(), |file| file.to_string_lossy());
        imatrix.datasets = vec![dataset.into_owned()];
        write(&args.output, &inputs, &imatrix).map(|()| imatrix)
    };
    let work = ui.progress("imatrix", Unit::Chunks, 0);
    let (tokenizer, runner) = engine.parts();
    let n_mat = |name: &str| n_mat.get(name).copied().unwrap_or(1);
    let measured =
        pollster::block_on(chaski::tools::imatrix(runner, tokenizer, &text, &options, &n_mat, |progress| {
            work.set(progress.n_done as u64, progress.n_chunk as u64);
            let is_due = progress.n_done.is_multiple_of(args.output_frequency as usize);
            if is_due && (1..progress.n_chunk).contains(&progress.n_done) {
                save(progress.imatrix()?)?;
            }
            anyhow::Ok(())
        }));
    let measured = measured?;
    work.finish();
    let imatrix = save(measured)?;
    for (name, entry) in &imatrix.entries {
        let (n, n_all) = (entry.counts().iter().filter(|&&n| n == 0.0).count(), entry.counts().len());
        if n > 0 {
            ui.note(&format!(
                "`{name}`: no data for {n} of {n_all} experts; a longer text may activate them"
            ));
        }
    }
    let (n, n_chunk, path) = (imatrix.entries.len(), imatrix.n_chunk, args.output.display());
    let (tensors, chunks) = (counted(n, "tensor"), counted(n_chunk, "chunk"));
    ui.say(&format!("{path}: {tensors}, {chunks} of {} tokens", imatrix.chunk_len));
    Ok(())
}

fn write(path: &Path, inputs: &[PathBuf], imatrix: &Imatrix) -> Result<()> {
    write_file(path, inputs, |out| imatrix.write(out).context("cannot write the importance matrix"))
}
