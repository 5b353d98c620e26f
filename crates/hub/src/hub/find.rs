//! Models that are here, found without a request.

use std::path::{Path, PathBuf};

use super::Inner;
use crate::cache::{RepoFolder, files_below, is_file_of, own_file};
use crate::download::part;
use crate::error::HubError;
use crate::foreign::{self, OllamaModel};
use crate::name::{HubName, ModelName, Pick};
use crate::select::{self, Fit, Form, Selection, USUAL_TAGS};
use crate::tree::TreeFile;

/// A model that is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The file to open, or the folder.
    pub path: PathBuf,
    /// Its kind.
    pub form: Form,
    /// All files, the one to open first.
    pub files: Vec<PathBuf>,
    /// The vision part, if it is here.
    pub projector: Option<PathBuf>,
    /// Commit of the hub.
    pub commit: Option<String>,
    /// The files and settings that ollama keeps with a model.
    pub ollama: Option<OllamaModel>,
}

impl Found {
    /// Files without more.
    pub(super) fn of(form: Form, folder: &Path, files: Vec<PathBuf>) -> Found {
        let path = if form.is_folder() { folder.to_owned() } else { files[0].clone() };
        Found { path, form, files, projector: None, commit: None, ollama: None }
    }
}

impl Inner {
    pub(super) fn find(&self, name: &ModelName) -> Result<Option<Found>, HubError> {
        match name {
            ModelName::Path(path) => Ok(Some(of_path(path))),
            ModelName::Hub(name) => match self.in_cache(name) {
                Some(found) => Ok(Some(found)),
                None => Ok(self.in_lm_studio(name)),
            },
            ModelName::Ollama(name) => {
                let model = foreign::find(name, &self.config.ollama)?;
                let mut found = Found::of(Form::Gguf, &model.path, vec![model.path.clone()]);
                found.projector = model.projector.clone();
                found.ollama = Some(model);
                Ok(Some(found))
            }
            ModelName::Address(address) => Ok(self.of_address(address)),
        }
    }

    /// The files of a name in the cache, if all are here.
    fn in_cache(&self, name: &HubName) -> Option<Found> {
        let repo = self.cache.repo(&name.repo);
        let commit = repo.commit_of(name.revision())?;
        let mut found = match repo.tree(&commit) {
            Some(tree) => listed(&repo, &commit, name, &tree)?,
            None => unlisted(&repo, &commit, name, self.config.offline)?,
        };
        found.commit = Some(commit);
        Some(found)
    }

    /// The same in the folders of LM Studio, which have no revisions.
    fn in_lm_studio(&self, name: &HubName) -> Option<Found> {
        if name.revision.is_some() {
            return None;
        }
        let folders = self.config.lm_studio.iter().map(|folder| folder.join(name.repo.as_str()));
        folders.into_iter().find_map(|folder| {
            let file = |path: String| {
                let size = std::fs::metadata(folder.join(&path)).ok()?.len();
                Some(TreeFile { path, size, digest: None, oid: String::new(), xet_hash: None })
            };
            let files: Vec<TreeFile> = files_below(&folder).into_iter().filter_map(file).collect();
            let selection = certain(name, &files, self.config.offline)?;
            let places = selection.files.iter().map(|i| folder.join(&files[*i].path)).collect();
            Some(Found::of(selection.form, &folder, places))
        })
    }
}

/// Selects from the list of all files of the commit: the choice is that of the hub, and either all of it is here or
/// nothing.
fn listed(repo: &RepoFolder, commit: &str, name: &HubName, tree: &[TreeFile]) -> Option<Found> {
    let selection = select::select(name, tree).ok()?;
    let place = |i: &usize| repo.find(commit, &tree[*i].path, Some(tree[*i].size));
    let files = selection.files.iter().map(place).collect::<Option<Vec<_>>>()?;
    let first = &tree[selection.files[0]].path;
    let projector =
        select::projector(first, tree).and_then(|i| place(&i)).filter(|_| selection.form == Form::Gguf);
    Some(Found { projector, ..Found::of(selection.form, &repo.snapshot(commit), files) })
}

/// Selects from the files that are here. Without the list of all, the hub might choose another one where the name
/// leaves a choice.
fn unlisted(repo: &RepoFolder, commit: &str, name: &HubName, is_offline: bool) -> Option<Found> {
    let present = repo.present(commit);
    let selection = certain(name, &present, is_offline)?;
    let files = selection.files.iter().map(|i| repo.pointer(commit, &present[*i].path)).collect();
    Some(Found::of(selection.form, &repo.snapshot(commit), files))
}

/// The selection from some of the files, if all of them would give the same; offline any.
fn certain(name: &HubName, files: &[TreeFile], is_offline: bool) -> Option<Selection> {
    let selection = select::select(name, files).ok()?;
    let first = &files[selection.files[0]].path;
    // A file that is not here could fit better, unless this one fits best. A checkpoint may lack any of its files.
    let is_best = |tag: &str| select::fit(first, tag) == Some(Fit::BEST);
    let is_certain = match &name.pick {
        Pick::File(_) => true,
        Pick::Tag(tag) => is_best(tag),
        Pick::Usual => is_best(USUAL_TAGS[0]),
    };
    (is_certain || is_offline).then_some(selection)
}

/// A file or folder; whether it exists is told when it is opened.
fn of_path(path: &Path) -> Found {
    let has = |name: &str| path.join(name).is_file();
    let form = match path.is_dir() {
        true if has("mlc-chat-config.json") => Form::Mlc,
        true => Form::Checkpoint,
        false => Form::Gguf,
    };
    Found::of(form, path, vec![path.to_owned()])
}

/// A downloaded file of a folder for an address: whole, as its note says.
pub(super) fn address_file(folder: &Path, name: &str) -> Option<PathBuf> {
    let note = part::Note::at(&own_file(folder, name, "json"))?;
    let path = folder.join(name);
    is_file_of(&path, note.size).then_some(path)
}
