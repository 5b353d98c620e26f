//! Importance matrices measured on a text, like llama.cpp's `llama-imatrix`.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use chaski_runtime::cpu::ProductInput;
use ggml_format::{Imatrix, ImatrixEntry};

use super::runner::Runner;
use crate::error::ModelError;
use chaski_text::{AddSpecial, ParseSpecial, Tokenizer};

/// Options of the measurement.
#[derive(Copy, Clone, Debug)]
pub struct ImatrixOptions {
    /// Tokens per chunk of text.
    pub n_ctx: usize,
    /// Chunks to skip at the start of the text.
    pub skip: usize,
    /// Maximum number of chunks.
    pub max_chunks: Option<NonZeroUsize>,
    /// Include the output matrix, whose inputs are otherwise computed for the last token only.
    pub process_output: bool,
    /// Parse names of special tokens in the text.
    pub parse_special: bool,
}

/// Sums of squares of one tensor's inputs.
#[derive(Clone, Debug)]
struct Sums {
    n_col: usize,
    /// `[n_mat, n_col]`, for the matrices seen.
    squares: Vec<f64>,
    /// `[n_mat]`
    counts: Vec<u64>,
}

/// Accumulates squares of inputs while a model runs.
#[derive(Clone, Debug, Default)]
struct Collector {
    sums: BTreeMap<String, Sums>,
}

impl Collector {
    fn add(&mut self, input: ProductInput<'_>) {
        // All parts of a fused tensor have the same inputs.
        if input.weight.row0 > 0 {
            return;
        }
        let n_col = input.weight.n_col as usize;
        if !self.sums.contains_key(&input.weight.name) {
            let sums = Sums { n_col, squares: Vec::new(), counts: Vec::new() };
            self.sums.insert(input.weight.name.clone(), sums);
        }
        let sums = self.sums.get_mut(&input.weight.name).expect("it was put there");
        let mat = input.matrix as usize;
        if mat >= sums.counts.len() {
            sums.counts.resize(mat + 1, 0);
            sums.squares.resize((mat + 1) * n_col, 0.0);
        }
        let squares = &mut sums.squares[mat * n_col..(mat + 1) * n_col];
        for row in input.x.chunks_exact(n_col) {
            squares.iter_mut().zip(row).for_each(|(sum, x)| *sum += f64::from(*x).powi(2));
            sums.counts[mat] += 1;
        }
    }

    /// The result so far; `n_mat` returns the number of matrices of a tensor.
    fn imatrix(&self, n_mat: &(dyn Fn(&str) -> usize + Sync)) -> Result<Imatrix, ModelError> {
        let mut imatrix = Imatrix::default();
        for (name, sums) in &self.sums {
            let n = n_mat(name).max(sums.counts.len());
            let mut squares: Vec<f32> = sums.squares.iter().map(|&sum| sum as f32).collect();
            let mut counts: Vec<f32> = sums.counts.iter().map(|&n| n as f32).collect();
            squares.resize(n * sums.n_col, 0.0);
            counts.resize(n, 0.0);
            let entry = ImatrixEntry::new(name, squares, counts);
            let wrong = |source| ModelError::Importance { tensor: name.clone(), source };
            imatrix.entries.insert(name.clone(), entry.map_err(wrong)?);
        }
        Ok(imatrix)
    }
}

/// Progress of a measurement.
#[derive(Copy, Clone)]
pub struct ImatrixProgress<'a> {
    /// Finished chunks.
    pub n_done: usize,
    /// Total chunks.
    pub n_chunk: usize,
    collector: &'a Collector,
    n_ctx: usize,
    n_mat: &'a (dyn Fn(&str) -> usize + Sync),
}

impl ImatrixProgress<'_> {
    /// The result so far.
    ///
    /// # Errors
    /// [`ModelError::Importance`] if inputs are not finite.
    pub fn imatrix(&self) -> Result<Imatrix, ModelError> {
        let mut imatrix = self.collector.imatrix(self.n_mat)?;
        imatrix.n_chunk = self.n_done as u32;
        imatrix.chunk_len = self.n_ctx as u32;
        Ok(imatrix)
    }
}

/// Measures the importance of the columns of a model's matrices on a text, divided into disjoint chunks.
///
/// The result names no datasets. `n_mat` returns the number of matrices of a tensor: some experts may never be used.
/// `progress` is called at the start and after each chunk. Source: llama.cpp's imatrix tool; as there, only matrices
/// of layers are included, and the output matrix on request.
///
/// # Errors
/// [`ModelError::NeedsCpu`] for a model on a GPU, [`ModelError::ShortText`] for a text of less than a chunk,
/// [`ModelError::Importance`] if inputs are not finite; errors of `progress`.
pub async fn imatrix<E: From<ModelError>>(
    runner: &mut Runner,
    tokenizer: &Tokenizer,
    text: &str,
    options: &ImatrixOptions,
    n_mat: &(dyn Fn(&str) -> usize + Sync),
    mut progress: impl FnMut(&ImatrixProgress<'_>) -> Result<(), E>,
) -> Result<Imatrix, E> {
    let special = if options.parse_special { ParseSpecial::Yes } else { ParseSpecial::No };
    let tokens = tokenizer.encode(text, AddSpecial::Yes, special).map_err(ModelError::from)?;
    let n_ctx = options.n_ctx.max(1);
    let needed = n_ctx.saturating_mul(options.skip.saturating_add(1));
    if tokens.len() < needed {
        return Err(
            ModelError::ShortText { found: tokens.len(), what: "measuring importance", needed }.into()
        );
    }
    let max_chunks = options.max_chunks.map_or(usize::MAX, NonZeroUsize::get);
    let chunks: Vec<&[u32]> = tokens.chunks_exact(n_ctx).skip(options.skip).take(max_chunks).collect();
    let mut collector = Collector::default();
    progress(&ImatrixProgress { n_done: 0, n_chunk: chunks.len(), collector: &collector, n_ctx, n_mat })?;
    for (i, chunk) in chunks.iter().enumerate() {
        let mut chunk = chunk.to_vec();
        if let Some(bos) = tokenizer.bos().filter(|_| tokenizer.adds_bos()) {
            chunk[0] = bos;
        }
        runner.truncate(0);
        let mut watch = |input: ProductInput<'_>| {
            // The output matrix belongs to no layer, and may be the embeddings.
            if input.weight.name.starts_with("blk.") || options.process_output {
                collector.add(input);
            }
        };
        runner.feed_watched(&chunk, options.process_output, &mut watch).await?;
        progress(&ImatrixProgress {
            n_done: i + 1,
            n_chunk: chunks.len(),
            collector: &collector,
            n_ctx,
            n_mat,
        })?;
    }
    let done =
        ImatrixProgress { n_done: chunks.len(), n_chunk: chunks.len(), collector: &collector, n_ctx, n_mat };
    Ok(done.imatrix()?)
}
