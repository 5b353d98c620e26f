//! Tiles of half floats: the values of all rows side by side, one column of the matrix after the other.
#![allow(unsafe_code, reason = "functions compiled for the kernel's instructions")]

use super::lanes::TileLanes;
use super::{Job, Line, Packing, Rows, TILE_ROWS, each, multiply_tiles};
use crate::blocks::isa::Compiled;
use crate::product::activations::Data;
use crate::product::kernels::GROUP;
use crate::product::portable::Portable;
#[cfg(target_arch = "x86_64")]
use crate::product::x86::{Avx2, Avx512};
use crate::types::{GgmlType, float};

/// A format of 16 bits.
pub(super) trait Half {
    /// The values of the rows of a vector.
    fn load<S: TileLanes>(s: S, at: &[u8]) -> S::Floats;
}

impl Half for float::ValueF16 {
    #[inline(always)]
    fn load<S: TileLanes>(s: S, at: &[u8]) -> S::Floats {
        s.halves(at)
    }
}

impl Half for float::ValueBf16 {
    #[inline(always)]
    fn load<S: TileLanes>(s: S, at: &[u8]) -> S::Floats {
        s.bf16(at)
    }
}

/// The packing of a format.
pub(super) const fn packing<B: Half>(ty: GgmlType) -> Packing {
    Packing {
        ty,
        rounds: false,
        n_line: |k| 2 * TILE_ROWS * k / size_of::<Line>(),
        pack,
        multiply: |job| multiply::<Portable, B, 3>(Portable, job),
        compiled: super::compiled!(multiply, B: Half, 4, 8),
    }
}

fn pack(rows: Rows<'_>, tile: &mut [u8]) {
    for (row, bytes) in rows.bytes.chunks_exact(rows.stride).enumerate() {
        for (to, value) in
            tile.as_chunks_mut::<{ 2 * TILE_ROWS }>().0.iter_mut().zip(bytes.as_chunks::<2>().0)
        {
            to[2 * row..][..2].copy_from_slice(value);
        }
    }
}

#[inline(always)]
fn multiply<S: TileLanes, B: Half, const MANY: usize>(s: S, job: Job<'_>) {
    multiply_tiles!(s, S, job, Data::Plain, tile::<B>, MANY);
}

/// Products of the rows of some vectors, given as tiles and first rows in them, with some columns.
#[inline(always)]
fn tile<S: TileLanes, B: Half, const V: usize, const C: usize>(
    s: S,
    tiles: [(&[u8], usize); V],
    k: usize,
    x: [&Vec<f32>; C],
) -> [[S::Floats; V]; C] {
    let mut sums = [[s.splat(0.0); V]; C];
    let of_tile: [&[[u8; 2 * TILE_ROWS]]; V] = tiles.map(|(tile, _)| &tile.as_chunks().0[..k]);
    for first in (0..k).step_by(GROUP) {
        let n = GROUP.min(k - first);
        let values = of_tile.map(|values| &values[first..][..n]);
        let x: [&[f32]; C] = x.map(|x| &x[first..][..n]);
        let mut dots = [[s.splat(0.0); V]; C];
        for i in 0..n {
            each!(V_ < V, [0 1] {
                let w = B::load(s, &values[V_][i][2 * tiles[V_].1..]);
                each!(C_ < C, [0 1 2 3 4 5 6 7] {
                    dots[C_][V_] = s.mul_add(w, s.splat(x[C_][i]), dots[C_][V_]);
                });
            });
        }
        each!(C_ < C, [0 1 2 3 4 5 6 7] {
            each!(V_ < V, [0 1] {
                sums[C_][V_] = s.mul_add(dots[C_][V_], s.splat(1.0), sums[C_][V_]);
            });
        });
    }
    sums
}
