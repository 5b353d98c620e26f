//! Quantises a GGUF model: `quantize IN.gguf OUT.gguf TYPE`, with a TYPE such as `Q4_K_M`.
//!
//! Memory holds one tensor at a time; the rest is streamed.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;

use ggml_format::{
    FileType, GgmlType, GgufWriter, MemorySource, MixCounters, ModelFacts, ModelFile, TensorInfo, dequantize,
    mix_order, quantize, tensor_type,
};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [input, output, file_type] = args.as_slice() else {
        return Err("usage: quantize IN.gguf OUT.gguf TYPE".into());
    };
    let file_type = FileType::from_name(file_type).ok_or("no such file type")?;
    let open = |path: &str| MemorySource::new(path, std::fs::read(path).unwrap_or_default());
    let model = pollster::block_on(ModelFile::open(open(input), |path: &str| Ok(open(path))))?;

    let mut writer = GgufWriter::new();
    let stated_anew = ["general.quantization_version", "general.file_type"];
    writer
        .copy_metadata(model.metadata(), |key| !stated_anew.contains(&key) && !key.starts_with("split."))?;
    writer.set("general.quantization_version", 2u32)?;
    writer.set("general.file_type", file_type.id())?;

    let mut tensors: Vec<&TensorInfo> = model.tensors().iter().collect();
    tensors.sort_by_key(|t| mix_order(&t.name));
    let facts = facts(&model)?;
    let mut counters = MixCounters::default();
    let mut types = Vec::new();
    for t in &tensors {
        let wanted = tensor_type(file_type, &t.name, &t.ne[..t.n_dims as usize], &facts, &mut counters)?;
        types.push(wanted.unwrap_or(t.ty));
        writer.tensor(&t.name, &t.ne[..t.n_dims as usize], types[types.len() - 1])?;
    }

    let mut data = writer.begin(BufWriter::new(File::create(output)?))?;
    for (t, &ty) in tensors.iter().zip(&types) {
        let bytes = model.tensor_bytes(t).expect("the model is in memory");
        data.write(&t.name, &convert(t, ty, bytes)?)?;
    }
    data.finish()?;
    Ok(())
}

fn facts(model: &ModelFile<MemorySource>) -> Result<ModelFacts, Box<dyn Error>> {
    let metadata = model.metadata();
    let architecture = metadata.str("general.architecture")?;
    let key = |name: &str| format!("{architecture}.{name}");
    let n_layer = metadata.u32(&key("block_count"))?;
    let n_head = metadata.per_layer::<u32>(&key("attention.head_count"), n_layer as usize)?[0];
    let n_head_kv = match metadata.contains(&key("attention.head_count_kv")) {
        true => metadata.per_layer::<u32>(&key("attention.head_count_kv"), n_layer as usize)?[0],
        false => n_head,
    };
    let n_attn_v = model.tensors().iter().filter(|t| t.name.contains("attn_v.weight")).count() as u32;
    Ok(ModelFacts {
        n_layer,
        n_attn_v,
        gqa: n_head / n_head_kv.max(1),
        n_expert: metadata.opt_u32(&key("expert_count"))?.unwrap_or(0),
        has_output: model.tensor("output.weight").is_some(),
        is_70b: architecture == "llama" && n_layer == 80 && n_head != n_head_kv,
        is_falcon: architecture == "falcon",
        has_importance: false,
    })
}

fn convert(t: &TensorInfo, ty: GgmlType, bytes: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    if ty == t.ty {
        return Ok(bytes.to_vec());
    }
    let mut x = vec![0.0; t.n_elem() as usize];
    dequantize(t.ty, bytes, &mut x)?;
    let n_byte = ty.row_bytes(t.n_elem()).expect("rows are whole blocks, so all of them are");
    let mut out = vec![0; n_byte as usize];
    quantize(ty, &x, t.ne[0] as usize, None, &mut out)?;
    Ok(out)
}
