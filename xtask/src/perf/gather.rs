//! Measurements: reading the folders of xtask/perf.sh, and keeping what the page shows.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Map, Value, json};

/// Fields kept of a record of `chaski bench -o json`, llama-bench, both batched benches, the comparison in a browser
/// and the bench page.
const KEPT: &[&str] = &[
    "build_commit",
    "build_number",
    "gpu_info",
    "cpu_info",
    "driver",
    "wgpu",
    "test_time",
    "model_type",
    "model_size",
    "n_threads",
    "n_prompt",
    "n_gen",
    "n_depth",
    "avg_ts",
    "stddev_ts",
    "load_ms",
    "compile_ms",
    "upload_ms",
    "host_us_per_token",
    "peak_gpu_bytes",
    "peak_process_bytes",
    "dispatches_per_token",
    "dispatches_per_layer",
    "feature_set",
    "profiles",
    "pp",
    "tg",
    "pl",
    "speed_pp",
    "speed_tg",
    "engine",
    "browser",
    "prefill_ts",
    "decode_ts",
    "first_ms",
    "peak_mib",
    "backends",
    "ablation",
    "n_ctx",
    "n_ubatch",
    "type_k",
    "type_v",
    "inputs",
    "memory",
    "heap_bytes",
    "floor_ms",
];

/// Adds the measurements in folders to those that there are: later ones replace earlier ones of the same name.
pub(super) fn merge(known: Value, folders: &[impl AsRef<Path>]) -> anyhow::Result<Value> {
    let mut all: BTreeMap<String, Value> =
        serde_json::from_value(known).context("measurements have names")?;
    for folder in folders {
        all.extend(gather(folder.as_ref())?);
    }
    Ok(json!(all))
}

/// All measurements in a folder, by name.
fn gather(folder: &Path) -> anyhow::Result<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| format!("could not list {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_none_or(|e| e != "json") {
            continue;
        }
        let name = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        let text = fs::read_to_string(&path)?;
        let value: Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        all.insert(name, trim(&value).with_context(|| path.display().to_string())?);
    }
    ensure!(!all.is_empty(), "{} holds no measurements", folder.display());
    Ok(all)
}

/// One measurement per line, for readable diffs.
pub(super) fn lines(all: &Value) -> anyhow::Result<String> {
    let all = all.as_object().context("measurements have names")?;
    let each: Vec<String> = all.iter().map(|(name, v)| format!("{}: {v}", json!(name))).collect();
    Ok(format!("{{\n{}\n}}\n", each.join(",\n")))
}

/// A measurement reduced to what the page shows.
fn trim(v: &Value) -> anyhow::Result<Value> {
    let kept = |r: &Map<String, Value>| -> Value {
        let fields = KEPT.iter().filter_map(|k| Some(((*k).to_owned(), r.get(*k)?.clone())));
        Value::Object(fields.collect())
    };
    let results = match &v["results"] {
        Value::Array(records) => {
            records.iter().filter_map(Value::as_object).map(kept).collect::<Vec<_>>().into()
        }
        object @ Value::Object(_) => object.clone(),
        _ => bail!("a measurement has `results`"),
    };
    let mut out = Map::new();
    for key in ["command", "program", "time", "wall_ms"] {
        if let Some(value) = v.get(key) {
            out.insert(key.into(), value.clone());
        }
    }
    out.insert("results".into(), results);
    Ok(out.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_are_cut_down_to_what_is_shown() {
        let v = json!({ "command": "c", "time": "t", "results": [{ "avg_ts": 1.5, "samples_ns": [1, 2] }] });
        let kept = trim(&v).expect("a measurement");
        assert_eq!(kept, json!({ "command": "c", "time": "t", "results": [{ "avg_ts": 1.5 }] }));
        assert!(trim(&json!([1])).is_err());
    }

    #[test]
    fn parts_of_several_runs_are_merged() {
        let dir = std::env::temp_dir().join(format!("chaski-perf-merge-{}", std::process::id()));
        let run = |folder: &str, name: &str, ts: f64| {
            let folder = dir.join(folder);
            fs::create_dir_all(&folder).expect("a folder");
            let v = json!({ "command": "c", "results": [{ "avg_ts": ts }] });
            fs::write(folder.join(format!("{name}.json")), v.to_string()).expect("a file");
            folder
        };
        let folders = [run("1", "a", 1.0), run("1", "b", 2.0), run("2", "b", 3.0)];
        let known = json!({ "a": { "results": [] }, "old": { "results": [] } });
        let all = merge(known, &[&folders[0], &folders[2]]).expect("measurements");
        let ts = |name: &str| all[name]["results"][0]["avg_ts"].as_f64();
        assert_eq!((ts("a"), ts("b"), ts("old")), (Some(1.0), Some(3.0), None));
        assert!(all.get("old").is_some(), "{all}");
        assert!(merge(json!({}), &[dir.join("3")]).is_err());
        fs::remove_dir_all(dir).expect("a folder to remove");
    }
}
