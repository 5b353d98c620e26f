//! The report as text.

use std::fmt::Write as _;

use super::report::{Device, Report};
use crate::ui::{bytes, one_line};

/// The report, ending with a line break.
pub(super) fn text(r: &Report) -> String {
    let mut out = String::new();
    let b = &r.build;
    line(&mut out, 0, &format!("chaski {} (commit {}, wgpu {})", b.version, b.commit, b.wgpu));
    line(&mut out, 0, &format!("{} build for {}", b.profile, b.target));
    system(&mut out, r);
    line(&mut out, 0, "\nDevices");
    r.devices.iter().for_each(|d| device(&mut out, d));
    if !r.looked_for_gpus {
        line(&mut out, 2, "GPUs were not looked for, since only the CPU was asked for");
    }
    line(&mut out, 0, "\nCaches");
    for c in &r.caches {
        let folder = c.folder.as_deref().unwrap_or("no folder");
        let state = if c.writable { "writable" } else { "NOT WRITABLE" };
        line(
            &mut out,
            2,
            &format!("{:<10} {folder}: {} files, {}, {state}", c.name, c.files, bytes(c.bytes)),
        );
    }
    line(&mut out, 0, "\nChecks");
    for c in &r.checks {
        let state = if c.ok { "ok    " } else { "FAILED" };
        let detail = one_line(&c.detail);
        line(&mut out, 2, &format!("{state}  {:<4} {:<9} {detail} ({:.1} s)", c.device, c.name, c.seconds));
    }
    if r.checks.is_empty() {
        line(&mut out, 2, "none: this build has no built-in model");
    }
    if !r.advice.is_empty() {
        line(&mut out, 0, "\nAdvice");
        for a in &r.advice {
            line(&mut out, 2, &format!("{}: {}", a.level.word(), one_line(&a.what)));
            line(&mut out, 4, &one_line(&a.help));
        }
    }
    let failed = r.checks.iter().filter(|c| !c.ok).count();
    line(&mut out, 0, "");
    match failed {
        0 => line(&mut out, 0, "Everything works."),
        1 => line(&mut out, 0, "1 check failed."),
        n => line(&mut out, 0, &format!("{n} checks failed.")),
    }
    out
}

/// Adds a line with a margin; line breaks at its start come first.
fn line(out: &mut String, margin: usize, text: &str) {
    out.extend(std::iter::repeat_n(' ', margin));
    out.push_str(text);
    out.push('\n');
}

fn system(out: &mut String, r: &Report) {
    let s = &r.system;
    line(out, 0, "\nSystem");
    let mut row = |name: &str, value: String| line(out, 2, &format!("{name:<10} {value}"));
    let kernel = s.kernel.as_ref().map_or(String::new(), |k| format!(", kernel {k}"));
    let container = s.container.map_or(String::new(), |c| format!(", in a container ({c})"));
    row("OS", format!("{}{kernel}{container}", s.os));
    let cores = s.cores.map_or(String::new(), |n| format!(", {n} cores"));
    let features = match s.cpu_features.is_empty() {
        true => String::new(),
        false => format!(" ({})", s.cpu_features.join(" ")),
    };
    row("CPU", format!("{}{cores}, {} threads for us{features}", s.cpu, s.threads));
    row("memory", format!("{}, {} available", bytes(s.memory_bytes), bytes(s.memory_available_bytes)));
    if let Some(n) = s.open_files {
        row("files", format!("at most {n} open"));
    }
    if !s.gpu_files.is_empty() {
        let state = |usable| if usable { "" } else { " (not allowed)" };
        let files: Vec<String> =
            s.gpu_files.iter().map(|f| format!("{}{}", f.name, state(f.usable))).collect();
        row("GPU files", files.join(", "));
    }
    if !s.variables.is_empty() {
        row("variables", s.variables.join(", "));
    }
}

fn device(out: &mut String, d: &Device) {
    let default = if d.is_default == Some(true) { " (the default)" } else { "" };
    line(out, 2, &format!("{}: {}{default}", d.id, one_line(&d.name)));
    if let (Some(backend), Some(driver)) = (&d.backend, &d.driver) {
        line(out, 5, &format!("{}, {backend}, driver {}", d.kind, one_line(driver)));
    }
    if let Some(kernels) = d.kernels {
        let subgroup = d.subgroup.map_or("no subgroups".to_owned(), |(min, max)| match min == max {
            true => format!("subgroups of {min}"),
            false => format!("subgroups of {min} to {max}"),
        });
        let f16 = if d.f16 { "f16" } else { "no f16" };
        let coop = match d.cooperative_matrices.is_empty() {
            true => "no cooperative matrices".to_owned(),
            false => format!("cooperative matrices {}", d.cooperative_matrices.join(", ")),
        };
        let tuned = match d.tuned_products {
            0 => "not tuned".to_owned(),
            n => format!("{n} products tuned"),
        };
        line(out, 5, &format!("kernels `{kernels}`: {subgroup}, {f16}, {coop}; {tuned}"));
    }
    // Software renderers have no memory of their own, nor has the CPU.
    if d.is_gpu() {
        let memory = match (d.memory_bytes, d.memory_free_bytes) {
            (Some(all), Some(free)) => format!("{}, {} free", bytes(all), bytes(free)),
            _ => "unknown: the driver does not tell it".to_owned(),
        };
        line(out, 5, &format!("memory: {memory}"));
    }
    if let (Some(buffer), Some(binding)) = (d.max_buffer_bytes, d.max_binding_bytes) {
        let (workgroup, threads) = (d.max_workgroup_bytes.unwrap_or(0), d.max_threads.unwrap_or(0));
        let limits = format!("limits: buffer {}, binding {}", bytes(buffer), bytes(binding));
        line(out, 5, &format!("{limits}, {threads} threads and {} per workgroup", bytes(workgroup.into())));
    }
    if let (Some(ms), Some(rate)) = (d.load_ms, d.tokens_per_second) {
        let mut times = String::new();
        // Writing to a text cannot fail.
        let _ = write!(times, "built-in model: loaded in {ms:.0} ms, {rate:.0} tokens/s");
        line(out, 5, &times);
    }
}
