//! Tables of docs/web.md: models in the bench page, with the run that each table is of.

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::perf::markdown::{gigabytes, milliseconds, missing, percent, rate, table};
use crate::perf::results::{Results, Run, number, test_name};

/// The lines in docs/web.md between which the tables are.
const BEGIN: &str = "<!-- Tables by `cargo xtask perf-doc`, from docs/performance/results.json. -->";
const END: &str = "<!-- Here end the tables of `cargo xtask perf-doc`. -->";

/// docs/web.md with the tables of these measurements.
///
/// # Errors
/// The page lacks the lines between which they are.
pub(crate) fn within(page: &str, results: &Results<'_>) -> anyhow::Result<String> {
    let (before, rest) = page.split_once(BEGIN).with_context(|| format!("docs/web.md lacks {BEGIN}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("docs/web.md lacks {END}"))?;
    ensure!(!after.contains(BEGIN), "docs/web.md has {BEGIN} twice");
    Ok(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", sections(results)))
}

fn sections(results: &Results<'_>) -> String {
    let all: Vec<String> =
        results.named("page.").into_iter().map(|(_, measured)| section(measured)).collect();
    if all.is_empty() { missing("page") } else { all.join("\n\n") }
}

/// One run of the page.
fn section(measured: &Value) -> String {
    let records: Vec<&Value> = measured["results"].as_array().into_iter().flatten().collect();
    let text = |key: &str| records.first().and_then(|r| r[key].as_str()).unwrap_or("?");
    let Run { date, program, cpu, device, .. } = Run::of(measured);
    let device = if text("backends") == "CPU" { format!("the CPU ({cpu})") } else { device };
    let command = measured["command"].as_str().unwrap_or("?");
    let head = format!("{date}, {program}, {} on {device}; `{command}`:", text("browser"));
    let (plain, ablated): (Vec<_>, Vec<_>) = records.iter().partition(|r| r["ablation"].is_null());
    let mut parts = vec![head, speeds(&plain), held(&plain)];
    if !ablated.is_empty() {
        parts.push(ablations(&plain, &ablated));
    }
    parts.join("\n\n")
}

/// Settings of an engine other than its defaults.
fn settings(r: &Value) -> String {
    let word = |key: &str| r[key].as_str().unwrap_or("auto");
    let mut parts = Vec::new();
    if let Some(chunk) = r["n_ubatch"].as_u64().filter(|n| *n != 512) {
        parts.push(format!("chunk {chunk}"));
    }
    if word("type_k") != "auto" {
        parts.push(format!("KV {}/{}", word("type_k"), word("type_v")));
    }
    if word("inputs") != "auto" {
        parts.push(format!("inputs {}", word("inputs")));
    }
    parts.join(", ")
}

fn model(r: &Value) -> String {
    r["model_type"].as_str().unwrap_or("?").to_owned()
}

fn speeds(plain: &[&&Value]) -> String {
    let row = |r: &&&Value| vec![model(r), settings(r), test_name(r), rate(r)];
    let rows: Vec<_> = plain.iter().map(row).collect();
    table("page", &["model", "with", "test", "tokens/s"], 2, &rows)
}

/// Loading and memory, once for each engine.
fn held(plain: &[&&Value]) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for r in plain {
        let items = r["memory"].as_object().into_iter().flatten();
        let items: Vec<String> = items.map(|(name, n)| format!("{name} {}", gigabytes(n))).collect();
        let of_token = &r["floor_ms"]["token"];
        let row = vec![
            model(r),
            settings(r),
            r["n_ctx"].as_u64().map_or("-".into(), |n| n.to_string()),
            items.join(", "),
            gigabytes(&r["heap_bytes"]),
            milliseconds(number(&r["load_ms"])),
            milliseconds(number(of_token)),
        ];
        if !rows.iter().any(|known| known[..3] == row[..3]) {
            rows.push(row);
        }
    }
    let head = [
        "model",
        "with",
        "context",
        "memory",
        "WebAssembly's",
        "load",
        "a readback behind a token's empty dispatches",
    ];
    table("page", &head, 3, &rows)
}

/// Answers without something that the engine does by itself.
fn ablations(plain: &[&&Value], ablated: &[&&Value]) -> String {
    let same =
        |a: &Value, b: &Value| (model(a), settings(a), test_name(a)) == (model(b), settings(b), test_name(b));
    let row = |r: &&&Value| {
        let whole = plain.iter().find(|p| same(p, r)).map_or(f64::NAN, |p| number(&p["avg_ts"]));
        let name = r["ablation"].as_str().unwrap_or("?").to_owned();
        vec![name, model(r), settings(r), test_name(r), rate(r), percent(number(&r["avg_ts"]), whole)]
    };
    let rows: Vec<_> = ablated.iter().map(row).collect();
    table("page", &["ablation", "model", "with", "test", "tokens/s", "of the plain run"], 3, &rows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn measured() -> Value {
        let row = |n_prompt: u32, n_gen: u32, ts: f64, ablation: Value| {
            json!({
                "model_type": "m", "n_prompt": n_prompt, "n_gen": n_gen, "n_depth": 64, "avg_ts": ts, "stddev_ts": 0.5, "ablation": ablation,
                "n_ubatch": 8, "type_k": "f16", "type_v": "q8_0", "inputs": "auto", "memory": { "weights": 4_000_000 }, "heap_bytes": 2_000_000,
                "n_ctx": 98, "load_ms": 50, "floor_ms": null, "backends": "CPU", "cpu_info": "C", "browser": "Chrome/1", "build_commit": "abc1234",
            })
        };
        let rows = [
            row(32, 0, 1000.0, Value::Null),
            row(0, 8, 200.0, Value::Null),
            row(0, 8, 50.0, "no pipeline".into()),
        ];
        json!({ "page.x": { "command": "node bench/measure.js", "program": "chaski", "time": "2026-11-29T17:00:00Z", "results": rows } })
    }

    fn page_of(all: &Value) -> String {
        let results = Results { all, peers: &Value::Null };
        within(&format!("a\n{BEGIN}\nold\n{END}\nb\n"), &results).expect("a page with both lines")
    }

    #[test]
    fn measurements_of_the_page_become_tables_with_date_and_commit() {
        let page = page_of(&measured());
        assert!(page.starts_with("a\n") && page.ends_with("\nb\n") && !page.contains("old"), "{page}");
        for line in [
            "2026-11-29, chaski abc1234, Chrome/1 on the CPU (C); `node bench/measure.js`:",
            "| m | chunk 8, KV f16/q8_0 | pp32 @ d64 | 1,000 ± 0.5 |",
            "| m | chunk 8, KV f16/q8_0 | 98 | weights 4 MB | 2 MB | 50.0 ms | - |",
            "| no pipeline | m | chunk 8, KV f16/q8_0 | tg8 @ d64 | 50.0 ± 0.5 | 25.0 % |",
        ] {
            assert!(page.contains(line), "{line} in {page}");
        }
        // Once is enough, and twice is the same.
        assert_eq!(page.matches("weights").count(), 1);
        let results = Results { all: &measured(), peers: &Value::Null };
        assert_eq!(within(&page, &results).expect("the lines are kept"), page);
    }

    #[test]
    fn without_measurements_the_page_says_which_command_makes_them() {
        assert!(page_of(&json!({})).contains("PARTS=page xtask/perf.sh CHASKI OUT"));
        let results = Results { all: &json!({}), peers: &Value::Null };
        assert!(within("no lines", &results).is_err());
    }
}
