//! The plots of the page: speed against batch, depth and size.

use serde_json::Value;

use super::chart::{Axis, Hue, Panel, Scale, Series, svg};
use super::results::{Results, distinct, mean_where, number, only};

/// A plot: its name, which is that of its file, what it shows, and the panels; none if nothing was measured.
type Plot = (&'static str, &'static str, fn(&Results<'_>) -> Vec<Panel>);

const PLOTS: [Plot; 3] = [
    ("size", "Tokens per second of one sequence against the size of the model's file", size),
    ("batches", "Tokens per second of all sequences against the number of sequences", batches),
    ("depths", "Tokens per second against the tokens before them", depths),
];

/// A plot that the page shows.
pub(super) struct Drawn {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    /// The file, if there is anything to show.
    pub(super) svg: Option<String>,
}

/// All plots.
pub(super) fn draw(results: &Results<'_>) -> Vec<Drawn> {
    let drawn = |(name, description, panels): Plot| {
        let panels = panels(results);
        let is_empty = panels.iter().all(|p| p.series.iter().all(|s| s.points.is_empty()));
        Drawn { name, description, svg: (!is_empty).then(|| svg(description, &panels)) }
    };
    PLOTS.into_iter().map(drawn).collect()
}

fn axis(label: &str, scale: Scale, ticks: impl IntoIterator<Item = u64>) -> Axis {
    Axis { label: label.into(), scale, ticks: ticks.into_iter().map(|t| t as f64).collect() }
}

const RATE: &str = "tokens/s";

/// Lines of each model by each engine: `value` is of the records at a number of the field on the x axis.
fn lines(
    results: &Results<'_>,
    prefix: &str,
    field: &str,
    value: impl Fn(&[&Value], (&str, u64)) -> f64,
) -> Vec<Series> {
    let mut all = Vec::new();
    for (shape, model) in results.models(prefix).into_iter().enumerate() {
        for (engine, hue, prefix) in
            [("chaski", Hue::Ours, prefix.to_owned()), ("llama.cpp", Hue::Theirs, format!("llama-{prefix}"))]
        {
            let records = results.of(&prefix, model);
            let points: Vec<_> = distinct(&records, field)
                .into_iter()
                .map(|n| (n as f64, value(&records, (field, n)), format!("{engine}, {model}: {n}")))
                .filter(|(_, y, _)| *y > 0.0)
                .collect();
            if !points.is_empty() {
                let name = format!("{engine}, {model}");
                all.push(Series { name, hue, shape, is_line: true, has_marks: true, points });
            }
        }
    }
    all
}

/// Distinct values of a field in the records with a prefix.
fn ticks(results: &Results<'_>, prefix: &str, field: &str) -> Vec<u64> {
    let records: Vec<&Value> = results.records(prefix).into_iter().map(|(_, r)| r).collect();
    distinct(&records, field).into_iter().collect()
}

fn batches(results: &Results<'_>) -> Vec<Panel> {
    let panel = |title: &str, field: &'static str| Panel {
        title: title.into(),
        x: axis("sequences", Scale::Log, ticks(results, "batches.", "pl")),
        y: axis(RATE, Scale::Log, []),
        series: lines(results, "batches.", "pl", |records, n| mean_where(records, n, field)),
    };
    vec![panel("Answers", "speed_tg"), panel("Prompts", "speed_pp")]
}

fn depths(results: &Results<'_>) -> Vec<Panel> {
    // Labels of smaller depths would stand on each other.
    let mut all = ticks(results, "depths.", "n_depth");
    let most = all.last().copied().unwrap_or(0);
    all.retain(|n| *n == 0 || n * 8 > most);
    let panel = |title: &str, answers: bool| Panel {
        title: title.into(),
        x: axis("tokens before", Scale::Linear, all.clone()),
        y: axis(RATE, Scale::Linear, []),
        series: lines(results, "depths.", "n_depth", |records, n| {
            mean_where(&only(records, answers), n, "avg_ts")
        }),
    };
    vec![panel("Answers", true), panel("Prompts", false)]
}

fn size(results: &Results<'_>) -> Vec<Panel> {
    let panel = |title: &str, answers: bool| {
        let (mut ours, mut theirs, mut bound) = (Vec::new(), Vec::new(), Vec::new());
        for model in results.models("speed.") {
            let records = only(&results.of("speed.", model), answers);
            let Some(r) = records.into_iter().find(|r| r["n_depth"] == 0) else { continue };
            let gb = number(&r["model_size"]) / 1e9;
            let here = results.llama("llama-speed.", model, r);
            let llama = if here.is_finite() { here } else { results.earlier(model, r, "cuda") };
            ours.push((gb, number(&r["avg_ts"]), format!("chaski, {model}")));
            theirs.push((gb, llama, format!("llama.cpp, {model}")));
            bound.push((gb, results.peak("read_bytes_per_s") / gb / 1e9, model.to_owned()));
        }
        let dots = |name: &str, hue, shape, mut points: Vec<(f64, f64, String)>| {
            points.retain(|(_, y, _)| *y > 0.0);
            Series { name: name.into(), hue, shape, is_line: false, has_marks: true, points }
        };
        let mut series =
            vec![dots("chaski", Hue::Ours, 0, ours), dots("llama.cpp, CUDA", Hue::Theirs, 1, theirs)];
        if answers {
            let line = dots("file size at the measured bandwidth", Hue::Bound, 1, bound);
            series.push(Series { is_line: true, has_marks: false, ..line });
        }
        series.retain(|s| !s.points.is_empty());
        let x = axis("file, GB", Scale::Log, []);
        Panel { title: title.into(), x, y: axis(RATE, Scale::Log, []), series }
    };
    vec![panel("Answers", true), panel("Prompts", false)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plots_have_lines_of_both_engines_or_are_left_out() {
        let batches = |ts: f64| {
            let records = [1, 2]
                .map(|n| json!({ "pl": n, "speed_tg": ts * f64::from(n), "speed_pp": ts, "model_size": 1 }));
            json!({ "command": "c", "results": records })
        };
        let all = json!({ "batches.m": batches(100.0), "llama-batches.m": batches(50.0) });
        let drawn = draw(&Results { all: &all, peers: &Value::Null });
        let names: Vec<_> = drawn.iter().filter(|d| d.svg.is_some()).map(|d| d.name).collect();
        assert_eq!(names, ["batches"]);
        let svg = drawn[1].svg.as_ref().expect("a plot");
        assert!(
            svg.contains("chaski, m") && svg.contains("llama.cpp, m") && svg.contains("sequences"),
            "{svg}"
        );
        // A line in each of two panels and in the legend, for each engine.
        assert_eq!(
            (svg.matches("class=\"line ours\"").count(), svg.matches("class=\"line theirs\"").count()),
            (3, 3)
        );
    }
}
