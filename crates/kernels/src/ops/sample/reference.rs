//! The same draw on the processor.

use super::SampleParams;

/// A number in [0, 1) with 24 bits that depends on the seed and the count of draws alone.
///
/// Source: PCG RXS-M-XS 32, O'Neill 2014, twice over a Weyl step.
pub fn uniform_draw(seed: u32, n: u32) -> f32 {
    let mut h = seed ^ n.wrapping_mul(0x9e37_79b9);
    for _ in 0..2 {
        h = h.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        h = ((h >> ((h >> 28) + 4)) ^ h).wrapping_mul(277_803_737);
        h = (h >> 22) ^ h;
    }
    (h >> 8) as f32 / 16_777_216.0
}

/// Probability of every token that can be drawn, most probable first.
pub fn candidates(logits: &[f32], p: &SampleParams) -> Vec<(u32, f64)> {
    let mut c: Vec<(u32, f64)> = logits
        .iter()
        .enumerate()
        .filter(|(_, v)| **v > -3.0e38)
        .map(|(i, v)| (i as u32, f64::from(*v)))
        .collect();
    c.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    c.truncate(p.top_k as usize);
    let Some(&(_, max)) = c.first() else { return c };
    let weight = |v: f64| (v - max).exp();
    if p.top_p < 1.0 {
        let sum: f64 = c.iter().map(|x| weight(x.1)).sum();
        let mut acc = 0.0;
        let n = c.iter().position(|x| {
            acc += weight(x.1) / sum;
            acc >= f64::from(p.top_p)
        });
        c.truncate(n.map_or(c.len(), |n| n + 1));
    }
    c.retain(|x| weight(x.1) >= f64::from(p.min_p));
    let heat = |v: f64| ((v - max) / f64::from(p.temp)).exp();
    let sum: f64 = c.iter().map(|x| heat(x.1)).sum();
    c.iter().map(|x| (x.0, heat(x.1) / sum)).collect()
}

/// Draws the `n`-th token.
pub fn sample(logits: &[f32], p: &SampleParams, n: u32) -> u32 {
    let c = candidates(logits, p);
    let r = f64::from(uniform_draw(p.seed, n));
    let mut acc = 0.0;
    for (i, share) in &c {
        acc += share;
        if acc >= r {
            return *i;
        }
    }
    c.last().map_or(0, |c| c.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_uniform() {
        let mut bins = [0u32; 16];
        for n in 0..16_000 {
            bins[(uniform_draw(7, n) * 16.0) as usize] += 1;
        }
        assert!(bins.iter().all(|b| (880..1120).contains(b)), "{bins:?}");
    }

    #[test]
    fn filters_by_hand() {
        // Probabilities 0.5, 0.25, 0.125, 0.125.
        let logits = [4.0f32.ln(), 2.0f32.ln(), 0.0, 0.0];
        let p = SampleParams { top_k: 4, top_p: 1.0, min_p: 0.0, temp: 1.0, seed: 0 };
        let ids = |p| candidates(&logits, &p).iter().map(|c| c.0).collect::<Vec<_>>();
        assert_eq!(ids(p), [0, 1, 2, 3]);
        assert_eq!(ids(SampleParams { top_k: 2, ..p }), [0, 1]);
        assert_eq!(ids(SampleParams { top_p: 0.7, ..p }), [0, 1]);
        assert_eq!(ids(SampleParams { min_p: 0.3, ..p }), [0, 1]);
        let half = candidates(&logits, &SampleParams { temp: 0.5, top_k: 2, ..p });
        assert!((half[0].1 - 0.8).abs() < 1e-6);
    }
}
