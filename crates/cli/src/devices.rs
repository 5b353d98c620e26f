//! `chaski devices`: the GPUs that there are, and what kernels can use of them.

use std::io::Write as _;

use chaski::AdapterSummary;
use serde_json::{Value, json};

use crate::options::feature_word;
use crate::ui::bytes;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if !args.json {
        return list();
    }
    let adapters = pollster::block_on(chaski::adapters());
    let all: Vec<Value> = adapters.iter().map(as_json).collect();
    writeln!(std::io::stdout().lock(), "{:#}", Value::Array(all))?;
    Ok(())
}

/// Prints all adapters for people.
pub(crate) fn list() -> anyhow::Result<()> {
    let adapters = pollster::block_on(chaski::adapters());
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
            "   limits: binding {}, buffer {}, {} threads and {} of memory a workgroup",
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
    writeln!(out, "cpu: the processor, through slow reference code (`--device cpu`)")?;
    if adapters.is_empty() {
        eprintln!("There is no GPU that a driver for Vulkan, Metal or Direct3D 12 shows.");
        if cfg!(target_os = "linux") {
            eprintln!("On Debian and Ubuntu, `apt install mesa-vulkan-drivers` brings one for most GPUs;");
            eprintln!("for NVIDIA, the maker's own driver does.");
        }
    }
    Ok(())
}

fn kind(a: &AdapterSummary) -> &str {
    match a.kind.as_str() {
        "DiscreteGpu" => "graphics card",
        "IntegratedGpu" => "part of the processor",
        "VirtualGpu" => "virtual",
        "Cpu" => "software",
        other => other,
    }
}

fn as_json(a: &AdapterSummary) -> Value {
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
    })
}
