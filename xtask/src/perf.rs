//! `perf-doc`: generates docs/performance.md from the output of xtask/perf.sh.
//!
//! Measurements are stored in docs/performance/results.json, reduced to what the page shows; the text is in
//! docs/performance/template.md, other engines' numbers in docs/performance/llama.cpp.json. The page is a function of
//! these three, and a test compares it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Map, Value, json};

/// Fields kept of a record of `chaski bench -o json`.
const KEPT: &[&str] = &[
    "build_commit",
    "gpu_info",
    "cpu_info",
    "driver",
    "wgpu",
    "test_time",
    "model_type",
    "model_size",
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
];

/// Reads a folder of measurements, if given, and writes or checks the page.
pub(crate) fn document(measured: Option<&Path>, check: bool) -> anyhow::Result<()> {
    let docs = crate::root().join("docs");
    let results = docs.join("performance/results.json");
    if let Some(folder) = measured {
        ensure!(!check, "`--check` looks at what is in the repository: give no folder with it");
        fs::write(&results, lines(&gather(folder)?)?)?;
    }
    let read =
        |path: &Path| fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()));
    let page = render(
        &read(&docs.join("performance/template.md"))?,
        &serde_json::from_str(&read(&results)?).context("results.json")?,
        &serde_json::from_str(&read(&docs.join("performance/llama.cpp.json"))?).context("llama.cpp.json")?,
    )?;
    let path = docs.join("performance.md");
    if check {
        ensure!(read(&path)? == page, "docs/performance.md is stale: run `cargo xtask perf-doc`");
    } else {
        fs::write(&path, page)?;
        println!("{} is written", path.display());
    }
    Ok(())
}

/// All measurements in a folder, by name.
fn gather(folder: &Path) -> anyhow::Result<Value> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| format!("could not list {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_none_or(|e| e != "json") {
            continue;
        }
        let name = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        let text = fs::read_to_string(&path)?;
        let value: Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        all.insert(name, trim(&value)?);
    }
    ensure!(!all.is_empty(), "{} holds no measurements", folder.display());
    Ok(json!(all))
}

/// One measurement per line, for readable diffs.
fn lines(all: &Value) -> anyhow::Result<String> {
    let all = all.as_object().context("measurements have names")?;
    let each: Vec<String> = all.iter().map(|(name, v)| format!("{}: {v}", json!(name))).collect();
    Ok(format!("{{\n{}\n}}\n", each.join(",\n")))
}

/// Columns of tables of formats.
const RATES: [&str; 5] = ["format", "GB/s", "of f16's", "with inputs in 8 bits", "10^12 weights/s"];
/// Columns for products side by side, which are also tuned.
const SIDE_BY_SIDE: [&str; 7] = [
    "format",
    "GB/s",
    "of f16's",
    "tuned, GB/s",
    "of f16's",
    "tuned, inputs in 8 bits",
    "tuned, 10^12 weights/s",
];

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
    Ok(json!({ "command": v["command"], "results": results }))
}

/// Fills the template.
fn render(template: &str, results: &Value, peers: &Value) -> anyhow::Result<String> {
    let page = Page { results, peers };
    let parts: [(&str, String); 16] = [
        (
            "generated",
            "<!-- Written by `cargo xtask perf-doc` from docs/performance/: edit the template there. -->"
                .into(),
        ),
        ("device", page.device()?),
        ("first", page.first()?),
        ("peaks", page.peaks()),
        ("speed_command", page.command("speed.")),
        ("peers", page.peers()),
        ("speed", page.speed()),
        ("roofline", page.roofline()),
        ("split", page.split()),
        ("kernels", page.kernels()),
        ("products", page.products()),
        ("formats", page.formats()),
        ("ablation", page.ablation()),
        ("features", page.features()),
        ("host", page.host()),
        ("start", page.start()),
    ];
    let mut text = template.to_owned();
    for (name, value) in parts {
        let mark = format!("{{{{{name}}}}}");
        ensure!(text.contains(&mark), "the template lacks {mark}");
        text = text.replace(&mark, &value);
    }
    ensure!(!text.contains("{{"), "the template has a mark that nothing fills");
    Ok(filled(&text))
}

/// Rewraps paragraphs to the width of the other documents; tables and commands are unchanged.
fn filled(text: &str) -> String {
    const WIDTH: usize = 120;
    let mut out = String::new();
    let (mut code, mut used) = (false, 0);
    for line in text.lines() {
        let fence = line.starts_with("```");
        if fence || code || line.is_empty() || line.starts_with(['|', '#', '<']) {
            code ^= fence;
            out += if used > 0 { "\n" } else { "" };
            out += line;
            out.push('\n');
            used = 0;
            continue;
        }
        for word in line.split_whitespace() {
            let n = word.chars().count();
            if used > 0 && used + 1 + n > WIDTH {
                out.push('\n');
                used = 0;
            }
            if used > 0 {
                out.push(' ');
                used += 1;
            }
            out += word;
            used += n;
        }
    }
    out + if used > 0 { "\n" } else { "" }
}

struct Page<'a> {
    results: &'a Value,
    peers: &'a Value,
}

/// A record and the name of its model, such as `llama3.2-1b-q4_k_m`.
type Found<'a> = (&'a str, &'a Value);

fn number(v: &Value) -> f64 {
    v.as_f64().unwrap_or(f64::NAN)
}

fn test_name(r: &Value) -> String {
    let n = |key: &str| r[key].as_u64().unwrap_or(0);
    let name = if n("n_gen") > 0 { format!("tg{}", n("n_gen")) } else { format!("pp{}", n("n_prompt")) };
    if n("n_depth") > 0 { format!("{name} @ d{}", n("n_depth")) } else { name }
}

/// Integers with thousands separators, small numbers with one more digit.
fn count(x: f64) -> String {
    if !x.is_finite() {
        return "-".into();
    }
    if x < 100.0 {
        return format!("{x:.1}");
    }
    let digits = format!("{x:.0}");
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    out
}

fn percent(part: f64, whole: f64) -> String {
    let p = 100.0 * part / whole;
    if p.is_finite() { format!("{p:.1} %") } else { "-".into() }
}

fn gigabytes(v: &Value) -> String {
    let b = number(v);
    if !b.is_finite() {
        return "-".into();
    }
    if b >= 1e9 { format!("{:.2} GB", b / 1e9) } else { format!("{:.0} MB", b / 1e6) }
}

fn rate(r: &Value) -> String {
    let (mean, deviation) = (number(&r["avg_ts"]), number(&r["stddev_ts"]));
    format!(
        "{} ± {}",
        count(mean),
        if deviation < 10.0 { format!("{deviation:.1}") } else { count(deviation) }
    )
}

/// A Markdown table; the first column and `left` more are left-aligned.
fn table(head: &[&str], left: usize, rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return "Not measured.".into();
    }
    let mut out = format!("| {} |\n|", head.join(" | "));
    for i in 0..head.len() {
        out.push_str(if i <= left { " --- |" } else { " ---: |" });
    }
    for row in rows {
        let _ = write!(out, "\n| {} |", row.join(" | "));
    }
    out
}

impl<'a> Page<'a> {
    /// Records of measurements with this prefix, and the rest of their names.
    fn records(&self, prefix: &str) -> Vec<Found<'a>> {
        let Some(all) = self.results.as_object() else { return Vec::new() };
        let named = all.iter().filter_map(|(name, v)| Some((name.strip_prefix(prefix)?, v)));
        named
            .flat_map(|(model, v)| v["results"].as_array().into_iter().flatten().map(move |r| (model, r)))
            .collect()
    }

    /// Models in order of size.
    fn models(&self) -> Vec<&'a str> {
        let mut sizes: Vec<(u64, &str)> =
            self.records("speed.").iter().map(|(m, r)| (r["model_size"].as_u64().unwrap_or(0), *m)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes.into_iter().map(|(_, m)| m).collect()
    }

    fn of(&self, prefix: &str, model: &str) -> Vec<&'a Value> {
        self.records(prefix).into_iter().filter(|(m, _)| *m == model).map(|(_, r)| r).collect()
    }

    fn command(&self, prefix: &str) -> String {
        let all = self.results.as_object();
        let found = all.and_then(|all| all.iter().find(|(name, _)| name.starts_with(prefix)));
        let text = found.and_then(|(name, v)| {
            let model = name.strip_prefix(prefix)?;
            Some(v["command"].as_str()?.replace(&format!("{model}.gguf"), "MODEL.gguf"))
        });
        text.map_or("Not measured".into(), |t| format!("`{t}`"))
    }

    /// The model whose variations are measured.
    fn first(&self) -> anyhow::Result<String> {
        let found = self.records("checked.");
        let (model, _) = found.first().context("no measurement begins with `checked.`")?;
        Ok((*model).to_owned())
    }

    fn device(&self) -> anyhow::Result<String> {
        let speed = self.records("speed.");
        let (_, r) = speed.first().context("no measurement begins with `speed.`")?;
        let text = |key: &str| r[key].as_str().unwrap_or("?").to_owned();
        let day = text("test_time").chars().take(10).collect::<String>();
        Ok(format!(
            "one {} ({}, wgpu {}) with {}, on {day}, commit {}",
            text("gpu_info"),
            text("driver"),
            text("wgpu"),
            text("cpu_info"),
            text("build_commit")
        ))
    }

    fn peak(&self, key: &str) -> f64 {
        number(&self.results["peaks"]["results"][key])
    }

    fn unit(&self, unit: &str) -> f64 {
        number(&self.results["peaks"]["results"]["operations_per_s"][unit])
    }

    fn peaks(&self) -> String {
        let row = |what: &str, value: String| vec![what.to_owned(), value];
        let bandwidth = |key| format!("{} GB/s", count(self.peak(key) / 1e9));
        let micros = |key| format!("{:.2} µs", self.peak(key) * 1e6);
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
            let r = self.unit(unit);
            rows.push(row(what, if r.is_finite() { format!("{:.1} T/s", r / 1e12) } else { "none".into() }));
        }
        rows.push(row("dispatch that waits for the last, device", micros("dependent_dispatch_s")));
        rows.push(row("dispatch that waits for none, device", micros("independent_dispatch_s")));
        rows.push(row("dispatch, CPU", micros("host_dispatch_s")));
        rows.push(row("dispatch and readback", micros("round_trip_s")));
        table(&["measured", "best"], 0, &rows)
    }

    fn peers(&self) -> String {
        let text = |key: &str| self.peers[key].as_str().unwrap_or("?");
        format!("llama.cpp's columns: its {}, on {}. {}", text("what"), text("card"), text("note"))
    }

    fn speed(&self) -> String {
        let mut rows = Vec::new();
        for model in self.models() {
            for r in self.of("speed.", model) {
                let test = test_name(r);
                let peer = |which: &str| count(number(&self.peers["tokens_per_second"][model][&test][which]));
                let answer = r["n_gen"].as_u64() > Some(0);
                let floor = self.peak("read_bytes_per_s") / number(&r["model_size"]);
                let ts = number(&r["avg_ts"]);
                rows.push(vec![
                    format!("{model} ({})", gigabytes(&r["model_size"])),
                    test.clone(),
                    rate(r),
                    peer("cuda"),
                    peer("vulkan"),
                    if answer { count(floor) } else { String::new() },
                    if answer { percent(ts, floor) } else { String::new() },
                ]);
            }
        }
        let head = ["model", "test", "chaski", "llama.cpp CUDA", "llama.cpp Vulkan", "memory floor", "of it"];
        table(&head, 1, &rows)
    }

    /// Every profile: model, profile.
    fn profiles(&self) -> Vec<Found<'a>> {
        let mut out = Vec::new();
        for model in self.models() {
            for r in self.of("speed.", model) {
                out.extend(r["profiles"].as_array().into_iter().flatten().map(|p| (model, p)));
            }
        }
        out
    }

    fn roofline(&self) -> String {
        let mut rows = Vec::new();
        for (model, p) in self.profiles() {
            let all: Vec<&Value> = p["rows"].as_array().into_iter().flatten().collect();
            let sum = |key: &str| all.iter().map(|r| number(&r[key])).sum::<f64>();
            let (us, n_byte, n_op) = (sum("us"), sum("bytes"), sum("operations"));
            let of_unit = |u: &str| -> f64 {
                all.iter().filter(|r| r["unit"] == u).map(|r| number(&r["operations"])).sum()
            };
            let unit =
                ["f32", "f16", "i8", "coop"].into_iter().max_by(|a, b| of_unit(a).total_cmp(&of_unit(b)));
            let unit = unit.unwrap_or("f32");
            let (rate, op_rate) = (n_byte / us * 1e6, n_op / us * 1e6);
            rows.push(vec![
                model.to_owned(),
                run_name(p),
                format!("{us:.0}"),
                format!("{:.3}", n_byte / 1e9),
                format!("{:.1}", n_op / 1e9),
                percent(rate, self.peak("read_bytes_per_s")),
                format!("{} ({unit})", percent(op_rate, self.unit(unit))),
            ]);
        }
        table(&["model", "run", "µs", "GB", "G operations", "of bandwidth", "of rate"], 1, &rows)
    }

    fn split(&self) -> String {
        let mut rows = Vec::new();
        let mut parts: Vec<(f64, String)> = Vec::new();
        let profiles = self.profiles();
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
        table(&head, 1, &rows)
    }

    fn kernels(&self) -> String {
        let Ok(first) = self.first() else { return String::new() };
        let found =
            self.profiles().into_iter().find(|(m, p)| *m == first && p["n_col"] == 1 && p["pos"] == 0);
        let Some((_, p)) = found else { return "Not measured.".into() };
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
        let rows: Vec<_> = p["rows"].as_array().into_iter().flatten().map(cells).collect();
        let head =
            ["part", "kernel", "count", "µs", "GB/s", "of bandwidth", "of rate", "bound by", "of that bound"];
        table(&head, 1, &rows)
    }

    /// Format of gate and up, and their bytes and weights per second with these inputs; `None` if not measured.
    fn gate_up(&self, inputs: &str, mix: &str) -> Option<(&'a str, f64, f64)> {
        let profiles =
            self.of(&format!("format-{inputs}."), mix).into_iter().flat_map(|r| r["profiles"].as_array());
        let rows = profiles.flatten().filter_map(|p| p["rows"].as_array()).flatten();
        let row = rows.into_iter().find(|r| r["part"] == "gate_up")?;
        let format = row["kernel"].as_str()?.split('.').nth(1)?;
        let a_second = |n: f64| n / number(&row["us"]) * 1e6;
        Some((format, a_second(number(&row["weight_bytes"])), a_second(number(&row["operations"]) / 2.0)))
    }

    /// Products of one shape side by side, by format.
    fn products(&self) -> String {
        let all = self.results["formats"]["results"]["formats"].as_array().map_or(&[][..], Vec::as_slice);
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
        table(&SIDE_BY_SIDE, 0, &rows)
    }

    fn formats(&self) -> String {
        let plain = self.gate_up("i16", "f16").map_or(f64::NAN, |(_, rate, _)| rate);
        let mut rows = Vec::new();
        for (mix, _) in self.records("format-i16.") {
            let Some((format, rate, weights)) = self.gate_up("i16", mix) else { continue };
            let rounded = self.gate_up("i8", mix).map_or(f64::NAN, |(_, rate, _)| rate);
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
        table(&RATES, 0, &rows)
    }

    /// Rows of one variation per test: label, records.
    fn variations(&self, what: &[(&str, String)]) -> Vec<Vec<String>> {
        let Ok(first) = self.first() else { return Vec::new() };
        let base = self.of("speed.", &first);
        let mut rows = Vec::new();
        for (prefix, name) in what {
            for r in self.of(prefix, &first) {
                let same = base.iter().find(|b| test_name(b) == test_name(r));
                let change = same.map_or(f64::NAN, |b| number(&r["avg_ts"]) / number(&b["avg_ts"]));
                let host = number(&r["host_us_per_token"]);
                rows.push(vec![
                    name.clone(),
                    test_name(r),
                    rate(r),
                    percent(change, 1.0),
                    if host.is_finite() { format!("{host:.0}") } else { String::new() },
                ]);
            }
        }
        rows
    }

    fn ablation(&self) -> String {
        let mut what = vec![
            ("ablate-bind-groups.".to_owned(), "`--ablate bind-groups`".to_owned()),
            ("ablate-all.".to_owned(), "`--ablate bind-groups,parameters`".to_owned()),
        ];
        what.extend([1, 2, 4, 8, 16, 32].map(|k| (format!("interval-{k}."), format!("`--interval {k}`"))));
        let what: Vec<(&str, String)> = what.iter().map(|(p, n)| (p.as_str(), n.clone())).collect();
        let head = ["run", "test", "tokens/s", "of the plain run", "CPU, µs a token"];
        table(&head, 1, &self.variations(&what))
    }

    fn features(&self) -> String {
        let what = [
            ("features-coop.", "`--features coop`"),
            ("features-sg.", "`--features sg`"),
            ("features-base.", "`--features base`"),
            ("bytes-sg.", "`--features sg --inputs i8`"),
            ("bytes-base.", "`--features base --inputs i8`"),
            ("checked.", "`--checked`"),
        ];
        let what = what.map(|(p, n)| (p, n.to_owned()));
        let head = ["run", "test", "tokens/s", "of the plain run", "CPU, µs a token"];
        table(&head, 1, &self.variations(&what))
    }

    fn host(&self) -> String {
        let mut rows = Vec::new();
        for model in self.models() {
            for r in self.of("speed.", model) {
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
        table(&head, 1, &rows)
    }

    fn start(&self) -> String {
        let mut rows = Vec::new();
        for model in self.models() {
            for (prefix, name) in [("start-cold.", "cold"), ("start-warm.", "warm")] {
                for r in self.of(prefix, model) {
                    let ms = |key: &str| format!("{} ms", count(number(&r[key])));
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
        table(&head, 1, &rows)
    }
}

/// `a token at 0` or `512 tokens at 2048`.
fn run_name(p: &Value) -> String {
    match p["n_col"].as_u64() {
        Some(1) => format!("a token at {}", p["pos"]),
        _ => format!("{} tokens at {}", p["n_col"], p["pos"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> String {
        fs::read_to_string(crate::root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    fn peers() -> Value {
        serde_json::from_str(&file("docs/performance/llama.cpp.json")).expect("JSON")
    }

    #[test]
    fn the_page_is_what_the_measurements_give() {
        document(None, true).expect("a page that is not stale");
    }

    #[test]
    fn a_measured_sample_becomes_a_page() {
        // Output of xtask/perf.sh on a software renderer: the numbers say nothing about speed.
        let sample: Value = serde_json::from_str(&file("xtask/src/perf/sample.json")).expect("JSON");
        let page = render(&file("docs/performance/template.md"), &sample, &peers()).expect("a page");
        let rows = |title: &str| {
            let (_, rest) = page.split_once(title).unwrap_or_else(|| panic!("no {title}"));
            rest.lines()
                .skip_while(|l| !l.starts_with('|'))
                .skip(2)
                .take_while(|l| l.starts_with('|'))
                .count()
        };
        assert_eq!(rows("## The device"), 10);
        assert_eq!(rows("## Tokens a second"), 4);
        assert_eq!(rows("## How near"), 4);
        assert_eq!(rows("## Where the time goes"), 4);
        assert!(rows("by kernel:") >= 6);
        assert_eq!(rows("## Formats"), 3);
        assert_eq!(rows("In a model"), 3);
        assert_eq!(rows("## What reuse"), 8);
        // Prefill and decode with two feature sets and with bounds checks; the device lacks cooperative matrices, so
        // that set falls back to the one below.
        assert_eq!(rows("## What features"), 8);
        assert_eq!(rows("## The CPU's part"), 2);
        assert_eq!(rows("## Start and memory"), 2);
        assert!(!page.contains("Not measured") && !page.contains("NaN"), "{page}");
    }

    #[test]
    fn measurements_are_cut_down_to_what_is_shown() {
        let v = json!({ "command": "c", "results": [{ "avg_ts": 1.5, "samples_ns": [1, 2] }] });
        let kept = trim(&v).expect("a measurement");
        assert_eq!(kept, json!({ "command": "c", "results": [{ "avg_ts": 1.5 }] }));
        assert!(trim(&json!([1])).is_err());
    }

    #[test]
    fn paragraphs_are_filled_and_tables_are_not() {
        let word = "word ".repeat(30);
        let text = format!("# Title\n\na\n{word}\nb\n\n| a |\n```sh\n# b\nc\n```\nd\n");
        let lines: Vec<String> = filled(&text).lines().map(str::to_owned).collect();
        assert_eq!((lines[0].as_str(), lines[1].as_str()), ("# Title", ""));
        assert!(lines[2].starts_with("a word") && lines[2].len() <= 120, "{lines:?}");
        assert!(lines[3].ends_with("word b"), "{lines:?}");
        assert_eq!(lines[4..], ["", "| a |", "```sh", "# b", "c", "```", "d"]);
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(
            [count(5.25), count(123.4), count(42888.0), count(1e6)],
            ["5.2", "123", "42,888", "1,000,000"]
        );
        assert_eq!(count(f64::NAN), "-");
        assert_eq!(percent(1.0, 8.0), "12.5 %");
        assert_eq!(gigabytes(&json!(807_000_000u64)), "807 MB");
    }

    #[test]
    fn a_template_and_its_tables_must_fit() {
        let sample: Value = serde_json::from_str(&file("xtask/src/perf/sample.json")).expect("JSON");
        let template = file("docs/performance/template.md");
        let wrong = [template.replace("{{split}}", ""), format!("{template}{{{{more}}}}")];
        for t in wrong {
            assert!(render(&t, &sample, &peers()).is_err());
        }
    }
}
