//! Models: tokens per second, and where the time goes.

use serde_json::Value;

use crate::perf::markdown::{count, gigabytes, missing_of, percent, rate, table};
use crate::perf::results::{Found, Results, number, test_name};

/// Tokens per second of llama.cpp by CUDA: of the same run, or of an earlier one with a star.
fn cuda(results: &Results<'_>, model: &str, r: &Value) -> String {
    let here = results.llama("llama-speed.", model, r);
    if here.is_finite() { count(here) } else { earlier(results, model, r, "cuda") }
}

fn earlier(results: &Results<'_>, model: &str, r: &Value, which: &str) -> String {
    let before = results.earlier(model, r, which);
    if before.is_finite() { format!("{} \\*", count(before)) } else { "-".into() }
}

/// Models of the parts `families` and `large` of xtask/perf.sh, by their presets.
const FAMILIES: [&str; 7] =
    ["lfm2-1.2b", "gemma3-4b", "phi3-mini", "qwen3-8b", "gpt-oss-20b", "qwen3-30b-a3b", "llama3.3-70b"];

/// A line for those of [`FAMILIES`] that were not measured.
pub(crate) fn families(results: &Results<'_>) -> String {
    let known = results.models("speed.");
    let is_gone = |preset: &&str| !known.iter().any(|model| model.starts_with(*preset));
    let gone: Vec<&str> = FAMILIES.into_iter().filter(is_gone).collect();
    if gone.is_empty() { String::new() } else { missing_of(&gone.join(", "), "\"families large\"") }
}

pub(crate) fn speed(results: &Results<'_>) -> String {
    let mut rows = Vec::new();
    for model in results.models("speed.") {
        for r in results.of("speed.", model) {
            let answer = r["n_gen"].as_u64() > Some(0);
            let floor = results.peak("read_bytes_per_s") / number(&r["model_size"]);
            rows.push(vec![
                format!("{model} ({})", gigabytes(&r["model_size"])),
                test_name(r),
                rate(r),
                cuda(results, model, r),
                earlier(results, model, r, "vulkan"),
                if answer { count(floor) } else { String::new() },
                if answer { percent(number(&r["avg_ts"]), floor) } else { String::new() },
            ]);
        }
    }
    let head = ["model", "test", "chaski", "llama.cpp CUDA", "llama.cpp Vulkan", "memory floor", "of it"];
    table("models", &head, 1, &rows)
}

/// Every profile: model, profile.
fn profiles<'a>(results: &Results<'a>) -> Vec<Found<'a>> {
    let mut out = Vec::new();
    for model in results.models("speed.") {
        for r in results.of("speed.", model) {
            out.extend(r["profiles"].as_array().into_iter().flatten().map(|p| (model, p)));
        }
    }
    out
}

/// `a token at 0` or `512 tokens at 2048`.
fn run_name(p: &Value) -> String {
    match p["n_col"].as_u64() {
        Some(1) => format!("a token at {}", p["pos"]),
        _ => format!("{} tokens at {}", p["n_col"], p["pos"]),
    }
}

pub(crate) fn roofline(results: &Results<'_>) -> String {
    let mut rows = Vec::new();
    for (model, p) in profiles(results) {
        let all: Vec<&Value> = p["rows"].as_array().into_iter().flatten().collect();
        let sum = |key: &str| all.iter().map(|r| number(&r[key])).sum::<f64>();
        let (us, n_byte, n_op) = (sum("us"), sum("bytes"), sum("operations"));
        let of_unit = |u: &str| -> f64 {
            all.iter().filter(|r| r["unit"] == u).map(|r| number(&r["operations"])).sum()
        };
        let unit = ["f32", "f16", "i8", "coop"].into_iter().max_by(|a, b| of_unit(a).total_cmp(&of_unit(b)));
        let unit = unit.unwrap_or("f32");
        let (rate, op_rate) = (n_byte / us * 1e6, n_op / us * 1e6);
        rows.push(vec![
            model.to_owned(),
            run_name(p),
            format!("{us:.0}"),
            format!("{:.3}", n_byte / 1e9),
            format!("{:.1}", n_op / 1e9),
            percent(rate, results.peak("read_bytes_per_s")),
            format!("{} ({unit})", percent(op_rate, results.unit(unit))),
        ]);
    }
    let head = ["model", "run", "µs", "GB", "G operations", "of bandwidth", "of rate"];
    table("models", &head, 1, &rows)
}

pub(crate) fn split(results: &Results<'_>) -> String {
    let mut rows = Vec::new();
    let mut parts: Vec<(f64, String)> = Vec::new();
    let profiles = profiles(results);
    let share = |p: &Value, part: &str| -> f64 {
        let of = |f: &dyn Fn(&Value) -> bool| -> f64 {
            let rows = p["rows"].as_array().into_iter().flatten();
            rows.filter(|r| f(r)).map(|r| number(&r["us"])).sum()
        };
        100.0 * of(&|r| r["part"] == part) / of(&|_| true)
    };
    for (_, p) in &profiles {
        for r in p["rows"].as_array().into_iter().flatten() {
            let part = r["part"].as_str().unwrap_or("?");
            if !parts.iter().any(|(_, known)| known == part) {
                parts.push((profiles.iter().map(|(_, p)| share(p, part)).sum(), part.to_owned()));
            }
        }
    }
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (model, p) in &profiles {
        let mut row = vec![(*model).to_owned(), run_name(p)];
        row.extend(parts.iter().map(|(_, part)| match share(p, part) {
            0.0 => String::new(),
            s => format!("{s:.1}"),
        }));
        rows.push(row);
    }
    let mut head = vec!["model", "run, %"];
    head.extend(parts.iter().map(|(_, part)| part.as_str()));
    table("models", &head, 1, &rows)
}

/// Kernels of a token of the first model.
pub(crate) fn kernels(results: &Results<'_>) -> String {
    let first = results.first().unwrap_or_default();
    let found = profiles(results).into_iter().find(|(m, p)| *m == first && p["n_col"] == 1 && p["pos"] == 0);
    let cells = |r: &Value| {
        let text = |key: &str| r[key].as_str().unwrap_or("?").to_owned();
        let of =
            |key: &str| if r[key].is_number() { format!("{:.1} %", number(&r[key])) } else { "-".into() };
        vec![
            text("part"),
            format!("`{}`", text("kernel")),
            r["count"].to_string(),
            format!("{:.1}", number(&r["us"])),
            count(number(&r["bytes"]) / number(&r["us"]) / 1e3),
            of("percent_of_read"),
            format!("{} {}", of("percent_of_unit"), text("unit")),
            text("bound"),
            of("percent_of_bound"),
        ]
    };
    let rows = found.and_then(|(_, p)| p["rows"].as_array());
    let rows: Vec<_> = rows.into_iter().flatten().map(cells).collect();
    let head =
        ["part", "kernel", "count", "µs", "GB/s", "of bandwidth", "of rate", "bound by", "of that bound"];
    table("models", &head, 1, &rows)
}

/// The CPU's part of a token on the GPU.
pub(crate) fn host(results: &Results<'_>) -> String {
    let mut rows = Vec::new();
    for model in results.models("speed.") {
        for r in results.of("speed.", model) {
            let host = number(&r["host_us_per_token"]);
            if !host.is_finite() {
                continue;
            }
            let whole = 1e6 / number(&r["avg_ts"]);
            rows.push(vec![
                model.to_owned(),
                test_name(r),
                r["dispatches_per_token"].to_string(),
                format!("{:.1}", number(&r["dispatches_per_layer"])),
                format!("{host:.0}"),
                format!("{whole:.0}"),
                percent(host, whole),
            ]);
        }
    }
    let head = ["model", "test", "dispatches", "a layer", "CPU, µs a token", "token, µs", "share"];
    table("models", &head, 1, &rows)
}
