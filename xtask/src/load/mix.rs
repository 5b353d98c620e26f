//! Mixes of requests.

use std::time::Duration;

use serde_json::{Value, json};

use super::level::Level;

/// Which requests come.
#[derive(Copy, Clone, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mix {
    /// Chats: 256 tokens in, 128 out
    A,
    /// Documents with questions: 2048 in, 256 out
    B,
    /// One long prompt, 16384 in and 64 out, for each seven of `a`; in proportion with --prompt and --output
    C,
    /// Agents: conversations of 10 turns in 8 groups that share 4096 tokens; each turn adds 200 tokens to the
    /// conversation so far, answers and all, 100 out, a second between two turns; first turns do not count
    D,
    /// Chats whose answers have a JSON schema
    E,
    /// A burst of chats: for ten seconds four times as many a second as the users get answered (or as --rate), none of
    /// which is sent again; then single requests until one is served as before
    F,
    /// Chats that are left after 5 tokens, 3 of 10
    G,
    /// All others in turns, their lengths in proportion to those of a chat; for half an hour, without --requests
    H,
}

/// Turns of a conversation of agents.
const TURNS: usize = 10;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// The prompt; of a further turn, the tokens that it adds.
    pub(crate) prompt: Vec<u32>,
    /// The job before it, and the answer to that, come first in the prompt.
    pub(crate) is_turn: bool,
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
    /// Requests of a measurement at `level` that no option limits. Agents have at least a conversation of each group.
    pub(crate) fn n_request(self, level: Level, seconds: f64) -> usize {
        match (self, level) {
            (Mix::D, Level::Users(users)) => TURNS * users.max(N_GROUP),
            _ => level.n_request(seconds),
        }
    }

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
            Mix::B => (2048, 256),
            Mix::D => (4296, 100),
            _ => (256, 128),
        };
        let (n_in, n_out) = (n_in.unwrap_or(default_in), n_out.unwrap_or(default_out));
        if self == Mix::H {
            return in_turns(n, &mut random, vocab, n_in, n_out);
        }
        let n_own = 200.min(n_in.div_ceil(21));
        let lengths = Lengths { n_in, n_out, n_long: 64 * n_in, n_long_out: n_out.div_ceil(2), n_own };
        if self == Mix::D {
            let groups = groups(&mut random, n_in - lengths.n_own, vocab);
            let talks =
                (0..n.div_ceil(TURNS)).flat_map(|i| conversation(i, &mut random, vocab, &lengths, &groups));
            return talks.take(n).collect();
        }
        (0..n).map(|i| self.job(i, &mut random, vocab, &lengths)).collect()
    }

    /// Requests without those that the times of others are to be free of: of `c` the chats alone, of `d` the new tokens
    /// of further turns. `e` is compared with chats. `None` for other mixes.
    pub(crate) fn alone(self, jobs: &[Job], seed: u64, vocab: u32) -> Option<Vec<Job>> {
        // Other tokens, so that nothing is cached.
        let mut random = Random::new(seed ^ 0x5851_f42d_4c95_7f2d);
        let mut fresh = |job: &Job| Job {
            prompt: random.tokens(job.prompt.len(), vocab),
            is_turn: false,
            is_structured: false,
            ..job.clone()
        };
        match self {
            Mix::C | Mix::D | Mix::E => Some(jobs.iter().filter(|job| job.counts).map(&mut fresh).collect()),
            _ => None,
        }
    }

    /// Time that a user takes between an answer and the next request.
    pub(crate) fn pause(self) -> Duration {
        if self == Mix::D { Duration::from_secs(1) } else { Duration::ZERO }
    }

    /// The request with this number, of any mix but that of agents.
    fn job(self, i: usize, random: &mut Random, vocab: u32, lengths: &Lengths) -> Job {
        let is_long = self == Mix::C && i.is_multiple_of(8);
        let (n_in, n_out) = match is_long {
            true => (lengths.n_long, lengths.n_long_out),
            false => (lengths.n_in, lengths.n_out),
        };
        let prompt = random.tokens(n_in, vocab);
        let leaves = self == Mix::G && random.next() % 10 < 3;
        Job {
            prompt,
            is_turn: false,
            n_out,
            leaves_after: leaves.then_some(5),
            counts: !is_long && !leaves,
            is_structured: self == Mix::E,
        }
    }
}

/// Tokens of requests.
struct Lengths {
    n_in: usize,
    n_out: usize,
    /// Those of a long prompt, and of the answer to it.
    n_long: usize,
    n_long_out: usize,
    /// Those that a turn of an agent adds.
    n_own: usize,
}

/// Groups of agents.
const N_GROUP: usize = 8;

/// Tokens that the agents of a group share.
fn groups(random: &mut Random, n: usize, vocab: u32) -> Vec<Vec<u32>> {
    (0..N_GROUP).map(|_| random.tokens(n, vocab)).collect()
}

/// The conversation with this number: the tokens of its group, and a turn of its own after the other.
fn conversation(
    i: usize,
    random: &mut Random,
    vocab: u32,
    lengths: &Lengths,
    groups: &[Vec<u32>],
) -> Vec<Job> {
    let turn = |turn: usize| {
        let mut prompt = if turn == 0 { groups[i % groups.len()].clone() } else { Vec::new() };
        prompt.extend(random.tokens(lengths.n_own, vocab));
        let (n_out, is_turn) = (lengths.n_out, turn > 0);
        Job { prompt, is_turn, n_out, leaves_after: None, counts: is_turn, is_structured: false }
    };
    (0..TURNS).map(turn).collect()
}

/// Requests of all mixes in turns, the lengths in proportion to those of a chat: ten of each other mix, and then a
/// conversation.
fn in_turns(n: usize, random: &mut Random, vocab: u32, n_in: usize, n_out: usize) -> Vec<Job> {
    const OTHERS: [Mix; 6] = [Mix::A, Mix::B, Mix::C, Mix::E, Mix::F, Mix::G];
    let n_own = (n_in * 25 / 32).max(1);
    let chats = Lengths { n_in, n_out, n_long: 64 * n_in, n_long_out: n_out.div_ceil(2), n_own };
    let documents = Lengths { n_in: 8 * n_in, n_out: 2 * n_out, ..chats };
    let groups = groups(random, 16 * n_in, vocab);
    let mut jobs = Vec::new();
    for round in 0.. {
        if jobs.len() >= n {
            break;
        }
        for i in 0..TURNS * OTHERS.len() {
            let mix = OTHERS[i % OTHERS.len()];
            let lengths = if mix == Mix::B { &documents } else { &chats };
            jobs.push(mix.job(round * TURNS + i / OTHERS.len(), random, vocab, lengths));
        }
        jobs.extend(conversation(round, random, vocab, &chats, &groups));
    }
    jobs.truncate(n);
    jobs
}

/// True for an answer with the schema of [`schema`].
pub(crate) fn has_schema(text: &str) -> bool {
    let Ok(Value::Object(found)) = serde_json::from_str(text) else { return false };
    let is = |name: &str, test: fn(&Value) -> bool| found.get(name).is_some_and(test);
    found.len() == 3
        && is("color", |color| ["red", "green", "blue"].iter().any(|known| color == known))
        && is("is_big", Value::is_boolean)
        && is("name", |name| name.as_str().is_some_and(|name| name.chars().count() <= 8))
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
        assert!(jobs(Mix::B, 1).iter().all(|job| job.prompt.len() == 2048 && job.n_out == 256));
        assert_eq!(
            jobs(Mix::C, 1).iter().filter(|job| job.prompt.len() == 16384 && job.n_out == 64).count(),
            2
        );
        let short = Mix::C.jobs(8, 1, 2000, Some(4), Some(8));
        assert_eq!((short[0].prompt.len(), short[0].n_out, short[1].prompt.len()), (256, 4, 4));
        assert!(prompts(Mix::C, 1).iter().flatten().all(|token| (300..2000).contains(token)));
        let leave = Mix::G.jobs(1000, 1, 2000, Some(4), None);
        let n_leave = leave.iter().filter(|job| job.leaves_after == Some(5)).count();
        assert!((250..350).contains(&n_leave), "{n_leave} of 1000");
    }

    #[test]
    fn agents_have_ten_turns_after_what_their_group_shares() {
        let jobs = Mix::D.jobs(165, 1, 2000, None, None);
        assert_eq!(jobs.len(), 165);
        for (i, job) in jobs.iter().enumerate() {
            assert_eq!((job.is_turn, job.counts), (i % 10 > 0, i % 10 > 0));
            assert_eq!((job.prompt.len(), job.n_out), (if i % 10 > 0 { 200 } else { 4296 }, 100));
        }
        assert_eq!(jobs[0].prompt[..4096], jobs[80].prompt[..4096]);
        assert_ne!(jobs[0].prompt[4096..], jobs[80].prompt[4096..]);
        assert_ne!(jobs[0].prompt[..4096], jobs[10].prompt[..4096]);
        assert_eq!([1, 20].map(|n| Mix::D.n_request(Level::Users(n), 0.0)), [80, 200]);
    }

    #[test]
    fn what_a_mix_is_compared_with_has_tokens_of_its_own() {
        let of = |mix: Mix| (mix.jobs(40, 1, 2000, None, None), mix);
        let alone = |(jobs, mix): &(Vec<Job>, Mix)| mix.alone(jobs, 1, 2000);
        let (chats, long) = (alone(&of(Mix::E)).unwrap(), alone(&of(Mix::C)).unwrap());
        assert!(chats.iter().all(|job| job.prompt.len() == 256 && !job.is_structured));
        assert_eq!((long.len(), long.iter().all(|job| job.prompt.len() == 256)), (35, true));
        let turns = alone(&of(Mix::D)).unwrap();
        assert_eq!(
            (turns.len(), turns.iter().all(|job| job.prompt.len() == 200 && !job.is_turn)),
            (36, true)
        );
        assert!(alone(&of(Mix::A)).is_none());
        assert_ne!(turns[0].prompt, of(Mix::D).0[1].prompt);
    }

    #[test]
    fn all_mixes_come_in_turns_in_proportion() {
        let jobs = Mix::H.jobs(2 * 70, 1, 2000, Some(4), Some(8));
        let others = jobs.chunks(70).flat_map(|round| round[..60].iter().enumerate());
        let of = |at: usize| others.clone().filter(move |(i, _)| i % 6 == at).map(|(_, job)| job);
        assert!(of(0).all(|job| job.prompt.len() == 4) && of(1).all(|job| job.prompt.len() == 32));
        assert_eq!(of(2).filter(|job| job.prompt.len() == 256 && !job.counts).count(), 3);
        assert_eq!(of(3).filter(|job| job.is_structured).count(), 20);
        assert!(of(5).any(|job| job.leaves_after.is_some()));
        let talk: Vec<usize> = jobs[60..70].iter().map(|job| job.prompt.len()).collect();
        assert_eq!(talk, [64 + 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]);
        assert_eq!(jobs.iter().filter(|job| job.is_turn).count(), 18);
    }

    #[test]
    fn answers_have_the_schema_or_not() {
        assert!(has_schema(r#"{"color": "red", "is_big": true, "name": ""}"#));
        for other in [
            r#"{"color": "black", "is_big": true, "name": ""}"#,
            r#"{"color": "red", "is_big": 1, "name": ""}"#,
            r#"{"color": "red", "is_big": true, "name": "far too long"}"#,
            r#"{"color": "red", "is_big": true}"#,
            r#"{"color": "red", "is_big": true, "name": "", "more": 1}"#,
            r#"{"color": "red", "is_big""#,
            "[]",
        ] {
            assert!(!has_schema(other), "{other}");
        }
    }
}
