//! Mixes of requests.

use std::time::Duration;

use serde_json::{Value, json};

/// Which requests come.
#[derive(Copy, Clone, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mix {
    /// Chats: 256 tokens in, 128 out
    A,
    /// Documents with questions: 2048 in, 256 out
    B,
    /// One long prompt, 16384 in and 64 out, for each seven of `a`
    C,
    /// Agents: 8 groups that share 4096 tokens, with 200 of their own, 100 out, a second between two requests; the
    /// first of a group does not count
    D,
    /// Chats whose answers have a JSON schema
    E,
    /// Chats of four times as many users, who come again after a refusal
    F,
    /// Chats that are left after 5 tokens, 3 of 10
    G,
    /// All others in turns, their lengths in proportion to those of a chat
    H,
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
    /// The answer has the schema of [`schema`].
    pub(crate) is_structured: bool,
}

/// A schema whose values have few tokens.
pub(crate) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "color": {"enum": ["red", "green", "blue"]},
            "is_big": {"type": "boolean"},
            "name": {"type": "string", "maxLength": 8},
        },
        "required": ["color", "is_big", "name"],
        "additionalProperties": false,
    })
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
        if self == Mix::H {
            return in_turns(n, &mut random, vocab, n_in.unwrap_or(256), n_out.unwrap_or(128));
        }
        let (default_in, default_out) = match self {
            Mix::B => (2048, 256),
            Mix::D => (4296, 100),
            _ => (256, 128),
        };
        let (n_in, n_out) = (n_in.unwrap_or(default_in), n_out.unwrap_or(default_out));
        let lengths = Lengths { n_in, n_out, n_long: 16384, n_long_out: 64, n_own: 200.min(n_in) };
        let groups: Vec<Vec<u32>> = (0..8).map(|_| random.tokens(n_in - lengths.n_own, vocab)).collect();
        (0..n).map(|i| self.job(i, &mut random, vocab, &lengths, &groups)).collect()
    }

    /// Time that a user takes between an answer and the next request.
    pub(crate) fn pause(self) -> Duration {
        if self == Mix::D { Duration::from_secs(1) } else { Duration::ZERO }
    }

    /// The request with this number.
    fn job(self, i: usize, random: &mut Random, vocab: u32, lengths: &Lengths, groups: &[Vec<u32>]) -> Job {
        let (n_out, is_structured) = (lengths.n_out, self == Mix::E);
        let mut job = Job { prompt: Vec::new(), n_out, leaves_after: None, counts: true, is_structured };
        match self {
            Mix::D => {
                job.prompt = groups[i % groups.len()].clone();
                job.prompt.extend(random.tokens(lengths.n_own, vocab));
                // The first of a group computes what the others share.
                job.counts = i >= groups.len();
            }
            Mix::C if i % 8 == 0 => {
                job.prompt = random.tokens(lengths.n_long, vocab);
                (job.n_out, job.counts) = (lengths.n_long_out, false);
            }
            _ => job.prompt = random.tokens(lengths.n_in, vocab),
        }
        if self == Mix::G && random.next() % 10 < 3 {
            (job.leaves_after, job.counts) = (Some(5), false);
        }
        job
    }
}

/// Tokens of requests.
struct Lengths {
    n_in: usize,
    n_out: usize,
    /// Those of a long prompt, and of the answer to it.
    n_long: usize,
    n_long_out: usize,
    /// Those that an agent does not share.
    n_own: usize,
}

/// Requests of all mixes in turns, the lengths in proportion to those of a chat.
fn in_turns(n: usize, random: &mut Random, vocab: u32, n_in: usize, n_out: usize) -> Vec<Job> {
    let n_own = (n_in * 25 / 32).max(1);
    let chats = Lengths { n_in, n_out, n_long: 64 * n_in, n_long_out: n_out.div_ceil(2), n_own };
    let documents = Lengths { n_in: 8 * n_in, n_out: 2 * n_out, ..chats };
    let groups: Vec<Vec<u32>> = (0..8).map(|_| random.tokens(16 * n_in, vocab)).collect();
    const TURNS: [Mix; 7] = [Mix::A, Mix::B, Mix::C, Mix::D, Mix::E, Mix::F, Mix::G];
    let job = |i: usize| {
        let mix = TURNS[i % TURNS.len()];
        let lengths = if mix == Mix::B { &documents } else { &chats };
        mix.job(i / TURNS.len(), random, vocab, lengths, &groups)
    };
    (0..n).map(job).collect()
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
        assert_eq!(jobs(Mix::D, 1).iter().filter(|job| job.counts).count(), 8);
        assert!(agents.iter().flatten().all(|token| (300..2000).contains(token)));
    }

    #[test]
    fn all_mixes_come_in_turns_in_proportion() {
        let jobs = Mix::H.jobs(7 * 16, 1, 2000, Some(4), Some(8));
        let lengths =
            |at: usize| -> Vec<usize> { jobs[at..].iter().step_by(7).map(|job| job.prompt.len()).collect() };
        assert!(lengths(0).iter().all(|n| *n == 4) && lengths(1).iter().all(|n| *n == 32));
        assert_eq!(lengths(2).iter().filter(|n| **n == 256).count(), 2);
        assert!(lengths(3).iter().all(|n| *n == 64 + 3));
        assert_eq!(jobs.iter().filter(|job| job.is_structured).count(), 16);
        assert!(jobs.iter().any(|job| job.leaves_after.is_some()));
    }
}
