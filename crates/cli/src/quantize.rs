//! `chaski quantize`: a model in other tensor types.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail, ensure};
use ggml_format::{
    ByteSource, DataWriter, FileType, GgmlType, GgufWriter, Metadata, MixCounters, ModelFacts, ModelFile,
    SourceError, TensorInfo, dequantize, mix_order, needs_importance, quantize, tensor_type,
};
use indicatif::{HumanBytes, ProgressBar};
use rayon::prelude::*;

use crate::synth::{parse_file_type, progress_bar, write_file};

/// Convert a model to other tensor types.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The model to read; the first file if it is split over several
    input: PathBuf,
    /// The file to write
    output: PathBuf,
    /// The file type, such as q4_k_m
    #[arg(value_name = "TYPE", value_parser = parse_file_type)]
    file_type: FileType,
    /// Another type for the tensors with NAME in their names, such as attn_v=q8_0; the first that fits counts
    #[arg(long, value_name = "NAME=TYPE", value_parser = parse_override)]
    tensor_type: Vec<Override>,
    /// The same type for all matrices, the embeddings included
    #[arg(long)]
    pure: bool,
    /// Convert tensors that are quantised already, which loses more than converting the original does
    #[arg(long)]
    allow_requantize: bool,
    /// Print the types and sizes of the tensors and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Number of threads; by default all that the machine has
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

/// A type for the tensors that have some text in their names.
#[derive(Clone, Debug)]
struct Override {
    name: String,
    ty: GgmlType,
}

fn parse_override(text: &str) -> Result<Override, String> {
    let (name, ty) = text.split_once('=').ok_or("expected NAME=TYPE")?;
    if name.is_empty() {
        return Err("expected a part of a tensor's name before `=`".into());
    }
    let ty = GgmlType::from_name(ty).filter(|ty| ty.info().quantize.is_some()).ok_or_else(|| {
        let known = ggml_format::TYPES.iter().filter(|t| t.quantize.is_some()).map(|t| t.name);
        format!("`{ty}` is no type to quantise to (known: {})", known.collect::<Vec<_>>().join(", "))
    })?;
    Ok(Override { name: name.to_owned(), ty })
}

/// Writes the model, or prints what would be written.
///
/// # Errors
/// If the model cannot be read or converted, or the file not be written.
pub(crate) fn run(args: Args) -> Result<()> {
    let start = Instant::now();
    let model = open(&args.input)?;
    let steps = plan(&model, &args)?;
    let obstacle = find_obstacle(&steps, args.allow_requantize);
    if args.dry_run {
        print_table(&steps, &mut io::stdout().lock())?;
    }
    let mut notes = io::stderr().lock();
    if steps.iter().any(|s| s.changes() && needs_importance(args.file_type, &s.tensor.name, s.ty)) {
        let ty = args.file_type;
        writeln!(notes, "note: {ty} files made without importance weights answer badly")?;
    }
    match obstacle {
        Some(obstacle) if args.dry_run => writeln!(notes, "note: {obstacle}")?,
        Some(obstacle) => return Err(obstacle),
        None => {}
    }
    if args.dry_run {
        return Ok(());
    }
    drop(notes);
    for shard in model.shards() {
        let is_input = fs::canonicalize(&args.output)
            .is_ok_and(|output| fs::canonicalize(shard.name()).is_ok_and(|input| input == output));
        ensure!(!is_input, "`{}`: expected another file than the input", args.output.display());
    }

    let threads = rayon::ThreadPoolBuilder::new().num_threads(args.threads.map_or(0, usize::from)).build()?;
    write_file(&args.output, |out| {
        let data = head(&model, &steps, args.file_type)?.begin(out)?;
        let bar = progress_bar(steps.iter().map(Step::n_byte).sum());
        let data = threads.install(|| convert_all(&model, &steps, data, &bar))?;
        bar.finish_and_clear();
        Ok(data.finish()?)
    })?;
    writeln!(
        io::stderr(),
        "{}: {}, {}, in {:.1} s",
        args.output.display(),
        args.file_type,
        total(&steps),
        start.elapsed().as_secs_f64()
    )?;
    Ok(())
}

/// A file that is read piece by piece: unlike a mapped one, it does not count as memory of this process.
#[derive(Debug)]
struct FileSource {
    name: String,
    len: u64,
    file: Mutex<File>,
}

impl FileSource {
    fn open(path: &str) -> Result<FileSource, SourceError> {
        let located = |source| SourceError::Io { name: path.to_owned(), source };
        let file = File::open(path).map_err(located)?;
        let len = file.metadata().map_err(located)?.len();
        Ok(FileSource { name: path.to_owned(), len, file: Mutex::new(file) })
    }
}

impl ByteSource for FileSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    async fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        SourceError::check_range(&self.name, self.len, offset, buf.len() as u64)?;
        // Each reader goes to its place first, so that one who panicked leaves nothing behind.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let read = file.seek(SeekFrom::Start(offset)).and_then(|_| file.read_exact(buf));
        read.map_err(|source| SourceError::Io { name: self.name.clone(), source })
    }
}

type Model = ModelFile<FileSource>;

fn open(path: &Path) -> Result<Model> {
    let name = path.to_str().with_context(|| format!("`{}`: expected a name in UTF-8", path.display()))?;
    let first = FileSource::open(name)?;
    Ok(pollster::block_on(ModelFile::open(first, async |name: &str| FileSource::open(name)))?)
}

/// A tensor, and the type that it gets.
#[derive(Debug)]
struct Step<'a> {
    tensor: &'a TensorInfo,
    ty: GgmlType,
}

impl Step<'_> {
    fn ne(&self) -> &[u64] {
        &self.tensor.ne[..self.tensor.n_dims as usize]
    }

    fn changes(&self) -> bool {
        self.ty != self.tensor.ty
    }

    fn row_bytes(&self) -> u64 {
        self.ty.row_bytes(self.tensor.ne[0]).expect("the plan has only types that the rows fit")
    }

    fn n_byte(&self) -> u64 {
        self.row_bytes() * self.tensor.n_row()
    }
}

/// The types of all tensors, in the order in which they are written.
fn plan<'a>(model: &'a Model, args: &Args) -> Result<Vec<Step<'a>>> {
    let facts = facts(model)?;
    let mut counters = MixCounters::default();
    let mut tensors: Vec<&TensorInfo> = model.tensors().iter().collect();
    tensors.sort_by_key(|t| mix_order(&t.name));
    let mut is_used = vec![false; args.tensor_type.len()];
    let mut steps = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        let ne = &tensor.ne[..tensor.n_dims as usize];
        let mut ty = tensor_type(args.file_type, &tensor.name, ne, &facts, &mut counters)?;
        if args.pure && ty.is_some() {
            ty = Some(pure_type(args.file_type, ne, &facts)?);
        }
        let position = args.tensor_type.iter().position(|o| tensor.name.contains(&o.name));
        if let (Some(i), true) = (position, ty.is_some()) {
            ty = Some(args.tensor_type[i].ty);
            is_used[i] = true;
        }
        let ty = ty.unwrap_or(tensor.ty);
        let (name, n_per_row, n_block) = (&tensor.name, ne[0], ty.block_len());
        ensure!(
            n_per_row.is_multiple_of(n_block as u64),
            "tensor `{name}`: expected rows of a multiple of {n_block} values for {ty}, found {n_per_row}"
        );
        steps.push(Step { tensor, ty });
    }
    if let Some(i) = is_used.iter().position(|is_used| !is_used) {
        let Override { name, ty } = &args.tensor_type[i];
        bail!(
            "--tensor-type {name}={ty}: expected a part of the name of a matrix, found none left that has it"
        );
    }
    Ok(steps)
}

/// The file type's base type, or what replaces it where rows are no whole number of its blocks.
fn pure_type(file_type: FileType, ne: &[u64], facts: &ModelFacts) -> Result<GgmlType> {
    let base = file_type.base();
    if ne[0].is_multiple_of(base.block_len() as u64) {
        return Ok(base);
    }
    // No rule is about this name.
    let ty = tensor_type(file_type, "any.weight", ne, facts, &mut MixCounters::default())?;
    ty.context("matrices of this name have types")
}

fn facts(model: &Model) -> Result<ModelFacts> {
    let metadata = model.metadata();
    let architecture = metadata.str("general.architecture")?;
    let key = |name: &str| format!("{architecture}.{name}");
    let n_layer = metadata.opt_u32(&key("block_count"))?.unwrap_or(0);
    // Where layers differ, the first speaks for all.
    let heads = |name: &str| -> Result<Option<u32>> {
        let key = key(name);
        if !metadata.contains(&key) || n_layer == 0 {
            return Ok(None);
        }
        Ok(metadata.per_layer::<u32>(&key, n_layer as usize)?.first().copied())
    };
    let n_head = heads("attention.head_count")?.unwrap_or(1);
    let n_head_kv = heads("attention.head_count_kv")?.unwrap_or(n_head);
    let is_value = |name: &str| {
        ["attn_v.weight", "attn_qkv.weight", "attn_kv_b.weight"].iter().any(|w| name.contains(w))
    };
    Ok(ModelFacts {
        n_layer,
        n_attn_v: model.tensors().iter().filter(|t| is_value(&t.name)).count() as u32,
        gqa: n_head.checked_div(n_head_kv).unwrap_or(0),
        n_expert: metadata.opt_u32(&key("expert_count"))?.unwrap_or(0),
        has_output: model.tensor("output.weight").is_some(),
        is_70b: architecture == "llama" && n_layer == 80 && n_head != n_head_kv,
        has_importance: false,
    })
}

/// Why the file cannot be written, if it cannot.
fn find_obstacle(steps: &[Step<'_>], allow_requantize: bool) -> Option<anyhow::Error> {
    for Step { tensor, ty } in steps.iter().filter(|s| s.changes()) {
        let (name, from) = (&tensor.name, tensor.ty);
        if ty.info().quantize.is_none() {
            return Some(anyhow!(
                "tensor `{name}`: the mix wants {ty}, and there is no quantiser for it; choose another file type"
            ));
        }
        let is_exact = matches!(from, GgmlType::F32 | GgmlType::F16 | GgmlType::BF16 | GgmlType::F64);
        if !is_exact && !allow_requantize {
            return Some(anyhow!(
                "tensor `{name}`: expected f32, f16 or bf16, found {from}, which is quantised already; take the \
                 original model, or accept the loss with --allow-requantize"
            ));
        }
    }
    None
}

/// Writes one line for each tensor and one for all.
fn print_table(steps: &[Step<'_>], out: &mut impl Write) -> Result<()> {
    let width = steps.iter().map(|s| s.tensor.name.len()).max().unwrap_or(0);
    for s in steps {
        let shape = s.ne().iter().map(u64::to_string).collect::<Vec<_>>().join(" x ");
        let (name, from, ty, size) = (&s.tensor.name, s.tensor.ty, s.ty, HumanBytes(s.n_byte()).to_string());
        writeln!(out, "{name:width$}  {shape:>18}  {from:>7} -> {ty:7}  {size:>12}")?;
    }
    writeln!(out, "{} tensors, {}", steps.len(), total(steps))?;
    Ok(())
}

/// Size of all tensors, in words.
fn total(steps: &[Step<'_>]) -> String {
    let n_elem: u64 = steps.iter().map(|s| s.tensor.n_elem()).sum();
    let n_byte: u64 = steps.iter().map(Step::n_byte).sum();
    let before: u64 = steps.iter().map(|s| s.tensor.n_byte).sum();
    let bits = n_byte as f64 * 8.0 / n_elem.max(1) as f64;
    format!("{} instead of {}, {bits:.2} bits a weight", HumanBytes(n_byte), HumanBytes(before))
}

/// Metadata and directory of the new file.
fn head(model: &Model, steps: &[Step<'_>], file_type: FileType) -> Result<GgufWriter> {
    let metadata: &Metadata = model.metadata();
    let stated_anew = ["general.quantization_version", "general.file_type"];
    let mut head = GgufWriter::new();
    head.copy_metadata(metadata, |key| !stated_anew.contains(&key) && !key.starts_with("split."))?
        .set("general.quantization_version", 2u32)?
        .set("general.file_type", file_type.id())?;
    for s in steps {
        head.tensor(&s.tensor.name, s.ne(), s.ty)?;
    }
    Ok(head)
}

/// Values that are converted between two writes, about; this and not the model decides how much memory is used.
const CHUNK_LEN: u64 = 1 << 23;

/// Values that one thread converts at once, about.
const PIECE_LEN: u64 = 1 << 16;

/// Converts all tensors; a chunk is written while the next is converted.
fn convert_all<W: Write + Send>(
    model: &Model,
    steps: &[Step<'_>],
    mut data: DataWriter<W>,
    bar: &ProgressBar,
) -> Result<DataWriter<W>> {
    let mut ready: (&str, Vec<u8>) = ("", Vec::new());
    let mut next = Vec::new();
    for step in steps {
        bar.set_message(step.tensor.name.clone());
        for rows in pieces(0..step.tensor.n_row(), step.tensor.ne[0], CHUNK_LEN) {
            let write = || data.write(ready.0, &ready.1);
            let (written, converted) = rayon::join(write, || convert(model, step, rows, &mut next));
            written?;
            converted.with_context(|| format!("tensor `{}` cannot be converted", step.tensor.name))?;
            bar.inc(ready.1.len() as u64);
            ready.0 = &step.tensor.name;
            std::mem::swap(&mut ready.1, &mut next);
        }
    }
    data.write(ready.0, &ready.1)?;
    bar.inc(ready.1.len() as u64);
    Ok(data)
}

/// Ranges of rows that hold about `n_elem` values each, and at least one row.
fn pieces(rows: Range<u64>, n_per_row: u64, n_elem: u64) -> impl Iterator<Item = Range<u64>> {
    let step = (n_elem / n_per_row.max(1)).max(1);
    let end = rows.end;
    rows.step_by(step as usize).map(move |start| start..(start + step).min(end))
}

/// Puts rows in the new type into `out`.
fn convert(model: &Model, step: &Step<'_>, rows: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
    let n_per_row = step.tensor.ne[0];
    let row_bytes = step.row_bytes();
    out.clear();
    out.resize(((rows.end - rows.start) * row_bytes) as usize, 0);
    let mut rest = out.as_mut_slice();
    let mut tasks = Vec::new();
    for rows in pieces(rows, n_per_row, PIECE_LEN) {
        let (piece, others) = rest.split_at_mut(((rows.end - rows.start) * row_bytes) as usize);
        tasks.push((rows, piece));
        rest = others;
    }
    let buffers = || (Vec::new(), Vec::new());
    tasks.into_par_iter().try_for_each_init(buffers, |(bytes, values), (rows, piece)| {
        let from = rows.start * step.tensor.row_bytes();
        if !step.changes() {
            return Ok(pollster::block_on(model.read_tensor(step.tensor, from, piece))?);
        }
        bytes.resize(((rows.end - rows.start) * step.tensor.row_bytes()) as usize, 0);
        values.resize(((rows.end - rows.start) * n_per_row) as usize, 0.0);
        pollster::block_on(model.read_tensor(step.tensor, from, bytes))?;
        dequantize(step.tensor.ty, bytes, values)?;
        if let Some(i) = values.iter().position(|x| !x.is_finite()) {
            let (row, column) = (rows.start + i as u64 / n_per_row, i as u64 % n_per_row);
            bail!("row {row}, column {column}: expected a finite value, found {}", values[i]);
        }
        quantize(step.ty, values, n_per_row as usize, None, piece)?;
        if let Some(i) = (step.ty.info().invalid_block)(piece) {
            let i = i as u64 * step.ty.block_len() as u64;
            let (row, column) = (rows.start + i / n_per_row, i % n_per_row);
            let ty = step.ty;
            bail!("row {row}, from column {column}: expected values that {ty} can hold, found larger ones");
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const N_LAYER: u32 = 2;

    /// Values of some variety, the same each time.
    fn values(n: u64, start: u64) -> Vec<f32> {
        (0..n).map(|i| (((i + start) as f32 * 0.37).sin() * 3.0 + (i % 7) as f32 * 0.1) * 0.05).collect()
    }

    fn tensors() -> Vec<(String, Vec<u64>)> {
        let mut tensors = vec![
            ("token_embd.weight".to_owned(), vec![256, 40]),
            ("output_norm.weight".to_owned(), vec![256]),
        ];
        for layer in 0..N_LAYER {
            let mut add = |name: &str, ne: &[u64]| tensors.push((format!("blk.{layer}.{name}"), ne.to_vec()));
            add("attn_v.weight", &[256, 64]);
            add("attn_norm.weight", &[256]);
            add("ffn_up.weight", &[256, 96]);
            // Rows of less than a block of 256.
            add("ffn_down.weight", &[96, 256]);
            // More values than one thread takes at once, with a rest.
            add("attn_q.weight", &[256, 1500]);
            add("ffn_gate_exps.weight", &[256, 32, 3]);
        }
        tensors
    }

    /// Writes a model, or one file of a set of two.
    fn write_model(path: &Path, ty: GgmlType, shard: Option<u16>) {
        let tensors: Vec<_> = tensors().into_iter().enumerate().collect();
        let n_tensor = tensors.len();
        let ours = |i: usize| shard.is_none_or(|shard| usize::from(shard) == i % 2);
        let mut head = GgufWriter::new();
        if shard != Some(1) {
            head.set("general.architecture", "llama").unwrap();
            head.set("general.file_type", 1u32).unwrap();
            head.set("llama.block_count", N_LAYER).unwrap();
            head.set("llama.attention.head_count", 4u32).unwrap();
            head.set("llama.attention.head_count_kv", 1u32).unwrap();
            head.set("a.note", "kept").unwrap();
        }
        if let Some(shard) = shard {
            head.set("split.no", shard).unwrap();
            head.set("split.count", 2u16).unwrap();
            head.set("split.tensors.count", n_tensor as i32).unwrap();
        }
        let type_of = |ne: &[u64]| if ne.len() == 1 { GgmlType::F32 } else { ty };
        for (_, (name, ne)) in tensors.iter().filter(|(i, _)| ours(*i)) {
            head.tensor(name, ne, type_of(ne)).unwrap();
        }
        let mut data = head.begin(Vec::new()).unwrap();
        for (i, (name, ne)) in tensors.iter().filter(|(i, _)| ours(*i)) {
            let x = values(ne.iter().product(), *i as u64);
            data.write(name, &quantized(type_of(ne), &x, ne[0])).unwrap();
        }
        fs::write(path, data.finish().unwrap()).unwrap();
    }

    fn quantized(ty: GgmlType, x: &[f32], n_per_row: u64) -> Vec<u8> {
        let n_row = x.len() as u64 / n_per_row;
        let mut bytes = vec![0; (ty.row_bytes(n_per_row).unwrap() * n_row) as usize];
        quantize(ty, x, n_per_row as usize, None, &mut bytes).unwrap();
        bytes
    }

    fn args(dir: &Path, file_type: FileType) -> Args {
        Args {
            input: dir.join("in.gguf"),
            output: dir.join("out.gguf"),
            file_type,
            tensor_type: Vec::new(),
            pure: false,
            allow_requantize: false,
            dry_run: false,
            threads: Some(2),
        }
    }

    fn bytes_of(model: &Model, tensor: &TensorInfo) -> Vec<u8> {
        let mut bytes = vec![0; tensor.n_byte as usize];
        pollster::block_on(model.read_tensor(tensor, 0, &mut bytes)).unwrap();
        bytes
    }

    #[test]
    fn tensors_equal_those_that_are_quantised_at_once() {
        let dir = tempfile::tempdir().unwrap();
        write_model(&dir.path().join("in.gguf"), GgmlType::F32, None);
        for file_type in [FileType::Q4_K_M, FileType::Q8_0, FileType::BF16, FileType::MXFP4_MOE] {
            run(args(dir.path(), file_type)).unwrap();
            let model = open(&dir.path().join("out.gguf")).unwrap();
            let mut n_changed = 0;
            for (i, (name, ne)) in tensors().iter().enumerate() {
                let found = model.tensor(name).unwrap();
                let x = values(ne.iter().product(), i as u64);
                assert_eq!(bytes_of(&model, found), quantized(found.ty, &x, ne[0]), "{file_type} {name}");
                n_changed += usize::from(found.ty != GgmlType::F32);
            }
            assert_eq!(n_changed, tensors().len() - 1 - N_LAYER as usize);
            let names: Vec<_> = model.tensors().iter().map(|t| mix_order(&t.name)).collect();
            assert!(names.is_sorted());
            assert_eq!(model.metadata().u32("general.file_type").unwrap(), file_type.id());
            assert_eq!(model.metadata().u32("general.quantization_version").unwrap(), 2);
            assert_eq!(model.metadata().str("a.note").unwrap(), "kept");
        }
    }

    fn types(dir: &Path, args: &Args) -> Vec<(String, GgmlType)> {
        let model = open(&dir.join("in.gguf")).unwrap();
        plan(&model, args).unwrap().iter().map(|s| (s.tensor.name.clone(), s.ty)).collect()
    }

    fn type_of(types: &[(String, GgmlType)], name: &str) -> GgmlType {
        types.iter().find(|t| t.0 == name).unwrap().1
    }

    #[test]
    fn rules_overrides_and_purity_decide_the_types() {
        let dir = tempfile::tempdir().unwrap();
        write_model(&dir.path().join("in.gguf"), GgmlType::F32, None);
        let mut args = args(dir.path(), FileType::Q4_K_M);
        let found = types(dir.path(), &args);
        assert_eq!(type_of(&found, "token_embd.weight"), GgmlType::Q6_K);
        assert_eq!(type_of(&found, "blk.0.attn_norm.weight"), GgmlType::F32);
        assert_eq!(type_of(&found, "blk.0.ffn_up.weight"), GgmlType::Q4_K);
        // Of two layers only the last gets more bits; rows of 96 have no K-quant.
        assert_eq!(type_of(&found, "blk.1.attn_v.weight"), GgmlType::Q6_K);
        assert_eq!(type_of(&found, "blk.0.ffn_down.weight"), GgmlType::Q5_0);
        assert_eq!(type_of(&found, "blk.1.ffn_down.weight"), GgmlType::Q8_0);

        args.pure = true;
        let found = types(dir.path(), &args);
        assert_eq!(type_of(&found, "token_embd.weight"), GgmlType::Q4_K);
        assert_eq!(type_of(&found, "blk.1.attn_v.weight"), GgmlType::Q4_K);
        assert_eq!(type_of(&found, "blk.1.ffn_down.weight"), GgmlType::Q5_0);
        assert_eq!(type_of(&found, "output_norm.weight"), GgmlType::F32);

        args.tensor_type =
            vec![parse_override("blk.1.attn=q8_0").unwrap(), parse_override("attn=f16").unwrap()];
        let found = types(dir.path(), &args);
        assert_eq!(type_of(&found, "blk.1.attn_v.weight"), GgmlType::Q8_0);
        assert_eq!(type_of(&found, "blk.0.attn_v.weight"), GgmlType::F16);
        assert_eq!(type_of(&found, "blk.0.attn_norm.weight"), GgmlType::F32);

        let model = open(&args.input).unwrap();
        args.tensor_type = vec![parse_override("atn_v=q8_0").unwrap()];
        let error = plan(&model, &args).unwrap_err().to_string();
        assert!(
            error.starts_with("--tensor-type atn_v=q8_0: expected a part of the name of a matrix"),
            "{error}"
        );
        args.tensor_type = vec![parse_override("ffn_down=q4_K").unwrap()];
        let error = plan(&model, &args).unwrap_err().to_string();
        let expected =
            "tensor `blk.0.ffn_down.weight`: expected rows of a multiple of 256 values for q4_K, found 96";
        assert_eq!(error, expected);
    }

    #[test]
    fn overrides_that_say_nothing_are_refused() {
        assert_eq!(parse_override("attn_v").unwrap_err(), "expected NAME=TYPE");
        assert!(parse_override("=q8_0").is_err());
        assert!(
            parse_override("attn_v=i8")
                .unwrap_err()
                .starts_with("`i8` is no type to quantise to (known: f32")
        );
    }

    #[test]
    fn a_split_set_becomes_one_file() {
        let dir = tempfile::tempdir().unwrap();
        let first = dir.path().join("in-00001-of-00002.gguf");
        write_model(&first, GgmlType::F16, Some(0));
        write_model(&dir.path().join("in-00002-of-00002.gguf"), GgmlType::F16, Some(1));
        run(Args { input: first, ..args(dir.path(), FileType::Q4_0) }).unwrap();
        let model = open(&dir.path().join("out.gguf")).unwrap();
        assert_eq!(model.tensors().len(), tensors().len());
        assert!(model.metadata().iter().all(|(key, _)| !key.starts_with("split.")));
        assert_eq!(model.tensor("blk.1.attn_q.weight").unwrap().ty, GgmlType::Q4_0);
    }

    #[test]
    fn quantised_input_is_refused_unless_allowed() {
        let dir = tempfile::tempdir().unwrap();
        write_model(&dir.path().join("in.gguf"), GgmlType::Q8_0, None);
        let error = run(args(dir.path(), FileType::Q4_0)).unwrap_err().to_string();
        let expected = "tensor `token_embd.weight`: expected f32, f16 or bf16, found q8_0, which is quantised \
                        already; take the original model, or accept the loss with --allow-requantize";
        assert_eq!(error, expected);
        assert!(!dir.path().join("out.gguf").exists());
        run(Args { allow_requantize: true, ..args(dir.path(), FileType::Q4_0) }).unwrap();
        // What has its type already is copied.
        run(args(dir.path(), FileType::Q8_0)).unwrap();
        let (input, output) =
            (open(&dir.path().join("in.gguf")).unwrap(), open(&dir.path().join("out.gguf")).unwrap());
        for t in input.tensors() {
            assert_eq!(bytes_of(&input, t), bytes_of(&output, output.tensor(&t.name).unwrap()), "{}", t.name);
        }
    }

    #[test]
    fn a_dry_run_writes_nothing_and_lists_all_tensors() {
        let dir = tempfile::tempdir().unwrap();
        write_model(&dir.path().join("in.gguf"), GgmlType::F16, None);
        run(Args { dry_run: true, ..args(dir.path(), FileType::Q4_K_M) }).unwrap();
        // Sizes can be asked for of types that cannot be written, too.
        run(Args { dry_run: true, ..args(dir.path(), FileType::IQ2_XXS) }).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);

        let model = open(&dir.path().join("in.gguf")).unwrap();
        let args = args(dir.path(), FileType::Q8_0);
        let mut table = Vec::new();
        print_table(&plan(&model, &args).unwrap(), &mut table).unwrap();
        let table = String::from_utf8(table).unwrap();
        assert_eq!(table.lines().count(), tensors().len() + 1);
        let row = "blk.0.attn_v.weight                256 x 64      f16 -> q8_0        17.00 KiB";
        assert!(table.lines().any(|line| line.split_whitespace().eq(row.split_whitespace())), "{table}");
        assert!(table.lines().last().unwrap().starts_with("14 tensors, "), "{table}");
    }

    #[test]
    fn values_that_are_not_finite_are_named_and_nothing_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let name = "blk.0.ffn_up.weight";
        let mut head = GgufWriter::new();
        head.set("general.architecture", "llama").unwrap();
        head.tensor(name, &[32, 3], GgmlType::F32).unwrap();
        let mut data = head.begin(Vec::new()).unwrap();
        let mut x = values(96, 0);
        x[70] = f32::NAN;
        data.write(name, &quantized(GgmlType::F32, &x, 32)).unwrap();
        fs::write(dir.path().join("in.gguf"), data.finish().unwrap()).unwrap();
        let error = format!("{:#}", run(args(dir.path(), FileType::Q8_0)).unwrap_err());
        assert!(error.ends_with("row 2, column 6: expected a finite value, found NaN"), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_input_is_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let input = dir.path().join("in.gguf");
        write_model(&input, GgmlType::F16, None);
        let error = run(Args { output: input, ..args(dir.path(), FileType::Q8_0) }).unwrap_err().to_string();
        assert!(error.ends_with("expected another file than the input"), "{error}");
    }
}
