//! Layout of the KV cache, and the destinations of rotated rows in it.

use ggml_format::GgmlType;

use crate::dispatch::DispatchError;
use crate::format::{DeviceLayout, Format, Matrix};
use chaski_graph::{RopePairing, Sections};

/// The KV cache of a layer: keys, then values, each a matrix with a row per cell `[page][kv head][slot]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvLayout {
    /// KV heads.
    pub n_kv: u32,
    /// Channels of a key.
    pub d: u32,
    /// Channels of a value.
    pub d_v: u32,
    /// Values are the first channels of their keys and are not stored again.
    pub in_keys: bool,
    /// Type of the keys, one of [`KV_TYPES`].
    pub k: GgmlType,
    /// Type of the values, likewise.
    pub v: GgmlType,
    /// Physical pages.
    pub n_page: u32,
    /// Tokens per page.
    pub page: u32,
    /// Sequences.
    pub n_seq: u32,
    /// Pages per sequence's table.
    pub pages_per_seq: u32,
    /// Word offset of the page tables in the step buffer.
    pub pages_at: u32,
    /// Pages per sequence that are reused in turn once the window has passed them; 0: no reuse.
    pub wrap: u32,
}

/// Supported cache types: plain ones, and block formats with a template under `encode/` and 32 values per block.
pub static KV_TYPES: &[GgmlType] = &[
    GgmlType::F32,
    GgmlType::F16,
    GgmlType::BF16,
    GgmlType::Q8_0,
    GgmlType::Q5_1,
    GgmlType::Q5_0,
    GgmlType::Q4_1,
    GgmlType::Q4_0,
    GgmlType::IQ4_NL,
];

/// Alignment of the values of a cache: binding offsets allow it on every device.
const ALIGN: u64 = 256;

/// The device format of a type of cache.
pub(crate) fn kv_format(ty: GgmlType) -> &'static Format {
    Format::of(ty).expect("the types of a cache are formats")
}

/// True if cells of this type are written value by value.
pub(crate) fn is_plain(ty: GgmlType) -> bool {
    kv_format(ty).is_plain()
}

impl KvLayout {
    /// Cells: slots for a key or value of one head and token.
    pub fn n_cell(&self) -> u32 {
        self.n_page * self.page * self.n_kv
    }

    fn matrix(&self, ty: GgmlType, d: u32) -> Matrix {
        // Cells of blocks begin on whole words of every plane, so that no two share a word.
        let n_col = if is_plain(ty) { d } else { d.next_multiple_of(64) };
        Matrix { format: kv_format(ty), n_row: self.n_cell(), n_col }
    }

    /// The keys as a matrix of cells.
    pub fn keys(&self) -> Matrix {
        self.matrix(self.k, self.d)
    }

    /// The values as a matrix of cells; the keys if values are part of them.
    pub fn values(&self) -> Matrix {
        if self.in_keys { self.keys() } else { self.matrix(self.v, self.d_v) }
    }

    /// Byte at which the values begin.
    pub fn values_at(&self) -> u64 {
        if self.in_keys { 0 } else { self.keys().layout().n_byte.next_multiple_of(ALIGN) }
    }

    /// Total bytes.
    pub fn n_byte(&self) -> u64 {
        self.values_at() + self.values().layout().n_byte
    }

    /// Byte ranges of a page in the buffer: offset and length of its part of each plane of the keys, then of the
    /// values.
    pub fn page_ranges(&self, page: u32) -> Vec<(u64, u64)> {
        let cells = u64::from(self.page * self.n_kv);
        let mut out = Vec::new();
        let own = if self.in_keys { 1 } else { 2 };
        for (m, at) in [(self.keys(), 0), (self.values(), self.values_at())].into_iter().take(own) {
            let layout = m.layout();
            for (plane, start) in m.format.planes.iter().zip(&layout.plane_start) {
                let n_byte = cells * u64::from(layout.blocks_per_row) * plane.n_byte as u64;
                out.push((at + start + u64::from(page) * n_byte, n_byte));
            }
        }
        out
    }

    /// Bytes of the keys and values of one token, all heads.
    pub fn token_bytes(&self) -> u64 {
        let cell = |m: Matrix| m.layout().blocks_per_row as u64 * m.format.block_bytes as u64;
        let values = if self.in_keys { 0 } else { cell(self.values()) };
        u64::from(self.n_kv) * (cell(self.keys()) + values)
    }

    /// Checks that channels are multiples of 8, and of whole blocks for quantised types.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if they are not, [`DispatchError::NoKernel`] if no kernel reads or writes such a cache.
    pub fn check(&self, op: &'static str) -> Result<(), DispatchError> {
        if self.in_keys && (self.d_v > self.d || self.k != self.v) {
            let (what, expected) =
                ("channels of a value in its key", format!("at most {}, of its type", self.d));
            return Err(DispatchError::Shape { op, what, expected, found: self.d_v.into() });
        }
        for (what, ty, d) in
            [("channels of a key", self.k, self.d), ("channels of a value", self.v, self.d_v)]
        {
            if !KV_TYPES.contains(&ty) {
                return Err(DispatchError::NoKernel { name: format!("{op} with a cache of {ty}") });
            }
            let whole = if is_plain(ty) { 8 } else { 32 };
            if d == 0 || d % whole != 0 {
                let expected = format!("a multiple of {whole} for {ty}");
                return Err(DispatchError::Shape { op, what, expected, found: d.into() });
            }
        }
        Ok(())
    }

    /// Constants that both readers and writers need.
    fn cells(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("N_KV", self.n_kv.into()),
            ("D", self.d.into()),
            ("DV", self.d_v.into()),
            ("PAGE", self.page.into()),
            ("N_SEQ", self.n_seq.into()),
            ("N_PAGE", self.pages_per_seq.into()),
            ("PAGES", self.pages_at.into()),
            ("WRAP", self.wrap.into()),
        ]
    }

    /// Constants of `shared/kv.wgsl.jinja` and `shared/step.wgsl.jinja` for kernels that read the cache.
    pub fn reader_constants(&self) -> Vec<(&'static str, f64)> {
        let mut constants = self.cells();
        constants.push(("V_ROW", if self.in_keys { self.d } else { self.d_v }.into()));
        // No cache type has a table.
        let planes = [["k_p1", "k_p2", "k_p3", ""], ["v_p1", "v_p2", "v_p3", ""]];
        for (matrix, names) in [self.keys(), self.values()].iter().zip(planes) {
            constants
                .extend(matrix.layout().plane_constants(names).into_iter().filter(|(n, _)| !n.is_empty()));
        }
        constants
    }

    /// The same for kernels that write plain values.
    pub fn writer_constants(&self) -> Vec<(&'static str, f64)> {
        let width = |ty| match ty {
            GgmlType::F32 => 0.0,
            GgmlType::F16 => 1.0,
            _ => 2.0,
        };
        let mut constants = self.cells();
        constants.extend([
            ("K_KIND", width(self.k)),
            ("V_KIND", width(self.v)),
            ("V0", (self.values_at() / 4) as f64),
        ]);
        constants
    }

    /// The bytes of a cache with these keys, then values unless they are part of the keys, `[cell][channel]`, as the
    /// formats round them.
    pub fn encode(&self, cells: &[f32]) -> Vec<u8> {
        let (keys, values) = cells.split_at((self.n_cell() * self.d) as usize);
        let mut out = encode(&self.keys(), self.d, keys);
        if self.in_keys {
            return out;
        }
        out.resize(self.values_at() as usize, 0);
        out.extend(encode(&self.values(), self.d_v, values));
        out
    }

    /// Keys, then values unless they are part of the keys, `[cell][channel]`, from the bytes of a cache.
    pub fn decode(&self, bytes: &[u8]) -> Vec<f32> {
        if self.in_keys {
            return decode(&self.keys(), self.d, bytes);
        }
        let (keys, values) = bytes.split_at(self.values_at() as usize);
        let mut out = decode(&self.keys(), self.d, keys);
        out.extend(decode(&self.values(), self.d_v, values));
        out
    }

    /// Word offset of each plane of the keys, or of the values.
    pub(crate) fn plane_words(&self, values: bool) -> Vec<u64> {
        let (m, at) = if values { (self.values(), self.values_at()) } else { (self.keys(), 0) };
        let DeviceLayout { plane_start, .. } = m.layout();
        plane_start.into_iter().map(|p| (at + p) / 4).collect()
    }
}

/// Rows of `d` values, zero-padded to the matrix's width.
fn encode(m: &Matrix, d: u32, rows: &[f32]) -> Vec<u8> {
    let wide = m.n_col as usize;
    let mut padded = vec![0.0; m.n_row as usize * wide];
    for (to, from) in padded.chunks_exact_mut(wide).zip(rows.chunks_exact(d as usize)) {
        to[..d as usize].copy_from_slice(from);
    }
    let ty = m.format.ty;
    let mut blocks = vec![0; padded.len() / ty.block_len() * ty.block_bytes()];
    ggml_format::quantize_cells(ty, &padded, wide, &mut blocks).expect("whole rows of a type of cache");
    m.layout().pack_all(m.format, m.n_col, &blocks)
}

fn decode(m: &Matrix, d: u32, bytes: &[u8]) -> Vec<f32> {
    let blocks = m.layout().unpack(m.format, m.n_row, m.n_col, bytes);
    let mut padded = vec![0.0; (m.n_row * m.n_col) as usize];
    ggml_format::dequantize(m.format.ty, &blocks, &mut padded).expect("whole rows of a type of cache");
    padded.chunks_exact(m.n_col as usize).flat_map(|row| row[..d as usize].to_vec()).collect()
}

/// Constants of `shared/rope.wgsl.jinja` for RoPE with sections, with the word of the step where the columns' shifts
/// begin.
pub(crate) fn section_constants(
    sections: Option<(Sections, u32)>,
) -> impl Iterator<Item = (&'static str, f64)> {
    sections.into_iter().flat_map(|(s, shifts_at)| {
        let pairs = ["SECT0", "SECT1", "SECT2", "SECT3"].into_iter().zip(s.pairs.map(f64::from));
        let turns = f64::from(u8::from(s.take_turns));
        pairs.chain([("SHIFTS", shifts_at.into()), ("SECT_TURNS", turns)])
    })
}

/// Destinations of rotated rows and KV cells.
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
    /// Sections of pairs, and the word of the step at which the shifts of columns begin; `None`: all pairs follow the
    /// position.
    pub sections: Option<(Sections, u32)>,
    /// The cache.
    pub kv: KvLayout,
}

impl RopeKv {
    /// Plain rows that go to y unchanged: none is rotated, none is cached.
    pub fn only_rows(n_row: u32, kv: KvLayout) -> Self {
        // Kernels that write value by value take only plain types, even if they write nothing here.
        let kv = KvLayout { k: GgmlType::F32, v: GgmlType::F32, ..kv };
        RopeKv { m_q: n_row, m_k: 0, n_rot: 0, pairing: RopePairing::Norm, sections: None, kv }
    }

    /// Checks a requirement of kernels that rotate four channels per thread: the four belong to one head, and with NeoX
    /// pairing all or none of them are rotated.
    ///
    /// # Errors
    /// [`DispatchError::Shape`] if a head or its rotated part is no multiple of that.
    pub(crate) fn check(&self, op: &'static str) -> Result<(), DispatchError> {
        let pair = if self.pairing == RopePairing::Neox { 4 } else { 2 };
        for (what, n, whole) in [("channels per head", self.kv.d, 4), ("RoPE channels", self.n_rot, pair)] {
            if n % whole != 0 {
                let expected = format!("a multiple of {whole}");
                return Err(DispatchError::Shape { op, what, expected, found: n.into() });
            }
        }
        if self.n_rot > self.kv.d {
            let expected = format!("at most {} channels per head", self.kv.d);
            return Err(DispatchError::Shape {
                op,
                what: "RoPE channels",
                expected,
                found: self.n_rot.into(),
            });
        }
        Ok(())
    }

    /// Constants of every kernel that rotates rows and writes cells.
    pub(crate) fn constants(&self) -> Vec<(&'static str, f64)> {
        let mut constants = self.kv.writer_constants();
        constants.extend([
            ("M_Q", self.m_q.into()),
            ("M_K", self.m_k.into()),
            ("N_ROT", self.n_rot.into()),
            ("ROPE_NEOX", f64::from(u8::from(self.pairing == RopePairing::Neox))),
        ]);
        constants.extend(section_constants(self.sections));
        constants
    }

    /// True if keys and values are written value by value rather than as blocks.
    pub fn plain(&self) -> bool {
        is_plain(self.kv.k) && is_plain(self.kv.v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rope_channels_that_split_a_quad_are_rejected() {
        let (k, v) = (GgmlType::F16, GgmlType::F16);
        let kv = KvLayout {
            n_kv: 1,
            d: 64,
            d_v: 64,
            in_keys: false,
            k,
            v,
            n_page: 1,
            page: 32,
            n_seq: 1,
            pages_per_seq: 1,
            pages_at: 0,
            wrap: 0,
        };
        let rope =
            |n_rot, pairing| RopeKv { m_q: 64, m_k: 64, n_rot, pairing, sections: None, kv }.check("rope_kv");
        assert!(rope(62, RopePairing::Norm).is_ok() && rope(60, RopePairing::Neox).is_ok());
        let e = rope(62, RopePairing::Neox).expect_err("a pair short of four");
        assert_eq!(e.to_string(), "rope_kv: RoPE channels is 62, expected a multiple of 4");
        let e = rope(68, RopePairing::Norm).expect_err("more than a head");
        assert_eq!(e.to_string(), "rope_kv: RoPE channels is 68, expected at most 64 channels per head");
    }
}
