//! Models that clients of a server fetch, name and delete.

use std::path::Component;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use chaski_hub::{Event, FailureKind, Form, Found, HubError, HubName, ModelName, OllamaName, Pick, Watch};
use chaski_server::{PullEvent, Removal, Store, StoreError};

use super::models::{Catalogue, Item};
use crate::ui::chain;

/// The files of a model as a name that means them and no others of its repository; `None` for those of other programs.
fn files_of(name: &ModelName, found: &Found) -> Option<ModelName> {
    let (ModelName::Hub(name), Some(commit)) = (name, &found.commit) else { return None };
    let pick = match found.form {
        form if form.is_folder() => Pick::Usual,
        _ => {
            let mut parts = found.path.components();
            parts.by_ref().find(|part| *part == Component::Normal(commit.as_ref()))?;
            Pick::File(parts.as_path().to_str()?.replace('\\', "/"))
        }
    };
    Some(ModelName::Hub(HubName { pick, ..name.clone() }))
}

impl Catalogue {
    /// The model that a client means. Only the configured hub, folders of ollama, and aliases of the configuration are
    /// taken: clients choose neither files nor other servers.
    fn wanted(&self, text: &str) -> Result<ModelName, StoreError> {
        if let Some(alias) = self.aliases().get(text) {
            return ModelName::parse(alias).map_err(failed);
        }
        match ModelName::parse(text).map_err(failed)? {
            name @ (ModelName::Hub(_) | ModelName::Ollama(_)) => Ok(name),
            ModelName::Address(_) => Err(StoreError::Name(format!(
                "`{text}` is an address; models are fetched from one hub only, by names such as hf:org/repo:Q4_K_M"
            ))),
            // As ollama's clients write it.
            ModelName::Path(_) => match OllamaName::parse(text) {
                Ok(name) => Ok(ModelName::Ollama(name)),
                Err(reason) => Err(StoreError::Name(format!("`{text}` is not a model's name: {reason}"))),
            },
        }
    }

    /// The model that is called so, if there is one.
    fn called(&self, name: &str) -> Result<Option<Item>, StoreError> {
        let items = self.items().map_err(|error| StoreError::Other(chain(error.as_ref())))?;
        Ok(items.into_iter().find(|item| item.is_called(name)))
    }

    /// True if the name is there because clients gave it, and not because the server was started with it.
    fn is_given(&self, name: &str) -> Result<bool, StoreError> {
        let own = self.own_items().map_err(|error| StoreError::Other(chain(error.as_ref())))?;
        Ok(self.added.is_given(name) && !own.iter().any(|item| item.is_called(name)))
    }
}

/// Tells the events of a download as those of a server.
fn tell_as(tell: &mut dyn FnMut(PullEvent)) -> impl FnMut(Event) {
    let mut files: Vec<(String, Option<u64>)> = Vec::new();
    move |event| match event {
        Event::Planned(plan) => {
            let digest = |digest: &chaski_hub::Digest| match digest {
                chaski_hub::Digest::Sha256(digits) => format!("sha256:{digits}"),
                chaski_hub::Digest::Git(digits) => format!("git:{digits}"),
            };
            files.clear();
            for file in &plan.files {
                let name = file.digest.as_ref().map_or_else(|| file.path.clone(), digest);
                let n_present = if file.is_complete { file.size.unwrap_or(0) } else { file.n_present };
                tell(PullEvent::File { digest: name.clone(), size: file.size, n_present });
                files.push((name, file.size));
            }
        }
        Event::Progress { file, n_present, .. } => {
            let (digest, size) = files[file].clone();
            tell(PullEvent::File { digest, size, n_present });
        }
        Event::Verified { .. } => tell(PullEvent::Verifying),
        Event::Done { file, .. } => {
            let (digest, size) = files[file].clone();
            size.into_iter().for_each(|n| {
                tell(PullEvent::File { digest: digest.clone(), size, n_present: n });
            });
        }
        _ => {}
    }
}

impl Store for Catalogue {
    fn pull(
        &self,
        name: &str,
        cancel: Arc<AtomicBool>,
        tell: &mut dyn FnMut(PullEvent),
    ) -> Result<(), StoreError> {
        let other = || StoreError::Name(format!("`{name}` is the name of another model of this server"));
        let known = self.called(name)?;
        let is_given = self.is_given(name)?;
        if known.is_some() && !is_given {
            // Of the command line, a folder or a preset: its files are here.
            return Ok(());
        }
        let wanted = self.wanted(name)?;
        let hub = self.models.hub().map_err(|error| StoreError::Other(chain(error.as_ref())))?;
        let mut tell = tell_as(tell);
        let mut watch = Watch { cancel, tell: &mut tell };
        // The files that the name means on the hub now.
        let plan = hub.plan(&wanted, &mut watch).map_err(failed)?;
        let found = hub.fetch(&plan, &mut watch).map_err(failed)?;
        if found.form == Form::File {
            return Err(StoreError::Name(format!("`{wanted}` is no model")));
        }
        // The list may have changed meanwhile.
        if self.called(name)?.is_some_and(|item| item.path.as_ref() != Some(&found.path))
            && !self.is_given(name)?
        {
            return Err(other());
        }
        self.added.fetch(name, &found.path, files_of(&wanted, &found));
        Ok(())
    }

    fn copy(&self, id: &str, name: &str) -> Result<(), StoreError> {
        if self.called(name)?.is_some() && !self.is_given(name)? {
            let message =
                format!("`{name}` is the name of a model of this server, and cannot be given to another");
            return Err(StoreError::Name(message));
        }
        self.added.copy(id, name);
        Ok(())
    }

    fn delete(&self, id: &str, name: &str) -> Result<Option<Removal>, StoreError> {
        let item = self.called(id)?;
        if !self.is_given(name)? {
            let message = format!(
                "`{name}` is a model that the server was started with; only fetched models and given names are deleted"
            );
            return Err(StoreError::Name(message));
        }
        let Some(files) = self.added.forget(name) else { return Ok(None) };
        // The same file may be served under a name of its own.
        let is_own = item.is_some_and(|item| item.is_fetched);
        let hub = self.models.hub().map_err(|error| StoreError::Other(chain(error.as_ref())))?.clone();
        let remove = |files: ModelName| -> Removal {
            Box::new(move || match hub.remove(&files, false) {
                // They are gone already.
                Ok(_) | Err(HubError::NotCached { .. }) => Ok(()),
                Err(error) => Err(failed(error)),
            })
        };
        Ok(files.filter(|_| is_own).map(remove))
    }
}

/// An error of the hub as one of the server.
fn failed(error: HubError) -> StoreError {
    let said = chain(&error);
    match error.kind() {
        FailureKind::Usage => StoreError::Name(said),
        FailureKind::NoModel => StoreError::Missing(said),
        FailureKind::Network | FailureKind::Damaged => StoreError::Network(said),
        FailureKind::Interrupted => {
            StoreError::Stopped("the download was stopped; the next one goes on".into())
        }
        FailureKind::NoRoom | FailureKind::File => StoreError::Other(said),
    }
}
