//! Fetching of plans: room, locks, several files at once, links, and the reference last.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::plan::sibling;
use super::{Found, Inner};
use crate::cache::{ADDRESS_FILE, create_folder, own_file};
use crate::client::Asked;
use crate::download::{Target, download, part};
use crate::error::HubError;
use crate::event::Event;
use crate::job::Job;
use crate::lock;
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
        let mut places = self.fetch_files(plan, job)?;
        let projector = plan.has_projector.then(|| places.pop()).flatten();
        match &plan.origin {
            Origin::Hub { repo, revision, commit, tree } => {
                let folder = self.cache.repo(repo);
                folder.set_tree(commit, tree);
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
        match plan.n_missing() {
            n_needed if n_needed > n_free => {
                Err(HubError::NoRoom { folder: folder.clone(), n_needed, n_free })
            }
            _ => Ok(()),
        }
    }

    /// Fetches all files, some at once; the first failure stops the others, which keep what came.
    fn fetch_files(self: &Arc<Self>, plan: &Plan, job: &Job) -> Result<Vec<PathBuf>, HubError> {
        let group = job.part();
        let next = AtomicUsize::new(0);
        let places = Mutex::new(vec![PathBuf::new(); plan.files.len()]);
        let failure = Mutex::new(None);
        let work = || {
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                let Some(file) = plan.files.get(i) else { return };
                match group.check().and_then(|()| self.fetch_file(plan, i, file, &group)) {
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
        match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(places.into_inner().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    fn fetch_file(&self, plan: &Plan, i: usize, file: &PlannedFile, job: &Job) -> Result<PathBuf, HubError> {
        let (path, was_cached) = match &plan.origin {
            Origin::Hub { repo, revision, commit, .. } => {
                self.fetch_blob(plan, i, file, repo, revision, commit, job)?
            }
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
        file: &PlannedFile,
        repo: &RepoId,
        revision: &str,
        commit: &str,
        job: &Job,
    ) -> Result<(PathBuf, bool), HubError> {
        let folder = self.cache.repo(repo);
        if let Some(place) = folder.find(commit, &file.path, file.size) {
            return Ok((place, true));
        }
        let digest = file.digest.as_ref().expect("files of the hub have a digest");
        let (blob, part) = (folder.blob(digest), folder.part(digest));
        self.cache.create()?;
        create_folder(blob.parent().expect("a blob is in a folder"))?;
        let _lock = lock::acquire(&folder.lock(digest), job)?;
        // Another program may have fetched it meanwhile, into a snapshot where there are no links.
        if let Some(place) = folder.find(commit, &file.path, file.size) {
            return Ok((place, true));
        }
        let was_cached = folder.has_blob(digest, file.size);
        if !was_cached {
            let name = plan.name.to_string();
            let asked = Asked { name: &name, repo: Some(repo), revision, path: &file.path };
            let address = self.client.hub(&format!("/{repo}/resolve/{commit}/{}", quote::path(&file.path)));
            let (size, digest) = (file.size, file.digest.as_ref());
            let target = Target { asked, file: i, address: &address, part: &part, size, digest };
            download(&self.client, &self.config.limits, job, &target)?;
            put(&part, &blob)?;
        }
        Ok((folder.link(digest, commit, &file.path, !was_cached)?, was_cached))
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
        std::fs::write(&note, address.to_string()).map_err(failed(&note))?;
        let part = folder.join(format!("{}{}", file.path, part::ENDING));
        let _lock = lock::acquire(&own_file(folder, &file.path, "lock"), job)?;
        let name = plan.name.to_string();
        let asked = Asked { name: &name, repo: None, revision: "", path: &file.path };
        let address = sibling(address, &file.path);
        let (size, digest) = (file.size, file.digest.as_ref());
        let target = Target { asked, file: i, address: &address, part: &part, size, digest };
        download(&self.client, &self.config.limits, job, &target)?;
        // The note first: a file without one counts as incomplete.
        part::keep_note(&part, &own_file(folder, &file.path, "json"))?;
        put(&part, &place)?;
        Ok((place, false))
    }
}

/// Moves a whole part to its place.
fn put(part: &Path, place: &Path) -> Result<(), HubError> {
    std::fs::rename(part, place).map_err(|source| HubError::File { path: place.to_owned(), source })?;
    part::remove(part);
    Ok(())
}
