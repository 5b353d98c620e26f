//! Vectors of 128 bits, which every target has: SSE2, NEON, SIMD128 of WebAssembly.

use wide::{f32x4, i16x8, i32x4};

use super::lanes::{Lanes, PAIRS, Pair, codes};
use crate::blocks::codes::{CHUNK, Chunk};

#[derive(Copy, Clone)]
pub(super) struct Portable;

/// Four values from the start.
#[inline(always)]
fn four<T: Copy>(at: &[T]) -> [T; 4] {
    *at.first_chunk().expect("as many values as lanes")
}

impl Lanes for Portable {
    const N: usize = 4;
    type Pairs = i16x8;
    type Ints = i32x4;
    type Floats = f32x4;
    type Square = [f32x4; 4];

    #[inline(always)]
    fn pairs(self, at: &[Pair]) -> i16x8 {
        bytemuck::cast(four(at))
    }
    #[inline(always)]
    fn pair(self, value: Pair) -> i16x8 {
        bytemuck::cast(i32x4::splat(value))
    }
    #[inline(always)]
    fn zero(self) -> i32x4 {
        i32x4::ZERO
    }
    #[inline(always)]
    fn dot(self, sum: i32x4, a: i16x8, b: i16x8) -> i32x4 {
        sum + a.dot(b)
    }
    #[inline(always)]
    fn add(self, a: i32x4, b: i32x4) -> i32x4 {
        a + b
    }
    #[inline(always)]
    fn float(self, ints: i32x4) -> f32x4 {
        ints.round_float()
    }
    #[inline(always)]
    fn splat(self, value: f32) -> f32x4 {
        f32x4::splat(value)
    }
    #[inline(always)]
    fn load(self, at: &[f32]) -> f32x4 {
        f32x4::from(four(at))
    }
    #[inline(always)]
    fn store(self, value: f32x4, at: &mut [f32]) {
        *at.first_chunk_mut().expect("room for all lanes") = value.to_array();
    }
    #[inline(always)]
    fn mul(self, a: f32x4, b: f32x4) -> f32x4 {
        a * b
    }
    #[inline(always)]
    fn mul_add(self, a: f32x4, b: f32x4, c: f32x4) -> f32x4 {
        a * b + c
    }
    #[inline(always)]
    fn mul_sub(self, a: f32x4, b: f32x4, c: f32x4) -> f32x4 {
        c - a * b
    }
    #[inline(always)]
    fn run_dots(self, rows: &[Chunk], run: usize, x: &[Pair; PAIRS]) -> [i32x4; 2] {
        let x: [i16x8; 4] = bytemuck::cast(*x);
        let mut halves = [[i32x4::ZERO; 4]; 2];
        for (r, row) in rows[..4].iter().enumerate() {
            let w: [i16x8; 4] = bytemuck::cast(codes(row)[run]);
            halves[0][r] = w[0].dot(x[0]) + w[1].dot(x[1]);
            halves[1][r] = w[2].dot(x[2]) + w[3].dot(x[3]);
        }
        halves.map(|rows| {
            // Shuffles do not look at values.
            let [a, b, c, d] = f32x4::transpose(bytemuck::cast(rows)).map(bytemuck::cast::<_, i32x4>);
            (a + b) + (c + d)
        })
    }
    #[inline(always)]
    fn transposed<'a>(self, row: impl Fn(usize) -> &'a [f32]) -> [f32x4; 4] {
        f32x4::transpose(std::array::from_fn(|r| f32x4::from(four(row(r)))))
    }
    #[inline(always)]
    fn look_up(self, codes: &mut [i16; CHUNK], table: &[i8; 16]) {
        codes.iter_mut().for_each(|c| *c = i16::from(table[usize::from(*c as u16 & 15)]));
    }
}
