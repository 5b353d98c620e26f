//! The device by itself, and its products with each format.

use crate::perf::markdown::{count, percent, table};
use crate::perf::results::{Results, number};
use serde_json::Value;

pub(crate) fn peaks(results: &Results<'_>) -> String {
    if results.all["peaks"].is_null() {
        return table("peaks", &[], 0, &[]);
    }
    let row = |what: &str, value: String| vec![what.to_owned(), value];
    let bandwidth = |key| format!("{} GB/s", count(results.peak(key) / 1e9));
    let micros = |key| format!("{:.2} µs", results.peak(key) * 1e6);
    let mut rows = vec![
        row("memory, read", bandwidth("read_bytes_per_s")),
        row("memory, copied (read and written)", bandwidth("copy_bytes_per_s")),
    ];
    let units = [
        ("f32", "f32 multiply-adds"),
        ("f16", "f16 multiply-adds"),
        ("i8", "dot products of four bytes"),
        ("coop", "cooperative matrices, f16 to f32"),
    ];
    for (unit, what) in units {
        let r = results.unit(unit);
        rows.push(row(what, if r.is_finite() { format!("{:.1} T/s", r / 1e12) } else { "none".into() }));
    }
    rows.push(row("dispatch that waits for the last, device", micros("dependent_dispatch_s")));
    rows.push(row("dispatch that waits for none, device", micros("independent_dispatch_s")));
    rows.push(row("dispatch, CPU", micros("host_dispatch_s")));
    rows.push(row("dispatch and readback", micros("round_trip_s")));
    table("peaks", &["measured", "best"], 0, &rows)
}

/// Products of one shape side by side, by format.
pub(crate) fn products(results: &Results<'_>) -> String {
    let all = results.all["formats"]["results"]["formats"].as_array().map_or(&[][..], Vec::as_slice);
    let rate = |r: &Value| number(&r["bytes_per_second"]);
    let tuned = |r: &Value| number(&r["bytes_per_second_tuned"]);
    let plain = all.iter().find(|r| r["format"] == "f16");
    let (plain, plain_tuned) = plain.map_or((f64::NAN, f64::NAN), |r| (rate(r), tuned(r)));
    let mut rows: Vec<(f64, Vec<String>)> = all
        .iter()
        .map(|r| {
            let row = vec![
                format!("`{}`", r["format"].as_str().unwrap_or_default()),
                count(rate(r) / 1e9),
                percent(rate(r), plain),
                count(tuned(r) / 1e9),
                percent(tuned(r), plain_tuned),
                percent(number(&r["bytes_per_second_i8_tuned"]), plain_tuned),
                count(number(&r["weights_per_second"]) / rate(r) * tuned(r) / 1e12),
            ];
            (tuned(r), row)
        })
        .collect();
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    let head = [
        "format",
        "GB/s",
        "of f16's",
        "tuned, GB/s",
        "of f16's",
        "tuned, inputs in 8 bits",
        "tuned, 10^12 weights/s",
    ];
    table("peaks", &head, 0, &rows)
}

/// Format of gate and up, and their bytes and weights per second with these inputs; `None` if not measured.
fn gate_up<'a>(results: &Results<'a>, inputs: &str, mix: &str) -> Option<(&'a str, f64, f64)> {
    let profiles =
        results.of(&format!("format-{inputs}."), mix).into_iter().flat_map(|r| r["profiles"].as_array());
    let rows = profiles.flatten().filter_map(|p| p["rows"].as_array()).flatten();
    let row = rows.into_iter().find(|r| r["part"] == "gate_up")?;
    let format = row["kernel"].as_str()?.split('.').nth(1)?;
    let a_second = |n: f64| n / number(&row["us"]) * 1e6;
    Some((format, a_second(number(&row["weight_bytes"])), a_second(number(&row["operations"]) / 2.0)))
}

/// Products of one shape within a model, by format.
pub(crate) fn formats(results: &Results<'_>) -> String {
    let plain = gate_up(results, "i16", "f16").map_or(f64::NAN, |(_, rate, _)| rate);
    let mut rows = Vec::new();
    for (mix, _) in results.records("format-i16.") {
        let Some((format, rate, weights)) = gate_up(results, "i16", mix) else { continue };
        let rounded = gate_up(results, "i8", mix).map_or(f64::NAN, |(_, rate, _)| rate);
        rows.push((
            rate,
            vec![
                format!("`{format}`"),
                count(rate / 1e9),
                percent(rate, plain),
                percent(rounded, plain),
                count(weights / 1e12),
            ],
        ));
    }
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    table("formats", &["format", "GB/s", "of f16's", "with inputs in 8 bits", "10^12 weights/s"], 0, &rows)
}
