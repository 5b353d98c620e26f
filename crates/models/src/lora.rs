//! LoRA: low-rank matrices next to those of a model, from a separate file.
//!
//! For some matrices W of a model, a LoRA has two matrices A and B of low rank; with a scale s the model then
//! multiplies by W + s B A. Base and LoRA stay separate: the graph computes y = W x + B (s (A x)), and the scales can
//! be changed at any time. Every sequence has its own, also beside others in a step: A x has only a few values per
//! column, and s is a factor of the column there.

use std::collections::BTreeMap;

use ggml_format::{ByteSource, Metadata, ModelFile, SourceError, TensorInfo};

use crate::error::{LoraError, ModelError};
use crate::fingerprint::fingerprint;

/// An opened LoRA; its matrices stay in the file until a model is loaded with it.
pub struct Lora<S> {
    file: ModelFile<S>,
    alpha: f32,
    /// `lora_a` and `lora_b` by name of the target tensor.
    pairs: BTreeMap<String, Pair>,
}

/// The matrices of a LoRA by name of the target tensor, and the factor of its scale.
pub(crate) type Beside<'a> = Box<dyn Fn(&str) -> Option<(&'a Pair, f32)> + 'a>;

/// The two matrices of a target.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) a: TensorInfo,
    pub(crate) b: TensorInfo,
    /// Rank: rows of A.
    pub(crate) rank: u32,
}

/// The only tensor that is looked up; its A and B are transposed.
pub(crate) const EMBEDDINGS: &str = "token_embd.weight";

impl<S: ByteSource> Lora<S> {
    /// Opens a file with `general.type` = `adapter` and `adapter.type` = `lora`.
    ///
    /// # Errors
    /// [`LoraError`] for another kind of file, for a tensor without its counterpart, and for matrices that do not
    /// match.
    pub async fn open(source: S) -> Result<Self, LoraError> {
        let none = |name: &str| {
            Err(SourceError::Other { name: name.to_owned(), source: "a LoRA has one file".into() })
        };
        let file = ModelFile::open(source, none).await?;
        let m = file.metadata();
        for (key, expected) in [("general.type", "adapter"), ("adapter.type", "lora")] {
            let found = m.opt_str(key)?;
            if found != Some(expected) {
                let found = found.map_or("missing".into(), |found| format!("`{found}`"));
                return Err(LoraError::Kind { key, found, expected });
            }
        }
        // LoRAs that activate in the middle of a text.
        let key = "adapter.alora.invocation_tokens";
        if m.contains(key) {
            return Err(LoraError::Kind { key, found: "present".into(), expected: "none" });
        }
        let alpha = m.opt_f32("adapter.lora.alpha")?.unwrap_or(0.0);
        if !alpha.is_finite() {
            let (key, found) = ("adapter.lora.alpha", alpha.to_string());
            return Err(LoraError::Kind { key, found, expected: "a finite number" });
        }
        let pairs = pairs(file.tensors())?;
        Ok(Lora { file, alpha, pairs })
    }

    /// Name of the file.
    pub fn name(&self) -> &str {
        self.file.shards()[0].name()
    }

    /// The file's metadata.
    pub fn metadata(&self) -> &Metadata {
        self.file.metadata()
    }

    /// Number of target matrices.
    pub fn n_pair(&self) -> usize {
        self.pairs.len()
    }

    /// Distinguishes it from other LoRAs.
    ///
    /// # Errors
    /// Errors of the source.
    pub(crate) async fn fingerprint(&self) -> Result<u64, SourceError> {
        fingerprint(&self.file).await
    }

    /// Checks that the LoRA belongs to a model: same architecture, and matrices that match its tensors.
    pub(crate) fn check<'a>(
        &self,
        arch: &str,
        tensor: impl Fn(&str) -> Option<&'a TensorInfo>,
    ) -> Result<(), LoraError> {
        let found = self.file.metadata().str("general.architecture")?;
        if found != arch {
            return Err(LoraError::Architecture { found: found.into(), expected: arch.into() });
        }
        for (name, Pair { a, b, rank }) in &self.pairs {
            let base = tensor(name).ok_or_else(|| LoraError::NoBase { tensor: name.clone() })?;
            let [n_in, n_out, n_matrix, n_more] = base.ne;
            let rank = u64::from(*rank);
            // One row per vocabulary entry is looked up and then multiplied; ggml's order, fastest first.
            let (of_a, of_b) = match name.as_str() {
                EMBEDDINGS => ([rank, n_out, 1, 1], [rank, n_in, 1, 1]),
                _ => ([n_in, rank, n_matrix, n_more], [rank, n_out, n_matrix, n_more]),
            };
            for (t, ne) in [(a, of_a), (b, of_b)] {
                if t.ne != ne {
                    let (expected, found) = (shape(&ne), shape(&t.ne));
                    return Err(LoraError::Shape { tensor: t.name.clone(), expected, found });
                }
            }
        }
        Ok(())
    }

    /// The matrices of each target.
    pub(crate) fn beside(&self) -> Beside<'_> {
        Box::new(|name| self.pairs.get(name).map(|pair| (pair, self.factor(pair.rank))))
    }

    /// Names of the target tensors.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.pairs.keys().map(String::as_str)
    }

    /// Factor of the caller's scale for matrices of this rank.
    fn factor(&self, rank: u32) -> f32 {
        if self.alpha == 0.0 { 1.0 } else { self.alpha / rank as f32 }
    }

    /// True if several threads may read at once ([`ByteSource::in_parallel`]).
    pub(crate) fn in_parallel(&self) -> bool {
        self.file.in_parallel()
    }

    /// Fills `buf` with data of one of the LoRA's tensors.
    pub(crate) async fn read(&self, name: &str, offset: u64, buf: &mut [u8]) -> Result<(), ModelError> {
        let tensor =
            self.file.tensor(name).ok_or_else(|| ModelError::NoTensor { tensor: name.to_owned() })?;
        Ok(self.file.read_tensor(tensor, offset, buf).await?)
    }
}

/// Outermost first, at least two sizes.
fn shape(ne: &[u64; 4]) -> Vec<u64> {
    let n = ne.iter().rposition(|n| *n != 1).map_or(2, |last| (last + 1).max(2));
    ne[..n].iter().rev().copied().collect()
}

/// The tensors of a file by target.
fn pairs(tensors: &[TensorInfo]) -> Result<BTreeMap<String, Pair>, LoraError> {
    let mut halves: BTreeMap<&str, [Option<&TensorInfo>; 2]> = BTreeMap::new();
    for t in tensors {
        let half = [".lora_a", ".lora_b"].iter().position(|end| t.name.ends_with(end));
        let half = half.ok_or_else(|| LoraError::Name { tensor: t.name.clone() })?;
        let base = &t.name[..t.name.len() - ".lora_a".len()];
        halves.entry(base).or_default()[half] = Some(t);
    }
    if halves.is_empty() {
        return Err(LoraError::Empty);
    }
    let mut out = BTreeMap::new();
    for (base, [a, b]) in halves {
        let lacks = |end: &str| LoraError::NoHalf { tensor: format!("{base}.{end}") };
        let (a, b) = (a.ok_or_else(|| lacks("lora_a"))?, b.ok_or_else(|| lacks("lora_b"))?);
        let rank = b.ne[0];
        let rank = u32::try_from(rank).ok().filter(|r| (1..=1 << 16).contains(r)).ok_or_else(|| {
            LoraError::Shape { tensor: b.name.clone(), expected: vec![b.ne[1], 1], found: shape(&b.ne) }
        })?;
        out.insert(base.to_owned(), Pair { a: a.clone(), b: b.clone(), rank });
    }
    Ok(out)
}

/// Checks scales for `expected` LoRAs.
///
/// # Errors
/// [`LoraError::Count`], [`LoraError::Scale`].
pub(crate) fn check_scales(expected: usize, scales: &[f32]) -> Result<(), LoraError> {
    if expected != scales.len() {
        return Err(LoraError::Count { expected, found: scales.len() });
    }
    match scales.iter().find(|s| !s.is_finite()) {
        Some(s) => Err(LoraError::Scale { found: *s }),
        None => Ok(()),
    }
}

/// Prefix of the names of LoRA tensors in a graph, followed by the LoRA's index.
const PREFIX: &str = "adapter.";

/// A tensor of zeros of any size: a buffer for scales, which are written after loading.
pub(crate) const ZEROS: &str = "adapter.zeros";

/// The name of a tensor of LoRA `i` in the graph.
pub(crate) fn graph_name(i: usize, tensor: &str) -> String {
    format!("{PREFIX}{i}.{tensor}")
}

/// The LoRA's index and the tensor's name in its file.
pub(crate) fn file_name(name: &str) -> Option<(usize, &str)> {
    let (i, tensor) = name.strip_prefix(PREFIX)?.split_once('.')?;
    Some((i.parse().ok()?, tensor))
}
