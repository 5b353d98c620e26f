//! Delays of frames and of work, drawn from a seed.

use std::time::Duration;

use chaski_swarm::Random;

/// Distribution of a time.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Delay {
    Constant {
        ms: f64,
    },
    Exponential {
        ms: f64,
    },
    /// `median * exp(sigma * normal)`.
    Lognormal {
        ms: f64,
        sigma: f64,
    },
    /// A lognormal body of sigma 0.15; a part of the times is `least` or more times as long, with a Pareto tail.
    Pareto {
        ms: f64,
        part: f64,
        least: f64,
        shape: f64,
    },
    /// Exponential, and a part of the times is ten times as long.
    Stalls {
        ms: f64,
        part: f64,
    },
}

impl Delay {
    pub(crate) fn draw(self, random: &mut Random) -> Duration {
        let exponential = |random: &mut Random| -(1.0 - random.unit()).ln();
        let ms = match self {
            Delay::Constant { ms } => ms,
            Delay::Exponential { ms } => ms * exponential(random),
            Delay::Lognormal { ms, sigma } => ms * (sigma * normal(random)).exp(),
            Delay::Pareto { ms, part, least, shape } => match random.happens(part) {
                true => ms * (least * (1.0 - random.unit()).powf(-1.0 / shape)).min(100.0 * least),
                false => ms * (0.15 * normal(random)).exp(),
            },
            Delay::Stalls { ms, part } => {
                let factor = if random.happens(part) { 10.0 } else { 1.0 };
                ms * factor * exponential(random)
            }
        };
        Duration::from_secs_f64(ms * 1e-3)
    }
}

/// A standard normal number, by Box and Muller.
fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}

/// Delays of a network.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Network {
    pub(crate) to_worker: Delay,
    pub(crate) to_hub: Delay,
    /// Frames of a connection keep their order, as over TCP.
    pub(crate) is_ordered: bool,
}
