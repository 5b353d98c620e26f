//! The KV cache on the CPU, in pages addressed by page tables, and recurrent state.

#[cfg(not(target_arch = "wasm32"))]
pub(super) mod kept;

use std::borrow::Cow;

use ggml_format::GgmlType;
use ggml_format::product::values;

use super::CpuConfig;
use crate::error::RuntimeError;
use crate::graph::{Graph, KvLayer};

/// Keys or values of a layer: for each token of a page one row with the cells of all heads, in the cache's type.
pub(super) struct Cache {
    pub(super) ty: GgmlType,
    /// Channels of a cell, and of its storage: whole blocks.
    d: usize,
    stored: usize,
    pub(super) bytes: Vec<u8>,
}

impl Cache {
    /// # Errors
    /// [`RuntimeError::OutOfMemory`].
    fn new(ty: GgmlType, n_cell: u64, d: u32) -> Result<Self, RuntimeError> {
        let d = d as usize;
        let stored = d.next_multiple_of(ty.block_len());
        let n_byte = Cache::n_byte(ty, n_cell, d);
        let out = || RuntimeError::OutOfMemory { what: "kv cache".into(), n_byte };
        let n = usize::try_from(n_byte).map_err(|_| out())?;
        // Untouched zeros take no memory, but allocating a zeroed vector cannot fail gracefully: this can.
        Vec::<u8>::new().try_reserve_exact(n).map_err(|_| out())?;
        Ok(Cache { ty, d, stored, bytes: vec![0; n] })
    }

    fn n_byte(ty: GgmlType, n_cell: u64, d: usize) -> u64 {
        n_cell.saturating_mul((d.div_ceil(ty.block_len()) * ty.block_bytes()) as u64)
    }

    /// Channels of a cell's storage.
    pub(super) fn stored(&self) -> usize {
        self.stored
    }

    pub(super) fn cell_bytes(&self) -> usize {
        self.stored / self.ty.block_len() * self.ty.block_bytes()
    }

    /// Stores cells from index `at`.
    pub(super) fn put(&mut self, at: usize, cells: &[f32]) {
        let n_byte = self.cell_bytes();
        let mut row = vec![0.0; self.stored];
        for (i, cell) in cells.chunks_exact(self.d).enumerate() {
            row[..self.d].copy_from_slice(cell);
            let out = &mut self.bytes[(at + i) * n_byte..][..n_byte];
            ggml_format::quantize_cells(self.ty, &row, self.stored, out)
                .expect("a type of cache takes whole blocks");
        }
    }

    /// `n` cells from index `at` as f32; borrowed if they are f32.
    pub(super) fn cells(&self, at: usize, n: usize) -> Cow<'_, [f32]> {
        let n_byte = self.cell_bytes();
        let out = values(self.ty, &self.bytes[at * n_byte..][..n * n_byte], n * self.stored);
        if self.d == self.stored {
            return out;
        }
        out.chunks_exact(self.stored).flat_map(|cell| cell[..self.d].to_vec()).collect()
    }
}

/// Bytes of a layer.
pub(super) fn layer_bytes(config: &CpuConfig, l: &KvLayer) -> u64 {
    let n_cell = u64::from(l.n_kv) * config.n_token();
    let (k, v) = config.kv;
    let values = if l.in_keys { 0 } else { Cache::n_byte(v, n_cell, l.d_v as usize) };
    Cache::n_byte(k, n_cell, l.d as usize).saturating_add(values)
}

/// Caches and states of a model's sequences.
pub(super) struct Sequences {
    page: u32,
    /// KV heads of each layer.
    n_kv: Vec<u32>,
    /// Keys and values of each layer.
    pub(super) kv: Vec<[Cache; 2]>,
    /// The page table of each sequence.
    tables: Vec<Vec<u32>>,
    /// State layers of each sequence, then of each snapshot.
    pub(super) states: Vec<Vec<Vec<f32>>>,
    snapshots: Vec<Vec<Vec<f32>>>,
    /// Tokens that the state of each sequence has processed; `None` if unknown.
    pub(super) state_at: Vec<Option<u32>>,
    /// Last chosen token of each sequence.
    pub(super) chosen: Vec<Option<u32>>,
}

impl Sequences {
    /// # Errors
    /// [`RuntimeError::OutOfMemory`].
    pub(super) fn new(graph: &Graph, config: &CpuConfig) -> Result<Self, RuntimeError> {
        let layer = |l: &KvLayer| {
            let (n_cell, (k, v)) = (u64::from(l.n_kv) * config.n_token(), config.kv);
            Ok([Cache::new(k, n_cell, l.d)?, Cache::new(v, if l.in_keys { 0 } else { n_cell }, l.d_v)?])
        };
        let kv: Result<Vec<[Cache; 2]>, RuntimeError> = graph.kv.iter().map(layer).collect();
        let state: Vec<Vec<f32>> = graph.states.iter().map(|l| vec![0.0; l.n as usize]).collect();
        let (n_seq, per_seq) = (config.n_seq as usize, config.pages_per_seq());
        // By default sequence s has the s-th run of pages, modulo the pool.
        let table = |s| (0..per_seq).map(|i| (s * per_seq + i) % config.n_page().max(1)).collect();
        Ok(Sequences {
            page: config.page,
            n_kv: graph.kv.iter().map(|l| l.n_kv).collect(),
            kv: kv?,
            tables: (0..config.n_seq).map(table).collect(),
            snapshots: vec![state.clone(); config.n_snapshot(graph) as usize],
            states: vec![state; n_seq],
            state_at: vec![Some(0); n_seq],
            chosen: vec![None; n_seq],
        })
    }

    /// Tokens per page.
    pub(super) fn page(&self) -> usize {
        self.page as usize
    }

    /// Sets entries of a sequence's page table, from `first`.
    pub(super) fn set_pages(&mut self, seq: u32, first: u32, pages: &[u32]) {
        self.tables[seq as usize][first as usize..][..pages.len()].copy_from_slice(pages);
    }

    /// Copies a page in every layer.
    pub(super) fn copy_page(&mut self, from: u32, to: u32) {
        for (i, caches) in self.kv.iter_mut().enumerate() {
            for cache in caches.iter_mut().filter(|c| !c.bytes.is_empty()) {
                let n = (self.page * self.n_kv[i]) as usize * cache.cell_bytes();
                let start = from as usize * n;
                cache.bytes.copy_within(start..start + n, to as usize * n);
            }
        }
    }

    /// First cell of a position of a sequence in a layer.
    pub(super) fn cell_of(&self, layer: usize, seq: u32, pos: u32) -> usize {
        let page = self.tables[seq as usize][(pos / self.page) as usize];
        ((page * self.page + pos % self.page) * self.n_kv[layer]) as usize
    }

    /// Keys or values (part 0 or 1) of a sequence in a layer: the pages with positions from `first` to before `end`.
    pub(super) fn pages_of(
        &self,
        (layer, part): (usize, usize),
        seq: u32,
        first: usize,
        end: usize,
    ) -> Vec<Cow<'_, [f32]>> {
        let n = self.page() * self.n_kv[layer] as usize;
        let table = &self.tables[seq as usize][first / self.page()..end.div_ceil(self.page())];
        table.iter().map(|page| self.kv[layer][part].cells(*page as usize * n, n)).collect()
    }

    /// The rest of a page, from the cell of a head at a position.
    pub(super) fn cells_of(&self, layer: usize, part: usize, seq: u32, pos: usize, head: usize) -> &[u8] {
        let cache = &self.kv[layer][part];
        &cache.bytes[(self.cell_of(layer, seq, pos as u32) + head) * cache.cell_bytes()..]
    }

    /// Copies the state of a sequence to a snapshot.
    pub(super) fn keep_snapshot(&mut self, seq: u32, snapshot: u32) {
        self.snapshots[snapshot as usize].clone_from(&self.states[seq as usize]);
    }

    /// Restores a snapshot, taken after `at` tokens, to a sequence.
    pub(super) fn restore_snapshot(&mut self, seq: u32, snapshot: u32, at: u32) {
        self.states[seq as usize].clone_from(&self.snapshots[snapshot as usize]);
        self.state_at[seq as usize] = Some(at);
    }

    pub(super) fn n_byte(&self) -> u64 {
        let kv = self.kv.iter().flatten().map(|c| c.bytes.len() as u64).sum::<u64>();
        let states = self.states.iter().chain(&self.snapshots).flatten();
        kv + states.map(|s| 4 * s.len() as u64).sum::<u64>()
    }

    /// Byte ranges of the first `n` tokens of a sequence: (layer and part, offset, length), page by page.
    fn places(&self, pages: &[u32], n: u32) -> Vec<((usize, usize), usize, usize)> {
        let mut out = Vec::new();
        for (layer, caches) in self.kv.iter().enumerate() {
            for (part, cache) in caches.iter().enumerate().filter(|(_, c)| !c.bytes.is_empty()) {
                let token = self.n_kv[layer] as usize * cache.cell_bytes();
                for (i, page) in (0u32..).zip(pages) {
                    let n_token = n.saturating_sub(i * self.page).min(self.page) as usize;
                    out.push(((layer, part), (page * self.page) as usize * token, n_token * token));
                }
            }
        }
        out
    }

    /// Bytes of a session of `n` tokens.
    pub(super) fn session_bytes(&self, n: u32) -> u64 {
        let layers = self.kv.iter().zip(&self.n_kv);
        let token = layers.flat_map(|(kv, n_kv)| {
            kv.iter().filter(|c| !c.bytes.is_empty()).map(|c| u64::from(*n_kv) * c.cell_bytes() as u64)
        });
        let states = self.states[0].iter().map(|s| 4 * s.len() as u64);
        u64::from(n) * token.sum::<u64>() + states.sum::<u64>()
    }

    /// The first `n` tokens of a sequence, stored in these pages, and its state.
    pub(super) fn save(&self, seq: u32, pages: &[u32], n: u32) -> Vec<u8> {
        let bytes =
            |((layer, part), at, n): ((usize, usize), usize, usize)| &self.kv[layer][part].bytes[at..at + n];
        let mut out: Vec<u8> = self.places(pages, n).into_iter().flat_map(bytes).copied().collect();
        out.extend(self.states[seq as usize].iter().flatten().flat_map(|v| v.to_le_bytes()));
        out
    }

    /// Restores the result of [`Self::save`] to these pages: the sequence has then processed `n` tokens.
    pub(super) fn put_back(&mut self, seq: u32, pages: &[u32], n: u32, mut bytes: &[u8]) {
        for ((layer, part), at, n) in self.places(pages, n) {
            let (of_page, rest) = bytes.split_at(n);
            self.kv[layer][part].bytes[at..at + n].copy_from_slice(of_page);
            bytes = rest;
        }
        for (v, b) in self.states[seq as usize].iter_mut().flatten().zip(bytes.chunks_exact(4)) {
            *v = f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        }
        self.state_at[seq as usize] = Some(n);
    }
}
