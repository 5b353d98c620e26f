//! The machine and what the process may use of it.

use std::fs::File;
use std::path::Path;

use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind};

use super::report::{GpuFile, System};

/// Files that show a container, and its kind.
const CONTAINERS: [(&str, &str); 3] = [
    ("/.dockerenv", "Docker"),
    ("/run/.containerenv", "Podman"),
    ("/var/run/secrets/kubernetes.io", "Kubernetes"),
];

/// Device files of GPUs on Linux; a GPU may be there without a driver for Vulkan.
const GPU_FILES: [(&str, &str); 3] =
    [("/dev/nvidia0", "NVIDIA"), ("/dev/dri/renderD128", "DRM"), ("/dev/dxg", "WSL")];

/// Variables of ours, of the loader of Vulkan, of its drivers, and of the log.
const VARIABLES: [&str; 9] =
    ["CHASKI_", "VK_", "MESA_", "LIBGL_", "NVIDIA_", "CUDA_VISIBLE_", "WGPU_", "RUST_LOG", "RAYON_"];

pub(super) fn examine() -> System {
    let what = RefreshKind::nothing()
        .with_cpu(CpuRefreshKind::nothing())
        .with_memory(MemoryRefreshKind::nothing().with_ram());
    let machine = sysinfo::System::new_with_specifics(what);
    let mut memory = (machine.total_memory(), machine.available_memory());
    if let Some(limits) = machine.cgroup_limits() {
        memory = (memory.0.min(limits.total_memory), memory.1.min(limits.free_memory));
    }
    let cpu = machine.cpus().first().map_or("", |cpu| cpu.brand().trim()).to_owned();
    let mut variables: Vec<String> = std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| VARIABLES.iter().any(|start| name.starts_with(start)))
        .collect();
    variables.sort();
    System {
        os: sysinfo::System::long_os_version().unwrap_or_else(|| std::env::consts::OS.to_owned()),
        kernel: sysinfo::System::kernel_version(),
        container: container(),
        cpu: if cpu.is_empty() { std::env::consts::ARCH.to_owned() } else { cpu },
        cpu_features: cpu_features(),
        cores: sysinfo::System::physical_core_count(),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        memory_bytes: memory.0,
        memory_available_bytes: memory.1,
        open_files: sysinfo::System::open_files_limit(),
        variables,
        gpu_files: gpu_files(),
    }
}

fn container() -> Option<&'static str> {
    CONTAINERS.into_iter().find(|(path, _)| Path::new(path).exists()).map(|(_, kind)| kind)
}

fn gpu_files() -> Vec<GpuFile> {
    let is_there = |(path, _): &(&str, &str)| Path::new(path).exists();
    let usable = |path| File::options().read(true).write(true).open(path).is_ok();
    GPU_FILES
        .into_iter()
        .filter(is_there)
        .map(|(path, name)| GpuFile { name, usable: usable(path) })
        .collect()
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn cpu_features() -> Vec<&'static str> {
    let all = [
        ("sse4.2", is_x86_feature_detected!("sse4.2")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("fma", is_x86_feature_detected!("fma")),
        ("f16c", is_x86_feature_detected!("f16c")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512vnni", is_x86_feature_detected!("avx512vnni")),
    ];
    all.into_iter().filter(|(_, found)| *found).map(|(name, _)| name).collect()
}

#[cfg(target_arch = "aarch64")]
fn cpu_features() -> Vec<&'static str> {
    let all = [
        ("neon", std::arch::is_aarch64_feature_detected!("neon")),
        ("dotprod", std::arch::is_aarch64_feature_detected!("dotprod")),
        ("i8mm", std::arch::is_aarch64_feature_detected!("i8mm")),
        ("sve", std::arch::is_aarch64_feature_detected!("sve")),
    ];
    all.into_iter().filter(|(_, found)| *found).map(|(name, _)| name).collect()
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
fn cpu_features() -> Vec<&'static str> {
    Vec::new()
}
