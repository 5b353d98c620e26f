//! The slowest of several answers, each the fastest of several tries: eq. 18 of MoEx, and the fan-out that follows.

/// Steps of the integral.
const N_STEP: usize = 8_000;
/// Standard deviations of the logarithm that it covers on each side.
const REACH: f64 = 8.0;

/// Expected time of a phase that waits for `k` answers, each the first of `h` independent tries with lognormal times:
/// the integral of `1 - (1 - S(t)^h)^k`, where `S` is the survival function (MoEx, eq. 18).
///
/// # Units
/// The result has the unit of `median`; `sigma` is the standard deviation of the logarithm.
pub fn phase_time(h: u32, k: u32, median: f64, sigma: f64) -> f64 {
    let late = |z: f64| {
        let tail = 0.5 * erfc(z / std::f64::consts::SQRT_2);
        1.0 - (1.0 - tail.powi(h as i32)).powi(k as i32)
    };
    let place = |i: usize| -REACH + 2.0 * REACH * i as f64 / N_STEP as f64;
    // Before the first step everything is late.
    let (mut sum, mut before) = (median * (-REACH * sigma).exp(), (-REACH, 1.0));
    for i in 1..=N_STEP {
        let now = (place(i), late(place(i)));
        let time = |z: f64| median * (sigma * z).exp();
        sum += (before.1 + now.1) / 2.0 * (time(now.0) - time(before.0));
        before = now;
    }
    sum
}

/// The best number of workers to share the `k` experts of a layer, and the seconds of the layer: the slowest of `f`
/// round trips, and `k / f` experts one after another.
///
/// # Units
/// Seconds; `sigma` is the standard deviation of the logarithm of the round trip.
pub fn best_fan_out(k: u32, rtt: f64, sigma: f64, expert: f64, rows: impl Fn(u32) -> f64) -> (u32, f64) {
    let cost = |f: u32| phase_time(1, f, rtt, sigma) + f64::from(k.div_ceil(f)) * expert + rows(f);
    let powers = (0..).map(|i| 1u32 << i).take_while(|&f| f <= k.max(1));
    powers.map(|f| (f, cost(f))).min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((1, cost(1)))
}

/// The complementary error function, within 1.2e-7 of its value (Numerical Recipes, `erfcc`: a Chebyshev fit).
fn erfc(x: f64) -> f64 {
    const FIT: [f64; 10] = [
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
    let t = 1.0 / (1.0 + 0.5 * x.abs());
    let fit = FIT.iter().rev().fold(0.0, |sum, c| sum * t + c);
    let value = t * (fit - x * x).exp();
    if x >= 0.0 { value } else { 2.0 - value }
}
