//! `chaski quantize`: a model in other tensor types.

mod convert;
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
use ggml_format::{ByteSource, FILE_TYPES, GgmlType, GgufWriter, Imatrix};

use crate::options;
use crate::output::{publish, refuse_to_overwrite, write_part};
use crate::ui::{BYTES_BAR, Ui};

use convert::convert_all;
pub(crate) use input::open;

use input::Model;
use layout::{Output, Split, layout, parse_size};
use overrides::{Override, parse_override, parse_type, read_overrides};
use plan::{Step, Target, Wishes, find_obstacle, plan};
use table::{print_table, sum, total};

pub(crate) const LONG: &str = "\
Converts a model to other tensor types.

TYPE is one of llama.cpp's file types, such as q4_k_m, iq3_xxs or bf16, each of which is a mix of tensor types, or its \
number. Where no file type has the name, it may be that of a tensor type, such as mxfp4: all matrices get that, as with \
--pure. `copy` leaves the types as they are, to split a model or to join it again. Where rows \
are no whole number of a type's blocks, they get another of about its size. The types iq1_*, iq2_* and iq3_xxs, which \
iq3_xs has, too, and the file type q2_k_s need to know which columns matter: measure that with `chaski imatrix`, and pass \
it with --imatrix. Most other types gain from it, too.

The model streams through: memory use does not depend on its size.";

/// Convert a model to other tensor types.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// The model to read; the first file if it is split over several
    input: PathBuf,
    /// The file to write; of a split set, what its names begin with
    output: PathBuf,
    /// The file type, such as q4_k_m; a tensor type for all matrices, such as mxfp4; or copy
    #[arg(value_name = "TYPE", value_parser = parse_target)]
    target: Target,
    /// How much each column counts: a file of `chaski imatrix` or llama-imatrix, GGUF or the older .dat
    #[arg(long, value_name = "FILE")]
    imatrix: Option<PathBuf>,
    /// Use the importance matrix for tensors with TEXT in their names only
    #[arg(long, value_name = "TEXT", requires = "imatrix", conflicts_with = "exclude_weights")]
    include_weights: Vec<String>,
    /// Don't use the importance matrix for tensors with TEXT in their names
    #[arg(long, value_name = "TEXT", requires = "imatrix")]
    exclude_weights: Vec<String>,
    /// Another type for the tensors with PATTERN, a regular expression, in their names, such as attn_v=q8_0; the first
    /// that fits counts
    #[arg(long, value_name = "PATTERN=TYPE", value_parser = parse_override)]
    tensor_type: Vec<Override>,
    /// A file with more of these, with spaces or new lines between them
    #[arg(long, value_name = "FILE")]
    tensor_type_file: Option<PathBuf>,
    /// The type of output.weight, or of the token embeddings where they are the output matrix too
    #[arg(long, value_name = "TYPE", value_parser = parse_type, conflicts_with = "leave_output_tensor")]
    output_tensor_type: Option<GgmlType>,
    /// The type of the token embeddings
    #[arg(long, value_name = "TYPE", value_parser = parse_type)]
    token_embedding_type: Option<GgmlType>,
    /// Leave output.weight as it is
    #[arg(long)]
    leave_output_tensor: bool,
    /// The same type for all matrices, the embeddings included
    #[arg(long)]
    pure: bool,
    /// Convert tensors that are quantised already, which loses more than converting the original does
    #[arg(long)]
    allow_requantize: bool,
    /// Write a set of files of about this size each, such as 2G: OUTPUT-00001-of-00003.gguf and so on
    #[arg(long, value_name = "SIZE", value_parser = parse_size, group = "split")]
    split_max_size: Option<u64>,
    /// Write a set of files of so many tensors each
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), group = "split")]
    split_max_tensors: Option<u32>,
    /// Write a set of files with the same tensors as those of the input
    #[arg(long, group = "split")]
    keep_split: bool,
    /// Print the types and sizes of the tensors and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Number of threads; by default all that the machine has
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

impl Args {
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
            "type copy: expected no option that is about types, found one"
        );
        Ok(Wishes {
            target: self.target,
            overrides,
            pure: self.pure || matches!(self.target, Target::Pure(_)),
            leave_output: self.leave_output_tensor,
            output: self.output_tensor_type,
            embedding: self.token_embedding_type,
            imatrix: self.imatrix.as_deref().map(|path| self.read_imatrix(path)).transpose()?,
        })
    }

    fn read_imatrix(&self, path: &Path) -> Result<Imatrix> {
        let bytes = fs::read(path).with_context(|| format!("`{}` cannot be read", path.display()))?;
        let wrong = || format!("`{}`: expected an importance matrix", path.display());
        let mut imatrix = Imatrix::parse(bytes).with_context(wrong)?;
        let is_any = |name: &str, words: &[String]| words.iter().any(|w| name.contains(w));
        imatrix.entries.retain(|name, _| {
            (self.include_weights.is_empty() || is_any(name, &self.include_weights))
                && !is_any(name, &self.exclude_weights)
        });
        ensure!(
            !imatrix.entries.is_empty(),
            "`{}`: expected some entry that --include-weights and --exclude-weights leave, found none",
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
        // What a file says of itself when all its matrices are in this type.
        let of = |ty: GgmlType| FILE_TYPES.iter().find(|t| t.base == ty).map(|t| t.file_type);
        let pure = parse_type(name).ok().and_then(of).map(Target::Pure);
        pure.ok_or_else(|| format!("{e}, no type for all matrices, and it is not `copy`"))
    })
}

/// Writes the model, or prints what would be written.
///
/// # Errors
/// If the model cannot be read or converted, or the file not be written.
pub(crate) fn run(args: Args, ui: &Ui) -> Result<()> {
    let start = Instant::now();
    let wishes = args.wishes()?;
    let model = open(&args.input)?;
    let mut steps = plan(&model, &wishes)?;
    let files = layout(&args.output, args.split(model.shards().len()), &mut steps)?;
    let obstacle = find_obstacle(&steps, args.allow_requantize);
    if let Some(path) = &args.imatrix {
        refuse_foreign_importance(&steps, path)?;
    }
    if args.dry_run {
        let head = |file: &Output| -> Result<u64> {
            let mut bytes = Vec::new();
            head(&model, &steps, file, &wishes, args.imatrix.as_deref())?.begin(&mut bytes)?;
            Ok(bytes.len() as u64)
        };
        let heads = files.iter().map(head).collect::<Result<Vec<_>>>()?;
        print_table(&steps, &files, &heads, &mut io::stdout().lock())?;
    }
    for note in [missing_importance(&steps, &wishes), replaced_types(&steps)].into_iter().flatten() {
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
    let mut inputs: Vec<PathBuf> = model.shards().iter().map(|shard| shard.name().into()).collect();
    inputs.extend([&args.imatrix, &args.tensor_type_file].into_iter().flatten().cloned());
    for file in &files {
        refuse_to_overwrite(&file.path, &inputs)?;
    }

    let threads = rayon::ThreadPoolBuilder::new().num_threads(args.threads.map_or(0, usize::from)).build()?;
    let bar = ui.bar(sum(&steps), BYTES_BAR);
    // Half a set is of no use: all files get their names after the last is complete.
    let mut parts = Vec::with_capacity(files.len());
    for file in &files {
        parts.push(write_part(&file.path, &inputs, |out| {
            let head = head(&model, &steps, file, &wishes, args.imatrix.as_deref())?.begin(out)?;
            let (steps, imatrix) = (&steps[file.steps.clone()], wishes.imatrix.as_ref());
            let data = threads.install(|| convert_all(&model, steps, imatrix, head, &bar))?;
            Ok(data.finish()?)
        })?);
    }
    publish(parts)?;
    bar.finish_and_clear();
    let what = match wishes.target {
        Target::Mix(file_type) => file_type.name(),
        Target::Pure(file_type) => file_type.base().name(),
        Target::Copy => "types as they were",
    };
    let n_file = if files.len() > 1 { format!(" and {} more", files.len() - 1) } else { String::new() };
    let (path, seconds) = (files[0].path.display(), start.elapsed().as_secs_f64());
    ui.say(&format!("{path}{n_file}: {what}, {}, in {seconds:.1} s", total(&steps)));
    Ok(())
}

/// Refuses an importance matrix that has nothing for any tensor: it is another model's.
fn refuse_foreign_importance(steps: &[Step<'_>], path: &Path) -> Result<()> {
    let mut changed = steps.iter().filter(|s| s.changes() && is_coded(s.ty)).peekable();
    ensure!(
        changed.peek().is_none() || changed.any(|s| s.has_importance),
        "`{}`: expected importance of some tensor that is quantised, found none; is it of another model?",
        path.display()
    );
    Ok(())
}

/// Whether values of the type are rounded by blocks.
fn is_coded(ty: GgmlType) -> bool {
    !matches!(ty, GgmlType::F32 | GgmlType::F16 | GgmlType::BF16)
}

/// How many matrices got a type that is not the mix's.
fn replaced_types(steps: &[Step<'_>]) -> Option<String> {
    let replaced: Vec<&Step<'_>> = steps.iter().filter(|s| s.is_replaced).collect();
    let first = replaced.first()?;
    let (n, name, ty, n_per_row) = (replaced.len(), &first.tensor.name, first.ty, first.tensor.ne[0]);
    Some(format!(
        "matrices whose rows do not fit the type that the mix has for them: {n}; the first is `{name}`, which gets {ty} \
         for rows of {n_per_row}"
    ))
}

/// For how many tensors of the layers an importance matrix that was given has nothing; for others it seldom has.
fn missing_importance(steps: &[Step<'_>], wishes: &Wishes) -> Option<String> {
    wishes.imatrix.as_ref()?;
    let is_layer = |s: &Step<'_>| s.tensor.name.starts_with("blk.");
    let converted = || steps.iter().filter(|s| s.changes() && is_coded(s.ty) && is_layer(s));
    let missing: Vec<&str> =
        converted().filter(|s| !s.has_importance).map(|s| s.tensor.name.as_str()).collect();
    let (n, n_all) = (missing.len(), converted().count());
    missing.first().map(|first| format!("no importance for {n} of {n_all} tensors, the first is `{first}`"))
}

/// Metadata and directory of a file. All metadata is in the first of a set.
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
