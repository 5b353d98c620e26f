//! From the start of the program to the first token.

use crate::perf::markdown::{count, gigabytes, milliseconds, ratio, table};
use crate::perf::results::{Results, median, number};

pub(crate) fn start(results: &Results<'_>) -> String {
    let mut rows = Vec::new();
    for model in results.models("start-cold.") {
        for (prefix, name) in [("start-cold.", "cold"), ("start-warm.", "warm")] {
            for r in results.of(prefix, model) {
                let ms = |key: &str| milliseconds(number(&r[key]));
                rows.push(vec![
                    model.to_owned(),
                    name.to_owned(),
                    ms("load_ms"),
                    ms("compile_ms"),
                    ms("upload_ms"),
                    gigabytes(&r["peak_process_bytes"]),
                    gigabytes(&r["peak_gpu_bytes"]),
                ]);
            }
        }
    }
    let head = [
        "model",
        "start",
        "load",
        "kernels ready after",
        "weights sent after",
        "process memory",
        "device memory",
    ];
    table("models", &head, 1, &rows)
}

/// Loads of a file that the system holds in memory: medians of three.
pub(crate) fn loading(results: &Results<'_>) -> String {
    let mut rows = Vec::new();
    for model in results.models("load-1.") {
        let each = |prefix: &str| [1, 2, 3].map(|i| format!("{prefix}{i}."));
        let of_record = |key: &str| {
            let records = each("load-").into_iter().flat_map(|prefix| results.of(&prefix, model));
            median(records.map(|r| number(&r[key])))
        };
        let whole = |prefix: &str| {
            let all = each(prefix).into_iter().flat_map(|prefix| results.named(&prefix));
            median(all.filter(|(m, _)| *m == model).map(|(_, v)| number(&v["wall_ms"])))
        };
        let (size, load) = (of_record("model_size"), of_record("load_ms"));
        let (ours, theirs) = (whole("load-"), whole("llama-load-"));
        rows.push(vec![
            format!("{model} ({})", gigabytes(&size.into())),
            milliseconds(load),
            count(size / load / 1e6),
            milliseconds(of_record("compile_ms")),
            milliseconds(of_record("upload_ms")),
            milliseconds(ours),
            milliseconds(theirs),
            ratio(theirs, ours),
        ]);
    }
    let head = [
        "model",
        "load",
        "GB/s",
        "kernels ready after",
        "weights sent after",
        "whole program",
        "llama.cpp's",
        "times as fast",
    ];
    table("loading", &head, 0, &rows)
}
