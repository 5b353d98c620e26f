//! Names on command lines: they become files before a command sees them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use chaski_hub::{Form, Found, Hub, HubConfig, HubName, ModelName, OllamaModel, Pick, Watch};

use super::args::HubArgs;
use super::settings;
use super::transfer::Transfer;
use crate::failure::Usage;
use crate::interrupt::{self, Answering};
use crate::model_names::{Aliases, Role};
use crate::ui::Ui;

/// Finds and fetches models by name. Clones share what they know.
#[derive(Clone)]
pub(crate) struct Models(Arc<Inner>);

struct Inner {
    args: HubArgs,
    /// Names of the configuration file.
    aliases: Aliases,
    ui: Ui,
    /// Made when a name is first asked for: files need none of this.
    hub: OnceLock<Hub>,
    /// The model of ollama that was found, with what is kept beside it.
    ollama: OnceLock<OllamaModel>,
    /// Names for servers of models whose files are named by digests or commits.
    ids: Mutex<BTreeMap<PathBuf, String>>,
}

impl Models {
    pub(crate) fn new(args: HubArgs, aliases: Aliases, ui: &Ui) -> Models {
        Models(Arc::new(Inner {
            args,
            aliases,
            ui: ui.clone(),
            hub: OnceLock::new(),
            ollama: OnceLock::new(),
            ids: Mutex::default(),
        }))
    }

    pub(crate) fn ui(&self) -> &Ui {
        &self.0.ui
    }

    pub(crate) fn hub(&self) -> anyhow::Result<&Hub> {
        if let Some(hub) = self.0.hub.get() {
            return Ok(hub);
        }
        let hub = Hub::new(settings::of_process(&self.0.args))?;
        Ok(self.0.hub.get_or_init(|| hub))
    }

    pub(crate) fn config(&self) -> anyhow::Result<&HubConfig> {
        Ok(self.hub()?.config())
    }

    /// The name that a word of the command line means, with the options about names.
    ///
    /// # Errors
    /// [`Usage`] for options that the name has no use for; names that are not well formed.
    pub(crate) fn name_of(&self, word: &Path) -> anyhow::Result<ModelName> {
        let mut name = self.plain_name_of(word)?;
        if let ModelName::Hub(hub) = &mut name {
            self.apply(hub)?;
        }
        Ok(name)
    }

    /// The same without the options.
    fn plain_name_of(&self, word: &Path) -> anyhow::Result<ModelName> {
        let Some(text) = word.to_str() else { return Ok(ModelName::Path(word.to_owned())) };
        // A file of that name comes first.
        let alias = self.0.aliases.get(text).filter(|_| !word.exists());
        Ok(ModelName::parse(alias.map_or(text, String::as_str))?)
    }

    /// Sets revision and file of a name of the hub.
    fn apply(&self, name: &mut HubName) -> anyhow::Result<()> {
        if let Some(revision) = &self.0.args.revision {
            if name.revision.as_ref().is_some_and(|given| given != revision) {
                return Err(Usage(format!(
                    "`{name}` has a revision of its own beside --revision {revision}"
                ))
                .into());
            }
            // Checked as in a name.
            let checked = HubName::parse(&format!("{}@{}", name.repo, chaski_hub::quote_segment(revision)))?;
            name.revision = checked.revision;
        }
        if let Some(file) = &self.0.args.hf_file {
            if name.pick != Pick::Usual {
                return Err(Usage(format!(
                    "`{name}` has a tag or a file of its own beside --hf-file {file}"
                ))
                .into());
            }
            name.pick = HubName::parse(&format!("{}/{file}", name.repo))?.pick;
        }
        Ok(())
    }

    /// The file or folder of a model, fetched if it is not here; paths stay as they are.
    ///
    /// # Errors
    /// Those of names, the network and the disk.
    pub(crate) fn path_of(&self, word: &Path, role: Role) -> anyhow::Result<PathBuf> {
        let name = match role {
            Role::Main => self.name_of(word)?,
            Role::Other => self.plain_name_of(word)?,
        };
        match name {
            ModelName::Path(path) => Ok(path),
            name => Ok(self.path_of_found(&name, self.get(&name, self.ui())?, role)),
        }
    }

    /// The same for a model of a file of presets that is here; `None` if it must be fetched.
    ///
    /// # Errors
    /// Those of names and of other programs' folders.
    pub(crate) fn path_here(&self, word: &Path) -> anyhow::Result<Option<PathBuf>> {
        match self.plain_name_of(word)? {
            ModelName::Path(path) => Ok(Some(path)),
            name => {
                let found = self.hub()?.find(&name)?;
                Ok(found.map(|found| self.path_of_found(&name, found, Role::Other)))
            }
        }
    }

    /// Fetches a model of a file of presets, without showing progress.
    ///
    /// # Errors
    /// As [`Self::path_of`].
    pub(crate) fn fetch_silently(&self, word: &Path) -> anyhow::Result<()> {
        self.get(&self.plain_name_of(word)?, &Ui::silent()).map(drop)
    }

    /// The path of a model that was found by name; keeps what else is known of it.
    fn path_of_found(&self, name: &ModelName, found: Found, role: Role) -> PathBuf {
        if let Some(id) = id_of(name, found.form) {
            self.0.ids.lock().unwrap_or_else(PoisonError::into_inner).insert(found.path.clone(), id);
        }
        if let Some(ollama) = found.ollama.filter(|_| role == Role::Main) {
            // Of several, the first counts.
            let _ = self.0.ollama.set(ollama);
        }
        found.path
    }

    /// The options of the command line that complete a name of the hub but are for its own model, if there are any.
    pub(crate) fn options_of_main(&self, word: &Path) -> Option<String> {
        let args = &self.0.args;
        let given = [("--revision", args.revision.is_some()), ("--hf-file", args.hf_file.is_some())];
        let given: Vec<&str> =
            given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect();
        let is_of_hub = || matches!(self.plain_name_of(word), Ok(ModelName::Hub(_)));
        (!given.is_empty() && is_of_hub()).then(|| given.join(" and "))
    }

    /// The name for a server of a model that was found by name, if that of its file tells nothing.
    pub(crate) fn id_of(&self, path: &Path) -> Option<String> {
        self.0.ids.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
    }

    /// The model of ollama that the command runs, if it is one.
    pub(crate) fn ollama(&self) -> Option<&OllamaModel> {
        self.0.ollama.get()
    }

    /// Finds a model, or fetches it with progress.
    fn get(&self, name: &ModelName, ui: &Ui) -> anyhow::Result<Found> {
        let hub = self.hub()?;
        if let Some(found) = hub.find(name)? {
            return Ok(found);
        }
        let mut transfer = Transfer::new(ui, false);
        let found = self.watched(&mut |event| transfer.show(event), |watch| {
            let plan = hub.plan(name, watch)?;
            hub.fetch(&plan, watch)
        })?;
        transfer.finish();
        Ok(found)
    }

    /// Runs work that Ctrl-C stops: what came of a file is kept.
    ///
    /// # Errors
    /// Those of the work.
    pub(crate) fn watched<T>(
        &self,
        tell: &mut dyn FnMut(chaski_hub::Event),
        work: impl FnOnce(&mut Watch<'_>) -> Result<T, chaski_hub::HubError>,
    ) -> anyhow::Result<T> {
        interrupt::install()?;
        let answering = Answering::begin();
        Ok(work(&mut Watch { cancel: answering.flag(), tell })?)
    }
}

/// The name for a server of a model whose file is named by a digest, or whose folder by a commit.
fn id_of(name: &ModelName, form: Form) -> Option<String> {
    match name {
        ModelName::Hub(name) if form.is_folder() => name.repo.as_str().rsplit('/').next().map(str::to_owned),
        ModelName::Ollama(name) => Some(format!("{}:{}", name.model, name.tag)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(args: HubArgs) -> Models {
        let aliases = [("qwen".to_owned(), "hf:org/qwen-GGUF:Q8_0".to_owned())].into();
        Models::new(args, aliases, &Ui::silent())
    }

    #[test]
    fn words_are_names_aliases_or_paths() {
        let models = models(HubArgs::default());
        let name = |word: &str| models.name_of(Path::new(word)).unwrap().to_string();
        assert_eq!(name("qwen"), "hf:org/qwen-GGUF:Q8_0");
        assert_eq!(name("hf.co/a/b:Q4_0"), "hf:a/b:Q4_0");
        assert_eq!(models.path_of(Path::new("dir/a.gguf"), Role::Main).unwrap(), Path::new("dir/a.gguf"));
        assert!(models.name_of(Path::new("hf:a")).is_err());
    }

    #[test]
    fn served_models_have_names_rather_than_digests() {
        for (name, form, id) in [
            ("hf:org/dense@v1", Form::Checkpoint, Some("dense")),
            ("hf:org/a-GGUF:Q4_0", Form::Gguf, None),
            ("ollama:qwen3", Form::Gguf, Some("qwen3:latest")),
            ("ollama:me/story:4b", Form::Gguf, Some("story:4b")),
            ("https://x.org/a.gguf", Form::Gguf, None),
        ] {
            assert_eq!(id_of(&ModelName::parse(name).unwrap(), form).as_deref(), id, "{name}");
        }
    }

    #[test]
    fn options_complete_a_name() {
        let args = HubArgs {
            revision: Some("refs/pr/3".into()),
            hf_file: Some("sub/a.gguf".into()),
            ..HubArgs::default()
        };
        let models = models(args);
        let name = |word: &str| models.name_of(Path::new(word));
        assert_eq!(name("hf:a/b").unwrap().to_string(), "hf:a/b@refs/pr/3/sub/a.gguf");
        assert!(name("hf:a/b:Q8_0").unwrap_err().is::<Usage>());
        assert!(name("hf:a/b@main").unwrap_err().is::<Usage>());
        assert_eq!(name("a.gguf").unwrap().to_string(), "a.gguf");
        assert_eq!(models.options_of_main(Path::new("hf:a/b")).unwrap(), "--revision and --hf-file");
        assert_eq!(models.options_of_main(Path::new("a.gguf")), None);
        // They are for the model, not for its draft.
        let draft = |word: &str| models.plain_name_of(Path::new(word)).unwrap().to_string();
        assert_eq!((draft("hf:a/b"), draft("hf:a/b:Q8_0")), ("hf:a/b".into(), "hf:a/b:Q8_0".into()));
    }
}
