//! Plans: what a name means now, and what of it is missing.

use std::path::PathBuf;

use super::{Found, Inner};
use crate::address::Address;
use crate::cache::own_file;
use crate::client::{Asked, Tries};
use crate::download::{hasher, part, probe};
use crate::error::HubError;
use crate::job::Job;
use crate::name::{HubName, ModelName};
use crate::paths::{self, System};
use crate::plan::{Origin, Plan, PlannedFile};
use crate::quote;
use crate::select::{self, Form, Split};
use crate::tree::{self, TreeFile, is_commit};

/// Most pages of a list of files.
const MOST_PAGES: usize = 1000;

impl Inner {
    pub(super) fn plan(&self, name: &ModelName, with_projector: bool, job: &Job) -> Result<Plan, HubError> {
        if let ModelName::Path(_) | ModelName::Ollama(_) = name {
            let found = self.find(name)?.expect("files and ollama's models are found or an error");
            return Ok(here(name, &found));
        }
        if self.config.offline {
            return match self.find(name)? {
                Some(found) => Ok(here(name, &found)),
                None => Err(self.offline(name)),
            };
        }
        match name {
            ModelName::Hub(hub) => self.plan_hub(name, hub, with_projector, job),
            ModelName::Address(address) => self.plan_address(name, address, job),
            ModelName::Path(_) | ModelName::Ollama(_) => unreachable!("handled above"),
        }
    }

    /// The reason why nothing was found offline: the name may fit nothing of what is here.
    fn offline(&self, name: &ModelName) -> HubError {
        if let ModelName::Hub(hub) = name {
            let repo = self.cache.repo(&hub.repo);
            let present =
                repo.commit_of(hub.revision()).map(|commit| repo.present(&commit)).unwrap_or_default();
            if !present.is_empty()
                && let Err(error) = select::select(hub, &present)
            {
                return error;
            }
        }
        HubError::Offline { name: name.to_string(), cache: self.config.cache.clone() }
    }

    fn plan_hub(
        &self,
        name: &ModelName,
        hub: &HubName,
        with_projector: bool,
        job: &Job,
    ) -> Result<Plan, HubError> {
        let shown = name.to_string();
        let asked = Asked { name: &shown, repo: Some(&hub.repo), revision: hub.revision(), path: "" };
        let commit = self.commit(hub, &asked, job)?;
        let tree = self.tree(hub, &commit, &asked, job)?;
        let mut selection = select::select(hub, &tree)?;
        let first = &tree[selection.files[0]].path;
        let projector = (with_projector && selection.form == Form::Gguf)
            .then(|| select::projector(first, &tree))
            .flatten();
        selection.files.extend(projector);
        let files = selection
            .files
            .iter()
            .map(|i| self.planned(hub, &commit, &tree[*i]))
            .collect::<Result<_, _>>()?;
        let (repo, revision, tree) = (hub.repo.clone(), hub.revision().to_owned(), tree.into());
        let origin = Origin::Hub { repo, revision, commit, tree };
        Ok(Plan {
            name: name.clone(),
            form: selection.form,
            origin,
            files,
            has_projector: projector.is_some(),
        })
    }

    /// The commit of a revision.
    fn commit(&self, hub: &HubName, asked: &Asked<'_>, job: &Job) -> Result<String, HubError> {
        if is_commit(hub.revision()) {
            return Ok(hub.revision().to_ascii_lowercase());
        }
        let path = format!("/api/models/{}/revision/{}", hub.repo, quote::segment(hub.revision()));
        let address = self.client.hub(&path);
        let (_, json) =
            self.client.json(job, &mut Tries::of_question(&self.config.limits), asked, &address)?;
        tree::read_commit(&address.to_string(), &json)
    }

    /// All files of a commit. The list of a commit never changes, so a kept one is as good.
    fn tree(
        &self,
        hub: &HubName,
        commit: &str,
        asked: &Asked<'_>,
        job: &Job,
    ) -> Result<Vec<TreeFile>, HubError> {
        let repo = self.cache.repo(&hub.repo);
        if let Some(files) = repo.tree(commit) {
            return Ok(files);
        }
        let path = format!("/api/models/{}/tree/{commit}?recursive=true", hub.repo);
        let mut address = self.client.hub(&path);
        let mut files = Vec::new();
        let mut tries = Tries::of_question(&self.config.limits);
        for _ in 0..MOST_PAGES {
            let (headers, json) = self.client.json(job, &mut tries, asked, &address)?;
            tree::read_page(&hub.repo, &address.plain().to_string(), &json, &mut files)?;
            tries.progressed();
            let link = headers.get("link").and_then(|link| link.to_str().ok());
            let Some(next) = link.and_then(tree::next_page) else { return Ok(files) };
            let wrong = |reason| HubError::Redirect {
                address: address.plain().to_string(),
                to: next.to_owned(),
                reason,
            };
            let next = address.join(next).map_err(wrong)?;
            // Another host must not be asked with the token; a mirror has to name itself in its links.
            if !self.client.is_hub(&next) {
                return Err(wrong("the next page is on another host"));
            }
            address = next;
        }
        Err(HubError::Answer { address: address.plain().to_string(), what: "the list of files does not end" })
    }

    fn planned(&self, hub: &HubName, commit: &str, file: &TreeFile) -> Result<PlannedFile, HubError> {
        paths::check(&file.path, System::HERE).map_err(|reason| HubError::UnsafePath {
            path: file.path.clone(),
            place: hub.repo.to_string(),
            reason,
        })?;
        let repo = self.cache.repo(&hub.repo);
        let digest = file.digest.as_ref();
        let is_complete = repo.find(commit, &file.path, Some(file.size)).is_some()
            || digest.is_some_and(|digest| repo.has_blob(digest, Some(file.size)));
        let part =
            || digest.and_then(|digest| part::Note::read(&repo.part(digest))).map_or(0, |note| note.flushed);
        let n_present = if is_complete { file.size } else { part().min(file.size) };
        let (path, digest) = (file.path.clone(), file.digest.clone());
        Ok(PlannedFile { path, size: Some(file.size), digest, n_present, is_complete })
    }

    /// Folder for the files of an address, whoever signed it and until when.
    pub(super) fn address_folder(&self, address: &Address) -> PathBuf {
        self.config.address_cache.join(hasher::sha256_of_text(&first_part(address).lasting().to_string()))
    }

    /// The files of an address, if all are here.
    pub(super) fn of_address(&self, address: &Address) -> Option<Found> {
        let folder = self.address_folder(address);
        let names = file_names(address).ok()?;
        let files: Option<Vec<PathBuf>> =
            names.iter().map(|name| super::find::address_file(&folder, name)).collect();
        Some(Found::of(Form::Gguf, &folder, files?))
    }

    fn plan_address(&self, name: &ModelName, address: &Address, job: &Job) -> Result<Plan, HubError> {
        let shown = name.to_string();
        let folder = self.address_folder(address);
        let mut files = Vec::new();
        for file in file_names(address)? {
            let asked = Asked { name: &shown, repo: None, revision: "", path: &file };
            let note = part::Note::at(&own_file(&folder, &file, "json"));
            let known = note.as_ref().and_then(|note| note.validator.as_deref());
            let part_address = sibling(address, &file);
            let announced = probe(&self.client, &self.config.limits, job, &asked, &part_address, known)?;
            let is_here = super::find::address_file(&folder, &file).is_some();
            let size = announced.size.or(note.and_then(|note| note.size).filter(|_| announced.is_unchanged));
            let is_complete = is_here && announced.is_unchanged;
            let left = part::Note::read(&folder.join(format!("{file}{}", part::ENDING)))
                .map_or(0, |note| note.flushed);
            let n_present = if is_complete { size.unwrap_or(0) } else { left.min(size.unwrap_or(left)) };
            files.push(PlannedFile { path: file, size, digest: announced.digest, n_present, is_complete });
        }
        Ok(Plan {
            name: name.clone(),
            form: Form::Gguf,
            origin: Origin::Address { folder },
            files,
            has_projector: false,
        })
    }
}

/// The address of the first part of a split set, else the address: the name of its folder is made of it.
fn first_part(address: &Address) -> Address {
    match Split::of(address.file_name()) {
        Some(split) => sibling_quoted(address, &split.path(1)),
        None => address.clone(),
    }
}

/// Names of the files of an address: all parts of a split set.
///
/// # Errors
/// [`HubError::UnsafePath`].
fn file_names(address: &Address) -> Result<Vec<String>, HubError> {
    let quoted = address.file_name();
    let name = quote::unquoted(quoted).filter(|name| !name.is_empty()).unwrap_or_else(|| "model.gguf".into());
    // The name becomes a file beside notes of ours.
    let reason = if name.starts_with('.') || name.contains('/') {
        Err("it is hidden, or has a slash")
    } else {
        Ok(())
    };
    reason.and_then(|()| paths::check(&name, System::HERE)).map_err(|reason| HubError::UnsafePath {
        path: name.clone(),
        place: address.plain().to_string(),
        reason,
    })?;
    Ok(match Split::of(&name) {
        Some(split) => (1..=split.n_part).map(|part| split.path(part)).collect(),
        None => vec![name],
    })
}

/// The address of a file beside another; of the file itself if it is that.
pub(super) fn sibling(address: &Address, name: &str) -> Address {
    match file_names(address) {
        Ok(names) if names.len() > 1 => sibling_quoted(address, &quote::segment(name)),
        _ => address.clone(),
    }
}

fn sibling_quoted(address: &Address, name: &str) -> Address {
    let text = address.to_string();
    let path = address.path();
    let query = text.find('?').map_or("", |at| &text[at..]);
    address.with_target(&format!("{}{name}{query}", &path[..path.len() - address.file_name().len()]))
}

/// A plan without anything to do.
fn here(name: &ModelName, found: &Found) -> Plan {
    let file = |path: &PathBuf| {
        let size = std::fs::metadata(path).map_or(0, |found| found.len());
        PlannedFile {
            path: path.display().to_string(),
            size: Some(size),
            digest: None,
            n_present: size,
            is_complete: true,
        }
    };
    let folder = found.path.parent().unwrap_or(&found.path).to_owned();
    Plan {
        name: name.clone(),
        form: found.form,
        origin: Origin::Address { folder },
        files: found.files.iter().map(file).collect(),
        has_projector: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_set_are_siblings_with_one_folder() {
        let address = Address::parse("https://x.org/d/a%20b-00002-of-00003.gguf?k=1").unwrap();
        let names = file_names(&address).unwrap();
        assert_eq!(names[2], "a b-00003-of-00003.gguf");
        assert_eq!(sibling(&address, &names[2]).to_string(), "https://x.org/d/a%20b-00003-of-00003.gguf?k=1");
        assert_eq!(first_part(&address).to_string(), "https://x.org/d/a%20b-00001-of-00003.gguf?k=1");
        let one = Address::parse("https://x.org/d/a.gguf?k=1").unwrap();
        assert_eq!((sibling(&one, "a.gguf"), first_part(&one)), (one.clone(), one));
    }

    #[test]
    fn names_in_addresses_stay_in_their_folder() {
        for path in ["/..%2f..%2fa.gguf", "/.chaski-address", "/a%00b", "/%2e%2e"] {
            let address = Address::parse(&format!("https://x.org{path}")).unwrap();
            assert!(matches!(file_names(&address), Err(HubError::UnsafePath { .. })), "{path}");
        }
        assert_eq!(file_names(&Address::parse("https://x.org/").unwrap()).unwrap(), ["model.gguf"]);
    }
}
