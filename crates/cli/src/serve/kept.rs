//! The file of models that clients of servers fetched, and of names that they gave.
//!
//! All servers of a user share it: each change reads it under a lock, and replaces it as a whole.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, bail};
use chaski_hub::ModelName;
use serde::{Deserialize, Serialize};

use crate::output::write_bytes;

/// A model that was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fetched {
    /// Its id, and further names.
    pub(super) names: Vec<String>,
    pub(super) path: PathBuf,
    /// The files to delete with it, if they are in the cache.
    pub(super) files: Option<ModelName>,
}

/// Models and names of clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) fetched: Vec<Fetched>,
    /// Names for models that were there without clients, and the ids of these.
    pub(super) copies: Vec<(String, String)>,
}

/// Version of the file.
const VERSION: u32 = 1;

/// Time to wait for another server that changes the file.
const PATIENCE: Duration = Duration::from_secs(5);

/// The file.
pub(super) struct Kept {
    path: PathBuf,
    /// Time and length of the version that was read last; `None` before the first.
    stamp: Mutex<Option<Stamp>>,
    note: Box<dyn Fn(&str) + Send + Sync>,
}

/// `None` where there is no file.
type Stamp = Option<(SystemTime, u64)>;

/// The contents of the file.
#[derive(Serialize, Deserialize)]
struct Contents {
    version: u32,
    fetched: Vec<Model>,
    /// Further names of models that were not fetched, and the ids of these.
    names: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
struct Model {
    names: Vec<String>,
    path: PathBuf,
    /// Name of the files in the cache.
    files: Option<String>,
}

impl Kept {
    /// The file at a path. `note` takes failures: none of them keeps a server from its work.
    pub(super) fn new(path: PathBuf, note: impl Fn(&str) + Send + Sync + 'static) -> Kept {
        Kept { path, stamp: Mutex::default(), note: Box::new(note) }
    }

    /// The usual place, if the system has one.
    pub(super) fn usual_place() -> Option<PathBuf> {
        let place = directories::ProjectDirs::from("", "", "chaski")?;
        Some(place.data_dir().join("served-models.json"))
    }

    /// The contents, if they are others than at the last look.
    pub(super) fn changed(&self) -> Option<State> {
        let now = self.look();
        if self.stamp.lock().unwrap_or_else(PoisonError::into_inner).replace(now) == Some(now) {
            return None;
        }
        match read(&self.path) {
            Ok(state) => Some(state),
            Err(error) => {
                (self.note)(&format!("fetched models and given names are not listed: {error:#}"));
                None
            }
        }
    }

    /// Makes a change, in the file and here. Where the file cannot be changed, here only.
    pub(super) fn change<T>(&self, state: &mut State, change: impl FnOnce(&mut State) -> T) -> T {
        let locked = self.lock().and_then(|lock| Ok((lock, read(&self.path)?)));
        let (lock, unkept) = match locked {
            Ok((lock, now)) => {
                *state = now;
                (Some(lock), None)
            }
            Err(error) => (None, Some(error)),
        };
        let result = change(state);
        let kept = unkept.map_or_else(|| self.write(state), Err);
        drop(lock);
        if let Err(error) = kept {
            (self.note)(&format!(
                "the list of fetched models and given names is kept until the server ends: {error:#}"
            ));
        }
        result
    }

    fn write(&self, state: &State) -> anyhow::Result<()> {
        let model = |fetched: &Fetched| Model {
            names: fetched.names.clone(),
            path: fetched.path.clone(),
            files: fetched.files.as_ref().map(ToString::to_string),
        };
        let fetched = state.fetched.iter().map(model).collect();
        let contents = Contents { version: VERSION, fetched, names: state.copies.iter().cloned().collect() };
        let mut text = serde_json::to_vec_pretty(&contents)?;
        text.push(b'\n');
        write_bytes(&self.path, &[], &text)?;
        *self.stamp.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.look());
        Ok(())
    }

    fn look(&self) -> Stamp {
        let about = fs::metadata(&self.path).ok()?;
        Some((about.modified().ok()?, about.len()))
    }

    /// The lock, until the file is closed. It is a file of its own, since the other is replaced.
    fn lock(&self) -> anyhow::Result<File> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("`{}` cannot be made", folder.display()))?;
        }
        let path = self.path.with_extension("lock");
        let failed = || format!("`{}` cannot be locked", path.display());
        let file = File::options().append(true).create(true).open(&path).with_context(failed)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {}
                Err(error) => return Err(error).with_context(failed),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The contents of a file; none where there is no file.
fn read(path: &Path) -> anyhow::Result<State> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(State::default()),
        Err(error) => return Err(error).with_context(|| format!("`{}` cannot be read", path.display())),
    };
    parse(&text).with_context(|| format!("`{}` cannot be used", path.display()))
}

fn parse(text: &str) -> anyhow::Result<State> {
    let Contents { version, fetched, names } = serde_json::from_str(text)?;
    if version != VERSION {
        bail!("it has version {version}, and this program knows {VERSION}");
    }
    let model = |model: Model| {
        let files = model.files.map(|name| ModelName::parse(&name)).transpose()?;
        Ok(Fetched { names: model.names, path: model.path, files })
    };
    let fetched = fetched.into_iter().map(model).collect::<anyhow::Result<_>>()?;
    Ok(State { fetched, copies: names.into_iter().collect() })
}
