//! `chaski devices --measure --formats -o json`: what one device is and how fast it is, as docs/devices keeps it.

use std::io::Write as _;

use chaski::DeviceChoice;
use chaski::gpu::{AdapterSummary, Peaks};
use chaski::kernels::MatVecTune;
use serde_json::{Value, json};

use super::{adapter, described, formats};
use crate::peaks;
use crate::progress::Unit;
use crate::ui::Ui;

/// Version of the form.
const SCHEMA: u64 = 1;

pub(super) fn run(names: &str, choice: Option<&DeviceChoice>, ui: &Ui) -> anyhow::Result<()> {
    let progress = ui.progress("measure", Unit::Seconds, 0);
    let (summary, found) = peaks::measure(adapter(choice)?)?;
    progress.finish();
    let (_, rates) = formats::measured(names, choice, ui)?;
    writeln!(std::io::stdout().lock(), "{:#}", as_json(&summary, &found, &rates))?;
    Ok(())
}

fn as_json(summary: &AdapterSummary, found: &Peaks, rates: &[formats::Rates]) -> Value {
    let (tune, source) = MatVecTune::shipped(&summary.caps);
    json!({
        "schema": SCHEMA,
        "chaski": env!("CARGO_PKG_VERSION"),
        "commit": env!("CHASKI_COMMIT"),
        "system": format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        "vendor": format!("{:#06x}", summary.caps.vendor),
        "device": described(summary),
        "tuning": { "fill": tune.fill, "team": tune.team, "source": source },
        "peaks": peaks::to_json(summary, found),
        "formats": rates.iter().map(|r| formats::as_json(r)).collect::<Vec<Value>>(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::{Path, PathBuf};

    use chaski::gpu::FormatRate;
    use chaski::kernels::{CoopShape, FORMATS};
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Report {
        schema: u64,
        chaski: String,
        commit: String,
        system: String,
        vendor: String,
        device: Described,
        tuning: Tuning,
        peaks: Measured,
        formats: Vec<FormatRow>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Described {
        name: String,
        backend: String,
        kind: String,
        driver: String,
        feature_set: String,
        features: Vec<String>,
        subgroup: Option<Range>,
        f16: bool,
        software: bool,
        limits: BTreeMap<String, u64>,
        cooperative_matrices: Vec<String>,
        cooperative_shape: Option<Shape>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Range {
        min: u32,
        max: u32,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Shape {
        side: u32,
        lanes: u32,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Tuning {
        fill: u32,
        team: u32,
        source: String,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Measured {
        version: u64,
        adapter: String,
        backend: String,
        driver: String,
        read_bytes_per_s: f64,
        copy_bytes_per_s: f64,
        operations_per_s: BTreeMap<String, f64>,
        dependent_dispatch_s: f64,
        independent_dispatch_s: f64,
        host_dispatch_s: f64,
        round_trip_s: f64,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct FormatRow {
        format: String,
        rows: u32,
        columns: u32,
        bytes_per_second: f64,
        weights_per_second: f64,
        bytes_per_second_tuned: f64,
        bytes_per_second_i8: Option<f64>,
        bytes_per_second_i8_tuned: Option<f64>,
    }

    /// Reads a report; the reason if it is none, or if its numbers cannot be.
    fn read(text: &str) -> Result<Report, String> {
        let r: Report = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let (d, p) = (&r.device, &r.peaks);
        let named =
            [&r.chaski, &r.commit, &r.system, &d.name, &d.backend, &d.kind, &d.driver, &r.tuning.source];
        let times = [p.dependent_dispatch_s, p.independent_dispatch_s, p.host_dispatch_s, p.round_trip_s];
        let rates =
            [p.read_bytes_per_s, p.copy_bytes_per_s].into_iter().chain(p.operations_per_s.values().copied());
        let row = |f: &FormatRow| {
            let i8 = f.bytes_per_second_i8.into_iter().chain(f.bytes_per_second_i8_tuned);
            let all = [f.bytes_per_second, f.weights_per_second, f.bytes_per_second_tuned];
            f.rows > 0 && f.columns > 0 && all.into_iter().chain(i8).all(|v| v > 0.0)
        };
        let rules = [
            (r.schema == SCHEMA && p.version > 0, "another version"),
            (named.iter().all(|s| !s.is_empty()), "an empty name"),
            (r.vendor.len() >= 6 && r.vendor.starts_with("0x"), "vendor"),
            (["base", "sg", "coop", "alone"].contains(&&*d.feature_set), "feature set"),
            (d.subgroup.as_ref().is_none_or(|s| 0 < s.min && s.min <= s.max), "subgroup"),
            (d.f16 || d.cooperative_shape.is_none(), "cooperative matrices without f16"),
            (
                d.cooperative_shape.is_none() || !d.cooperative_matrices.is_empty(),
                "a shape that is not listed",
            ),
            (d.cooperative_shape.as_ref().is_none_or(|s| s.side > 0 && s.lanes > 0), "shape"),
            (d.software || d.kind != "Cpu", "kind"),
            (d.features.iter().all(|f| !f.is_empty()) && d.limits.len() == 5, "limits"),
            (r.tuning.fill > 0 && r.tuning.team > 0, "tuning"),
            ((&p.adapter, &p.backend, &p.driver) == (&d.name, &d.backend, &d.driver), "two devices"),
            (rates.chain(times).all(|v| v > 0.0), "a rate or a time that is not positive"),
            (!r.formats.is_empty() && r.formats.iter().all(row), "formats"),
            (
                r.formats.iter().all(|f| FORMATS.iter().any(|known| known.name == f.format)),
                "an unknown format",
            ),
        ];
        rules.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, what)| Err(what.to_owned()))?;
        Ok(r)
    }

    fn sample() -> Value {
        let caps = chaski::kernels::Caps {
            subgroup: Some((32, 32)),
            f16: true,
            coop: Some(CoopShape::SIMDGROUP),
            ..chaski::kernels::Caps::base()
        };
        let summary = AdapterSummary {
            name: "A".into(),
            backend: "metal".into(),
            kind: "IntegratedGpu".into(),
            driver: "1".into(),
            caps,
            max_buffer_bytes: 1,
            features: vec!["f16"],
            cooperative: vec!["8x8x8 F16 -> F32".into()],
            memory: None,
            pci: String::new(),
        };
        let found = Peaks {
            read: 1e11,
            copy: 9e10,
            rates: vec![(chaski::kernels::Unit::F32, 1e12)],
            dependent_dispatch: 1e-6,
            independent_dispatch: 1e-6,
            host_dispatch: 1e-6,
            round_trip: 1e-4,
        };
        let rate =
            FormatRate { format: "q4_K", act: None, shape: [8, 256], bytes: 1.0, weights: 2.0, tuned: 1.5 };
        as_json(&summary, &found, &[vec![rate, rate]])
    }

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/devices")
    }

    #[test]
    fn reports_have_the_form_and_others_are_refused() {
        let good = sample();
        read(&good.to_string()).expect("a report");
        let refused = |key: &str, value: Value| {
            let mut wrong = good.clone();
            *wrong.pointer_mut(key).expect("a field") = value;
            read(&wrong.to_string()).err()
        };
        assert_eq!(refused("/schema", 2.into()).as_deref(), Some("another version"));
        assert_eq!(refused("/peaks/adapter", "B".into()).as_deref(), Some("two devices"));
        assert_eq!(refused("/formats/0/format", "q9".into()).as_deref(), Some("an unknown format"));
        assert_eq!(refused("/formats", json!([])).as_deref(), Some("formats"));
        assert!(refused("/peaks/round_trip_s", 0.into()).is_some());
        assert!(refused("/device/f16", "yes".into()).is_some());
        let mut more = good.clone();
        more["note"] = "mine".into();
        assert!(read(&more.to_string()).is_err_and(|e| e.contains("unknown field `note`")));
    }

    #[test]
    fn every_file_of_the_folder_is_a_report() {
        for entry in std::fs::read_dir(folder()).expect("docs/devices") {
            let path = entry.expect("a file").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            if name == "README.md" {
                continue;
            }
            let is_named = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._".contains(c);
            assert!(
                name.ends_with(".json") && name.chars().all(is_named),
                "{name}: not the name of a report"
            );
            let text = std::fs::read_to_string(&path).expect("a text");
            read(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }

    /// Paths of all fields; `[]` stands for the items of a list.
    fn fields(v: &Value, path: &str, all: &mut BTreeSet<String>) {
        match v {
            Value::Object(map) => {
                for (key, v) in map {
                    fields(v, &if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, all);
                }
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                items.iter().for_each(|v| fields(v, &format!("{path}[]"), all));
            }
            _ => {
                all.insert(path.to_owned());
            }
        }
    }

    #[test]
    fn the_readme_explains_every_field() {
        let text = std::fs::read_to_string(folder().join("README.md")).expect("its text");
        let mut all = BTreeSet::new();
        fields(&sample(), "", &mut all);
        let missing: Vec<&String> = all.iter().filter(|f| !text.contains(&format!("`{f}`"))).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
