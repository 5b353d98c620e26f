//! SentencePiece's Unigram (`tokenizer.ggml.model` = `t5`): the most probable tokenization of a text.

use super::charsmap::Charsmap;
use super::vocab::Vocab;
use super::words::{Seen, WordBounds};
use super::{TokenKind, TokenizerError, TokenizerSpec};

/// The log probability of each token, and the normalisation of texts.
#[derive(Debug)]
pub(super) struct Unigram {
    scores: Vec<f32>,
    /// Score of a character that is in no token.
    unknown_score: f64,
    unk: u32,
    /// True if all bytes are tokens, which encode unknown characters.
    has_bytes: bool,
    /// Length of the longest token in bytes.
    longest: usize,
    bounds: WordBounds,
    charsmap: Charsmap,
    pub(super) add_space_prefix: bool,
    remove_extra_spaces: bool,
}

/// Difference of an unknown character's score to the least probable token's.
const UNKNOWN_PENALTY: f64 = 10.0;

/// The best tokenization of a text up to some position.
#[derive(Clone, Copy)]
struct Best {
    /// Sum of the scores.
    score: f64,
    /// The last token; `None` for an unknown character.
    last: Option<u32>,
    /// Start of the last token.
    from: usize,
}

impl Unigram {
    /// Takes the scores and the flags from `spec`.
    pub(super) fn new(vocab: &Vocab, spec: &mut TokenizerSpec) -> Result<Unigram, TokenizerError> {
        let (key, expected) = ("tokenizer.ggml.scores", vocab.n_text() as usize);
        let scores = std::mem::take(&mut spec.scores);
        if scores.len() != expected {
            return Err(TokenizerError::Length { key, expected, found: scores.len() });
        }
        if let Some(id) = scores.iter().position(|s| !s.is_finite()) {
            return Err(TokenizerError::Score { id, found: scores[id] });
        }
        let unk = vocab.ids.unk.ok_or(TokenizerError::Missing { key: "tokenizer.ggml.unknown_token_id" })?;
        let normal = (0..vocab.n_text()).filter(|id| vocab.kind(*id) == Some(TokenKind::Normal));
        let least = normal.map(|id| scores[id as usize]).fold(f32::INFINITY, f32::min);
        let least = if least.is_finite() { f64::from(least) } else { 0.0 };
        let texts = || (0..vocab.n_text()).filter_map(|id| matched(vocab, id));
        Ok(Unigram {
            unknown_score: least - UNKNOWN_PENALTY,
            unk,
            has_bytes: (0..=255u8).all(|byte| vocab.id(&format!("<0x{byte:02X}>")).is_some()),
            longest: texts().map(str::len).max().unwrap_or(0),
            bounds: WordBounds::new(texts()),
            charsmap: Charsmap::new(&std::mem::take(&mut spec.precompiled_charsmap))?,
            add_space_prefix: spec.add_space_prefix.unwrap_or(false),
            remove_extra_spaces: spec.remove_extra_whitespaces.unwrap_or(false),
            scores,
        })
    }

    /// Appends the ids of `text`, unless there are certainly more than `limit`.
    pub(super) fn encode(
        &self,
        vocab: &Vocab,
        text: &str,
        limit: usize,
        out: &mut Vec<u32>,
    ) -> Result<(), TokenizerError> {
        let (normal, start) = (self.normalize(text), out.len());
        if normal.len() > limit {
            let at_least = out.len() + self.fewest(vocab, &normal);
            if at_least > limit {
                return Err(TokenizerError::TooLong { at_least, limit });
            }
        }
        let mut seen = Seen::default();
        for word in self.bounds.split(&normal) {
            seen.encode(word, out, |out| self.encode_word(vocab, word, out));
        }
        // Consecutive unknown characters become one token.
        let mut last = None;
        let mut keep = start;
        for at in start..out.len() {
            let id = out[at];
            if id != self.unk || last != Some(id) {
                out[keep] = id;
                keep += 1;
            }
            last = Some(id);
        }
        out.truncate(keep);
        Ok(())
    }

    /// Tokens that a text has at least: those of its known characters, if each is of the longest. Unknown ones may
    /// all be one token.
    fn fewest(&self, vocab: &Vocab, normal: &str) -> usize {
        if matched(vocab, self.unk).is_some() {
            return 0;
        }
        let is_known = |c: &char| {
            let id = vocab.id(c.encode_utf8(&mut [0; 4]));
            id.and_then(|id| matched(vocab, id)).is_some()
        };
        let n_byte: usize = normal.chars().filter(is_known).map(char::len_utf8).sum();
        n_byte.div_ceil(self.longest.max(1))
    }

    /// Applies the table of character replacements and maps spaces to `▁`; adds a space before the text and
    /// collapses runs of spaces, if the metadata says so. User-defined tokens, which must not be changed,
    /// have been split off before.
    fn normalize(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() * 2 + 3);
        let (mut at, mut in_word, mut has_prefix) = (0, false, false);
        while at < text.len() {
            let rest = &text[at..];
            let (n, piece) = self.charsmap.longest_prefix(rest).unwrap_or_else(|| {
                let n = rest.chars().next().map_or(rest.len(), char::len_utf8);
                (n, &rest[..n])
            });
            at += n;
            for c in piece.chars() {
                if c == ' ' {
                    in_word = false;
                    if !self.remove_extra_spaces {
                        out.push('▁');
                    }
                    continue;
                }
                if !in_word {
                    in_word = true;
                    if self.remove_extra_spaces || self.add_space_prefix && !has_prefix {
                        out.push('▁');
                        has_prefix = true;
                    }
                }
                out.push(c);
            }
        }
        out
    }

    /// Appends the ids of the most probable tokenization of a word: a pass from left to right that knows the
    /// best tokenization up to each position when it reaches it.
    fn encode_word(&self, vocab: &Vocab, word: &str, out: &mut Vec<u32>) {
        let nowhere = Best { score: f64::NEG_INFINITY, last: None, from: 0 };
        let mut best = vec![nowhere; word.len() + 1];
        best[0].score = 0.0;
        for (from, c) in word.char_indices() {
            let before = best[from].score;
            let mut consider = |to: usize, last: Option<u32>, score: f64| {
                let score = before + score;
                if score > best[to].score {
                    best[to] = Best { score, last, from };
                }
            };
            let (n_char, mut is_known) = (c.len_utf8(), false);
            let rest = &word[from..];
            let ends = rest.char_indices().skip(1).map(|(end, _)| end).chain([rest.len()]);
            for n in ends.take_while(|n| *n <= self.longest) {
                let Some(id) = vocab.id(&rest[..n]).filter(|id| matched(vocab, *id).is_some()) else {
                    continue;
                };
                is_known |= n == n_char;
                let is_own = vocab.kind(id) == Some(TokenKind::UserDefined);
                consider(from + n, Some(id), if is_own { 0.0 } else { self.scores[id as usize].into() });
            }
            if !is_known {
                consider(from + n_char, None, self.unknown_score);
            }
        }
        let (start, mut to) = (out.len(), word.len());
        while to > 0 {
            let Best { last, from, .. } = best[to];
            match last {
                Some(id) => out.push(id),
                None if self.has_bytes => {
                    let at = out.len();
                    vocab.push_bytes(&word[from..to], out);
                    out[at..].reverse();
                }
                None => out.push(self.unk),
            }
            to = from;
        }
        out[start..].reverse();
    }
}

/// The text of a token that can match in texts.
fn matched(vocab: &Vocab, id: u32) -> Option<&str> {
    let spells = matches!(vocab.kind(id)?, TokenKind::Normal | TokenKind::UserDefined | TokenKind::Unused);
    vocab.text(id).filter(|_| spells)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{AddSpecial, ParseSpecial, RenderSpecial, Tokenizer, charsmap};
    use super::*;

    /// A tokenizer of these tokens with their kinds and scores, after `<pad>`, `</s>` and `<unk>`.
    fn tokenizer(tokens: &[(String, i32, f32)], edit: impl FnOnce(&mut TokenizerSpec)) -> Tokenizer {
        let head = [("<pad>", 3, 0.0), ("</s>", 3, 0.0), ("<unk>", 2, 0.0)];
        let head = head.map(|(text, kind, score)| (text.to_owned(), kind, score));
        let all: Vec<(String, i32, f32)> = head.into_iter().chain(tokens.iter().cloned()).collect();
        let mut spec = TokenizerSpec {
            model: "t5".into(),
            tokens: all.iter().map(|t| t.0.clone()).collect(),
            token_types: all.iter().map(|t| t.1).collect(),
            scores: all.iter().map(|t| t.2).collect(),
            ..TokenizerSpec::default()
        };
        edit(&mut spec);
        Tokenizer::from_spec(spec).expect("a tokenizer")
    }

    fn normal(tokens: &[(&str, f32)]) -> Vec<(String, i32, f32)> {
        tokens.iter().map(|(text, score)| ((*text).to_owned(), 1, *score)).collect()
    }

    fn plain(t: &Tokenizer, text: &str) -> Vec<u32> {
        t.encode(text, AddSpecial::No, ParseSpecial::No).expect("a text")
    }

    #[test]
    fn the_most_probable_spelling_wins() {
        let tokens =
            normal(&[("▁", -3.0), ("a", -1.0), ("b", -1.5), ("ab", -2.0), ("▁ab", -5.5), ("ba", -3.0)]);
        let t = tokenizer(&tokens, |spec| spec.add_space_prefix = Some(true));
        // -3 - 2 is better than -5.5, and -2 than -1 - 1.5.
        assert_eq!(plain(&t, "ab"), [3, 6]);
        // -3 - 2 - 1 is better than -3 - 1 - 3.
        assert_eq!(plain(&t, "aba"), [3, 6, 4]);
        assert_eq!(t.encode("ab", AddSpecial::Yes, ParseSpecial::No).expect("a text"), [3, 6, 1]);
        assert_eq!(t.decode_lossy(&[3, 6], RenderSpecial::No), "ab");
    }

    #[test]
    fn what_no_token_spells_is_one_unknown_or_its_bytes() {
        let mut tokens = normal(&[("▁", -1.0), ("a", -1.0)]);
        let t = tokenizer(&tokens, |_| ());
        assert_eq!(plain(&t, "aéxa é"), [4, 2, 4, 3, 2]);
        assert_eq!(plain(&t, ""), [0u32; 0]);
        tokens.extend((0..256).map(|byte| (format!("<0x{byte:02X}>"), 6, 0.0)));
        let t = tokenizer(&tokens, |_| ());
        assert_eq!(plain(&t, "aé"), [4, 5 + 0xC3, 5 + 0xA9]);
        assert_eq!(t.decode_lossy(&plain(&t, "aé x"), RenderSpecial::No), "aé x");
    }

    #[test]
    fn texts_are_normalised_before_they_are_spelled() {
        let map = charsmap::compile(&[("ﬁ", "fi"), ("\t", " "), ("\u{200b}", ""), ("e\u{301}", "é")]);
        let of = |prefix: bool, extra: bool, text: &str| {
            let tokens = normal(&[("▁", -1.0)]);
            let mut spec = TokenizerSpec { model: "t5".into(), ..TokenizerSpec::default() };
            spec.tokens = ["<pad>", "</s>", "<unk>"].map(String::from).to_vec();
            spec.tokens.extend(tokens.into_iter().map(|t| t.0));
            spec.scores = vec![0.0; 4];
            (spec.add_space_prefix, spec.remove_extra_whitespaces) = (Some(prefix), Some(extra));
            spec.precompiled_charsmap = map.clone();
            let ids = super::super::SpecialIds { unk: Some(2), ..Default::default() };
            let vocab = Vocab::new(&mut spec, ids).expect("a vocabulary");
            Unigram::new(&vocab, &mut spec).expect("a tokenizer").normalize(text)
        };
        assert_eq!(of(false, false, " ﬁ\u{200b}\te\u{301} "), "▁fi▁é▁");
        assert_eq!(of(true, false, "ﬁ  x"), "▁fi▁▁x");
        assert_eq!(of(true, true, "  ﬁ  x "), "▁fi▁x");
        assert_eq!(of(false, true, "ﬁ  x"), "▁fi▁x");
        assert_eq!(of(true, true, " \u{200b} "), "");
    }

    #[test]
    fn tokens_of_the_author_are_cut_out_as_they_are() {
        let mut tokens = normal(&[("▁", -1.0), ("a", -1.0), ("<", -1.0), ("x", -1.0), (">", -1.0)]);
        tokens.push(("<x>".into(), 4, -99.0));
        let t = tokenizer(&tokens, |spec| spec.add_space_prefix = Some(true));
        assert_eq!(plain(&t, "a<x>a"), [3, 4, 8, 3, 4]);
    }

    #[test]
    fn wrong_scores_and_tables_are_errors() {
        let error = |edit: &dyn Fn(&mut TokenizerSpec)| {
            let mut spec = TokenizerSpec { model: "t5".into(), ..TokenizerSpec::default() };
            spec.tokens = ["<pad>", "</s>", "<unk>", "a"].map(String::from).to_vec();
            spec.scores = vec![0.0; 4];
            edit(&mut spec);
            Tokenizer::from_spec(spec).expect_err("an error").to_string()
        };
        assert_eq!(
            error(&|s| s.scores.truncate(3)),
            "tokenizer metadata `tokenizer.ggml.scores`: expected 4 entries, one per token, found 3"
        );
        assert_eq!(
            error(&|s| s.scores[3] = f32::NAN),
            "tokenizer metadata `tokenizer.ggml.scores`: expected a finite score for token 3, found NaN"
        );
        assert_eq!(
            error(&|s| s.precompiled_charsmap = vec![8, 0, 0, 0, 1]),
            "tokenizer metadata `tokenizer.ggml.precompiled_charsmap` of 5 bytes: the trie is longer than the table"
        );
    }

    /// The best sum of scores over all tokenizations of a text, by exhaustive search.
    fn best(tokens: &[(String, i32, f32)], text: &str, unknown: f64) -> f64 {
        let Some(first) = text.chars().next() else { return 0.0 };
        let mut found = f64::NEG_INFINITY;
        for (token, kind, score) in tokens {
            if let Some(rest) = text.strip_prefix(token.as_str()) {
                let score = if *kind == 4 { 0.0 } else { f64::from(*score) };
                found = found.max(score + best(tokens, rest, unknown));
            }
        }
        if !tokens.iter().any(|t| t.0 == first.to_string()) {
            found = found.max(unknown + best(tokens, &text[first.len_utf8()..], unknown));
        }
        found
    }

    proptest! {
        #[test]
        fn spellings_are_as_probable_as_any(
            words in proptest::collection::btree_map("[ab▁é]{1,3}", -20i8..0, 1..12),
            text in "[ab é]{0,9}",
        ) {
            let tokens: Vec<(String, i32, f32)> =
                words.into_iter().map(|(word, score)| (word, 1, f32::from(score) / 4.0)).collect();
            let mut all = tokens.clone();
            all.extend((0..256).map(|byte| (format!("<0x{byte:02X}>"), 6, 0.0)));
            let t = tokenizer(&all, |_| ());
            let least = tokens.iter().map(|t| t.2).fold(0.0, f32::min);
            let unknown = f64::from(least) - UNKNOWN_PENALTY;
            let escaped = text.replace(' ', "▁");
            let (mut rest, mut score, mut ids) = (escaped.as_str(), 0.0, plain(&t, &text).into_iter());
            while let Some(id) = ids.next() {
                let (n_byte, counts) = match tokens.get(id as usize - 3) {
                    Some((word, _, s)) => {
                        prop_assert!(rest.starts_with(word.as_str()));
                        (word.len(), f64::from(*s))
                    }
                    None => {
                        // All bytes of an unknown character.
                        let n = rest.chars().next().map_or(0, char::len_utf8);
                        let bytes: Vec<u32> = std::iter::once(id).chain(ids.by_ref().take(n - 1)).collect();
                        let at = 3 + tokens.len() as u32;
                        let expected: Vec<u32> = rest.bytes().take(n).map(|b| at + u32::from(b)).collect();
                        prop_assert_eq!(bytes, expected);
                        (n, unknown)
                    }
                };
                rest = &rest[n_byte..];
                score += counts;
            }
            prop_assert_eq!(rest, "");
            prop_assert!((score - best(&tokens, &escaped, unknown)).abs() < 1e-6);
        }

        #[test]
        fn texts_that_tokens_spell_come_back(text in "[ab é▁\n😀]{0,30}") {
            let mut tokens = normal(&[("▁", -2.0), ("a", -2.0), ("b", -2.5), ("ab", -3.0), ("▁a", -3.0), ("b▁", -1.0)]);
            tokens.extend((0..256).map(|byte| (format!("<0x{byte:02X}>"), 6, 0.0)));
            for prefix in [false, true] {
                let t = tokenizer(&tokens, |spec| spec.add_space_prefix = Some(prefix));
                // A space added before a text that begins with one is the same one.
                let expected = text.replace('▁', " ");
                let decoded = t.decode_lossy(&plain(&t, &text), RenderSpecial::No);
                let same = decoded == expected || prefix && format!(" {decoded}") == expected;
                prop_assert!(same, "{:?} -> {:?}", expected, decoded);
            }
        }
    }
}
