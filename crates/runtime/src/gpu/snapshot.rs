//! A sequence's device state as bytes, for saving and restoring.

use chaski_kernels::KvLayout;

use super::device::Gpu;
use super::load::UploadQueue;
use super::model::GpuModel;
use crate::error::RuntimeError;

/// A piece of a sequence's state, and the buffer for reading it.
struct Lies<'a> {
    gpu: &'a Gpu,
    staging: &'a wgpu::Buffer,
    buffer: &'a wgpu::Buffer,
    at: u64,
    n_byte: u64,
}

impl GpuModel {
    /// Layout of a snapshot's bytes: models and plans with equal layouts can exchange snapshots.
    pub fn snapshot_layout(&self) -> String {
        let layers = self.cache_layers().map(|l| {
            let page: u64 = l.page_ranges(0).iter().map(|r| r.1).sum();
            format!("{page}/{}", l.wrap)
        });
        let states = self.states().map(|n_byte| format!("s{n_byte}"));
        let (k, v) = self.config.kv;
        let layers = layers.chain(states).collect::<Vec<_>>().join(" ");
        let first = self.first.as_ref().map(|first| format!(" after {}", first.layout())).unwrap_or_default();
        format!("gpu {k} {v} {} {layers}{first}", self.config.page)
    }

    /// Bytes of a snapshot of a sequence with `n_page` pages.
    pub fn snapshot_bytes(&self, n_page: u32) -> u64 {
        let pages = self.cache_layers().map(|l| {
            let page: u64 = l.page_ranges(0).iter().map(|r| r.1).sum();
            page * u64::from(if l.wrap > 0 { l.wrap } else { n_page })
        });
        let of_first = self.first.as_ref().map(|first| first.snapshot_bytes(n_page));
        pages.chain(self.states()).chain(of_first).sum()
    }

    /// Bytes of all layers of recurrent state, by device.
    fn states(&self) -> impl Iterator<Item = u64> {
        self.parts().flat_map(|(_, b)| b.states.iter().flatten()).map(|(_, n_byte)| *n_byte)
    }

    /// Locations of a sequence's pages and state: layers of the cache first, by device.
    fn places(&self, seq: u32, pages: &[u32]) -> Vec<Lies<'_>> {
        let (mut out, mut states) = (Vec::new(), Vec::new());
        for (queue, buffers) in self.parts() {
            let gpu = queue.gpu;
            let lies =
                |buffer, (at, n_byte)| Lies { gpu, staging: buffers.any_staging(), buffer, at, n_byte };
            for (buffer, layout) in buffers.kv.iter().flatten() {
                let of = |l: &KvLayout, page| l.page_ranges(page).into_iter().map(|r| lies(buffer, r));
                match layout.wrap {
                    0 => pages.iter().for_each(|p| out.extend(of(layout, *p))),
                    wrap => (0..wrap).for_each(|i| out.extend(of(layout, seq * wrap + i))),
                }
            }
            let of_seq = buffers.states.iter().flatten();
            states.extend(of_seq.map(|(b, n_byte)| lies(b, (u64::from(seq) * n_byte, *n_byte))));
        }
        out.extend(states);
        out
    }

    /// Copies a sequence, stored in these pages, into a vector.
    ///
    /// # Errors
    /// Device errors.
    pub async fn snapshot(&mut self, seq: u32, pages: &[u32]) -> Result<Vec<u8>, RuntimeError> {
        self.drain()?;
        let mut out = Vec::new();
        for Lies { gpu, staging, buffer, at, n_byte } in self.places(seq, pages) {
            let mut done = 0;
            while done < n_byte {
                let n = (n_byte - done).min(staging.size());
                let mut encoder = gpu.encoder();
                encoder.copy_buffer_to_buffer(buffer, at + done, staging, 0, n);
                let index = gpu.submit(Some(encoder));
                out.extend(gpu.read(staging, n, Some(index)).await?);
                done += n;
            }
        }
        if let Some(first) = &self.first {
            out.extend(first.snapshot(seq, pages));
        }
        Ok(out)
    }

    /// Restores a snapshot of [`Self::snapshot_bytes`] to these pages of a sequence, which has then processed `n`
    /// tokens.
    ///
    /// # Errors
    /// Device errors.
    pub async fn put_back(
        &mut self,
        seq: u32,
        pages: &[u32],
        n: u32,
        bytes: &[u8],
    ) -> Result<(), RuntimeError> {
        /// Bytes per write, to bound the upload queue.
        const PIECE: usize = 1 << 20;
        self.drain()?;
        let (mut from, mut queue, mut last) = (0, UploadQueue::default(), &*self.gpu);
        for Lies { gpu, buffer, at, n_byte, .. } in self.places(seq, pages) {
            if !std::ptr::eq(last, gpu) {
                (queue, last) = (UploadQueue::default(), gpu);
            }
            let part = &bytes[from..from + n_byte as usize];
            for (i, piece) in part.chunks(PIECE).enumerate() {
                gpu.queue.write_buffer(buffer, at + (i * PIECE) as u64, piece);
                queue.sent(gpu, piece.len()).await?;
            }
            from += part.len();
        }
        if let Some(first) = &self.first {
            first.put_back(seq, pages, n, &bytes[from..]);
        }
        self.state_at[seq as usize] = Some(n);
        self.parts().try_for_each(|(queue, _)| queue.gpu.check())
    }
}
