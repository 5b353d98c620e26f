//! Weights in an order for products: tiles of [`TILE_ROWS`] rows whose codes lie side by side, so that each lane of a
//! vector is a row, and a column is multiplied without moving anything between lanes.
//!
//! A tile holds the codes in planes of 1, 2, 4 or 8 bits ([`planes`]), and the scales as the format has them, so it
//! takes about as many bytes as the blocks. Products equal those of the blocks to the bit.

mod codes;
mod floats;
mod lanes;
mod planes;

use std::fmt;

use bytemuck::{Pod, Zeroable};

use super::activations::Part;
use super::{Columns, Form};
use crate::blocks::isa::{Compiled, Isa};
use crate::types::*;

/// Columns up to which each of them reads the tiles; panels of more read blocks.
const FEW: usize = 8;

/// Rows of a tile.
pub const TILE_ROWS: usize = 16;

/// Bytes that are read together: a vector of the widest instruction set.
#[repr(C, align(64))]
#[derive(Copy, Clone, Pod, Zeroable)]
pub struct Line([u8; 64]);

/// A format's tiles.
pub(super) struct Packing {
    ty: GgmlType,
    /// Columns are rounded to integers.
    rounds: bool,
    /// Lines of a tile whose rows have so many values.
    n_line: fn(usize) -> usize,
    pack: fn(Rows<'_>, &mut [u8]),
    multiply: fn(Job<'_>),
    compiled: Compiled<unsafe fn(Job<'_>)>,
}

/// Rows of blocks, `stride` bytes each, of `k` values.
pub(super) struct Rows<'a> {
    bytes: &'a [u8],
    stride: usize,
    k: usize,
}

/// Tiles, and where their products go.
pub(super) struct Job<'a> {
    /// Consecutive tiles.
    tiles: &'a [u8],
    tile_bytes: usize,
    k: usize,
    /// Single columns.
    columns: &'a [Part],
    /// `[rows, columns]`
    out: &'a mut [f32],
}

/// Formats that have tiles: those of most files; others are multiplied from their blocks.
static PACKINGS: [Packing; 15] = [
    codes::packing::<q4_0::BlockQ4_0>(GgmlType::Q4_0),
    codes::packing::<q4_1::BlockQ4_1>(GgmlType::Q4_1),
    codes::packing::<q5_0::BlockQ5_0>(GgmlType::Q5_0),
    codes::packing::<q5_1::BlockQ5_1>(GgmlType::Q5_1),
    codes::packing::<q8_0::BlockQ8_0>(GgmlType::Q8_0),
    codes::packing::<q2_k::BlockQ2K>(GgmlType::Q2_K),
    codes::packing::<q3_k::BlockQ3K>(GgmlType::Q3_K),
    codes::packing::<q4_k::BlockQ4K>(GgmlType::Q4_K),
    codes::packing::<q5_k::BlockQ5K>(GgmlType::Q5_K),
    codes::packing::<q6_k::BlockQ6K>(GgmlType::Q6_K),
    codes::packing::<iq4_nl::BlockIq4Nl>(GgmlType::IQ4_NL),
    codes::packing::<iq4_xs::BlockIq4Xs>(GgmlType::IQ4_XS),
    codes::packing::<mxfp4::BlockMxfp4>(GgmlType::MXFP4),
    floats::packing::<float::ValueF16>(GgmlType::F16),
    floats::packing::<float::ValueBf16>(GgmlType::BF16),
];

impl Packing {
    fn of(ty: GgmlType) -> Option<&'static Packing> {
        PACKINGS.iter().find(|p| p.ty == ty)
    }
}

/// A matrix in tiles.
pub struct Packed {
    packing: &'static Packing,
    k: usize,
    n_row: usize,
    lines: Vec<Line>,
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Packed({}, {} x {})", self.packing.ty, self.n_row, self.k)
    }
}

impl Packed {
    /// Lines of each tile of a matrix with rows of `k` values; `None` if the format or the length has no tiles.
    pub fn tile_lines(ty: GgmlType, k: usize) -> Option<usize> {
        let packing = Packing::of(ty)?;
        // Vectors of 128 bits gain nothing where they have to convert values one by one.
        if !packing.rounds && Isa::best() == Isa::Portable {
            return None;
        }
        (k > 0 && k % 32 == 0 && k % ty.block_len() == 0).then(|| (packing.n_line)(k))
    }

    /// Bytes of a matrix of `n_row` rows, if it can be packed.
    pub fn n_byte_of(ty: GgmlType, k: usize, n_row: usize) -> Option<u64> {
        let lines = Packed::tile_lines(ty, k)? as u64;
        lines.checked_mul(n_row.div_ceil(TILE_ROWS) as u64)?.checked_mul(size_of::<Line>() as u64)
    }

    /// A matrix of `n_row` rows; `fill(lines of a tile, tiles)` fills the tiles, each by [`Self::pack`], in parallel if
    /// it can. `None` as in [`Self::tile_lines`].
    pub fn new(
        ty: GgmlType,
        k: usize,
        n_row: usize,
        fill: impl FnOnce(usize, &mut [Line]),
    ) -> Option<Packed> {
        let n_line = Packed::tile_lines(ty, k)?;
        let packing = Packing::of(ty)?;
        let mut lines = vec![Line::zeroed(); n_line * n_row.div_ceil(TILE_ROWS)];
        fill(n_line, &mut lines);
        Some(Packed { packing, k, n_row, lines })
    }

    /// Packs up to [`TILE_ROWS`] contiguous rows of `k` values into a tile that holds zeros.
    ///
    /// # Panics
    /// If the format has no tiles, or `bytes` has no whole rows or more than a tile's.
    pub fn pack(ty: GgmlType, k: usize, bytes: &[u8], tile: &mut [Line]) {
        let packing = Packing::of(ty).expect("a format with tiles");
        let stride = k / ty.block_len() * ty.block_bytes();
        assert!(bytes.len() % stride == 0 && bytes.len() <= TILE_ROWS * stride, "rows of a tile");
        (packing.pack)(Rows { bytes, stride, k }, bytemuck::cast_slice_mut(tile));
    }

    /// True if products of so many columns are faster from tiles than from blocks.
    pub fn pays_for(n_col: usize) -> bool {
        n_col <= if Isa::best() == Isa::Portable { 1 } else { FEW }
    }

    /// Rows.
    pub fn n_row(&self) -> usize {
        self.n_row
    }

    /// Bytes of the tiles.
    pub fn n_byte(&self) -> usize {
        size_of_val(&self.lines[..])
    }

    /// The form of columns that products take.
    pub fn form(&self) -> Form {
        if self.packing.rounds { Form::RoundedSingle } else { Form::PlainSingle }
    }
}

impl Columns<'_> {
    /// Multiplies with the rows from `first`, a multiple of [`TILE_ROWS`]: `out[r * n + c]`, for as many rows as fit in
    /// `out`. The columns are prepared in [`Packed::form`].
    ///
    /// # Panics
    /// If there are fewer rows, `first` is in the middle of a tile, or the columns are not prepared.
    #[allow(unsafe_code, reason = "kernels of other instruction sets")]
    pub fn multiply_packed(&self, w: &Packed, first: usize, out: &mut [f32]) {
        if out.is_empty() {
            return;
        }
        assert!(self.unprepared(w.form()) == 0, "the columns are not prepared");
        let (n_line, n_row) = ((w.packing.n_line)(w.k), out.len() / self.n());
        assert!(self.k == w.k && first % TILE_ROWS == 0 && first + n_row <= w.n_row, "rows of the matrix");
        let tiles = &w.lines[first / TILE_ROWS * n_line..][..n_row.div_ceil(TILE_ROWS) * n_line];
        let tile_bytes = n_line * size_of::<Line>();
        let columns = self.parts(w.form());
        let job = Job { tiles: bytemuck::cast_slice(tiles), tile_bytes, k: w.k, columns, out };
        match w.packing.compiled.get(self.isa) {
            // SAFETY: The CPU has the instruction set.
            Some(multiply) => unsafe { multiply(job) },
            None => (w.packing.multiply)(job),
        }
    }
}

/// [`Packing::compiled`] of `$multiply::<vectors, format, columns at once>(vectors, job)`, which is inlined, with as
/// many columns at once by AVX2 and by AVX-512.
macro_rules! compiled {
    ($multiply:ident, $generic:ident: $bound:path, $avx2:literal, $avx512:literal) => {{
        #[cfg(target_arch = "x86_64")]
        {
            $crate::blocks::isa::with_avx2! {
                fn avx2<$generic: $bound>(job: Job<'_>) {
                    // SAFETY: The function has the features.
                    $multiply::<Avx2, $generic, $avx2>(unsafe { Avx2::new() }, job);
                }
            }
            $crate::blocks::isa::with_avx512! {
                fn avx512<$generic: $bound>(job: Job<'_>) {
                    // SAFETY: The function has the features.
                    $multiply::<Avx512, $generic, $avx512>(unsafe { Avx512::new() }, job);
                }
            }
            Compiled { avx2: avx2::<$generic> as unsafe fn(Job<'_>), avx512: avx512::<$generic> }
        }
        #[cfg(not(target_arch = "x86_64"))]
        Compiled { none: std::marker::PhantomData }
    }};
}
use compiled;

impl<'a> Job<'a> {
    /// Vectors of `n` rows that have a row; the last tile may have fewer rows than its place.
    fn n_vector(&self, n: usize) -> usize {
        (self.out.len() / self.columns.len()).div_ceil(n)
    }

    /// The tile of a vector of `n` rows, and the vector's first row in it.
    fn vector(&self, i: usize, n: usize) -> (&'a [u8], usize) {
        let row = i * n;
        (&self.tiles[row / TILE_ROWS * self.tile_bytes..][..self.tile_bytes], row % TILE_ROWS)
    }
}

/// Multiplies tiles with single columns: `$tile::<vectors, format, V, C>(s, tiles, k, columns)` gives the products of
/// `V` vectors of rows with `C` columns. Weights are unpacked once for two vectors and as many columns as registers
/// allow.
macro_rules! multiply_tiles {
    ($s:ident, $lanes:ident, $job:ident, $data:path, $tile:ident::<$generic:ident>, $many:ident) => {{
        let n_vector = $job.n_vector($lanes::N);
        let n = $job.columns.len();
        macro_rules! columns {
            ($first:ident, $v:literal, $at:ident, $c:expr) => {
                while n - $first >= $c {
                    let x = std::array::from_fn::<_, { $c }, _>(|c| match &$job.columns[$first + c].data {
                        $data(x) => x,
                        _ => unreachable!("columns in the form of the tiles"),
                    });
                    let tiles = std::array::from_fn::<_, $v, _>(|v| $job.vector($at + v, $lanes::N));
                    let sums = $tile::<$lanes, $generic, $v, { $c }>($s, tiles, $job.k, x);
                    super::put($s, &sums, &mut $job.out[$at * $lanes::N * n..], $first, n);
                    $first += $c;
                }
            };
        }
        let mut at = 0;
        // A single column reads one stream of memory.
        while n > 1 && at + 2 <= n_vector {
            let mut first = 0;
            columns!(first, 2, at, $many);
            columns!(first, 2, at, 1);
            at += 2;
        }
        while at < n_vector {
            let mut first = 0;
            columns!(first, 1, at, 1);
            at += 1;
        }
    }};
}
use multiply_tiles;

/// Runs a block for each constant of the list that is below a bound: only unrolled loops keep their sums in registers.
macro_rules! each {
    ($i:ident < $n:expr, [$($value:literal)*] $body:block) => {
        $(if $value < $n {
            const $i: usize = $value;
            $body
        })*
    };
}
use each;

/// Stores the products of columns from `first` with the rows of some vectors, as far as `out` has the rows.
#[inline(always)]
fn put<S: super::lanes::Lanes, const V: usize, const C: usize>(
    s: S,
    sums: &[[S::Floats; V]; C],
    out: &mut [f32],
    first: usize,
    n: usize,
) {
    for (c, sums) in sums.iter().enumerate() {
        for (sums, out) in sums.iter().zip(out.chunks_mut(S::N * n)) {
            let mut all = [0.0; 16];
            s.store(*sums, &mut all);
            for (out, sum) in out.chunks_exact_mut(n).zip(&all[..S::N]) {
                out[first + c] = *sum;
            }
        }
    }
}
