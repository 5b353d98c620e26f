//! Random weights, the same on every machine.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::Write;

use anyhow::{Context, Result};
use ggml_format::{DataWriter, GgmlType, quantize};
use rayon::prelude::*;

use super::shape::{Preset, Tensor, Values};
use crate::progress::Progress;

/// Standard deviation of the weights.
pub(super) const DEVIATION: f32 = 0.02;

/// Number of values in a pool; rows are ranges of it.
const POOL_LEN: usize = 1 << 22;

/// Row starts in a pool are multiples of this, a multiple of every block length.
const POOL_STEP: usize = 256;

/// Approximate number of bytes written at once.
const CHUNK_BYTES: u64 = 8 << 20;

/// Random weights: a pool of blocks per type; rows are taken at random offsets.
pub(super) struct Weights {
    pools: BTreeMap<GgmlType, Vec<u8>>,
    random: Random,
    chunk: Vec<u8>,
}

impl Weights {
    pub(super) fn new(seed: u64, types: impl Iterator<Item = GgmlType>) -> Result<Weights> {
        let mut values = vec![0.0; POOL_LEN];
        values.par_chunks_mut(1 << 14).enumerate().for_each(|(i, chunk)| {
            let mut random = Random::new(seed, i as u64 + 1);
            for pair in chunk.chunks_exact_mut(2) {
                pair.copy_from_slice(&random.normal_pair().map(|x| x * DEVIATION));
            }
        });
        let mut pools = BTreeMap::new();
        for ty in types {
            if let Entry::Vacant(entry) = pools.entry(ty) {
                entry.insert(pool(ty, &values)?);
            }
        }
        Ok(Weights { pools, random: Random::new(seed, 0), chunk: Vec::new() })
    }

    pub(super) fn write(
        &mut self,
        t: &Tensor,
        preset: &Preset,
        data: &mut DataWriter<impl Write>,
        progress: &Progress,
    ) -> Result<()> {
        if t.values != Values::Random {
            let values =
                if t.values == Values::Ones { vec![1.0f32; t.ne[0] as usize] } else { preset.rope_factors() };
            let bytes: Vec<u8> = values.into_iter().flat_map(f32::to_le_bytes).collect();
            data.write(&t.name, &bytes)?;
            progress.add(bytes.len() as u64);
            return Ok(());
        }
        let pool = &self.pools[&t.ty];
        let row_bytes = t.row_bytes() as usize;
        let step_bytes = POOL_STEP / t.ty.block_len() * t.ty.block_bytes();
        let n_place = ((POOL_LEN - t.ne[0] as usize) / POOL_STEP) as u64;
        let chunk_rows = (CHUNK_BYTES / row_bytes as u64).max(1);
        let mut n_left = t.n_row();
        while n_left > 0 {
            let n_row = n_left.min(chunk_rows);
            self.chunk.clear();
            for _ in 0..n_row {
                let start = (self.random.next() % n_place) as usize * step_bytes;
                self.chunk.extend_from_slice(&pool[start..start + row_bytes]);
            }
            data.write(&t.name, &self.chunk)?;
            progress.add(self.chunk.len() as u64);
            n_left -= n_row;
        }
        Ok(())
    }
}

/// The pool's values in blocks of a type.
fn pool(ty: GgmlType, values: &[f32]) -> Result<Vec<u8>> {
    const N_PIECE: usize = 1 << 12;
    let n_byte =
        ty.row_bytes(values.len() as u64).context("the pool size is not a multiple of the block size")?;
    let mut bytes = vec![0; n_byte as usize];
    let piece_bytes = N_PIECE / ty.block_len() * ty.block_bytes();
    let pieces = values.par_chunks(N_PIECE).zip(bytes.par_chunks_mut(piece_bytes));
    pieces.try_for_each(|(x, out)| quantize(ty, x, x.len(), None, out))?;
    Ok(bytes)
}

/// Random numbers that are the same on every machine (splitmix64).
struct Random(u64);

impl Random {
    /// The numbers of one of many streams.
    fn new(seed: u64, stream: u64) -> Random {
        let mut random = Random(seed);
        random.0 = random.next() ^ stream;
        random.0 = random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in (0, 1].
    fn uniform(&mut self) -> f32 {
        ((self.next() >> 40) + 1) as f32 / (1 << 24) as f32
    }

    /// Two values of the normal distribution, by Box and Muller.
    fn normal_pair(&mut self) -> [f32; 2] {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let (sin, cos) = (std::f32::consts::TAU * self.uniform()).sin_cos();
        [radius * cos, radius * sin]
    }
}
