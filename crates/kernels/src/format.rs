//! Weight formats on the device: how GGUF blocks are laid out for the GPU.
//!
//! Blocks of 18, 34 or 210 bytes suit no GPU. A [`Format`] splits a block into *planes*; on the device a matrix is a
//! sequence of planes, each holding that part of every block. So every plane is an array of aligned words, nothing
//! grows, and the conversion is lossless. The table of a format with a codebook follows the planes, once per matrix.

use ggml_format::GgmlType;

use crate::act::ActivationPrecision;
use crate::codebook::Table;

/// A run of bytes of every block, stored contiguously.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Plane {
    /// Start of the run in a GGUF block, in bytes.
    pub offset: usize,
    /// Its length in bytes.
    pub n_byte: usize,
    /// Bit transposition applied on upload, which saves kernels the work.
    pub transpose: BitTranspose,
}

/// Bit transpositions of a plane, all invertible.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum BitTranspose {
    /// None.
    Identity,
    /// In each 16 bytes, bit `4 j + k` of word `i` moves to bit `4 j + i` of word `k`: word `i` held 4-bit digits, word
    /// `k` holds bit `k` of each, so kernels can process 32 digits at once.
    NibblePlanes,
    /// In each word, bit `4 i + b` moves to byte `b`, bit `4 (i % 2) + i / 2`: one mask extracts four adjacent bits,
    /// one per byte.
    BitsToBytes,
    /// In each word, the bit pair `4 i + b` becomes pair `i` of byte `b`.
    PairsToBytes,
    /// In each word, bit `4 h + j` of the 7-bit field at `7 l` moves to `8 j + 4 h + l`; the last four bits stay. The
    /// eighth bits that 7-bit fields may imply have adjacent places where those four are.
    Signs7,
    /// The same in every second word.
    Signs7Odd,
    /// In each pair of words, which holds four 9-bit fields below four 7-bit fields: the first word and the last four
    /// bits of the second hold the 9-bit fields, the rest of the second the 7-bit fields, transposed as above.
    Grid9Signs7,
}

/// Larger units for products of one column with integer activations: whole vec4s, which a thread decodes at once. The
/// template has `wide_at`, `wide_vars`, `wide_load` and `wide_dot8` for them.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Wide {
    /// Units per block.
    pub per_block: usize,
    /// Runs of 16 values per unit; some units may lack the last.
    pub runs: usize,
}

/// One row of [`FORMATS`].
#[derive(Debug)]
pub struct Format {
    /// The ggml type.
    pub ty: GgmlType,
    /// Name of the type and of its template under `quant/`, which implements the contract: `base`, `decls`, `fetch16`,
    /// `decode16`, `unit_vars`, `unit_load`, `unit_dot`, and with scales `unit_dot8`.
    pub name: &'static str,
    /// Values per block on the device. Plain types are grouped by 8, so that rows begin on 16 bytes.
    pub block: usize,
    /// Bytes of a block.
    pub block_bytes: usize,
    /// Planes of a block.
    pub planes: &'static [Plane],
    /// Codebook, if any.
    table: Option<&'static Table>,
    /// Values per call of `unit_dot`.
    pub unit: usize,
    /// Groups of four values that share a scale within a unit; 0 for plain types.
    pub run: usize,
    /// Offset of each group of four values from the unit's first value.
    pub offsets: &'static [u32],
    /// Larger units, if any.
    pub wide: Option<Wide>,
}

include!(concat!(env!("OUT_DIR"), "/formats.rs"));

/// All weight formats that the device reads: the templates under `quant/`, each with a `layout` in its header.
pub static FORMATS: &[Format] = ROWS;

impl Format {
    /// The format of a ggml type, if the device reads it.
    pub fn of(ty: GgmlType) -> Option<&'static Format> {
        FORMATS.iter().find(|f| f.ty == ty)
    }

    /// Values of x that a thread keeps while it iterates over rows: 16 to 32 bytes of weights are in flight at once.
    pub fn hold(&self) -> u32 {
        if self.is_plain() { 16 } else { 32 }
    }

    /// Codebook, one word per entry; empty if there is none.
    pub fn table(&self) -> &'static [u32] {
        self.table.map_or(&[], |table| table)
    }

    /// Codebook entries that a product of one column copies to workgroup memory; 0: kernels read them from the table,
    /// since copying 8 KiB costs more than it saves (IQ1: 2.6 % of a token on an H200).
    pub fn book(&self) -> u32 {
        if self.table().len() <= 1024 { self.table().len() as u32 } else { 0 }
    }

    /// The larger units that a product with this precision of x uses, if x fits into registers. In 16 bits, 128 values
    /// take 64 registers, and Q1_0 loses a fifth of its speed on an H200.
    pub fn wide_for(&self, act: ActivationPrecision) -> Option<Wide> {
        let most = match act {
            ActivationPrecision::F32 => 0,
            ActivationPrecision::I16 => 6,
            ActivationPrecision::I8 => 8,
        };
        self.wide.filter(|w| w.runs <= most)
    }

    /// Values are stored one by one, without scales.
    pub fn is_plain(&self) -> bool {
        self.ty.block_len() == 1
    }
}

/// A matrix in a weight format: everything a kernel needs to read it.
#[derive(Copy, Clone, Debug)]
pub struct Matrix {
    /// The format.
    pub format: &'static Format,
    /// Rows (outputs).
    pub n_row: u32,
    /// Values per row (inputs).
    pub n_col: u32,
}

impl Matrix {
    /// Its layout on the device.
    pub fn layout(&self) -> DeviceLayout {
        DeviceLayout::new(self.format, self.n_row, self.n_col)
    }
}

/// Offsets of the planes of a matrix in its buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceLayout {
    /// Blocks per row; for plain types the last is padded if the row is no multiple of 8.
    pub blocks_per_row: u32,
    /// Units per row, as `unit_dot` counts them.
    pub units_per_row: u32,
    /// First byte of each plane, a multiple of 16.
    pub plane_start: Vec<u64>,
    /// First byte of the format's table, a multiple of 16; the end if there is none.
    pub table_start: u64,
    /// Total bytes, a multiple of 16.
    pub n_byte: u64,
}

impl DeviceLayout {
    /// [`Self::row_step`] of every layout.
    pub const ROW_STEP: u32 = 4;

    /// The layout of `n_row` rows of `n_col` values.
    pub fn new(format: &Format, n_row: u32, n_col: u32) -> Self {
        let blocks_per_row = n_col.div_ceil(format.block as u32);
        let n_block = u64::from(n_row) * u64::from(blocks_per_row);
        let mut at = 0u64;
        let mut plane_start = Vec::with_capacity(format.planes.len());
        for p in format.planes {
            plane_start.push(at);
            at += (n_block * p.n_byte as u64).next_multiple_of(16);
        }
        DeviceLayout {
            blocks_per_row,
            units_per_row: blocks_per_row * (format.block / format.unit) as u32,
            plane_start,
            table_start: at,
            n_byte: (at + size_of_val(format.table()) as u64).next_multiple_of(16).max(16),
        }
    }

    /// Constants `{w}_p1`, `{w}_p2`, `{w}_p3` and `{w}_table` of a kernel, in units of `vec4<u32>`.
    pub fn plane_constants(&self, names: [&'static str; 4]) -> Vec<(&'static str, f64)> {
        let [planes @ .., table] = names;
        let starts = planes.into_iter().zip(self.plane_start[1..].iter().copied());
        starts.chain([(table, self.table_start)]).map(|(n, at)| (n, (at / 16) as f64)).collect()
    }

    /// Granularity of rows in [`Self::pack`]: every plane's bytes then begin and end on whole words.
    pub fn row_step(&self) -> u32 {
        Self::ROW_STEP
    }

    /// True if rows of GGUF blocks need no packing: the layout has them as they are.
    pub fn is_of_file(&self, format: &Format, n_col: u32) -> bool {
        let row_bytes = n_col as usize / format.ty.block_len() * format.ty.block_bytes();
        let padded = self.blocks_per_row as usize * format.block_bytes;
        let [plane] = format.planes else { return false };
        let is_block = plane.n_byte == format.block_bytes && plane.transpose == BitTranspose::Identity;
        is_block && row_bytes == padded && row_bytes % 4 == 0 && format.table().is_empty()
    }

    /// First byte of a row of such a layout.
    pub fn start_of(&self, format: &Format, row: u64) -> u64 {
        row * u64::from(self.blocks_per_row) * format.block_bytes as u64
    }

    /// Splits whole rows of GGUF blocks into planes and passes each run to `put(byte offset in the buffer, bytes)`. The
    /// format's table comes with the first rows.
    ///
    /// `first_row` counts rows of the whole matrix and must be a multiple of [`Self::row_step`]; so must the number of
    /// rows, unless they are the last. Runs are padded with zeros to whole words.
    pub fn pack(
        &self,
        format: &Format,
        n_col: u32,
        first_row: u64,
        rows: &[u8],
        mut put: impl FnMut(u64, &[u8]),
    ) {
        let row_bytes = n_col as usize / format.ty.block_len() * format.ty.block_bytes();
        assert!(row_bytes > 0 && rows.len() % row_bytes == 0, "{}: whole rows", format.name);
        assert!(first_row % u64::from(self.row_step()) == 0, "{}: rows on a word border", format.name);
        let n_row = rows.len() / row_bytes;
        let bpr = self.blocks_per_row as usize;
        let first_block = first_row * bpr as u64;
        let mut run = Vec::new();
        for (p, start) in format.planes.iter().zip(&self.plane_start) {
            run.clear();
            if format.is_plain() {
                for row in rows.chunks_exact(row_bytes) {
                    run.extend_from_slice(row);
                    run.resize(run.len() + bpr * format.block_bytes - row_bytes, 0);
                }
            } else {
                run.reserve(n_row * bpr * p.n_byte + 4);
                run.resize(n_row * bpr * p.n_byte, 0);
                gather(rows, format.block_bytes, p, &mut run);
                transpose_bits(p.transpose, &mut run, false);
            }
            run.resize(run.len().next_multiple_of(4), 0);
            put(start + first_block * p.n_byte as u64, &run);
        }
        if first_row == 0 && !format.table().is_empty() {
            put(self.table_start, bytemuck::cast_slice(format.table()));
        }
    }

    /// The inverse of [`Self::pack`]: GGUF blocks of all rows.
    pub fn unpack(&self, format: &Format, n_row: u32, n_col: u32, packed: &[u8]) -> Vec<u8> {
        let row_bytes = n_col as usize / format.ty.block_len() * format.ty.block_bytes();
        let mut out = vec![0; n_row as usize * row_bytes];
        let bpr = self.blocks_per_row as usize;
        if format.is_plain() {
            let padded = bpr * format.block_bytes;
            for (r, row) in out.chunks_exact_mut(row_bytes).enumerate() {
                row.copy_from_slice(&packed[r * padded..][..row_bytes]);
            }
            return out;
        }
        for (p, start) in format.planes.iter().zip(&self.plane_start) {
            let n_byte = out.len() / format.block_bytes * p.n_byte;
            let mut run = packed[*start as usize..][..n_byte].to_vec();
            transpose_bits(p.transpose, &mut run, true);
            for (block, part) in out.chunks_exact_mut(format.block_bytes).zip(run.chunks_exact(p.n_byte)) {
                block[p.offset..p.offset + p.n_byte].copy_from_slice(part);
            }
        }
        out
    }

    /// Packs a whole matrix at once, for tests and small tensors.
    pub fn pack_all(&self, format: &Format, n_col: u32, rows: &[u8]) -> Vec<u8> {
        let mut out = vec![0; self.n_byte as usize];
        if !rows.is_empty() {
            self.pack(format, n_col, 0, rows, |at, run| {
                let at = at as usize;
                let n = run.len().min(out.len() - at);
                out[at..at + n].copy_from_slice(&run[..n]);
            });
        }
        out
    }
}

/// Applies a bit transposition, or its inverse.
fn transpose_bits(transpose: BitTranspose, run: &mut [u8], back: bool) {
    match transpose {
        BitTranspose::Identity => (),
        BitTranspose::NibblePlanes => nibble_planes(run),
        BitTranspose::BitsToBytes => words(run, |w| swap(swap(w, 14, 0xcccc), 7, 0x00aa_00aa)),
        BitTranspose::PairsToBytes => words(run, |w| swap(swap(w, 12, 0xf0f0), 6, 0x00cc_00cc)),
        BitTranspose::Signs7 if back => words(run, from_signs7),
        BitTranspose::Signs7 => words(run, signs7),
        BitTranspose::Signs7Odd if back => pairs(run, |[a, b]| [a, from_signs7(b)]),
        BitTranspose::Signs7Odd => pairs(run, |[a, b]| [a, signs7(b)]),
        BitTranspose::Grid9Signs7 if back => pairs(run, from_grid9_signs7),
        BitTranspose::Grid9Signs7 => pairs(run, grid9_signs7),
    }
}

/// [`BitTranspose::Signs7`]. A multiplication replicates seven bits so that each of them lands in the lowest bit of its
/// nibble once.
fn signs7(w: u32) -> u32 {
    (0..4).fold(w & 0xf000_0000, |out, l| {
        out | (((w >> (7 * l)) & 127).wrapping_mul(0x0020_4081) & 0x0111_1111) << l
    })
}

fn from_signs7(w: u32) -> u32 {
    let bit = |l: u32, i: u32| ((w >> (8 * (i % 4) + 4 * (i / 4) + l)) & 1) << (7 * l + i);
    (0..4).flat_map(|l| (0..7).map(move |i| (l, i))).fold(w & 0xf000_0000, |out, (l, i)| out | bit(l, i))
}

/// [`BitTranspose::Grid9Signs7`].
fn grid9_signs7([a, b]: [u32; 2]) -> [u32; 2] {
    let halves = [a, a >> 16, b, b >> 16].map(|h| h & 0xffff);
    let (mut nine, mut seven) = (0, 0);
    for (l, h) in halves.into_iter().enumerate() {
        nine |= u64::from(h & 511) << (9 * l);
        seven |= (h >> 9) << (7 * l);
    }
    [nine as u32, signs7(seven | ((nine >> 32) as u32) << 28)]
}

fn from_grid9_signs7([a, b]: [u32; 2]) -> [u32; 2] {
    let seven = from_signs7(b);
    let nine = u64::from(a) | u64::from(seven >> 28) << 32;
    let half = |l: u32| ((nine >> (9 * l)) & 511) as u32 | ((seven >> (7 * l)) & 127) << 9;
    [half(0) | half(1) << 16, half(2) | half(3) << 16]
}

/// Swaps the bits of `mask` with those `by` above them.
const fn swap(w: u32, by: u32, mask: u32) -> u32 {
    let t = ((w >> by) ^ w) & mask;
    w ^ t ^ (t << by)
}

fn words(run: &mut [u8], f: impl Fn(u32) -> u32) {
    for bytes in run.as_chunks_mut::<4>().0 {
        *bytes = f(u32::from_le_bytes(*bytes)).to_le_bytes();
    }
}

fn pairs(run: &mut [u8], f: impl Fn([u32; 2]) -> [u32; 2]) {
    for bytes in run.as_chunks_mut::<8>().0 {
        let w: [u32; 2] = bytemuck::cast(*bytes);
        *bytes = bytemuck::cast(f(w.map(u32::from_le)).map(u32::to_le));
    }
}

fn nibble_planes(run: &mut [u8]) {
    for bytes in run.as_chunks_mut::<16>().0 {
        let mut w: [u32; 4] = bytemuck::cast(*bytes);
        w = w.map(u32::from_le);
        // Transposes by swapping words and bits that differ in one binary digit of their index, then in the other.
        for (by, step, mask) in [(1, 1, 0x5555_5555), (2, 2, 0x3333_3333)] {
            for i in (0..4).filter(|i| i & step == 0) {
                let t = ((w[i] >> by) ^ w[i + step]) & mask;
                w[i] ^= t << by;
                w[i + step] ^= t;
            }
        }
        *bytes = bytemuck::cast(w.map(u32::to_le));
    }
}

/// The parts of blocks that belong to a plane, concatenated. Every byte of a model passes through here, so the usual
/// part lengths are copied inline rather than by calls.
fn gather(rows: &[u8], block_bytes: usize, plane: &Plane, out: &mut [u8]) {
    fn parts<const N: usize>(rows: &[u8], block_bytes: usize, at: usize, out: &mut [u8]) {
        for (block, part) in rows.chunks_exact(block_bytes).zip(out.as_chunks_mut::<N>().0) {
            part.copy_from_slice(&block[at..at + N]);
        }
    }
    let at = plane.offset;
    match plane.n_byte {
        1 => parts::<1>(rows, block_bytes, at, out),
        2 => parts::<2>(rows, block_bytes, at, out),
        4 => parts::<4>(rows, block_bytes, at, out),
        8 => parts::<8>(rows, block_bytes, at, out),
        16 => parts::<16>(rows, block_bytes, at, out),
        32 => parts::<32>(rows, block_bytes, at, out),
        64 => parts::<64>(rows, block_bytes, at, out),
        n => {
            for (block, part) in rows.chunks_exact(block_bytes).zip(out.chunks_exact_mut(n)) {
                part.copy_from_slice(&block[at..at + n]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn planes_cover_every_byte_of_a_block_once() {
        for f in FORMATS {
            let mut seen = vec![0; f.block_bytes];
            for p in f.planes {
                seen[p.offset..p.offset + p.n_byte].iter_mut().for_each(|s| *s += 1);
            }
            assert!(seen.iter().all(|s| *s == 1), "{}", f.name);
            assert_eq!(f.block_bytes, f.block / f.ty.block_len() * f.ty.block_bytes(), "{}", f.name);
            assert_eq!(f.offsets.len() * 4, f.unit, "{}", f.name);
            assert_eq!(f.name, f.ty.name());
        }
    }

    #[test]
    fn bits_are_transposed_as_the_plane_declares() {
        for (i, j, k) in [(0, 0, 0), (0, 0, 3), (1, 5, 2), (3, 7, 0), (2, 4, 1)] {
            let mut words = [0u32; 4];
            words[i] = 1 << (4 * j + k);
            let mut bytes: [u8; 16] = bytemuck::cast(words.map(u32::to_le));
            transpose_bits(BitTranspose::NibblePlanes, &mut bytes, false);
            let mut expected = [0u32; 4];
            expected[k] = 1 << (4 * j + i);
            assert_eq!(bytemuck::cast::<_, [u32; 4]>(bytes).map(u32::from_le), expected, "{i} {j} {k}");
        }
        for v in 0..32 {
            let (i, b) = (v / 4, v % 4);
            let mut bytes = (1u32 << v).to_le_bytes();
            transpose_bits(BitTranspose::BitsToBytes, &mut bytes, false);
            assert_eq!(u32::from_le_bytes(bytes), 1 << (8 * b + 4 * (i % 2) + i / 2), "bit {v}");
            let (pair, i, b) = (v / 2, v / 8, v / 2 % 4);
            let mut bytes = (1u32 << v).to_le_bytes();
            transpose_bits(BitTranspose::PairsToBytes, &mut bytes, false);
            assert_eq!(u32::from_le_bytes(bytes), 1 << (8 * b + 2 * i + v % 2), "pair {pair}");
            let (l, i) = (v / 7, v % 7);
            let to = if v < 28 { 8 * (i % 4) + 4 * (i / 4) + l } else { v };
            assert_eq!(signs7(1 << v), 1 << to, "bit {v}");
            // Bit v sits in one half: set it in the 9-bit and in the 7-bit field.
            for (at, pair) in [(v, [1 << v, 0]), (v + 32, [0, 1 << v])] {
                let (l, i) = (at / 16, at % 16);
                let to = match i {
                    0..9 if 9 * l + i < 32 => 9 * l + i,
                    0..9 => 32 + 28 + 9 * l + i - 32,
                    _ => 32 + 8 * ((i - 9) % 4) + 4 * ((i - 9) / 4) + l,
                };
                let [a, b] = grid9_signs7(pair);
                assert_eq!(u64::from(a) | u64::from(b) << 32, 1 << to, "bit {at}");
            }
        }
        for p in FORMATS.iter().flat_map(|f| f.planes) {
            let whole = match p.transpose {
                BitTranspose::Identity => 1,
                BitTranspose::NibblePlanes => 16,
                BitTranspose::BitsToBytes | BitTranspose::PairsToBytes | BitTranspose::Signs7 => 4,
                BitTranspose::Signs7Odd | BitTranspose::Grid9Signs7 => 8,
            };
            assert_eq!(p.n_byte % whole, 0);
        }
    }

    proptest! {
        #[test]
        fn packing_is_exact_and_invertible(which in 0..FORMATS.len(), rows in 1u32..9, blocks in 1u32..4, seed: u64) {
            let f = &FORMATS[which];
            let n_col = if f.is_plain() { blocks * 5 } else { blocks * f.block as u32 };
            let row_bytes = n_col as usize / f.ty.block_len() * f.ty.block_bytes();
            let mut s = seed | 1;
            let bytes: Vec<u8> = (0..rows as usize * row_bytes).map(|_| {
                s ^= s << 13; s ^= s >> 7; s ^= s << 17; s as u8
            }).collect();
            let layout = DeviceLayout::new(f, rows, n_col);
            let packed = layout.pack_all(f, n_col, &bytes);
            prop_assert_eq!(layout.unpack(f, rows, n_col, &packed), bytes.clone());
            // Packing in two pieces, split at a row border, gives the same buffer.
            let step = layout.row_step().min(rows) as usize;
            let mut pieces = vec![0; layout.n_byte as usize];
            let (a, b) = bytes.split_at(step * row_bytes);
            for (first, part) in [(0, a), (step as u64, b)] {
                if !part.is_empty() {
                    layout.pack(f, n_col, first, part, |at, run| {
                        let at = at as usize;
                        pieces[at..at + run.len()].copy_from_slice(run);
                    });
                }
            }
            prop_assert_eq!(pieces, packed);
        }
    }
}
