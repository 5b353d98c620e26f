//! The tensors of a file, as weights of a graph.

use chaski_graph::{Weight, WeightId};
use ggml_format::{GgmlType, TensorInfo};

use super::reads::scales_bias;
use super::{Builder, Linear};
use crate::derived::Transposed;
use crate::error::ModelError;
use crate::separate;

/// Rows of a matrix: `n` runs of `run` rows, whose first ones are `stride` apart.
#[derive(Copy, Clone, Debug)]
pub struct Rows {
    /// The first row.
    pub row0: u32,
    /// Rows of a run.
    pub run: u32,
    /// From the beginning of a run to that of the next.
    pub stride: u32,
    /// Number of runs.
    pub n: u32,
}

impl Rows {
    /// `n` rows from `row0` on.
    pub fn consecutive(row0: u32, n: u32) -> Self {
        Rows { row0, run: n, stride: n, n: 1 }
    }
}

impl<'a> Builder<'a> {
    /// True if the file has a tensor.
    pub fn has(&self, name: &str) -> bool {
        (self.tensor)(name).is_some()
    }

    /// Rows of a tensor in the file.
    pub fn n_row(&self, name: &str) -> Option<u64> {
        (self.tensor)(name).map(|t| t.ne.iter().skip(1).product())
    }

    fn find(&self, name: &str, shape: &[u64]) -> Result<&'a TensorInfo, ModelError> {
        let t = (self.tensor)(name).ok_or_else(|| ModelError::NoTensor { tensor: name.to_owned() })?;
        if shape.contains(&0) {
            if name.contains(".ffn_") && self.config.n_ff.iter().all(|n| *n == 0) {
                self.needs("feed_forward_length")?;
            }
            let what = format!("the tensor `{name}` of no values, {shape:?}");
            return Err(ModelError::Unsupported { what });
        }
        let found: Vec<u64> = t.ne.iter().rev().copied().collect();
        let mut expected = vec![1; 4 - shape.len()];
        expected.extend_from_slice(shape);
        if found != expected {
            let strip = |v: Vec<u64>| v.into_iter().skip(4 - shape.len()).collect();
            let found = if found[..4 - shape.len()].iter().all(|n| *n == 1) { strip(found) } else { found };
            return Err(ModelError::Shape { tensor: name.to_owned(), expected: shape.to_vec(), found });
        }
        Ok(t)
    }

    /// A vector of `n` values.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn vector(&mut self, name: &str, n: u32) -> Result<WeightId, ModelError> {
        let t = self.find(name, &[n.into()])?;
        Ok(self.graph.weight(Weight::new(name.to_owned(), t.ty, 1, n)))
    }

    /// The value of a tensor of one value that is a factor of the graph (`SCALARS`).
    ///
    /// # Errors
    /// [`ModelError::NoTensor`].
    pub fn scalar(&self, name: &str) -> Result<f32, ModelError> {
        self.scalars.get(name).copied().ok_or_else(|| ModelError::NoTensor { tensor: name.to_owned() })
    }

    /// A matrix of `n_out` rows of `n_in` values.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn matrix(&mut self, name: &str, n_out: u32, n_in: u32) -> Result<WeightId, ModelError> {
        let t = self.find(name, &[n_out.into(), n_in.into()])?;
        Ok(self.graph.weight(Weight::new(name.to_owned(), t.ty, n_out, n_in)))
    }

    /// `stem.weight` with its optional `stem.bias` and `stem.scale`.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn linear(&mut self, stem: &str, n_out: u32, n_in: u32) -> Result<Linear, ModelError> {
        let weight = self.matrix(&format!("{stem}.weight"), n_out, n_in)?;
        let ty = self.graph.weights[weight.0].ty;
        let bias = match self.bias_of(stem) {
            Some(bias) => Some(self.vector(&bias, n_out)?),
            None => None,
        };
        let scale = self.scale_of(stem, ty, 1)?;
        if let (Some(bias), true) = (bias, scales_bias(stem, ty)) {
            self.graph.weights[bias.0].times = scale;
        }
        Ok(Linear { weight, bias, scale })
    }

    /// The name of the bias of `stem.weight`, if the family reads it and the file has it.
    fn bias_of(&self, stem: &str) -> Option<String> {
        let name = format!("{stem}.bias");
        (self.has(&name) && self.reads.bias(stem)).then_some(name)
    }

    /// The `n` scales of `stem.weight`, which has this type, likewise.
    fn scale_of(&mut self, stem: &str, ty: GgmlType, n: u32) -> Result<Option<WeightId>, ModelError> {
        let name = format!("{stem}.scale");
        if !self.has(&name) || !self.reads.scale(stem, ty) {
            return Ok(None);
        }
        self.vector(&name, n).map(Some)
    }

    /// Stacked matrices, as one.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn stacked(&mut self, name: &str, n: u32, n_out: u32, n_in: u32) -> Result<Linear, ModelError> {
        let t = self.find(name, &[n.into(), n_out.into(), n_in.into()])?;
        let weight = self.graph.weight(Weight::new(name.to_owned(), t.ty, n * n_out, n_in));
        Ok(Linear { weight, bias: None, scale: None })
    }

    /// The matrix without scale and bias.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn bare(&mut self, name: &str, n_out: u32, n_in: u32) -> Result<Linear, ModelError> {
        Ok(Linear { weight: self.matrix(name, n_out, n_in)?, bias: None, scale: None })
    }

    /// A single-row matrix, stored as a vector.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn row(&mut self, name: &str, n_in: u32) -> Result<Linear, ModelError> {
        Ok(Linear { weight: self.vector(name, n_in)?, bias: None, scale: None })
    }

    /// q, k and v: three tensors, or one with their rows concatenated.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn qkv(&mut self, block: &str, rows: [u32; 3], n_in: u32) -> Result<[Linear; 3], ModelError> {
        let fused = format!("{block}.attn_qkv.weight");
        if !self.has(&fused) {
            let [q, k, v] = rows;
            return Ok([
                self.linear(&format!("{block}.attn_q"), q, n_in)?,
                self.linear(&format!("{block}.attn_k"), k, n_in)?,
                self.linear(&format!("{block}.attn_v"), v, n_in)?,
            ]);
        }
        self.joined(&format!("{block}.attn_qkv"), rows, n_in)
    }

    /// Products whose rows are consecutive in `stem.weight`, with its optional `stem.bias` and `stem.scale`.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn joined<const N: usize>(
        &mut self,
        stem: &str,
        rows: [u32; N],
        n_in: u32,
    ) -> Result<[Linear; N], ModelError> {
        self.alternating(stem, 1, rows, n_in)
    }

    /// Products whose rows are interleaved in `stem.weight`, with its optional `stem.bias` and `stem.scale`: `n`
    /// groups, each with the given number of rows of every product.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn alternating<const N: usize>(
        &mut self,
        stem: &str,
        n: u32,
        rows: [u32; N],
        n_in: u32,
    ) -> Result<[Linear; N], ModelError> {
        let stride = rows.iter().sum();
        let mut row0 = 0;
        let runs = rows.map(|run| {
            let rows = Rows { row0, run, stride, n };
            row0 += run;
            rows
        });
        self.parts(stem, n * stride, runs, n_in)
    }

    /// Products that have some of the `all` rows of `stem.weight` each, with its optional `stem.bias` and `stem.scale`.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn parts<const N: usize>(
        &mut self,
        stem: &str,
        all: u32,
        parts: [Rows; N],
        n_in: u32,
    ) -> Result<[Linear; N], ModelError> {
        let found = self.list_of_parts(stem, all, &parts, n_in)?;
        Ok(std::array::from_fn(|i| found[i]))
    }

    /// The same for any number, compiled once.
    fn list_of_parts(
        &mut self,
        stem: &str,
        all: u32,
        parts: &[Rows],
        n_in: u32,
    ) -> Result<Vec<Linear>, ModelError> {
        let name = format!("{stem}.weight");
        let ty = self.find(&name, &[all.into(), n_in.into()])?.ty;
        let bias = match self.bias_of(stem) {
            Some(bias) => Some((self.find(&bias, &[all.into()])?.ty, bias)),
            None => None,
        };
        if let Some((ty, bias)) = bias.as_ref().filter(|b| b.0.block_len() > 1) {
            return Err(ModelError::Unsupported { what: format!("the tensor `{bias}` in {ty}") });
        }
        let scale = self.scale_of(stem, ty, 1)?;
        let times = scale.filter(|_| scales_bias(stem, ty));
        let linear = |&Rows { row0, run, stride, n }: &Rows| {
            let part = |w: Weight| Weight { row0, run, stride, ..w };
            let weight = self.graph.weight(part(Weight::new(name.clone(), ty, n * run, n_in)));
            // A part of the bias is gathered value by value.
            let bias = bias.as_ref().map(|(ty, bias)| {
                let whole = Weight { times, ..Weight::new(bias.clone(), *ty, n * run, 1) };
                self.graph.weight(part(whole))
            });
            Linear { weight, bias, scale }
        };
        Ok(parts.iter().map(linear).collect())
    }

    /// The matrices of all experts: `stem.weight`, or one tensor per expert (`separate`), with its optional `stem.bias`
    /// and `stem.scale`.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`], [`ModelError::Unsupported`].
    pub fn experts(
        &mut self,
        stem: &str,
        n_expert: u32,
        n_out: u32,
        n_in: u32,
    ) -> Result<Linear, ModelError> {
        let name = format!("{stem}.weight");
        let ty = self.type_of_experts(&name, n_expert, n_out, n_in)?;
        let whole = Weight::new(name, ty, n_expert * n_out, n_in);
        let weight = self.graph.weight(Weight { n_expert, run: n_out, stride: n_out, ..whole });
        let bias = match self.bias_of(stem) {
            Some(bias) => Some(self.matrix(&bias, n_expert, n_out)?),
            None => None,
        };
        let scale = self.scale_of(stem, ty, n_expert)?;
        Ok(Linear { weight, bias, scale })
    }

    /// Type of the experts' matrices, in either layout.
    fn type_of_experts(
        &self,
        name: &str,
        n_expert: u32,
        n_out: u32,
        n_in: u32,
    ) -> Result<GgmlType, ModelError> {
        let one = separate::first_of(name, n_expert, self.tensor);
        match one {
            None => Ok(self.find(name, &[n_expert.into(), n_out.into(), n_in.into()])?.ty),
            Some(one) if self.has(name) => {
                let what = format!("the tensor `{}` beside `{name}`, which has the same expert", one.name);
                Err(ModelError::Unsupported { what })
            }
            Some(_) => {
                let each = separate::each(name, n_expert, self.tensor)?;
                for t in &each {
                    self.find(&t.name, &[n_out.into(), n_in.into()])?;
                }
                Ok(each[0].ty)
            }
        }
    }

    /// One matrix per head: rows from `row0` of each group of `stride` rows of a matrix.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn heads_of(
        &mut self,
        name: &str,
        n_head: u32,
        (row0, n_out, stride): (u32, u32, u32),
        n_in: u32,
    ) -> Result<WeightId, ModelError> {
        let t = self.find(name, &[u64::from(n_head) * u64::from(stride), n_in.into()])?;
        let whole = Weight::new(name.to_owned(), t.ty, n_head * n_out, n_in);
        Ok(self.graph.weight(Weight { row0, n_expert: n_head, run: n_out, stride, ..whole }))
    }

    /// The matrices of all heads, contiguous.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn heads(&mut self, name: &str, n_head: u32, n_out: u32, n_in: u32) -> Result<WeightId, ModelError> {
        let t = self.find(name, &[n_head.into(), n_out.into(), n_in.into()])?;
        let whole = Weight::new(name.to_owned(), t.ty, n_head * n_out, n_in);
        Ok(self.graph.weight(Weight { n_expert: n_head, run: n_out, stride: n_out, ..whole }))
    }

    /// The matrices that `derived` computes from a tensor of the file, which must have this shape.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn derived(
        &mut self,
        derived: &Transposed,
        (name, from): (&str, &str),
    ) -> Result<WeightId, ModelError> {
        let Transposed { n_matrix, n_row, n_col, stride } = *derived;
        let t = self.find(from, &[u64::from(n_matrix) * u64::from(stride), n_col.into()])?;
        let whole = Weight::new(name.to_owned(), Transposed::ty(t.ty), n_matrix * n_col, n_row);
        Ok(self.graph.weight(Weight { n_expert: n_matrix, run: n_col, stride: n_col, ..whole }))
    }

    /// Gate and up of all experts: two tensors, or one with the rows of both per expert, gate first.
    ///
    /// # Errors
    /// [`ModelError::NoTensor`], [`ModelError::Shape`].
    pub fn gate_up_experts(
        &mut self,
        block: &str,
        n_expert: u32,
        n_out: u32,
        n_in: u32,
    ) -> Result<[Linear; 2], ModelError> {
        let fused = format!("{block}.ffn_gate_up_exps.weight");
        if !self.has(&fused) {
            return Ok([
                self.experts(&format!("{block}.ffn_gate_exps"), n_expert, n_out, n_in)?,
                self.experts(&format!("{block}.ffn_up_exps"), n_expert, n_out, n_in)?,
            ]);
        }
        for other in ["bias", "scale"].map(|end| format!("{block}.ffn_gate_up_exps.{end}")) {
            if self.has(&other) {
                return Err(ModelError::Unsupported { what: format!("the tensor `{other}`") });
            }
        }
        let t = self.find(&fused, &[n_expert.into(), 2 * u64::from(n_out), n_in.into()])?;
        Ok([0, n_out].map(|row0| {
            let part = Weight::new(fused.clone(), t.ty, n_expert * n_out, n_in);
            let weight = self.graph.weight(Weight { row0, n_expert, run: n_out, stride: 2 * n_out, ..part });
            Linear { weight, bias: None, scale: None }
        }))
    }
}
