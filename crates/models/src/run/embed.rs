//! Embeddings: texts as vectors, from the final hidden states.

use crate::heads::Pooling;

/// The rows of a text, pooled one by one.
#[derive(Clone, Debug)]
pub(crate) struct Pooled {
    pooling: Pooling,
    n_row: usize,
    rows: Vec<Vec<f32>>,
    sum: Vec<f64>,
}

impl Pooled {
    pub(crate) fn new(pooling: Pooling) -> Self {
        Pooled { pooling, n_row: 0, rows: Vec::new(), sum: Vec::new() }
    }

    /// Adds the row of a token. Those that are needed come in order, and may begin anew.
    pub(crate) fn row(&mut self, at: usize, row: &[f32]) {
        if at == 0 {
            *self = Pooled::new(self.pooling);
        }
        self.n_row += 1;
        match self.pooling {
            Pooling::Mean => {
                self.sum.resize(row.len(), 0.0);
                self.sum.iter_mut().zip(row).for_each(|(s, v)| *s += f64::from(*v));
            }
            Pooling::Cls if self.n_row > 1 => {}
            Pooling::Last => self.rows = vec![row.to_vec()],
            Pooling::None | Pooling::Cls | Pooling::Rank => self.rows.push(row.to_vec()),
        }
    }

    /// The vectors: one, or one for each row.
    pub(crate) fn end(self) -> Vec<Vec<f32>> {
        match self.pooling {
            Pooling::Mean => vec![self.sum.iter().map(|s| (s / self.n_row as f64) as f32).collect()],
            Pooling::None | Pooling::Cls | Pooling::Last | Pooling::Rank => self.rows,
        }
    }
}

/// Norm by which an embedding is divided.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
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

/// A text as vectors, or its scores.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding {
    /// Tokens of the text.
    pub n_token: usize,
    /// Its vector of `[n_embd]`, or one for each token if they are not pooled, or its scores ([`Pooling::Rank`]).
    pub vectors: Vec<Vec<f32>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_pooled_by_their_place() {
        let rows = [[1.0, 2.0], [3.0, 6.0], [5.0, 1.0]];
        let pooled = |p: Pooling| {
            let mut pooled = Pooled::new(p);
            // The first two come twice, as after a preemption.
            let again = (0..2).chain(0..3);
            again.for_each(|at| pooled.row(at, &rows[at]));
            pooled.end()
        };
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
}
