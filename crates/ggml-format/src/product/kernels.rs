//! The products, for vectors of any instruction set.
//!
//! [`ROWS`] rows of weights are unpacked chunk by chunk. With a panel of columns each lane is a column: a pair of codes
//! of a row is multiplied with the pairs of all columns. With a single column each lane is a row. Both add the products
//! of a group of codes as integers and then the groups in order, so a column's result does not depend on how many there
//! are.
#![allow(unsafe_code, reason = "functions compiled for the kernel's instructions")]

use std::cell::Cell;
use std::ops::Range;

use crate::blocks::codes::{CHUNK, Chunk, ChunkFor, Codes as Format};
use crate::types::DequantizeFor;

use super::activations::{Data, Part, Rounded};
use super::lanes::{Floats, Lanes, PAIRS, ROWS, RUN, codes, prefetch};

/// Rows of weights in a format, and where their products go.
pub(super) struct Job<'a> {
    /// A row every `stride` bytes.
    pub(super) bytes: &'a [u8],
    pub(super) stride: usize,
    pub(super) block: (usize, usize),
    pub(super) k: usize,
    pub(super) parts: &'a [Part],
    /// Columns in all.
    pub(super) n: usize,
    /// `[rows, n]`
    pub(super) out: &'a mut [f32],
}

impl Job<'_> {
    fn n_row(&self) -> usize {
        self.out.len() / self.n
    }

    /// The chunks of [`ROWS`] rows: the first value, the number of values, and the rows' bytes of the chunk.
    fn chunks(&self) -> impl Iterator<Item = (usize, usize, Range<usize>)> + use<> {
        let k = self.k;
        let (block_len, block_bytes) = self.block;
        (0..k).step_by(CHUNK).map(move |at| {
            let end = k.min(at + CHUNK);
            (at, end - at, at / block_len * block_bytes..end / block_len * block_bytes)
        })
    }

    /// Bytes of a row.
    #[inline(always)]
    fn row(&self, row: usize, range: &Range<usize>) -> &[u8] {
        &self.bytes[row * self.stride..][range.clone()]
    }

    /// Hints that the chunk of a row after this one will be read: rows are far apart, and too many for the CPU to see a
    /// pattern.
    #[inline(always)]
    fn prefetch(&self, row: usize, range: &Range<usize>) {
        let row_bytes = self.k / self.block.0 * self.block.1;
        let next = row * self.stride + if range.end < row_bytes { range.end } else { ROWS * self.stride };
        let end = self.bytes.len().min(next + range.len());
        prefetch(self.bytes.get(next..end).unwrap_or_default());
    }

    /// Hints that the first chunk of the first rows will be read.
    #[inline(always)]
    fn prefetch_first(&self) {
        let (_, _, range) = self.chunks().next().unwrap_or_default();
        for row in 0..ROWS.min(self.n_row()) {
            prefetch(self.row(row, &range));
        }
    }

    fn n_single(&self) -> usize {
        self.parts.iter().filter(|p| p.lanes == 1).count()
    }

    /// Writes the products of the single columns with the rows from `row0`.
    fn put_singles(&mut self, row0: usize, sums: &[[f32; ROWS]]) {
        let rows = ROWS.min(self.n_row() - row0);
        let singles = self.parts.iter().filter(|p| p.lanes == 1);
        for (part, sums) in singles.zip(sums) {
            for (r, sum) in sums[..rows].iter().enumerate() {
                self.out[(row0 + r) * self.n + part.first] = *sum;
            }
        }
    }
}

/// A chunk of rows as codes; scales and minima are `[group][row]`.
struct Unpacked {
    chunks: [Chunk; ROWS],
    scale: [[f32; ROWS]; CHUNK / 16],
    min: [[f32; ROWS]; CHUNK / 16],
}

thread_local! {
    /// Rows of the last product of the thread, which the next one overwrites.
    static UNPACKED: Cell<Option<Box<Unpacked>>> = const { Cell::new(None) };
    static FLOATS: Cell<Option<Box<[Floats; ROWS]>>> = const { Cell::new(None) };
}

impl Unpacked {
    fn new() -> Box<Self> {
        let zeros = [[0.0; ROWS]; CHUNK / 16];
        Box::new(Unpacked { chunks: [Chunk::ZERO; ROWS], scale: zeros, min: zeros })
    }
}

/// Multiplies with a format that has codes, `R` rows at once with panels.
#[inline(always)]
pub(super) fn coded<S: Lanes, const R: usize>(s: S, format: Format, unpack: Unpack, mut job: Job<'_>) {
    let mut tile = UNPACKED.take().unwrap_or_else(Unpacked::new);
    let mut sums = vec![[0.0; ROWS]; job.n_single()];
    job.prefetch_first();
    for row0 in (0..job.n_row()).step_by(ROWS) {
        sums.fill([0.0; ROWS]);
        for (at, len, range) in job.chunks() {
            tile.fill(s, format, unpack, &job, row0, len, &range);
            let mut single = 0;
            for part in job.parts {
                let Data::Rounded(x) = &part.data else { unreachable!("parts for codes are rounded") };
                if part.lanes == 1 {
                    tile.single(s, x, at, len, format, &mut sums[single]);
                    single += 1;
                } else {
                    let out = &mut job.out[row0 * job.n..];
                    match format.group {
                        RUN => tile.panel::<S, R, 16, 32>(s, (part, x), at, len, format.has_min, out, job.n),
                        _ => tile.panel::<S, R, 8, 16>(s, (part, x), at, len, format.has_min, out, job.n),
                    }
                }
            }
        }
        job.put_singles(row0, &sums);
    }
    UNPACKED.set(Some(tile));
}

/// Unpacks whole blocks ([`Format::chunk`]) by instructions of the kernel.
pub(super) type Unpack = ChunkFor;
/// Dequantises whole blocks, likewise.
pub(super) type Dequantize = DequantizeFor;

impl Unpacked {
    #[inline(always)]
    fn fill<S: Lanes>(
        &mut self,
        s: S,
        format: Format,
        unpack: Unpack,
        job: &Job<'_>,
        row0: usize,
        len: usize,
        range: &Range<usize>,
    ) {
        let n_group = len / format.group;
        for r in 0..ROWS.min(job.n_row() - row0) {
            job.prefetch(row0 + r, range);
            // SAFETY: The CPU has the instructions of the kernel.
            unsafe { unpack(job.row(row0 + r, range), &mut self.chunks[r]) };
            if let Some(table) = format.table {
                s.look_up(&mut self.chunks[r].code, table);
            }
        }
        for g in (0..n_group).step_by(S::N) {
            for r in (0..ROWS).step_by(S::N) {
                let chunks = &self.chunks[r..];
                put(s, s.transposed(|i| &chunks[i].scale[g..]), &mut self.scale[g..], r);
                if format.has_min {
                    put(s, s.transposed(|i| &chunks[i].min[g..]), &mut self.min[g..], r);
                }
            }
        }
    }

    /// Adds the products with a column, `len` values from `at`.
    #[inline(always)]
    fn single<S: Lanes>(
        &self,
        s: S,
        x: &Rounded,
        at: usize,
        len: usize,
        format: Format,
        sums: &mut [f32; ROWS],
    ) {
        let runs = at / RUN..(at + len) / RUN;
        let code = &x.code.as_chunks::<PAIRS>().0[runs.clone()];
        let scale = &x.scale[runs];
        let mins = &x.sums[usize::from(format.group == RUN)][at / format.group..];
        for (tile, sums) in sums.chunks_exact_mut(S::N).enumerate() {
            let first = tile * S::N;
            let rows = &self.chunks[first..][..S::N];
            let mut sum = s.load(sums);
            for (run, (x, scale)) in code.iter().zip(scale).enumerate().take(CHUNK / RUN) {
                let scale = s.splat(*scale);
                let [a, b] = s.run_dots(rows, run, x);
                let (dots, n) = if format.group == RUN { ([s.add(a, b), b], 1) } else { ([a, b], 2) };
                for (h, dots) in dots.into_iter().enumerate().take(n) {
                    let g = n * run + h;
                    sum = s.mul_add(s.float(dots), s.mul(s.load(&self.scale[g][first..]), scale), sum);
                    if format.has_min {
                        sum = s.mul_sub(s.load(&self.min[g][first..]), s.splat(mins[g]), sum);
                    }
                }
            }
            s.store(sum, sums);
        }
    }

    /// Adds the products with a panel of columns, `len` values from `at`. Groups have `G` codes, `P` pairs.
    #[inline(always)]
    fn panel<S: Lanes, const R: usize, const P: usize, const G: usize>(
        &self,
        s: S,
        (part, x): (&Part, &Rounded),
        at: usize,
        len: usize,
        has_min: bool,
        out: &mut [f32],
        n: usize,
    ) {
        let code = &x.code[at / 2 * S::N..][..len / 2 * S::N];
        let scale = &x.scale[at / RUN * S::N..];
        let mins = &x.sums[usize::from(G == RUN)][at / G * S::N..];
        let n_row = ROWS.min(out.len() / n);
        for row in (0..n_row).step_by(R) {
            let rows: [&[[i32; P]]; R] =
                std::array::from_fn(|r| codes(&self.chunks[row + r]).as_flattened().as_chunks().0);
            let valid = R.min(n_row - row);
            let mut sums = [s.splat(0.0); R];
            if at > 0 {
                for r in 0..valid {
                    sums[r] = s.load_some(&out[(row + r) * n + part.first..][..part.n]);
                }
            }
            for (g, code) in code.chunks_exact(P * S::N).enumerate() {
                let w: [&[i32; P]; R] = std::array::from_fn(|r| &rows[r][g]);
                let mut dots = [s.zero(); R];
                for (p, x) in code.chunks_exact(S::N).enumerate().take(P) {
                    let x = s.pairs(x);
                    for r in 0..R {
                        dots[r] = s.dot(dots[r], s.pair(w[r][p]), x);
                    }
                }
                let scale = s.load(&scale[g * G / RUN * S::N..]);
                let w = &self.scale[g][row..][..R];
                for r in 0..R {
                    sums[r] = s.mul_add(s.float(dots[r]), s.mul(s.splat(w[r]), scale), sums[r]);
                }
                if has_min {
                    let x = s.load(&mins[g * S::N..]);
                    let w = &self.min[g][row..][..R];
                    for r in 0..R {
                        sums[r] = s.mul_sub(s.splat(w[r]), x, sums[r]);
                    }
                }
            }
            for r in 0..valid {
                s.store_some(sums[r], &mut out[(row + r) * n + part.first..][..part.n]);
            }
        }
    }
}

/// Stores vectors one below the other, from column `r`.
#[inline(always)]
fn put<S: Lanes>(s: S, square: S::Square, to: &mut [[f32; ROWS]], r: usize) {
    for (v, to) in square.as_ref().iter().zip(to) {
        s.store(*v, &mut to[r..]);
    }
}

/// Products of formats without codes that are summed up before they are added to the sum of all: long sums are less
/// exact.
pub(super) const GROUP: usize = 16;

/// Multiplies with a format without codes, in f32, `R` rows at once with panels.
#[inline(always)]
pub(super) fn plain<S: Lanes, const R: usize>(s: S, dequantize: Dequantize, mut job: Job<'_>) {
    // Rows end with zeros up to a whole vector.
    let mut tile = FLOATS.take().unwrap_or_else(|| Box::new([[0.0; CHUNK]; ROWS]));
    let mut sums = vec![[0.0; ROWS]; job.n_single()];
    job.prefetch_first();
    for row0 in (0..job.n_row()).step_by(ROWS) {
        sums.fill([0.0; ROWS]);
        for (at, len, range) in job.chunks() {
            for r in 0..ROWS.min(job.n_row() - row0) {
                job.prefetch(row0 + r, &range);
                let (values, rest) = tile[r].split_at_mut(len);
                // SAFETY: The CPU has the instructions of the kernel.
                unsafe { dequantize(job.row(row0 + r, &range), values) };
                rest.fill(0.0);
            }
            let mut single = 0;
            for part in job.parts {
                let Data::Plain(x) = &part.data else { unreachable!("parts for f32 are not rounded") };
                let x = &x[at * part.lanes..][..len * part.lanes];
                if part.lanes == 1 {
                    plain_single(s, &tile, x, &mut sums[single]);
                    single += 1;
                } else {
                    plain_panel::<S, R>(s, &tile, (part, x), at > 0, &mut job.out[row0 * job.n..], job.n);
                }
            }
        }
        job.put_singles(row0, &sums);
    }
    FLOATS.set(Some(tile));
}

#[inline(always)]
fn plain_single<S: Lanes>(s: S, rows: &[Floats; ROWS], x: &[f32], sums: &mut [f32; ROWS]) {
    for (tile, sums) in sums.chunks_exact_mut(S::N).enumerate() {
        let rows = &rows[tile * S::N..][..S::N];
        let mut sum = s.load(sums);
        for (g, x) in x.chunks(GROUP).enumerate() {
            let mut dots = s.splat(0.0);
            for (i, x) in x.chunks(S::N).enumerate() {
                let square = s.transposed(|r| &rows[r][g * GROUP + i * S::N..]);
                for (w, x) in square.as_ref().iter().zip(x) {
                    dots = s.mul_add(*w, s.splat(*x), dots);
                }
            }
            sum = s.mul_add(dots, s.splat(1.0), sum);
        }
        s.store(sum, sums);
    }
}

#[inline(always)]
fn plain_panel<S: Lanes, const R: usize>(
    s: S,
    rows: &[Floats; ROWS],
    (part, x): (&Part, &[f32]),
    add: bool,
    out: &mut [f32],
    n: usize,
) {
    let n_row = ROWS.min(out.len() / n);
    for row in (0..n_row).step_by(R) {
        let w = &rows[row..][..R];
        let valid = R.min(n_row - row);
        let mut sums = [s.splat(0.0); R];
        if add {
            for r in 0..valid {
                sums[r] = s.load_some(&out[(row + r) * n + part.first..][..part.n]);
            }
        }
        for (g, x) in x.chunks(GROUP * S::N).enumerate().take(CHUNK / GROUP) {
            let mut dots = [s.splat(0.0); R];
            for (k, x) in x.chunks_exact(S::N).enumerate().take(GROUP) {
                let x = s.load(x);
                for r in 0..R {
                    dots[r] = s.mul_add(s.splat(w[r][g * GROUP + k]), x, dots[r]);
                }
            }
            for r in 0..R {
                sums[r] = s.mul_add(dots[r], s.splat(1.0), sums[r]);
            }
        }
        for r in 0..valid {
            s.store_some(sums[r], &mut out[(row + r) * n + part.first..][..part.n]);
        }
    }
}
