//! Fingerprints that distinguish files of equal sizes, such as fine-tunes of one model.

use std::hash::{Hash as _, Hasher as _};

use ggml_format::{ByteSource, ModelFile, SourceError, Value};
use rustc_hash::FxHasher;

/// Number of sampled tensors, and bytes of each.
const N_TENSOR: usize = 8;
const N_BYTE: u64 = 4096;

/// A hash of the file's scalar metadata, its tensor directory, and the first bytes of some tensors.
///
/// # Errors
/// Errors of the source.
pub(crate) async fn fingerprint<S: ByteSource>(file: &ModelFile<S>) -> Result<u64, SourceError> {
    let mut hasher = FxHasher::default();
    for (key, value) in file.metadata().iter() {
        if !matches!(value, Value::Array(_)) {
            (key, format!("{value:?}")).hash(&mut hasher);
        }
    }
    let tensors = file.tensors();
    for t in tensors {
        (&t.name, t.ne, t.ty.name()).hash(&mut hasher);
    }
    for t in tensors.iter().step_by(tensors.len().div_ceil(N_TENSOR).max(1)) {
        let mut bytes = vec![0; t.n_byte.min(N_BYTE) as usize];
        file.read_tensor(t, 0, &mut bytes).await?;
        bytes.hash(&mut hasher);
    }
    Ok(hasher.finish())
}
