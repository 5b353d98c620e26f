//! The pipelines of a device by kernel and constants, and the data that a driver may load them from.
#![allow(unsafe_code, reason = "wgpu marks pipeline cache data and experimental features as unsafe")]

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard};

use chaski_kernels::Dispatch;

/// A compiled kernel with its constants.
pub(crate) struct Compiled {
    pub(crate) pipeline: wgpu::ComputePipeline,
    pub(crate) layout: wgpu::BindGroupLayout,
}

/// Kernel and constants, as bits.
pub(super) type Key = (&'static str, Vec<(&'static str, u64)>);

/// All pipelines of a device.
pub(crate) struct Pipelines {
    pub(super) compiled: Mutex<HashMap<Key, Arc<Compiled>>>,
    pub(super) modules: Mutex<HashMap<&'static str, wgpu::ShaderModule>>,
    pub(super) layouts: Mutex<HashMap<&'static str, wgpu::BindGroupLayout>>,
    pub(super) cache: Option<wgpu::PipelineCache>,
    of: DeviceId,
}

/// Ids of a vendor and of its device.
pub(crate) type DeviceId = [u32; 2];

pub(super) fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(|e| e.into_inner())
}

pub(super) fn key(d: &Dispatch) -> Key {
    let mut constants: Vec<(&'static str, u64)> = Vec::with_capacity(d.constants.len());
    for (name, value) in &d.constants {
        let constant = (*name, value.to_bits());
        constants.insert(constants.partition_point(|c| *c < constant), constant);
    }
    (d.kernel.name, constants)
}

fn hash(data: &[u8], of: DeviceId) -> [u8; 8] {
    let mut h = DefaultHasher::new();
    (data, of).hash(&mut h);
    h.finish().to_le_bytes()
}

/// Data of a device, followed by the hash of both.
fn sealed(mut data: Vec<u8>, of: DeviceId) -> Vec<u8> {
    data.extend(hash(&data, of));
    data
}

/// Data of this device whose hash matches.
fn unsealed(data: &[u8], of: DeviceId) -> Option<&[u8]> {
    let (data, end) = data.split_last_chunk::<8>()?;
    (hash(data, of) == *end).then_some(data)
}

#[cfg(test)]
#[test]
fn damaged_pipeline_data_and_those_of_other_devices_are_not_used() {
    let of = [0x10de, 1];
    let file = sealed(b"what a driver gave".to_vec(), of);
    assert_eq!(unsealed(&file, of), Some(&b"what a driver gave"[..]));
    assert_eq!([[0x10de, 2], [0x1002, 1]].map(|other| unsealed(&file, other)), [None; 2]);
    for n in 0..file.len() {
        let mut wrong = file.clone();
        wrong[n] ^= 1;
        assert!(unsealed(&wrong, of).is_none() && unsealed(&file[..n], of).is_none(), "byte {n}");
    }
}

impl Pipelines {
    pub(crate) fn new(
        device: &wgpu::Device,
        of: DeviceId,
        features: wgpu::Features,
        data: Option<&[u8]>,
    ) -> Self {
        let cache = features.contains(wgpu::Features::PIPELINE_CACHE).then(|| {
            // SAFETY: the hash proves that the data are what `cache_data` returned for this device; damaged or cut
            // files are rejected, as are those of other devices, which wgpu takes for errors even with `fallback`. wgpu
            // ignores those of other drivers. Anyone who can forge a file with its hash can write to the user's own
            // files.
            unsafe {
                device.create_pipeline_cache(&wgpu::PipelineCacheDescriptor {
                    label: Some("chaski"),
                    data: data.and_then(|data| unsealed(data, of)),
                    fallback: true,
                })
            }
        });
        Pipelines {
            compiled: Mutex::default(),
            modules: Mutex::default(),
            layouts: Mutex::default(),
            cache,
            of,
        }
    }

    pub(crate) fn cache_data(&self) -> Option<Vec<u8>> {
        self.cache.as_ref().and_then(wgpu::PipelineCache::get_data).map(|data| sealed(data, self.of))
    }
}

/// wgpu's token for experimental features, if cooperative matrices are used.
pub(crate) fn experimental(on: bool) -> wgpu::ExperimentalFeatures {
    if !on {
        return wgpu::ExperimentalFeatures::disabled();
    }
    // SAFETY: the token acknowledges that experimental features may have bugs. The only one used, cooperative matrices,
    // is requested only if the adapter lists the shape, and its kernels are tested against references.
    unsafe { wgpu::ExperimentalFeatures::enabled() }
}
