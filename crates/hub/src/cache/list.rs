//! The models that are here.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{Cache, walk};
use crate::address::Address;
use crate::download::part;
use crate::name::RepoId;

/// The folder that has a model.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The cache that is shared with huggingface_hub and llama.cpp.
    Cache,
    /// Files of addresses.
    Addresses,
    /// LM Studio's folder, which is read only.
    LmStudio,
    /// ollama's folder, which is read only.
    Ollama,
}

impl Place {
    /// Its name in tables and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Place::Cache => "cache",
            Place::Addresses => "addresses",
            Place::LmStudio => "lm-studio",
            Place::Ollama => "ollama",
        }
    }
}

/// A model that is here, or a repository of several.
#[derive(Clone, Debug)]
pub struct CachedModel {
    /// The name by which it runs.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The kind of folder.
    pub place: Place,
    /// Commits whose files are here; a folder without commits has one of them, without a name.
    pub revisions: Vec<CachedRevision>,
    /// Bytes on the disk; files of several commits count once.
    pub n_byte: u64,
    /// Bytes of incomplete downloads.
    pub n_part: u64,
}

/// Files of a commit.
#[derive(Clone, Debug)]
pub struct CachedRevision {
    /// 40 hex digits; empty for a folder without commits.
    pub commit: String,
    /// Branches and tags that were at the commit.
    pub refs: Vec<String>,
    /// The files.
    pub files: Vec<CachedFile>,
}

/// A file that is here.
#[derive(Clone, Debug)]
pub struct CachedFile {
    /// Path within its repository.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Time of its download.
    pub modified: Option<SystemTime>,
    /// The file itself, behind all links.
    pub real: PathBuf,
    /// Files of this and other commits and repositories that have these contents.
    pub n_user: usize,
}

/// The repositories in the cache, by name.
pub(crate) fn list(cache: &Cache) -> Vec<CachedModel> {
    let repos = walk::folders(&cache.root).into_iter().filter_map(|name| RepoId::of_folder(&name));
    let mut models: Vec<CachedModel> = repos.map(|repo| repository(cache, &repo)).collect();
    models.retain(|model| !model.revisions.is_empty() || model.n_part > 0);
    count_users(&mut models);
    models
}

fn repository(cache: &Cache, repo: &RepoId) -> CachedModel {
    let folder = cache.repo(repo).folder;
    let mut refs: HashMap<String, Vec<String>> = HashMap::new();
    for name in walk::files(&folder.join("refs")) {
        if let Ok(commit) = std::fs::read_to_string(folder.join("refs").join(&name)) {
            refs.entry(commit.trim().to_owned()).or_default().push(name);
        }
    }
    let revision = |commit: String| CachedRevision {
        refs: refs.remove(&commit).unwrap_or_default(),
        files: files_of(&folder.join("snapshots").join(&commit)),
        commit,
    };
    let revisions: Vec<CachedRevision> = walk::folders(&folder.join("snapshots"))
        .into_iter()
        .map(revision)
        .filter(|r| !r.files.is_empty())
        .collect();
    CachedModel {
        name: format!("hf:{repo}"),
        place: Place::Cache,
        n_byte: n_byte(&revisions),
        n_part: parts_of(&folder.join("blobs")),
        revisions,
        folder,
    }
}

/// Files of addresses: a folder for each address.
pub(crate) fn address_files(folder: &Path) -> Vec<CachedModel> {
    let model = |name: String| {
        let folder = folder.join(name);
        let address = std::fs::read_to_string(folder.join(super::ADDRESS_FILE)).ok()?;
        let address = Address::parse(address.trim()).ok()?.lasting();
        let mut files = files_of(&folder);
        files.retain(|file| !is_ours(&file.path));
        let revisions = vec![CachedRevision { commit: String::new(), refs: Vec::new(), files }];
        Some(CachedModel {
            name: address.to_string(),
            place: Place::Addresses,
            n_byte: n_byte(&revisions),
            n_part: parts_of(&folder),
            revisions,
            folder,
        })
    };
    walk::folders(folder).into_iter().filter_map(model).collect()
}

/// True for notes of downloads.
fn is_ours(path: &str) -> bool {
    path.starts_with(".chaski") || path.contains(part::ENDING)
}

/// The repositories in a folder of LM Studio: `publisher/repository/file`.
pub(crate) fn lm_studio(folder: &Path) -> Vec<CachedModel> {
    let mut models = Vec::new();
    for owner in walk::folders(folder) {
        for name in walk::folders(&folder.join(&owner)) {
            let Ok(repo) = RepoId::parse(&format!("{owner}/{name}")) else { continue };
            let folder = folder.join(&owner).join(&name);
            let mut files = files_of(&folder);
            files.retain(|file| file.path.to_ascii_lowercase().ends_with(".gguf"));
            if files.is_empty() {
                continue;
            }
            let revisions = vec![CachedRevision { commit: String::new(), refs: Vec::new(), files }];
            models.push(CachedModel {
                name: format!("hf:{repo}"),
                place: Place::LmStudio,
                n_byte: n_byte(&revisions),
                n_part: 0,
                revisions,
                folder,
            });
        }
    }
    models
}

fn files_of(folder: &Path) -> Vec<CachedFile> {
    let file = |path: String| {
        let place = folder.join(&path);
        let found = std::fs::metadata(&place).ok().filter(std::fs::Metadata::is_file)?;
        let real = std::fs::canonicalize(&place).unwrap_or(place);
        Some(CachedFile { path, size: found.len(), modified: found.modified().ok(), real, n_user: 1 })
    };
    walk::files(folder).into_iter().filter_map(file).collect()
}

/// Bytes of different files.
fn n_byte(revisions: &[CachedRevision]) -> u64 {
    let files = revisions.iter().flat_map(|r| &r.files);
    let sizes: BTreeMap<&Path, u64> = files.map(|file| (file.real.as_path(), file.size)).collect();
    sizes.values().sum()
}

fn parts_of(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let parts = entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(part::ENDING));
    parts.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum()
}

/// Counts the users of each file over all models.
fn count_users(models: &mut [CachedModel]) {
    let mut counts: HashMap<PathBuf, usize> = HashMap::new();
    let files = models.iter().flat_map(|m| &m.revisions).flat_map(|r| &r.files);
    files.for_each(|file| *counts.entry(file.real.clone()).or_default() += 1);
    for file in models.iter_mut().flat_map(|m| &mut m.revisions).flat_map(|r| &mut r.files) {
        file.n_user = counts[&file.real];
    }
}

/// All repositories in the cache.
pub(crate) fn repositories(cache: &Cache) -> Vec<RepoId> {
    walk::folders(&cache.root).into_iter().filter_map(|name| RepoId::of_folder(&name)).collect()
}

/// The commits of a repository that have files here.
pub(crate) fn commits(repo: &super::RepoFolder) -> Vec<String> {
    walk::folders(&repo.folder.join("snapshots"))
}
