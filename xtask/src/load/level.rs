//! Measurements: users, or requests at a rate.

use std::fmt;

/// Rates of a curve, as shares of the most requests a second that users got answered.
const CURVE: [f64; 4] = [0.5, 0.8, 0.95, 1.2];

/// One measurement.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Level {
    /// As many, each with one request after another.
    Users(usize),
    /// Requests a second, at random times.
    Rate(f64),
}

impl Level {
    /// Requests without an option that says how many.
    pub(crate) fn n_request(self, seconds: f64) -> usize {
        match self {
            Level::Users(n) => (4 * n).max(16),
            Level::Rate(rate) => ((rate * seconds).ceil() as usize).max(16),
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Level::Users(n) => n.fmt(f),
            Level::Rate(rate) => write!(f, "{rate:.2}/s"),
        }
    }
}

/// A positive number of users.
pub(crate) fn users(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "not a number of users".into())
}

/// A positive number that may have a fraction.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let n = text.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
    n.ok_or_else(|| "not a positive number".into())
}

/// The measurements of a run, one after another.
pub(crate) struct Levels {
    rest: std::vec::IntoIter<Level>,
    /// The most answers a second that users got, if a curve is to follow.
    capacity: Option<f64>,
}

impl Levels {
    pub(crate) fn new(users: &[usize], rates: &[f64], has_curve: bool) -> Levels {
        let users = if users.is_empty() && rates.is_empty() { &[1, 8] } else { users };
        let users = users.iter().map(|n| Level::Users(*n));
        let all: Vec<Level> = users.chain(rates.iter().map(|rate| Level::Rate(*rate))).collect();
        Levels { rest: all.into_iter(), capacity: has_curve.then_some(0.0) }
    }

    /// The next one; a curve is known when all users are measured.
    pub(crate) fn next(&mut self) -> Option<Level> {
        let next = self.rest.next();
        if next.is_some() {
            return next;
        }
        let capacity = self.capacity.take().filter(|capacity| *capacity > 0.0)?;
        self.rest = CURVE.map(|share| Level::Rate(share * capacity)).to_vec().into_iter();
        self.rest.next()
    }

    /// Takes the answers a second that a level got.
    pub(crate) fn measured(&mut self, level: Level, rate: f64) {
        let (Level::Users(_), Some(most)) = (level, &mut self.capacity) else { return };
        *most = most.max(rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_follows_the_users_at_shares_of_what_they_got() {
        let mut levels = Levels::new(&[1, 8], &[], true);
        let mut seen = Vec::new();
        while let Some(level) = levels.next() {
            levels.measured(level, if level == Level::Users(8) { 4.0 } else { 1.0 });
            seen.push(level.to_string());
        }
        assert_eq!(seen, ["1", "8", "2.00/s", "3.20/s", "3.80/s", "4.80/s"]);
    }

    #[test]
    fn without_answers_there_is_no_curve() {
        let mut levels = Levels::new(&[2], &[], true);
        assert_eq!((levels.next(), levels.next()), (Some(Level::Users(2)), None));
    }

    #[test]
    fn users_are_asked_unless_rates_are_named() {
        assert_eq!(Levels::new(&[], &[], false).next(), Some(Level::Users(1)));
        assert_eq!(Levels::new(&[], &[2.5], false).next(), Some(Level::Rate(2.5)));
        assert!(rate("0").is_err() && rate("nan").is_err() && users("0").is_err());
    }
}
