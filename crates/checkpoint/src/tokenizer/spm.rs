//! SentencePiece with merges: `tokenizer.model`, or `tokenizer.json` with byte fallback.

use std::collections::HashMap;

use serde_json::Value;

use super::files::TokenizerFiles;
use super::pre::PreTokenizer;
use super::sentence_piece::{self, Algorithm, SentencePiece};
use super::special::{Configs, Special};
use super::tokenizer_json::{self, Merge, TokenizerJson};
use super::vocabulary::{SCORE_ADDED, TokenType, Vocabulary};
use super::{Found, TokenizerFileError, TokenizerOptions};

/// The value of `tokenizer.ggml.model`.
const MODEL: &str = "llama";

/// Reads `tokenizer.model`, with the tokens that other files add.
pub(super) fn of_model(
    model: &[u8],
    json: Option<TokenizerJson>,
    files: &TokenizerFiles,
    configs: &Configs,
    options: TokenizerOptions<'_>,
) -> Result<Found, TokenizerFileError> {
    let model = SentencePiece::parse(model)?;
    check(&model)?;
    let added = added_tokens(json.as_ref(), &files.json("added_tokens.json")?, configs);
    let largest = added.iter().map(|token| token.0).max().unwrap_or(0).max(model.pieces.len() as u64 - 1);
    let mut vocabulary = Vocabulary::unused(super::n_vocab(options, configs, Some(largest)), true)?;
    for (id, piece) in model.pieces.into_iter().enumerate() {
        vocabulary.set(id, piece.text, piece.kind, piece.score);
    }
    for (id, text, special) in added {
        // Ids past the end of memory are past the end of the vocabulary, too.
        let id = usize::try_from(id).unwrap_or(usize::MAX);
        match special {
            Some(special) => vocabulary.add(id, &text, special),
            None => vocabulary.set(id, text, TokenType::UserDefined, SCORE_ADDED),
        }
    }
    let special = Special::find(configs, json.as_ref(), &vocabulary);
    let prefix = configs.tokenizer.get("add_prefix_space").and_then(Value::as_bool);
    let prefix = prefix.unwrap_or(model.add_dummy_prefix);
    Ok(found(vocabulary, special, prefix, Vec::new()))
}

/// Refuses models whose ids would be others.
fn check(model: &SentencePiece) -> Result<(), TokenizerFileError> {
    let what = match model.algorithm {
        Algorithm::Unigram => "the algorithm Unigram".to_owned(),
        Algorithm::Other(number) => format!("the algorithm with the number {number}"),
        Algorithm::Bpe if model.n_byte_charsmap > 0 => {
            "the replacement of characters before splitting".to_owned()
        }
        Algorithm::Bpe if model.remove_extra_whitespaces => "the removal of extra white space".to_owned(),
        Algorithm::Bpe if model.whitespace_is_suffix => "white space as the end of words".to_owned(),
        Algorithm::Bpe if !model.escape_whitespaces => "white space that is not escaped".to_owned(),
        Algorithm::Bpe => return Ok(()),
    };
    let advice = "the ids of texts would be others";
    Err(TokenizerFileError::Unsupported { file: sentence_piece::FILE.to_owned(), what, advice })
}

/// Tokens that files add, in their order: id, text, and if it is special, where that is known.
fn added_tokens(
    json: Option<&TokenizerJson>,
    added: &Value,
    configs: &Configs,
) -> Vec<(u64, String, Option<bool>)> {
    let plain = added.as_object().into_iter().flatten();
    let plain = plain.filter_map(|(text, id)| Some((id.as_u64()?, text.clone(), None)));
    let decoder = configs.tokenizer.get("added_tokens_decoder").and_then(Value::as_object);
    let token = |(id, token): (&String, &Value)| {
        let special = token.get("special").and_then(Value::as_bool).unwrap_or(false);
        Some((id.parse().ok()?, token.get("content")?.as_str()?.to_owned(), Some(special)))
    };
    let of_json = json.filter(|_| decoder.is_none()).map_or(&[][..], |json| &json.added_tokens);
    let of_json = of_json.iter().map(|token| (token.id, token.content.clone(), Some(token.special)));
    plain.chain(of_json).chain(decoder.into_iter().flatten().filter_map(token)).collect()
}

/// Reads `tokenizer.json` of a SentencePiece model. It has ranks of merges instead of scores.
pub(super) fn of_json(
    json: TokenizerJson,
    configs: &Configs,
    options: TokenizerOptions<'_>,
) -> Result<Found, TokenizerFileError> {
    json.check_bpe()?;
    if !json.model.byte_fallback {
        return Err(unsupported("BPE without bytes".to_owned()));
    }
    let prefix = adds_prefix(&json)?;
    let mut vocabulary = json.vocabulary(configs, options, true)?;
    for id in 0..vocabulary.tokens.len() {
        if vocabulary.kinds[id] != TokenType::Normal {
            continue;
        }
        let text = vocabulary.tokens[id].as_str();
        if is_byte(text) {
            vocabulary.kinds[id] = TokenType::Byte;
        } else if Some(text) == json.model.unk_token.as_deref() {
            vocabulary.kinds[id] = TokenType::Unknown;
        }
    }
    let is_exact = set_scores(&mut vocabulary, &json.model.merges);
    let mut special = Special::find(configs, Some(&json), &vocabulary);
    special.add_bos.get_or_insert(false);
    let mut notes = Vec::new();
    if !is_exact {
        notes.push(
            "tokenizer.json: not every pair of tokens that make a token is a merge, so that the ids of some texts may differ"
                .to_owned(),
        );
    }
    Ok(found(vocabulary, special, prefix, notes))
}

fn found(vocabulary: Vocabulary, special: Special, prefix: bool, notes: Vec<String>) -> Found {
    Found {
        model: MODEL,
        pre: PreTokenizer::NotNeeded,
        vocabulary,
        merges: Vec::new(),
        special,
        ignore_merges: false,
        form: None,
        // The default is true.
        add_space_prefix: (!prefix).then_some(false),
        notes,
    }
}

/// True if a space is added before a text. The steps must make `▁` of spaces, and nothing else.
fn adds_prefix(json: &TokenizerJson) -> Result<bool, TokenizerFileError> {
    let (mut prefix, mut escapes) = (false, false);
    for (kind, step) in TokenizerJson::steps(&json.normalizer, "normalizers") {
        let text = |key: &str| step.get(key).and_then(Value::as_str);
        let pattern = step.get("pattern").and_then(|pattern| pattern.get("String")).and_then(Value::as_str);
        match kind {
            "Prepend" if text("prepend") == Some("▁") => prefix = true,
            "Replace" if (pattern, text("content")) == (Some(" "), Some("▁")) => escapes = true,
            other => return Err(unsupported(format!("the normalizer {other:?}"))),
        }
    }
    for (kind, step) in TokenizerJson::steps(&json.pre_tokenizer, "pretokenizers") {
        let text = |key: &str| step.get(key).and_then(Value::as_str);
        match kind {
            "Metaspace" if text("replacement").is_none_or(|with| with == "▁") => {
                let scheme = text("prepend_scheme").unwrap_or("always");
                let old = step.get("add_prefix_space").and_then(Value::as_bool).unwrap_or(true);
                prefix |= scheme != "never" && old;
                escapes = true;
                if step.get("split").and_then(Value::as_bool).unwrap_or(true) {
                    return Err(unsupported(
                        "white space that ends words (`Metaspace` with `split`)".to_owned(),
                    ));
                }
            }
            // No space is left after the normalizer.
            "Split" if escapes && step.get("pattern") == Some(&serde_json::json!({"String": " "})) => {}
            other => return Err(unsupported(format!("the pre-tokenizer {other:?}"))),
        }
    }
    match escapes {
        true => Ok(prefix),
        false => Err(unsupported("BPE with bytes, but without `▁` for spaces".to_owned())),
    }
}

/// Sets the score of each token to minus the rank of the first merge that makes it. True if tokens made by merges are
/// then made by scores, too: all pairs of tokens that make a token are merges, and none of another token ranks between
/// them.
fn set_scores(vocabulary: &mut Vocabulary, merges: &[Merge]) -> bool {
    let n_merge = merges.len();
    // The first and the last rank, and the number of merges that make a text.
    let mut made: HashMap<String, (usize, usize, usize)> = HashMap::with_capacity(n_merge);
    for (rank, Merge(merge)) in merges.iter().enumerate() {
        let first = merge.chars().next().map_or(0, char::len_utf8);
        let Some(space) = merge[first..].find(' ').map(|at| first + at) else { continue };
        let text = [&merge[..space], &merge[space + 1..]].concat();
        let entry = made.entry(text).or_insert((rank, rank, 0));
        (entry.1, entry.2) = (rank, entry.2 + 1);
    }
    let mut is_exact = true;
    let scores: Vec<f32> = {
        let is_token: HashMap<&str, usize> = vocabulary.by_text();
        let normal =
            |text: &str| is_token.get(text).is_some_and(|&id| vocabulary.kinds[id] == TokenType::Normal);
        let n_pair = |text: &str| {
            let splits = text.char_indices().skip(1).take_while(|(at, _)| *at < MAX_PAIRS);
            splits
                .map(|(at, _)| text.split_at(at))
                .filter(|(left, right)| normal(left) && normal(right))
                .count()
        };
        let score = |(id, text): (usize, &String)| {
            if vocabulary.kinds[id] != TokenType::Normal {
                return vocabulary.scores[id];
            }
            let (first, last, n) = made.get(text).copied().unwrap_or((n_merge + id, n_merge + id, 0));
            is_exact &= n_pair(text) == n && last - first < n.max(1) && text.len() <= MAX_PAIRS;
            -(first as f32)
        };
        vocabulary.tokens.iter().enumerate().map(score).collect()
    };
    vocabulary.scores = scores;
    is_exact
}

/// Length limit of tokens whose pairs are looked up, in bytes: the time grows with its square.
const MAX_PAIRS: usize = 1024;

/// True for the text of a byte: `<0xAB>`.
fn is_byte(text: &str) -> bool {
    let hex = text.strip_prefix("<0x").and_then(|text| text.strip_suffix('>'));
    hex.is_some_and(|hex| hex.len() == 2 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn unsupported(what: String) -> TokenizerFileError {
    let advice = "the ids of texts would be others";
    TokenizerFileError::Unsupported { file: tokenizer_json::FILE.to_owned(), what, advice }
}
