//! The device: adapter selection, features and limits, and creation of counted objects.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chaski_kernels::{Caps, CoopShape, FeatureSet, vendor};

use super::pipeline::Pipelines;
use super::reports::{PendingError, Reports};
use super::room::{self, DeviceMemory};
use crate::error::RuntimeError;
use crate::platform::Promise;

/// Options for opening a device.
#[derive(Clone, Debug, Default)]
pub struct GpuOptions {
    /// Part of the adapter's name, or its index in [`adapters`]; `None`: the fastest.
    pub adapter: Option<String>,
    /// Exclude software renderers, unless `adapter` selects one.
    pub no_software: bool,
    /// Limit kernels to this feature set.
    pub set: Option<FeatureSet>,
    /// Disable `f16` arithmetic.
    pub no_f16: bool,
    /// Bounds checks in shaders.
    pub checked: bool,
    /// A pipeline cache that [`Gpu::pipeline_cache`] returned earlier.
    pub pipeline_cache: Option<Vec<u8>>,
    /// Lower the limit of binding sizes, to test the splitting of models.
    pub max_binding_bytes: Option<u64>,
    /// In a browser: `requestDevice` requests subgroups, which wgpu cannot do itself, and WGSL supports what kernels
    /// with subgroups use. No effect elsewhere.
    pub web_subgroups: bool,
}

/// Description of an adapter.
#[derive(Clone, Debug)]
pub struct AdapterSummary {
    /// Its name.
    pub name: String,
    /// The graphics API, for example Vulkan.
    pub backend: String,
    /// Discrete, integrated, CPU ...
    pub kind: String,
    /// The driver's name and version.
    pub driver: String,
    /// Capabilities that kernels can use.
    pub caps: Caps,
    /// Maximum bytes per buffer.
    pub max_buffer_bytes: u64,
    /// Relevant features.
    pub features: Vec<&'static str>,
    /// Shapes of cooperative matrices, as text.
    pub cooperative: Vec<String>,
    /// Its memory, where the graphics API tells it.
    pub memory: Option<DeviceMemory>,
    /// Address on the PCI bus, such as `0000:01:00.0`; empty where the backend does not tell it.
    pub pci: String,
}

/// Numbers of objects created on a device; none may grow after warm-up.
#[derive(Debug, Default)]
pub struct Counters {
    /// Buffers.
    pub buffers: AtomicU64,
    /// Bytes of these.
    pub buffer_bytes: AtomicU64,
    /// Bind groups.
    pub bind_groups: AtomicU64,
    /// Pipelines.
    pub pipelines: AtomicU64,
    /// Dispatches recorded.
    pub dispatches: AtomicU64,
    /// Submissions.
    pub submits: AtomicU64,
    /// Readbacks: the CPU waits for each.
    pub reads: AtomicU64,
    /// Bytes read back.
    pub read_bytes: AtomicU64,
}

impl Counters {
    /// Buffers, bind groups and pipelines created so far.
    pub fn objects(&self) -> [u64; 3] {
        [&self.buffers, &self.bind_groups, &self.pipelines].map(|c| c.load(Ordering::Relaxed))
    }
}

/// An open device.
pub struct Gpu {
    // Dropped first: dropping the device afterwards is not reported as a loss.
    reports: Arc<Reports>,
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) pipelines: Pipelines,
    adapter: wgpu::Adapter,
    caps: Caps,
    summary: AdapterSummary,
    checked: bool,
    counters: Arc<Counters>,
    timestamps: bool,
}

fn instance() -> wgpu::Instance {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = backends();
    descriptor.flags = wgpu::InstanceFlags::empty();
    let instance = wgpu::Instance::new(descriptor);
    keep_drivers(&instance);
    instance
}

/// Keeps the drivers in the process for as long as it lives. With its last instance a driver is unloaded, and a thread
/// that used it and ends later calls what is no longer there: NVIDIA's then crashes at the end of a service.
#[cfg(not(target_arch = "wasm32"))]
fn keep_drivers(instance: &wgpu::Instance) {
    static FIRST: std::sync::OnceLock<wgpu::Instance> = std::sync::OnceLock::new();
    FIRST.get_or_init(|| instance.clone());
}

#[cfg(target_arch = "wasm32")]
fn keep_drivers(_: &wgpu::Instance) {}

#[cfg(not(target_arch = "wasm32"))]
fn backends() -> wgpu::Backends {
    wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12
}

#[cfg(target_arch = "wasm32")]
fn backends() -> wgpu::Backends {
    wgpu::Backends::BROWSER_WEBGPU
}

/// All adapters, fastest kind first.
pub async fn adapters() -> Vec<AdapterSummary> {
    adapters_with(&GpuOptions::default()).await
}

/// All adapters, fastest kind first, as devices opened with these options would see them.
pub async fn adapters_with(options: &GpuOptions) -> Vec<AdapterSummary> {
    list().await.iter().map(|a| summary(a, a.features(), &a.limits(), options, None)).collect()
}

/// The adapter that [`Gpu::open`] opens with these options, without opening it.
///
/// # Errors
/// [`RuntimeError::NoAdapter`], [`RuntimeError::NoSuchAdapter`], [`RuntimeError::Software`].
pub async fn adapter_with(options: &GpuOptions) -> Result<AdapterSummary, RuntimeError> {
    let all = list().await;
    let adapter = choose(&all, options)?;
    Ok(summary(adapter, adapter.features(), &adapter.limits(), options, None))
}

#[cfg(not(target_arch = "wasm32"))]
async fn list() -> Vec<wgpu::Adapter> {
    let mut all = instance().enumerate_adapters(backends()).await;
    let rank = |a: &wgpu::Adapter| match a.get_info().device_type {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    };
    all.sort_by_key(rank);
    all
}

#[cfg(target_arch = "wasm32")]
async fn list() -> Vec<wgpu::Adapter> {
    let options = wgpu::RequestAdapterOptions {
        power_preference: wgpu::PowerPreference::HighPerformance,
        ..Default::default()
    };
    instance().request_adapter(&options).await.into_iter().collect()
}

/// The features that kernels or measurements can use.
fn wanted(options: &GpuOptions) -> wgpu::Features {
    let mut f = wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::TIMESTAMP_QUERY_INSIDE_PASSES;
    if cfg!(not(target_arch = "wasm32")) {
        f |= wgpu::Features::PIPELINE_CACHE;
    }
    if options.set != Some(FeatureSet::Base) {
        f |= wgpu::Features::SUBGROUP;
        if cfg!(not(target_arch = "wasm32")) {
            f |= wgpu::Features::MEMORY_DECORATION_COHERENT;
        }
    }
    if !options.no_f16 {
        f |= wgpu::Features::SHADER_F16;
        if matches!(options.set, None | Some(FeatureSet::Coop)) {
            f |= wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX;
        }
    }
    f
}

/// True if an adapter is a software renderer.
fn is_software(info: &wgpu::AdapterInfo) -> bool {
    info.device_type == wgpu::DeviceType::Cpu
}

/// Capabilities of a device with these features and limits. `lanes` is the size of its subgroups, if it was measured.
fn caps(
    adapter: &wgpu::Adapter,
    features: wgpu::Features,
    limits: &wgpu::Limits,
    options: &GpuOptions,
    lanes: Option<u32>,
) -> Caps {
    let (features, info) = (features & wanted(options), adapter.get_info());
    let (min, max) = (info.subgroup_min_size, info.subgroup_max_size);
    let binding = limits.max_storage_buffer_binding_size;
    let web_subgroups =
        cfg!(target_arch = "wasm32") && options.web_subgroups && options.set != Some(FeatureSet::Base);
    let subgroups = features.contains(wgpu::Features::SUBGROUP) || web_subgroups;
    let software = is_software(&info);
    let subgroup = (subgroups && min >= 4).then_some((min, max));
    // Browsers run shaders on CPUs with four threads per register, where barriers are expensive; natively software
    // devices exist to test what GPUs run.
    let alone = match options.set {
        None => software && cfg!(target_arch = "wasm32"),
        Some(set) => set == FeatureSet::Alone,
    };
    Caps {
        subgroup,
        f16: features.contains(wgpu::Features::SHADER_F16),
        coop: coop_shape(adapter, features, lanes, options),
        // Metal's barriers order memory within a workgroup only.
        coherent: features.contains(wgpu::Features::MEMORY_DECORATION_COHERENT | wgpu::Features::SUBGROUP)
            && matches!(info.backend, wgpu::Backend::Vulkan | wgpu::Backend::Dx12),
        // Vulkan and Direct3D have an instruction for it, supported by nearly all hardware; Metal has none.
        int_dot: matches!(info.backend, wgpu::Backend::Vulkan | wgpu::Backend::Dx12) && !software,
        // Metal tells no number.
        vendor: if info.backend == wgpu::Backend::Metal && info.vendor == 0 {
            vendor::APPLE
        } else {
            info.vendor
        },
        integrated: info.device_type == wgpu::DeviceType::IntegratedGpu,
        max_threads: limits.max_compute_invocations_per_workgroup.min(limits.max_compute_workgroup_size_x),
        max_workgroup_bytes: limits.max_compute_workgroup_storage_size,
        max_binding_bytes: binding
            .min(limits.max_buffer_size)
            .min(options.max_binding_bytes.unwrap_or(u64::MAX)),
        max_groups: limits.max_compute_workgroups_per_dimension,
        software,
        alone: alone && subgroup.is_some(),
    }
}

fn summary(
    adapter: &wgpu::Adapter,
    features: wgpu::Features,
    limits: &wgpu::Limits,
    options: &GpuOptions,
    lanes: Option<u32>,
) -> AdapterSummary {
    let info = adapter.get_info();
    let names = [
        (wgpu::Features::SUBGROUP, "subgroups"),
        (wgpu::Features::SHADER_F16, "f16"),
        (wgpu::Features::TIMESTAMP_QUERY_INSIDE_PASSES, "timestamps"),
        (wgpu::Features::PIPELINE_CACHE, "pipeline cache"),
        (wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX, "cooperative matrices"),
    ];
    AdapterSummary {
        name: info.name.clone(),
        backend: info.backend.to_string(),
        kind: format!("{:?}", info.device_type),
        driver: format!("{} {}", info.driver, info.driver_info).trim().to_owned(),
        caps: caps(adapter, features, limits, options, lanes),
        max_buffer_bytes: limits.max_buffer_size,
        features: names.iter().filter(|(f, _)| features.contains(*f)).map(|(_, n)| *n).collect(),
        cooperative: cooperative(adapter),
        memory: room::of(adapter),
        pci: info.device_pci_bus_id.clone(),
    }
}

/// The shape of cooperative matrices that kernels use on a device with these features, if there is one. Shapes whose
/// kernels ran on no GPU so far are only for who asks, as are those of software renderers, which are slower.
fn coop_shape(
    adapter: &wgpu::Adapter,
    features: wgpu::Features,
    lanes: Option<u32>,
    options: &GpuOptions,
) -> Option<CoopShape> {
    let needed = wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX | wgpu::Features::SUBGROUP;
    let info = adapter.get_info();
    let asked = options.set == Some(FeatureSet::Coop);
    let may = |shape: &CoopShape| asked || (*shape == CoopShape::WARP && !is_software(&info));
    let lanes = lanes.unwrap_or_else(|| probable_lanes(&info));
    CoopShape::find(lanes, &sides(adapter)).filter(|shape| features.contains(needed) && may(shape))
}

/// Threads of a subgroup on an adapter: their only number, or, where a range is reported, the probable one, which an
/// open device measures.
fn probable_lanes(info: &wgpu::AdapterInfo) -> u32 {
    match (info.subgroup_min_size, info.subgroup_max_size) {
        (min, max) if min == max => min,
        // Metal reports a range for all GPUs; Apple's have 32.
        _ if info.backend == wgpu::Backend::Metal => 32,
        // AMD's from RDNA on: Mesa compiles compute shaders for 64 unless told otherwise.
        (_, max) => max,
    }
}

/// Threads of a subgroup on an open device, measured if cooperative matrices depend on it and drivers report a range.
#[cfg(not(target_arch = "wasm32"))]
fn measured_lanes(
    adapter: &wgpu::Adapter,
    caps: &Caps,
    device: &wgpu::Device,
    queue: &wgpu::Queue,
) -> Option<u32> {
    let info = adapter.get_info();
    let shape = caps.coop.filter(|_| info.subgroup_min_size != info.subgroup_max_size)?;
    // Of a device that does not even run this, nothing else is known either.
    Some(super::subgroup::lanes(device, queue, shape.side).unwrap_or(0))
}

#[cfg(target_arch = "wasm32")]
fn measured_lanes(_: &wgpu::Adapter, _: &Caps, _: &wgpu::Device, _: &wgpu::Queue) -> Option<u32> {
    None
}

/// Sides of the square cooperative matrices with f16 inputs and f32 sums.
#[cfg(not(target_arch = "wasm32"))]
fn sides(adapter: &wgpu::Adapter) -> Vec<u32> {
    let all = adapter.cooperative_matrix_properties();
    let is_ours = |p: &&wgpu::CooperativeMatrixProperties| {
        p.m_size == p.n_size
            && p.n_size == p.k_size
            && p.ab_type == wgpu::CooperativeScalarType::F16
            && p.cr_type == wgpu::CooperativeScalarType::F32
    };
    all.iter().filter(is_ours).map(|p| p.m_size).collect()
}

#[cfg(target_arch = "wasm32")]
fn sides(_: &wgpu::Adapter) -> Vec<u32> {
    Vec::new()
}

#[cfg(not(target_arch = "wasm32"))]
fn cooperative(adapter: &wgpu::Adapter) -> Vec<String> {
    adapter
        .cooperative_matrix_properties()
        .iter()
        .map(|p| format!("{}x{}x{} {:?} -> {:?}", p.m_size, p.n_size, p.k_size, p.ab_type, p.cr_type))
        .collect()
}

#[cfg(target_arch = "wasm32")]
fn cooperative(_: &wgpu::Adapter) -> Vec<String> {
    Vec::new()
}

/// The descriptor of a device with every feature that kernels can use and the adapter's limits, for callers who open
/// the device themselves ([`Gpu::with_device`]) and add their own requirements.
pub fn device_descriptor(adapter: &wgpu::Adapter, options: &GpuOptions) -> wgpu::DeviceDescriptor<'static> {
    let mut features = adapter.features() & wanted(options);
    let coop = caps(adapter, features, &adapter.limits(), options, None).coop.is_some();
    if !coop {
        features.remove(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX);
    }
    wgpu::DeviceDescriptor {
        label: Some("chaski"),
        required_features: features,
        required_limits: adapter.limits(),
        experimental_features: super::pipeline::experimental(coop),
        memory_hints: wgpu::MemoryHints::Performance,
        ..Default::default()
    }
}

impl Gpu {
    /// Opens a device with every feature that kernels can use and the adapter's limits. Natively the driver works on
    /// the thread that polls; dropping the future closes what was opened.
    ///
    /// # Errors
    /// [`RuntimeError::NoAdapter`], [`RuntimeError::NoSuchAdapter`], [`RuntimeError::Software`],
    /// [`RuntimeError::Open`].
    pub async fn open(options: &GpuOptions) -> Result<Gpu, RuntimeError> {
        let all = list().await;
        let adapter = choose(&all, options)?;
        let (device, queue) = adapter
            .request_device(&device_descriptor(adapter, options))
            .await
            .map_err(|source| RuntimeError::Open { adapter: adapter.get_info().name, source })?;
        Ok(Gpu::with_device(adapter, device, queue, options))
    }

    /// Uses a device that was opened elsewhere and may be shared. The more of [`device_descriptor`] it supports, the
    /// faster kernels are; WebGPU's default limits suffice.
    ///
    /// wgpu keeps one callback of each kind per device. This sets those for device loss and uncaptured errors, so that
    /// both become errors of the next call. Register your own with [`Self::on_lost`] and [`Self::on_uncaptured_error`]
    /// rather than with wgpu. Only the last `Gpu` created for a device receives the events: engines that share a device
    /// must share its `Gpu`.
    pub fn with_device(
        adapter: &wgpu::Adapter,
        device: wgpu::Device,
        queue: wgpu::Queue,
        options: &GpuOptions,
    ) -> Gpu {
        let reports = Reports::of(&device);
        let (features, limits) = (device.features(), device.limits());
        let timestamps = features.contains(wgpu::Features::TIMESTAMP_QUERY_INSIDE_PASSES);
        let reported = summary(adapter, features, &limits, options, None);
        let summary = match measured_lanes(adapter, &reported.caps, &device, &queue) {
            None => reported,
            lanes => summary(adapter, features, &limits, options, lanes),
        };
        let info = adapter.get_info();
        let (of, cache) = ([info.vendor, info.device], options.pipeline_cache.as_deref());
        Gpu {
            reports,
            pipelines: Pipelines::new(&device, of, features, cache),
            caps: summary.caps.clone(),
            summary,
            adapter: adapter.clone(),
            device,
            queue,
            checked: options.checked,
            counters: Arc::new(Counters::default()),
            timestamps,
        }
    }

    /// Calls `f` with the reason when the device is lost; immediately if it already is.
    pub fn on_lost(&self, f: impl Fn(&str) + Send + Sync + 'static) {
        self.reports.on_lost(Box::new(f));
    }

    /// Calls `f` with every uncaptured error of any user of the device.
    pub fn on_uncaptured_error(&self, f: impl Fn(&wgpu::Error) + Send + Sync + 'static) {
        self.reports.on_error(Box::new(f));
    }

    /// Capabilities for kernels.
    pub fn caps(&self) -> &Caps {
        &self.caps
    }

    /// The adapter.
    pub fn summary(&self) -> &AdapterSummary {
        &self.summary
    }

    /// Its memory at present, where the graphics API tells it.
    pub fn memory(&self) -> Option<DeviceMemory> {
        room::of(&self.adapter)
    }

    /// True if shaders check bounds.
    pub fn checked(&self) -> bool {
        self.checked
    }

    /// True if time can be measured within a pass.
    pub fn has_timestamps(&self) -> bool {
        self.timestamps
    }

    /// Counters of created objects.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The driver's compiled pipelines, for a later [`GpuOptions`]; `None` if wgpu has no such cache.
    pub fn pipeline_cache(&self) -> Option<Vec<u8>> {
        self.pipelines.cache_data()
    }

    /// As [`Self::check`], after polling the device: a destroyed device reports its loss only then.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn check_alive(&self) -> Result<(), RuntimeError> {
        crate::platform::glance(&self.device);
        self.check()
    }

    /// Fails if the device has reported an error since it was opened. Waiting for the device polls it.
    ///
    /// # Errors
    /// [`RuntimeError::DeviceLost`], [`RuntimeError::OutOfMemory`], [`RuntimeError::Refused`].
    pub fn check(&self) -> Result<(), RuntimeError> {
        if matches!(self.reports.pending_error(), Some(PendingError::Refused(_))) {
            // Objects of a lost device are rejected before it reports the loss, once it has finished its work.
            crate::platform::settle(&self.device, None);
        }
        match self.reports.pending_error() {
            None => Ok(()),
            Some(PendingError::Lost(reason)) => Err(RuntimeError::DeviceLost { reason }),
            Some(PendingError::OutOfMemory(what)) => Err(RuntimeError::OutOfMemory { what, n_byte: 0 }),
            Some(PendingError::Refused(reason)) => {
                Err(RuntimeError::Refused { what: "a call".into(), reason })
            }
        }
    }

    /// Destroys the device, for all of its users.
    pub fn destroy(&self) {
        self.device.destroy();
        // A browser calls back in a later turn of its event loop.
        #[cfg(target_arch = "wasm32")]
        self.reports.lost("destroyed".into());
    }

    /// Creates a buffer.
    ///
    /// # Errors
    /// [`RuntimeError::OutOfMemory`], [`RuntimeError::Refused`].
    pub(crate) async fn buffer(
        &self,
        label: &str,
        n_byte: u64,
        usage: wgpu::BufferUsages,
    ) -> Result<wgpu::Buffer, RuntimeError> {
        let size = n_byte.next_multiple_of(16).max(16);
        let memory = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let validation = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let buffer = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some(label),
            size,
            usage,
            mapped_at_creation: false,
        });
        // Both scopes are popped before any await: they belong to this thread.
        let (refused, out) = (validation.pop(), memory.pop());
        if let Some(e) = refused.await {
            return Err(self.failed(label, &e.to_string()));
        }
        if out.await.is_some() {
            return Err(RuntimeError::OutOfMemory { what: label.into(), n_byte: size });
        }
        // A lost device creates buffers without an error, but nothing can use them.
        self.check_alive()?;
        self.counters.buffers.fetch_add(1, Ordering::Relaxed);
        self.counters.buffer_bytes.fetch_add(buffer.size(), Ordering::Relaxed);
        Ok(buffer)
    }

    /// Binds buffers by the names in a kernel.
    pub(crate) fn bind_group(
        &self,
        label: &str,
        layout: &wgpu::BindGroupLayout,
        kernel: &chaski_kernels::Kernel,
        bound: &[(&str, wgpu::BindingResource<'_>)],
    ) -> wgpu::BindGroup {
        let entries: Vec<wgpu::BindGroupEntry<'_>> = kernel
            .bindings
            .iter()
            .map(|b| {
                let (_, resource) = bound
                    .iter()
                    .find(|(name, _)| *name == b.name)
                    .unwrap_or_else(|| panic!("{}: nothing is bound to `{}`", kernel.name, b.name));
                wgpu::BindGroupEntry { binding: b.index, resource: resource.clone() }
            })
            .collect();
        assert_eq!(bound.len(), kernel.bindings.len(), "{}: more buffers than bindings", kernel.name);
        self.counters.bind_groups.fetch_add(1, Ordering::Relaxed);
        self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(label),
            layout,
            entries: &entries,
        })
    }

    /// Reads a mappable buffer that a submission fills.
    pub(crate) async fn read(
        &self,
        staging: &wgpu::Buffer,
        n_byte: u64,
        index: Option<wgpu::SubmissionIndex>,
    ) -> Result<Vec<u8>, RuntimeError> {
        let (keeper, promise) = crate::platform::promise();
        staging.map_async(wgpu::MapMode::Read, 0..n_byte, move |r| keeper.keep(r));
        crate::platform::settle(&self.device, index);
        self.check()?;
        promise.await.map_err(|e| self.failed("a readback", &e.to_string()))?;
        let bytes = staging
            .get_mapped_range(0..n_byte)
            .map_err(|e| self.failed("a readback", &e.to_string()))?
            .to_vec();
        staging.unmap();
        self.count_read(n_byte);
        Ok(bytes)
    }

    /// Waits until the device has finished all submitted work and writes.
    pub(crate) async fn finish(&self) -> Result<(), RuntimeError> {
        let (index, done) = self.mark();
        self.reach(index, done).await
    }

    /// Submits pending writes; the promise resolves once the device has finished everything up to here.
    pub(crate) fn mark(&self) -> (wgpu::SubmissionIndex, Promise<()>) {
        let index = self.submit(None);
        let (keeper, done) = crate::platform::promise();
        self.queue.on_submitted_work_done(move || keeper.keep(()));
        (index, done)
    }

    /// Waits for [`Self::mark`].
    pub(crate) async fn reach(
        &self,
        index: wgpu::SubmissionIndex,
        done: Promise<()>,
    ) -> Result<(), RuntimeError> {
        crate::platform::settle(&self.device, Some(index));
        self.check()?;
        done.await;
        self.check()
    }

    /// The device's pending error, if any; otherwise the given reason.
    pub(crate) fn failed(&self, what: &str, reason: &str) -> RuntimeError {
        crate::platform::settle(&self.device, None);
        self.check()
            .err()
            .unwrap_or_else(|| RuntimeError::Refused { what: what.into(), reason: reason.into() })
    }

    /// A command encoder.
    pub(crate) fn encoder(&self) -> wgpu::CommandEncoder {
        self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("chaski") })
    }

    /// Submits commands.
    pub(crate) fn submit(&self, encoder: Option<wgpu::CommandEncoder>) -> wgpu::SubmissionIndex {
        self.submit_recorded(encoder.map(wgpu::CommandEncoder::finish))
    }

    /// Submits recorded commands.
    pub(crate) fn submit_recorded(&self, commands: Option<wgpu::CommandBuffer>) -> wgpu::SubmissionIndex {
        self.counters.submits.fetch_add(1, Ordering::Relaxed);
        self.queue.submit(commands)
    }

    /// Counts a readback.
    pub(crate) fn count_read(&self, n_byte: u64) {
        self.counters.reads.fetch_add(1, Ordering::Relaxed);
        self.counters.read_bytes.fetch_add(n_byte, Ordering::Relaxed);
    }
}

fn choose<'a>(all: &'a [wgpu::Adapter], options: &GpuOptions) -> Result<&'a wgpu::Adapter, RuntimeError> {
    let first = all.first().ok_or_else(|| RuntimeError::NoAdapter { hint: hint().into() })?;
    let Some(wanted) = &options.adapter else {
        let info = first.get_info();
        // Software renderers come last, so there is no other adapter.
        return match options.no_software && is_software(&info) {
            true => Err(RuntimeError::Software { adapter: info.name }),
            false => Ok(first),
        };
    };
    let lower = wanted.to_ascii_lowercase();
    let by_number = wanted.parse().ok().and_then(|i: usize| all.get(i));
    by_number
        .or_else(|| all.iter().find(|a| a.get_info().name.to_ascii_lowercase().contains(&lower)))
        .ok_or_else(|| {
            let found: Vec<String> = all.iter().map(|a| a.get_info().name).collect();
            RuntimeError::NoSuchAdapter { wanted: wanted.clone(), found: found.join(", ") }
        })
}

fn hint() -> &'static str {
    if cfg!(target_os = "linux") {
        "; install a Vulkan driver (on Debian or Ubuntu: `apt install mesa-vulkan-drivers`, or NVIDIA's own driver)"
    } else if cfg!(target_arch = "wasm32") {
        "; use a browser with WebGPU"
    } else {
        "; install the graphics driver of your GPU's maker"
    }
}
