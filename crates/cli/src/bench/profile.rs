//! Profiles: a table by part and kernel against the device's limits, and a trace for Chrome's viewer or Perfetto.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chaski::gpu::{Peaks, Profile, ProfileRow};
use serde_json::{Value, json};

use crate::output::write_bytes;
use crate::ui::{self, Side};

/// A profile and its description.
pub(super) struct Named {
    pub(super) name: String,
    /// Number of tokens, and position of the first.
    pub(super) run: (u32, u32),
    pub(super) profile: Profile,
    pub(super) peaks: Peaks,
}

/// Lower bounds of a row's time, by limit.
struct Floors {
    /// Bytes over measured bandwidth.
    memory: f64,
    /// Operations over the measured rate of the unit that executes them.
    arithmetic: Option<f64>,
    /// Dependent dispatches.
    dispatch: f64,
}

impl Floors {
    fn of(r: &ProfileRow, peaks: &Peaks) -> Floors {
        Floors {
            memory: r.n_byte as f64 / peaks.read * 1e6,
            arithmetic: peaks.rate(r.unit).map(|rate| r.n_flop as f64 / rate * 1e6),
            dispatch: f64::from(r.count) * peaks.dependent_dispatch * 1e6,
        }
    }

    /// The largest.
    fn bound(&self) -> (&'static str, f64) {
        let all = [
            ("memory", self.memory),
            ("arithmetic", self.arithmetic.unwrap_or(0.0)),
            ("dispatch", self.dispatch),
        ];
        all.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("the array is not empty")
    }
}

fn percent(part: f64, whole: f64) -> f64 {
    100.0 * part / whole.max(1e-9)
}

/// Prints a table, longest first.
pub(super) fn print(out: &mut impl Write, p: &Named) -> io::Result<()> {
    let rows = &p.profile.rows;
    let total: f64 = rows.iter().map(|r| r.micros).sum();
    let weights: u64 = rows.iter().map(|r| r.n_weight_byte).sum();
    let head =
        ["part", "kernel", "count", "µs", "share", "GB/s", "of read", "TFLOP/s", "of unit", "bound by"];
    let mut table: Vec<[String; 10]> = vec![head.map(str::to_owned)];
    for r in rows {
        let floors = Floors::of(r, &p.peaks);
        let (bound, _) = floors.bound();
        let share = |floor: Option<f64>, unit: &str| {
            floor.map_or("-".to_owned(), |f| format!("{:.1}%{unit}", percent(f, r.micros)))
        };
        table.push([
            r.part.to_owned(),
            r.kernel.to_owned(),
            r.count.to_string(),
            format!("{:.1}", r.micros),
            format!("{:.1}%", percent(r.micros, total)),
            format!("{:.1}", r.n_byte as f64 / r.micros.max(1e-9) / 1e3),
            share(Some(floors.memory), ""),
            format!("{:.2}", r.n_flop as f64 / r.micros.max(1e-9) / 1e6),
            share(floors.arithmetic, &format!(" {}", r.unit.word())),
            bound.to_owned(),
        ]);
    }
    let rate = weights as f64 / total.max(1e-9) / 1e3;
    writeln!(out, "\n{}: {total:.1} µs on the device, {rate:.1} GB/s of weights", p.name)?;
    let mut sides = [Side::Right; 10];
    for words in [0, 1, 9] {
        sides[words] = Side::Left;
    }
    write!(out, "{}", ui::table(&table, sides))
}

/// A profile without its single dispatches, which the trace has.
pub(super) fn as_json(p: &Named) -> Value {
    let rows: Vec<Value> = p
        .profile
        .rows
        .iter()
        .map(|r| {
            let floors = Floors::of(r, &p.peaks);
            let (bound, floor) = floors.bound();
            let round = |x: f64| (x * 1e3).round() / 1e3;
            json!({
                "part": r.part,
                "kernel": r.kernel,
                "unit": r.unit.word(),
                "count": r.count,
                "us": round(r.micros),
                "weight_bytes": r.n_weight_byte,
                "bytes": r.n_byte,
                "operations": r.n_flop,
                "percent_of_read": round(percent(floors.memory, r.micros)),
                "percent_of_unit": floors.arithmetic.map(|f| round(percent(f, r.micros))),
                "bound": bound,
                "percent_of_bound": round(percent(floor, r.micros)),
            })
        })
        .collect();
    json!({ "name": p.name, "n_col": p.run.0, "pos": p.run.1, "rows": rows })
}

/// Writes every dispatch in Chrome's trace format; each profile is a row of its own.
pub(super) fn write_trace(path: &Path, inputs: &[PathBuf], profiles: &[Named]) -> anyhow::Result<()> {
    let mut events: Vec<Value> = Vec::new();
    for (i, p) in profiles.iter().enumerate() {
        let named =
            json!({ "name": "thread_name", "ph": "M", "pid": 1, "tid": i, "args": { "name": p.name } });
        events.push(named);
        for (part, start, micros) in &p.profile.events {
            events.push(json!({ "name": part, "ph": "X", "pid": 1, "tid": i, "ts": start, "dur": micros }));
        }
    }
    let text = json!({ "traceEvents": events }).to_string();
    write_bytes(path, inputs, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use chaski::kernels::Unit;

    use super::*;

    fn named() -> Named {
        let row = |part, unit, count, micros, n_byte, n_flop| ProfileRow {
            part,
            kernel: "k",
            count,
            micros,
            unit,
            n_weight_byte: n_byte,
            n_byte,
            n_flop,
        };
        let rows = vec![
            row("reads", Unit::F32, 1, 200.0, 100_000_000, 1_000),
            row("calculates", Unit::Coop, 1, 100.0, 1_000, 1_000_000_000),
            row("waits", Unit::Int8, 10, 50.0, 1_000, 1_000),
        ];
        let peaks = Peaks {
            read: 1e12,
            rates: vec![(Unit::F32, 1e12), (Unit::Coop, 2e13)],
            dependent_dispatch: 2e-6,
            ..Peaks::default()
        };
        let profile = Profile { rows, events: Vec::new() };
        Named { name: "a model: one token at 0".into(), run: (1, 0), profile, peaks }
    }

    #[test]
    fn each_row_says_what_bounds_it_and_how_near_it_is() {
        let v = as_json(&named());
        let cell = |i: usize, key: &str| v["rows"][i][key].clone();
        assert_eq!([0, 1, 2].map(|i| cell(i, "bound")), ["memory", "arithmetic", "dispatch"]);
        assert_eq!(cell(0, "percent_of_read"), 50.0);
        assert_eq!(cell(1, "percent_of_unit"), 50.0);
        assert_eq!(cell(2, "percent_of_bound"), 40.0);
        // That unit was not measured.
        assert_eq!(cell(2, "percent_of_unit"), Value::Null);
    }

    #[test]
    fn tables_are_aligned() {
        let mut out = Vec::new();
        print(&mut out, &named()).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().filter(|l| l.starts_with('|')).collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert!(lines.iter().all(|l| l.chars().count() == lines[0].chars().count()), "{text}");
        assert!(lines[3].contains("50.0% coop"), "{text}");
    }
}
