//! Care for what is here: list, remove, verify, repair, prune.

use std::path::Path;
use std::time::Duration;

use super::{Hub, Inner};
use crate::address::Address;
use crate::cache::{self, CachedModel, Pruned, Removed, Scope, Verdict, Verified};
use crate::error::HubError;
use crate::event::Event;
use crate::foreign;
use crate::job::{Job, Watch};
use crate::name::{HubName, ModelName, Pick, RepoId};
use crate::select;
use crate::tree::TreeFile;

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

    /// Removes a model of the cache: the files that its name means in the commit of its revision, without one in any
    /// commit; with a name without tag, file and revision the whole repository. With `is_trial` only tells. Folders of
    /// other programs are never touched.
    ///
    /// # Errors
    /// [`HubError::NotCached`], [`HubError::Busy`], [`HubError::File`].
    pub fn remove(&self, name: &ModelName, is_trial: bool) -> Result<Removed, HubError> {
        match name {
            ModelName::Hub(hub) => {
                let scope = self.0.scope_of(hub)?.ok_or_else(|| self.0.not_cached(name))?;
                cache::remove(&self.0.cache.repo(&hub.repo), &scope, is_trial)
            }
            ModelName::Address(address) => {
                let model = self.0.cached_address(address).ok_or_else(|| self.0.not_cached(name))?;
                let folder = model.folder;
                // Held until all is gone.
                let Some(_locks) = cache::take_locks(&folder)? else {
                    return Err(HubError::Busy { name: name.to_string() });
                };
                if !is_trial {
                    std::fs::remove_dir_all(&folder)
                        .map_err(|source| HubError::File { path: folder, source })?;
                }
                let files = model.revisions.iter().flat_map(|r| &r.files).map(|file| file.real.clone());
                Ok(Removed { files: files.collect(), n_byte: model.n_byte + model.n_part, n_kept: 0 })
            }
            ModelName::Path(_) | ModelName::Ollama(_) => Err(self.0.not_cached(name)),
        }
    }

    /// Hashes the files of a model, or of all, that have a digest; those of an address have none.
    ///
    /// # Errors
    /// [`HubError::NotCached`], [`HubError::File`], [`HubError::Interrupted`].
    pub fn verify(&self, name: Option<&ModelName>, watch: &mut Watch<'_>) -> Result<Vec<Verified>, HubError> {
        let inner = self.0.clone();
        let name = name.cloned();
        Job::run(watch, move |job| inner.verify(name.as_ref(), job))
    }

    /// Fetches the damaged files of a verification again, from the same commits. Each is replaced once the new one is
    /// whole and verified.
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
            let name = ModelName::Hub(name);
            if self.0.config.offline {
                return Err(HubError::Offline { name: name.to_string(), cache: self.0.config.cache.clone() });
            }
            let mut plan = self.plan(&name, watch)?;
            // Of a split set, this part alone.
            plan.files.retain(|planned| planned.path == file.path);
            for planned in &mut plan.files {
                (planned.is_complete, planned.n_present) = (false, 0);
            }
            let inner = self.0.clone();
            Job::run(watch, move |job| inner.refetch(&plan, job))?;
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
    fn not_cached(&self, name: &ModelName) -> HubError {
        HubError::NotCached { name: name.to_string(), cache: self.config.cache.clone() }
    }

    /// The files of an address that are here.
    fn cached_address(&self, address: &Address) -> Option<CachedModel> {
        let folder = self.address_folder(address);
        let models = cache::address_files(&self.config.address_cache);
        models.into_iter().find(|model| model.folder == folder)
    }

    /// The files of the cache that a name means; `None` if it has none of them.
    fn scope_of(&self, name: &HubName) -> Result<Option<Scope>, HubError> {
        let repo = self.cache.repo(&name.repo);
        if !repo.folder.is_dir() {
            return Ok(None);
        }
        let commit = match &name.revision {
            Some(revision) => {
                match repo.commit_of(revision).filter(|commit| repo.snapshot(commit).is_dir()) {
                    Some(commit) => Some(commit),
                    None => return Ok(None),
                }
            }
            None => None,
        };
        if name.pick == Pick::Usual {
            return Ok(Some(Scope { commit, paths: None }));
        }
        let commits = commit.clone().map_or_else(|| cache::commits(&repo), |commit| vec![commit]);
        let mut paths = Vec::new();
        let mut failure = None;
        for commit in commits {
            let files = here_and_missing(&repo.snapshot(&commit));
            match select::select(name, &files) {
                Ok(selection) => paths.extend(selection.files.iter().map(|i| files[*i].path.clone())),
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(error) if paths.is_empty() => Err(error),
            _ if paths.is_empty() => Ok(None),
            _ => Ok(Some(Scope { commit, paths: Some(paths) })),
        }
    }

    fn verify(&self, name: Option<&ModelName>, job: &Job) -> Result<Vec<Verified>, HubError> {
        let repos: Vec<(RepoId, Scope)> = match name {
            Some(name @ ModelName::Address(address)) => {
                return self.cached_address(address).map(unknown).ok_or_else(|| self.not_cached(name));
            }
            Some(name @ ModelName::Hub(hub)) => {
                let scope = self.scope_of(hub)?.ok_or_else(|| self.not_cached(name))?;
                vec![(hub.repo.clone(), scope)]
            }
            Some(name) => return Err(self.not_cached(name)),
            None => {
                let repos = cache::repositories(&self.cache).into_iter();
                repos.map(|repo| (repo, Scope::default())).collect()
            }
        };
        let mut verified = Vec::new();
        for (repo, scope) in repos {
            for suspect in cache::suspects(&self.cache.repo(&repo), &scope) {
                let (file, size) = (verified.len(), Some(suspect.size));
                let verdict = cache::verify(&suspect, job, |n_present| {
                    job.tell(Event::Progress { file, n_present, size });
                })?;
                let (commit, path, size) = (suspect.commit, suspect.path, suspect.size);
                verified.push(Verified { name: format!("hf:{repo}"), path, commit, size, verdict });
            }
        }
        match name {
            Some(name) if verified.is_empty() => Err(self.not_cached(name)),
            _ => Ok(verified),
        }
    }
}

/// The files of a snapshot to select from, links to nothing and missing parts of split sets included.
fn here_and_missing(snapshot: &Path) -> Vec<TreeFile> {
    let file = |path: String| {
        let size = std::fs::metadata(snapshot.join(&path)).map_or(0, |found| found.len());
        TreeFile { path, size, digest: None, oid: String::new(), xet_hash: None }
    };
    select::with_parts(cache::files_below(snapshot)).into_iter().map(file).collect()
}

/// The files of an address, of which no digest is known.
fn unknown(model: CachedModel) -> Vec<Verified> {
    let files = model.revisions.into_iter().flat_map(|revision| revision.files);
    let verified = |file: cache::CachedFile| Verified {
        name: model.name.clone(),
        path: file.path,
        commit: String::new(),
        size: file.size,
        verdict: Verdict::Unknown,
    };
    files.map(verified).collect()
}
