//! The input model, read piece by piece.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use chaski::source::folder::{self, OpenOptions, Types};
use chaski::source::{AnySource, FileSource};
use ggml_format::{ByteSource, ModelFile};

/// A model in files of this kind.
pub(crate) type Model = ModelFile<AnySource>;

/// Opens the model whose first file is `path`, or that is the folder `path`: then codes that ggml has no type for are
/// f32.
pub(crate) fn open(path: &Path) -> Result<Model> {
    if folder::is_checkpoint(path) {
        let options = OpenOptions { types: Types::Exact, ..OpenOptions::default() };
        return Ok(open_folder(path, &options)?.0);
    }
    // The names of a split set derive from the first one's.
    path.to_str().with_context(|| format!("`{}`: expected a UTF-8 path", path.display()))?;
    let open = |path: &Path| FileSource::open(path).map(AnySource::File);
    Ok(pollster::block_on(ModelFile::open(open(path)?, |name| open(Path::new(name))))?)
}

/// Opens a folder of Hugging Face; also returns notes about it.
pub(super) fn open_folder(path: &Path, options: &OpenOptions) -> Result<(Model, Vec<String>)> {
    let opened = pollster::block_on(folder::open(path, options))?;
    let source = AnySource::Checkpoint(Box::new(opened.source));
    let none = |name: &str| unreachable!("a folder is one file, and asks for no `{name}`");
    Ok((pollster::block_on(ModelFile::open(source, none))?, opened.notes))
}

/// The files that a model is read from.
pub(super) fn files(model: &Model) -> Vec<PathBuf> {
    let of = |source: &AnySource| match source {
        AnySource::Checkpoint(source) => source.files().iter().map(|file| file.name().into()).collect(),
        other => vec![PathBuf::from(other.name())],
    };
    model.shards().iter().flat_map(of).collect()
}
