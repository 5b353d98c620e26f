//! Tiles of formats with codes.
#![allow(unsafe_code, reason = "functions compiled for the kernel's instructions")]

use super::lanes::TileLanes;
use super::planes::{self, run_bytes};
use super::{Job, Line, Packing, Rows, TILE_ROWS, each, multiply_tiles};
use crate::blocks::F16;
use crate::blocks::codes::{CHUNK, Chunk, Coded, Scales, chunk};
use crate::blocks::isa::Compiled;
use crate::product::activations::{Data, Run};
use crate::product::lanes::RUN;
use crate::product::portable::Portable;
#[cfg(target_arch = "x86_64")]
use crate::product::x86::{Avx2, Avx512};
use crate::types::GgmlType;

/// The packing of a format.
pub(super) const fn packing<B: Coded>(ty: GgmlType) -> Packing {
    Packing {
        ty,
        rounds: true,
        n_line: |k| bytes_before::<B>(k) / size_of::<Line>(),
        pack: pack::<B>,
        multiply: |job| multiply::<Portable, B, 3>(Portable, job),
        compiled: super::compiled!(multiply, B: Coded, 3, 5),
    }
}

/// Scales, or scales and minima.
const fn n_part<B: Coded>() -> usize {
    if B::HAS_MIN { 2 } else { 1 }
}

/// Bytes of the scales, or of the minima, of a group of all rows.
const fn group_bytes<B: Coded>() -> usize {
    TILE_ROWS
        * match B::SCALES {
            Scales::Half => 2,
            Scales::Steps => 1,
            Scales::Single => 4,
        }
}

/// Bytes of the steps before the scales of a chunk.
const fn head_bytes<B: Coded>() -> usize {
    match B::SCALES {
        Scales::Steps => n_part::<B>() * 2 * TILE_ROWS,
        _ => 0,
    }
}

/// Bytes of a chunk of `len` values of each row: codes, steps, scales.
const fn chunk_bytes<B: Coded>(len: usize) -> usize {
    let scales = len / B::GROUP * n_part::<B>() * group_bytes::<B>();
    (len / RUN * run_bytes(B::BITS) + head_bytes::<B>() + scales).next_multiple_of(size_of::<Line>())
}

/// Bytes of the first `len` values, whole chunks but for the last one.
const fn bytes_before<B: Coded>(len: usize) -> usize {
    let rest = len % CHUNK;
    len / CHUNK * chunk_bytes::<B>(CHUNK) + if rest > 0 { chunk_bytes::<B>(rest) } else { 0 }
}

fn pack<B: Coded>(rows: Rows<'_>, tile: &mut [u8]) {
    let mut unpacked = Chunk::ZERO;
    for (row, bytes) in rows.bytes.chunks_exact(rows.stride).enumerate() {
        let of_chunk = CHUNK / B::N_ELEM * size_of::<B>();
        for (i, bytes) in bytes.chunks(of_chunk).enumerate() {
            let len = (rows.k - i * CHUNK).min(CHUNK);
            chunk::<B>(bytes, &mut unpacked);
            let steps = match B::SCALES {
                Scales::Steps => bytemuck::cast_slice::<u8, B>(bytes)[0].steps(),
                _ => [F16::default(); 2],
            };
            pack_chunk::<B>(&unpacked, steps, row, len, &mut tile[bytes_before::<B>(i * CHUNK)..]);
        }
    }
}

fn pack_chunk<B: Coded>(from: &Chunk, steps: [F16; 2], row: usize, len: usize, to: &mut [u8]) {
    let (runs, rest) = to[..chunk_bytes::<B>(len)].split_at_mut(len / RUN * run_bytes(B::BITS));
    for (run, code) in runs.chunks_exact_mut(run_bytes(B::BITS)).zip(from.code.as_chunks::<RUN>().0) {
        planes::put(B::BITS, &code.map(|c| (c + B::ZERO) as u8), row, run);
    }
    let (head, scales) = rest.split_at_mut(head_bytes::<B>());
    for (head, step) in head.chunks_exact_mut(2 * TILE_ROWS).zip(steps) {
        head[2 * row..][..2].copy_from_slice(&step.0);
    }
    let parts = [(&from.scale, steps[0]), (&from.min, steps[1])];
    for (i, to) in
        scales.chunks_exact_mut(group_bytes::<B>()).enumerate().take(len / B::GROUP * n_part::<B>())
    {
        let (values, step) = parts[i % n_part::<B>()];
        put_scale::<B>(values[i / n_part::<B>()], step, row, to);
    }
}

fn put_scale<B: Coded>(value: f32, step: F16, row: usize, to: &mut [u8]) {
    match B::SCALES {
        Scales::Half => to[2 * row..][..2].copy_from_slice(&F16::from_f32(value).0),
        // Exact: a step has 11 bits, and the number of steps eight.
        Scales::Steps => to[row] = (value / step.to_f32()) as i8 as u8,
        Scales::Single => to[4 * row..][..4].copy_from_slice(&value.to_le_bytes()),
    }
}

#[inline(always)]
fn multiply<S: TileLanes, B: Coded, const MANY: usize>(s: S, job: Job<'_>) {
    multiply_tiles!(s, S, job, Data::Runs, tile::<B>, MANY);
}

/// Products of the rows of some vectors, given as tiles and first rows in them, with some columns.
///
/// Vectors stay out of closures, which would be compiled without the kernel's instructions.
#[inline(always)]
fn tile<S: TileLanes, B: Coded, const V: usize, const C: usize>(
    s: S,
    tiles: [(&[u8], usize); V],
    k: usize,
    x: [&Vec<Run>; C],
) -> [[S::Floats; V]; C] {
    let mut sums = [[s.splat(0.0); V]; C];
    for first in (0..k).step_by(CHUNK) {
        let len = (k - first).min(CHUNK);
        let columns: [&[Run]; C] = x.map(|x| &x[first / RUN..][..len / RUN]);
        let chunks: [[&[u8]; 3]; V] = tiles.map(|(tile, _)| {
            let (runs, rest) = tile[bytes_before::<B>(first)..].split_at(len / RUN * run_bytes(B::BITS));
            let (head, scales) = rest.split_at(head_bytes::<B>());
            [runs, head, scales]
        });
        let mut steps = [[s.splat(1.0); 2]; V];
        for v in 0..V {
            steps[v] = steps_of::<S, B>(s, chunks[v][1], tiles[v].1);
        }
        for i in 0..len / RUN {
            let rows = std::array::from_fn(|v| {
                let of_run = RUN / B::GROUP * n_part::<B>() * group_bytes::<B>();
                let [runs, _, scales] = chunks[v];
                prefetch_after(&runs[i * run_bytes(B::BITS)..][..run_bytes(B::BITS)]);
                RunRows {
                    at: tiles[v].1,
                    codes: &runs[i * run_bytes(B::BITS)..][..run_bytes(B::BITS)],
                    scales: &scales[i * of_run..][..of_run],
                }
            });
            add_run::<S, B, V, C>(s, rows, &steps, columns.map(|x| &x[i]), &mut sums);
        }
    }
    sums
}

/// Bytes ahead of a product that memory is asked for.
const AHEAD: usize = 2048;

/// Hints that the bytes [`AHEAD`] of these will be read soon.
#[inline(always)]
fn prefetch_after(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..bytes.len()).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: Every CPU of the target has the instruction, and it only hints, wherever the address leads.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().wrapping_add(at + AHEAD).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

/// A run of the rows of a vector.
#[derive(Copy, Clone)]
struct RunRows<'a> {
    /// The first row in the tile.
    at: usize,
    codes: &'a [u8],
    scales: &'a [u8],
}

/// Values of a step of the scales and of the minima of a chunk.
#[inline(always)]
fn steps_of<S: TileLanes, B: Coded>(s: S, head: &[u8], at: usize) -> [S::Floats; 2] {
    match B::SCALES {
        Scales::Steps => {
            let scale = s.halves(&head[2 * at..]);
            [scale, if B::HAS_MIN { s.halves(&head[2 * (TILE_ROWS + at)..]) } else { scale }]
        }
        _ => [s.splat(1.0); 2],
    }
}

/// Part `i` of the scales and minima of a run.
#[inline(always)]
fn scale_of<S: TileLanes, B: Coded>(s: S, rows: RunRows<'_>, steps: &[S::Floats; 2], i: usize) -> S::Floats {
    let bytes = &rows.scales[i * group_bytes::<B>()..][..group_bytes::<B>()];
    match B::SCALES {
        Scales::Half => s.halves(&bytes[2 * rows.at..]),
        Scales::Steps => s.mul(steps[i % n_part::<B>()], s.bytes(&bytes[rows.at..])),
        Scales::Single => s.singles(&bytes[4 * rows.at..]),
    }
}

/// The table that codes are indices of, plus 128: values are stored as if they were codes of eight bits.
const fn bytes_of_table<B: Coded>() -> Option<[u8; 16]> {
    let Some(table) = B::TABLE else { return None };
    let mut bytes = [0; 16];
    let mut i = 0;
    while i < 16 {
        bytes[i] = (table[i] as i16 + 128) as u8;
        i += 1;
    }
    Some(bytes)
}

/// Adds the products of a run.
#[inline(always)]
fn add_run<S: TileLanes, B: Coded, const V: usize, const C: usize>(
    s: S,
    rows: [RunRows<'_>; V],
    steps: &[[S::Floats; 2]; V],
    x: [&Run; C],
    sums: &mut [[S::Floats; V]; C],
) {
    let table = const { bytes_of_table::<B>() };
    let zero = if table.is_some() { 128 } else { i32::from(B::ZERO) };
    let n_half = B::GROUP / 16;
    each!(G < RUN / B::GROUP, [0 1] {
        let mut dots = [[s.no_dots(); V]; C];
        each!(H < n_half, [0 1] {
            each!(J < 4, [0 1 2 3] {
                // A constant, and so are the shifts.
                let j = (4 * (G * n_half + H) + J) % (RUN / 4);
                each!(V_ < V, [0 1] {
                    let mut bytes = planes::quad(s, B::BITS, rows[V_].codes, rows[V_].at, j);
                    if let Some(table) = &table {
                        bytes = s.look_up_bytes(bytes, table);
                    }
                    let w = s.quads(bytes, zero == 128);
                    each!(C_ < C, [0 1 2 3 4] {
                        dots[C_][V_] = s.add_dots(dots[C_][V_], w, &x[C_].quads[j]);
                    });
                });
            });
        });
        each!(V_ < V, [0 1] {
            let scale = scale_of::<S, B>(s, rows[V_], &steps[V_], G * n_part::<B>());
            each!(C_ < C, [0 1 2 3 4] {
                let total = s.totals(dots[C_][V_], zero, x[C_], G * n_half, n_half);
                let scale = s.mul(scale, s.splat(x[C_].scale));
                sums[C_][V_] = s.mul_add(s.float(total), scale, sums[C_][V_]);
            });
            if B::HAS_MIN {
                let min = scale_of::<S, B>(s, rows[V_], &steps[V_], G * n_part::<B>() + 1);
                each!(C_ < C, [0 1 2 3 4] {
                    let [a, b] = x[C_].sums;
                    let sum = if n_half == 2 { a + b } else { x[C_].sums[G % 2] };
                    sums[C_][V_] = s.mul_sub(min, s.splat(sum), sums[C_][V_]);
                });
            }
        });
    });
}
