//! Rotary position embedding: parameters of every scaling, and the formula.
//!
//! Source: ggml `ggml_rope_ext`; Su et al. 2021; YaRN: Peng et al. 2023.

use std::f64::consts::PI;

/// Pairing of channels.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum RopePairing {
    /// Adjacent: (0, 1), (2, 3), ...
    Norm,
    /// Halves: (0, n/2), (1, n/2 + 1), ...
    Neox,
}

/// Assignment of pairs to the three components of a position (M-RoPE).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sections {
    /// Pairs per section; the fourth section, and pairs outside all sections, use the first component.
    pub pairs: [u32; 4],
    /// Interleaves the sections pair by pair; else they are contiguous.
    pub take_turns: bool,
}

impl Sections {
    /// Component of the position that a pair uses.
    pub fn component(&self, pair: u32) -> usize {
        let [t, h, w, rest] = self.pairs;
        let sector = pair % (t + h + w + rest).max(1);
        match sector {
            _ if self.take_turns => match sector as usize % 3 {
                k if sector < 3 * self.pairs[k] => k,
                _ => 0,
            },
            s if s < t || s >= t + h + w => 0,
            s if s < t + h => 1,
            _ => 2,
        }
    }
}

/// Parameters that determine the angle of a channel pair at a position.
#[derive(Clone, Debug, PartialEq)]
pub struct Rope {
    /// Channels per head with RoPE, even.
    pub n_rot: u32,
    /// Pairing of channels.
    pub pairing: RopePairing,
    /// Base of the frequencies.
    pub base: f64,
    /// Multiplies interpolated angles: 1 / scaling factor.
    pub freq_scale: f64,
    /// Share of YaRN's ramp: 0 for none and linear, 1 for YaRN.
    pub ext_factor: f64,
    /// Magnitude of cosine and sine (YaRN's and `rope.scaling.attn_factor` combined).
    pub magnitude: f64,
    /// YaRN: rotations over the original context above which a pair is not interpolated.
    pub beta_fast: f64,
    /// YaRN: rotations below which a pair is fully interpolated.
    pub beta_slow: f64,
    /// Context the model was trained for, in tokens.
    pub n_ctx_orig: u32,
    /// Divisors of the frequencies, one per pair, if the model has them.
    pub factors: Option<Vec<f32>>,
    /// Sections of pairs, if positions have components. Halves pair up then.
    pub sections: Option<Sections>,
}

impl Rope {
    /// RoPE without scaling and factors.
    pub fn plain(n_rot: u32, pairing: RopePairing, base: f64) -> Self {
        Rope {
            n_rot,
            pairing,
            base,
            freq_scale: 1.0,
            ext_factor: 0.0,
            magnitude: 1.0,
            beta_fast: 32.0,
            beta_slow: 1.0,
            n_ctx_orig: 0,
            factors: None,
            sections: None,
        }
    }

    /// Radians per position, of every pair.
    pub fn frequencies(&self) -> Vec<f64> {
        (0..self.n_rot / 2).map(|i| self.frequency(i, i)).collect()
    }

    /// Radians per position of pair `i`, whose base is raised to `-2 power / n_rot`. The power is `i`, except where
    /// frequencies restart within a head, as they do for images.
    pub fn frequency(&self, i: u32, power: u32) -> f64 {
        let n = f64::from(self.n_rot);
        let factor = self.factors.as_ref().map_or(1.0, |f| f64::from(f[i as usize]));
        let free = self.base.powf(-2.0 * f64::from(power) / n) / factor;
        let inter = free * self.freq_scale;
        if self.ext_factor == 0.0 {
            return inter;
        }
        let corr =
            |beta: f64| n * (f64::from(self.n_ctx_orig) / (2.0 * PI * beta)).ln() / (2.0 * self.base.ln());
        let (low, high) = (corr(self.beta_fast).floor().max(0.0), corr(self.beta_slow).ceil().min(n - 1.0));
        let ramp = 1.0 - ((f64::from(i) - low) / (high - low).max(0.001)).clamp(0.0, 1.0);
        let mix = ramp * self.ext_factor;
        inter * (1.0 - mix) + free * mix
    }

    /// Applies RoPE to the heads of one row in place: the formula, in f64.
    ///
    /// `x`: `[n_head, d]` f32; channels from `n_rot` are unchanged.
    pub fn rotate(&self, x: &mut [f32], d: usize, pos: u32) {
        self.rotate_by(x, d, [pos; 3]);
    }

    /// The same at a position of three components, which differ only in models that have [`Self::sections`].
    pub fn rotate_by(&self, x: &mut [f32], d: usize, pos: [u32; 3]) {
        let half = self.n_rot as usize / 2;
        for (i, f) in self.frequencies().into_iter().enumerate() {
            let (a, b) = match self.pairing {
                RopePairing::Norm => (2 * i, 2 * i + 1),
                RopePairing::Neox => (i, i + half),
            };
            let component = self.sections.map_or(0, |s| s.component(i as u32));
            let angle = (f64::from(pos[component]) * f).sin_cos();
            for head in x.chunks_exact_mut(d) {
                let (u, v) = turn_by([head[a], head[b]].map(f64::from), angle, self.magnitude);
                (head[a], head[b]) = (u as f32, v as f32);
            }
        }
    }
}

/// Rotates a pair of channels by an angle, and scales it.
pub fn turn(pair: [f64; 2], angle: f64, magnitude: f64) -> (f64, f64) {
    turn_by(pair, angle.sin_cos(), magnitude)
}

/// The same, given sine and cosine.
fn turn_by([u, v]: [f64; 2], (s, c): (f64, f64), magnitude: f64) -> (f64, f64) {
    ((u * c - v * s) * magnitude, (u * s + v * c) * magnitude)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotation_by_hand() {
        // One pair with frequency 1: position 1 rotates it by one radian.
        let rope = Rope::plain(2, RopePairing::Norm, 10_000.0);
        let mut x = [1.0f32, 0.0, 5.0, 6.0];
        rope.rotate(&mut x, 4, 1);
        assert!((x[0] - 1f32.cos()).abs() < 1e-7 && (x[1] - 1f32.sin()).abs() < 1e-7);
        assert_eq!(&x[2..], &[5.0, 6.0]);
    }
}
