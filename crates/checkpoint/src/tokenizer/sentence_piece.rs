//! `tokenizer.model`: the pieces and the settings of a SentencePiece model, a message of Protocol Buffers.

use super::TokenizerFileError;
use super::vocabulary::{MAX_TOKENS, TokenType};

/// A piece of text with its score.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) score: f32,
    pub(super) kind: TokenType,
}

/// The parts of a model that decide how it splits texts. The defaults are those of the format.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SentencePiece {
    pub(super) pieces: Vec<Piece>,
    pub(super) algorithm: Algorithm,
    /// A space is added before a text.
    pub(super) add_dummy_prefix: bool,
    pub(super) remove_extra_whitespaces: bool,
    pub(super) escape_whitespaces: bool,
    pub(super) whitespace_is_suffix: bool,
    /// Size of the table of replacements, in bytes; empty without a normalizer.
    pub(super) n_byte_charsmap: usize,
}

/// How a model splits words, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    Unigram,
    Bpe,
    Other(u64),
}

/// The name of the file.
pub(super) const FILE: &str = "tokenizer.model";

/// Types of pieces by their numbers, from 1.
const KINDS: [TokenType; 6] = [
    TokenType::Normal,
    TokenType::Unknown,
    TokenType::Control,
    TokenType::UserDefined,
    TokenType::Unused,
    TokenType::Byte,
];

impl SentencePiece {
    /// Parses the content of the file.
    ///
    /// # Errors
    ///
    /// Damaged messages, texts that are not UTF-8, scores that are not finite, no or too many pieces.
    ///
    /// # Source
    ///
    /// `sentencepiece_model.proto` of SentencePiece 0.2: `ModelProto` with `pieces` (1), `trainer_spec` (2) and
    /// `normalizer_spec` (3).
    pub(super) fn parse(bytes: &[u8]) -> Result<SentencePiece, TokenizerFileError> {
        let mut model = SentencePiece {
            pieces: Vec::new(),
            algorithm: Algorithm::Unigram,
            add_dummy_prefix: true,
            remove_extra_whitespaces: true,
            escape_whitespaces: true,
            whitespace_is_suffix: false,
            n_byte_charsmap: 0,
        };
        for_each_field(bytes, 0, |number, value, offset| {
            match (number, value) {
                (1, Field::Bytes(piece)) => model.pieces.push(read_piece(piece, offset)?),
                (2, Field::Bytes(trainer)) => model.read_trainer(trainer, offset)?,
                (3, Field::Bytes(normalizer)) => model.read_normalizer(normalizer, offset)?,
                _ => {}
            }
            Ok(())
        })?;
        match model.pieces.len() {
            1..=MAX_TOKENS => Ok(model),
            found => Err(TokenizerFileError::VocabularySize { found: found as u64, max: MAX_TOKENS }),
        }
    }

    fn read_trainer(&mut self, bytes: &[u8], offset: usize) -> Result<(), TokenizerFileError> {
        for_each_field(bytes, offset, |number, value, _| {
            match (number, value) {
                (3, Field::Number(1)) => self.algorithm = Algorithm::Unigram,
                (3, Field::Number(2)) => self.algorithm = Algorithm::Bpe,
                (3, Field::Number(other)) => self.algorithm = Algorithm::Other(other),
                (24, Field::Number(flag)) => self.whitespace_is_suffix = flag != 0,
                _ => {}
            }
            Ok(())
        })
    }

    fn read_normalizer(&mut self, bytes: &[u8], offset: usize) -> Result<(), TokenizerFileError> {
        for_each_field(bytes, offset, |number, value, _| {
            match (number, value) {
                (2, Field::Bytes(table)) => self.n_byte_charsmap = table.len(),
                (3, Field::Number(flag)) => self.add_dummy_prefix = flag != 0,
                (4, Field::Number(flag)) => self.remove_extra_whitespaces = flag != 0,
                (5, Field::Number(flag)) => self.escape_whitespaces = flag != 0,
                _ => {}
            }
            Ok(())
        })
    }
}

/// Reads a piece; its type is normal and its score 0 unless the message says otherwise.
fn read_piece(bytes: &[u8], offset: usize) -> Result<Piece, TokenizerFileError> {
    let mut piece = Piece { text: String::new(), score: 0.0, kind: TokenType::Normal };
    for_each_field(bytes, offset, |number, value, offset| {
        match (number, value) {
            (1, Field::Bytes(text)) => {
                let text = std::str::from_utf8(text).map_err(|_| wrong(offset, "a piece is not UTF-8"))?;
                piece.text = text.to_owned();
            }
            (2, Field::Float(score)) if score.is_finite() => piece.score = score,
            (2, _) => return Err(wrong(offset, "a score is not a finite number")),
            (3, Field::Number(kind)) => {
                let kind = usize::try_from(kind).ok().and_then(|kind| KINDS.get(kind.checked_sub(1)?));
                piece.kind = *kind.ok_or_else(|| wrong(offset, "a piece has an unknown type"))?;
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(piece)
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Field<'a> {
    Number(u64),
    Float(f32),
    Bytes(&'a [u8]),
    /// Eight bytes, which no field here has.
    Eight,
}

/// Calls `found` with number, value and offset of each field of a message, which begins at byte `offset` of the file.
fn for_each_field<'a>(
    bytes: &'a [u8],
    offset: usize,
    mut found: impl FnMut(u64, Field<'a>, usize) -> Result<(), TokenizerFileError>,
) -> Result<(), TokenizerFileError> {
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let short = || wrong(offset + start, "a field ends after the end of its message");
        let tag = varint(bytes, &mut at).ok_or_else(short)?;
        let take = |at: &mut usize, n: usize| {
            let taken = bytes.get(*at..at.checked_add(n)?)?;
            *at += n;
            Some(taken)
        };
        let value = match tag & 7 {
            0 => Field::Number(varint(bytes, &mut at).ok_or_else(short)?),
            1 => take(&mut at, 8).map(|_| Field::Eight).ok_or_else(short)?,
            2 => {
                let n = varint(bytes, &mut at).and_then(|n| usize::try_from(n).ok()).ok_or_else(short)?;
                Field::Bytes(take(&mut at, n).ok_or_else(short)?)
            }
            5 => {
                let four = take(&mut at, 4).and_then(|four| four.try_into().ok()).ok_or_else(short)?;
                Field::Float(f32::from_le_bytes(four))
            }
            _ => return Err(wrong(offset + start, "a field has an unknown wire type")),
        };
        let content = match value {
            Field::Bytes(content) => at - content.len(),
            _ => start,
        };
        found(tag >> 3, value, offset + content)?;
    }
    Ok(())
}

/// A number of 7 bits a byte, the lowest first; `None` past the end or above 64 bits.
fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn wrong(offset: usize, what: &'static str) -> TokenizerFileError {
    TokenizerFileError::SentencePiece { file: FILE.to_owned(), offset, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_of_two_pieces_is_read() {
        let bytes = b"\x0a\x08\x0a\x06\xe2\x96\x81abc\x0a\x0a\x0a\x01x\x15\0\0\x80\xbf\x18\x04\x12\x02\x18\x02\x1a\x04\x18\0\x20\0";
        let model = SentencePiece::parse(bytes).unwrap();
        let piece = |text: &str, score, kind| Piece { text: text.to_owned(), score, kind };
        assert_eq!(
            model.pieces,
            [piece("▁abc", 0.0, TokenType::Normal), piece("x", -1.0, TokenType::UserDefined)]
        );
        assert_eq!(model.algorithm, Algorithm::Bpe);
        assert!(!model.add_dummy_prefix && !model.remove_extra_whitespaces && model.escape_whitespaces);
        for end in 1..bytes.len() {
            // Cut between fields it is a shorter model, elsewhere an error; never a panic.
            let _ = SentencePiece::parse(&bytes[..end]);
        }
    }

    #[test]
    fn damage_is_told() {
        let cases: &[(&[u8], &str)] = &[
            (b"", "vocabulary of 0 tokens"),
            (b"\x0a\x05ab", "ends after the end"),
            (b"\x0a\x03\x0a\x01\xff", "byte 4: a piece is not UTF-8"),
            (b"\x0a\x02\x18\x09", "unknown type"),
            (b"\x0a\x05\x15\0\0\x80\x7f", "not a finite number"),
            (b"\x0b", "unknown wire type"),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "ends after the end"),
            (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "ends after the end"),
        ];
        for (bytes, expected) in cases {
            let error = SentencePiece::parse(bytes).unwrap_err().to_string();
            assert!(error.contains(expected), "{bytes:?}: {error}");
        }
    }
}
