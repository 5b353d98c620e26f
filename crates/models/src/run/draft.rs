//! Drafts by a smaller model.

use super::runner::Runner;
use super::speculate::Speculation;
use crate::error::ModelError;

/// A draft model.
pub(crate) type DraftModel = Runner;

impl Speculation {
    /// Drafts greedily with a smaller model, in one of its sequences. Logits that are not finite end a draft.
    ///
    /// # Errors
    /// Errors of its device.
    pub(crate) async fn draft(
        self,
        runner: &mut DraftModel,
        seq: usize,
        tokens: &[u32],
        n: usize,
    ) -> Result<Vec<u32>, ModelError> {
        runner.select(seq);
        let n = n.min((runner.n_ctx() as usize).saturating_sub(tokens.len()));
        if n == 0 {
            return Ok(Vec::new());
        }
        // At least one token runs, for its logits.
        let same = runner.history().iter().zip(tokens).take_while(|(a, b)| a == b).count();
        let same = same.min(tokens.len() - 1);
        runner.truncate(same);
        runner.prefill(&tokens[same..]).await?;
        if self.p_min > 0.0 {
            return likely(runner, n, self.p_min).await;
        }
        match runner.greedy(n).await {
            Err(ModelError::Sample(_)) => Ok(Vec::new()),
            drafted => drafted,
        }
    }
}

/// The most probable tokens after a prefill, up to one that is less probable than `p_min`.
async fn likely(runner: &mut Runner, n: usize, p_min: f32) -> Result<Vec<u32>, ModelError> {
    let mut drafted = Vec::new();
    while let Some((token, _)) = most_probable(&runner.logits().await?).filter(|(_, p)| *p >= p_min) {
        drafted.push(token);
        if drafted.len() == n {
            break;
        }
        runner.prefill(&[token]).await?;
    }
    Ok(drafted)
}

/// The most probable token, and its probability; `None` if no logit is finite.
fn most_probable(logits: &[f32]) -> Option<(u32, f32)> {
    let finite = || (0u32..).zip(logits).filter(|(_, v)| v.is_finite());
    let (token, most) = finite().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0)))?;
    let sum: f32 = finite().map(|(_, v)| (v - most).exp()).sum();
    Some((token, 1.0 / sum))
}

#[cfg(test)]
mod tests {
    use super::most_probable;

    #[test]
    fn probabilities_are_those_of_finite_logits() {
        let (token, p) = most_probable(&[0.0, 2.0, f32::NEG_INFINITY, 2.0, f32::NAN]).expect("a token");
        assert!(token == 1 && (p - 1.0 / (2.0 + (-2.0f32).exp())).abs() < 1e-6, "{token}: {p}");
        assert_eq!(most_probable(&[f32::NAN; 2]), None);
    }
}
