//! `chaski quantize`: converts a model to other tensor types.

mod convert;
pub(crate) mod folder;
mod input;
mod layout;
mod overrides;
mod plan;
mod table;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use ggml_format::{FILE_TYPES, GgmlType, GgufWriter, Imatrix};

use crate::options;
use crate::output::{publish, refuse_to_overwrite, write_part};
use crate::progress::Unit;
use crate::ui::Ui;

use convert::convert_all;
pub(crate) use input::open;

use input::Model;
pub(crate) use layout::parse_size;
use layout::{Output, Split, layout};
use overrides::{Override, parse_override, parse_type, read_overrides};
use plan::{Step, Target, Wishes, find_obstacle, plan};
use table::{print_table, sum, total};

pub(crate) const LONG: &str = "\
Converts a model to other tensor types.

TYPE is one of llama.cpp's file types, such as q4_k_m, iq3_xxs or bf16, each a mix of tensor types, or its \
number. It may also be a tensor type without a file type of that name, such as mxfp4: all matrices get it, as with \
--pure. `copy` keeps the types, to split or merge a model. Where the row \
length is not a multiple of a type's block size, a type of similar size is used. The types iq1_*, iq2_* and iq3_xxs (in \
iq3_xs, too) and the file type q2_k_s need an importance matrix: compute it with `chaski imatrix` and pass \
it with --imatrix. Most other types benefit from it, too.

The model is streamed: memory use does not depend on its size.";

/// Convert a model to other tensor types.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Input model, a file, a folder of Hugging Face, or a name such as hf:org/repo:BF16; the first file of a split set
    pub(crate) input: PathBuf,
    /// Output file; for a split set, the prefix of the file names
    output: PathBuf,
    /// File type, such as q4_k_m; a tensor type for all matrices, such as mxfp4; or copy
    #[arg(value_name = "TYPE", value_parser = parse_target)]
    target: Target,
    /// Importance matrix from `chaski imatrix` or llama-imatrix, GGUF or the older .dat
    #[arg(long, value_name = "FILE")]
    imatrix: Option<PathBuf>,
    /// Use the importance matrix only for tensors with TEXT in their names
    #[arg(long, value_name = "TEXT", requires = "imatrix", conflicts_with = "exclude_weights")]
    include_weights: Vec<String>,
    /// Don't use the importance matrix for tensors with TEXT in their names
    #[arg(long, value_name = "TEXT", requires = "imatrix")]
    exclude_weights: Vec<String>,
    /// Type for the tensors whose names match PATTERN, a regular expression, such as attn_v=q8_0; the first match wins
    #[arg(long, value_name = "PATTERN=TYPE", value_parser = parse_override)]
    tensor_type: Vec<Override>,
    /// File with more of these, separated by spaces or newlines
    #[arg(long, value_name = "FILE")]
    tensor_type_file: Option<PathBuf>,
    /// Type of output.weight, or of tied token embeddings
    #[arg(long, value_name = "TYPE", value_parser = parse_type, conflicts_with = "leave_output_tensor")]
    output_tensor_type: Option<GgmlType>,
    /// Type of the token embeddings
    #[arg(long, value_name = "TYPE", value_parser = parse_type)]
    token_embedding_type: Option<GgmlType>,
    /// Leave output.weight unquantised
    #[arg(long)]
    leave_output_tensor: bool,
    /// Use one type for all matrices, including embeddings
    #[arg(long)]
    pure: bool,
    /// Requantize tensors that are already quantised, which loses more than converting the original
    #[arg(long)]
    allow_requantize: bool,
    /// Split the output into files of about this size, such as 2G: OUTPUT-00001-of-00003.gguf and so on
    #[arg(long, value_name = "SIZE", value_parser = parse_size, group = "split")]
    split_max_size: Option<u64>,
    /// Split the output into files of N tensors
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), group = "split")]
    split_max_tensors: Option<u32>,
    /// Split the output into the same shards as the input
    #[arg(long, group = "split")]
    keep_split: bool,
    /// Dry run: print tensor types and sizes, write nothing
    #[arg(long)]
    dry_run: bool,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Leave tensors as they are that are quantised already.
    #[arg(skip)]
    keep_coded: bool,
}

impl Args {
    /// No option set: types stay as they are.
    fn plain(input: PathBuf, output: PathBuf) -> Args {
        Args {
            input,
            output,
            target: Target::Copy,
            imatrix: None,
            include_weights: Vec::new(),
            exclude_weights: Vec::new(),
            tensor_type: Vec::new(),
            tensor_type_file: None,
            output_tensor_type: None,
            token_embedding_type: None,
            leave_output_tensor: false,
            pure: false,
            allow_requantize: false,
            split_max_size: None,
            split_max_tensors: None,
            keep_split: false,
            dry_run: false,
            threads: None,
            keep_coded: false,
        }
    }

    fn split(&self, n_shard: usize) -> Split {
        match (self.split_max_size, self.split_max_tensors) {
            (Some(n_byte), _) => Split::Bytes(n_byte),
            (_, Some(n)) => Split::Tensors(n as usize),
            _ if self.keep_split => Split::AsInput(n_shard),
            _ => Split::Never,
        }
    }

    fn wishes(&self) -> Result<Wishes> {
        let mut overrides = self.tensor_type.clone();
        if let Some(path) = &self.tensor_type_file {
            overrides.extend(read_overrides(path)?);
        }
        let changes_types = !overrides.is_empty()
            || self.output_tensor_type.is_some()
            || self.token_embedding_type.is_some()
            || self.imatrix.is_some()
            || self.pure;
        ensure!(
            self.target != Target::Copy || !changes_types,
            "type copy: options that change types are not allowed"
        );
        Ok(Wishes {
            target: self.target,
            keep_coded: self.keep_coded,
            overrides,
            pure: self.pure || matches!(self.target, Target::Pure(_)),
            leave_output: self.leave_output_tensor,
            output: self.output_tensor_type,
            embedding: self.token_embedding_type,
            imatrix: self.imatrix.as_deref().map(|path| self.read_imatrix(path)).transpose()?,
        })
    }

    fn read_imatrix(&self, path: &Path) -> Result<Imatrix> {
        let bytes = fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        let wrong = || format!("`{}`: expected an importance matrix", path.display());
        let mut imatrix = Imatrix::parse(bytes).with_context(wrong)?;
        let is_any = |name: &str, words: &[String]| words.iter().any(|w| name.contains(w));
        imatrix.entries.retain(|name, _| {
            (self.include_weights.is_empty() || is_any(name, &self.include_weights))
                && !is_any(name, &self.exclude_weights)
        });
        ensure!(
            !imatrix.entries.is_empty(),
            "`{}`: --include-weights and --exclude-weights leave no entry",
            path.display()
        );
        Ok(imatrix)
    }
}

fn parse_target(name: &str) -> Result<Target, String> {
    if name.eq_ignore_ascii_case("copy") {
        return Ok(Target::Copy);
    }
    options::file_type(name).map(Target::Mix).or_else(|e| {
        // The file type of a file whose matrices all have this type.
        let of = |ty: GgmlType| FILE_TYPES.iter().find(|t| t.base == ty).map(|t| t.file_type);
        let pure = parse_type(name).ok().and_then(of).map(Target::Pure);
        pure.ok_or_else(|| format!("{e}, nor a tensor type, nor `copy`"))
    })
}

/// Writes the model, or prints the plan.
///
/// # Errors
/// If the model cannot be read or converted, or the file cannot be written.
pub(crate) fn run(args: Args, ui: &Ui) -> Result<()> {
    let wishes = args.wishes()?;
    let model = open(&args.input)?;
    write(&model, &wishes, &args, ui)
}

/// Writes a model that is open.
fn write(model: &Model, wishes: &Wishes, args: &Args, ui: &Ui) -> Result<()> {
    let start = Instant::now();
    let mut steps = plan(model, wishes)?;
    let files = layout(&args.output, args.split(model.shards().len()), &mut steps)?;
    let obstacle = find_obstacle(&steps, args.allow_requantize);
    if let Some(path) = &args.imatrix {
        refuse_foreign_importance(&steps, path)?;
    }
    if args.dry_run {
        let head = |file: &Output| -> Result<u64> {
            let mut bytes = Vec::new();
            head(model, &steps, file, wishes, args.imatrix.as_deref())?.begin(&mut bytes)?;
            Ok(bytes.len() as u64)
        };
        let heads = files.iter().map(head).collect::<Result<Vec<_>>>()?;
        print_table(&steps, &files, &heads, &mut io::stdout().lock())?;
    }
    for note in [missing_importance(&steps, wishes), replaced_types(&steps)].into_iter().flatten() {
        ui.note(&note);
    }
    match obstacle {
        Some(obstacle) if args.dry_run => ui.note(&obstacle.to_string()),
        Some(obstacle) => return Err(obstacle),
        None => {}
    }
    if args.dry_run {
        return Ok(());
    }
    let mut inputs = input::files(model);
    inputs.extend([&args.imatrix, &args.tensor_type_file].into_iter().flatten().cloned());
    for file in &files {
        refuse_to_overwrite(&file.path, &inputs)?;
    }

    let threads = rayon::ThreadPoolBuilder::new().num_threads(args.threads.map_or(0, usize::from)).build()?;
    let progress = ui.progress("quantize", Unit::Bytes, sum(&steps));
    // Half a set is of no use: all files get their names after the last is complete.
    let mut parts = Vec::with_capacity(files.len());
    for file in &files {
        parts.push(write_part(&file.path, &inputs, |out| {
            let head = head(model, &steps, file, wishes, args.imatrix.as_deref())?.begin(out)?;
            let (steps, imatrix) = (&steps[file.steps.clone()], wishes.imatrix.as_ref());
            let data = threads.install(|| convert_all(model, steps, imatrix, head, &progress))?;
            Ok(data.finish()?)
        })?);
    }
    publish(parts)?;
    progress.finish();
    let what = match wishes.target {
        Target::Mix(file_type) => file_type.name(),
        Target::Pure(file_type) => file_type.base().name(),
        Target::Copy => "types unchanged",
    };
    let n_file = if files.len() > 1 { format!(" and {} more", files.len() - 1) } else { String::new() };
    let (path, seconds) = (files[0].path.display(), start.elapsed().as_secs_f64());
    ui.say(&format!("{path}{n_file}: {what}, {}, in {seconds:.1} s", total(&steps)));
    Ok(())
}

/// Rejects an importance matrix without an entry for any quantised tensor: it is for another model.
fn refuse_foreign_importance(steps: &[Step<'_>], path: &Path) -> Result<()> {
    let mut changed = steps.iter().filter(|s| s.changes() && is_coded(s.ty)).peekable();
    ensure!(
        changed.peek().is_none() || changed.any(|s| s.has_importance),
        "`{}`: no entry matches a quantised tensor; is it for another model?",
        path.display()
    );
    Ok(())
}

/// True if values of the type are quantised in blocks.
fn is_coded(ty: GgmlType) -> bool {
    !matches!(ty, GgmlType::F32 | GgmlType::F16 | GgmlType::BF16)
}

/// Reports matrices whose type differs from the mix because of their row length.
fn replaced_types(steps: &[Step<'_>]) -> Option<String> {
    let replaced: Vec<&Step<'_>> = steps.iter().filter(|s| s.is_replaced).collect();
    let first = replaced.first()?;
    let (n, name, ty, n_per_row) = (replaced.len(), &first.tensor.name, first.ty, first.tensor.ne[0]);
    Some(format!(
        "matrices whose row length does not fit the mix's type: {n}; the first is `{name}`, which gets {ty} \
         for rows of {n_per_row}"
    ))
}

/// Reports tensors of the layers that the importance matrix has no entry for; it seldom has one for other tensors.
fn missing_importance(steps: &[Step<'_>], wishes: &Wishes) -> Option<String> {
    wishes.imatrix.as_ref()?;
    let is_layer = |s: &Step<'_>| s.tensor.name.starts_with("blk.");
    let converted = || steps.iter().filter(|s| s.changes() && is_coded(s.ty) && is_layer(s));
    let missing: Vec<&str> =
        converted().filter(|s| !s.has_importance).map(|s| s.tensor.name.as_str()).collect();
    let (n, n_all) = (missing.len(), converted().count());
    missing.first().map(|first| format!("no importance for {n} of {n_all} tensors, the first is `{first}`"))
}

/// Metadata and directory of a file. The first file of a set has all metadata.
fn head(
    model: &Model,
    steps: &[Step<'_>],
    file: &Output,
    wishes: &Wishes,
    imatrix_path: Option<&Path>,
) -> Result<GgufWriter> {
    let mut head = GgufWriter::new();
    let is_first = file.split.is_none_or(|(number, _)| number == 0);
    if is_first {
        let stated_anew = ["general.quantization_version", "general.file_type"];
        head.copy_metadata(model.metadata(), |key| {
            let is_old = stated_anew.contains(&key) || key.starts_with("quantize.imatrix.");
            !(key.starts_with("split.") || is_old && wishes.target != Target::Copy)
        })?;
        if let Some(file_type) = wishes.target.file_type() {
            head.set("general.quantization_version", 2u32)?.set("general.file_type", file_type.id())?;
        }
        if let (Some(imatrix), Some(path)) = (&wishes.imatrix, imatrix_path) {
            head.set("quantize.imatrix.file", path.to_string_lossy().into_owned())?;
            if let Some(dataset) = imatrix.datasets.first() {
                head.set("quantize.imatrix.dataset", dataset.as_str())?;
            }
            head.set("quantize.imatrix.entries_count", imatrix.entries.len() as u32)?
                .set("quantize.imatrix.chunks_count", imatrix.n_chunk)?;
        }
    }
    if let Some((number, count)) = file.split {
        head.set("split.no", number)?
            .set("split.count", count)?
            .set("split.tensors.count", i32::try_from(steps.len())?)?;
    }
    for s in &steps[file.steps.clone()] {
        head.tensor(&s.tensor.name, s.ne(), s.ty)?;
    }
    Ok(head)
}
