//! The input model, read piece by piece.

use std::path::Path;

use anyhow::{Context, Result};
use chaski::source::FileSource;
use ggml_format::ModelFile;

/// A model in files of this kind.
pub(crate) type Model = ModelFile<FileSource>;

/// Opens the model whose first file is `path`.
pub(crate) fn open(path: &Path) -> Result<Model> {
    // The names of a split set derive from the first one's.
    path.to_str().with_context(|| format!("`{}`: expected a UTF-8 path", path.display()))?;
    let first = FileSource::open(path)?;
    let sibling = |name: &str| FileSource::open(Path::new(name));
    Ok(pollster::block_on(ModelFile::open(first, sibling))?)
}
