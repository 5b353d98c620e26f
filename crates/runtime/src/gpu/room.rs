//! The memory of a device: wgpu reports none, Vulkan does.
#![cfg_attr(
    any(windows, target_os = "linux", target_os = "android"),
    allow(unsafe_code, reason = "wgpu and ash mark queries of the driver as unsafe")
)]

/// Memory of a device.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct DeviceMemory {
    /// Bytes of the device's largest heap of its own; of main memory on devices without one.
    pub n_byte: u64,
    /// Bytes that this process can still allocate there, as the driver estimates it; [`Self::n_byte`] where it does
    /// not.
    pub n_free: u64,
    /// Bytes that this process can have there in all, as the driver estimates it; [`Self::n_byte`] where it does not.
    pub n_budget: u64,
}

impl DeviceMemory {
    /// Shares of a model for devices with this memory, in proportion to what is free
    /// ([`PlanConfig::shares`](crate::plan::PlanConfig::shares)); empty, which means equal ones, if that is not known
    /// of all. They are whole parts of 64, so that a model is cut the same way while other programs take and free a
    /// little.
    pub fn shares(devices: &[Option<DeviceMemory>]) -> Vec<f32> {
        let free: Option<Vec<f64>> =
            devices.iter().map(|memory| Some(memory.as_ref()?.n_free as f64)).collect();
        let Some(free) = free else { return Vec::new() };
        let sum: f64 = free.iter().sum();
        match sum > 0.0 {
            true => free.iter().map(|n| (64.0 * n / sum).round() as f32).collect(),
            false => Vec::new(),
        }
    }
}

/// Memory of an adapter; `None` with a graphics API other than Vulkan.
#[cfg(any(windows, target_os = "linux", target_os = "android"))]
pub(super) fn of(adapter: &wgpu::Adapter) -> Option<DeviceMemory> {
    use ash::vk;

    // SAFETY: nothing is destroyed through the handles of the adapter, which outlives them.
    let vulkan = unsafe { adapter.as_hal::<wgpu::hal::api::Vulkan>() }?;
    let instance = vulkan.shared_instance().raw_instance();
    let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
    // Drivers without the extension do not touch the structure.
    let mut properties = vk::PhysicalDeviceMemoryProperties2::default().push_next(&mut budget);
    // SAFETY: the physical device belongs to the instance; wgpu requires Vulkan 1.1 or the extension that has this
    // function.
    unsafe {
        instance.get_physical_device_memory_properties2(vulkan.raw_physical_device(), &mut properties);
    }
    let heaps = properties.memory_properties;
    let own = heaps.memory_heaps.iter().take(heaps.memory_heap_count as usize).enumerate();
    let own = own.filter(|(_, heap)| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL));
    let (i, heap) = own.max_by_key(|(_, heap)| heap.size)?;
    let n_free = match budget.heap_budget[i] {
        0 => heap.size,
        n_byte => n_byte.saturating_sub(budget.heap_usage[i]),
    };
    let n_budget = match budget.heap_budget[i] {
        0 => heap.size,
        n_byte => n_byte.min(heap.size),
    };
    Some(DeviceMemory { n_byte: heap.size, n_free: n_free.min(heap.size), n_budget })
}

/// Unknown where there is no Vulkan.
#[cfg(not(any(windows, target_os = "linux", target_os = "android")))]
pub(super) fn of(_: &wgpu::Adapter) -> Option<DeviceMemory> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_what_is_free() {
        let of =
            |n_free: u64| Some(DeviceMemory { n_byte: 80 << 30, n_free: n_free << 30, n_budget: 80 << 30 });
        assert_eq!(DeviceMemory::shares(&[of(72), of(24)]), [48.0, 16.0]);
        assert_eq!(DeviceMemory::shares(&[of(79), of(80)]), [32.0, 32.0]);
        assert!(DeviceMemory::shares(&[of(72), None]).is_empty());
        assert!(DeviceMemory::shares(&[of(0), of(0)]).is_empty());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_device_here_has_memory() {
        let gpu = pollster::block_on(super::super::Gpu::open(&super::super::GpuOptions::default()));
        let gpu = gpu.expect("a GPU");
        let before = gpu.memory().expect("Vulkan reports it");
        assert!(before.n_free <= before.n_byte && before.n_byte > 1 << 20, "{before:?}");
        assert!((1 << 20..=before.n_byte).contains(&before.n_budget), "{before:?}");
    }
}
