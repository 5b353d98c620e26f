//! Delays of a network that is not there: distributions with a seed.

use std::f64::consts::TAU;
use std::str::FromStr;
use std::time::Duration;

/// Longest delay of a heavy tail.
const LONGEST: f64 = 500.0;

/// Distribution of the delay of an answer, in milliseconds.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum Delay {
    /// Always the same.
    Constant(f64),
    /// Lognormal with a median and the standard deviation of the logarithm.
    Lognormal { median: f64, sigma: f64 },
    /// Lognormal around 1 ms (0.15); a share of the answers takes at least `least`, with a Pareto tail of exponent
    /// `alpha`, at most 500 ms.
    Pareto { share: f64, least: f64, alpha: f64 },
    /// Exponential, and a share of the times is ten times as long.
    Stalls { mean: f64, share: f64 },
}

impl FromStr for Delay {
    type Err = String;

    fn from_str(text: &str) -> Result<Delay, String> {
        let mut words = text.split(':');
        let kind = words.next().unwrap_or_default();
        let numbers = words.map(|w| match w.strip_suffix('%') {
            Some(w) => w.parse::<f64>().map(|n| n / 100.0),
            None => w.parse::<f64>(),
        });
        let numbers: Vec<f64> = numbers.collect::<Result<_, _>>().map_err(|e| format!("`{text}`: {e}"))?;
        let is_right = numbers.iter().all(|n| n.is_finite() && *n >= 0.0);
        match (kind, &numbers[..]) {
            ("constant", [ms]) if is_right => Ok(Delay::Constant(*ms)),
            ("lognormal", [median, sigma]) if is_right => {
                Ok(Delay::Lognormal { median: *median, sigma: *sigma })
            }
            ("pareto", [share, least, alpha]) if is_right && *alpha > 0.0 => {
                Ok(Delay::Pareto { share: *share, least: *least, alpha: *alpha })
            }
            ("stalls", [mean, share]) if is_right => Ok(Delay::Stalls { mean: *mean, share: *share }),
            _ => Err(format!(
                "`{text}` is no delay: expected constant:MS, lognormal:MEDIAN:SIGMA, pareto:SHARE%:LEAST:ALPHA or \
                 stalls:MEAN:SHARE%"
            )),
        }
    }
}

impl Delay {
    /// The next delay.
    pub(super) fn draw(self, random: &mut Random) -> Duration {
        let ms = match self {
            Delay::Constant(ms) => ms,
            Delay::Lognormal { median, sigma } => median * (sigma * random.normal()).exp(),
            Delay::Pareto { share, least, alpha } => match random.unit() < share {
                true => (least * random.unit().powf(-1.0 / alpha)).min(LONGEST),
                false => (0.15 * random.normal()).exp(),
            },
            Delay::Stalls { mean, share } => {
                let factor = if random.unit() < share { 10.0 } else { 1.0 };
                -mean * factor * random.unit().ln()
            }
        };
        Duration::from_secs_f64(ms / 1e3)
    }
}

/// Random numbers by SplitMix64.
#[derive(Clone, Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// More than 0, at most 1.
    pub(super) fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller.
    pub(super) fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (TAU * self.unit()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_have_the_moments_of_their_distributions() {
        let mean = |text: &str| {
            let (delay, mut random) = (text.parse::<Delay>().unwrap(), Random(1));
            let n = 200_000;
            (0..n).map(|_| delay.draw(&mut random).as_secs_f64() * 1e3).sum::<f64>() / f64::from(n)
        };
        assert_eq!(mean("constant:2").round(), 2.0);
        // exp(sigma^2 / 2) times the median.
        assert!((mean("lognormal:20:0.5") / 22.663 - 1.0).abs() < 0.01);
        // 98 % of 1.0113 ms, 2 % of 15 ms, less what lies beyond 500 ms.
        let heavy = mean("pareto:2%:5:1.5");
        assert!((1.2..1.3).contains(&heavy), "{heavy}");
        assert!((mean("stalls:1:3%") / 1.27 - 1.0).abs() < 0.02);
        for wrong in
            ["", "constant", "constant:x", "lognormal:1", "pareto:2%:5:0", "constant:-1", "constant:inf"]
        {
            assert!(wrong.parse::<Delay>().is_err(), "{wrong}");
        }
    }
}
