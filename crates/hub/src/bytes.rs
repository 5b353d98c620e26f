//! Numbers of bytes in messages.

use std::fmt;

/// A number of bytes, shown in the largest decimal unit: `4.37 GB`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, f64); 4] = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
        let n = self.0 as f64;
        let text = match UNITS.iter().find(|(_, unit)| n >= *unit) {
            Some((name, unit)) => match n / unit {
                x if x < 9.995 => format!("{x:.2} {name}"),
                x if x < 99.95 => format!("{x:.1} {name}"),
                x => format!("{x:.0} {name}"),
            },
            None => format!("{} B", self.0),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits() {
        for (n, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.00 kB"),
            (34_048, "34.0 kB"),
            (4_368_439_584, "4.37 GB"),
            (669_000_000, "669 MB"),
        ] {
            assert_eq!(Bytes(n).to_string(), text);
        }
        assert_eq!(format!("{:>8}", Bytes(7)), "     7 B");
    }
}
