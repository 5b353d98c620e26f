//! The size of a device's subgroups, where its driver reports a range.
//!
//! Kernels with cooperative matrices are made for one size. WebGPU cannot ask for a size, and drivers that report a
//! range choose one when they compile a kernel: a tiny kernel with a cooperative matrix tells which.

use chaski_kernels::ops::measure::Lanes;
use chaski_kernels::{Dialect, Dispatch};

/// Threads of a subgroup in a kernel with cooperative matrices of so many rows; `None` if the device does not run it.
pub(super) fn lanes(device: &wgpu::Device, queue: &wgpu::Queue, side: u32) -> Option<u32> {
    let call = Lanes { side };
    let dispatch = call.dispatch().ok()?;
    let scope = device.push_error_scope(wgpu::ErrorFilter::Validation);
    let size = run(device, queue, &dispatch, call);
    let refused = scope.pop();
    let (keeper, done) = crate::platform::promise();
    let back = size.clone();
    size.map_async(wgpu::MapMode::Read, .., move |r| keeper.keep(r.is_ok()));
    crate::platform::settle(device, None);
    let is_mapped = done.take()?;
    // The scope's result is there without waiting: natively nothing is asynchronous but the device.
    let is_fine = pollster::block_on(refused).is_none();
    let bytes = (is_fine && is_mapped).then(|| back.get_mapped_range(..).ok())??;
    Some(u32::from_le_bytes(bytes.first_chunk().copied()?))
}

/// Submits the kernel; the buffer receives its result.
fn run(device: &wgpu::Device, queue: &wgpu::Queue, dispatch: &Dispatch, call: Lanes) -> wgpu::Buffer {
    let kernel = dispatch.kernel;
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some(kernel.name),
        source: wgpu::ShaderSource::Wgsl(kernel.text(Dialect::Native).into()),
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(kernel.name),
        layout: None,
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    let buffer = |name: &str, n_word: u32, usage| {
        device.create_buffer(&wgpu::BufferDescriptor {
            label: Some(name),
            size: 4 * u64::from(n_word),
            usage,
            mapped_at_creation: false,
        })
    };
    let storage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
    let bound = [("x", call.side * call.side), ("y", call.n_y()), ("size", 1)];
    let bound = bound.map(|(name, n_word)| (name, buffer(name, n_word, storage)));
    let entries: Vec<wgpu::BindGroupEntry<'_>> = kernel
        .bindings
        .iter()
        .filter_map(|b| {
            let (_, buffer) = bound.iter().find(|(name, _)| *name == b.name)?;
            Some(wgpu::BindGroupEntry { binding: b.index, resource: buffer.as_entire_binding() })
        })
        .collect();
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: Some(kernel.name),
        layout: &pipeline.get_bind_group_layout(0),
        entries: &entries,
    });
    let result = buffer("size", 1, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(1, 1, 1);
    }
    let [.., (_, size)] = &bound;
    encoder.copy_buffer_to_buffer(size, 0, &result, 0, 4);
    queue.submit([encoder.finish()]);
    result
}
