//! Care for what is here: list, remove, verify, repair, prune.

use std::time::Duration;

use super::{Hub, Inner};
use crate::cache::{self, CachedModel, Pruned, Removed, Verdict, Verified};
use crate::error::HubError;
use crate::event::Event;
use crate::foreign;
use crate::job::{Job, Watch};
use crate::name::{HubName, ModelName, Pick, RepoId};
use crate::select;

impl Hub {
    /// The models in the cache and those of addresses; with `all` also those in the folders of other programs.
    pub fn list(&self, all: bool) -> Vec<CachedModel> {
        let config = &self.0.config;
        let mut models = cache::list(&self.0.cache);
        models.extend(cache::address_files(&config.address_cache));
        if all {
            models.extend(config.lm_studio.iter().flat_map(|folder| cache::lm_studio(folder)));
            models.extend(config.ollama.iter().flat_map(|folder| foreign::list(folder)));
        }
        models
    }

    /// Removes a model of the cache: the files that its name means in any commit, or with a name without tag and file
    /// the whole repository. Folders of other programs are never touched.
    ///
    /// # Errors
    /// [`HubError::NotCached`], [`HubError::File`].
    pub fn remove(&self, name: &ModelName) -> Result<Removed, HubError> {
        let inner = &self.0;
        let missing = || HubError::NotCached { name: name.to_string(), cache: inner.config.cache.clone() };
        match name {
            ModelName::Hub(hub) => {
                let repo = inner.cache.repo(&hub.repo);
                if !repo.folder.is_dir() {
                    return Err(missing());
                }
                let paths = inner.paths_of(hub)?;
                if paths.as_ref().is_some_and(Vec::is_empty) {
                    return Err(missing());
                }
                cache::remove(&repo, paths.as_deref())
            }
            ModelName::Address(address) => {
                let folder = inner.address_folder(address);
                let models = cache::address_files(&inner.config.address_cache);
                let model = models.into_iter().find(|model| model.folder == folder).ok_or_else(missing)?;
                std::fs::remove_dir_all(&folder).map_err(|source| HubError::File { path: folder, source })?;
                let n_file = model.revisions.iter().map(|r| r.files.len()).sum();
                Ok(Removed { n_file, n_byte: model.n_byte + model.n_part, n_kept: 0 })
            }
            ModelName::Path(_) | ModelName::Ollama(_) => Err(missing()),
        }
    }

    /// Hashes the files of a model, or of all, that have a digest.
    ///
    /// # Errors
    /// [`HubError::NotCached`], [`HubError::File`], [`HubError::Interrupted`].
    pub fn verify(&self, name: Option<&ModelName>, watch: &mut Watch<'_>) -> Result<Vec<Verified>, HubError> {
        let inner = self.0.clone();
        let name = name.cloned();
        Job::run(watch, move |job| inner.verify(name.as_ref(), job))
    }

    /// Removes the damaged files of a verification and fetches them again, from the same commits.
    ///
    /// # Errors
    /// [`HubError`].
    pub fn repair(&self, verified: &[Verified], watch: &mut Watch<'_>) -> Result<usize, HubError> {
        let mut n_repaired = 0;
        for file in
            verified.iter().filter(|file| matches!(file.verdict, Verdict::Damaged { .. } | Verdict::Missing))
        {
            let Ok(ModelName::Hub(mut name)) = ModelName::parse(&file.name) else { continue };
            name.revision = Some(file.commit.clone());
            name.pick = Pick::File(file.path.clone());
            let repo = self.0.cache.repo(&name.repo);
            let name = ModelName::Hub(name);
            if self.0.config.offline {
                return Err(HubError::Offline { name: name.to_string(), cache: self.0.config.cache.clone() });
            }
            cache::forget(&repo, &file.commit, &file.path)?;
            let mut plan = self.plan(&name, watch)?;
            // Of a split set, this part alone.
            plan.files.retain(|planned| planned.path == file.path);
            self.fetch(&plan, watch)?;
            n_repaired += 1;
        }
        Ok(n_repaired)
    }

    /// Removes incomplete downloads and unnamed blobs that are older than `age` and that nobody locks; with
    /// `is_trial` only tells.
    ///
    /// # Errors
    /// [`HubError::File`].
    pub fn prune(&self, age: Duration, is_trial: bool) -> Result<Pruned, HubError> {
        cache::prune(&self.0.cache, &self.0.config.address_cache, age, is_trial)
    }
}

impl Inner {
    /// The paths that a name means in the commits that are here; `None` for all.
    fn paths_of(&self, name: &HubName) -> Result<Option<Vec<String>>, HubError> {
        if name.pick == Pick::Usual {
            return Ok(None);
        }
        let repo = self.cache.repo(&name.repo);
        let mut paths = Vec::new();
        let mut failure = None;
        for commit in cache::commits(&repo) {
            let present = repo.present(&commit);
            match select::select(name, &present) {
                Ok(selection) => paths.extend(selection.files.iter().map(|i| present[*i].path.clone())),
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(error) if paths.is_empty() => Err(error),
            _ => Ok(Some(paths)),
        }
    }

    fn verify(&self, name: Option<&ModelName>, job: &Job) -> Result<Vec<Verified>, HubError> {
        let repos: Vec<(RepoId, Option<Vec<String>>)> = match name {
            Some(ModelName::Hub(hub)) if self.cache.repo(&hub.repo).folder.is_dir() => {
                vec![(hub.repo.clone(), self.paths_of(hub)?)]
            }
            Some(name) => {
                return Err(HubError::NotCached { name: name.to_string(), cache: self.config.cache.clone() });
            }
            None => cache::repositories(&self.cache).into_iter().map(|repo| (repo, None)).collect(),
        };
        let mut verified = Vec::new();
        for (repo, paths) in repos {
            for suspect in cache::suspects(&self.cache.repo(&repo)) {
                if paths.as_ref().is_some_and(|paths| !paths.contains(&suspect.path)) {
                    continue;
                }
                let (file, size) = (verified.len(), Some(suspect.size));
                let verdict = cache::verify(&suspect, job, |n_present| {
                    job.tell(Event::Progress { file, n_present, size });
                })?;
                let (commit, path, size) = (suspect.commit, suspect.path, suspect.size);
                verified.push(Verified { name: format!("hf:{repo}"), path, commit, size, verdict });
            }
        }
        Ok(verified)
    }
}
