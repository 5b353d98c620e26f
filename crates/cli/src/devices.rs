//! `chaski devices`: the available GPUs, the features kernels use, and measured speeds.

mod formats;
mod report;

use std::io::Write as _;

use chaski::DeviceChoice;
use chaski::gpu::AdapterSummary;
use serde_json::{Value, json};

use crate::failure::Usage;
use crate::options::{Form, device, feature_word};
use crate::peaks;
use crate::progress::Unit;
use crate::ui::{Side, Ui, bytes, table, tell};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Measure memory, arithmetic, dispatch and readback speed of one GPU, and save the result for profiles
    #[arg(long)]
    measure: bool,
    /// Measure GEMV speed in these weight formats (default: all); with --measure -o json: a report for docs/devices
    #[arg(long, value_name = "FORMAT,...", num_args = 0..=1, default_missing_value = "all")]
    formats: Option<String>,
    /// The GPU to measure, by name substring or index [default: the fastest]
    #[arg(long, value_name = "DEVICE", value_parser = device)]
    device: Option<DeviceChoice>,
    /// Output format
    #[arg(short, long, value_enum, default_value = "md")]
    output: Form,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> anyhow::Result<()> {
    let json = args.output == Form::Json;
    match (args.measure, &args.formats) {
        (true, Some(names)) if json => return report::run(names, args.device.as_ref(), ui),
        (true, Some(names)) => {
            measure(args.device.as_ref(), json, ui)?;
            return formats::run(names, args.device.as_ref(), json, ui);
        }
        (true, None) => return measure(args.device.as_ref(), json, ui),
        (false, Some(names)) => return formats::run(names, args.device.as_ref(), json, ui),
        (false, None) => {}
    }
    if !json {
        return list();
    }
    let adapters = pollster::block_on(chaski::gpu::adapters());
    let all: Vec<Value> = adapters.iter().enumerate().map(as_json).chain([cpu_as_json()]).collect();
    writeln!(std::io::stdout().lock(), "{:#}", Value::Array(all))?;
    Ok(())
}

/// Measures one adapter.
fn measure(choice: Option<&DeviceChoice>, json: bool, ui: &Ui) -> anyhow::Result<()> {
    let adapter = adapter(choice)?;
    let progress = ui.progress("measure", Unit::Seconds, 0);
    let (summary, found) = peaks::measure(adapter)?;
    progress.finish();
    let mut out = std::io::stdout().lock();
    if json {
        writeln!(out, "{:#}", peaks::to_json(&summary, &found))?;
        return Ok(());
    }
    writeln!(out, "{} ({}, driver {})", summary.name, summary.backend, summary.driver)?;
    let head = ["measured", "best"].map(str::to_owned);
    let rows = peaks::rows(&found).into_iter().map(|(name, value)| [name.to_owned(), value]);
    let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
    write!(out, "{}", table(&rows, [Side::Left, Side::Right]))?;
    ui.detail("`chaski bench --profile` uses these numbers as limits");
    Ok(())
}

/// The name of the adapter to measure, if one was named.
fn adapter(choice: Option<&DeviceChoice>) -> anyhow::Result<Option<String>> {
    match choice {
        Some(DeviceChoice::Cpu) => {
            Err(Usage("the CPU backend cannot be measured: specify a GPU".into()).into())
        }
        Some(DeviceChoice::Gpus(_) | DeviceChoice::AllGpus) => {
            Err(Usage("GPUs are measured one at a time: specify one".into()).into())
        }
        Some(DeviceChoice::Gpu(name)) => Ok(name.clone()),
        Some(DeviceChoice::Auto) | None => Ok(None),
    }
}

/// Prints all adapters for people.
pub(crate) fn list() -> anyhow::Result<()> {
    let adapters = pollster::block_on(chaski::gpu::adapters());
    let mut out = std::io::stdout().lock();
    for (i, a) in adapters.iter().enumerate() {
        let c = &a.caps;
        writeln!(out, "{i}: {}", a.name)?;
        writeln!(out, "   {}, {}, driver {}", kind(a), a.backend, a.driver)?;
        let subgroup = c.subgroup.map_or("no subgroups".to_owned(), |(min, max)| match min == max {
            true => format!("subgroups of {min}"),
            false => format!("subgroups of {min} to {max}"),
        });
        let f16 = if c.f16 { "f16" } else { "no f16" };
        writeln!(out, "   feature set {}: {subgroup}, {f16}", feature_word(c))?;
        writeln!(
            out,
            "   limits: binding {}, buffer {}, {} threads and {} of memory per workgroup",
            bytes(c.max_binding_bytes),
            bytes(a.max_buffer_bytes),
            c.max_threads,
            bytes(c.max_workgroup_bytes.into())
        )?;
        if !a.features.is_empty() {
            writeln!(out, "   features: {}", a.features.join(", "))?;
        }
        if !a.cooperative.is_empty() {
            writeln!(out, "   cooperative matrices: {}", a.cooperative.join(", "))?;
        }
    }
    writeln!(out, "cpu: the CPU backend (`--device cpu`)")?;
    if adapters.is_empty() {
        tell("No GPU found: no Vulkan, Metal or Direct3D 12 driver reports one.");
        if cfg!(target_os = "linux") {
            tell(
                "On Debian and Ubuntu, `apt install mesa-vulkan-drivers` installs a driver for most GPUs; NVIDIA GPUs \
                 need NVIDIA's own driver.",
            );
        }
    }
    Ok(())
}

/// The kind of a GPU, in words.
pub(crate) fn kind(a: &AdapterSummary) -> &str {
    match a.kind.as_str() {
        "DiscreteGpu" => "discrete GPU",
        "IntegratedGpu" => "integrated GPU",
        "VirtualGpu" => "virtual",
        "Cpu" => "software",
        other => other,
    }
}

/// The CPU backend, which the text lists, too.
fn cpu_as_json() -> Value {
    json!({ "device": "cpu", "name": "CPU", "backend": "CPU", "kind": "Backend" })
}

/// A GPU; `device` is its word for `--device`.
fn as_json((index, a): (usize, &AdapterSummary)) -> Value {
    let Value::Object(described) = described(a) else { unreachable!("an object") };
    let device = ("device".to_owned(), index.to_string().into());
    std::iter::once(device).chain(described).collect()
}

/// Properties of a GPU that need no measuring.
fn described(a: &AdapterSummary) -> Value {
    let c = &a.caps;
    json!({
        "name": a.name,
        "backend": a.backend,
        "kind": a.kind,
        "driver": a.driver,
        "feature_set": feature_word(c),
        "features": a.features,
        "subgroup": c.subgroup.map(|(min, max)| json!({ "min": min, "max": max })),
        "f16": c.f16,
        "software": c.software,
        "limits": {
            "max_buffer_bytes": a.max_buffer_bytes,
            "max_binding_bytes": c.max_binding_bytes,
            "max_threads": c.max_threads,
            "max_workgroup_bytes": c.max_workgroup_bytes,
            "max_groups": c.max_groups,
        },
        "cooperative_matrices": a.cooperative,
        "cooperative_shape": c.coop.map(|s| json!({ "side": s.side, "lanes": s.lanes })),
    })
}
