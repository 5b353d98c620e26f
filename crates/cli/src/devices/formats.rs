//! `chaski devices --formats`: GEMV speed of each weight format.

use std::io::Write as _;
use std::time::Duration;

use chaski::DeviceChoice;
use chaski::gpu::{FormatRate, Gpu, GpuOptions};
use chaski::kernels::{ActivationPrecision, FORMATS, Format};
use serde_json::{Value, json};

use super::adapter;
use crate::failure::Usage;
use crate::progress::Unit;
use crate::ui::{Side, Ui, table};

/// Time budget per format and activation precision.
const BUDGET: Duration = Duration::from_millis(150);

/// Activation precisions: the device's default, and 8 bits (`--inputs i8`).
const ACTS: [Option<ActivationPrecision>; 2] = [None, Some(ActivationPrecision::I8)];

/// A format's rates, one per entry of [`ACTS`]; formats without scales have a single rate.
pub(super) type Rates = Vec<FormatRate>;

/// Opens a GPU and measures the formats of these names.
pub(super) fn measured(
    names: &str,
    choice: Option<&DeviceChoice>,
    ui: &Ui,
) -> anyhow::Result<(Gpu, Vec<Rates>)> {
    let formats = named(names)?;
    let options = GpuOptions { adapter: adapter(choice)?, ..GpuOptions::default() };
    let gpu = pollster::block_on(Gpu::open(&options))?;
    let mut all = Vec::new();
    let progress = ui.progress("measure", Unit::Formats, formats.len() as u64);
    for f in formats {
        progress.message(f.name);
        let acts = if f.run > 0 { &ACTS[..] } else { &ACTS[..1] };
        let rates: Result<Rates, _> =
            acts.iter().map(|act| pollster::block_on(gpu.measure_format(f, *act, BUDGET))).collect();
        all.push(rates?);
        progress.add(1);
    }
    progress.finish();
    Ok((gpu, all))
}

pub(super) fn run(names: &str, choice: Option<&DeviceChoice>, json: bool, ui: &Ui) -> anyhow::Result<()> {
    let (gpu, all) = measured(names, choice, ui)?;
    let mut out = std::io::stdout().lock();
    if json {
        let rows: Vec<Value> = all.iter().map(|rates| as_json(rates)).collect();
        let summary = gpu.summary();
        let value = json!({ "device": summary.name, "driver": summary.driver, "formats": rows });
        writeln!(out, "{value:#}")?;
        return Ok(());
    }
    if let Some([n_row, n_col]) = all.first().map(|rates| rates[0].shape) {
        writeln!(out, "{}: GEMV with {n_row} x {n_col} matrices", gpu.summary().name)?;
    }
    // Relative to f16's bandwidth, if that was measured, and tuned only if the format is.
    let f16 = all.iter().find(|rates| rates[0].format == "f16").map(|rates| rates[0]);
    let percent = |part: f64, of: f64| format!("{:.1} %", 100.0 * part / of);
    let share = |r: &FormatRate| f16.map_or(String::new(), |f16| percent(r.bytes, f16.bytes));
    let tuned = |r: &FormatRate| f16.map_or(String::new(), |f16| percent(r.tuned, f16.tuned));
    let head =
        ["format", "GB/s", "of f16", "tuned", "of f16", "10^9 weights/s", "tuned, inputs i8", "of f16"];
    let rows = all.iter().map(|rates| {
        let r = rates[0];
        let [fast, fast_share] = rates.get(1).map_or_else(Default::default, |r| [giga(r.tuned), tuned(r)]);
        let weights = giga(r.weights * r.tuned / r.bytes);
        let name = r.format.to_owned();
        [name, giga(r.bytes), share(&r), giga(r.tuned), tuned(&r), weights, fast, fast_share]
    });
    let rows: Vec<_> = std::iter::once(head.map(str::to_owned)).chain(rows).collect();
    let right = Side::Right;
    write!(out, "{}", table(&rows, [Side::Left, right, right, right, right, right, right, right]))?;
    Ok(())
}

fn giga(v: f64) -> String {
    if v < 1e11 { format!("{:.2}", v / 1e9) } else { format!("{:.0}", v / 1e9) }
}

/// Formats from a list of names; `all` selects all.
fn named(names: &str) -> anyhow::Result<Vec<&'static Format>> {
    if names == "all" {
        return Ok(FORMATS.iter().collect());
    }
    let find = |name: &str| {
        FORMATS.iter().find(|f| f.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
            let known: Vec<&str> = FORMATS.iter().map(|f| f.name).collect();
            Usage(format!("unknown weight format `{name}` (known: {})", known.join(", "))).into()
        })
    };
    names.split(',').map(|n| find(n.trim())).collect()
}

pub(super) fn as_json(rates: &[FormatRate]) -> Value {
    let r = rates[0];
    json!({
        "format": r.format,
        "rows": r.shape[0],
        "columns": r.shape[1],
        "bytes_per_second": r.bytes,
        "weights_per_second": r.weights,
        "bytes_per_second_tuned": r.tuned,
        "bytes_per_second_i8": rates.get(1).map(|r| r.bytes),
        "bytes_per_second_i8_tuned": rates.get(1).map(|r| r.tuned),
    })
}
