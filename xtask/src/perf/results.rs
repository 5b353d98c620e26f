//! Measurements by name, and the runs that they are of.

use std::collections::BTreeSet;

use anyhow::Context as _;
use serde_json::Value;

/// The parts of xtask/perf.sh: name, prefixes of the names of its measurements, and what they are called on the page.
pub(super) const PARTS: [(&str, &[&str], &str); 11] = [
    ("peaks", &["peaks"], "device"),
    ("peaks", &["formats"], "formats side by side"),
    ("formats", &["format-"], "formats in a model"),
    ("variants", &["plain.", "features-", "bytes-", "checked.", "ablate-", "interval-"], "variants"),
    ("models", &["speed.", "start-", "llama-speed."], "models, start"),
    ("batches", &["batches.", "llama-batches."], "batches"),
    ("depths", &["depths.", "llama-depths."], "depths"),
    ("loading", &["load-", "llama-load-"], "loading"),
    ("cpu", &["cpu.", "llama-cpu."], "CPU"),
    ("browser", &["browser"], "browser"),
    ("page", &["page."], "bench page"),
];

/// A record and the name of its model, such as `llama3.2-1b-q4_k_m`.
pub(super) type Found<'a> = (&'a str, &'a Value);

pub(super) fn number(v: &Value) -> f64 {
    v.as_f64().unwrap_or(f64::NAN)
}

/// The name of a test in llama-bench's words, such as `pp512 @ d2048`.
pub(super) fn test_name(r: &Value) -> String {
    let n = |key: &str| r[key].as_u64().unwrap_or(0);
    let name = if n("n_gen") > 0 { format!("tg{}", n("n_gen")) } else { format!("pp{}", n("n_prompt")) };
    if n("n_depth") > 0 { format!("{name} @ d{}", n("n_depth")) } else { name }
}

/// Mean of some values, NaN without any.
pub(super) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0.0), |(sum, n), x| (sum + x, n + 1.0));
    sum / n
}

/// Distinct values of a field, in order.
pub(super) fn distinct(records: &[&Value], key: &str) -> BTreeSet<u64> {
    records.iter().filter_map(|r| r[key].as_u64()).collect()
}

/// Mean of a field of the records in which another has a value.
pub(super) fn mean_where(records: &[&Value], (key, value): (&str, u64), field: &str) -> f64 {
    mean(records.iter().filter(|r| r[key].as_u64() == Some(value)).map(|r| number(&r[field])))
}

/// Records of answers, or of prompts.
pub(super) fn only<'a>(records: &[&'a Value], answers: bool) -> Vec<&'a Value> {
    records.iter().filter(|r| (r["n_gen"].as_u64() > Some(0)) == answers).copied().collect()
}

/// Median of some values, the lower one of two, NaN without any.
pub(super) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.filter(|x| x.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

/// The run of a measurement; fields that it does not say are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) date: String,
    /// The program with its commit.
    pub(super) program: String,
    pub(super) device: String,
    pub(super) driver: String,
    pub(super) cpu: String,
}

/// All measurements, and the numbers of llama.cpp from other runs.
#[derive(Copy, Clone)]
pub(super) struct Results<'a> {
    pub(super) all: &'a Value,
    pub(super) peers: &'a Value,
}

impl<'a> Results<'a> {
    /// Measurements by name.
    pub(super) fn measurements(&self) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a> {
        self.all.as_object().into_iter().flatten().map(|(name, v)| (name.as_str(), v))
    }

    /// Measurements with this prefix, by the rest of their names.
    pub(super) fn named(&self, prefix: &str) -> Vec<Found<'a>> {
        self.measurements().filter_map(|(name, v)| Some((name.strip_prefix(prefix)?, v))).collect()
    }

    /// Records of measurements with this prefix, and the rest of their names.
    pub(super) fn records(&self, prefix: &str) -> Vec<Found<'a>> {
        let named = self.named(prefix).into_iter();
        named
            .flat_map(|(model, v)| v["results"].as_array().into_iter().flatten().map(move |r| (model, r)))
            .collect()
    }

    /// Models of measurements with this prefix, in order of size.
    pub(super) fn models(&self, prefix: &str) -> Vec<&'a str> {
        let size = |r: &Value| r["model_size"].as_u64().unwrap_or(0);
        let mut sizes: Vec<(u64, &str)> =
            self.records(prefix).iter().map(|(model, r)| (size(r), *model)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes.into_iter().map(|(_, model)| model).collect()
    }

    pub(super) fn of(&self, prefix: &str, model: &str) -> Vec<&'a Value> {
        self.records(prefix).into_iter().filter(|(m, _)| *m == model).map(|(_, r)| r).collect()
    }

    /// Tokens per second of llama-bench in a test like that of `r`, measured with the same files.
    pub(super) fn llama(&self, prefix: &str, model: &str, r: &Value) -> f64 {
        let found = self.of(prefix, model).into_iter();
        let mut same = found.filter(|l| test_name(l) == test_name(r));
        same.next().map_or(f64::NAN, |l| number(&l["avg_ts"]))
    }

    /// Tokens per second of llama.cpp with a backend, such as `cuda`, in a test like that of `r`, from an earlier run.
    pub(super) fn earlier(&self, model: &str, r: &Value, backend: &str) -> f64 {
        number(&self.peers["tokens_per_second"][model][test_name(r)][backend])
    }

    /// The command of the first measurement with this prefix.
    pub(super) fn command(&self, prefix: &str) -> Option<String> {
        let (model, v) = self.named(prefix).into_iter().next()?;
        Some(format!("`{}`", v["command"].as_str()?.replace(&format!("{model}.gguf"), "MODEL.gguf")))
    }

    /// The model whose variations are measured.
    pub(super) fn first(&self) -> anyhow::Result<&'a str> {
        let found = self.records("checked.");
        let (model, _) = found.first().context("no measurement begins with `checked.`")?;
        Ok(model)
    }

    pub(super) fn peak(&self, key: &str) -> f64 {
        number(&self.all["peaks"]["results"][key])
    }

    pub(super) fn unit(&self, unit: &str) -> f64 {
        number(&self.all["peaks"]["results"]["operations_per_s"][unit])
    }

    /// Runs of measurements with these prefixes, each once, with the measurements' names after their first dot.
    pub(super) fn runs(&self, prefixes: &[&str]) -> Vec<(Run, Vec<&'a str>)> {
        let mut runs: Vec<(Run, Vec<&str>)> = Vec::new();
        for (name, v) in self.measurements() {
            if !prefixes.iter().any(|p| name.starts_with(p)) {
                continue;
            }
            let run = Run::of(v);
            let model = name.split_once('.').map_or("", |(_, model)| model);
            match runs.iter_mut().find(|(known, _)| known.is_like(&run)) {
                Some((known, models)) => {
                    known.learn(&run);
                    if !models.contains(&model) {
                        models.push(model);
                    }
                }
                None => runs.push((run, vec![model])),
            }
        }
        runs
    }
}

impl Run {
    /// The run of a measurement, from the fields of xtask/perf.sh and of its first record.
    pub(super) fn of(v: &Value) -> Run {
        let first = v["results"].get(0).unwrap_or(&v["results"]);
        let text = |key: &str| first[key].as_str().unwrap_or_default().to_owned();
        let or = |a: String, b: String| if a.is_empty() { b } else { a };
        let time = or(v["time"].as_str().unwrap_or_default().to_owned(), text("test_time"));
        // `chaski 0.1.0 (commit 1234567, wgpu 30.0.1)`, or a name of llama.cpp.
        let program = v["program"].as_str().unwrap_or("chaski");
        let said = program.split_once("(commit ").and_then(|(_, rest)| rest.split([',', ')']).next());
        let name = program.split_whitespace().next().unwrap_or_default();
        let program = match (said, text("build_commit")) {
            (Some(commit), _) => format!("{name} {commit}"),
            (None, commit) if commit.is_empty() || commit == "unknown" => program.to_owned(),
            (None, commit) => format!("{program} {commit}"),
        };
        let device = or(or(text("gpu_info"), text("adapter")), or(text("device"), text("cpu_info")));
        Run {
            date: time.chars().take(10).collect(),
            program,
            device,
            driver: text("driver"),
            cpu: text("cpu_info"),
        }
    }

    /// True if both are one run, as far as they say: llama-batched-bench tells neither its commit nor the device.
    pub(super) fn is_like(&self, other: &Run) -> bool {
        let (a, b) = (&self.program, &other.program);
        let is_device = self.device.is_empty() || other.device.is_empty() || self.device == other.device;
        self.date == other.date && (a.starts_with(b.as_str()) || b.starts_with(a.as_str())) && is_device
    }

    /// Takes over what only the other one says.
    pub(super) fn learn(&mut self, other: &Run) {
        let fields = [
            (&mut self.program, &other.program),
            (&mut self.device, &other.device),
            (&mut self.driver, &other.driver),
            (&mut self.cpu, &other.cpu),
        ];
        for (mine, theirs) in fields {
            if mine.len() < theirs.len() {
                mine.clone_from(theirs);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn runs_are_told_apart_and_known_by_their_records() {
        let record = json!({ "build_commit": "abc", "gpu_info": "G", "cpu_info": "C", "test_time": "2026-01-02T03:04:05Z" });
        let of = |record: &Value| json!({ "command": "c", "results": [record] });
        let mut later = of(&json!({ "gpu_info": "G", "driver": "D 1" }));
        later["time"] = "2026-01-02T09:00:00Z".into();
        later["program"] = "chaski 0.1.0 (commit abc, wgpu 30)".into();
        let mut other = of(&record);
        other["program"] = "llama.cpp".into();
        let batched =
            json!({ "program": "llama.cpp", "time": "2026-01-02T09:00:00Z", "results": [{ "pl": 1 }] });
        let all = json!({
            "speed.a": of(&record), "speed.b": later, "speed.c": other, "speed.d": batched, "peaks": of(&record),
        });
        let results = Results { all: &all, peers: &Value::Null };
        let runs = results.runs(&["speed."]);
        assert_eq!(runs.len(), 2, "{runs:?}");
        let (run, models) = &runs[0];
        assert_eq!(models, &["a", "b"]);
        let texts = [&run.date, &run.program, &run.device, &run.driver, &run.cpu];
        assert_eq!(texts, ["2026-01-02", "chaski abc", "G", "D 1", "C"]);
        assert_eq!((runs[1].0.program.as_str(), runs[1].0.device.as_str()), ("llama.cpp abc", "G"));
        assert_eq!(runs[1].1, ["c", "d"]);
    }

    #[test]
    fn averages_of_nothing_are_no_numbers() {
        assert_eq!((mean([1.0, 2.0].into_iter()), median([3.0, 1.0, 2.0].into_iter())), (1.5, 2.0));
        assert_eq!(median([2.0, 1.0].into_iter()), 1.0);
        assert!(mean(std::iter::empty()).is_nan() && median(std::iter::empty()).is_nan());
    }
}
