//! The same draw on the CPU.

use super::SampleParams;

/// Probability of every candidate: the most probable first, in the order of their ids if neither top-k nor top-p is on.
pub fn candidates(logits: &[f32], p: &SampleParams) -> Vec<(u32, f64)> {
    let mut c: Vec<(u32, f64)> = logits
        .iter()
        .enumerate()
        .filter(|(_, v)| **v > -3.0e38)
        .map(|(i, v)| (i as u32, f64::from(*v)))
        .collect();
    c.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    if p.top_k > 0 {
        c.truncate(p.top_k as usize);
    }
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
    c.retain(|x| weight(x.1) >= f64::from(p.min_p.min(1.0)));
    if p.top_k == 0 && p.top_p >= 1.0 {
        c.sort_by_key(|x| x.0);
    }
    let heat = |v: f64| ((v - max) / f64::from(p.temp)).exp();
    let sum: f64 = c.iter().map(|x| heat(x.1)).sum();
    c.iter().map(|x| (x.0, heat(x.1) / sum)).collect()
}

/// The token that a uniform number in [0, 1) draws.
pub fn sample(logits: &[f32], p: &SampleParams, uniform: f32) -> u32 {
    let c = candidates(logits, p);
    let r = f64::from(uniform);
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
    fn filters_by_hand() {
        // Probabilities 0.5, 0.25, 0.125, 0.125.
        let logits = [4.0f32.ln(), 2.0f32.ln(), 0.0, 0.0];
        let p = SampleParams { top_k: 4, top_p: 1.0, min_p: 0.0, temp: 1.0 };
        let ids = |p| candidates(&logits, &p).iter().map(|c| c.0).collect::<Vec<_>>();
        assert_eq!(ids(p), [0, 1, 2, 3]);
        assert_eq!(ids(SampleParams { top_k: 2, ..p }), [0, 1]);
        assert_eq!(ids(SampleParams { top_p: 0.7, ..p }), [0, 1]);
        assert_eq!(ids(SampleParams { min_p: 0.3, ..p }), [0, 1]);
        let half = candidates(&logits, &SampleParams { temp: 0.5, top_k: 2, ..p });
        assert!((half[0].1 - 0.8).abs() < 1e-6);
        let drawn = [0.0, 0.49, 0.51, 0.76, 0.99].map(|u| sample(&logits, &p, u));
        assert_eq!(drawn, [0, 0, 1, 2, 3]);
        assert_eq!(sample(&logits, &SampleParams::GREEDY, 0.99), 0);
        let ascending = [0.0, 0.0, 2.0f32.ln(), 4.0f32.ln()];
        let ids = |p| candidates(&ascending, &p).iter().map(|c| c.0).collect::<Vec<_>>();
        let all = SampleParams { top_k: 0, ..p };
        assert_eq!(ids(all), [0, 1, 2, 3]);
        assert_eq!(ids(SampleParams { min_p: 0.4, ..all }), [2, 3]);
        assert_eq!(ids(SampleParams { top_p: 0.8, ..all }), [3, 2, 0]);
        assert_eq!(ids(SampleParams { top_k: 9, ..all }), [3, 2, 0, 1]);
    }
}
