//! The report as data; docs/doctor.md describes its fields.

use chaski::gpu::AdapterSummary;
use serde::Serialize;

use crate::devices::kind;
use crate::options::feature_word;
use crate::tuned;

#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// True if all checks passed.
    pub(super) ok: bool,
    pub(super) build: Build,
    pub(super) system: System,
    /// False if only the CPU was asked for: then no driver was loaded.
    pub(super) looked_for_gpus: bool,
    pub(super) devices: Vec<Device>,
    pub(super) caches: Vec<Cache>,
    pub(super) checks: Vec<Check>,
    pub(super) advice: Vec<Advice>,
}

#[derive(Debug, Serialize)]
pub(super) struct Build {
    pub(super) version: &'static str,
    pub(super) commit: &'static str,
    pub(super) wgpu: &'static str,
    /// `release` or `debug`.
    pub(super) profile: &'static str,
    pub(super) target: String,
    /// False if the build has no built-in model.
    pub(super) default_model: bool,
}

impl Build {
    pub(super) fn this() -> Self {
        Build {
            version: env!("CARGO_PKG_VERSION"),
            commit: env!("CHASKI_COMMIT"),
            wgpu: env!("CHASKI_WGPU_VERSION"),
            profile: if cfg!(debug_assertions) { "debug" } else { "release" },
            target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
            default_model: cfg!(feature = "default-model"),
        }
    }
}

#[derive(Debug, Default, Serialize)]
pub(super) struct System {
    pub(super) os: String,
    pub(super) kernel: Option<String>,
    /// The kind of container that this runs in, if any.
    pub(super) container: Option<&'static str>,
    pub(super) cpu: String,
    /// Vector extensions.
    pub(super) cpu_features: Vec<&'static str>,
    /// Cores of the machine.
    pub(super) cores: Option<usize>,
    /// Threads that this process may use.
    pub(super) threads: usize,
    pub(super) memory_bytes: u64,
    pub(super) memory_available_bytes: u64,
    /// Maximum number of open files.
    pub(super) open_files: Option<usize>,
    /// Names of variables that change what the program does.
    pub(super) variables: Vec<String>,
    /// Device files of GPUs: their kind, and whether this user may open them.
    pub(super) gpu_files: Vec<GpuFile>,
}

/// A device file of a GPU.
#[derive(Debug, Serialize)]
pub(super) struct GpuFile {
    pub(super) name: &'static str,
    pub(super) usable: bool,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Device {
    /// As `--device` takes it.
    pub(super) id: String,
    pub(super) name: String,
    /// Discrete, integrated, software ...
    pub(super) kind: String,
    pub(super) backend: Option<String>,
    pub(super) driver: Option<String>,
    /// True for the device that `--device auto` takes; `None` if the GPUs were not listed.
    pub(super) is_default: Option<bool>,
    pub(super) is_software: bool,
    /// The set of kernels in use.
    pub(super) kernels: Option<&'static str>,
    pub(super) subgroup: Option<(u32, u32)>,
    pub(super) f16: bool,
    pub(super) cooperative_matrices: Vec<String>,
    pub(super) features: Vec<&'static str>,
    /// Memory of its own, where the system tells it.
    pub(super) memory_bytes: Option<u64>,
    /// The part of it that no program uses.
    pub(super) memory_free_bytes: Option<u64>,
    pub(super) max_buffer_bytes: Option<u64>,
    pub(super) max_binding_bytes: Option<u64>,
    pub(super) max_workgroup_bytes: Option<u32>,
    pub(super) max_threads: Option<u32>,
    /// Shapes of products tuned by `chaski tune`.
    pub(super) tuned_products: usize,
    /// Times of the built-in model.
    pub(super) load_ms: Option<f64>,
    pub(super) tokens_per_second: Option<f64>,
}

impl Device {
    pub(super) fn of_adapter(index: usize, a: &AdapterSummary, is_default: bool) -> Self {
        let memory = a.memory.filter(|_| !a.caps.software);
        Device {
            id: index.to_string(),
            name: a.name.clone(),
            kind: kind(a).to_owned(),
            backend: Some(a.backend.clone()),
            driver: Some(a.driver.clone()),
            is_default: Some(is_default),
            is_software: a.caps.software,
            kernels: Some(feature_word(&a.caps)),
            subgroup: a.caps.subgroup,
            f16: a.caps.f16,
            cooperative_matrices: a.cooperative.clone(),
            features: a.features.clone(),
            memory_bytes: memory.map(|m| m.n_byte),
            memory_free_bytes: memory.map(|m| m.n_free),
            max_buffer_bytes: Some(a.max_buffer_bytes),
            max_binding_bytes: Some(a.caps.max_binding_bytes),
            max_workgroup_bytes: Some(a.caps.max_workgroup_bytes),
            max_threads: Some(a.caps.max_threads),
            tuned_products: tuned::known(a).products.len(),
            ..Device::default()
        }
    }

    pub(super) fn cpu(is_default: Option<bool>) -> Self {
        Device {
            id: "cpu".into(),
            name: "the CPU backend".into(),
            kind: "CPU".into(),
            is_default,
            ..Device::default()
        }
    }

    pub(super) fn is_gpu(&self) -> bool {
        self.kernels.is_some() && !self.is_software
    }
}

/// A folder of data kept between starts.
#[derive(Debug, Serialize)]
pub(super) struct Cache {
    pub(super) name: &'static str,
    /// With `~` for the user's own folder; `None` if the system names no folder for caches.
    pub(super) folder: Option<String>,
    pub(super) files: usize,
    pub(super) bytes: u64,
    pub(super) writable: bool,
}

/// A test of a device.
#[derive(Debug, Serialize)]
pub(super) struct Check {
    pub(super) device: String,
    pub(super) name: &'static str,
    pub(super) ok: bool,
    pub(super) seconds: f64,
    /// The result, or the error.
    pub(super) detail: String,
}

/// The weight of an advice.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// Something does not work.
    Broken,
    /// Something is slower than it could be.
    Slow,
    /// Good to know.
    Note,
}

impl Level {
    pub(super) fn word(self) -> &'static str {
        match self {
            Level::Broken => "broken",
            Level::Slow => "slow",
            Level::Note => "note",
        }
    }
}

/// A fact that matters, and what to do about it.
#[derive(Debug, Serialize)]
pub(super) struct Advice {
    pub(super) level: Level,
    pub(super) what: String,
    pub(super) help: String,
}
