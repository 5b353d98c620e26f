//! Tables of cosines and sines for kernels with RoPE (`shared/rope.wgsl.jinja`).

use std::f64::consts::PI;

use chaski_graph::Rope;

/// Words (`f32`) of [`tables`] for a context of `n_ctx` tokens.
pub fn table_len(rope: &Rope, n_ctx: u32) -> usize {
    (256 + n_ctx as usize / 256 + 1) * rope.n_rot as usize
}

/// (cos, sin) of positions 0 to 255, then of every 256th position times the magnitude; kernels multiply the two as
/// complex numbers.
pub fn tables(rope: &Rope, n_ctx: u32) -> Vec<f32> {
    tables_of(&rope.frequencies(), rope.magnitude, n_ctx)
}

/// The same for these frequencies.
pub fn tables_of(freq: &[f64], magnitude: f64, n_ctx: u32) -> Vec<f32> {
    let mut out = Vec::with_capacity((257 + n_ctx as usize / 256) * 2 * freq.len());
    let mut row = |pos: f64, m: f64| {
        for f in freq {
            let a = (pos * f).rem_euclid(2.0 * PI);
            out.extend([(m * a.cos()) as f32, (m * a.sin()) as f32]);
        }
    };
    (0..256).for_each(|p| row(f64::from(p), 1.0));
    (0..=n_ctx / 256).for_each(|p| row(f64::from(p) * 256.0, magnitude));
    out
}

#[cfg(test)]
mod tests {
    use chaski_graph::RopePairing;

    use super::*;

    #[test]
    fn two_tables_make_every_angle() {
        let rope = Rope { magnitude: 1.25, ..Rope::plain(8, RopePairing::Norm, 10_000.0) };
        let n_ctx = 100_000;
        let t = tables(&rope, n_ctx);
        assert_eq!(t.len(), table_len(&rope, n_ctx));
        for pos in [0u32, 1, 255, 256, 257, 4095, 99_999] {
            for (i, f) in rope.frequencies().iter().enumerate() {
                let at = |row: usize| (f64::from(t[row * 8 + 2 * i]), f64::from(t[row * 8 + 2 * i + 1]));
                let ((a, b), (c, d)) = (at(pos as usize % 256), at(256 + pos as usize / 256));
                let angle = f64::from(pos) * f;
                assert!((a * c - b * d - 1.25 * angle.cos()).abs() < 5e-7);
                assert!((b * c + a * d - 1.25 * angle.sin()).abs() < 5e-7);
            }
        }
    }
}
