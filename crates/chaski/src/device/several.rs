//! Several devices for a model that is too large for one.

use std::sync::Arc;

use chaski_models::Target;
use chaski_runtime::RuntimeError;
use chaski_runtime::gpu::{AdapterSummary, Gpu, GpuOptions, adapters_with};
use chaski_runtime::plan::PlanError;

use super::{DeviceChoice, DeviceInfo, Opened, Wanted, cpu, describe, open_tested};
use crate::error::Error;

/// The name of the CPU in a list of devices.
const CPU: &str = "cpu";

/// True for errors of a device that is lost or gone.
fn is_gone(error: &Error) -> bool {
    let gone = |e: &RuntimeError| {
        matches!(
            e,
            RuntimeError::DeviceLost { .. }
                | RuntimeError::NoSuchAdapter { .. }
                | RuntimeError::NoAdapter { .. }
                | RuntimeError::Open { .. }
        )
    };
    error.runtime().is_some_and(gone)
}

/// Several devices that are opened one after the other.
struct Several {
    wanted: Wanted,
    found: Vec<(Arc<Gpu>, DeviceInfo)>,
    missing: Vec<(usize, String)>,
    /// Index of the CPU in the list.
    cpu: Option<usize>,
    /// Why the first of these is missing.
    why: Option<Error>,
}

impl Several {
    fn new(wanted: Wanted) -> Several {
        Several { wanted, found: Vec::new(), missing: Vec::new(), cpu: None, why: None }
    }

    fn add(
        &mut self,
        nth: usize,
        name: String,
        opened: Result<(Arc<Gpu>, DeviceInfo), Error>,
    ) -> Result<(), Error> {
        match opened {
            Ok(found) => self.found.push(found),
            Err(e) if self.wanted == Wanted::Left && is_gone(&e) => {
                tracing::warn!(device = name, error = %e, "the model goes on without a device");
                self.missing.push((nth, name));
                self.why.get_or_insert(e);
            }
            Err(e) => return Err(e),
        }
        Ok(())
    }

    /// Those that are there, as one target.
    fn together(self) -> Result<Opened, Error> {
        match self.why {
            // On the CPU alone, requests would go on by other samplers.
            Some(Error::Runtime(why)) if self.found.is_empty() && self.cpu.is_some() => {
                let missing =
                    self.missing.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(", ");
                Err(RuntimeError::Missing { missing, source: Box::new(why) }.into())
            }
            Some(why) if self.found.is_empty() => Err(why),
            _ => {
                let opened = Opened { missing: self.missing, cpu: self.cpu, ..together(self.found) };
                Ok(if self.cpu.is_some() { after_cpu(opened) } else { opened })
            }
        }
    }
}

/// Uses already open devices that pass a test.
pub(super) async fn share<F: Future<Output = Result<(), RuntimeError>>>(
    gpus: &[Arc<Gpu>],
    wanted: Wanted,
    test: impl Fn(Arc<Gpu>) -> F,
) -> Result<Opened, Error> {
    let mut several = Several::new(wanted);
    for (nth, gpu) in gpus.iter().enumerate() {
        let opened = test(gpu.clone()).await.map(|()| (gpu.clone(), describe(gpu, None)));
        several.add(nth, gpu.summary().name.clone(), opened.map_err(Error::from))?;
    }
    several.together()
}

/// Opens the devices of a choice that pass a test, or have fewer features.
pub(super) async fn open<F: Future<Output = Result<(), RuntimeError>>>(
    choice: &DeviceChoice,
    options: &mut GpuOptions,
    wanted: Wanted,
    test: impl Fn(Arc<Gpu>) -> F,
) -> Result<Opened, Error> {
    let names = match choice {
        DeviceChoice::Gpus(names) => names.clone(),
        DeviceChoice::AllGpus => {
            // Without one, opening any is an error that says what there is.
            options.no_software = true;
            match &all_gpus(&adapters_with(options).await)[..] {
                [] | [_] => return open_tested(&DeviceChoice::Gpu(None), options, test).await,
                several => several.iter().map(usize::to_string).collect(),
            }
        }
        _ => return open_tested(choice, options, test).await,
    };
    let n_cpu = names.iter().filter(|name| *name == CPU).count();
    if n_cpu > 1 || n_cpu == 1 && names.len() == 1 {
        return Err(RuntimeError::Plan(PlanError::CpuAlone).into());
    }
    let mut several = Several::new(wanted);
    for (nth, name) in names.iter().enumerate() {
        if name == CPU {
            several.cpu = Some(nth);
            continue;
        }
        // A device that fails its test has fewer features; the others keep theirs.
        let mut options = options.clone();
        let opened = open_tested(&DeviceChoice::Gpu(Some(name.clone())), &mut options, &test).await;
        let as_gpu = |opened: Opened| match opened.target {
            Target::Gpu(gpu) => (gpu, opened.info),
            Target::Gpus(_) | Target::AfterCpu(_) | Target::Cpu => unreachable!("a named GPU is one"),
        };
        several.add(nth, name.clone(), opened.map(as_gpu))?;
    }
    several.together()
}

/// Open devices as one target.
fn together(opened: Vec<(Arc<Gpu>, DeviceInfo)>) -> Opened {
    let all = |of: fn(&DeviceInfo) -> Option<&str>, between: &str| {
        let words: Vec<&str> = opened.iter().filter_map(|(_, info)| of(info)).collect();
        (!words.is_empty()).then(|| words.join(between))
    };
    let (name, distrust) = (all(|i| Some(&i.name), ", "), all(|i| i.distrust.as_deref(), "; "));
    let mut drivers: Vec<&str> = opened.iter().map(|(_, info)| &*info.driver).collect();
    drivers.dedup();
    let info = DeviceInfo {
        name: name.unwrap_or_default(),
        driver: drivers.join(", "),
        caps: opened.last().and_then(|(_, info)| info.caps.clone()),
        fallback: None,
        distrust,
    };
    let mut gpus: Vec<Arc<Gpu>> = opened.into_iter().map(|(gpu, _)| gpu).collect();
    let target = match (gpus.len(), gpus.pop()) {
        (1, Some(gpu)) => Target::Gpu(gpu),
        (_, last) => {
            gpus.extend(last);
            Target::Gpus(gpus)
        }
    };
    Opened::of(target, info)
}

/// The same GPUs after layers of the CPU.
pub(super) fn after_cpu(gpus: Opened) -> Opened {
    let target = match gpus.target {
        Target::Gpu(gpu) => Target::AfterCpu(vec![gpu]),
        Target::Gpus(gpus) => Target::AfterCpu(gpus),
        other => return Opened { target: other, ..gpus },
    };
    let of_cpu = cpu(None).info;
    let name = format!("{}, {}", of_cpu.name, gpus.info.name);
    let driver = format!("{}, {}", of_cpu.driver, gpus.info.driver);
    Opened { target, info: DeviceInfo { name, driver, ..gpus.info }, ..gpus }
}

/// Indices of the GPUs of [`DeviceChoice::AllGpus`]. A GPU is listed once for each graphics API.
pub fn all_gpus(adapters: &[AdapterSummary]) -> Vec<usize> {
    let hardware = || adapters.iter().enumerate().filter(|(_, a)| !a.caps.software);
    let first = hardware().next().map(|(_, a)| &a.backend);
    hardware().filter(|(_, a)| Some(&a.backend) == first).map(|(i, _)| i).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_gpus_are_those_of_one_graphics_api() {
        let found = pollster::block_on(adapters_with(&GpuOptions::default()));
        let of = |backend: &str, software| {
            let mut one = found.first().expect("a GPU").clone();
            (one.backend, one.caps.software) = (backend.into(), software);
            one
        };
        let all = [("vulkan", false), ("dx12", false), ("vulkan", true), ("vulkan", false)];
        let all = all.map(|(backend, software)| of(backend, software));
        assert_eq!(all_gpus(&all), [0, 3]);
        assert!(all_gpus(&all[2..3]).is_empty());
    }
}
