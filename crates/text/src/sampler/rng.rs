//! The random numbers of C++'s `std::mt19937`, so that a seed gives the same results as in other programs.

/// Mersenne Twister, 32 bits.
///
/// # Source
///
/// M. Matsumoto and T. Nishimura, "Mersenne Twister", ACM TOMACS 8 (1998); C++ standard, `rand.predef`.
#[derive(Clone, Debug)]
pub(super) struct Mt19937 {
    state: Vec<u32>,
    index: usize,
}

const N: usize = 624;
const M: usize = 397;

impl Mt19937 {
    pub(super) fn new(seed: u32) -> Mt19937 {
        let mut state = Vec::with_capacity(N);
        let mut last = seed;
        state.push(last);
        for index in 1..N as u32 {
            last = 1_812_433_253u32.wrapping_mul(last ^ (last >> 30)).wrapping_add(index);
            state.push(last);
        }
        Mt19937 { state, index: N }
    }

    pub(super) fn next_u32(&mut self) -> u32 {
        if self.index == N {
            self.twist();
        }
        let mut y = self.state[self.index];
        self.index += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    fn twist(&mut self) {
        for i in 0..N {
            let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % N] & 0x7fff_ffff);
            let mask = if y & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + M) % N] ^ (y >> 1) ^ mask;
        }
        self.index = 0;
    }

    /// Uniform in `[0, 1)`, from two numbers, as `std::uniform_real_distribution<double>` in libstdc++.
    pub(super) fn next_f64(&mut self) -> f64 {
        const TWO_32: f64 = 4_294_967_296.0;
        let low = f64::from(self.next_u32());
        let x = (low + f64::from(self.next_u32()) * TWO_32) / (TWO_32 * TWO_32);
        x.min(1.0 - f64::EPSILON / 2.0)
    }

    /// Uniform in `[0, 1)`, from one number, as `std::uniform_real_distribution<float>` in libstdc++.
    pub(super) fn next_f32(&mut self) -> f32 {
        let x = self.next_u32() as f32 / 4_294_967_296.0;
        x.min(1.0 - f32::EPSILON / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_standard() {
        // The C++ standard gives the 10000th number of the default seed.
        let mut rng = Mt19937::new(5489);
        assert_eq!(rng.next_u32(), 3_499_211_612);
        for _ in 0..9998 {
            rng.next_u32();
        }
        assert_eq!(rng.next_u32(), 4_123_659_995);
    }

    #[test]
    fn fractions_are_below_one() {
        let mut rng = Mt19937::new(1);
        for _ in 0..10_000 {
            assert!((0.0..1.0).contains(&rng.next_f64()));
            assert!((0.0..1.0).contains(&rng.next_f32()));
        }
    }
}
