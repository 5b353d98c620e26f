//! Sizes that a plan is made for, and those that follow from them.

use chaski_kernels::ops::mul_mat_vec::{ActivationPrecision, FewColumns};
use chaski_kernels::step::{self, Choice};
use chaski_kernels::{KvLayout, Tuning};
use ggml_format::GgmlType;

use super::fusion::Fusions;
use super::streaming::Streaming;
use crate::STATE_COPIES;
use crate::graph::{Graph, KvLayer};

/// Sizes and options of a plan.
#[derive(Clone, Debug)]
pub struct PlanConfig {
    /// Maximum number of tokens per sequence.
    pub n_ctx: u32,
    /// Sequences.
    pub n_seq: u32,
    /// Maximum number of columns per prefill chunk.
    pub max_col: u32,
    /// Tokens per page of the KV cache.
    pub page: u32,
    /// Pages shared by all sequences; `None`: one context per sequence.
    pub pool: Option<u32>,
    /// Types of the keys and of the values in the KV cache.
    pub kv: (GgmlType, GgmlType),
    /// Stage tiles of matrix products in f16 if the device can.
    pub f16_tiles: bool,
    /// Precision of activations in products with weights of integers; `None`: automatic.
    pub inputs: Option<ActivationPrecision>,
    /// Run every step by one plan, whose kernels sum in the same order for any number of columns, so that the bits of a
    /// column do not depend on the others. Chunks are at most [`Self::MAX_DETERMINISTIC`] columns.
    pub deterministic: bool,
    /// Tuning measured on this device.
    pub tuning: Tuning,
    /// Slots of each sequence's ring of chosen tokens, a power of two.
    pub ring: u32,
    /// Fusion rules.
    pub fusions: Fusions,
    /// CPU offload of experts.
    pub experts: Streaming,
    /// Offloaded experts may be computed elsewhere: their inputs are read back with the route, and their slots are
    /// summed by a dispatch of its own.
    pub away: bool,
    /// Allow input rows in place of tokens, and positions with three components.
    pub rows: bool,
    /// Share of weights and cache per device, in any unit; empty: equal shares.
    pub shares: Vec<f32>,
    /// The first layers that the CPU backend runs, before the devices; `None`: devices run all.
    pub cpu: Option<CpuLayers>,
}

/// Layers of the CPU backend: the first ones. It has the embeddings of tokens at least.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CpuLayers {
    /// By its share, which comes before those of the devices in [`PlanConfig::shares`].
    Share,
    /// All but so many.
    AllBut(u32),
    /// Those without which weights and cache fit this many bytes.
    Beyond(u64),
}

impl PlanConfig {
    /// Maximum number of columns of a deterministic plan: attention goes column by column.
    pub const MAX_DETERMINISTIC: u32 = step::MAX_PICK as u32;

    /// A plan for the whole model on each device, with an f16 cache of pages of 64 tokens and all fusions.
    pub fn new(n_ctx: u32, n_seq: u32, max_col: u32) -> PlanConfig {
        PlanConfig {
            n_ctx,
            n_seq,
            max_col,
            page: 64,
            pool: None,
            kv: (GgmlType::F16, GgmlType::F16),
            f16_tiles: false,
            inputs: None,
            deterministic: false,
            tuning: Tuning::default(),
            ring: 64,
            fusions: Fusions::ALL,
            experts: Streaming::default(),
            away: false,
            rows: false,
            shares: Vec::new(),
            cpu: None,
        }
    }

    /// [`Self::deterministic`]; never in browsers, whose pages do not download the code.
    pub fn is_deterministic(&self) -> bool {
        cfg!(not(target_arch = "wasm32")) && self.deterministic
    }

    /// Columns of a sequence up to which attention goes column by column. Where it always does, there are no tiles.
    pub fn few(&self) -> u32 {
        if self.is_deterministic() { Self::MAX_DETERMINISTIC } else { FewColumns::MAX }
    }

    /// The fusion rules, without those that experts elsewhere exclude.
    pub fn rules(&self) -> Fusions {
        if self.away { self.fusions.with_experts_apart() } else { self.fusions }
    }

    /// Pages per sequence.
    pub fn pages_per_seq(&self) -> u32 {
        self.n_ctx.div_ceil(self.page)
    }

    /// Pages of the pool: as configured, or enough for all sequences.
    pub fn n_page(&self) -> u32 {
        self.pool.unwrap_or(self.pages_per_seq() * self.n_seq)
    }

    /// Bytes of a page of the largest layer, the scratch for copies of pages.
    pub fn page_bytes(&self, graph: &Graph) -> Option<u64> {
        let bytes = |l: &KvLayer| self.kv_layout(l).page_ranges(0).iter().map(|r| r.1).sum::<u64>();
        graph.kv.iter().map(bytes).max()
    }

    /// Bytes of the KV cache: those of layers that reuse a window of pages, and those of a page of the pool in all
    /// other layers.
    pub fn cache_bytes(&self, graph: &Graph) -> (u64, u64) {
        let one = PlanConfig { pool: Some(1), ..self.clone() };
        let bytes = |l: &KvLayer| one.kv_layout(l).page_ranges(0).iter().map(|r| r.1).sum::<u64>();
        let (whole, window): (Vec<&KvLayer>, Vec<&KvLayer>) = graph.kv.iter().partition(|l| one.wrap(l) == 0);
        let fixed = window.into_iter().map(|l| bytes(l) * u64::from(one.pages_in(l))).sum();
        (fixed, whole.into_iter().map(bytes).sum())
    }

    /// Pages of the pool that a binding of this size holds in every layer, and whose cells kernels can count; `None` if
    /// no layer has the pool's pages.
    pub fn most_pages(&self, graph: &Graph, max_binding_bytes: u64) -> Option<u32> {
        let of = |l: &KvLayer| {
            let sized = |n_page| KvLayout { n_page, ..self.kv_layout(l) };
            let each: u64 = sized(1).page_ranges(0).iter().map(|r| r.1).sum();
            let countable = u64::from(u32::MAX) / (u64::from(self.page) * u64::from(l.n_kv)).max(1);
            let n_page = (max_binding_bytes / each.max(1)).min(countable) as u32;
            // Planes are aligned, which takes a few bytes.
            (0..=n_page).rev().find(|n| sized(*n).n_byte() <= max_binding_bytes).unwrap_or(0)
        };
        graph.kv.iter().filter(|l| self.wrap(l) == 0).map(of).min()
    }

    /// Words of the step buffer.
    pub fn step_words(&self) -> usize {
        let words = step::n_word(self.max_col as usize, self.n_seq as usize, self.pages_per_seq() as usize);
        words + if self.rows { step::SHIFT * self.max_col as usize } else { 0 }
    }

    /// Word offset of the position components in the step buffer, if columns have any.
    pub fn shifts_at(&self) -> Option<u32> {
        let at = step::shifts_at(self.max_col as usize, self.n_seq as usize, self.pages_per_seq() as usize);
        self.rows.then_some(at as u32)
    }

    /// Layout of the step buffer for kernels that choose tokens.
    pub fn choice(&self) -> Choice {
        Choice::of(self.max_col as usize, self.n_seq as usize, self.pages_per_seq() as usize, self.ring)
    }

    /// Bytes of the rings of all sequences.
    pub fn ring_bytes(&self) -> u64 {
        4 * u64::from(self.ring) * u64::from(self.n_seq)
    }

    /// Bytes of `n_word` words per sequence.
    pub fn per_seq(&self, n_word: usize) -> u64 {
        4 * n_word as u64 * u64::from(self.n_seq)
    }

    /// Pages per sequence that are reused in turn, in a layer with a window; 0 if every page is kept.
    ///
    /// A chunk is written before its first token attends, so window and chunk must fit; one more page, so that a
    /// sequence can always be rewound by a page.
    fn wrap(&self, layer: &KvLayer) -> u32 {
        let pages = (u64::from(layer.window) + u64::from(self.max_col)).div_ceil(self.page.into()) + 1;
        let fewer = layer.window > 0 && pages < u64::from(self.pages_per_seq());
        if fewer { pages as u32 } else { 0 }
    }

    /// Pages of a layer in a snapshot: those of the window. 0 for layers with page tables.
    pub fn pages_kept(&self, layer: &KvLayer) -> u32 {
        self.wrap(layer).min(layer.window.div_ceil(self.page) + 1)
    }

    /// Bytes of the pages of a layer in a snapshot.
    pub fn kept_bytes(&self, layer: &KvLayer) -> u64 {
        let page: u64 = self.kv_layout(layer).page_ranges(0).iter().map(|r| r.1).sum();
        page * u64::from(self.pages_kept(layer))
    }

    /// Number of snapshots of state outside paged tables: recurrent state, and windows. [`STATE_COPIES`] per sequence;
    /// fewer if windows would take more memory than the KV cache, but at least enough for one sequence.
    pub fn n_snapshot(&self, graph: &Graph) -> u32 {
        let state: u64 = graph.states.iter().map(|l| l.n_byte()).sum();
        let windows: u64 = graph.kv.iter().map(|l| self.kept_bytes(l)).sum();
        let n = STATE_COPIES as u32 * self.n_seq;
        match (state, windows) {
            (0, 0) => 0,
            (_, 0) => n,
            _ => {
                let cache: u64 = graph.kv.iter().map(|l| self.kv_layout(l).n_byte()).sum();
                n.min(STATE_COPIES.max((cache / (state + windows)) as usize) as u32)
            }
        }
    }

    /// Pages of all sequences in a layer: the pool, or the reused pages.
    pub fn pages_in(&self, layer: &KvLayer) -> u32 {
        match self.wrap(layer) {
            0 => self.n_page(),
            wrap => wrap * self.n_seq,
        }
    }

    /// The cache of a layer.
    pub fn kv_layout(&self, layer: &KvLayer) -> KvLayout {
        KvLayout {
            n_kv: layer.n_kv,
            d: layer.d,
            d_v: layer.d_v,
            in_keys: layer.in_keys,
            k: self.kv.0,
            v: if layer.in_keys { self.kv.0 } else { self.kv.1 },
            n_page: self.pages_in(layer),
            page: self.page,
            n_seq: self.n_seq,
            pages_per_seq: self.pages_per_seq(),
            pages_at: step::pages_at(self.max_col as usize) as u32,
            wrap: self.wrap(layer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_has_as_many_pages_as_a_binding_holds() {
        let layer = |window| KvLayer { n_kv: 8, d: 128, d_v: 128, in_keys: false, window };
        let graph = Graph { kv: vec![layer(0), layer(256), layer(0)], ..Graph::default() };
        for kv in [(GgmlType::F16, GgmlType::F16), (GgmlType::Q8_0, GgmlType::Q4_0)] {
            let config = |pool| PlanConfig { kv, pool, ..PlanConfig::new(8192, 64, 512) };
            for limit in [1 << 20, (1 << 27) + 12_345, (1 << 31) - 4] {
                let n_page = config(None).most_pages(&graph, limit).expect("two layers of the pool");
                let bytes = |n_page| config(Some(n_page)).kv_layout(&graph.kv[0]).n_byte();
                assert!(bytes(n_page) <= limit && bytes(n_page + 1) > limit, "{kv:?}, {limit}: {n_page}");
            }
        }
        // 4 KiB a token in f16: 64 contexts of 8,192 tokens take 2 GiB.
        let f16 = PlanConfig::new(8192, 64, 512);
        assert_eq!(f16.n_page(), 8192);
        assert_eq!(f16.most_pages(&graph, (1 << 31) - 4), Some(8191));
        assert_eq!(f16.most_pages(&graph, 1 << 30), Some(4096));
        // Cells are counted in 32 bits.
        assert_eq!(f16.most_pages(&graph, u64::MAX), Some(u32::MAX / 512));
        assert_eq!(f16.most_pages(&Graph { kv: vec![layer(256)], ..Graph::default() }, 1 << 20), None);
    }
}
