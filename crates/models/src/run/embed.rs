//! Embeddings: texts as vectors, from the final hidden states.

use std::fmt;
use std::str::FromStr;

use ggml_format::Metadata;

use super::runner::Runner;
use crate::error::{ModelError, PoolingError};
use chaski_text::{AddSpecial, ParseSpecial, Tokenizer};

/// Pooling of the tokens' vectors.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// None: one vector per token.
    None,
    /// Their mean.
    Mean,
    /// The first token.
    Cls,
    /// The last token.
    Last,
}

/// All poolings: number in files and name.
const POOLINGS: [(u32, &str, Pooling); 4] = [
    (0, "none", Pooling::None),
    (1, "mean", Pooling::Mean),
    (2, "cls", Pooling::Cls),
    (3, "last", Pooling::Last),
];

impl Pooling {
    /// The pooling in the file's `{arch}.pooling_type`.
    ///
    /// # Errors
    /// [`PoolingError`] if it is missing or unknown; [`ModelError::Metadata`] for another type.
    pub fn of(metadata: &Metadata) -> Result<Pooling, ModelError> {
        let key = format!("{}.pooling_type", metadata.str("general.architecture")?);
        let Some(found) = metadata.opt_u32(&key)? else { return Err(PoolingError::Unsaid { key }.into()) };
        let row = POOLINGS.iter().find(|p| p.0 == found);
        Ok(row.ok_or(PoolingError::Number { key, found })?.2)
    }

    /// Pools rows of `n_embd` values, one per token.
    fn pool(self, rows: &[f32], n_embd: usize) -> Vec<Vec<f32>> {
        let mut tokens = rows.chunks_exact(n_embd);
        let one = match self {
            Pooling::None => return tokens.map(<[f32]>::to_vec).collect(),
            Pooling::Cls => tokens.next().map(<[f32]>::to_vec),
            Pooling::Last => tokens.next_back().map(<[f32]>::to_vec),
            Pooling::Mean => {
                let n = tokens.len() as f64;
                let mut sum = vec![0.0f64; n_embd];
                for row in tokens {
                    sum.iter_mut().zip(row).for_each(|(s, v)| *s += f64::from(*v));
                }
                Some(sum.into_iter().map(|s| (s / n) as f32).collect())
            }
        };
        one.into_iter().collect()
    }
}

impl fmt::Display for Pooling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(POOLINGS.iter().find(|p| p.2 == *self).map_or("", |p| p.1))
    }
}

impl FromStr for Pooling {
    type Err = PoolingError;

    fn from_str(s: &str) -> Result<Pooling, PoolingError> {
        let row = POOLINGS.iter().find(|p| p.1 == s);
        row.map(|p| p.2).ok_or_else(|| PoolingError::Word { found: s.to_owned() })
    }
}

/// Norm by which an embedding is divided.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum VectorNorm {
    /// Nothing.
    None,
    /// Its largest absolute value, which becomes 32760, to fit 16-bit integers.
    Max,
    /// The p-norm: 1 is the taxicab norm, 2 the Euclidean norm.
    P(u32),
}

impl VectorNorm {
    /// The norm for llama.cpp's number: -1 none, 0 the largest value, else p.
    pub fn from_number(n: i32) -> Option<VectorNorm> {
        match n {
            -1 => Some(VectorNorm::None),
            0 => Some(VectorNorm::Max),
            n => u32::try_from(n).ok().map(VectorNorm::P),
        }
    }

    /// Divides a vector by its norm; a zero vector is unchanged.
    pub fn normalize(self, v: &mut [f32]) {
        let abs = v.iter().map(|v| f64::from(v.abs()));
        let norm = match self {
            VectorNorm::None => return,
            VectorNorm::Max => abs.fold(0.0, f64::max) / 32760.0,
            VectorNorm::P(2) => abs.map(|v| v * v).sum::<f64>().sqrt(),
            VectorNorm::P(p) => abs.map(|v| v.powf(p.into())).sum::<f64>().powf(1.0 / f64::from(p)),
        };
        if norm > 0.0 {
            v.iter_mut().for_each(|v| *v = (f64::from(*v) / norm) as f32);
        }
    }
}

/// Options for embeddings.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct EmbedOptions {
    /// Pooling; `None`: the file's.
    pub pooling: Option<Pooling>,
    /// Normalisation; default: Euclidean.
    pub norm: VectorNorm,
}

impl Default for EmbedOptions {
    fn default() -> Self {
        EmbedOptions { pooling: None, norm: VectorNorm::P(2) }
    }
}

/// A text as vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding {
    /// Tokens of the text.
    pub n_token: usize,
    /// Its vector of `[n_embd]`, or one for each token if they are not pooled.
    pub vectors: Vec<Vec<f32>>,
}

/// Embeds a text; clears the sequence.
///
/// # Errors
/// [`ModelError::ShortText`] for a text without tokens, [`ModelError::Runtime`] for a text longer than the context;
/// device errors.
pub async fn embed(
    runner: &mut Runner,
    tokenizer: &Tokenizer,
    text: &str,
    pooling: Pooling,
    norm: VectorNorm,
) -> Result<Embedding, ModelError> {
    let tokens = tokenizer.encode(text, AddSpecial::Yes, ParseSpecial::Yes)?;
    embed_tokens(runner, &tokens, pooling, norm).await
}

/// Embeds tokens, as they are; clears the sequence.
///
/// # Errors
/// As [`embed`]; [`ModelError::Token`] for tokens outside the vocabulary.
pub async fn embed_tokens(
    runner: &mut Runner,
    tokens: &[u32],
    pooling: Pooling,
    norm: VectorNorm,
) -> Result<Embedding, ModelError> {
    if tokens.is_empty() {
        return Err(ModelError::ShortText { found: 0, what: "an embedding", needed: 1 });
    }
    runner.check_prompt(0, tokens)?;
    runner.truncate(0);
    // Only the last hidden state is needed.
    let from = if pooling == Pooling::Last { tokens.len() - 1 } else { 0 };
    runner.feed(&tokens[..from]).await?;
    let rows = runner.eval_hidden(&tokens[from..]).await?;
    let mut vectors = pooling.pool(&rows, rows.len() / (tokens.len() - from));
    vectors.iter_mut().for_each(|v| norm.normalize(v));
    Ok(Embedding { n_token: tokens.len(), vectors })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_pooled_by_their_place() {
        let rows = [1.0, 2.0, 3.0, 6.0, 5.0, 1.0];
        let pooled = |p: Pooling| p.pool(&rows, 2);
        assert_eq!(pooled(Pooling::None), [[1.0, 2.0], [3.0, 6.0], [5.0, 1.0]]);
        assert_eq!(pooled(Pooling::Mean), [[3.0, 3.0]]);
        assert_eq!(pooled(Pooling::Cls), [[1.0, 2.0]]);
        assert_eq!(pooled(Pooling::Last), [[5.0, 1.0]]);
    }

    #[test]
    fn norms_are_those_of_their_numbers() {
        let by = |n: i32| {
            let mut v = [3.0, -4.0, 0.0];
            VectorNorm::from_number(n).expect("a norm").normalize(&mut v);
            v
        };
        assert_eq!(by(-1), [3.0, -4.0, 0.0]);
        assert_eq!(by(0), [24570.0, -32760.0, 0.0]);
        assert_eq!(by(1), [3.0 / 7.0, -4.0 / 7.0, 0.0]);
        assert_eq!(by(2), [0.6, -0.8, 0.0]);
        let cube: f64 = by(3).iter().map(|v| f64::from(v.abs()).powi(3)).sum();
        assert!((cube - 1.0).abs() < 1e-6, "{cube}");
        assert_eq!(VectorNorm::from_number(-2), None);
        let mut zeros = [0.0; 3];
        VectorNorm::P(2).normalize(&mut zeros);
        assert_eq!(zeros, [0.0; 3]);
    }

    #[test]
    fn ways_of_pooling_are_read_by_the_names_that_they_are_written_with() {
        for (_, name, pooling) in POOLINGS {
            assert_eq!(name.parse(), Ok(pooling));
            assert_eq!(pooling.to_string(), name);
        }
        assert_eq!("rank".parse::<Pooling>(), Err(PoolingError::Word { found: "rank".into() }));
    }
}
