//! Results as statements of SQL, in the table that llama-bench makes, so that results of both can be in one.

use std::io::{self, Write};

use serde_json::{Map, Value};

/// The type of a column.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    Integer,
    Real,
}

use Type::{Integer, Real, Text};

/// The fields of llama-bench, in its order.
pub(super) const FIELDS: [(&str, Type); 40] = [
    ("build_commit", Text),
    ("build_number", Integer),
    ("cpu_info", Text),
    ("gpu_info", Text),
    ("backends", Text),
    ("model_filename", Text),
    ("model_type", Text),
    ("model_size", Integer),
    ("model_n_params", Integer),
    ("n_batch", Integer),
    ("n_ubatch", Integer),
    ("n_threads", Integer),
    ("cpu_mask", Text),
    ("cpu_strict", Integer),
    ("poll", Integer),
    ("type_k", Text),
    ("type_v", Text),
    ("n_gpu_layers", Integer),
    ("n_cpu_moe", Integer),
    ("split_mode", Text),
    ("main_gpu", Integer),
    ("no_kv_offload", Integer),
    ("flash_attn", Integer),
    ("devices", Text),
    ("tensor_split", Text),
    ("tensor_buft_overrides", Text),
    ("load_mode", Text),
    ("embeddings", Integer),
    ("no_op_offload", Integer),
    ("no_host", Integer),
    ("fit_target", Integer),
    ("fit_min_ctx", Integer),
    ("n_prompt", Integer),
    ("n_gen", Integer),
    ("n_depth", Integer),
    ("test_time", Text),
    ("avg_ns", Integer),
    ("stddev_ns", Integer),
    ("avg_ts", Real),
    ("stddev_ts", Real),
];

/// The name of the table.
const TABLE: &str = "llama_bench";

/// Writes the statement that makes the table.
pub(super) fn head(out: &mut impl Write) -> io::Result<()> {
    let column = |(name, ty): &(&str, Type)| {
        let ty = match ty {
            Text => "TEXT",
            Integer => "INTEGER",
            Real => "REAL",
        };
        format!("  {name} {ty}")
    };
    let columns: Vec<String> = FIELDS.iter().map(column).collect();
    writeln!(out, "CREATE TABLE IF NOT EXISTS {TABLE} (\n{}\n);\n", columns.join(",\n"))
}

/// Writes the statement that adds a row.
pub(super) fn row(out: &mut impl Write, fields: &Map<String, Value>) -> io::Result<()> {
    let names: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
    let values: Vec<String> = names.iter().map(|name| literal(fields.get(*name))).collect();
    writeln!(out, "INSERT INTO {TABLE} ({}) VALUES ({});", names.join(", "), values.join(", "))
}

fn literal(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => return "NULL".into(),
        Some(Value::Bool(b)) => u8::from(*b).to_string(),
        Some(Value::String(s)) => s.clone(),
        Some(v) => v.to_string(),
    };
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quotes_in_names_end_no_text() {
        let fields = json!({ "model_filename": "it's.gguf", "avg_ts": 1.5, "cpu_strict": false });
        let mut out = Vec::new();
        row(&mut out, fields.as_object().unwrap()).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("'it''s.gguf'") && text.contains("'1.5'") && text.contains("'0'"), "{text}");
        assert!(
            text.starts_with("INSERT INTO llama_bench (build_commit, ") && text.contains("NULL"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1);
    }
}
