//! The page: the template, filled.

use anyhow::ensure;

use super::markdown::{filled, missing};
use super::plots::Drawn;
use super::results::Results;
use super::tables;

/// Fills the template. Tables of parts that were not measured are a line that says so; plots without data are left out.
pub(super) fn render(template: &str, results: &Results<'_>, plots: &[Drawn]) -> anyhow::Result<String> {
    let mut parts: Vec<(String, String)> = vec![(
        "generated".into(),
        "<!-- Written by `cargo xtask perf-doc` from docs/performance/: edit the template there. -->".into(),
    )];
    let command = |prefix: &str, part: &str| results.command(prefix).unwrap_or_else(|| missing(part));
    let marks: [(&str, String); 21] = [
        ("runs", tables::runs(results)),
        ("first", results.first().unwrap_or("the first model").to_owned()),
        ("peaks", tables::peaks(results)),
        ("speed_command", command("speed.", "models")),
        ("peers", peers(results)),
        ("speed", tables::speed(results)),
        ("families", tables::families(results)),
        ("roofline", tables::roofline(results)),
        ("split", tables::split(results)),
        ("kernels", tables::kernels(results)),
        ("products", tables::products(results)),
        ("formats", tables::formats(results)),
        ("ablation", tables::ablation(results)),
        ("features", tables::features(results)),
        ("host", tables::host(results)),
        ("start", tables::start(results)),
        ("loading", tables::loading(results)),
        ("batches", tables::batches(results)),
        ("depths", tables::depths(results)),
        ("cpu", tables::cpu(results)),
        ("browser", tables::browser(results)),
    ];
    parts.extend(marks.map(|(name, text)| (name.to_owned(), text)));
    for plot in plots {
        let shown =
            plot.svg.as_ref().map(|_| format!("![{}](performance/{}.svg)", plot.description, plot.name));
        parts.push((format!("plot_{}", plot.name), shown.unwrap_or_default()));
    }
    let mut text = template.to_owned();
    for (name, value) in parts {
        let mark = format!("{{{{{name}}}}}");
        ensure!(text.contains(&mark), "the template lacks {mark}");
        text = text.replace(&mark, &value);
    }
    ensure!(!text.contains("{{"), "the template has a mark that nothing fills");
    let mut text = filled(&text);
    // Where a plot was left out.
    while text.contains("\n\n\n") {
        text = text.replace("\n\n\n", "\n\n");
    }
    Ok(text)
}

/// llama.cpp's numbers from an earlier run.
fn peers(results: &Results<'_>) -> String {
    let text = |key: &str| results.peers[key].as_str().unwrap_or("?");
    format!(
        "Numbers with a star are of an earlier run: {}, on {}. {}",
        text("what"),
        text("card"),
        text("note")
    )
}
