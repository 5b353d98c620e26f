//! The sequences of a model on the device: which one runs, which pages it has, and its recurrent state.

use chaski_kernels::{KvLayout, step};

use super::model::GpuModel;
use crate::STATE_COPIES;

impl GpuModel {
    /// The sequence that tokens without one belong to.
    pub fn selected(&self) -> u32 {
        self.seq
    }

    /// Runs this sequence from now on: of those that the plan was made for.
    pub fn select(&mut self, seq: u32) {
        assert!(seq < self.config.n_seq, "sequence {seq} of {}", self.config.n_seq);
        self.seq = seq;
    }

    /// Gives a sequence pages from its `first` on: the page table of layers whose pages do not take turns.
    pub fn set_pages(&mut self, seq: u32, first: u32, pages: &[u32]) {
        let table = step::pages_at(self.config.max_col as usize) as u32 + seq * self.config.pages_per_seq();
        let at = 4 * u64::from(table + first);
        self.gpu.queue.write_buffer(&self.buffers.step, at, bytemuck::cast_slice(pages));
    }

    /// Whether layers have windows so small that their pages take turns.
    pub fn has_window(&self) -> bool {
        self.buffers.kv.iter().any(|(_, layout)| layout.wrap > 0)
    }

    /// Copies a page in every layer that has a page table.
    pub fn copy_page(&mut self, from: u32, to: u32) {
        self.copy_pages(|layout| (layout.wrap == 0).then_some((from, to, 1)));
    }

    /// Copies the pages that take turns from one sequence to another.
    pub fn copy_window(&mut self, from: u32, to: u32) {
        self.copy_pages(|l| (l.wrap > 0).then_some((from * l.wrap, to * l.wrap, l.wrap)));
    }

    /// Copies so many pages of each layer, from the first of one to the first of the other. A buffer is not copied to
    /// itself, so they go through another one.
    fn copy_pages(&self, of: impl Fn(&KvLayout) -> Option<(u32, u32, u32)>) {
        let on_way = self.buffers.page.as_ref().expect("a model with a cache has a page on its way");
        let mut encoder = self.encoder();
        for (buffer, layout) in &self.buffers.kv {
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
        self.gpu.submit(Some(encoder));
    }

    /// Whether a sequence that has been written up to position `top` (exclusive) can go on at `pos`: in layers whose pages
    /// take turns, what a token there looks back on may have been overwritten.
    pub fn can_go_on(&self, top: u32, pos: u32) -> bool {
        // Beside the window there is room for a chunk and a page.
        let back = self.config.max_col + self.config.page;
        let has_room = |l: &KvLayout| l.wrap == 0 || top <= l.wrap * l.page;
        top <= pos + back || self.buffers.kv.iter().all(|(_, layout)| has_room(layout))
    }

    /// Whether the model has recurrent state.
    pub fn has_state(&self) -> bool {
        !self.buffers.states.is_empty()
    }

    /// Tokens that the recurrent state has seen; `None` if that is not known, as after a profile.
    pub fn state_at(&self) -> Option<u32> {
        self.state_at[self.seq as usize]
    }

    pub(super) fn set_state_at(&mut self, at: Option<u32>) {
        self.state_at[self.seq as usize] = at;
    }

    /// Copies the recurrent state to copy number `i` of [`STATE_COPIES`].
    pub fn keep_state(&mut self, i: usize) {
        self.keep_snapshot(self.seq, self.copy_of(i));
    }

    /// Brings copy number `i` back, which was made after `at` tokens.
    pub fn bring_back_state(&mut self, i: usize, at: u32) {
        self.restore_snapshot(self.seq, self.copy_of(i), at);
    }

    /// Where copy number `i` of the sequence lies.
    fn copy_of(&self, i: usize) -> u32 {
        STATE_COPIES as u32 * self.seq + i as u32
    }

    /// Copies the recurrent state of a sequence to a snapshot: there are [`STATE_COPIES`] for each sequence.
    pub fn keep_snapshot(&mut self, seq: u32, snapshot: u32) {
        let mut encoder = self.encoder();
        for ((state, n_byte), copy) in self.buffers.states.iter().zip(&self.buffers.kept[snapshot as usize]) {
            encoder.copy_buffer_to_buffer(state, u64::from(seq) * n_byte, copy, 0, *n_byte);
        }
        self.gpu.submit(Some(encoder));
    }

    /// Brings a snapshot, which was made after `at` tokens, back into a sequence.
    pub fn restore_snapshot(&mut self, seq: u32, snapshot: u32, at: u32) {
        let mut encoder = self.encoder();
        for ((state, n_byte), copy) in self.buffers.states.iter().zip(&self.buffers.kept[snapshot as usize]) {
            encoder.copy_buffer_to_buffer(copy, 0, state, u64::from(seq) * n_byte, *n_byte);
        }
        self.gpu.submit(Some(encoder));
        self.state_at[seq as usize] = Some(at);
    }
}
