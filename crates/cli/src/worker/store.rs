//! Weights on the disk of a worker, by digest: it comes back with what it held.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use chaski_wire::{Digest, Hex};
use sha2::{Digest as _, Sha256};

use crate::swarm_options::random;

/// A folder of files that are named by the sha256 of their contents.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    folder: PathBuf,
}

impl Store {
    /// Opens a folder, and makes it if it is not there.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn open(folder: &Path) -> anyhow::Result<Store> {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the store `{}`", folder.display()))?;
        Ok(Store { folder: folder.to_owned() })
    }

    /// Identity of the worker, made when it is first asked for.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn id(&self) -> anyhow::Result<Hex<16>> {
        let path = self.folder.join("id");
        if let Some(id) = std::fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok()) {
            return Ok(id);
        }
        let id = Hex(random()?);
        std::fs::write(&path, format!("{id}\n"))
            .with_context(|| format!("cannot write `{}`", path.display()))?;
        Ok(id)
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        let name = digest.to_string();
        self.folder.join(&name[..2]).join(name)
    }

    /// Contents of a digest; `None` if they are not here. A file with other contents is removed.
    pub(crate) fn read(&self, digest: &Digest) -> Option<Vec<u8>> {
        let path = self.path(digest);
        let bytes = std::fs::read(&path).ok()?;
        if Sha256::digest(&bytes).as_slice() == digest.0 {
            return Some(bytes);
        }
        tracing::warn!("`{}` has other contents than its name says: fetched again", path.display());
        if let Err(error) = std::fs::remove_file(&path) {
            tracing::warn!("cannot remove `{}`: {error}", path.display());
        }
        None
    }

    /// Writes contents of a digest.
    ///
    /// # Errors
    /// Contents of another digest; those of the system.
    pub(crate) fn write(&self, digest: &Digest, bytes: &[u8]) -> anyhow::Result<()> {
        let found = Hex(Sha256::digest(bytes).into());
        anyhow::ensure!(found == *digest, "bytes of the digest {found}, expected {digest}");
        let path = self.path(digest);
        let folder = path.parent().expect("contents lie in a folder");
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
        // Other processes see all of a file or nothing.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(bytes).with_context(|| format!("cannot write `{}`", path.display()))?;
        file.persist(&path).with_context(|| format!("cannot write `{}`", path.display()))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_those_of_their_digest() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let digest = Hex(Sha256::digest(b"weights").into());
        assert_eq!(store.read(&digest), None);
        let error = store.write(&digest, b"weightz").unwrap_err().to_string();
        assert!(error.starts_with("bytes of the digest ") && error.ends_with(&digest.to_string()), "{error}");
        store.write(&digest, b"weights").unwrap();
        assert_eq!(Store::open(folder.path()).unwrap().read(&digest).as_deref(), Some(&b"weights"[..]));
        std::fs::write(store.path(&digest), b"weighty").unwrap();
        assert_eq!(store.read(&digest), None);
        assert!(!store.path(&digest).exists());
    }

    #[test]
    fn an_identity_stays() {
        let folder = tempfile::tempdir().unwrap();
        let id = Store::open(folder.path()).unwrap().id().unwrap();
        assert_eq!(Store::open(folder.path()).unwrap().id().unwrap(), id);
        std::fs::write(folder.path().join("id"), "damaged").unwrap();
        assert_ne!(Store::open(folder.path()).unwrap().id().unwrap(), id);
    }
}
