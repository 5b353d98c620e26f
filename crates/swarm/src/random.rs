//! Random numbers from a seed: the state machines have no other source of chance.

/// SplitMix64 (Steele, Lea, Flood 2014): one word of state, any seed is good.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator whose numbers follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed(self.0)
    }

    /// A number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// A number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        to_unit(self.bits())
    }

    /// True with the given probability.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }
}

/// A hash of one word, the finalizer of SplitMix64.
fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A hash of a few words; their order counts.
pub(crate) fn hash(words: &[u64]) -> u64 {
    words
        .iter()
        .fold(0x243F_6A88_85A3_08D3, |h, &w| mixed(h.rotate_left(5).wrapping_add(0x9E37_79B9_7F4A_7C15) ^ w))
}

/// 53 bits as a number in `[0, 1)`.
pub(crate) fn to_unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// A hash of the bits of values: equal for equal rows, in a negligible number of cases for unequal ones.
pub(crate) fn hash_of_bits(values: &[f32]) -> u64 {
    let pairs = values
        .chunks(2)
        .map(|p| u64::from(p[0].to_bits()) << 32 | p.get(1).map_or(1, |v| u64::from(v.to_bits())));
    pairs.fold(hash(&[values.len() as u64]), |h, w| mixed(h.wrapping_mul(3) ^ w))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_below_a_bound_are_even() {
        let mut r = Random::new(7);
        let mut counts = [0u32; 6];
        (0..60_000).for_each(|_| counts[r.below(6) as usize] += 1);
        assert!(counts.iter().all(|c| (9_500..10_500).contains(c)), "{counts:?}");
        assert_eq!(r.below(0), 0);
    }

    #[test]
    fn hashes_differ_by_order_length_and_sign_of_zero() {
        assert_ne!(hash(&[1, 2]), hash(&[2, 1]));
        assert_ne!(hash_of_bits(&[0.0]), hash_of_bits(&[-0.0]));
        assert_ne!(hash_of_bits(&[0.0]), hash_of_bits(&[0.0, 0.0]));
        assert_ne!(hash_of_bits(&[1.0, 2.0, 3.0]), hash_of_bits(&[1.0, 3.0, 2.0]));
    }
}
