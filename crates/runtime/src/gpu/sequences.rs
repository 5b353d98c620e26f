//! Sequences on the device: pages, windows and recurrent state.

use chaski_kernels::{KvLayout, step};

use super::model::GpuModel;

impl GpuModel {
    /// Sets entries of a sequence's page table, from `first`, for layers without reused pages.
    pub fn set_pages(&mut self, seq: u32, first: u32, pages: &[u32]) {
        let table = step::pages_at(self.config.max_col as usize) as u32 + seq * self.config.pages_per_seq();
        let at = 4 * u64::from(table + first);
        for (queue, buffers) in self.parts() {
            queue.write(&buffers.step, at, bytemuck::cast_slice(pages));
        }
        if let Some(cpu) = &self.first {
            let pages = pages.to_vec();
            cpu.change(move |model| model.set_pages(seq, first, &pages));
        }
    }

    /// All layers of the cache, by device.
    pub(super) fn cache_layers(&self) -> impl Iterator<Item = &KvLayout> {
        self.parts().flat_map(|(_, b)| b.kv.iter().flatten()).map(|(_, layout)| layout)
    }

    /// True if some layers have windows so small that their pages are reused.
    pub fn has_window(&self) -> bool {
        self.cache_layers().any(|layout| layout.wrap > 0)
    }

    /// Copies a page in every layer with a page table.
    pub fn copy_page(&mut self, from: u32, to: u32) {
        self.copy_pages(|layout| (layout.wrap == 0).then_some((from, to, 1)));
        if let Some(first) = &self.first {
            first.change(move |model| model.copy_page(from, to));
        }
    }

    /// Copies the reused pages of windows from one sequence to another.
    pub fn copy_window(&mut self, from: u32, to: u32) {
        self.copy_pages(|l| (l.wrap > 0).then_some((from * l.wrap, to * l.wrap, l.wrap)));
    }

    /// Copies pages of each layer. A buffer cannot be copied to itself, so they go through a scratch buffer.
    fn copy_pages(&self, of: impl Fn(&KvLayout) -> Option<(u32, u32, u32)>) {
        if self.is_closed() {
            return;
        }
        for (queue, buffers) in self.parts() {
            let Some(on_way) = &buffers.page else { continue };
            let mut encoder = queue.gpu.encoder();
            for (buffer, layout) in buffers.kv.iter().flatten() {
                let Some((from, to, n)) = of(layout) else { continue };
                for i in 0..n {
                    let mut at = 0;
                    for (start, n_byte) in layout.page_ranges(from + i) {
                        encoder.copy_buffer_to_buffer(buffer, start, on_way, at, n_byte);
                        at += n_byte;
                    }
                    at = 0;
                    for (start, n_byte) in layout.page_ranges(to + i) {
                        encoder.copy_buffer_to_buffer(on_way, at, buffer, start, n_byte);
                        at += n_byte;
                    }
                }
            }
            queue.submit(encoder);
        }
    }

    /// True if a sequence that was written up to position `top` (exclusive) can continue at `pos`: in layers with
    /// reused pages, tokens in its window may have been overwritten.
    pub fn can_go_on(&self, top: u32, pos: u32) -> bool {
        // In addition to the window there is room for a chunk and a page.
        let back = self.config.max_col + self.config.page;
        let has_room = |l: &KvLayout| l.wrap == 0 || top <= l.wrap * l.page;
        top <= pos + back || self.cache_layers().all(has_room)
    }

    /// True if the model has recurrent state.
    pub fn has_state(&self) -> bool {
        self.has_state
    }

    /// True if a step takes whole texts only.
    pub fn is_encoder(&self) -> bool {
        self.is_encoder
    }

    /// Tokens that the recurrent state of a sequence has processed; `None` if unknown, as after a profile.
    pub fn state_at(&self, seq: u32) -> Option<u32> {
        self.state_at[seq as usize]
    }

    /// Capacity for snapshots; 0 for models without state outside paged tables.
    pub fn n_snapshot(&self) -> u32 {
        self.buffers.snapshots.len() as u32
    }

    /// Copies the state outside paged tables of a sequence of `at` tokens to a snapshot: recurrent state and windows.
    pub fn keep_snapshot(&mut self, seq: u32, snapshot: u32, at: u32) {
        self.copy_snapshot(seq, snapshot, at, |encoder, (sequence, from), (copy, to), n_byte| {
            encoder.copy_buffer_to_buffer(sequence, from, copy, to, n_byte);
        });
        if let Some(first) = self.first.as_ref().filter(|first| first.has_state()) {
            first.change(move |model| model.keep_snapshot(seq, snapshot));
        }
    }

    /// Restores a snapshot, taken after `at` tokens, to a sequence.
    pub fn restore_snapshot(&mut self, seq: u32, snapshot: u32, at: u32) {
        self.copy_snapshot(seq, snapshot, at, |encoder, (sequence, from), (copy, to), n_byte| {
            encoder.copy_buffer_to_buffer(copy, to, sequence, from, n_byte);
        });
        if let Some(first) = self.first.as_ref().filter(|first| first.has_state()) {
            first.change(move |model| model.restore_snapshot(seq, snapshot, at));
        }
        self.state_at[seq as usize] = Some(at);
    }

    /// Locations of every part of a snapshot: in the sequence, and in the snapshot.
    fn copy_snapshot(
        &self,
        seq: u32,
        snapshot: u32,
        at: u32,
        copy: impl Fn(&mut wgpu::CommandEncoder, (&wgpu::Buffer, u64), (&wgpu::Buffer, u64), u64),
    ) {
        if self.is_closed() {
            return;
        }
        for (queue, buffers) in self.parts() {
            let mut encoder = queue.gpu.encoder();
            let to = &buffers.snapshots[snapshot as usize];
            for (state, to) in buffers.states.iter().zip(&to.states) {
                if let (Some((state, n_byte)), Some(to)) = (state, to) {
                    copy(&mut encoder, (state, u64::from(seq) * n_byte), (to, 0), *n_byte);
                }
            }
            let layers = buffers.kv.iter().zip(&to.windows).zip(&self.windows);
            for ((layer, to), window) in layers {
                let (Some((cache, layout)), Some(to)) = (layer, to) else { continue };
                let n_kept = u64::from(window.div_ceil(layout.page) + 1).min(layout.wrap.into());
                for (page, i, n) in kept_pages(layout, *window, at) {
                    // The pages of a plane are contiguous in both.
                    let mut base = 0;
                    for (start, n_byte) in layout.page_ranges(seq * layout.wrap + page) {
                        copy(&mut encoder, (cache, start), (to, base + i * n_byte), n * n_byte);
                        base += n_kept * n_byte;
                    }
                }
            }
            queue.submit(encoder);
        }
    }
}

/// The pages of a window of a sequence of `at` tokens, in runs: first page among the sequence's reused pages, index in
/// the snapshot, and length.
fn kept_pages(layout: &KvLayout, window: u32, at: u32) -> Vec<(u32, u64, u64)> {
    let (first, end) = (at.saturating_sub(window) / layout.page, at.div_ceil(layout.page));
    let start = first % layout.wrap;
    let n = end - first;
    let before_end = n.min(layout.wrap - start);
    let runs = [(start, 0, before_end.into()), (0, before_end.into(), (n - before_end).into())];
    runs.into_iter().filter(|r| r.2 > 0).collect()
}

#[cfg(test)]
mod tests {
    use chaski_kernels::KvLayout;
    use ggml_format::GgmlType;

    use super::kept_pages;

    #[test]
    fn a_snapshot_has_the_pages_of_the_window_in_rotation() {
        let layout = KvLayout {
            n_kv: 1,
            d: 8,
            d_v: 8,
            in_keys: false,
            k: GgmlType::F32,
            v: GgmlType::F32,
            n_page: 10,
            page: 4,
            n_seq: 2,
            pages_per_seq: 100,
            pages_at: 0,
            wrap: 5,
        };
        assert_eq!(kept_pages(&layout, 8, 0), []);
        assert_eq!(kept_pages(&layout, 8, 3), [(0, 0, 1)]);
        // Positions 4 to 11, and 5 to 12.
        assert_eq!(kept_pages(&layout, 8, 12), [(1, 0, 2)]);
        assert_eq!(kept_pages(&layout, 8, 13), [(1, 0, 3)]);
        // Pages 3 to 5 and 4 to 6, where the fifth is the first again.
        assert_eq!(kept_pages(&layout, 8, 21), [(3, 0, 2), (0, 2, 1)]);
        assert_eq!(kept_pages(&layout, 8, 25), [(4, 0, 1), (0, 1, 2)]);
    }
}
