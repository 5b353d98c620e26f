//! Loading of the layers after pooling.

use chaski_graph::Function;
use ggml_format::{ByteSource, GgmlType, TensorInfo, dequantize};

use crate::error::ModelError;
use crate::heads::{self, Dense, Heads, Ranker};
use crate::model::Model;

impl<S: ByteSource> Model<S> {
    /// The layers after pooling.
    ///
    /// # Errors
    /// [`ModelError::Shape`] for tensors that do not follow each other; errors of the source.
    pub(crate) async fn heads(&self) -> Result<Heads, ModelError> {
        let c = self.config();
        let Some(ranks) = self.arch().ranks else { return Ok(Heads::default()) };
        let mut layers = Vec::new();
        let mut width = c.n_embd;
        let [first, output] = heads::RANKER;
        if let Some(mut first) = self.dense(first, width).await? {
            first.act = Function::find(ranks.act);
            width = first.n_out();
            let norm = self.values(heads::RANKER_NORM, &[width.into()]).await?;
            first.norm = (norm.unwrap_or_default(), c.eps_layer);
            layers.push(first);
        }
        layers.extend(self.dense(output, width).await?);
        let ranker = (!layers.is_empty()).then_some(Ranker { ranks, layers });
        let mut dense = Vec::new();
        for stem in heads::DENSE {
            let width = dense.last().map_or(c.n_embd, Dense::n_out);
            dense.extend(self.dense(stem, width).await?);
        }
        Ok(Heads { ranker, dense })
    }

    /// `stem.weight` with `stem.bias`, if the file has them.
    async fn dense(&self, stem: &str, n_in: u32) -> Result<Option<Dense>, ModelError> {
        let name = format!("{stem}.weight");
        let Some(t) = self.tensor(&name) else { return Ok(None) };
        let n_out = t.ne[1];
        let weight = self.values(&name, &[n_out, n_in.into()]).await?.unwrap_or_default();
        let bias = self.values(&format!("{stem}.bias"), &[n_out]).await?.unwrap_or_default();
        Ok(Some(Dense { weight, n_in: n_in as usize, bias, act: None, norm: (Vec::new(), 0.0) }))
    }

    fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors().iter().find(|t| t.name == name)
    }

    /// The values of a tensor of this shape, outermost first, if the file has it.
    async fn values(&self, name: &str, expected: &[u64]) -> Result<Option<Vec<f32>>, ModelError> {
        let Some(t) = self.tensor(name) else { return Ok(None) };
        let found: Vec<u64> = t.ne.iter().rev().copied().collect();
        let (outer, inner) = found.split_at(4 - expected.len());
        if inner != expected || outer.iter().any(|n| *n != 1) || inner.contains(&0) {
            let (tensor, expected) = (name.to_owned(), expected.to_vec());
            return Err(ModelError::Shape { tensor, expected, found: t.shape() });
        }
        let mut bytes = vec![0; t.n_byte as usize];
        self.read_tensor(t, &mut bytes).await?;
        let mut values = vec![0.0; t.n_elem() as usize];
        let unsupported =
            || ModelError::Unsupported { what: format!("the tensor `{name}` in {}", GgmlType::name(t.ty)) };
        dequantize(t.ty, &bytes, &mut values).map_err(|_| unsupported())?;
        Ok(Some(values))
    }
}
