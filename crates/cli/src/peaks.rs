//! Results of `chaski devices --measure`, kept per adapter and driver: the limits that profiles compare with.

use std::time::Duration;

use anyhow::Context as _;
use chaski::gpu::{AdapterSummary, Gpu, GpuOptions, Peaks};
use chaski::kernels::Unit;
use serde_json::{Map, Value, json};

use crate::cache;
use crate::output::write_bytes;
use crate::ui::Ui;

/// Version of the measurements; files of another version are ignored.
const VERSION: u64 = 1;

/// Approximate duration of a measurement.
const BUDGET: Duration = Duration::from_millis(2500);

const UNITS: [Unit; 4] = [Unit::F32, Unit::F16, Unit::Int8, Unit::Coop];

/// Opens an adapter with all features, measures it and saves the result.
pub(crate) fn measure(adapter: Option<String>) -> anyhow::Result<(AdapterSummary, Peaks)> {
    let options = GpuOptions { adapter, ..GpuOptions::default() };
    let gpu = pollster::block_on(Gpu::open(&options))?;
    let peaks = pollster::block_on(gpu.measure(BUDGET)).context("cannot measure the device")?;
    let summary = gpu.summary().clone();
    if let Some(folder) = cache::folder("peaks") {
        let text = format!("{:#}\n", to_json(&summary, &peaks));
        let path = folder.join(cache::file_of(&summary, "json"));
        let saved = std::fs::create_dir_all(&folder)
            .map_err(anyhow::Error::from)
            .and_then(|()| write_bytes(&path, &[], text.as_bytes()));
        if let Err(e) = saved {
            tracing::debug!(path = %path.display(), %e, "cannot save the measurements");
        }
    }
    Ok((summary, peaks))
}

/// Measured limits of an adapter; measures them if none are saved.
pub(crate) fn known_or_measured(summary: &AdapterSummary, ui: &Ui) -> anyhow::Result<Peaks> {
    if let Some(peaks) = known(summary) {
        return Ok(peaks);
    }
    ui.note(&format!("measuring the limits of {} for the profile", summary.name));
    measure(Some(summary.name.clone())).map(|(_, peaks)| peaks)
}

fn known(summary: &AdapterSummary) -> Option<Peaks> {
    let path = cache::folder("peaks")?.join(cache::file_of(summary, "json"));
    let text = std::fs::read_to_string(path).ok()?;
    from_json(&serde_json::from_str(&text).ok()?)
}

/// Saved and printed form; each name ends with its unit.
pub(crate) fn to_json(s: &AdapterSummary, p: &Peaks) -> Value {
    let rates: Map<String, Value> = p.rates.iter().map(|(u, r)| (u.word().to_owned(), (*r).into())).collect();
    json!({
        "version": VERSION,
        "adapter": s.name,
        "backend": s.backend,
        "driver": s.driver,
        "read_bytes_per_s": p.read,
        "copy_bytes_per_s": p.copy,
        "operations_per_s": rates,
        "dependent_dispatch_s": p.dependent_dispatch,
        "independent_dispatch_s": p.independent_dispatch,
        "host_dispatch_s": p.host_dispatch,
        "round_trip_s": p.round_trip,
    })
}

fn from_json(v: &Value) -> Option<Peaks> {
    if v["version"].as_u64() != Some(VERSION) {
        return None;
    }
    let positive = |v: &Value| v.as_f64().filter(|x| x.is_finite() && *x > 0.0);
    let number = |key: &str| positive(&v[key]);
    let rate = |u: Unit| positive(&v["operations_per_s"][u.word()]).map(|r| (u, r));
    Some(Peaks {
        read: number("read_bytes_per_s")?,
        copy: number("copy_bytes_per_s")?,
        rates: UNITS.into_iter().filter_map(rate).collect(),
        dependent_dispatch: number("dependent_dispatch_s")?,
        independent_dispatch: number("independent_dispatch_s")?,
        host_dispatch: number("host_dispatch_s")?,
        round_trip: number("round_trip_s")?,
    })
}

/// Name and value of every number, as text.
pub(crate) fn rows(p: &Peaks) -> Vec<(&'static str, String)> {
    let rate = |u: Unit| {
        let what = if u == Unit::Int8 { "op/s" } else { "FLOP/s" };
        p.rate(u).map_or("-".to_owned(), |r| match r {
            r if r < 1e12 => format!("{:.1} G{what}", r / 1e9),
            r => format!("{:.1} T{what}", r / 1e12),
        })
    };
    let bandwidth = |b: f64| format!("{:.1} GB/s", b / 1e9);
    let micros = |s: f64| format!("{:.2} µs", s * 1e6);
    vec![
        ("memory, read", bandwidth(p.read)),
        ("memory, copy (read + write)", bandwidth(p.copy)),
        ("f32 FMA", rate(Unit::F32)),
        ("f16 FMA", rate(Unit::F16)),
        ("4 x int8 dot products", rate(Unit::Int8)),
        ("cooperative matrices, f16 to f32", rate(Unit::Coop)),
        ("dependent dispatch, device", micros(p.dependent_dispatch)),
        ("independent dispatch, device", micros(p.independent_dispatch)),
        ("dispatch, CPU", micros(p.host_dispatch)),
        ("dispatch and readback", micros(p.round_trip)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_can_be_read_and_other_versions_are_not() {
        let peaks = Peaks {
            read: 4e12,
            copy: 3.5e12,
            rates: vec![(Unit::F32, 5e13), (Unit::Coop, 4e14)],
            dependent_dispatch: 2.8e-6,
            independent_dispatch: 1e-6,
            host_dispatch: 9e-7,
            round_trip: 5e-5,
        };
        let summary = AdapterSummary {
            name: "A".into(),
            backend: "vulkan".into(),
            kind: "DiscreteGpu".into(),
            driver: "1".into(),
            caps: chaski::kernels::Caps::base(),
            max_buffer_bytes: 1,
            features: Vec::new(),
            cooperative: Vec::new(),
            memory: None,
            pci: String::new(),
        };
        let mut v = to_json(&summary, &peaks);
        assert_eq!(from_json(&v), Some(peaks.clone()));
        assert!(rows(&peaks).iter().any(|(_, v)| v == "400.0 TFLOP/s"));
        v["version"] = 0.into();
        assert_eq!(from_json(&v), None);
        v = to_json(&summary, &peaks);
        v["read_bytes_per_s"] = 0.into();
        assert_eq!(from_json(&v), None);
    }
}
