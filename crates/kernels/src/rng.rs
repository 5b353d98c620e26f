//! Deterministic random numbers for inputs of test cases.

/// A generator seeded explicitly (splitmix64), or a replay of recorded choices.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
    choices: Option<std::vec::IntoIter<u32>>,
}

impl Rng {
    /// A generator.
    pub const fn new(seed: u64) -> Self {
        let state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03;
        Rng { state, choices: None }
    }

    /// A generator that replays these numbers, then zeros: fewer and smaller numbers make smaller cases, so a property
    /// test can shrink a failure.
    pub fn of_choices(choices: Vec<u32>) -> Self {
        Rng { state: 0, choices: Some(choices.into_iter()) }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        if let Some(choices) = &mut self.choices {
            return u64::from(choices.next().unwrap_or(0)) << 32;
        }
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u32) -> u32 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u32
    }

    /// A number from `low` to `high`.
    pub fn range(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * ((self.bits() >> 40) as f32 / 16_777_216.0)
    }

    /// One of the values.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u32) as usize]
    }
}

/// `n` values in [-1, 1) that depend on `seed` alone, about one in a hundred an outlier of up to 30.
pub fn random_values(seed: u64, n: usize) -> Vec<f32> {
    let mut rng = Rng::new(seed);
    (0..n)
        .map(|_| {
            let z = rng.bits();
            let u = (z >> 40) as f32 / 8_388_608.0 - 1.0;
            if z & 0x7f == 0 { u * 30.0 } else { u }
        })
        .collect()
}
