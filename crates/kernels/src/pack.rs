//! The encoder for `packed.rs`: used by the build script and tests.

use std::collections::HashMap;

use crate::packed::{Chance, Coder, Interval, Model, Part, SHORTEST};

/// Longest match.
const LONGEST: usize = SHORTEST + 255;

/// Maximum number of earlier positions tried for a match.
const N_TRY: usize = 200;

struct Writer {
    interval: Interval,
    out: Vec<u8>,
}

impl Coder for Writer {
    fn bit(&mut self, chance: &mut Chance, bit: bool) -> bool {
        let out = &mut self.out;
        self.interval.choose(chance, bit, |byte| out.push(byte));
        bit
    }
}

/// Packs `bytes`.
pub(crate) fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut writer = Writer { interval: Interval::ALL, out: Vec::new() };
    let (mut model, mut at) = (Model::new(), 0);
    for part in parts(bytes) {
        let before = if at == 0 { 0 } else { bytes[at - 1] };
        model.part(&mut writer, before, part);
        at += match part {
            Part::Literal(_) => 1,
            Part::Match { n_byte, .. } => n_byte,
        };
    }
    writer.out.extend((writer.interval.low + 1).to_be_bytes());
    writer.out
}

/// A template without indentation and without lines that are WGSL comments, which nobody reads in a browser.
pub(crate) fn shorter(text: &str) -> String {
    let lines = text.lines().map(str::trim_start).filter(|line| !line.starts_with("//"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// The cheapest parse of the bytes, by estimated costs.
fn parts(bytes: &[u8]) -> Vec<Part> {
    let n = bytes.len();
    // Cost of the rest from each position, in sixteenths of a bit, and the first part of it; computed from the end.
    let found = matches(bytes);
    let mut cost = vec![0u32; n + 1];
    let mut best = vec![Part::Literal(0); n];
    for at in (0..n).rev() {
        cost[at] = cost[at + 1] + 80;
        best[at] = Part::Literal(bytes[at]);
        for &(longest, distance) in &found[at] {
            let price = 96 + 16 * distance.ilog2();
            for n_byte in SHORTEST..=longest {
                let all = cost[at + n_byte] + price + 8 * n_byte.ilog2();
                if all < cost[at] {
                    cost[at] = all;
                    best[at] = Part::Match { n_byte, distance };
                }
            }
        }
    }
    let (mut out, mut at) = (Vec::new(), 0);
    while at < n {
        out.push(best[at]);
        at += match best[at] {
            Part::Literal(_) => 1,
            Part::Match { n_byte, .. } => n_byte,
        };
    }
    out
}

/// For each position the useful matches: lengths, each with its smallest distance.
fn matches(bytes: &[u8]) -> Vec<Vec<(usize, usize)>> {
    let mut places: HashMap<&[u8], Vec<usize>> = HashMap::new();
    let mut out = Vec::with_capacity(bytes.len());
    for at in 0..bytes.len() {
        let mut found: Vec<(usize, usize)> = Vec::new();
        if let Some(key) = bytes.get(at..at + SHORTEST) {
            let rest = &bytes[at..bytes.len().min(at + LONGEST)];
            let earlier = places.entry(key).or_default();
            for &place in earlier.iter().rev().take(N_TRY) {
                let longest = found.last().map_or(SHORTEST - 1, |f| f.0);
                if bytes[place..].get(longest) != rest.get(longest) {
                    continue;
                }
                let n_byte = rest.iter().zip(&bytes[place..]).take_while(|(a, b)| a == b).count();
                if n_byte > longest {
                    found.push((n_byte, at - place));
                    if n_byte == rest.len() {
                        break;
                    }
                }
            }
            earlier.push(at);
        }
        out.push(found);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::unpack;

    #[track_caller]
    fn comes_back(bytes: &[u8]) -> usize {
        let packed = pack(bytes);
        assert!(unpack(&packed, bytes.len()) == bytes, "{} bytes", bytes.len());
        packed.len()
    }

    #[test]
    fn what_is_packed_comes_back() {
        comes_back(b"");
        comes_back(b"a");
        comes_back(b"abcabcabcabcabcabd");
        assert!(comes_back(&[0; 100_000]) < 500);
        let mut rng = crate::rng::Rng::new(1);
        let noise: Vec<u8> = (0..20_000).map(|_| rng.below(256) as u8).collect();
        assert!(comes_back(&noise) < 24_000);
        let few: Vec<u8> = (0..20_000).map(|_| b'a' + rng.below(3) as u8).collect();
        assert!(comes_back(&few) < 6_000);
    }

    #[test]
    fn templates_come_back_and_are_a_fifth() {
        let all: String = crate::templates::all().iter().map(|(_, text)| shorter(text)).collect();
        assert!(5 * comes_back(all.as_bytes()) < all.len());
    }
}
