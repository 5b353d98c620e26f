//! The log probabilities of a token and of the most probable alternatives.

use serde_json::Value;

use super::candidates::{Candidate, Candidates};

/// The log probability of a token, and those of the most probable tokens.
///
/// [`Self::new`] computes them from the model's own logits at temperature 1, before biases, constraints and samplers,
/// so the sampled token need not be among the most probable ones; [`Self::of`] from the candidates that samplers left.
#[derive(Clone, Debug, PartialEq)]
pub struct Logprobs {
    /// Natural logarithm of the token's probability.
    pub logprob: f32,
    /// The most probable tokens with their log probabilities, descending; ties by ascending id.
    pub top: Vec<(u32, f32)>,
}

impl Logprobs {
    /// Computes them for `token` and the `n_top` most probable tokens of `logits`, which has one logit per
    /// token of the vocabulary.
    ///
    /// `ln p_i = l_i - ln(sum over j of e^(l_j))`. Minus infinity for a token outside the vocabulary.
    ///
    /// ```
    /// use chaski_text::Logprobs;
    ///
    /// let found = Logprobs::new(&[0.0, 3f32.ln()], 0, 1);
    /// assert!((found.logprob - 0.25f32.ln()).abs() < 1e-6);
    /// assert_eq!(found.top[0].0, 1);
    /// ```
    pub fn new(logits: &[f32], token: u32, n_top: usize) -> Logprobs {
        let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = logits.iter().map(|&logit| f64::from(logit - max).exp()).sum();
        let log_sum = f64::from(max) + sum.ln();
        let logprob = |logit: f32| (f64::from(logit) - log_sum) as f32;
        Logprobs {
            logprob: logits.get(token as usize).map_or(f32::NEG_INFINITY, |&logit| logprob(logit)),
            top: best((0..).zip(logits.iter().copied()), n_top, &logprob),
        }
    }

    /// Those of `token` and the `n_top` most probable of the candidates from which it was drawn
    /// ([`Sampler::candidates`](crate::Sampler::candidates)). Minus infinity for a token that is none of them.
    pub fn of(candidates: &[Candidate], token: u32, n_top: usize) -> Logprobs {
        let p = candidates.iter().find(|one| one.id == token).map_or(0.0, |one| one.p);
        let all = candidates.iter().map(|one| (one.id, one.p));
        Logprobs { logprob: p.ln(), top: best(all, n_top, &f32::ln) }
    }

    /// The entry of `token`, for which they were computed, and under `key` in it those of the most probable tokens.
    ///
    /// `entry` makes an object of a token and its log probability. JSON has no infinity: a probability of 0 is null.
    pub fn to_json(&self, token: u32, key: &str, entry: impl Fn(u32, f32) -> Value) -> Value {
        let mut object = entry(token, self.logprob);
        object[key] = self.top.iter().map(|&(token, logprob)| entry(token, logprob)).collect();
        object
    }
}

/// The `n` tokens with the highest values, in descending order, those with a lower id first among equals; `logprob`
/// gives the log probability of a value.
fn best(all: impl Iterator<Item = (u32, f32)>, n: usize, logprob: &dyn Fn(f32) -> f32) -> Vec<(u32, f32)> {
    let all: Vec<_> = all.map(|(id, value)| Candidate { id, logit: value, p: 0.0 }).collect();
    let mut all = Candidates::from(all);
    all.keep_top(n);
    all.list.iter().take(n).map(|one| (one.id, logprob(one.logit))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_have_their_probabilities() {
        let of = |id, p| Candidate { id, logit: 0.0, p };
        let found = Logprobs::of(&[of(7, 0.25), of(3, 0.5), of(9, 0.25)], 9, 2);
        assert_eq!(found, Logprobs { logprob: 0.25f32.ln(), top: vec![(3, 0.5f32.ln()), (7, 0.25f32.ln())] });
        assert_eq!(Logprobs::of(&[of(7, 1.0)], 8, 0), Logprobs { logprob: f32::NEG_INFINITY, top: vec![] });
    }

    #[test]
    fn probabilities_add_up_and_the_most_probable_come_first() {
        let logits: Vec<f32> = (0..1000u32).map(|i| ((i * 7919) % 1000) as f32 / 50.0 - 3.0 + 80.0).collect();
        let all = Logprobs::new(&logits, 5, 1000);
        let sum: f64 = all.top.iter().map(|(_, logprob)| f64::from(*logprob).exp()).sum();
        assert!((sum - 1.0).abs() < 1e-4, "{sum}");
        assert!(all.top.is_sorted_by(|a, b| a.1 >= b.1));
        assert!(all.top.contains(&(5, all.logprob)));
        assert_eq!(Logprobs::new(&logits, 5, 3).top, all.top[..3]);
        assert_eq!(Logprobs::new(&logits, 5, 0), Logprobs { top: vec![], ..all });
    }

    #[test]
    fn json_has_the_token_and_the_most_probable_ones() {
        let found = Logprobs { logprob: f32::NEG_INFINITY, top: vec![(3, -0.5), (1, -2.0)] };
        let json =
            found.to_json(7, "top", |token, logprob| serde_json::json!({ "id": token, "logprob": logprob }));
        let top = serde_json::json!([{ "id": 3, "logprob": -0.5 }, { "id": 1, "logprob": -2.0 }]);
        assert_eq!(json, serde_json::json!({ "id": 7, "logprob": null, "top": top }));
    }

    #[test]
    fn equals_excluded_and_missing_tokens_are_served() {
        let found = Logprobs::new(&[1.0, 2.0, 2.0, f32::NEG_INFINITY], 3, 9);
        assert_eq!(found.logprob, f32::NEG_INFINITY);
        assert_eq!(found.top.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [1, 2, 0, 3]);
        assert_eq!(Logprobs::new(&[0.0], 7, 0).logprob, f32::NEG_INFINITY);
    }
}
