//! Adapters: small matrices beside those of a model, from a file of their own.
//!
//! An adapter of kind LoRA holds for some matrices W of a model two of few rows, respectively columns, A and B; with a scale
//! s the model then multiplies by W + s B A. Base and adapter stay apart: the graph gets y = W x + B (s (A x)), and the scales
//! lie where they can be changed at any time. Sequences with other scales run one after the other; A x is a handful of values
//! for each column, so a scale for each column would be a factor of that alone.

use std::collections::BTreeMap;

use ggml_format::{ByteSource, ModelFile, SourceError, TensorInfo};

use crate::error::{AdapterError, ModelError};
use crate::fingerprint::fingerprint;

/// An opened adapter; its matrices stay in the file until a model is loaded with it.
pub struct Adapter<S> {
    file: ModelFile<S>,
    alpha: f32,
    /// `lora_a` and `lora_b` by the name of the tensor that they adapt.
    pairs: BTreeMap<String, Pair>,
}

/// The matrices of an adapter by the name of the tensor that they adapt, and what its scale is multiplied by.
pub(crate) type Beside<'a> = Box<dyn Fn(&str) -> Option<(&'a Pair, f32)> + 'a>;

/// The two matrices beside one of the model.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) a: TensorInfo,
    pub(crate) b: TensorInfo,
    /// Rows of A: values between the two.
    pub(crate) rank: u32,
}

/// The tensor that is only looked up, whose halves lie the other way around.
pub(crate) const EMBEDDINGS: &str = "token_embd.weight";

impl<S: ByteSource> Adapter<S> {
    /// Opens a file with `general.type` = `adapter` and `adapter.type` = `lora`.
    ///
    /// # Errors
    /// [`AdapterError`] for another file, for a tensor without its other half, and for halves that do not fit each other.
    pub async fn open(source: S) -> Result<Self, AdapterError> {
        let none = |name: &str| {
            Err(SourceError::Other { name: name.to_owned(), source: "an adapter has one file".into() })
        };
        let file = ModelFile::open(source, none).await?;
        let m = file.metadata();
        for (key, expected) in [("general.type", "adapter"), ("adapter.type", "lora")] {
            let found = m.opt_str(key)?.unwrap_or("not there");
            if found != expected {
                return Err(AdapterError::Kind { key, found: format!("`{found}`"), expected });
            }
        }
        // Adapters that begin in the middle of a text.
        let key = "adapter.alora.invocation_tokens";
        if m.contains(key) {
            return Err(AdapterError::Kind { key, found: "there".into(), expected: "none of it here" });
        }
        let alpha = m.opt_f32("adapter.lora.alpha")?.unwrap_or(0.0);
        if !alpha.is_finite() {
            let (key, found) = ("adapter.lora.alpha", alpha.to_string());
            return Err(AdapterError::Kind { key, found, expected: "a finite one" });
        }
        let pairs = pairs(file.tensors())?;
        Ok(Adapter { file, alpha, pairs })
    }

    /// Matrices of a model that it adapts.
    pub fn n_pair(&self) -> usize {
        self.pairs.len()
    }

    /// What tells it from other adapters.
    ///
    /// # Errors
    /// What the file meets.
    pub(crate) async fn fingerprint(&self) -> Result<u64, SourceError> {
        fingerprint(&self.file).await
    }

    /// Checks that the adapter is one of a model: of its architecture, with matrices that fit its tensors.
    pub(crate) fn check<'a>(
        &self,
        arch: &str,
        tensor: impl Fn(&str) -> Option<&'a TensorInfo>,
    ) -> Result<(), AdapterError> {
        let found = self.file.metadata().str("general.architecture")?;
        if found != arch {
            return Err(AdapterError::Architecture { found: found.into(), expected: arch.into() });
        }
        for (name, Pair { a, b, rank }) in &self.pairs {
            let base = tensor(name).ok_or_else(|| AdapterError::NoBase { tensor: name.clone() })?;
            let [n_in, n_out, n_matrix, n_more] = base.ne;
            let rank = u64::from(*rank);
            // A row for each entry of the vocabulary is looked up and then multiplied; ggml's order, fastest first.
            let (of_a, of_b) = match name.as_str() {
                EMBEDDINGS => ([rank, n_out, 1, 1], [rank, n_in, 1, 1]),
                _ => ([n_in, rank, n_matrix, n_more], [rank, n_out, n_matrix, n_more]),
            };
            for (t, ne) in [(a, of_a), (b, of_b)] {
                if t.ne != ne {
                    let (expected, found) = (shape(&ne), shape(&t.ne));
                    return Err(AdapterError::Shape { tensor: t.name.clone(), expected, found });
                }
            }
        }
        Ok(())
    }

    /// The matrices beside each tensor.
    pub(crate) fn beside(&self) -> Beside<'_> {
        Box::new(|name| self.pairs.get(name).map(|pair| (pair, self.factor(pair.rank))))
    }

    /// Names of the tensors that are adapted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.pairs.keys().map(String::as_str)
    }

    /// What the scale that a caller gives is multiplied by for matrices of this rank.
    fn factor(&self, rank: u32) -> f32 {
        if self.alpha == 0.0 { 1.0 } else { self.alpha / rank as f32 }
    }

    /// Fills `buf` with data of one of the adapter's tensors.
    pub(crate) async fn read(&self, name: &str, offset: u64, buf: &mut [u8]) -> Result<(), ModelError> {
        let tensor =
            self.file.tensor(name).ok_or_else(|| ModelError::NoTensor { tensor: name.to_owned() })?;
        Ok(self.file.read_tensor(tensor, offset, buf).await?)
    }
}

/// Outermost first, two sizes at least.
fn shape(ne: &[u64; 4]) -> Vec<u64> {
    let n = ne.iter().rposition(|n| *n != 1).map_or(2, |last| (last + 1).max(2));
    ne[..n].iter().rev().copied().collect()
}

/// The tensors of a file by what they adapt.
fn pairs(tensors: &[TensorInfo]) -> Result<BTreeMap<String, Pair>, AdapterError> {
    let mut halves: BTreeMap<&str, [Option<&TensorInfo>; 2]> = BTreeMap::new();
    for t in tensors {
        let half = [".lora_a", ".lora_b"].iter().position(|end| t.name.ends_with(end));
        let half = half.ok_or_else(|| AdapterError::Name { tensor: t.name.clone() })?;
        let base = &t.name[..t.name.len() - ".lora_a".len()];
        halves.entry(base).or_default()[half] = Some(t);
    }
    if halves.is_empty() {
        return Err(AdapterError::Empty);
    }
    let mut out = BTreeMap::new();
    for (base, [a, b]) in halves {
        let lacks = |end: &str| AdapterError::NoHalf { tensor: format!("{base}.{end}") };
        let (a, b) = (a.ok_or_else(|| lacks("lora_a"))?, b.ok_or_else(|| lacks("lora_b"))?);
        let rank = b.ne[0];
        let rank = u32::try_from(rank).ok().filter(|r| (1..=1 << 16).contains(r)).ok_or_else(|| {
            AdapterError::Shape { tensor: b.name.clone(), expected: vec![b.ne[1], 1], found: shape(&b.ne) }
        })?;
        out.insert(base.to_owned(), Pair { a: a.clone(), b: b.clone(), rank });
    }
    Ok(out)
}

/// Whether these can be the scales of `expected` adapters.
///
/// # Errors
/// [`AdapterError::Count`], [`AdapterError::Scale`].
pub(crate) fn check_scales(expected: usize, scales: &[f32]) -> Result<(), AdapterError> {
    if expected != scales.len() {
        return Err(AdapterError::Count { expected, found: scales.len() });
    }
    match scales.iter().find(|s| !s.is_finite()) {
        Some(s) => Err(AdapterError::Scale { found: *s }),
        None => Ok(()),
    }
}

/// What names of tensors that come from adapters begin with: the adapter's number follows.
const PREFIX: &str = "adapter.";

/// A tensor of zeros, of any size: places of scales, which are written once the model is loaded.
pub(crate) const ZEROS: &str = "adapter.zeros";

/// The name by which the graph knows a tensor of adapter number `i`.
pub(crate) fn graph_name(i: usize, tensor: &str) -> String {
    format!("{PREFIX}{i}.{tensor}")
}

/// The adapter's number and the tensor's name in its file.
pub(crate) fn file_name(name: &str) -> Option<(usize, &str)> {
    let (i, tensor) = name.strip_prefix(PREFIX)?.split_once('.')?;
    Some((i.parse().ok()?, tensor))
}
