//! Models that are not here: their headers are read by ranges.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chaski::Source;
use chaski::gguf::SourceError;
use chaski::source::{Reader, Reading};
use chaski_hub::{Bytes, Form, Hub, HubError, ModelName, Plan, RemoteFile, Watch};

use super::Models;
use crate::failure::Instead;
use crate::interrupt::Answering;

/// A model that is read from its server.
pub(crate) struct Remote {
    /// Its files, and what of them is missing.
    pub(crate) plan: Plan,
    /// The readers.
    pub(crate) source: Source,
    /// Free bytes of the disk with the cache, if known.
    pub(crate) n_free: Option<u64>,
}

/// A model to describe.
pub(crate) enum Described {
    /// A file that is here.
    Here(PathBuf),
    /// Files on a server.
    Remote(Box<Remote>),
}

impl Models {
    /// A model to describe, without fetching it.
    ///
    /// # Errors
    /// Those of names and the network; [`Instead`] for a checkpoint that is not here.
    pub(crate) fn described(&self, word: &Path) -> anyhow::Result<Described> {
        let name = match self.name_of(word)? {
            ModelName::Path(path) => return Ok(Described::Here(path)),
            name => name,
        };
        let hub = self.hub()?;
        if let Some(found) = hub.find(&name)? {
            return Ok(Described::Here(found.path));
        }
        let plan = self.watched(&mut |_| {}, |watch| hub.plan(&name, watch))?;
        if plan.form != Form::Gguf {
            let (n, size) = (plan.files.len(), Bytes(plan.n_byte()));
            let message = format!(
                "`{name}` is no GGUF file but {n} files of {size}: `chaski pull {name}` fetches them"
            );
            return Err(Instead(message).into());
        }
        let source = Source::Readers(readers(hub, &plan)?);
        let n_free = hub.free_space();
        Ok(Described::Remote(Box::new(Remote { plan, source, n_free })))
    }
}

fn readers(hub: &Hub, plan: &Plan) -> Result<Vec<Arc<dyn Reader>>, HubError> {
    let reader =
        |file| -> Result<Arc<dyn Reader>, HubError> { Ok(Arc::new(Ranges(hub.remote(plan, file)?))) };
    (0..plan.files.len()).map(reader).collect()
}

/// A file that is read by ranges.
struct Ranges(RemoteFile);

impl fmt::Debug for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ranges({})", self.0.path())
    }
}

impl Reader for Ranges {
    fn name(&self) -> &str {
        self.0.path()
    }

    fn len(&self) -> u64 {
        self.0.size()
    }

    fn read_at<'a>(&'a self, offset: u64, buf: &'a mut [u8]) -> Reading<'a> {
        let answering = Answering::begin();
        let read = self.0.read_at(offset, buf, &mut Watch { cancel: answering.flag(), tell: &mut |_| {} });
        let wrong = |e: HubError| SourceError::Other { name: self.name().to_owned(), source: e.into() };
        Box::pin(std::future::ready(read.map_err(wrong)))
    }
}
