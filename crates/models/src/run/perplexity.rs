//! Perplexity of a text, as computed by llama.cpp.

use std::num::NonZeroUsize;

use super::runner::Runner;
use crate::error::ModelError;
use chaski_text::{AddSpecial, ParseSpecial, Tokenizer};

/// A perplexity and its uncertainty.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Perplexity {
    /// exp of the mean negative log probability.
    pub value: f64,
    /// Standard error of the value.
    pub error: f64,
    /// Tokens that were scored.
    pub n_token: usize,
    /// Number of windows.
    pub n_chunk: usize,
}

/// Perplexity over disjoint windows of `n_ctx` tokens, at most `max_chunks`; the second half of each is scored.
///
/// `progress` receives the finished windows, all windows, and the value so far, if there is one. Source: llama.cpp's
/// perplexity tool.
///
/// # Errors
/// [`ModelError::ShortText`] for a text of less than two windows; device errors.
pub async fn perplexity(
    runner: &mut Runner,
    tokenizer: &Tokenizer,
    text: &str,
    n_ctx: usize,
    max_chunks: Option<NonZeroUsize>,
    mut progress: impl FnMut(usize, usize, Option<f64>),
) -> Result<Perplexity, ModelError> {
    let tokens = tokenizer.encode(text, AddSpecial::Yes, ParseSpecial::No)?;
    if tokens.len() < 2 * n_ctx || n_ctx < 2 {
        return Err(ModelError::ShortText {
            found: tokens.len(),
            what: "perplexity",
            needed: 2 * n_ctx.max(2),
        });
    }
    let n_chunk = (tokens.len() / n_ctx).min(max_chunks.map_or(usize::MAX, NonZeroUsize::get));
    let first = n_ctx / 2;
    let (mut sum, mut squares, mut n) = (0.0f64, 0.0f64, 0usize);
    let n_vocab = runner.n_vocab() as usize;
    progress(0, n_chunk, None);
    for i in 0..n_chunk {
        let mut chunk = tokens[i * n_ctx..(i + 1) * n_ctx].to_vec();
        if let Some(bos) = tokenizer.bos().filter(|_| tokenizer.adds_bos()) {
            chunk[0] = bos;
        }
        runner.truncate(0);
        runner.feed(&chunk[..first]).await?;
        // In parts, to bound the logits held at once.
        let mut at = first;
        while at + 1 < n_ctx {
            let end = (at + 64).min(n_ctx - 1);
            let logits = runner.eval_all(&chunk[at..end], 64).await?;
            for (row, next) in logits.chunks_exact(n_vocab).zip(&chunk[at + 1..]) {
                let p = surprise(row, *next as usize);
                sum += p;
                squares += p * p;
                n += 1;
            }
            at = end;
        }
        progress(i + 1, n_chunk, Some((sum / n as f64).exp()));
    }
    let mean = sum / n as f64;
    let variance = (squares / n as f64 - mean * mean).max(0.0);
    let value = mean.exp();
    let error = (variance / (n as f64 - 1.0).max(1.0)).sqrt() * value;
    Ok(Perplexity { value, error, n_token: n, n_chunk })
}

/// Negative log probability of token `i`.
fn surprise(logits: &[f32], i: usize) -> f64 {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|l| f64::from(l - max).exp()).sum();
    sum.ln() - f64::from(logits[i] - max)
}
