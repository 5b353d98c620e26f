//! The KV cache as kernels see it, and where rotated rows go in it.

use crate::rope::RopePairing;

/// The KV cache of a layer as kernels see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvLayout {
    /// KV heads.
    pub n_kv: u32,
    /// Channels a head.
    pub d: u32,
    /// Values are f16 (else f32).
    pub f16: bool,
    /// Physical pages.
    pub n_page: u32,
    /// Tokens a page.
    pub page: u32,
    /// Sequences.
    pub n_seq: u32,
    /// Pages of a sequence's table.
    pub pages_per_seq: u32,
    /// Word of the page tables in the step buffer.
    pub pages_at: u32,
}

impl KvLayout {
    /// Words of the keys, or of the values.
    pub fn half_words(&self) -> u32 {
        let values = self.n_page * self.page * self.n_kv * self.d;
        if self.f16 { values / 2 } else { values }
    }

    /// Constants of `shared/kv.wgsl.jinja` and `shared/step.wgsl.jinja`.
    pub fn constants(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("N_KV", self.n_kv.into()),
            ("D", self.d.into()),
            ("KV_F16", f64::from(u8::from(self.f16))),
            ("V0", self.half_words().into()),
            ("PAGE", self.page.into()),
            ("N_SEQ", self.n_seq.into()),
            ("N_PAGE", self.pages_per_seq.into()),
            ("PAGES", self.pages_at.into()),
        ]
    }
}

/// Where rotated rows and KV cells go.
#[derive(Clone, Copy, Debug)]
pub struct RopeKv {
    /// Rows of q.
    pub m_q: u32,
    /// Rows of k.
    pub m_k: u32,
    /// Rotated channels of a head.
    pub n_rot: u32,
    /// Their pairing.
    pub pairing: RopePairing,
    /// The cache.
    pub kv: KvLayout,
}
