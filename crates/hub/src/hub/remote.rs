//! A file that is read by ranges, such as the header of a model before it is downloaded.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Hub, Inner};
use crate::address::Address;
use crate::client::{Asked, Failure, Tries, broken_body};
use crate::download::content_range;
use crate::error::HubError;
use crate::job::{Job, Watch};
use crate::name::ModelName;
use crate::plan::{Origin, Plan};
use crate::quote;

/// Bytes of a block.
const BLOCK: u64 = 512 << 10;
/// Most blocks that one request fetches; a header is read from its beginning on.
const MOST_AHEAD: u64 = 8;
/// Most blocks that are kept.
const MOST_KEPT: usize = 256;

/// A file of a plan that is read by ranges.
pub struct RemoteFile {
    inner: Arc<Inner>,
    plan: Plan,
    name: String,
    file: usize,
    size: u64,
    address: Address,
    blocks: Mutex<Blocks>,
}

#[derive(Default)]
struct Blocks {
    kept: BTreeMap<u64, Arc<[u8]>>,
    /// Blocks of the next request.
    n_ahead: u64,
    /// Bytes that were fetched.
    n_byte: u64,
}

impl Hub {
    /// A file of a plan, to be read by ranges.
    ///
    /// # Errors
    /// [`HubError::Answer`] if its size is not known.
    pub fn remote(&self, plan: &Plan, file: usize) -> Result<RemoteFile, HubError> {
        let planned = &plan.files[file];
        let name = plan.name.to_string();
        let address = match (&plan.origin, &plan.name) {
            (Origin::Hub { repo, commit, .. }, _) => {
                self.0.client.hub(&format!("/{repo}/resolve/{commit}/{}", quote::path(&planned.path)))
            }
            (Origin::Address { .. }, ModelName::Address(address)) => {
                super::plan::sibling(address, &planned.path)
            }
            _ => return Err(HubError::NotCached { name, cache: self.0.config.cache.clone() }),
        };
        let unknown = || HubError::Answer {
            address: address.plain().to_string(),
            what: "the server does not say how long the file is",
        };
        let size = planned.size.ok_or_else(unknown)?;
        let (inner, plan) = (self.0.clone(), plan.clone());
        Ok(RemoteFile { inner, plan, name, file, size, address, blocks: Mutex::default() })
    }
}

impl RemoteFile {
    /// Path of the file within its repository.
    pub fn path(&self) -> &str {
        &self.plan.files[self.file].path
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes that were fetched so far.
    pub fn n_fetched(&self) -> u64 {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner).n_byte
    }

    /// Fills `out` with the bytes from `offset` on.
    ///
    /// # Errors
    /// [`HubError`]; [`HubError::Size`] for bytes behind the end.
    pub fn read_at(&self, offset: u64, out: &mut [u8], watch: &mut Watch<'_>) -> Result<(), HubError> {
        let end = offset.checked_add(out.len() as u64).filter(|end| *end <= self.size);
        let Some(end) = end else {
            let found = offset.saturating_add(out.len() as u64);
            return Err(HubError::Size { file: self.path().to_owned(), expected: self.size, found });
        };
        let mut at = offset;
        while at < end {
            let block = self.block(at / BLOCK, watch)?;
            let start = (at % BLOCK) as usize;
            let n = (block.len() - start).min((end - at) as usize);
            let to = (at - offset) as usize;
            out[to..to + n].copy_from_slice(&block[start..start + n]);
            at += n as u64;
        }
        Ok(())
    }

    /// A block, fetched with some behind it.
    fn block(&self, i: u64, watch: &mut Watch<'_>) -> Result<Arc<[u8]>, HubError> {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(block) = blocks.kept.get(&i) {
            return Ok(block.clone());
        }
        let n = blocks.n_ahead.clamp(1, MOST_AHEAD);
        let (start, end) = (i * BLOCK, ((i + n) * BLOCK).min(self.size));
        let (inner, plan, address, file, name) =
            (self.inner.clone(), self.plan.clone(), self.address.clone(), self.file, self.name.clone());
        let bytes = Job::run(watch, move |job| inner.range(&plan, &name, file, &address, start, end, job))?;
        blocks.n_byte += bytes.len() as u64;
        blocks.n_ahead = 2 * n;
        if blocks.kept.len() + n as usize > MOST_KEPT {
            blocks.kept.clear();
        }
        for (k, block) in bytes.chunks(BLOCK as usize).enumerate() {
            blocks.kept.insert(i + k as u64, block.into());
        }
        Ok(blocks.kept[&i].clone())
    }
}

impl Inner {
    /// Bytes of a file, tried again as usual.
    fn range(
        &self,
        plan: &Plan,
        name: &str,
        file: usize,
        address: &Address,
        start: u64,
        end: u64,
        job: &Job,
    ) -> Result<Vec<u8>, HubError> {
        let (repo, revision) = match &plan.origin {
            Origin::Hub { repo, revision, .. } => (Some(repo), revision.as_str()),
            Origin::Address { .. } => (None, ""),
        };
        let asked = Asked { name, repo, revision, path: &plan.files[file].path };
        let headers = [("range", format!("bytes={start}-{}", end - 1))];
        let mut tries = Tries::new(&self.config.limits);
        loop {
            let bytes = self.client.get(&asked, address, &headers).and_then(|answer| {
                let shown = answer.address.plain();
                let skip = match answer.status.as_u16() {
                    206 if content_range(&answer)?.0 == start => 0,
                    206 => {
                        let what = "the answer is of another range than the one asked for";
                        return Err(HubError::Answer { address: shown.to_string(), what }.into());
                    }
                    _ => start,
                };
                let mut body = answer.into_reader();
                // A server without ranges sends all; what is before is dropped.
                std::io::copy(&mut body.by_ref().take(skip), &mut std::io::sink())
                    .map_err(|e| broken_body(&shown, e))?;
                let mut bytes = Vec::new();
                body.take(end - start).read_to_end(&mut bytes).map_err(|e| broken_body(&shown, e))?;
                match bytes.len() as u64 == end - start {
                    true => Ok(bytes),
                    false => {
                        let (at, size) = (start + bytes.len() as u64, end);
                        let error = HubError::Cut { address: shown.to_string(), at, size };
                        Err(Failure::Transient { error, wait: None })
                    }
                }
            });
            match bytes {
                Ok(bytes) => return Ok(bytes),
                Err(failure) => tries.again(job, failure)?,
            }
        }
    }
}
