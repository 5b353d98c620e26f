//! The hashes of the files of a folder.

use ggml_format::ByteSource;
use md5::{Digest, Md5};

use super::{MlcError, index};
use crate::folder::{Folder, FolderError};

/// Bytes that are read at once.
const PIECE: u64 = 4 << 20;

/// Compares the hash of each file of weights with the index.
///
/// # Errors
/// [`MlcError::Hash`] for the first file whose hash differs, and failures of the sources.
pub async fn verify<S: ByteSource>(folder: &Folder<S>) -> Result<(), MlcError> {
    let (_, shards) = index::shards(folder).await?;
    let mut piece = vec![0; PIECE as usize];
    for shard in shards.iter().filter(|shard| !shard.md5sum.is_empty()) {
        let missing = || FolderError::Missing { folder: folder.name().to_owned(), file: shard.file.clone() };
        let source = folder.file(&shard.file).ok_or_else(missing)?;
        let mut hash = Md5::new();
        let mut at = 0;
        while at < shard.n_byte {
            let piece = &mut piece[..PIECE.min(shard.n_byte - at) as usize];
            source.read_at(at, piece).await.map_err(FolderError::from)?;
            hash.update(&*piece);
            at += piece.len() as u64;
        }
        let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        if !found.eq_ignore_ascii_case(&shard.md5sum) {
            let (file, expected) = (shard.file.clone(), shard.md5sum.clone());
            return Err(MlcError::Hash { file, expected, found });
        }
    }
    Ok(())
}
