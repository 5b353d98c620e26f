//! `chaski doctor`: tests the devices of this machine, and says what is slow or broken and what to do about it.

mod advice;
mod caches;
mod checks;
mod print;
mod private;
mod report;
mod system;

use std::io::Write as _;

use chaski::DeviceChoice;

use self::private::Private;
use self::report::{Build, Device, Report};
use crate::failure::Reported;
use crate::options::{Form, devices};
use crate::ui::Ui;

pub(crate) const LONG: &str = "\
Tests the devices of this machine: a few kernels against their CPU references, and the built-in model's known text. Prints \
system, devices, features and caches, what is slow or broken, and what to do about it.

The output is fit for a bug report: it has no paths of yours and no user name. The exit code is 0 if everything works.";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Test this device only: cpu, gpu, or the name or index of a GPU; several, such as 0,1, or all [default: all
    /// devices]
    #[arg(long, alias = "devices", value_name = "DEVICE", value_parser = devices)]
    device: Option<DeviceChoice>,
    /// Output format
    #[arg(short, long, value_enum, default_value = "md")]
    output: Form,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> anyhow::Result<()> {
    let report = examine(args.device.as_ref(), ui);
    let text = match args.output {
        Form::Md => print::text(&report),
        Form::Json => format!("{:#}\n", serde_json::to_value(&report)?),
    };
    // Messages of drivers may have paths in them.
    std::io::stdout().lock().write_all(Private::of_user().hide(&text).as_bytes())?;
    if report.ok { Ok(()) } else { Err(Reported.into()) }
}

/// Everything that the report says.
fn examine(choice: Option<&DeviceChoice>, ui: &Ui) -> Report {
    // Without a driver there is no need to load its libraries.
    let (adapters, default) = match choice {
        Some(DeviceChoice::Cpu) => (Vec::new(), None),
        _ => {
            let adapters = pollster::block_on(chaski::gpu::adapters());
            // As `auto` chooses: software renderers come last, and are slower than the CPU backend.
            let default = adapters.first().filter(|a| !a.caps.software).map(|_| 0);
            (adapters, default)
        }
    };
    let looked_for_gpus = choice != Some(&DeviceChoice::Cpu);
    let mut devices: Vec<Device> =
        adapters.iter().enumerate().map(|(i, a)| Device::of_adapter(i, a, default == Some(i))).collect();
    devices.push(Device::cpu(looked_for_gpus.then_some(default.is_none())));
    let checks = checks::run(choice, &mut devices, ui);
    let mut report = Report {
        ok: checks.iter().all(|c| c.ok),
        build: Build::this(),
        system: system::examine(),
        looked_for_gpus,
        devices,
        caches: caches::examine(),
        checks,
        advice: Vec::new(),
    };
    report.advice = advice::of(&report);
    report
}
