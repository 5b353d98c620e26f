//! Pooling of tokens' vectors, and layers after it: the scores of rerankers and classifiers, and the dense layers of
//! some embedding models.
//!
//! They take one vector per text, so they run on the CPU.

use std::fmt;
use std::str::FromStr;

use chaski_graph::Function;
use chaski_runtime::kernels::value_of;
use ggml_format::Metadata;

use crate::error::{ModelError, PoolingError};

/// Pooling of the tokens' vectors.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pooling {
    /// None: one vector per token.
    None,
    /// Their mean.
    Mean,
    /// The first token.
    Cls,
    /// The last token.
    Last,
    /// Scores in place of a vector: those of a reranker's or classifier's head.
    Rank,
}

/// All poolings: number in files and name.
const POOLINGS: [(u32, &str, Pooling); 5] = [
    (0, "none", Pooling::None),
    (1, "mean", Pooling::Mean),
    (2, "cls", Pooling::Cls),
    (3, "last", Pooling::Last),
    (4, "rank", Pooling::Rank),
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

/// Stems of the tensors that make scores: a layer, and the one after it.
pub(crate) const RANKER: [&str; 2] = ["cls", "cls.output"];
/// The norm between them.
pub(crate) const RANKER_NORM: &str = "cls.norm.weight";
/// Stems of the layers after pooling to a vector, in their order.
pub(crate) const DENSE: [&str; 2] = ["dense_2", "dense_3"];

/// Names of all tensors of these layers.
pub(crate) fn tensors() -> impl Iterator<Item = String> {
    let of = |stem| ["weight", "bias"].map(|part| format!("{stem}.{part}"));
    RANKER.into_iter().chain(DENSE).flat_map(of).chain([RANKER_NORM.to_owned()])
}

/// How a family makes scores of a text.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// Pooling before the head.
    pub pooling: Pooling,
    /// Name of the function after its first layer, `cls`.
    pub act: &'static str,
    /// Scores are probabilities: a softmax over all.
    pub softmax: bool,
}

impl Ranks {
    /// The head of BERT, on the first token.
    pub(crate) const CLS: Ranks = Ranks { pooling: Pooling::Cls, act: "tanh", softmax: false };
    /// On the mean.
    pub(crate) const MEAN: Ranks = Ranks { pooling: Pooling::Mean, act: "gelu", softmax: false };
    /// On the last token, of models that answer with one of several words.
    pub(crate) const WORDS: Ranks = Ranks { pooling: Pooling::Last, act: "tanh", softmax: true };
}

/// A product, and what follows it.
#[derive(Debug)]
pub(crate) struct Dense {
    /// `[n_out, n_in]`
    pub(crate) weight: Vec<f32>,
    pub(crate) n_in: usize,
    /// `[n_out]`, or empty.
    pub(crate) bias: Vec<f32>,
    pub(crate) act: Option<&'static Function>,
    /// Weights of a layer norm, `[n_out]`, or empty; and its epsilon.
    pub(crate) norm: (Vec<f32>, f32),
}

impl Dense {
    fn apply(&self, x: &[f32]) -> Vec<f32> {
        let rows = self.weight.chunks_exact(self.n_in).enumerate();
        let mut y: Vec<f64> = rows
            .map(|(i, row)| {
                let dot: f64 = row.iter().zip(x).map(|(w, x)| f64::from(*w) * f64::from(*x)).sum();
                let y = dot + self.bias.get(i).copied().map_or(0.0, f64::from);
                self.act.map_or(y, |f| value_of(f, y))
            })
            .collect();
        let (weight, eps) = &self.norm;
        if !weight.is_empty() {
            let n = y.len() as f64;
            let mean = y.iter().sum::<f64>() / n;
            let variance = y.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
            let by = 1.0 / (variance + f64::from(*eps)).sqrt();
            y.iter_mut().zip(weight).for_each(|(y, w)| *y = (*y - mean) * by * f64::from(*w));
        }
        y.into_iter().map(|v| v as f32).collect()
    }
}

/// Scores of a text.
#[derive(Debug)]
pub(crate) struct Ranker {
    pub(crate) ranks: Ranks,
    pub(crate) layers: Vec<Dense>,
}

/// The layers of a model after pooling.
#[derive(Debug, Default)]
pub struct Heads {
    pub(crate) ranker: Option<Ranker>,
    pub(crate) dense: Vec<Dense>,
}

impl Heads {
    /// The pooling of rows for vectors that are pooled in this way: that before the head, for scores.
    pub(crate) fn pooling(&self, asked: Pooling) -> Option<Pooling> {
        match asked {
            Pooling::Rank => self.ranker.as_ref().map(|r| r.ranks.pooling),
            pooling => Some(pooling),
        }
    }

    /// The result for a pooled vector, or for the vector of a token.
    pub(crate) fn apply(&self, asked: Pooling, x: Vec<f32>) -> Vec<f32> {
        let all = |layers: &[Dense], x| layers.iter().fold(x, |x: Vec<f32>, layer| layer.apply(&x));
        match (asked, &self.ranker) {
            (Pooling::Rank, Some(Ranker { ranks, layers })) => {
                let mut scores = all(layers, x);
                if ranks.softmax {
                    softmax(&mut scores);
                }
                scores
            }
            _ => all(&self.dense, x),
        }
    }
}

fn softmax(x: &mut [f32]) {
    let max = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let exp = |v: f32| f64::from(v - max).exp();
    let sum: f64 = x.iter().map(|v| exp(*v)).sum();
    x.iter_mut().for_each(|v| *v = (exp(*v) / sum) as f32);
}

impl Dense {
    /// Values of its result.
    pub(crate) fn n_out(&self) -> u32 {
        (self.weight.len() / self.n_in.max(1)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dense(weight: &[f32], n_in: usize, bias: &[f32]) -> Dense {
        Dense { weight: weight.to_vec(), n_in, bias: bias.to_vec(), act: None, norm: (Vec::new(), 0.0) }
    }

    #[test]
    fn heads_by_hand() {
        let first = Dense { act: Function::find("tanh"), ..dense(&[1.0, 2.0, 0.5, -1.0], 2, &[0.25, 0.0]) };
        let ranker = Ranker { ranks: Ranks::CLS, layers: vec![first, dense(&[2.0, -1.0], 2, &[0.5])] };
        let mut heads = Heads { ranker: Some(ranker), dense: vec![dense(&[3.0, 0.0], 2, &[])] };
        let expected = 2.0 * 0.75f64.tanh() + 0.5;
        let [score] = heads.apply(Pooling::Rank, vec![-0.5, 0.5])[..] else { panic!("a score") };
        let by_hand = 2.0 * (0.25f64 - 0.5 + 1.0).tanh() - (-0.25f64 - 0.5).tanh() + 0.5;
        assert!((f64::from(score) - by_hand).abs() < 1e-6 && by_hand > expected, "{score} {by_hand}");
        assert_eq!(heads.apply(Pooling::Mean, vec![-0.5, 0.5]), [-1.5]);
        assert_eq!(heads.apply(Pooling::None, vec![-0.5, 0.5]), [-1.5]);
        assert_eq!(
            (heads.pooling(Pooling::Rank), heads.pooling(Pooling::Last)),
            (Some(Pooling::Cls), Some(Pooling::Last))
        );
        heads.ranker = None;
        assert_eq!(heads.pooling(Pooling::Rank), None);
    }

    #[test]
    fn norms_and_probabilities_by_hand() {
        let norm = (vec![1.0, 2.0], 0.0);
        let normed = Dense { norm, ..dense(&[1.0, 0.0, 0.0, 1.0], 2, &[]) };
        assert_eq!(normed.apply(&[3.0, 7.0]), [-1.0, 2.0]);
        let mut scores = [0.0, 3f32.ln()];
        softmax(&mut scores);
        assert!((scores[0] - 0.25).abs() < 1e-6 && (scores[1] - 0.75).abs() < 1e-6, "{scores:?}");
    }

    #[test]
    fn ways_of_pooling_are_read_by_the_names_that_they_are_written_with() {
        for (_, name, pooling) in POOLINGS {
            assert_eq!(name.parse(), Ok(pooling));
            assert_eq!(pooling.to_string(), name);
        }
        assert_eq!("max".parse::<Pooling>(), Err(PoolingError::Word { found: "max".into() }));
    }
}
