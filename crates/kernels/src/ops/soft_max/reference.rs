//! y = exp(v - max) / sum, in f64.

/// Slope of a head's mask: `2^(-8 (h + 1) / n)` for `max_bias` 8 and `n` heads, a power of two; heads beyond the last
/// power of two take the odd steps of twice as many heads.
pub fn slope(max_bias: f64, n_head: u32, head: u32) -> f64 {
    if max_bias <= 0.0 {
        return 1.0;
    }
    let n = 1 << n_head.ilog2();
    let (h, n) = if head < n { (head + 1, n) } else { (2 * (head - n) + 1, 2 * n) };
    (-max_bias * f64::from(h) / f64::from(n)).exp2()
}

/// Softmax of one row and a sink, which contributes to the denominator; zeros if everything is masked.
pub fn soft_max(v: &[f64], sink: Option<f64>) -> Vec<f64> {
    let max = v.iter().copied().chain(sink).fold(f64::NEG_INFINITY, f64::max);
    if max == f64::NEG_INFINITY {
        return vec![0.0; v.len()];
    }
    let e: Vec<f64> = v.iter().map(|v| (v - max).exp()).collect();
    let sum = e.iter().sum::<f64>() + sink.map_or(0.0, |s| (s - max).exp());
    e.iter().map(|v| v / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_by_hand() {
        let all = |n| (0..n).map(|h| slope(8.0, n, h)).collect::<Vec<_>>();
        assert_eq!(all(4), [0.25, 0.0625, 0.015625, 0.00390625]);
        assert_eq!(all(3), [0.0625, 0.00390625, 0.25]);
    }
}
