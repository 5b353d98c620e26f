//! Drives the body of a fuzz target with random changes of its seeds, for some seconds: no panic, and none that takes
//! long. The tests `random` of the crates include this file; coverage-guided fuzzing runs the same bodies for longer.

use std::path::Path;
use std::time::{Duration, Instant};

/// Time of each target, in seconds, unless `CHASKI_FUZZ_SECONDS` sets it.
const SECONDS: u64 = 1;
/// The same with `CHASKI_TEST_FULL`.
const SECONDS_FULL: u64 = 30;
/// One execution may take this long on a busy machine; the limits of templates and grammars are far below.
const LONG: Duration = Duration::from_secs(30);
/// Numbers that lengths, counts and offsets of binary formats are replaced with.
const NUMBERS: [u64; 10] = [0, 1, 2, 31, 0xff, 0x7fff_ffff, 0xffff_ffff, 1 << 32, i64::MAX as u64, u64::MAX];

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n.max(1)
    }

    /// A piece of `bytes`.
    fn piece<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let start = self.below(bytes.len() + 1);
        let n = self.below((bytes.len() - start).min(40) + 1);
        &bytes[start..start + n]
    }
}

/// A seed after some changes: pieces of it and of another one removed, doubled, moved and overwritten.
fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..1 + random.below(6) {
        let at = random.below(bytes.len() + 1);
        match random.below(6) {
            0 => {
                let end = at + random.below((bytes.len() - at).min(30) + 1);
                bytes.drain(at..end);
            }
            1 => {
                let other = random.below(seeds.len());
                let piece = random.piece(&seeds[other]).to_vec();
                bytes.splice(at..at, piece);
            }
            2 => {
                let piece = random.piece(&bytes).repeat(1 + random.below(30));
                bytes.splice(at..at, piece);
            }
            3 if at < bytes.len() => bytes[at] = random.below(256) as u8,
            4 => {
                let number = NUMBERS[random.below(NUMBERS.len())].to_le_bytes();
                let n = [2, 4, 8][random.below(3)].min(bytes.len() - at);
                bytes[at..at + n].copy_from_slice(&number[..n]);
            }
            _ => {
                let signs = b"{}[]()|'\"\\%#-+*~.:=,\n 019azA_$/<>&\0\xc3\xa9";
                bytes.insert(at, signs[random.below(signs.len())]);
            }
        }
        bytes.truncate(1 << 14);
    }
    bytes
}

/// A number in the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs a target with its seeds, `fuzz/seeds/NAME`, and with changes of them.
pub(crate) fn drive(name: &str, body: fn(&[u8])) {
    // The tests of a crate run in its folder.
    let folder = Path::new("../../fuzz/seeds").join(name);
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert!(!seeds.is_empty());
    seeds.iter().for_each(|seed| body(seed));
    let is_full = std::env::var_os("CHASKI_TEST_FULL").is_some();
    let seconds = if is_full { SECONDS_FULL } else { SECONDS };
    let seconds = number("CHASKI_FUZZ_SECONDS").unwrap_or(seconds);
    let mut random = Random(0x9E37_79B9_7F4A_7C15 ^ number("CHASKI_FUZZ_SEED").unwrap_or(1));
    let (started, mut n) = (Instant::now(), 0u64);
    let mut longest = Duration::ZERO;
    while started.elapsed() < Duration::from_secs(seconds) {
        let bytes = mutated(&seeds, &mut random);
        let begun = Instant::now();
        if let Err(cause) = std::panic::catch_unwind(|| body(&bytes)) {
            let path = std::env::temp_dir().join(format!("chaski-{name}.bin"));
            std::fs::write(&path, &bytes).unwrap();
            panic!("{name}: {cause:?}; the input is in {}", path.display());
        }
        let took = begun.elapsed();
        assert!(took < LONG, "{name} took {took:?}: {:?}", String::from_utf8_lossy(&bytes));
        longest = longest.max(took);
        n += 1;
    }
    say(&format!("{name}: {n} executions in {seconds} s, the longest {longest:.1?}"));
}

/// Prints a line past the test harness, which captures only what macros print.
fn say(line: &str) {
    use std::io::Write;
    writeln!(std::io::stderr(), "{line}").expect("stderr can be written");
}
