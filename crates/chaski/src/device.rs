//! Opening a device, with a fallback if it computes wrong values.

#[cfg(not(target_arch = "wasm32"))]
mod several;
#[cfg(target_arch = "wasm32")]
#[path = "device/no_several.rs"]
mod several;

use std::sync::Arc;

use chaski_models::Target;
use chaski_runtime::RuntimeError;
use chaski_runtime::gpu::{AdapterSummary, Gpu, GpuOptions, self_test};
use chaski_runtime::kernels::{Caps, FeatureSet, probes};
use ggml_format::Isa;

use crate::error::Error;

#[cfg(not(target_arch = "wasm32"))]
pub use several::all_gpus;

/// The device to run on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The fastest GPU; the CPU if there is none, or only a software renderer, which is several times slower
    /// than the CPU backend. With an explicit feature set, a software renderer is used.
    #[default]
    Auto,
    /// A GPU, by part of its name or its index; the fastest one if `None`.
    Gpu(Option<String>),
    /// Several GPUs, by part of their names or their indices, for models too large for one: each holds some of the
    /// layers, in this order ([`EngineBuilder::shares`](crate::EngineBuilder::shares)). `cpu` among them gives layers
    /// to the CPU backend: the first ones, wherever it is in the list, since the last device chooses tokens. Not in a
    /// browser.
    Gpus(Vec<String>),
    /// All GPUs of the fastest one's graphics API in the order of [`adapters`](crate::gpu::adapters), software
    /// renderers excluded; as [`Self::Gpus`]. One GPU is used as [`Self::Gpu`] would.
    AllGpus,
    /// The CPU.
    Cpu,
}

/// The device that an engine runs on; of several devices, all names in layer order, and the capabilities of the last,
/// which samples.
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    /// The adapter's name, or `CPU`.
    pub name: String,
    /// Backend and driver.
    pub driver: String,
    /// Capabilities that kernels can use; `None` on the CPU.
    pub caps: Option<Caps>,
    /// The reason why the CPU is used although the choice allows a GPU, if it is.
    pub fallback: Option<String>,
    /// The reason why kernels use fewer features than the device offers: its self-test failure.
    pub distrust: Option<String>,
}

/// Runs a few kernels on a device and compares their results with the references: the test of
/// [`EngineBuilder::self_test`](crate::EngineBuilder::self_test). Returns the number of tests.
///
/// # Errors
/// [`RuntimeError::SelfTest`] for the first wrong result; others if the device fails.
pub async fn self_test_of(gpu: &Gpu) -> Result<usize, RuntimeError> {
    let cases = probes();
    self_test(gpu, &cases).await?;
    Ok(cases.len())
}

/// An open device, with the record of how it was chosen.
pub(crate) struct Opened {
    pub(crate) target: Target,
    pub(crate) info: DeviceInfo,
    /// Of several devices those that are missing: their indices in the choice, and names.
    pub(crate) missing: Vec<(usize, String)>,
    /// Index of the CPU in a choice of several devices.
    pub(crate) cpu: Option<usize>,
}

impl Opened {
    fn of(target: Target, info: DeviceInfo) -> Opened {
        Opened { target, info, missing: Vec::new(), cpu: None }
    }

    /// The same GPUs for the last layers of a model, after those of the CPU. No effect in a browser.
    pub(crate) fn after_cpu(self) -> Opened {
        several::after_cpu(self)
    }
}

/// The devices of several that a model needs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of them, as when a model is loaded first.
    All,
    /// Those that are left after one was lost: at least one.
    Left,
}

/// Opens a device, or several. `trusted` returns true if a device's kernels need no self-test.
pub(crate) async fn open(
    choice: &DeviceChoice,
    options: &mut GpuOptions,
    wanted: Wanted,
    trusted: impl Fn(&AdapterSummary) -> bool,
) -> Result<Opened, Error> {
    let test = |gpu: Arc<Gpu>| {
        let is_trusted = trusted(gpu.summary());
        async move { if is_trusted { Ok(()) } else { self_test(&gpu, &probes()).await } }
    };
    several::open(choice, options, wanted, test).await
}

/// Uses already open devices. `trusted` returns true if a device's kernels need no self-test.
///
/// # Errors
/// Errors reported by a device earlier; [`RuntimeError::SelfTest`] if it computes wrong values.
pub(crate) async fn share(
    gpus: &[Arc<Gpu>],
    wanted: Wanted,
    trusted: impl Fn(&AdapterSummary) -> bool,
) -> Result<Opened, Error> {
    let test = |gpu: Arc<Gpu>| {
        let is_trusted = trusted(gpu.summary());
        async move {
            gpu.check_alive()?;
            if is_trusted { Ok(()) } else { self_test(&gpu, &probes()).await }
        }
    };
    several::share(gpus, wanted, test).await
}

/// Opens one device: if it fails a test, again with fewer features, and finally the CPU.
#[allow(clippy::arc_with_non_send_sync, reason = "there are no threads on the web")]
async fn open_tested<F: Future<Output = Result<(), RuntimeError>>>(
    choice: &DeviceChoice,
    options: &mut GpuOptions,
    test: impl Fn(Arc<Gpu>) -> F,
) -> Result<Opened, Error> {
    let is_one = !matches!(choice, DeviceChoice::Gpus(_) | DeviceChoice::AllGpus);
    debug_assert!(is_one, "each of several devices is opened for itself");
    if *choice == DeviceChoice::Cpu {
        return Ok(cpu(None));
    }
    if let DeviceChoice::Gpu(Some(name)) = choice {
        options.adapter = Some(name.clone());
    }
    // An explicit feature set applies to any GPU.
    options.no_software |= *choice == DeviceChoice::Auto && options.set.is_none();
    let mut distrust = None;
    loop {
        let gpu = match Gpu::open(options).await {
            Ok(gpu) => Arc::new(gpu),
            Err(e @ (RuntimeError::NoAdapter { .. } | RuntimeError::Software { .. }))
                if *choice == DeviceChoice::Auto =>
            {
                return Ok(cpu(Some(e.to_string())));
            }
            Err(e) => return Err(e.into()),
        };
        let Err(e) = test(gpu.clone()).await else {
            let info = describe(&gpu, distrust);
            return Ok(Opened::of(Target::Gpu(gpu), info));
        };
        tracing::warn!(adapter = gpu.summary().name, %e, "the self-test failed");
        options.set = match gpu.caps().most() {
            FeatureSet::Coop | FeatureSet::Alone => Some(FeatureSet::Sg),
            FeatureSet::Sg => Some(FeatureSet::Base),
            FeatureSet::Base if *choice == DeviceChoice::Auto => return Ok(cpu(Some(e.to_string()))),
            FeatureSet::Base => return Err(e.into()),
        };
        // The first failure is the most informative one.
        distrust.get_or_insert(e.to_string());
    }
}

fn describe(gpu: &Gpu, distrust: Option<String>) -> DeviceInfo {
    let s = gpu.summary();
    DeviceInfo {
        name: s.name.clone(),
        driver: format!("{} {}", s.backend, s.driver),
        caps: Some(gpu.caps().clone()),
        fallback: None,
        distrust,
    }
}

fn cpu(fallback: Option<String>) -> Opened {
    let (name, driver) = ("CPU".into(), Isa::best().name().into());
    let info = DeviceInfo { name, driver, caps: None, fallback, distrust: None };
    Opened::of(Target::Cpu, info)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong() -> RuntimeError {
        let [kernel, case, what] = ["mul_mat", "q4_K", "NMSE 0.3"].map(String::from);
        RuntimeError::SelfTest { kernel, case, what }
    }

    /// Opens any GPU; the test fails with more than these features.
    fn open_with(choice: &DeviceChoice, most: Option<FeatureSet>) -> Result<Opened, Error> {
        let good = |caps: &Caps| match most {
            None => false,
            Some(FeatureSet::Base) => caps.subgroup.is_none() && caps.coop.is_none(),
            Some(FeatureSet::Sg) => caps.coop.is_none(),
            Some(FeatureSet::Coop | FeatureSet::Alone) => true,
        };
        let test = |gpu: Arc<Gpu>| std::future::ready(if good(gpu.caps()) { Ok(()) } else { Err(wrong()) });
        pollster::block_on(open_tested(choice, &mut GpuOptions::default(), test))
    }

    #[test]
    fn a_device_that_computes_wrong_values_is_used_with_fewer_features_or_not_at_all() {
        let any = DeviceChoice::Gpu(None);
        let whole = open_with(&any, Some(FeatureSet::Coop)).expect("a GPU");
        assert!(whole.info.distrust.is_none());
        let base = open_with(&any, Some(FeatureSet::Base)).expect("a GPU");
        let base_caps = base.info.caps.expect("a GPU has capabilities");
        assert!(base_caps.subgroup.is_none() && base_caps.coop.is_none());
        let had_more = whole.info.caps.expect("a GPU has capabilities").most() != FeatureSet::Base;
        assert_eq!(base.info.distrust, had_more.then(|| wrong().to_string()));

        let e = open_with(&any, None).err().expect("every feature set fails the test");
        assert_eq!(e.to_string(), wrong().to_string());
        let cpu = open_with(&DeviceChoice::Auto, None).expect("the CPU");
        assert!(matches!(cpu.target, Target::Cpu));
        // A software renderer is not even opened.
        let software = base_caps.software;
        assert_eq!(cpu.info.fallback == Some(wrong().to_string()), !software, "{:?}", cpu.info.fallback);
    }

    #[test]
    fn a_gpu_that_is_a_program_is_taken_if_it_is_asked_for() {
        let open = |choice: &DeviceChoice, set| {
            let mut options = GpuOptions { set, ..GpuOptions::default() };
            pollster::block_on(open(choice, &mut options, Wanted::All, |_| true)).expect("a device").info
        };
        let gpu = open(&DeviceChoice::Gpu(None), None);
        let software = gpu.caps.as_ref().is_some_and(|caps| caps.software);
        let auto = open(&DeviceChoice::Auto, None);
        assert_eq!(auto.caps.is_none(), software);
        assert_eq!(auto.fallback.is_some_and(|why| why.contains(&gpu.name)), software);
        let base = open(&DeviceChoice::Auto, Some(FeatureSet::Base));
        assert_eq!(base.name, gpu.name);
    }

    #[test]
    fn the_device_here_passes_its_test() {
        for set in [None, Some(FeatureSet::Base)] {
            let mut options = GpuOptions { set, ..GpuOptions::default() };
            let opened =
                pollster::block_on(open(&DeviceChoice::Gpu(None), &mut options, Wanted::All, |_| false));
            assert_eq!(opened.expect("a GPU").info.distrust, None);
        }
    }

    #[test]
    fn a_wrong_value_is_found() {
        let gpu = pollster::block_on(Gpu::open(&GpuOptions::default())).expect("a GPU");
        let mut cases = probes();
        for case in &mut cases {
            // Other inputs than those of the reference.
            let input = case.buffers.iter_mut().find(|b| matches!(b.binding, "x" | "q")).expect("an input");
            input.bytes.fill(0x3c);
            let e =
                pollster::block_on(self_test(&gpu, std::slice::from_ref(case))).expect_err("a wrong value");
            assert!(matches!(e, RuntimeError::SelfTest { .. }), "{e}");
        }
        assert!(cases.len() >= 8);
    }
}
