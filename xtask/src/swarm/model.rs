//! Table 1 of the paper by its own equation 18, and table 3 as its numbers follow.

/// Values in a phase: experts.
pub(super) const K: u32 = 8;

/// Probability that a lognormal value exceeds `t`.
fn tail(t: f64, median: f64, sigma: f64) -> f64 {
    0.5 * erfc((t / median).ln() / (sigma * std::f64::consts::SQRT_2))
}

/// Complementary error function (Numerical Recipes' Chebyshev fit, relative error below 1.2e-7).
fn erfc(x: f64) -> f64 {
    let z = x.abs();
    let t = 1.0 / (1.0 + 0.5 * z);
    let terms = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let sum = terms.iter().rev().fold(0.0, |sum, c| sum * t + c);
    let value = t * (-z * z + sum).exp();
    if x >= 0.0 { value } else { 2.0 - value }
}

/// Mean time of a phase, in the unit of `median`: the latest of `k` experts, each the earliest of `h` independent
/// workers.
pub(super) fn phase(h: u32, k: u32, median: f64, sigma: f64) -> f64 {
    // E[T] is the integral of P(T > t); by the trapezoidal rule, finer where the body lies.
    let at = |t: f64| 1.0 - (1.0 - tail(t, median, sigma).powi(h as i32)).powi(k as i32);
    let integral = |from: f64, to: f64| {
        let n = 20_000;
        let step = (to - from) / f64::from(n);
        let inner: f64 = (1..n).map(|i| at(from + step * f64::from(i))).sum();
        step * (inner + 0.5 * (at(from) + at(to)))
    };
    integral(1e-9 * median, 4.0 * median) + integral(4.0 * median, 60.0 * median)
}

/// Prints both tables.
pub(super) fn print() {
    println!("Table 1: mean of a phase in ms, k = 8 experts, lognormal, median 20 ms, sigma 0.5\n");
    println!(
        "| h | paper | equation 18 | less than h = 1, paper | equation 18 |\n|---:|---:|---:|---:|---:|"
    );
    let paper = [51.2, 28.7, 23.1, 20.4];
    let exact = [1, 2, 3, 4].map(|h| phase(h, K, 20.0, 0.5));
    for (i, (paper_ms, ms)) in paper.iter().zip(exact).enumerate() {
        let less = |first: f64, now: f64| 100.0 * (1.0 - now / first);
        let (a, b) = (less(paper[0], *paper_ms), less(exact[0], ms));
        println!("| {} | {paper_ms:.1} | {ms:.2} | {a:.1} % | {b:.1} % |", i + 1);
    }
    println!(
        "\nTable 3, h = 1: ms of a token, 48 layers of 1.5 ms attention, 0.7 ms experts, 0.2 ms readback\n"
    );
    println!("| round trip | paper | 48 (2.4 + 2 R) | 48 (2.4 + R) |\n|---:|---:|---:|---:|");
    for (rtt, paper) in [(0.5, 163.0), (2.0, 307.0), (10.0, 1075.0), (50.0, 4915.0)] {
        let token = |trips: f64| 48.0 * (2.4 + trips * rtt);
        println!("| {rtt} ms | {paper:.0} | {:.1} | {:.1} |", token(2.0), token(1.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of an integration by numpy (docs/swarm.md).
    #[test]
    fn equation_18_gives_its_values() {
        for (h, expected) in [(1, 42.78), (2, 27.57), (3, 22.38), (4, 19.61)] {
            let found = phase(h, K, 20.0, 0.5);
            assert!((found / expected - 1.0).abs() < 1e-3, "h = {h}: {found}");
        }
        // Of one worker and one expert it is the mean of the distribution.
        assert!((phase(1, 1, 20.0, 0.5) / (20.0 * 0.125f64.exp()) - 1.0).abs() < 1e-5);
    }
}
