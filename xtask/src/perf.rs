//! `perf-doc`: generates docs/performance.md and its plots from the output of xtask/perf.sh.
//!
//! Measurements are stored in docs/performance/results.json, reduced to what the page shows; the text is in
//! docs/performance/template.md, numbers of llama.cpp from earlier runs in docs/performance/llama.cpp.json. Page and
//! plots are a function of these three, and a test compares them. So are the tables of the bench page in docs/web.md.

mod chart;
mod gather;
mod markdown;
mod page;
mod plots;
mod results;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use self::results::Results;

/// Adds folders of measurements, if given, to those in the repository, and writes or checks the page and its plots.
pub(crate) fn document(folders: &[PathBuf], check: bool) -> anyhow::Result<()> {
    let docs = crate::root().join("docs");
    let folder = docs.join("performance");
    let measured = folder.join("results.json");
    if !folders.is_empty() {
        ensure!(!check, "`--check` looks at what is in the repository: give no folder with it");
        fs::write(&measured, gather::lines(&gather::merge(json(&measured)?, folders)?)?)?;
    }
    let (all, peers) = (json(&measured)?, json(&folder.join("llama.cpp.json"))?);
    let results = Results { all: &all, peers: &peers };
    let plots = plots::draw(&results);
    let page = page::render(&read(&folder.join("template.md"))?, &results, &plots)?;
    let plots = plots.into_iter().map(|p| (folder.join(format!("{}.svg", p.name)), p.svg));
    let web = docs.join("web.md");
    let pages = [
        (docs.join("performance.md"), Some(page)),
        (web.clone(), Some(tables::within(&read(&web)?, &results)?)),
    ];
    for (path, text) in plots.chain(pages) {
        match text {
            _ if check => ensure!(
                if path.exists() { Some(read(&path)?) } else { None } == text,
                "{} is stale: run `cargo xtask perf-doc`",
                path.display()
            ),
            Some(text) => {
                fs::write(&path, text)?;
                println!("{} is written", path.display());
            }
            None if path.exists() => fs::remove_file(&path)?,
            None => {}
        }
    }
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))
}

fn json(path: &Path) -> anyhow::Result<Value> {
    serde_json::from_str(&read(path)?).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn in_tree(path: &str) -> Value {
        json(&crate::root().join(path)).unwrap_or_else(|e| panic!("{e:#}"))
    }

    fn template() -> String {
        read(&crate::root().join("docs/performance/template.md")).expect("a template")
    }

    /// Output of xtask/perf.sh on a software renderer: the numbers say nothing about speed.
    fn sample() -> Value {
        in_tree("xtask/src/perf/sample.json")
    }

    fn page_of(all: &Value) -> anyhow::Result<String> {
        let peers = in_tree("docs/performance/llama.cpp.json");
        let results = Results { all, peers: &peers };
        page::render(&template(), &results, &plots::draw(&results))
    }

    /// Rows of the first table after a text.
    fn rows<'a>(page: &'a str, title: &str) -> Vec<&'a str> {
        let (_, rest) = page.split_once(title).unwrap_or_else(|| panic!("no {title}"));
        let section = rest.split("\n## ").next().expect("a section");
        let table = section.lines().skip_while(|l| !l.starts_with('|')).skip(2);
        table.take_while(|l| l.starts_with('|')).collect()
    }

    #[test]
    fn the_page_is_what_the_measurements_give() {
        document(&[], true).expect("a page that is not stale");
    }

    #[test]
    fn a_measured_sample_becomes_a_page() {
        let page = page_of(&sample()).expect("a page");
        let n = |title: &str| rows(&page, title).len();
        assert_eq!(n("## The device"), 10);
        assert_eq!(n("## Tokens a second"), 4);
        assert_eq!(n("## How near"), 4);
        assert_eq!(n("## Where the time goes"), 4);
        assert!(n("by kernel:") >= 6);
        assert_eq!(n("## Formats"), 3);
        assert_eq!(n("In a model"), 3);
        assert_eq!(n("## What reuse"), 8);
        // Prefill and decode with two feature sets and with bounds checks; the device lacks cooperative matrices, so
        // that set falls back to the one below.
        assert_eq!(n("## What features"), 8);
        assert_eq!(n("## The CPU's part"), 2);
        assert_eq!(n("## Start and memory"), 2);
        assert_eq!(n("## Several sequences"), 3);
        assert_eq!(n("## Long contexts"), 2);
        assert_eq!(n("## Loading"), 1);
        assert_eq!(n("## The CPU alone"), 2);
        assert_eq!(n("## In a browser"), 5);
        for plot in ["size", "batches", "depths"] {
            assert!(page.contains(&format!("](performance/{plot}.svg)")), "{plot}");
        }
        // But for models of other families.
        assert_eq!(page.matches("Not measured").count(), 1, "{page}");
        assert!(page.contains("PARTS=\"families large\"") && !page.contains("NaN"), "{page}");
    }

    #[test]
    fn numbers_of_the_same_run_stand_beside_ours() {
        let mut all = sample();
        let record = |depth: u32, ts: f64| json!({ "model_size": 8, "n_prompt": 32, "n_gen": 0, "n_depth": depth, "avg_ts": ts, "stddev_ts": 1.0 });
        all["speed.x"] = json!({ "command": "c", "results": [record(0, 300.0), record(40, 200.0)] });
        all["llama-speed.x"] = json!({ "command": "c", "results": [record(40, 100.0)] });
        let batch =
            |n: u32, ts: f64| json!({ "model_size": 8, "pl": n, "speed_tg": ts, "speed_pp": 2.0 * ts });
        all["batches.x"] = json!({ "command": "c", "results": [batch(2, 300.0), batch(2, 500.0)] });
        all["llama-batches.x"] = json!({ "command": "c", "results": [batch(2, 200.0)] });
        let load = |ms: u32| json!({ "command": "c", "wall_ms": ms, "results": [{ "model_size": 8, "load_ms": ms / 2 }] });
        for (i, ms) in [900, 300, 500].into_iter().enumerate() {
            all[format!("load-{}.x", i + 1)] = load(ms);
            all[format!("llama-load-{}.x", i + 1)] = load(2 * ms);
        }
        for preset in ["lfm2-1.2b", "gemma3-4b", "phi3-mini", "qwen3-8b", "gpt-oss-20b", "qwen3-30b-a3b"] {
            all[format!("speed.{preset}-q4_k_m")] = json!({ "command": "c", "results": [record(0, 1.0)] });
        }
        let page = page_of(&all).expect("a page");
        assert!(page.contains("adds llama3.3-70b."), "{page}");
        let row = |title: &str, begin: &str| {
            let rows = rows(&page, title);
            (*rows.iter().find(|r| r.starts_with(begin)).unwrap_or_else(|| panic!("{begin} in {rows:?}")))
                .to_owned()
        };
        assert!(row("## Tokens", "| x (0 MB) | pp32 |").contains("| 300 ± 1.0 | - | - |"));
        assert!(row("## Tokens", "| x (0 MB) | pp32 @ d40 |").contains("| 200 ± 1.0 | 100 | - |"));
        assert_eq!(row("## Several", "| x |"), "| x | 2 | 400 | 200 | 2.00 | 800 | 400 | 2.00 |");
        assert!(row("## Loading", "| x").ends_with("| 500 ms | 1,000 ms | 2.00 |"));
    }

    #[test]
    fn tables_that_nothing_measured_say_which_command_makes_them() {
        let mut all = sample();
        let gone = ["batches.", "depths.", "load-", "cpu.", "browser", "llama-"];
        let fields = all.as_object_mut().expect("measurements by name");
        fields.retain(|name, _| !gone.iter().any(|prefix| name.starts_with(prefix)));
        let page = page_of(&all).expect("a page");
        for part in ["batches", "depths", "loading", "cpu", "browser"] {
            let line = format!("`PARTS={part} xtask/perf.sh CHASKI OUT`");
            assert!(page.contains(&line), "{line} in {page}");
            assert!(!page.contains(&format!("performance/{part}.svg")), "{part}");
        }
        let page = page_of(&json!({})).expect("a page of nothing");
        assert!(page.contains("PARTS=models") && !page.contains('|'), "{page}");
    }

    #[test]
    fn a_template_and_its_tables_must_fit() {
        let (all, peers, template) = (sample(), Value::Null, template());
        let results = Results { all: &all, peers: &peers };
        for wrong in [template.replace("{{split}}", ""), format!("{template}{{{{more}}}}")] {
            assert!(page::render(&wrong, &results, &plots::draw(&results)).is_err());
        }
    }

    #[test]
    fn every_measurement_belongs_to_a_part() {
        for all in [sample(), in_tree("docs/performance/results.json")] {
            for name in all.as_object().expect("measurements by name").keys() {
                let of =
                    |(_, prefixes, _): &(&str, &[&str], &str)| prefixes.iter().any(|p| name.starts_with(p));
                assert_eq!(results::PARTS.iter().filter(|part| of(part)).count(), 1, "{name}");
            }
        }
    }
}
