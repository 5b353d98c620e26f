//! The normaliser of Unigram tokenizers: a table that replaces the longest matching prefix, compiled into a
//! double-array trie.
//!
//! `tokenizer.ggml.precompiled_charsmap` is SentencePiece's format: the length of a double-array trie in
//! bytes, the trie, and the replacements, each terminated by a zero byte. A node of the trie is a word: bits
//! 0 to 7 and 31 are the byte of the edge that leads to it, bit 8 marks the end of a key, and bits 10 and up
//! are the offset of its children, shifted by 8 bits if bit 9 is set. The value of a key is the word at the
//! offset of the children: the offset of its replacement.

use super::TokenizerError;

/// A compiled table of replacements.
#[derive(Debug, Default)]
pub(super) struct Charsmap {
    nodes: Vec<u32>,
    replacements: Vec<u8>,
}

/// The bits of a node that identify its edge; no byte has bit 31, so words that are values match none.
const LABEL: u32 = 1 << 31 | 0xFF;
/// Maximum length of a replacement in bytes; those of NFKC have up to 33.
const LONGEST: usize = 1024;
/// A key ends here.
const LEAF: u32 = 1 << 8;

/// Offset of a node's children, relative to it.
fn base(node: u32) -> usize {
    ((node >> 10) << ((node & (1 << 9)) >> 6)) as usize
}

impl Charsmap {
    /// Parses the table; no bytes are an empty table.
    pub(super) fn new(bytes: &[u8]) -> Result<Charsmap, TokenizerError> {
        if bytes.is_empty() {
            return Ok(Charsmap::default());
        }
        let n_byte = bytes.len();
        let wrong = |what| TokenizerError::Charsmap { what, n_byte };
        let (head, rest) = bytes.split_first_chunk::<4>().ok_or_else(|| wrong("the length is missing"))?;
        let n_trie = u32::from_le_bytes(*head) as usize;
        if n_trie == 0 || n_trie % 4 != 0 {
            return Err(wrong("the trie is not a whole number of words"));
        }
        let (trie, replacements) =
            rest.split_at_checked(n_trie).ok_or_else(|| wrong("the trie is longer than the table"))?;
        if replacements.last() != Some(&0) {
            return Err(wrong("the replacements are not terminated"));
        }
        // Every replacement must be valid text.
        let is_text = |text: &[u8]| text.len() <= LONGEST && std::str::from_utf8(text).is_ok();
        if !replacements.split(|b| *b == 0).all(is_text) {
            return Err(wrong("a replacement is not UTF-8, or too long"));
        }
        let words = trie.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
        let charsmap = Charsmap { nodes: words.collect(), replacements: replacements.to_vec() };
        let values =
            charsmap.nodes.iter().enumerate().filter(|(_, node)| **node & LEAF != 0 && **node >> 31 == 0);
        for (i, node) in values {
            let value = charsmap.nodes.get(i ^ base(*node));
            let at = value.map_or(usize::MAX, |v| (v & !(1 << 31)) as usize);
            let is_inside_character = |b: &u8| *b & 0xC0 == 0x80;
            if charsmap.replacements.get(at).is_none_or(is_inside_character) {
                return Err(wrong("a key has no replacement"));
            }
        }
        Ok(charsmap)
    }

    /// The longest prefix of `text` in the table: its length in bytes, and its replacement.
    pub(super) fn longest_prefix(&self, text: &str) -> Option<(usize, &str)> {
        let mut at = base(*self.nodes.first()?);
        let mut found = None;
        for (i, byte) in text.bytes().enumerate() {
            at ^= usize::from(byte);
            let Some(node) = self.nodes.get(at).filter(|n| byte != 0 && **n & LABEL == u32::from(byte))
            else {
                break;
            };
            at ^= base(*node);
            if node & LEAF != 0 {
                found = Some((i + 1, at));
            }
        }
        // A key that ends inside a character has another encoding.
        let (n, at) = found.filter(|(n, _)| text.is_char_boundary(*n))?;
        let from = (self.nodes.get(at)? & !(1 << 31)) as usize;
        let rest = self.replacements.get(from..)?;
        let end = rest.iter().position(|b| *b == 0)?;
        Some((n, std::str::from_utf8(&rest[..end]).ok()?))
    }
}

/// Compiles a table in SentencePiece's format, for tests: every offset of children is tried in turn.
#[cfg(test)]
pub(super) fn compile(pairs: &[(&str, &str)]) -> Vec<u8> {
    use std::collections::BTreeMap;

    #[derive(Default)]
    struct Node {
        children: BTreeMap<u8, Node>,
        value: Option<u32>,
    }
    fn place(node: &Node, at: usize, words: &mut BTreeMap<usize, u32>, n_tried: &mut usize) {
        let labels: Vec<usize> =
            node.value.iter().map(|_| 0).chain(node.children.keys().map(|b| *b as usize)).collect();
        let fits =
            |offset: &usize| labels.iter().all(|l| *offset != 0 && !words.contains_key(&(at ^ offset ^ l)));
        // Larger offsets are multiples of 256.
        let offset = (1..1usize << 21).chain((1 << 21..1 << 29).step_by(256)).find(|o| {
            *n_tried += 1;
            fits(o)
        });
        let offset = offset.expect("there is room");
        let word = words.get_mut(&at).expect("the node has its place");
        *word |= if offset < 1 << 21 { (offset as u32) << 10 } else { (offset as u32) << 2 | 1 << 9 };
        let start = at ^ offset;
        if let Some(value) = node.value {
            *words.get_mut(&at).expect("as above") |= LEAF;
            words.insert(start, value | 1 << 31);
        }
        words.extend(node.children.keys().map(|b| (start ^ *b as usize, u32::from(*b))));
        node.children.iter().for_each(|(b, child)| place(child, start ^ *b as usize, words, n_tried));
    }

    let (mut root, mut replacements) = (Node::default(), Vec::new());
    for (from, to) in pairs {
        let leaf = from.bytes().fold(&mut root, |node, b| node.children.entry(b).or_default());
        leaf.value = Some(replacements.len() as u32);
        replacements.extend_from_slice(to.as_bytes());
        replacements.push(0);
    }
    let mut words = BTreeMap::from([(0, 0)]);
    place(&root, 0, &mut words, &mut 0);
    let n = (words.keys().next_back().expect("the root") + 1).next_multiple_of(256);
    let mut out = (4 * n as u32).to_le_bytes().to_vec();
    (0..n).for_each(|i| out.extend(words.get(&i).copied().unwrap_or(0).to_le_bytes()));
    out.extend(replacements);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIRS: &[(&str, &str)] = &[
        ("ﬁ", "fi"),
        ("Ａ", "A"),
        ("e\u{301}", "é"),
        ("e", "e"),
        ("\u{200b}", ""),
        ("\t", " "),
        ("ㄱㅏ", "가"),
    ];

    #[test]
    fn the_longest_key_is_replaced() {
        let map = Charsmap::new(&compile(PAIRS)).expect("a table");
        for (from, to) in PAIRS {
            assert_eq!(map.longest_prefix(&format!("{from}x")), Some((from.len(), *to)), "{from:?}");
        }
        assert_eq!(map.longest_prefix("ㄱㄱ"), None);
        assert_eq!(map.longest_prefix("xﬁ"), None);
        assert_eq!(map.longest_prefix(""), None);
        assert_eq!(Charsmap::new(&[]).expect("none").longest_prefix("ﬁ"), None);
    }

    #[test]
    fn damaged_tables_are_errors_and_never_panics() {
        let whole = compile(PAIRS);
        for n in [1, 3, 4, 7, whole.len() - 1] {
            assert!(Charsmap::new(&whole[..n]).is_err(), "{n} bytes");
        }
        // Every byte of the header and some of the rest, in turn.
        for i in (0..whole.len()).filter(|i| *i < 64 || i % 13 == 0) {
            let mut bytes = whole.clone();
            bytes[i] ^= 0xFF;
            if let Ok(map) = Charsmap::new(&bytes) {
                for (from, _) in PAIRS {
                    let n = map.longest_prefix(from).map_or(0, |found| found.0);
                    assert!(from.is_char_boundary(n), "byte {i}, {from:?}");
                }
            }
        }
    }
}
