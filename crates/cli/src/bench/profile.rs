//! Where the time goes: a table by part and kernel, and a trace for Chrome's viewer or Perfetto.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context as _;
use chaski::Profile;
use serde_json::{Value, json};

/// A profile and what it is of.
pub(super) struct Named {
    pub(super) name: String,
    pub(super) profile: Profile,
}

/// Prints a table, longest first.
pub(super) fn print(out: &mut impl Write, p: &Named) -> io::Result<()> {
    let total: f64 = p.profile.rows.iter().map(|r| r.micros).sum();
    let n_byte: u64 = p.profile.rows.iter().map(|r| r.n_byte).sum();
    let rate = |n_byte: u64, micros: f64| match n_byte {
        0 => "-".to_owned(),
        n => format!("{:.1}", n as f64 / micros.max(1e-9) / 1e3),
    };
    let kernel = p.profile.rows.iter().map(|r| r.kernel.len()).max().unwrap_or(0).max(6);
    let part = p.profile.rows.iter().map(|r| r.part.len()).max().unwrap_or(0).max(5);
    writeln!(out, "\n{}: {total:.1} µs on the device, {} GB/s of weights", p.name, rate(n_byte, total))?;
    writeln!(out, "| {:<part$} | {:<kernel$} | count |         µs |  share |   GB/s |", "part", "kernel")?;
    writeln!(
        out,
        "|{}|{}|------:|-----------:|-------:|-------:|",
        "-".repeat(part + 2),
        "-".repeat(kernel + 2)
    )?;
    for r in &p.profile.rows {
        let share = 100.0 * r.micros / total.max(1e-9);
        writeln!(
            out,
            "| {:<part$} | {:<kernel$} | {:>5} | {:>10.1} | {share:>5.1}% | {:>6} |",
            r.part,
            r.kernel,
            r.count,
            r.micros,
            rate(r.n_byte, r.micros)
        )?;
    }
    Ok(())
}

/// Writes every dispatch in Chrome's trace format; each profile is a row of its own.
pub(super) fn write_trace(path: &Path, profiles: &[Named]) -> anyhow::Result<()> {
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
    std::fs::write(path, text).with_context(|| format!("`{}` cannot be written", path.display()))
}
