//! Loading with several threads.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use chaski_kernels::{DeviceLayout, Format};
use ggml_format::GgmlType;
use pollster::block_on;

use super::super::device::{Gpu, GpuOptions};
use super::threads::{Sizes, fill};
use super::{Progress, Sent, n_byte, one_by_one};
use crate::error::RuntimeError;
use crate::graph::{Graph, Weight, WeightId};
use crate::plan::{Group, Groups, Shard};
use crate::tensors::Tensors;

type ReadError = Box<dyn std::error::Error + Send + Sync>;

/// Tensors in memory, whose reads are counted.
#[derive(Default)]
struct Memory {
    tensors: BTreeMap<String, Vec<u8>>,
    /// How often each byte was read.
    n_read: Mutex<BTreeMap<String, Vec<u8>>>,
    /// Number of reads so far.
    n: AtomicUsize,
    /// Time of a read.
    takes: Duration,
    /// The read that does something else.
    odd: Option<(usize, Odd)>,
}

#[derive(Copy, Clone)]
enum Odd {
    Fails,
    Panics,
}

impl Tensors for Memory {
    async fn read(&self, name: &str, offset: u64, buf: &mut [u8]) -> Result<(), ReadError> {
        let n = self.n.fetch_add(1, Ordering::SeqCst);
        match self.odd.filter(|(nth, _)| *nth == n) {
            Some((_, Odd::Fails)) => return Err("the disk is gone".into()),
            Some((_, Odd::Panics)) => panic!("the reader is wrong"),
            None => {}
        }
        std::thread::sleep(self.takes);
        let range = offset as usize..offset as usize + buf.len();
        buf.copy_from_slice(&self.tensors[name][range.clone()]);
        let mut n_read = self.n_read.lock().expect("nobody panics with it");
        n_read.get_mut(name).expect("it is there")[range].iter_mut().for_each(|n| *n += 1);
        Ok(())
    }

    fn in_parallel(&self) -> bool {
        true
    }
}

/// A model of groups, in memory.
struct Model {
    graph: Graph,
    groups: Groups,
    tensors: BTreeMap<String, Vec<u8>>,
}

impl Model {
    /// Groups in formats with and without padding, planes and tables; of several members, experts and shards.
    fn new() -> Model {
        let mut model =
            Model { graph: Graph::default(), groups: Groups::default(), tensors: BTreeMap::new() };
        model.add(GgmlType::F16, 64, 1, &[37], &[37]);
        model.add(GgmlType::F16, 13, 1, &[8, 15], &[23]);
        model.add(GgmlType::F32, 24, 3, &[7, 5], &[24, 12]);
        model.add(GgmlType::BF16, 40, 1, &[400], &[400]);
        model.add(GgmlType::Q8_0, 96, 1, &[50], &[24, 26]);
        model.add(GgmlType::Q4_K, 512, 1, &[32, 19], &[20, 31]);
        model.add(GgmlType::Q6_K, 256, 4, &[9], &[36]);
        model.add(GgmlType::IQ3_XXS, 512, 1, &[10], &[8, 2]);
        model.add(GgmlType::IQ1_S, 256, 1, &[5], &[5]);
        model
    }

    /// A group of members with these rows per expert, in shards with these rows.
    fn add(&mut self, ty: GgmlType, n_col: u32, n_expert: u32, members: &[u32], shards: &[u32]) {
        let (mut of, mut share) = (Vec::new(), 0);
        for n_row in members {
            let name = format!("{} {}", ty.name(), self.graph.weights.len());
            let w = Weight::new(name.clone(), ty, n_row * n_expert, n_col);
            let w = Weight { n_expert, ..w };
            let mut seed = self.graph.weights.len() as u32;
            let byte = |_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 24) as u8
            };
            self.tensors.insert(name, (0..w.n_byte()).map(byte).collect());
            of.push((WeightId(self.graph.weights.len()), share));
            self.graph.weights.push(w);
            share += n_row;
        }
        let mut row0 = 0;
        let shard = |n_row: &u32| {
            row0 += n_row;
            Shard { row0: row0 - n_row, n_row: *n_row }
        };
        self.groups.groups.push(Group {
            members: of,
            format: Format::of(ty).expect("a weight format"),
            n_expert,
            share,
            stride: share,
            streamed: false,
            n_row: share * n_expert,
            n_col,
            shards: shards.iter().map(shard).collect(),
        });
    }

    fn source(&self) -> Memory {
        let n_read = self.tensors.iter().map(|(name, bytes)| (name.clone(), vec![0; bytes.len()]));
        Memory { tensors: self.tensors.clone(), n_read: Mutex::new(n_read.collect()), ..Memory::default() }
    }

    /// Buffers of all shards but one, which another device has.
    fn buffers(&self, gpu: &Gpu) -> Vec<Vec<Option<wgpu::Buffer>>> {
        let usage = wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        let buffer = |(nth, layout): (usize, DeviceLayout)| {
            (nth != 1).then(|| block_on(gpu.buffer("weights", layout.n_byte, usage)).expect("a buffer"))
        };
        let mut nth = 0..;
        let of =
            |g: &Group| g.shards.iter().map(|s| buffer((nth.next().expect("no end"), g.layout(s)))).collect();
        self.groups.groups.iter().map(of).collect()
    }

    /// Expected bytes of a shard.
    fn packed(&self, g: &Group, shard: &Shard) -> Vec<u8> {
        let mut rows = Vec::new();
        for expert in 0..g.n_expert as usize {
            for (id, _) in &g.members {
                let bytes = &self.tensors[&self.graph.weights[id.0].name];
                let n = bytes.len() / g.n_expert as usize;
                rows.extend_from_slice(&bytes[expert * n..(expert + 1) * n]);
            }
        }
        let row_bytes = g.row_bytes();
        let [from, to] = [shard.row0, shard.row0 + shard.n_row].map(|row| row as usize * row_bytes);
        g.layout(shard).pack_all(g.format, g.n_col, &rows[from..to])
    }

    fn check(&self, gpu: &Gpu, buffers: &[Vec<Option<wgpu::Buffer>>], case: &str) {
        for (g, buffers) in self.groups.groups.iter().zip(buffers) {
            for (shard, buffer) in g.shards.iter().zip(buffers) {
                let Some(buffer) = buffer else { continue };
                let expected = self.packed(g, shard);
                assert!(
                    read(gpu, buffer)[..expected.len()] == expected,
                    "{case}: {} from row {}",
                    g.format.name,
                    shard.row0
                );
            }
        }
    }
}

fn read(gpu: &Gpu, buffer: &wgpu::Buffer) -> Vec<u8> {
    let usage = wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ;
    let staging = block_on(gpu.buffer("readback", buffer.size(), usage)).expect("a buffer");
    let mut encoder = gpu.encoder();
    encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, buffer.size());
    let index = gpu.submit(Some(encoder));
    block_on(gpu.read(&staging, buffer.size(), Some(index))).expect("a readback")
}

fn open() -> Arc<Gpu> {
    Arc::new(block_on(Gpu::open(&GpuOptions::default())).expect("a GPU"))
}

fn sizes(n_thread: usize) -> Sizes {
    Sizes { n_thread, piece: 3000, read: 1200 }
}

#[test]
fn any_number_of_threads_fills_the_same_buffers() {
    let (gpu, model) = (open(), Model::new());
    for n_thread in [0, 1, 2, 5] {
        let case = format!("{n_thread} threads");
        let (source, buffers) = (Arc::new(model.source()), model.buffers(&gpu));
        let total = n_byte(&model.groups, &buffers);
        let Model { graph, groups, .. } = &model;
        let mut told = vec![0];
        if n_thread == 0 {
            let (mut sent, mut report) = (Sent::of(total), |p: Progress| told.push(p.done));
            let loading = one_by_one(&gpu, graph, groups, &source, &buffers, &mut sent, &mut report);
            block_on(loading).expect("it loads");
        } else {
            let report = |done| told.push(done);
            let loading = fill(&gpu, graph, groups, &source, &buffers, sizes(n_thread), report);
            block_on(loading).expect("it loads");
        }
        assert!(
            told.is_sorted_by(|a, b| a < b) && told.last() == Some(&total),
            "{case}: {told:?} of {total}"
        );
        model.check(&gpu, &buffers, &case);
        assert_eq!(Arc::strong_count(&source), 1, "{case}: a thread is left");
        let n_read = source.n_read.lock().expect("no read panicked");
        let counts = n_read.values().flatten();
        assert!(counts.clone().all(|n| *n <= 1), "{case}: bytes were read twice");
        assert_eq!(counts.map(|n| u64::from(*n)).sum::<u64>(), total, "{case}: bytes were not read");
    }
}

#[test]
fn a_read_that_fails_ends_all_threads() {
    let (gpu, model) = (open(), Model::new());
    let Model { graph, groups, .. } = &model;
    for (n_thread, nth) in [(1, 0), (1, 20), (2, 1), (5, 30)] {
        let source = Arc::new(Memory { odd: Some((nth, Odd::Fails)), ..model.source() });
        let buffers = model.buffers(&gpu);
        let loaded = block_on(fill(&gpu, graph, groups, &source, &buffers, sizes(n_thread), |_| {}));
        let Err(RuntimeError::Tensor { source: e, .. }) = loaded else { panic!("{n_thread}: {loaded:?}") };
        assert_eq!(e.to_string(), "the disk is gone");
        assert_eq!(Arc::strong_count(&source), 1, "{n_thread} threads: one is left");
        // The others finish the piece that they have.
        let n = source.n.load(Ordering::SeqCst);
        assert!(n <= nth + 1 + 8 * n_thread, "{n_thread} threads: {n} reads");
        gpu.check().expect("the device is unharmed");
    }
}

#[test]
fn a_read_that_panics_ends_all_threads() {
    let (gpu, model) = (open(), Model::new());
    let Model { graph, groups, .. } = &model;
    let source = Arc::new(Memory { odd: Some((10, Odd::Panics)), ..model.source() });
    let load = || block_on(fill(&gpu, graph, groups, &source, &model.buffers(&gpu), sizes(2), |_| {}));
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(load)).expect_err("the reader panics");
    assert_eq!(panic.downcast_ref(), Some(&"the reader is wrong"));
    assert_eq!(Arc::strong_count(&source), 1, "a thread is left");
}

#[test]
fn loading_that_is_dropped_ends_its_threads() {
    let (gpu, model) = (open(), Model::new());
    let Model { graph, groups, .. } = &model;
    for n_thread in [1, 3] {
        let source = Arc::new(Memory { takes: Duration::from_millis(2), ..model.source() });
        let buffers = model.buffers(&gpu);
        let told = AtomicUsize::new(0);
        {
            let report = |_| _ = told.fetch_add(1, Ordering::SeqCst);
            let mut loading = pin!(fill(&gpu, graph, groups, &source, &buffers, sizes(n_thread), report));
            while told.load(Ordering::SeqCst) < 2 {
                let polled = loading.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                assert!(polled.is_pending(), "{n_thread}: {polled:?}");
            }
            assert!(Arc::strong_count(&source) > 1, "the threads have it");
        }
        assert_eq!(Arc::strong_count(&source), 1, "{n_thread} threads: one is left");
        let all = model.tensors.values().map(Vec::len).sum::<usize>() / 1200;
        let n = source.n.load(Ordering::SeqCst);
        assert!(n < all, "{n_thread} threads: {n} reads of {all}");
        block_on(gpu.finish()).expect("the device is unharmed");
    }
}

#[test]
fn a_device_that_is_lost_ends_all_threads() {
    let model = Model::new();
    let Model { graph, groups, .. } = &model;
    for n_thread in [1, 4] {
        let gpu = open();
        let source = Arc::new(Memory { takes: Duration::from_millis(1), ..model.source() });
        let report = |_| gpu.destroy();
        let loading = async {
            fill(&gpu, graph, groups, &source, &model.buffers(&gpu), sizes(n_thread), report).await?;
            gpu.finish().await
        };
        let loaded = block_on(loading);
        assert!(matches!(loaded, Err(RuntimeError::DeviceLost { .. })), "{n_thread}: {loaded:?}");
        assert_eq!(Arc::strong_count(&source), 1, "{n_thread} threads: one is left");
    }
}
