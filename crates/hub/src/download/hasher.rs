//! Digests of files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use crate::digest::Digest;
use crate::error::HubError;
use crate::job::Job;

/// The digest of bytes that come piece by piece.
pub(crate) enum Hasher {
    Sha256(Sha256),
    Git(Sha1),
    /// No digest is known.
    None,
}

impl Hasher {
    /// A digest of the kind of `expected`; git's begins with the size.
    pub(crate) fn of(expected: Option<&Digest>, size: u64) -> Hasher {
        match expected {
            Some(Digest::Sha256(_)) => Hasher::Sha256(Sha256::new()),
            Some(Digest::Git(_)) => Hasher::Git(Sha1::new_with_prefix(format!("blob {size}\0"))),
            None => Hasher::None,
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Hasher::Sha256(hasher) => hasher.update(bytes),
            Hasher::Git(hasher) => hasher.update(bytes),
            Hasher::None => {}
        }
    }

    /// The digest; `None` of [`Hasher::None`].
    pub(crate) fn finish(self) -> Option<Digest> {
        match self {
            Hasher::Sha256(hasher) => Some(Digest::Sha256(hex(&hasher.finalize()))),
            Hasher::Git(hasher) => Some(Digest::Git(hex(&hasher.finalize()))),
            Hasher::None => None,
        }
    }
}

/// Digits of bytes.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// sha256 of a text.
pub(crate) fn sha256_of_text(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// The digest of a file, of the kind of another.
///
/// # Errors
/// [`HubError::File`], [`HubError::Interrupted`].
pub(crate) fn of_file(
    path: &Path,
    like: &Digest,
    job: &Job,
    mut tell: impl FnMut(u64),
) -> Result<Digest, HubError> {
    let failed = |source| HubError::File { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let mut hasher = Hasher::of(Some(like), size);
    let mut piece = vec![0; 1 << 20];
    let mut n_done = 0;
    loop {
        job.check()?;
        match file.read(&mut piece).map_err(failed)? {
            0 => break,
            n => {
                hasher.update(&piece[..n]);
                n_done += n as u64;
                tell(n_done);
            }
        }
    }
    Ok(hasher.finish().expect("a hasher like a digest has one"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_digests() {
        let git = |text: &str| {
            let mut hasher = Hasher::of(Some(&Digest::Git(String::new())), text.len() as u64);
            hasher.update(text.as_bytes());
            hasher.finish().unwrap().digits().to_owned()
        };
        // `git hash-object` of an empty file, and of the file README.md of the golden cache.
        assert_eq!(git(""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(git("hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(sha256_of_text("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
