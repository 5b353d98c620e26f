//! Shared read-only bytes: a mapped file, a downloaded prefix, or static data.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Reference-counted bytes; a clone is cheap.
#[derive(Clone)]
pub struct HeaderBytes(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl HeaderBytes {
    /// Shares the bytes of `owner`, which must return the same bytes on every call.
    pub fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> HeaderBytes {
        HeaderBytes(Arc::new(owner))
    }
}

impl Deref for HeaderBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl AsRef<[u8]> for HeaderBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Vec<u8>> for HeaderBytes {
    fn from(bytes: Vec<u8>) -> HeaderBytes {
        HeaderBytes::new(bytes)
    }
}

impl From<&'static [u8]> for HeaderBytes {
    fn from(bytes: &'static [u8]) -> HeaderBytes {
        HeaderBytes::new(bytes)
    }
}

impl From<Arc<[u8]>> for HeaderBytes {
    fn from(bytes: Arc<[u8]>) -> HeaderBytes {
        HeaderBytes::new(bytes)
    }
}

impl fmt::Debug for HeaderBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeaderBytes({} bytes)", self.len())
    }
}
