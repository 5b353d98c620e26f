//! `chaski show`: a model file's contents and memory needs.

mod fit;
mod need;

use std::collections::BTreeMap;
use std::io::Write;

use chaski::gguf::{GgmlType, Metadata, TensorInfo, Value};
use chaski::source::OpenModel;
use chaski::{DeviceChoice, KvType};
use serde_json::{Value as Json, json};

use crate::hub::{Described, Models, Remote};
use crate::options::{ExpertArgs, GpuLayers, ModelArg, Shares, devices, source};
use crate::quantize;
use crate::ui::{LINE, NAME, bytes, chain, one_line, shortened};
use need::Need;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArg,
    /// List the tensors
    #[arg(long)]
    tensors: bool,
    /// Print the chat template
    #[arg(long)]
    template: bool,
    /// Print long metadata values in full
    #[arg(long)]
    full: bool,
    /// Context size for the memory estimate; 0: the model's own, up to 4096
    #[arg(short = 'c', long, value_name = "N", default_value_t = 0)]
    ctx_size: u32,
    /// KV cache type for the memory estimate
    #[arg(long, value_name = "TYPE", default_value = "auto")]
    kv: KvType,
    /// Prompt tokens per chunk
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    chunk: u32,
    #[command(flatten)]
    experts: ExpertArgs,
    /// Estimate the memory for this device, and say whether the model fits: auto, gpu, cpu, or the name or index of a
    /// GPU; several, such as 0,1 or 0,cpu, or all share the layers [default: any GPU; none is opened]
    #[arg(long, alias = "devices", value_name = "DEVICE", value_parser = devices)]
    device: Option<DeviceChoice>,
    /// With several devices: the share of the model on each, such as 3,1 (also -ts) [default: by free memory]
    #[arg(long, value_name = "N,N", requires = "device")]
    tensor_split: Option<Shares>,
    /// Layers on the GPU or GPUs, the last ones; the CPU runs the others (also -ngl) [default: all]
    #[arg(long, alias = "n-gpu-layers", value_name = "N", allow_negative_numbers = true)]
    gpu_layers: Option<GpuLayers>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Number of array values shown.
const HEAD: usize = 4;
/// Number of characters of a text shown.
const TEXT: usize = 72;

pub(crate) fn run(args: &Args, models: &Models) -> anyhow::Result<()> {
    let described = args.model.path().map(|word| models.described(word)).transpose()?;
    let (path, remote) = match &described {
        Some(Described::Here(path)) => (Some(path.as_path()), None),
        Some(Described::Remote(remote)) => (None, Some(&**remote)),
        None => (None, None),
    };
    let source = remote.map_or_else(|| source(path), |remote| remote.source.clone());
    let name = match (path, remote) {
        (Some(path), _) => path.display().to_string(),
        (None, Some(remote)) => remote.plan.name.to_string(),
        (None, None) => "built-in model".to_owned(),
    };
    let opened = pollster::block_on(source.open());
    let contents;
    let file = match &opened {
        Ok(model) => File {
            name,
            remote,
            metadata: model.metadata(),
            tensors: model.tensors(),
            // The memory section explains why a file has no graph.
            model: Ok(Runnable {
                model,
                need: Need::of(model, args)?,
                unread: pollster::block_on(model.unread()).unwrap_or_default(),
            }),
        },
        // The contents of a file of an unsupported model can be shown, too.
        Err(error) => match path.map(quantize::open) {
            Some(Ok(found)) => {
                contents = found;
                let (metadata, tensors) = (contents.metadata(), contents.tensors());
                File { name, remote, metadata, tensors, model: Err(chain(error)) }
            }
            _ => return Err(opened.err().expect("it was matched").into()),
        },
    };
    let mut out = std::io::stdout().lock();
    if args.template {
        let template = file.metadata.opt_str("tokenizer.chat_template")?;
        let template = template.ok_or_else(|| anyhow::anyhow!("the model has no chat template"))?;
        writeln!(out, "{}", crate::terminal::for_stdout(template))?;
        return Ok(());
    }
    if args.json {
        writeln!(out, "{:#}", as_json(&file, args))?;
        return Ok(());
    }
    print(&mut out, &file, args)
}

/// A file's contents, and its model or the reason why it has none.
struct File<'a> {
    name: String,
    /// It is on a server.
    remote: Option<&'a Remote>,
    metadata: &'a Metadata,
    tensors: &'a [TensorInfo],
    model: Result<Runnable<'a>, String>,
}

struct Runnable<'a> {
    model: &'a OpenModel,
    need: Need,
    /// Unused tensors.
    unread: Vec<&'a TensorInfo>,
}

impl File<'_> {
    fn n_param(&self) -> u64 {
        self.tensors.iter().map(TensorInfo::n_elem).sum()
    }

    fn n_byte(&self) -> u64 {
        self.tensors.iter().map(|t| t.n_byte).sum()
    }
}

/// Formats with their number of tensors, values and bytes, largest first.
fn formats(tensors: &[TensorInfo]) -> Vec<(GgmlType, usize, u64, u64)> {
    let mut by_type: BTreeMap<u32, (GgmlType, usize, u64, u64)> = BTreeMap::new();
    for t in tensors {
        let row = by_type.entry(t.ty.id()).or_insert((t.ty, 0, 0, 0));
        *row = (t.ty, row.1 + 1, row.2 + t.n_elem(), row.3 + t.n_byte);
    }
    let mut rows: Vec<_> = by_type.into_values().collect();
    rows.sort_by_key(|r| std::cmp::Reverse(r.3));
    rows
}

fn print(out: &mut impl Write, file: &File<'_>, args: &Args) -> anyhow::Result<()> {
    let (n_param, n_byte) = (file.n_param(), file.n_byte());
    let bits = n_byte as f64 * 8.0 / n_param.max(1) as f64;
    writeln!(out, "{}", file.name)?;
    if let Ok(Runnable { model, .. }) = &file.model {
        writeln!(out, "  {}", model.describe())?;
    }
    writeln!(out, "  {n_param} parameters in {} ({bits:.2} bits each)", bytes(n_byte))?;
    match &file.model {
        Ok(Runnable { model, .. }) => print_config(out, model)?,
        Err(why) => writeln!(out, "  unsupported: {}", shortened(why, LINE))?,
    }

    writeln!(out, "\nMetadata")?;
    let width = file.metadata.iter().map(|(k, _)| k.len()).max().unwrap_or(0).min(48);
    for (key, value) in file.metadata.iter() {
        writeln!(out, "  {:<width$}  {}", shortened(key, NAME), shown(value, args.full))?;
    }

    writeln!(out, "\nFormats")?;
    for (ty, n, n_elem, n_byte) in formats(file.tensors) {
        writeln!(out, "  {:<8} {n:>5} tensors {n_elem:>14} values {:>12}", ty.name(), bytes(n_byte))?;
    }
    if args.tensors {
        writeln!(out, "\nTensors (shape outermost first)")?;
        let width = file.tensors.iter().map(|t| t.name.len()).max().unwrap_or(0).min(NAME);
        for t in file.tensors {
            let shape: Vec<String> = t.shape().iter().map(u64::to_string).collect();
            let (shape, size) = (shape.join(" x "), bytes(t.n_byte));
            writeln!(
                out,
                "  {:<width$}  {:<8} {shape:<20} {size:>12}",
                shortened(&t.name, NAME),
                t.ty.name()
            )?;
        }
    }

    if let Some(remote) = file.remote {
        fit::print(out, remote)?;
    }
    let Ok(Runnable { need, unread, .. }) = &file.model else { return Ok(()) };
    if !unread.is_empty() {
        let n_byte = unread.iter().map(|t| t.n_byte).sum();
        writeln!(out, "\nUnused ({} tensors, {})", unread.len(), bytes(n_byte))?;
        let n = if args.full { usize::MAX } else { HEAD };
        for t in unread.iter().take(n) {
            writeln!(out, "  {}", shortened(&t.name, NAME))?;
        }
        if unread.len() > n {
            writeln!(out, "  ... {} in total", unread.len())?;
        }
    }
    need.print(out)?;
    if let (Some(n_byte), Some(_)) = (need.n_byte(), file.remote) {
        writeln!(out, "  {}", fit::in_memory(n_byte))?;
    }
    Ok(())
}

/// The sizes of the model.
fn print_config(out: &mut impl Write, model: &OpenModel) -> anyhow::Result<()> {
    let c = model.config();
    let per_layer = |v: &[u32]| match v {
        [first, rest @ ..] if rest.iter().all(|x| x == first) => first.to_string(),
        v => v.iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
    };
    writeln!(out, "  context {}, vocabulary {}", c.n_ctx_train, c.n_vocab)?;
    let (heads, kv_heads) = (per_layer(&c.n_head), per_layer(&c.n_head_kv));
    writeln!(out, "  {} layers of width {}, feed-forward {}", c.n_layer, c.n_embd, per_layer(&c.n_ff))?;
    writeln!(out, "  {heads} heads of {}, {kv_heads} for keys and values", c.d_head)?;
    match model.templates().get(false) {
        Ok(Some(_)) => writeln!(out, "  has a chat template")?,
        Ok(None) => writeln!(out, "  has no chat template")?,
        Err(e) => writeln!(out, "  has an unreadable chat template: {}", shortened(&chain(&e), LINE))?,
    }
    Ok(())
}

/// A value on one line; long ones are truncated unless `all` is set.
fn shown(value: Value<'_>, full: bool) -> String {
    match value {
        Value::Str(s) => {
            let escaped = one_line(s);
            match escaped.char_indices().nth(TEXT) {
                Some((end, _)) if !full => format!("\"{} ...\" ({} bytes)", &escaped[..end], s.len()),
                _ => format!("\"{escaped}\""),
            }
        }
        Value::Array(a) => {
            let n = if full { usize::MAX } else { HEAD };
            let head: Vec<String> = a.iter().take(n).map(|v| shown(v, full)).collect();
            let rest = if (head.len() as u64) < a.len() {
                format!(", ... {} in total", a.len())
            } else {
                String::new()
            };
            format!("[{}{rest}]", head.join(", "))
        }
        v => scalar(v),
    }
}

fn scalar(value: Value<'_>) -> String {
    match value {
        Value::U8(v) => v.to_string(),
        Value::I8(v) => v.to_string(),
        Value::U16(v) => v.to_string(),
        Value::I16(v) => v.to_string(),
        Value::U32(v) => v.to_string(),
        Value::I32(v) => v.to_string(),
        Value::U64(v) => v.to_string(),
        Value::I64(v) => v.to_string(),
        Value::F32(v) => v.to_string(),
        Value::F64(v) => v.to_string(),
        Value::Bool(v) => v.to_string(),
        Value::Str(s) => s.to_owned(),
        Value::Array(_) => String::new(),
    }
}

fn value_json(value: Value<'_>, full: bool) -> Json {
    match value {
        Value::U8(v) => v.into(),
        Value::I8(v) => v.into(),
        Value::U16(v) => v.into(),
        Value::I16(v) => v.into(),
        Value::U32(v) => v.into(),
        Value::I32(v) => v.into(),
        Value::U64(v) => v.into(),
        Value::I64(v) => v.into(),
        Value::F32(v) => v.into(),
        Value::F64(v) => v.into(),
        Value::Bool(v) => v.into(),
        Value::Str(s) => s.into(),
        Value::Array(a) if full || a.len() <= 16 => a.iter().map(|v| value_json(v, full)).collect(),
        Value::Array(a) => {
            let head: Vec<Json> = a.iter().take(HEAD).map(|v| value_json(v, full)).collect();
            json!({ "length": a.len(), "first": head })
        }
    }
}

fn as_json(file: &File<'_>, args: &Args) -> Json {
    let metadata: serde_json::Map<String, Json> =
        file.metadata.iter().map(|(k, v)| (k.to_owned(), value_json(v, args.full))).collect();
    let formats: Vec<Json> = formats(file.tensors)
        .into_iter()
        .map(|(ty, n, n_elem, n_byte)| {
            json!({ "format": ty.name(), "tensors": n, "values": n_elem, "bytes": n_byte })
        })
        .collect();
    let mut object = json!({ "file": file.name });
    match &file.model {
        Ok(Runnable { model, need, unread }) => {
            let c = model.config();
            object["description"] = model.describe().into();
            object["architecture"] = model.arch().name.into();
            object["file_type"] = model.file_type().into();
            object["context"] = c.n_ctx_train.into();
            object["vocabulary"] = c.n_vocab.into();
            object["layers"] = c.n_layer.into();
            object["width"] = c.n_embd.into();
            let template = model.templates().get(false);
            object["chat_template"] = matches!(template, Ok(Some(_))).into();
            if let Err(e) = template {
                object["chat_template_error"] = chain(&e).into();
            }
            object["unread"] = unread.iter().map(|t| t.name.as_str()).collect();
            object["memory"] = need.json();
        }
        Err(why) => {
            object["architecture"] = file.metadata.str("general.architecture").ok().into();
            object["error"] = why.as_str().into();
        }
    }
    if let Some(remote) = file.remote {
        object["download"] = fit::json(remote);
    }
    object["parameters"] = file.n_param().into();
    object["bytes"] = file.n_byte().into();
    object["formats"] = formats.into();
    object["metadata"] = metadata.into();
    if args.tensors {
        let tensors = file
            .tensors
            .iter()
            .map(|t| json!({ "name": t.name, "format": t.ty.name(), "shape": t.shape(), "bytes": t.n_byte }));
        object["tensors"] = tensors.collect();
    }
    object
}
