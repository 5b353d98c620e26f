//! A model of which a worker has the header, small tensors, and pieces of experts.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, ensure};
use chaski::Source;
use chaski::experts::{Graph, Tensors};
use chaski::gguf::{Gguf, SourceError};
use chaski::source::{Reader, Reading};
use chaski_wire::Digest;

use super::store::Store;
use crate::swarm::SMALL;

/// Name in messages.
const NAME: &str = "the hub's model";

/// The header of a model as a file: reads beyond the header have the data of small tensors.
pub(crate) struct Skeleton {
    /// Header, and the data of small tensors one after another.
    bytes: Vec<u8>,
    /// Length of the file that the header describes.
    n_byte: u64,
    /// Places of the header and of small tensors in the file, and their offsets in `bytes`.
    parts: Vec<(Range<u64>, usize)>,
}

impl fmt::Debug for Skeleton {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Skeleton").field("n_byte", &self.n_byte).finish_non_exhaustive()
    }
}

impl Skeleton {
    /// Reads the skeleton of a hub, whose digest was compared.
    ///
    /// # Errors
    /// A header that is none, or data that the header does not have.
    pub(crate) fn new(bytes: Vec<u8>) -> anyhow::Result<Skeleton> {
        // The length of the file is known only from the header.
        let gguf = Gguf::parse(bytes.clone().into(), u64::MAX >> 1).context("the hub's skeleton")?;
        let n_head = gguf.data_start();
        let mut parts = vec![(0..n_head, 0)];
        let (mut at, mut n_byte) = (usize::try_from(n_head)?, n_head);
        for tensor in gguf.tensors() {
            let end = tensor.offset.checked_add(tensor.n_byte).context("a tensor ends beyond 2^64")?;
            n_byte = n_byte.max(end);
            if tensor.n_byte <= SMALL {
                parts.push((tensor.offset..end, at));
                at += tensor.n_byte as usize;
            }
        }
        ensure!(at == bytes.len(), "a skeleton of {} bytes, expected {at}", bytes.len());
        Ok(Skeleton { bytes, n_byte, parts })
    }

    /// Builds the graph of the model.
    ///
    /// # Errors
    /// A model that this build does not know, or that is damaged.
    pub(crate) fn graph(self) -> anyhow::Result<Graph> {
        let source = Source::Readers(vec![Arc::new(self) as Arc<dyn Reader>]);
        let model = pollster::block_on(source.open())?;
        Ok(pollster::block_on(model.graph(1))?)
    }

    /// `None` for bytes that the skeleton lacks. A reader of headers reads beyond them, so there they are zero.
    fn copy(&self, offset: u64, buf: &mut [u8]) -> Option<()> {
        let end = offset.checked_add(buf.len() as u64)?;
        let (head, _) = &self.parts[0];
        if offset < head.end {
            let n = (head.end.min(end) - offset) as usize;
            buf[..n].copy_from_slice(&self.bytes[offset as usize..offset as usize + n]);
            buf[n..].fill(0);
            return Some(());
        }
        let (place, at) = self.parts.iter().find(|(place, _)| place.start <= offset && end <= place.end)?;
        let start = at + (offset - place.start) as usize;
        buf.copy_from_slice(self.bytes.get(start..start + buf.len())?);
        Some(())
    }
}

impl Reader for Skeleton {
    fn name(&self) -> &str {
        NAME
    }

    fn len(&self) -> u64 {
        self.n_byte
    }

    fn read_at<'a>(&'a self, offset: u64, buf: &'a mut [u8]) -> Reading<'a> {
        let error = || SourceError::Other {
            name: NAME.to_owned(),
            source: format!("byte {offset} is not part of the skeleton").into(),
        };
        Box::pin(std::future::ready(self.copy(offset, buf).ok_or_else(error)))
    }
}

/// A piece of a tensor, from an ASSIGN message.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) n_byte: u64,
    pub(crate) digest: Digest,
    /// Path at the hub.
    pub(crate) path: String,
}

/// Pieces by tensor and first byte.
pub(crate) type Digests = HashMap<String, BTreeMap<u64, Piece>>;

/// Pieces of tensors that are in the store.
pub(crate) struct Pieces {
    store: Store,
    digests: Arc<Mutex<Digests>>,
    /// The piece that was read last: its rows are read one after another.
    last: Mutex<Option<(Digest, Vec<u8>)>>,
}

impl Pieces {
    pub(crate) fn new(store: Store, digests: Arc<Mutex<Digests>>) -> Pieces {
        Pieces { store, digests, last: Mutex::new(None) }
    }

    /// Reads within one piece, which is compared with its digest.
    fn copy(&self, name: &str, offset: u64, buf: &mut [u8]) -> anyhow::Result<()> {
        let end = offset + buf.len() as u64;
        let (start, digest) = {
            let digests = self.digests.lock().expect("nobody panics with it");
            let before = digests.get(name).and_then(|of_tensor| of_tensor.range(..=offset).next_back());
            let found = before.filter(|(start, piece)| end <= *start + piece.n_byte);
            found
                .map(|(start, piece)| (*start, piece.digest))
                .with_context(|| format!("bytes {offset} to {end} of tensor `{name}` are not assigned"))?
        };
        let mut last = self.last.lock().expect("nobody panics with it");
        if last.as_ref().is_none_or(|(found, _)| *found != digest) {
            let bytes = self.store.read(&digest).with_context(|| format!("{digest} is not in the store"))?;
            *last = Some((digest, bytes));
        }
        let (_, bytes) = last.as_ref().expect("it was just read");
        let at = (offset - start) as usize;
        let part = bytes.get(at..at + buf.len()).context("a piece is shorter than its assignment")?;
        buf.copy_from_slice(part);
        Ok(())
    }
}

impl Tensors for Pieces {
    async fn read(
        &self,
        name: &str,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.copy(name, offset, buf)?)
    }
}
