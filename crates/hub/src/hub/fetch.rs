//! Fetching of plans: room, locks, several files at once, links, and the reference last.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::find::address_file;
use super::plan::sibling;
use super::{Found, Inner};
use crate::cache::{ADDRESS_FILE, RepoFolder, create_folder, own_file};
use crate::client::Asked;
use crate::config::Links;
use crate::digest::Digest;
use crate::download::{Target, download, part};
use crate::error::HubError;
use crate::event::Event;
use crate::job::Job;
use crate::lock::{self, Lock};
use crate::name::{ModelName, RepoId};
use crate::plan::{Origin, Plan, PlannedFile};
use crate::quote;
use crate::select::Form;

impl Inner {
    pub(super) fn fetch(self: &Arc<Self>, plan: &Plan, job: &Job) -> Result<Found, HubError> {
        job.tell(Event::Planned(plan.clone()));
        if let ModelName::Path(_) | ModelName::Ollama(_) = plan.name {
            return Ok(self.find(&plan.name)?.expect("files and ollama's models are found or an error"));
        }
        if !plan.is_complete() {
            if self.config.offline {
                return Err(HubError::Offline {
                    name: plan.name.to_string(),
                    cache: self.config.cache.clone(),
                });
            }
            self.check_room(plan)?;
        } else if self.config.offline {
            let missing =
                || HubError::Offline { name: plan.name.to_string(), cache: self.config.cache.clone() };
            return self.find(&plan.name)?.ok_or_else(missing);
        }
        if let Origin::Hub { repo, commit, tree, .. } = &plan.origin {
            // Kept first: without it, some of the files could be taken for all.
            self.cache.repo(repo).set_tree(commit, tree);
        }
        let mut places = self.fetch_files(plan, job)?;
        let projector = plan.has_projector.then(|| places.pop()).flatten();
        match &plan.origin {
            Origin::Hub { repo, revision, commit, .. } => {
                let folder = self.cache.repo(repo);
                folder.set_commit(revision, commit);
                let found = Found::of(plan.form, &folder.snapshot(commit), places);
                Ok(Found { projector, commit: Some(commit.clone()), ..found })
            }
            Origin::Address { folder } => Ok(Found::of(Form::Gguf, folder, places)),
        }
    }

    /// Compares the missing bytes with the room on the disk.
    fn check_room(&self, plan: &Plan) -> Result<(), HubError> {
        let folder = match &plan.origin {
            Origin::Hub { .. } => {
                self.cache.create()?;
                &self.cache.root
            }
            Origin::Address { folder } => {
                create_folder(folder)?;
                folder
            }
        };
        // A file system that does not say how much is free is written to anyway: a full one is an error then.
        let Ok(n_free) = fs4::available_space(folder) else { return Ok(()) };
        // Without links, each of the files that share contents has a copy.
        let n_needed = match self.config.links {
            Links::Auto => plan.n_missing(),
            Links::Never => plan.files.iter().fold(0, |sum: u64, file| sum.saturating_add(file.n_missing())),
        };
        match n_needed {
            n_needed if n_needed > n_free => {
                Err(HubError::NoRoom { folder: folder.clone(), n_needed, n_free })
            }
            _ => Ok(()),
        }
    }

    /// Fetches files of the hub anew, whatever is here, and puts them over the old ones.
    pub(super) fn refetch(&self, plan: &Plan, job: &Job) -> Result<(), HubError> {
        job.tell(Event::Planned(plan.clone()));
        self.check_room(plan)?;
        for (i, file) in plan.files.iter().enumerate() {
            let Origin::Hub { repo, commit, .. } = &plan.origin else {
                unreachable!("files of addresses have no digest to differ from")
            };
            let digest = file.digest.as_ref().expect("files of the hub have a digest");
            let folder = self.cache.repo(repo);
            let lock = self.locked(&folder, digest, job)?;
            let put = |part: &Path| folder.replace(part, digest, commit, &file.path);
            let path = self.download_blob(plan, i, file, digest, &folder, &lock, job, put)?;
            job.tell(Event::Done { file: i, path, was_cached: false });
        }
        Ok(())
    }

    /// Fetches all files, some at once; the first failure stops the others, which keep what came. Contents that several
    /// files have come once.
    fn fetch_files(self: &Arc<Self>, plan: &Plan, job: &Job) -> Result<Vec<PathBuf>, HubError> {
        let group = job.part();
        let next = AtomicUsize::new(0);
        let (first, again): (Vec<usize>, Vec<usize>) =
            (0..plan.files.len()).partition(|i| first_like(plan, *i) == *i);
        let places = Mutex::new(vec![PathBuf::new(); plan.files.len()]);
        let failure = Mutex::new(None);
        let work = || {
            loop {
                let Some(&i) = first.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                match group.check().and_then(|()| self.fetch_file(plan, i, None, &group)) {
                    Ok(place) => places.lock().unwrap_or_else(PoisonError::into_inner)[i] = place,
                    Err(error) => {
                        group.stop();
                        failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                        return;
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.config.limits.n_parallel.clamp(1, plan.files.len().max(1)) {
                scope.spawn(work);
            }
            work();
        });
        if let Some(error) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let mut places = places.into_inner().unwrap_or_else(PoisonError::into_inner);
        for i in again {
            let like = places[first_like(plan, i)].clone();
            places[i] = self.fetch_file(plan, i, Some(&like), job)?;
        }
        Ok(places)
    }

    /// Fetches a file; `like` is one with the same contents that is here.
    fn fetch_file(&self, plan: &Plan, i: usize, like: Option<&Path>, job: &Job) -> Result<PathBuf, HubError> {
        let file = &plan.files[i];
        let (path, was_cached) = match &plan.origin {
            Origin::Hub { repo, commit, .. } => self.fetch_blob(plan, i, like, repo, commit, job)?,
            Origin::Address { folder } => self.fetch_address(plan, i, file, folder, job)?,
        };
        job.tell(Event::Done { file: i, path: path.clone(), was_cached });
        Ok(path)
    }

    /// A file of the hub: its blob under the lock that all programs share, then the link.
    fn fetch_blob(
        &self,
        plan: &Plan,
        i: usize,
        like: Option<&Path>,
        repo: &RepoId,
        commit: &str,
        job: &Job,
    ) -> Result<(PathBuf, bool), HubError> {
        let (file, folder) = (&plan.files[i], self.cache.repo(repo));
        if let Some(place) = folder.find(commit, &file.path, file.size) {
            return Ok((place, true));
        }
        let digest = file.digest.as_ref().expect("files of the hub have a digest");
        let lock = self.locked(&folder, digest, job)?;
        // Another program may have fetched it meanwhile, into a snapshot where there are no links.
        if let Some(place) = folder.find(commit, &file.path, file.size) {
            return Ok((place, true));
        }
        let was_cached = folder.has_blob(digest, file.size);
        if let Some(like) = like.filter(|_| !was_cached) {
            return Ok((folder.copy(like, commit, &file.path)?, true));
        }
        if !was_cached {
            let put = |part: &Path| part::put(part, &folder.blob(digest));
            self.download_blob(plan, i, file, digest, &folder, &lock, job, put)?;
        }
        Ok((folder.link(digest, commit, &file.path, !was_cached)?, was_cached))
    }

    /// The lock of contents, with the folders that a download needs.
    fn locked(&self, folder: &RepoFolder, digest: &Digest, job: &Job) -> Result<Lock, HubError> {
        self.cache.create()?;
        create_folder(folder.blob(digest).parent().expect("a blob is in a folder"))?;
        lock::acquire(&folder.lock(digest), job)
    }

    /// Downloads contents of the hub, and puts the whole and verified part to its place.
    fn download_blob<T>(
        &self,
        plan: &Plan,
        i: usize,
        file: &PlannedFile,
        digest: &Digest,
        folder: &RepoFolder,
        lock: &Lock,
        job: &Job,
        put: impl FnOnce(&Path) -> Result<T, HubError>,
    ) -> Result<T, HubError> {
        let Origin::Hub { repo, revision, commit, .. } = &plan.origin else {
            unreachable!("blobs are of the hub")
        };
        let name = plan.name.to_string();
        let asked = Asked { name: &name, repo: Some(repo), revision, path: &file.path };
        let address = self.client.hub(&format!("/{repo}/resolve/{commit}/{}", quote::path(&file.path)));
        let part = part_of(folder.part(digest), lock);
        let target =
            Target { asked, file: i, address: &address, part: &part, size: file.size, digest: Some(digest) };
        self.download(&target, lock, job)?;
        put(&part)
    }

    /// Downloads a file; a part that no other download can use does not outlive a failure.
    fn download(&self, target: &Target<'_>, lock: &Lock, job: &Job) -> Result<(), HubError> {
        download(&self.client, &self.config.limits, job, target).inspect_err(|_| {
            if !lock.is_exclusive() {
                part::remove(target.part);
            }
        })
    }

    /// A file of an address, in a folder of its own; its note stays, for the next question whether it has changed.
    fn fetch_address(
        &self,
        plan: &Plan,
        i: usize,
        file: &PlannedFile,
        folder: &Path,
        job: &Job,
    ) -> Result<(PathBuf, bool), HubError> {
        let place = folder.join(&file.path);
        if file.is_complete {
            return Ok((place, true));
        }
        let ModelName::Address(address) = &plan.name else {
            unreachable!("addresses have plans of addresses")
        };
        create_folder(folder)?;
        let failed = |path: &Path| {
            let path = path.to_owned();
            |source| HubError::File { path, source }
        };
        let note = folder.join(ADDRESS_FILE);
        std::fs::write(&note, address.lasting().to_string()).map_err(failed(&note))?;
        let own_note = own_file(folder, &file.path, "json");
        let before = part::Note::at(&own_note);
        let lock = lock::acquire(&own_file(folder, &file.path, "lock"), job)?;
        // Another program may have fetched it meanwhile.
        if part::Note::at(&own_note) != before && address_file(folder, &file.path).is_some() {
            return Ok((place, true));
        }
        let part = part_of(folder.join(format!("{}{}", file.path, part::ENDING)), &lock);
        let name = plan.name.to_string();
        let asked = Asked { name: &name, repo: None, revision: "", path: &file.path };
        let address = sibling(address, &file.path);
        let (size, digest) = (file.size, file.digest.as_ref());
        let target = Target { asked, file: i, address: &address, part: &part, size, digest };
        self.download(&target, &lock, job)?;
        // The file first: the note of the old one makes the next pull ask again, that of the new one would not.
        std::fs::rename(&part, &place).map_err(failed(&place))?;
        part::keep_note(&part, &own_note)?;
        Ok((place, false))
    }
}

/// The part to write: without a lock, one that no other program writes.
fn part_of(part: PathBuf, lock: &Lock) -> PathBuf {
    if lock.is_exclusive() { part } else { part::own(&part) }
}

/// The first file of a plan that has the contents of a file, which may be itself.
fn first_like(plan: &Plan, i: usize) -> usize {
    let digest = &plan.files[i].digest;
    plan.files.iter().position(|file| digest.is_some() && file.digest == *digest).unwrap_or(i)
}
