//! The tokens of a tokenizer as bytes, for a program that has grammars but not the file.
//!
//! The number of ids and the spelling, then of each token its kind, the length of its text, and the text. Numbers
//! have seven bits a byte, the lowest first; all but the last have the highest bit.

#[cfg(feature = "constraint")]
use std::sync::OnceLock;

use super::special::SpecialTokens;
use super::vocab::{TokenKind, Vocab};
use super::{Model, Spelling, Tokenizer};

/// Bit of a kind: the token ends a generation.
const ENDS: u8 = 8;

const SPELLINGS: [Spelling; 3] = [Spelling::Plain, Spelling::Escaped, Spelling::Spaced];

impl Tokenizer {
    /// Its tokens, from which [`Self::from_vocabulary`] makes a tokenizer that decodes, and that grammars can use.
    pub fn vocabulary(&self) -> Vec<u8> {
        let mut out = Vec::new();
        push(&mut out, self.vocab.n_vocab());
        out.push(self.model.spelling() as u8);
        for (id, text) in (0..).zip(self.vocab.texts()) {
            let ends = if self.vocab.is_eog(id) { ENDS } else { 0 };
            out.push(self.vocab.kind(id).map_or(0, |kind| kind as u8) | ends);
            push(&mut out, text.len() as u32);
            out.extend_from_slice(text.as_bytes());
        }
        out
    }

    /// A tokenizer of these tokens ([`Self::vocabulary`]) that encodes nothing; `None` if the bytes are no vocabulary.
    pub fn from_vocabulary(bytes: &[u8]) -> Option<Tokenizer> {
        let mut rest = bytes;
        let n_vocab = take(&mut rest)?;
        let spelling = *SPELLINGS.get(usize::from(*rest.split_off_first()?))?;
        let (mut texts, mut kinds, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(kind) = rest.split_off_first() {
            if kind & ENDS != 0 {
                ends.push(kinds.len() as u32);
            }
            kinds.push(*TokenKind::ALL.get(usize::from(kind & !ENDS))?);
            let n_byte = take(&mut rest)? as usize;
            texts.push(str::from_utf8(rest.split_off(..n_byte)?).ok()?.into());
        }
        let vocab = Vocab::given(n_vocab, texts, kinds, ends)?;
        Some(Tokenizer {
            special: SpecialTokens::new(&vocab, None),
            vocab,
            model: Model::None { name: "none".into(), spelling },
            add_bos: false,
            end: None,
            between: Vec::new(),
            end_of_pair: None,
            suppress: Vec::new(),
            n_byte_per_token: None,
            #[cfg(feature = "constraint")]
            vocab_trie: OnceLock::new(),
        })
    }
}

fn push(out: &mut Vec<u8>, mut number: u32) {
    while number >= 1 << 7 {
        out.push(number as u8 | 1 << 7);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take(rest: &mut &[u8]) -> Option<u32> {
    let mut number = 0;
    for shift in (0..u32::BITS).step_by(7) {
        let byte = *rest.split_off_first()?;
        number |= u32::from(byte & 127) << shift;
        if byte < 1 << 7 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::{RenderSpecial, TokenizerSpec};
    use super::*;

    fn tokenizer(model: &str) -> Tokenizer {
        let long = "x".repeat(300);
        let tokens = ["<unk>", "<s>", "</s>", "▁a", "<0x0A>", "Ġb", "<|im_end|>", "", &long, "Ġ", "b"];
        Tokenizer::from_spec(TokenizerSpec {
            model: model.into(),
            tokens: tokens.map(String::from).to_vec(),
            token_types: vec![2, 3, 3, 1, 6, 1, 4, 5, 1, 1, 1],
            merges: vec!["Ġ b".into()],
            eos: Some(2),
            ..TokenizerSpec::default()
        })
        .unwrap()
    }

    #[test]
    fn a_vocabulary_has_the_bytes_kinds_and_ends_of_its_tokenizer() {
        for model in ["llama", "gpt2", "none"] {
            let whole = tokenizer(model);
            let given = Tokenizer::from_vocabulary(&whole.vocabulary()).unwrap();
            assert_eq!((given.n_vocab(), given.eog_ids()), (whole.n_vocab(), vec![2, 6]));
            for id in 0..=whole.n_vocab() as u32 {
                assert_eq!(given.token_text(id), whole.token_text(id));
                assert_eq!((given.kind(id), given.is_eog(id)), (whole.kind(id), whole.is_eog(id)));
                for render in [RenderSpecial::No, RenderSpecial::Yes] {
                    assert_eq!(given.token_bytes(id, render), whole.token_bytes(id, render), "{model} {id}");
                }
            }
        }
    }

    #[test]
    fn a_vocabulary_without_texts_has_its_number_of_ids() {
        let spec = TokenizerSpec { model: "none".into(), n_vocab: Some(1000), ..TokenizerSpec::default() };
        let given = Tokenizer::from_vocabulary(&Tokenizer::from_spec(spec).unwrap().vocabulary()).unwrap();
        assert_eq!((given.n_vocab(), given.has_text()), (1000, false));
    }

    #[test]
    fn bytes_that_are_no_vocabulary_are_none() {
        let bytes = tokenizer("llama").vocabulary();
        // Its first two alone are a vocabulary without texts.
        assert!((0..bytes.len()).all(|n| n == 2 || Tokenizer::from_vocabulary(&bytes[..n]).is_none()));
        // An unknown kind, a text twice, and a number without end.
        assert!(Tokenizer::from_vocabulary(&[1, 0, 7, 1, b'a']).is_none());
        assert!(Tokenizer::from_vocabulary(&[2, 0, 0, 1, b'a', 0, 1, b'a']).is_none());
        assert!(Tokenizer::from_vocabulary(&[255; 8]).is_none());
    }
}
