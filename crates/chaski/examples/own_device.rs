//! A model on the program's own wgpu device, alongside the program's own work.
//!
//! `cargo run --release --example own_device -p chaski -- [MODEL]`
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::sync::Arc;

use chaski::gpu::{Gpu, GpuOptions, device_descriptor, wgpu};
use chaski::{Engine, GenerateOptions, SamplerParams, Source};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let source = std::env::args().nth(1).map_or(Source::Default, Source::path);
    pollster::block_on(async {
        let instance = wgpu::Instance::default();
        let adapter = instance.request_adapter(&wgpu::RequestAdapterOptions::default()).await?;
        let options = GpuOptions::default();
        // Features and limits that Chaski can use; a program adds its own requirements.
        let descriptor = device_descriptor(&adapter, &options);
        let (device, queue) = adapter.request_device(&descriptor).await?;

        // Devices and queues are handles: both sides hold one.
        #[allow(clippy::arc_with_non_send_sync, reason = "on the web there are no threads")]
        let gpu = Arc::new(Gpu::with_device(&adapter, device.clone(), queue.clone(), &options));
        let mut engine = Engine::builder(source).gpu(gpu).build().await?;
        let options =
            GenerateOptions { sampler: SamplerParams::greedy(), max_tokens: Some(24), ..Default::default() };
        let mut answer = engine.generate("Once upon a time", options)?;

        let frames = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("the program's own"),
            size: 4096,
            usage: wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut n_frame = 0;
        let mut text = String::new();
        while let Some(piece) = answer.next().await? {
            text.push_str(&piece.text);
            // Between two pieces of text the queue takes other work: here, clearing a frame.
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            encoder.clear_buffer(&frames, 0, None);
            queue.submit([encoder.finish()]);
            n_frame += 1;
        }
        println!("Once upon a time{text}\n({n_frame} frames meanwhile, on {})", adapter.get_info().name);
        Ok(())
    })
}
