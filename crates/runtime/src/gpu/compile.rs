//! Compiling kernels: modules and layouts once for each kernel, pipelines once for each set of constants.
#![allow(unsafe_code, reason = "wgpu marks unchecked shader modules as unsafe")]

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chaski_kernels::{Access, Dialect, Dispatch, Kernel};

use super::device::Gpu;
use super::pipeline::{Compiled, Key, key, lock};
use crate::error::RuntimeError;

const DIALECT: Dialect = if cfg!(target_arch = "wasm32") { Dialect::Web } else { Dialect::Native };

impl Gpu {
    /// The pipeline of a dispatch, compiled on first use.
    pub(crate) fn compile(&self, d: &Dispatch) -> Result<Arc<Compiled>, RuntimeError> {
        let key = key(d);
        if let Some(c) = lock(&self.pipelines.compiled).get(&key) {
            return Ok(c.clone());
        }
        let compiled = Arc::new(self.create(d)?);
        lock(&self.pipelines.compiled).insert(key, compiled.clone());
        Ok(compiled)
    }

    /// Dispatches whose pipelines are missing, without duplicates.
    pub(crate) fn missing<'a>(&self, all: impl Iterator<Item = &'a Dispatch>) -> Vec<Dispatch> {
        let compiled = lock(&self.pipelines.compiled);
        let mut missing: HashMap<Key, &Dispatch> = HashMap::new();
        for d in all {
            let key = key(d);
            if !compiled.contains_key(&key) {
                missing.insert(key, d);
            }
        }
        missing.into_values().cloned().collect()
    }

    /// Compiles, on several threads if available, until `stop` is set.
    ///
    /// # Errors
    /// [`RuntimeError::Refused`] if the driver rejects a kernel.
    pub(crate) fn compile_all(&self, all: &[Dispatch], stop: &AtomicBool) -> Result<(), RuntimeError> {
        let go = || !stop.load(Ordering::Relaxed);
        // Render texts first: otherwise concurrent pipelines of one kernel would each parse it.
        let mut kernels: Vec<&'static Kernel> = all.iter().map(|d| d.kernel).collect();
        let mut seen = HashSet::new();
        kernels.retain(|k| seen.insert(k.name));
        let parse = |k: &&'static Kernel| if go() { self.module(k).map(drop) } else { Ok(()) };
        crate::platform::for_each(&kernels, parse).into_iter().collect::<Result<(), _>>()?;
        let compile = |d: &Dispatch| if go() { self.compile(d).map(drop) } else { Ok(()) };
        crate::platform::for_each(all, compile).into_iter().collect()
    }

    fn create(&self, d: &Dispatch) -> Result<Compiled, RuntimeError> {
        let module = self.module(d.kernel)?;
        let layout = self.layout(d.kernel);
        let pipeline_layout = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(d.kernel.name),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let pipeline = self.judged(d.kernel.name, || {
            self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(d.kernel.name),
                layout: Some(&pipeline_layout),
                module: &module,
                entry_point: Some("main"),
                compilation_options: wgpu::PipelineCompilationOptions {
                    constants: &d.constants,
                    zero_initialize_workgroup_memory: false,
                },
                cache: self.pipelines.cache.as_ref(),
            })
        })?;
        self.counters().pipelines.fetch_add(1, Ordering::Relaxed);
        Ok(Compiled { pipeline, layout })
    }

    /// Creates an object that the device may reject. Natively that is known immediately; in a browser the error arrives
    /// later at the device's error callback, from which a scope would hide it.
    fn judged<T>(&self, what: &str, make: impl FnOnce() -> T) -> Result<T, RuntimeError> {
        if cfg!(target_arch = "wasm32") {
            return Ok(make());
        }
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let made = make();
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::pin!(scope.pop()).as_mut().poll(&mut context) {
            std::task::Poll::Ready(Some(e)) => Err(self.failed(what, &e.to_string())),
            std::task::Poll::Ready(None) => Ok(made),
            std::task::Poll::Pending => {
                let reason = "its error scope did not answer at once".into();
                Err(RuntimeError::Refused { what: what.into(), reason })
            }
        }
    }

    fn module(&self, kernel: &'static Kernel) -> Result<wgpu::ShaderModule, RuntimeError> {
        if let Some(m) = lock(&self.pipelines.modules).get(kernel.name) {
            return Ok(m.clone());
        }
        let checks = if self.checked() {
            wgpu::ShaderRuntimeChecks::checked()
        } else {
            wgpu::ShaderRuntimeChecks::unchecked()
        };
        let descriptor = wgpu::ShaderModuleDescriptor {
            label: Some(kernel.name),
            source: wgpu::ShaderSource::Wgsl(kernel.text(DIALECT).into()),
        };
        // SAFETY: the text is one of our kernels. Their loops are bounded, and indices stay in bounds for the constants
        // of their dispatch functions; the tests run all of them with and without bounds checks and detect stray
        // writes.
        let make = || unsafe { self.device.create_shader_module_trusted(descriptor, checks) };
        let module = self.judged(kernel.name, make)?;
        lock(&self.pipelines.modules).insert(kernel.name, module.clone());
        Ok(module)
    }

    fn layout(&self, kernel: &'static Kernel) -> wgpu::BindGroupLayout {
        lock(&self.pipelines.layouts)
            .entry(kernel.name)
            .or_insert_with(|| {
                let entries: Vec<wgpu::BindGroupLayoutEntry> = kernel
                    .bindings
                    .iter()
                    .map(|b| wgpu::BindGroupLayoutEntry {
                        binding: b.index,
                        visibility: wgpu::ShaderStages::COMPUTE,
                        ty: wgpu::BindingType::Buffer {
                            ty: wgpu::BufferBindingType::Storage { read_only: b.access == Access::Read },
                            has_dynamic_offset: false,
                            min_binding_size: None,
                        },
                        count: None,
                    })
                    .collect();
                self.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
                    label: Some(kernel.name),
                    entries: &entries,
                })
            })
            .clone()
    }
}
