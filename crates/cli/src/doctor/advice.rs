//! Facts that matter, each with what to do about it.

use super::report::{Advice, Device, Level, Report};
use crate::ui::bytes;

/// A rule: what to say about a report.
type Rule = fn(&Report) -> Vec<Advice>;

const RULES: [Rule; 10] = [
    failed_checks,
    no_driver,
    software_only,
    missing_features,
    small_bindings,
    not_tuned,
    debug_build,
    low_memory,
    few_files,
    no_cache,
];

/// Memory below which models of a useful size do not fit.
const LITTLE_MEMORY: u64 = 2 << 30;
/// Open files that a model of many parts and a driver need.
const FEW_FILES: usize = 256;

/// All advice on a report, the most important first.
pub(super) fn of(report: &Report) -> Vec<Advice> {
    let mut all: Vec<Advice> = RULES.iter().flat_map(|rule| rule(report)).collect();
    all.sort_by_key(|advice| advice.level);
    all
}

fn advice(level: Level, what: impl Into<String>, help: impl Into<String>) -> Advice {
    Advice { level, what: what.into(), help: help.into() }
}

/// One advice if a condition holds.
fn only_if(holds: bool, level: Level, what: impl Into<String>, help: impl Into<String>) -> Vec<Advice> {
    if holds { vec![advice(level, what, help)] } else { Vec::new() }
}

fn gpus(r: &Report) -> impl Iterator<Item = &Device> {
    r.devices.iter().filter(|d| d.is_gpu())
}

fn failed_checks(r: &Report) -> Vec<Advice> {
    let help = |device: &str| {
        match device {
        "cpu" => "this is a bug: please report it with the output of this command".to_owned(),
        _ => "update the GPU's driver; `--device cpu` does without it. If the driver is new, please report it with the \
              output of this command"
            .to_owned(),
    }
    };
    let failed = r.checks.iter().filter(|c| !c.ok);
    failed
        .map(|c| match c.name {
            "device" => advice(
                Level::Broken,
                format!("no GPU is called `{}`", c.device),
                "`chaski devices` lists the GPUs",
            ),
            name => advice(
                Level::Broken,
                format!("device {}: the check `{name}` failed", c.device),
                help(&c.device),
            ),
        })
        .collect()
}

/// No adapter at all: no driver, or one that cannot reach its GPU.
fn no_driver(r: &Report) -> Vec<Advice> {
    if !r.looked_for_gpus || r.devices.iter().any(|d| d.kernels.is_some()) {
        return Vec::new();
    }
    let has = |name: &str| r.system.gpu_files.iter().any(|f| f.name == name);
    let help = match (r.system.container.is_some(), has("NVIDIA")) {
        (true, true) => {
            "the container sees an NVIDIA GPU, but not its Vulkan driver: start it with `--gpus all` and \
             `NVIDIA_DRIVER_CAPABILITIES=all`, and install `libvulkan1`"
        }
        (true, false) => {
            "install a Vulkan driver in the container (Debian, Ubuntu: `apt install mesa-vulkan-drivers`), and hand it the \
             GPU: `--device /dev/dri`, for NVIDIA `--gpus all` and `NVIDIA_DRIVER_CAPABILITIES=all`"
        }
        (false, true) => "install the Vulkan part of NVIDIA's driver (Debian: `nvidia-vulkan-icd`)",
        (false, false) if cfg!(target_os = "linux") => {
            "if there is a GPU, install its Vulkan driver (Debian, Ubuntu: `apt install mesa-vulkan-drivers`; for NVIDIA its \
             own driver)"
        }
        (false, false) => "if there is a GPU, install the driver of its maker",
    };
    vec![advice(Level::Slow, "no driver reports a GPU, so the CPU computes", help)]
}

fn software_only(r: &Report) -> Vec<Advice> {
    let found = r.devices.iter().find(|d| d.is_software);
    let Some(software) = found.filter(|_| gpus(r).next().is_none()) else { return Vec::new() };
    let unusable = r.system.gpu_files.iter().any(|f| !f.usable);
    let help = if unusable {
        "a GPU's device file is there, but this user may not open it: join the groups `render` and `video`"
    } else {
        "`--device auto` takes the CPU backend, which is faster; if there is a GPU, install its Vulkan driver"
    };
    let what = format!("the only GPU, {}, is a software renderer", software.name);
    vec![advice(Level::Slow, what, help)]
}

fn missing_features(r: &Report) -> Vec<Advice> {
    let mut all = Vec::new();
    for d in gpus(r) {
        let missing: Vec<&str> = [
            (d.subgroup.is_none(), "subgroup operations"),
            (!d.f16, "f16 arithmetic"),
            (d.kernels != Some("coop") && !d.cooperative_matrices.is_empty(), "usable cooperative matrices"),
            (
                d.kernels != Some("coop") && d.cooperative_matrices.is_empty() && d.kind == "discrete GPU",
                "cooperative matrices",
            ),
        ]
        .into_iter()
        .filter_map(|(is_missing, name)| is_missing.then_some(name))
        .collect();
        if !missing.is_empty() {
            let what = format!("{} offers no {}", d.name, missing.join(", no "));
            all.push(advice(Level::Slow, what, "a newer driver may have them; prompts are slower without"));
        }
    }
    all
}

fn small_bindings(r: &Report) -> Vec<Advice> {
    const SMALL: u64 = 256 << 20;
    let small = gpus(r).filter(|d| d.max_binding_bytes.is_some_and(|n| n < SMALL));
    small
        .map(|d| {
            let what = format!("{} binds at most {}", d.name, bytes(d.max_binding_bytes.unwrap_or(0)));
            advice(Level::Slow, what, "larger matrices are split; a newer driver may have a higher limit")
        })
        .collect()
}

fn not_tuned(r: &Report) -> Vec<Advice> {
    let untuned = gpus(r).filter(|d| d.tuned_products == 0);
    untuned
        .map(|d| {
            let what = format!("{} runs kernels with built-in thread counts", d.name);
            advice(Level::Note, what, "`chaski tune MODEL` measures better ones in a minute and keeps them")
        })
        .collect()
}

fn debug_build(r: &Report) -> Vec<Advice> {
    only_if(
        r.build.profile == "debug",
        Level::Slow,
        "this is a debug build, several times slower than a release build",
        "`cargo build --release`, or `cargo install --path crates/cli`",
    )
}

fn low_memory(r: &Report) -> Vec<Advice> {
    let available = r.system.memory_available_bytes;
    only_if(
        available > 0 && available < LITTLE_MEMORY,
        Level::Slow,
        format!("only {} of memory are available", bytes(available)),
        "end other programs, or take a smaller model or context (`-c`); `chaski show MODEL -c N` says what it needs",
    )
}

fn few_files(r: &Report) -> Vec<Advice> {
    only_if(
        r.system.open_files.is_some_and(|n| n < FEW_FILES),
        Level::Note,
        format!("at most {} files may be open", r.system.open_files.unwrap_or(0)),
        "`ulimit -n 1024` before the command; models of many files need more",
    )
}

fn no_cache(r: &Report) -> Vec<Advice> {
    let Some(cache) = r.caches.iter().find(|c| !c.writable) else { return Vec::new() };
    let what = match &cache.folder {
        Some(folder) => format!("the cache `{folder}` cannot be written"),
        None => "there is no folder for caches".to_owned(),
    };
    vec![advice(
        Level::Slow,
        what,
        "set XDG_CACHE_HOME or HOME to a folder that can be written, or kernels are compiled and tested at every start",
    )]
}
