//! What the device knows of a sequence, as bytes: to keep it, and to go on from there another time.

use chaski_kernels::KvLayout;

use super::load::Flight;
use super::model::GpuModel;
use crate::error::RuntimeError;

impl GpuModel {
    /// What bytes of a snapshot mean: they fit models and plans of which this says the same.
    pub fn snapshot_layout(&self) -> String {
        let layers = self.buffers.kv.iter().map(|(_, l)| {
            let page: u64 = l.page_ranges(0).iter().map(|r| r.1).sum();
            format!("{page}/{}", l.wrap)
        });
        let states = self.buffers.states.iter().map(|(_, n_byte)| format!("s{n_byte}"));
        let (k, v) = self.config.kv;
        format!("gpu {k} {v} {} {}", self.config.page, layers.chain(states).collect::<Vec<_>>().join(" "))
    }

    /// Bytes of a snapshot of a sequence that has `n_page` pages.
    pub fn snapshot_bytes(&self, n_page: u32) -> u64 {
        let pages = self.buffers.kv.iter().map(|(_, l)| {
            let page: u64 = l.page_ranges(0).iter().map(|r| r.1).sum();
            page * u64::from(if l.wrap > 0 { l.wrap } else { n_page })
        });
        pages.chain(self.buffers.states.iter().map(|(_, n_byte)| *n_byte)).sum()
    }

    /// Where the pages of a sequence, and its state, lie: buffer, first byte, bytes.
    fn places(&self, seq: u32, pages: &[u32]) -> Vec<(&wgpu::Buffer, u64, u64)> {
        let mut out = Vec::new();
        for (buffer, layout) in &self.buffers.kv {
            let of = |l: &KvLayout, page| l.page_ranges(page).into_iter().map(|(at, n)| (buffer, at, n));
            match layout.wrap {
                0 => pages.iter().for_each(|p| out.extend(of(layout, *p))),
                wrap => (0..wrap).for_each(|i| out.extend(of(layout, seq * wrap + i))),
            }
        }
        out.extend(self.buffers.states.iter().map(|(b, n_byte)| (b, u64::from(seq) * n_byte, *n_byte)));
        out
    }

    /// Copies what there is of a sequence, in these pages, into a vector.
    ///
    /// # Errors
    /// Device errors.
    pub async fn snapshot(&mut self, seq: u32, pages: &[u32]) -> Result<Vec<u8>, RuntimeError> {
        let staging = &self.buffers.logits_staging;
        let mut out = Vec::new();
        for (buffer, start, n_byte) in self.places(seq, pages) {
            let mut done = 0;
            while done < n_byte {
                let n = (n_byte - done).min(staging.size());
                let mut encoder = self.encoder();
                encoder.copy_buffer_to_buffer(buffer, start + done, staging, 0, n);
                let index = self.gpu.submit(Some(encoder));
                out.extend(self.gpu.read(staging, n, Some(index)).await?);
                done += n;
            }
        }
        Ok(out)
    }

    /// Puts a snapshot of [`Self::snapshot_bytes`] back, to these pages of a sequence, which has seen `n` tokens then.
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
        /// Bytes written at once, so that few are under way.
        const PIECE: usize = 1 << 20;
        let (mut at, mut flight) = (0, Flight::default());
        for (buffer, start, n_byte) in self.places(seq, pages) {
            let part = &bytes[at..at + n_byte as usize];
            for (i, piece) in part.chunks(PIECE).enumerate() {
                self.gpu.queue.write_buffer(buffer, start + (i * PIECE) as u64, piece);
                flight.sent(&self.gpu, piece.len()).await?;
            }
            at += part.len();
        }
        self.state_at[seq as usize] = Some(n);
        self.gpu.check()
    }
}
