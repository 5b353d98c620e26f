//! The tensors of a checkpoint's files.

use ggml_format::ByteSource;

use crate::folder::{Folder, FolderError};
use crate::safetensors::{Dtype, SafetensorsError, ShardIndex, read_header};
use crate::tensor_set::{Entry, TensorSet};

/// The only file of weights.
const SINGLE: &str = "model.safetensors";
/// The index of several files.
const INDEX: &str = "model.safetensors.index.json";

/// Files that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum TensorsError {
    #[error("`{folder}`: expected {SINGLE} or {INDEX}, found neither{}", hint(.found))]
    NoWeights { folder: String, found: Vec<String> },
    #[error("in `{file}`")]
    File {
        file: String,
        #[source]
        source: SafetensorsError,
    },
    #[error("tensor `{tensor}`: expected once in the text model, found twice")]
    Twice { tensor: String },
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// Advice for the files that a folder has instead.
fn hint(found: &[String]) -> &'static str {
    let has = |end: &str| found.iter().any(|name| name.ends_with(end));
    if has("consolidated.safetensors") {
        "; consolidated.safetensors has names of its own, take the files of transformers"
    } else if has(".bin") || has(".pt") || has(".pth") {
        "; pickles can run code and are never read, convert them to safetensors with a program that you trust"
    } else {
        ""
    }
}

/// The name of a tensor in the text model, which is part of another model in checkpoints that see pictures.
fn text_name(name: &str) -> String {
    if let Some(rest) = name.strip_prefix("model.language_model.") {
        return format!("model.{rest}");
    }
    name.strip_prefix("language_model.").unwrap_or(name).to_owned()
}

fn located(file: &str) -> impl FnOnce(SafetensorsError) -> TensorsError {
    let file = file.to_owned();
    |source| TensorsError::File { file, source }
}

/// The index of a folder, if it has one.
async fn index<S: ByteSource>(folder: &Folder<S>) -> Result<Option<ShardIndex>, TensorsError> {
    let json = folder.try_read(INDEX).await?;
    json.map(|json| ShardIndex::parse(&json)).transpose().map_err(located(INDEX))
}

/// The files with weights: those that the index names, or the only one; `None` if there is neither.
fn files<S: ByteSource>(folder: &Folder<S>, index: Option<&ShardIndex>) -> Option<Vec<String>> {
    match index {
        Some(index) => Some(index.files.keys().cloned().collect()),
        None => folder.all_names().any(|name| name == SINGLE).then(|| vec![SINGLE.to_owned()]),
    }
}

/// Names of the files with weights; none if the folder has neither an index nor the only file.
pub(crate) async fn weight_files<S: ByteSource>(folder: &Folder<S>) -> Result<Vec<String>, TensorsError> {
    Ok(files(folder, index(folder).await?.as_ref()).unwrap_or_default())
}

/// Reads the headers of all files.
pub(super) async fn read<S: ByteSource>(folder: &Folder<S>) -> Result<TensorSet, TensorsError> {
    let index = index(folder).await?;
    let Some(files) = files(folder, index.as_ref()) else {
        let (folder, found) = (folder.name().to_owned(), folder.all_names().map(str::to_owned).collect());
        return Err(TensorsError::NoWeights { folder, found });
    };
    let mut tensors = TensorSet::default();
    for file in files.iter().map(String::as_str) {
        let missing = || FolderError::Missing { folder: folder.name().to_owned(), file: file.to_owned() };
        let number = folder.position(file).ok_or_else(missing)?;
        let source = folder.file(file).ok_or_else(missing)?;
        let header = read_header(source).await.map_err(located(file))?;
        if let Some(index) = &index {
            index.check(file, header.tensors.iter().map(|t| t.name.as_str())).map_err(located(file))?;
        }
        // Names are unique: an index names one file for each.
        for tensor in header.tensors {
            let name = text_name(&tensor.name);
            if !tensors.insert(name.clone(), Entry { file: number, tensor }) {
                return Err(TensorsError::Twice { tensor: name });
            }
        }
    }
    Ok(tensors)
}

/// The type of the first matrix whose elements are weights.
pub(super) fn dtype(tensors: &TensorSet) -> Option<Dtype> {
    let mut matrices: Vec<&Entry> = tensors.iter().filter(|e| e.shape().len() > 1).collect();
    matrices.sort_by_key(|e| (e.file, e.tensor.offset));
    matrices.into_iter().map(Entry::dtype).find(|dtype| dtype.ggml().is_some())
}
