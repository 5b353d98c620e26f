//! Mixes of requests.

/// Which requests come.
#[derive(Copy, Clone, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mix {
    /// Chats: 256 tokens in, 128 out
    A,
    /// Documents with questions: 2048 in, 256 out
    B,
    /// One long prompt, 16384 in and 64 out, for each seven of `a`
    C,
    /// Agents: 8 groups that share 4096 tokens, with 200 of their own, 100 out
    D,
    /// Chats that are left after 5 tokens, 3 of 10
    G,
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) prompt: Vec<u32>,
    pub(crate) n_out: usize,
    /// The client leaves after so many pieces.
    pub(crate) leaves_after: Option<usize>,
    /// One of those whose times count.
    pub(crate) counts: bool,
}

/// Random numbers from a seed (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to 1, without 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn tokens(&mut self, n: usize, vocab: u32) -> Vec<u32> {
        // The first ids are control tokens in most vocabularies.
        let first = 300.min(vocab / 4);
        (0..n).map(|_| first + (self.next() % u64::from((vocab - first).max(1))) as u32).collect()
    }
}

impl Mix {
    /// `n` requests. `n_in` and `n_out` replace the lengths of ordinary ones.
    pub(crate) fn jobs(
        self,
        n: usize,
        seed: u64,
        vocab: u32,
        n_in: Option<usize>,
        n_out: Option<usize>,
    ) -> Vec<Job> {
        let mut random = Random::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let (default_in, default_out) = match self {
            Mix::A | Mix::C | Mix::G => (256, 128),
            Mix::B => (2048, 256),
            Mix::D => (4296, 100),
        };
        let (n_in, n_out) = (n_in.unwrap_or(default_in), n_out.unwrap_or(default_out));
        let groups: Vec<Vec<u32>> = (0..8).map(|_| random.tokens(n_in.saturating_sub(200), vocab)).collect();
        let job = |i: usize| {
            let mut job = Job { prompt: Vec::new(), n_out, leaves_after: None, counts: true };
            match self {
                Mix::D => {
                    job.prompt = groups[i % groups.len()].clone();
                    job.prompt.extend(random.tokens(200, vocab));
                }
                Mix::C if i % 8 == 0 => {
                    job.prompt = random.tokens(16384, vocab);
                    (job.n_out, job.counts) = (64, false);
                }
                _ => job.prompt = random.tokens(n_in, vocab),
            }
            if self == Mix::G && random.next() % 10 < 3 {
                (job.leaves_after, job.counts) = (Some(5), false);
            }
            job
        };
        (0..n).map(job).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_requests_with_the_lengths_of_the_mix() {
        let jobs = |mix: Mix, seed| mix.jobs(16, seed, 2000, None, None);
        let prompts = |mix, seed| jobs(mix, seed).into_iter().map(|job| job.prompt).collect::<Vec<_>>();
        assert_eq!(prompts(Mix::A, 1), prompts(Mix::A, 1));
        assert_ne!(prompts(Mix::A, 1), prompts(Mix::A, 2));
        assert!(jobs(Mix::A, 1).iter().all(|job| job.prompt.len() == 256 && job.n_out == 128));
        assert_eq!(jobs(Mix::C, 1).iter().filter(|job| job.prompt.len() == 16384).count(), 2);
        let agents = prompts(Mix::D, 1);
        assert_eq!(agents[0][..4096], agents[8][..4096]);
        assert_ne!(agents[0][4096..], agents[8][4096..]);
        assert!(agents.iter().flatten().all(|token| (300..2000).contains(token)));
    }
}
