//! Compression of texts: LZ77 matches, with every decision coded by an adaptive binary arithmetic coder. The build
//! script compresses the templates for browsers.

/// Contexts of a literal: the previous byte.
const N_BEFORE: usize = 256;
/// Shortest match.
pub(crate) const SHORTEST: usize = 3;
/// Adaptation: a probability is the mean of at most this many bits.
const MEMORY: u16 = 60;

/// Probability of a 1 bit in 65536ths, and the number of bits seen.
#[derive(Clone, Copy)]
pub(crate) struct Chance(u16, u16);

/// Encoder or decoder of bits: an encoder takes `bit` and returns it, a decoder returns the decoded bit.
pub(crate) trait Coder {
    fn bit(&mut self, chance: &mut Chance, bit: bool) -> bool;
}

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Literal(u8),
    /// A copy of earlier bytes.
    Match {
        n_byte: usize,
        distance: usize,
    },
}

/// Probabilities by context.
pub(crate) struct Model {
    is_match: [Chance; 2],
    is_again: Chance,
    literal: Vec<Chance>,
    length: [Vec<Chance>; 2],
    n_bit: [Vec<Chance>; 4],
    high: Vec<Chance>,
    low: Vec<Chance>,
    after_match: bool,
    last: usize,
}

impl Chance {
    /// In 65536ths, strictly between 0 and 1.
    fn of_one(self) -> u32 {
        u32::from(self.0).clamp(32, 65535 - 32)
    }

    fn learn(&mut self, bit: bool) {
        let target = if bit { 65535 } else { 0 };
        let step = (target - i32::from(self.0)) * 2 / (2 * i32::from(self.1) + 3);
        self.0 = (i32::from(self.0) + step) as u16;
        self.1 = (self.1 + 1).min(MEMORY);
    }
}

/// A number of `n_bit` bits, highest first, each in the context of the previous ones.
fn number(coder: &mut impl Coder, chances: &mut [Chance], n_bit: u32, value: usize) -> usize {
    let mut seen = 1;
    for i in (0..n_bit).rev() {
        seen = 2 * seen + usize::from(coder.bit(&mut chances[seen], value >> i & 1 == 1));
    }
    seen - (1 << n_bit)
}

impl Model {
    pub(crate) fn new() -> Model {
        let half = Chance(1 << 15, 0);
        let tree = |n_bit: u32| vec![half; 1 << n_bit];
        Model {
            is_match: [half; 2],
            is_again: half,
            literal: vec![half; N_BEFORE << 8],
            length: [tree(8), tree(8)],
            n_bit: [tree(5), tree(5), tree(5), tree(5)],
            high: vec![half; 32 << 3],
            low: tree(4),
            after_match: false,
            last: 1,
        }
    }

    /// Encodes `part`, or decodes one and ignores the argument. `before` is the previous byte.
    pub(crate) fn part(&mut self, coder: &mut impl Coder, before: u8, part: Part) -> Part {
        let (byte, n_byte, distance) = match part {
            Part::Literal(byte) => (byte, 0, self.last),
            Part::Match { n_byte, distance } => (0, n_byte - SHORTEST, distance),
        };
        let is_match = matches!(part, Part::Match { .. });
        if !coder.bit(&mut self.is_match[usize::from(self.after_match)], is_match) {
            self.after_match = false;
            let chances = &mut self.literal[usize::from(before) << 8..][..256];
            return Part::Literal(number(coder, chances, 8, byte.into()) as u8);
        }
        self.after_match = true;
        let again = coder.bit(&mut self.is_again, distance == self.last);
        let n_byte = number(coder, &mut self.length[usize::from(again)], 8, n_byte);
        if !again {
            self.last = self.distance(coder, n_byte, distance);
        }
        Part::Match { n_byte: n_byte + SHORTEST, distance: self.last }
    }

    /// Contexts model the bit length of a distance, its three highest bits and its four lowest.
    fn distance(&mut self, coder: &mut impl Coder, n_byte: usize, distance: usize) -> usize {
        let n_bit = number(coder, &mut self.n_bit[n_byte.min(3)], 5, distance.ilog2() as usize) as u32;
        let n_high = n_bit.min(3);
        let high = &mut self.high[(n_bit as usize) << 3..][..8];
        let mut out = (1 << n_high)
            | number(coder, high, n_high, distance >> (n_bit - n_high) & 7 & ((1 << n_high) - 1));
        let rest = n_bit - n_high;
        for i in (rest.min(4)..rest).rev() {
            out = 2 * out + usize::from(coder.bit(&mut Chance(1 << 15, MEMORY), distance >> i & 1 == 1));
        }
        let n_low = rest.min(4);
        (out << n_low) | number(coder, &mut self.low, n_low, distance & ((1 << n_low) - 1))
    }
}

/// The interval of the arithmetic coder, both ends included.
pub(crate) struct Interval {
    pub(crate) low: u32,
    pub(crate) high: u32,
}

impl Interval {
    pub(crate) const ALL: Interval = Interval { low: 0, high: u32::MAX };

    /// End of the subinterval for 1.
    pub(crate) fn split(&self, chance: Chance) -> u32 {
        self.low + ((u64::from(self.high - self.low) * u64::from(chance.of_one())) >> 16) as u32
    }

    /// Continues in one of the subintervals; `byte` is called for each byte that is determined.
    pub(crate) fn choose(&mut self, chance: &mut Chance, bit: bool, mut byte: impl FnMut(u8)) {
        let middle = self.split(*chance);
        match bit {
            true => self.high = middle,
            false => self.low = middle + 1,
        }
        chance.learn(bit);
        while (self.low ^ self.high) >> 24 == 0 {
            byte((self.high >> 24) as u8);
            self.low <<= 8;
            self.high = self.high << 8 | 255;
        }
    }
}

struct Reader<'p> {
    packed: std::slice::Iter<'p, u8>,
    interval: Interval,
    at: u32,
}

impl Reader<'_> {
    fn byte(packed: &mut std::slice::Iter<'_, u8>) -> u32 {
        packed.next().map_or(0, |b| u32::from(*b))
    }
}

impl Coder for Reader<'_> {
    fn bit(&mut self, chance: &mut Chance, _: bool) -> bool {
        let bit = self.at <= self.interval.split(*chance);
        let (packed, at) = (&mut self.packed, &mut self.at);
        self.interval.choose(chance, bit, |_| *at = *at << 8 | Reader::byte(packed));
        bit
    }
}

/// Decompresses to `n_byte` bytes.
pub(crate) fn unpack(packed: &[u8], n_byte: usize) -> Vec<u8> {
    let mut reader = Reader { packed: packed.iter(), interval: Interval::ALL, at: 0 };
    for _ in 0..4 {
        reader.at = reader.at << 8 | Reader::byte(&mut reader.packed);
    }
    let (mut model, mut out) = (Model::new(), Vec::with_capacity(n_byte));
    while out.len() < n_byte {
        let before = out.last().copied().unwrap_or_default();
        match model.part(&mut reader, before, Part::Literal(0)) {
            Part::Literal(byte) => out.push(byte),
            Part::Match { n_byte, distance } => {
                for _ in 0..n_byte {
                    out.push(out[out.len() - distance]);
                }
            }
        }
    }
    out
}
