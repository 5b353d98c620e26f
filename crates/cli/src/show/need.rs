//! The memory of a model on the chosen devices, and whether it fits there.

use std::io::Write;

use chaski::errors::RuntimeError;
use chaski::gpu::{AdapterSummary, DeviceMemory, GpuOptions, Memory, adapter_with, adapters};
use chaski::kernels::Caps;
use chaski::source::OpenModel;
use chaski::steps::RunnerConfig;
use chaski::tools::{memory_need, memory_need_after_cpu, memory_need_on};
use chaski::{DeviceChoice, KvType};
use pollster::block_on;
use serde_json::{Value, json};

use super::Args;
use crate::options::Shares;
use crate::stats::memory_json;
use crate::ui::{bytes, chain};

/// Memory for the requested context on devices.
pub(super) struct Need {
    n_ctx: u32,
    kv: String,
    devices: Vec<Device>,
    /// By device.
    memory: Result<Vec<Memory>, chaski::Error>,
    /// GPUs of this machine, if they were looked for.
    n_gpu: usize,
}

/// A device that a model may run on.
struct Device {
    name: String,
    /// `None`: the CPU.
    caps: Option<Caps>,
    room: Option<DeviceMemory>,
}

impl Device {
    fn of(adapter: AdapterSummary) -> Device {
        Device { name: adapter.name, caps: Some(adapter.caps), room: adapter.memory }
    }

    fn cpu() -> Device {
        Device { name: "the CPU".to_owned(), caps: None, room: None }
    }
}

/// The devices of a choice. Without one, any GPU: one with WebGPU's minimum limits.
fn devices_of(choice: Option<&DeviceChoice>) -> Result<Vec<Device>, chaski::Error> {
    let named = |name: Option<String>| -> Result<Device, RuntimeError> {
        let is_auto = choice == Some(&DeviceChoice::Auto);
        // Only a software renderer that was asked for is a GPU.
        let no_software = is_auto || choice == Some(&DeviceChoice::AllGpus);
        match block_on(adapter_with(&GpuOptions { adapter: name, no_software, ..GpuOptions::default() })) {
            Ok(adapter) => Ok(Device::of(adapter)),
            Err(RuntimeError::NoAdapter { .. } | RuntimeError::Software { .. }) if is_auto => {
                Ok(Device::cpu())
            }
            Err(e) => Err(e),
        }
    };
    let all = match choice {
        None => vec![Device { name: "a GPU".to_owned(), caps: Some(Caps::base()), room: None }],
        Some(DeviceChoice::Cpu) => vec![Device::cpu()],
        Some(DeviceChoice::Auto) => vec![named(None)?],
        Some(DeviceChoice::Gpu(name)) => vec![named(name.clone())?],
        Some(DeviceChoice::Gpus(names)) => {
            let is_cpu = |name: &&String| *name == "cpu";
            // The CPU has the first layers.
            let cpu = names.iter().find(is_cpu).map(|_| Ok(Device::cpu()));
            let gpus = names.iter().filter(|name| !is_cpu(name)).map(|name| named(Some(name.clone())));
            cpu.into_iter().chain(gpus).collect::<Result<_, _>>()?
        }
        Some(DeviceChoice::AllGpus) => match all_gpus() {
            all if all.is_empty() => vec![named(None)?],
            all => all.into_iter().map(Device::of).collect(),
        },
    };
    Ok(all)
}

/// The GPUs that `--device all` takes.
fn all_gpus() -> Vec<AdapterSummary> {
    let all = block_on(adapters());
    let taken = chaski::gpu::all_gpus(&all);
    all.into_iter().enumerate().filter(|(i, _)| taken.contains(i)).map(|(_, adapter)| adapter).collect()
}

impl Need {
    pub(super) fn of(model: &OpenModel, args: &Args) -> anyhow::Result<Need> {
        let n_layer = model.config().n_layer;
        let gpu_layers = args.gpu_layers.and_then(|layers| layers.0).filter(|n| *n < n_layer);
        let mut devices = match gpu_layers {
            Some(0) => vec![Device::cpu()],
            _ => devices_of(args.device.as_ref())?,
        };
        if gpu_layers.is_some() && devices.iter().all(|device| device.caps.is_some()) {
            devices.insert(0, Device::cpu());
        }
        let n_ctx = if args.ctx_size > 0 { args.ctx_size } else { model.config().n_ctx_train.clamp(1, 4096) };
        let choice = args.device.as_ref().unwrap_or(&DeviceChoice::Auto);
        let gpus = || devices.iter().filter(|device| device.caps.is_some());
        let rooms: Vec<Option<DeviceMemory>> = gpus().map(|device| device.room).collect();
        let is_after_cpu = rooms.len() < devices.len() && !rooms.is_empty();
        let shares = match Shares::of(args.tensor_split.as_ref(), choice)? {
            asked if asked.is_empty() && !is_after_cpu => DeviceMemory::shares(&rooms),
            mut asked => {
                // The CPU's share is the first, as its layers are.
                if let (DeviceChoice::Gpus(names), false) = (choice, asked.is_empty())
                    && let Some(cpu) = names.iter().position(|name| name == "cpu")
                {
                    asked[..=cpu].rotate_right(1);
                }
                asked
            }
        };
        let config = RunnerConfig {
            n_ctx,
            kv: args.kv,
            chunk: args.chunk,
            experts_on_cpu: args.experts.experts_on_cpu,
            expert_slots: args.experts.expert_slots,
            shares,
            gpu_layers,
            ..RunnerConfig::default()
        };
        let caps: Vec<&Caps> = devices.iter().filter_map(|device| device.caps.as_ref()).collect();
        let memory = match (caps.is_empty(), is_after_cpu) {
            (true, _) => block_on(memory_need(model, &config, None)).map(|memory| vec![memory]),
            (false, false) => block_on(memory_need_on(model, &config, &caps)),
            (false, true) => block_on(memory_need_after_cpu(model, &config, &caps, &rooms)),
        };
        let (k, v) = args.kv.types(model, n_ctx, 1);
        let looked = devices.iter().any(|device| device.room.is_some());
        let n_gpu = if looked { all_gpus().len() } else { 0 };
        Ok(Need { n_ctx, kv: KvType::Of { k, v }.to_string(), devices, memory, n_gpu })
    }

    /// Bytes on all devices.
    pub(super) fn n_byte(&self) -> Option<u64> {
        let memory = self.memory.as_ref().ok()?;
        Some(memory.iter().map(Memory::n_byte).sum())
    }

    /// Each device with its part of the model.
    fn parts(&self) -> impl Iterator<Item = (&Device, &Memory)> {
        self.devices.iter().zip(self.memory.iter().flatten())
    }

    /// Bytes that are missing on a device whose memory is known; 0 if it fits.
    fn missing(device: &Device, memory: &Memory) -> Option<u64> {
        Some(memory.n_byte().saturating_sub(device.room?.n_free))
    }

    /// True if every part fits its device; `None` if the memory of one is not known.
    fn fits(&self) -> Option<bool> {
        self.memory.as_ref().ok()?;
        self.parts()
            .map(|(device, memory)| Self::missing(device, memory))
            .try_fold(true, |fits, missing| Some(fits && missing? == 0))
    }

    pub(super) fn print(&self, out: &mut impl Write) -> std::io::Result<()> {
        let names = match &self.devices[..] {
            [one] => one.name.clone(),
            several => format!("{} devices", several.len()),
        };
        writeln!(out, "\nMemory on {names} for a context of {} tokens ({} KV cache)", self.n_ctx, self.kv)?;
        if let Err(e) = &self.memory {
            return writeln!(out, "  unknown: {}", chain(e));
        }
        for (i, (device, memory)) in self.parts().enumerate() {
            if self.devices.len() > 1 {
                writeln!(out, "  device {i}, {}", device.name)?;
            }
            for item in &memory.items {
                writeln!(out, "  {:<24} {:>12}", item.what, bytes(item.n_byte))?;
            }
            writeln!(out, "  {:<24} {:>12}", "total", bytes(memory.n_byte()))?;
            let Some((room, missing)) = device.room.zip(Self::missing(device, memory)) else { continue };
            let (free, all) = (bytes(room.n_free), bytes(room.n_byte));
            match missing {
                0 => writeln!(out, "  fits: {free} of {all} are free")?,
                missing => {
                    writeln!(out, "  does not fit: {free} of {all} are free, {} are missing", bytes(missing))?
                }
            }
        }
        if self.fits() == Some(false) && self.n_gpu > self.devices.len() {
            writeln!(out, "  {} GPUs are here: `--device all` shares the layers between them", self.n_gpu)?;
        }
        Ok(())
    }

    pub(super) fn json(&self) -> Value {
        let names: Vec<&str> = self.devices.iter().map(|device| &*device.name).collect();
        let mut need = match &self.memory {
            Err(e) => json!({ "error": chain(e) }),
            Ok(memory) => memory_json(&Memory::sum(memory)),
        };
        if self.devices.len() > 1 {
            let of = |(device, memory): (&Device, &Memory)| {
                let mut one = memory_json(memory);
                one["device"] = device.name.as_str().into();
                one["free"] = device.room.map(|room| room.n_free).into();
                one
            };
            need["devices"] = self.parts().map(of).collect();
        }
        json!({ "device": names.join(", "), "n_ctx": self.n_ctx, "kv": self.kv, "need": need, "fits": self.fits() })
    }
}
