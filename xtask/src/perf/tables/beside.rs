//! Tables with llama.cpp's numbers beside ours: batches, depths, the CPU and browsers.

use serde_json::Value;

use crate::perf::markdown::{count, milliseconds, ratio, table};
use crate::perf::results::{Results, distinct, mean_where, number, only};

/// Ours, theirs and their ratio.
fn pair(ours: f64, theirs: f64) -> [String; 3] {
    [count(ours), count(theirs), ratio(ours, theirs)]
}

/// Several sequences at once.
pub(crate) fn batches(results: &Results<'_>) -> String {
    let mut rows = Vec::new();
    for model in results.models("batches.") {
        let (ours, theirs) = (results.of("batches.", model), results.of("llama-batches.", model));
        for n in distinct(&ours, "pl") {
            let of = |field: &str| {
                pair(mean_where(&ours, ("pl", n), field), mean_where(&theirs, ("pl", n), field))
            };
            let row = [vec![model.to_owned(), n.to_string()], of("speed_tg").into(), of("speed_pp").into()];
            rows.push(row.concat());
        }
    }
    let head = [
        "model",
        "sequences",
        "answers, tokens/s",
        "llama.cpp",
        "ratio",
        "prompts, tokens/s",
        "llama.cpp",
        "ratio",
    ];
    table("batches", &head, 0, &rows)
}

/// Rows by a field of llama-bench's records: answers and prompts.
fn by(results: &Results<'_>, prefix: &str, field: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for model in results.models(prefix) {
        let (ours, theirs) = (results.of(prefix, model), results.of(&format!("llama-{prefix}"), model));
        for n in distinct(&ours, field) {
            let of = |answers: bool| {
                let speed = |records: &[&Value]| mean_where(&only(records, answers), (field, n), "avg_ts");
                pair(speed(&ours), speed(&theirs))
            };
            rows.push([vec![model.to_owned(), n.to_string()], of(true).into(), of(false).into()].concat());
        }
    }
    rows
}

/// Prompts and answers after long contexts.
pub(crate) fn depths(results: &Results<'_>) -> String {
    let head = [
        "model",
        "depth",
        "answers, tokens/s",
        "llama.cpp",
        "ratio",
        "prompts, tokens/s",
        "llama.cpp",
        "ratio",
    ];
    table("depths", &head, 0, &by(results, "depths.", "n_depth"))
}

/// Prompts and answers on the CPU.
pub(crate) fn cpu(results: &Results<'_>) -> String {
    let head = [
        "model",
        "threads",
        "answers, tokens/s",
        "llama.cpp",
        "ratio",
        "prompts, tokens/s",
        "llama.cpp",
        "ratio",
    ];
    table("cpu", &head, 0, &by(results, "cpu.", "n_threads"))
}

/// Engines in a browser.
pub(crate) fn browser(results: &Results<'_>) -> String {
    let row = |r: &Value| {
        vec![
            r["engine"].as_str().unwrap_or("?").to_owned(),
            count(number(&r["prefill_ts"])),
            count(number(&r["decode_ts"])),
            milliseconds(number(&r["load_ms"])),
            milliseconds(number(&r["first_ms"])),
            count(number(&r["peak_mib"])),
        ]
    };
    let rows: Vec<_> = results.records("browser").into_iter().map(|(_, r)| row(r)).collect();
    let head = ["engine", "prompts, tokens/s", "answers, tokens/s", "load", "first prompt", "MiB at most"];
    table("browser", &head, 0, &rows)
}
