//! `models-doc`: writes docs/models.md, the list of model families, from their table and from plans of the fixtures.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, bail, ensure};
use chaski_kernels::Caps;
use chaski_models::{ARCHS, Model};
use chaski_runtime::graph::Graph;
use chaski_runtime::plan::{Groups, PlanConfig, PlanError, Segments, Streaming, dispatches, fuse, plan};
use ggml_format::{ByteSource, GgmlType, GgufWriter, OwnedValue, SourceError};
use serde_json::Value;

/// Writes the page; with `check`, fails if it would change.
pub(crate) fn document(check: bool) -> anyhow::Result<()> {
    let path = crate::root().join("docs/models.md");
    let page = page()?;
    if check {
        let found =
            fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
        if found != page {
            bail!("docs/models.md is stale: run `cargo xtask models-doc`");
        }
        return Ok(());
    }
    fs::write(&path, page).with_context(|| format!("could not write {}", path.display()))
}

/// Plan statistics of a fixture.
struct Fixture {
    name: String,
    /// Layers of the model.
    n_layer: usize,
    /// Dispatches per token, without sampling.
    n_dispatch: usize,
}

fn page() -> anyhow::Result<String> {
    let mut fixtures = fixtures()?;
    let mut out = String::from(
        "# Models\n\nWritten by `cargo xtask models-doc` from the table of families (`ARCHS` in `crates/models`) and from \
         plans of their fixtures; do not edit.\n\nA file's `general.architecture` says which family it is of; `chaski show \
         FILE` says whether it runs, and why not. *Fixtures* are tiny models with weights that follow from their names, whose \
         logits another source gave (`fixtures/archs`), or whose embeddings and scores, of encoders (`fixtures/encoders`). *Dispatches* are those of one token of the fixture in sequences of up \
         to 64 tokens, from the embeddings to the logits, on a device with subgroups and coherent memory; a model with more \
         layers takes more in proportion. Weights may be in any of the formats that [README](../README.md) lists, in all \
         families.\n\n\
         | architecture | models | fixtures | dispatches a token | not done |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    for arch in ARCHS {
        let of = fixtures.remove(arch.name).with_context(|| format!("no fixture of {}", arch.name))?;
        let names: Vec<&str> = of.iter().map(|f| f.name.as_str()).collect();
        let mut counts: Vec<String> =
            of.iter().map(|f| format!("{} ({} layers)", f.n_dispatch, f.n_layer)).collect();
        counts.dedup();
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} |",
            arch.name,
            arch.models,
            names.join(", "),
            counts.join(", "),
            arch.lacks,
        );
    }
    ensure!(fixtures.is_empty(), "fixtures of no family: {:?}", fixtures.keys());
    let encoders = ARCHS.iter().filter(|arch| arch.is_encoder).map(|arch| format!("`{}`", arch.name));
    let encoders: Vec<String> = encoders.collect();
    let _ = writeln!(
        out,
        "\n{} architectures. {} of them are encoders ({}), which make embeddings and scores (`chaski embed`, `chaski rerank`) \
         and no text. Encoders of pictures and of sound are in files of their own, which are not read; neither are models that \
         are both encoder and decoder (T5).",
        ARCHS.len(),
        encoders.len(),
        encoders.join(", ")
    );
    Ok(out)
}

/// The fixtures of every architecture, by name.
fn fixtures() -> anyhow::Result<BTreeMap<String, Vec<Fixture>>> {
    let mut paths = Vec::new();
    for folder in ["fixtures/archs", "fixtures/encoders"].map(|folder| crate::root().join(folder)) {
        for entry in fs::read_dir(&folder).with_context(|| format!("could not read {}", folder.display()))? {
            paths.push(entry.with_context(|| format!("an entry of {}", folder.display()))?.path());
        }
    }
    paths.retain(|p| p.extension().is_some_and(|e| e == "json"));
    paths.sort();
    let mut out: BTreeMap<String, Vec<Fixture>> = BTreeMap::new();
    for path in paths {
        let name = path.file_stem().and_then(|s| s.to_str()).context("a fixture's name")?.to_owned();
        let text = fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
        let spec: Value = serde_json::from_str(&text).with_context(|| format!("{}", path.display()))?;
        let model = open(&spec).with_context(|| format!("the fixture {name}"))?;
        let fixture = measure(name.clone(), &model).with_context(|| format!("the fixture {name}"))?;
        out.entry(model.arch().name.to_owned()).or_default().push(fixture);
    }
    Ok(out)
}

fn measure(name: String, model: &Model<Hollow>) -> anyhow::Result<Fixture> {
    let graph = pollster::block_on(model.graph(64))?;
    let segments = plan_of(&graph)?;
    let token = segments.decode.first().context("a plan for a token")?;
    let n_dispatch = dispatches(&token.body).count() + token.head.len();
    Ok(Fixture { name, n_layer: segments.n_layer, n_dispatch })
}

fn plan_of(graph: &Graph) -> Result<Segments, PlanError> {
    let caps = Caps { subgroup: Some((32, 32)), f16: true, coherent: true, ..Caps::base() };
    let config = PlanConfig::new(64, 1, 64);
    let steps = fuse(graph, config.fusions);
    let mut groups = Groups::new(graph, &steps, &caps, &Streaming::default())?;
    plan(graph, &steps, &mut groups, &caps, &config)
}

/// A model file with real metadata whose weights all have one positive value, which RoPE factors require.
struct Hollow {
    head: Vec<u8>,
    len: u64,
}

impl ByteSource for Hollow {
    fn name(&self) -> &str {
        "fixture.gguf"
    }

    fn len(&self) -> u64 {
        self.len
    }

    async fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<(), SourceError> {
        SourceError::check_range(self.name(), self.len, offset, buf.len() as u64)?;
        buf.fill(0x3f);
        let rest = self.head.get(offset as usize..).unwrap_or(&[]);
        let n = rest.len().min(buf.len());
        buf[..n].copy_from_slice(&rest[..n]);
        Ok(())
    }
}

/// The model of a fixture, without its weights.
fn open(spec: &Value) -> anyhow::Result<Model<Hollow>> {
    let mut writer = GgufWriter::new();
    for (key, entry) in spec["kv"].as_object().context("`kv` must be an object")? {
        let value = value(entry).with_context(|| format!("the key {key}"))?;
        writer.set(key, value)?;
    }
    let mut len = 0;
    for t in spec["tensors"].as_array().context("`tensors` must be an array")? {
        let ne: Vec<u64> = serde_json::from_value(t["shape"].clone()).context("a shape")?;
        writer.tensor(t["name"].as_str().context("a tensor's name")?, &ne, GgmlType::F32)?;
        len += (4 * ne.iter().product::<u64>()).next_multiple_of(32);
    }
    let mut head = Vec::new();
    drop(writer.begin(&mut head)?);
    let source = Hollow { len: head.len() as u64 + len, head };
    let none = |name: &str| {
        Err(SourceError::Other { name: name.to_owned(), source: "a fixture has one file".into() })
    };
    Ok(pollster::block_on(Model::open(source, none))?)
}

/// A metadata value in the type that the fixture names.
fn value(entry: &Value) -> anyhow::Result<OwnedValue> {
    let v = entry["value"].clone();
    Ok(match entry["type"].as_str().context("a type")? {
        "uint32" => serde_json::from_value::<u32>(v)?.into(),
        "int32" => serde_json::from_value::<i32>(v)?.into(),
        "float32" => serde_json::from_value::<f32>(v)?.into(),
        "bool" => serde_json::from_value::<bool>(v)?.into(),
        "string" => serde_json::from_value::<String>(v)?.into(),
        "array:string" => serde_json::from_value::<Vec<String>>(v)?.into(),
        "array:uint32" => serde_json::from_value::<Vec<u32>>(v)?.into(),
        "array:int32" => serde_json::from_value::<Vec<i32>>(v)?.into(),
        "array:bool" => serde_json::from_value::<Vec<bool>>(v)?.into(),
        "array:float32" => serde_json::from_value::<Vec<f32>>(v)?.into(),
        other => bail!("fixtures have no values of type {other} so far"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_what_the_table_and_the_plans_give() {
        document(true).expect("a page that is not stale");
    }

    #[test]
    fn rows_say_what_a_plan_takes() {
        let page = page().expect("a page");
        // Five per layer, the embeddings and the logits.
        assert!(page.contains("| llama-gqa-rope_freqs, llama-linear, llama-moe, llama-plain,"), "{page}");
        let llama = page.lines().find(|l| l.starts_with("| `llama` |")).expect("a row");
        assert!(llama.contains("12 (2 layers)"), "{llama}");
    }
}
