//! The models of a server: those of the command line, of a folder, and of a file of presets.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::time::UNIX_EPOCH;

use anyhow::Context as _;
use chaski::SamplerParams;
use chaski_server::{KeepAlive, LoadError, Loader, ModelOptions, Offer, Offers, Part, model_id};

use super::added::Added;
use super::args::Args;
use super::fetches::Fetches;
use super::kept::Kept;
use super::limits::LimitArgs;
use crate::config::{Again, Preset};
use crate::failure::{Usage, is_out_of_memory};
use crate::hub::Models;
use crate::load;
use crate::model_names::{Aliases, Role};
use crate::options::{self, source};
use crate::ui::{Ui, chain};

/// The models that a command line names, as they are now.
pub(super) struct Catalogue {
    args: RwLock<Arc<Args>>,
    pub(super) again: Again,
    /// Models by name.
    pub(super) models: Models,
    ui: Ui,
    /// The models at the last reading.
    last: Mutex<Vec<Offer>>,
    /// The error of the last model that could not be loaded.
    failure: Mutex<Option<anyhow::Error>>,
    /// The first models are loaded.
    has_started: AtomicBool,
    /// The models were read once: from then on, requests wait for each reading.
    is_running: AtomicBool,
    fetches: Arc<Fetches>,
    /// Models and names of clients.
    pub(super) added: Added,
}

/// A model, and the options that it is served with.
pub(super) struct Item {
    pub(super) id: String,
    pub(super) aliases: Vec<String>,
    /// The built-in model if unset.
    pub(super) path: Option<PathBuf>,
    args: Arc<Args>,
    /// It stands on the command line.
    is_named: bool,
    /// It is there because a client fetched it.
    pub(super) is_fetched: bool,
}

impl Item {
    /// True if it is called so.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.id == name || self.aliases.iter().any(|alias| alias == name)
    }
}

impl Catalogue {
    /// Reads it for the first time.
    ///
    /// # Errors
    /// A folder or a file of presets that cannot be read; two models with one name.
    pub(super) fn new(args: Args, again: Again, models: &Models, ui: &Ui) -> anyhow::Result<Arc<Catalogue>> {
        let added = match args.models.file() {
            Some(file) => {
                let notes = ui.clone();
                Added::kept(Kept::new(file, move |text| notes.note(text)))
            }
            None => Added::default(),
        };
        let catalogue = Arc::new(Catalogue {
            args: RwLock::new(Arc::new(args)),
            again,
            models: models.clone(),
            ui: ui.clone(),
            last: Mutex::default(),
            failure: Mutex::default(),
            has_started: AtomicBool::new(false),
            is_running: AtomicBool::new(false),
            fetches: Arc::default(),
            added,
        });
        *catalogue.last() = catalogue.read()?;
        catalogue.is_running.store(true, Ordering::Relaxed);
        Ok(catalogue)
    }

    /// The options of models that have none of their own.
    fn args(&self) -> Arc<Args> {
        self.args.read().unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// Puts other limits in force, for models that are loaded from now on. Returns the models, and how many requests
    /// may wait for each.
    pub(super) fn set_limits(&self, limits: &LimitArgs) -> Vec<(String, usize)> {
        let mut args = (*self.args()).clone();
        args.limits = limits.clone();
        *self.args.write().unwrap_or_else(|e| e.into_inner()) = Arc::new(args);
        // A list that cannot be read stays, and its limits do.
        let items = self.items().unwrap_or_default().into_iter();
        items.map(|item| (item.id, item.args.limits.max_waiting(item.args.parallel))).collect()
    }

    fn last(&self) -> MutexGuard<'_, Vec<Offer>> {
        self.last.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The first models.
    pub(super) fn at_start(&self) -> Vec<Offer> {
        let last = self.last();
        last.iter().filter(|offer| offer.load_at_start).cloned().collect()
    }

    /// A model for an example, where requests have to name one.
    pub(super) fn example(&self) -> Option<String> {
        let last = self.last();
        let has_default = last.len() == 1 || last.iter().any(|offer| offer.is_default);
        last.first().filter(|_| !has_default).map(|offer| offer.id.clone())
    }

    /// The first models are loaded: the server shows no more progress.
    pub(super) fn started(&self) {
        self.has_started.store(true, Ordering::Relaxed);
    }

    /// Models that could not be fetched are tried again when the list is read next.
    #[cfg(unix)]
    pub(super) fn try_again(&self) {
        self.fetches.forget_failures();
    }

    /// The error of the last model that could not be loaded.
    pub(super) fn failure(&self) -> Option<anyhow::Error> {
        self.failure.lock().unwrap_or_else(|e| e.into_inner()).take()
    }

    /// The models whenever a server asks for them. What cannot be read changes nothing.
    pub(super) fn offers(self: &Arc<Self>) -> Offers {
        let (catalogue, is_first) = (self.clone(), AtomicBool::new(true));
        Arc::new(move || {
            if !is_first.swap(false, Ordering::Relaxed) {
                match catalogue.read() {
                    Ok(read) => *catalogue.last() = read,
                    Err(error) => catalogue.ui.note(&format!("the list of models stays: {error:#}")),
                }
            }
            catalogue.last().clone()
        })
    }

    fn read(self: &Arc<Self>) -> anyhow::Result<Vec<Offer>> {
        let items = self.items()?;
        for (i, item) in items.iter().enumerate() {
            if items[..i].iter().any(|other| other.id == item.id) {
                let message =
                    format!("two models are called `{}`: name them in a file of --models-preset", item.id);
                return Err(Usage(message).into());
            }
        }
        Ok(items.into_iter().map(|item| self.offer(item)).collect())
    }

    pub(super) fn items(&self) -> anyhow::Result<Vec<Item>> {
        let (mut items, args) = (self.own_items()?, &self.args());
        self.added.renew();
        self.add(&mut items, args);
        Ok(items)
    }

    /// The models without those of clients.
    pub(super) fn own_items(&self) -> anyhow::Result<Vec<Item>> {
        let args = &self.args();
        let named: Vec<Option<PathBuf>> = args.models.paths().map(|path| Some(path.to_owned())).collect();
        let has_other = args.models.dir.is_some() || args.models.preset.is_some();
        let named = if named.is_empty() && !has_other { vec![None] } else { named };
        let mut names = args.names();
        if names.len() > 0 && named.len() != 1 {
            return Err(
                Usage("--alias names one model; a file of --models-preset names several".into()).into()
            );
        }
        let mut items = Vec::new();
        for path in named {
            let of_path = |path: &Path| {
                self.models.id_of(path).unwrap_or_else(|| model_id(&path.display().to_string()))
            };
            let id = names
                .next()
                .unwrap_or_else(|| path.as_deref().map_or_else(|| "storyteller-Q4_K_M".into(), of_path));
            let aliases = names.by_ref().collect();
            items.push(Item { id, aliases, path, args: args.clone(), is_named: true, is_fetched: false });
        }
        let of_folder = match &args.models.dir {
            Some(dir) => in_folder(dir)?,
            None => Vec::new(),
        };
        let mut items_of_folder: Vec<Item> = of_folder
            .into_iter()
            .map(|(id, path)| Item {
                id,
                aliases: Vec::new(),
                path: Some(path),
                args: args.clone(),
                is_named: false,
                is_fetched: false,
            })
            .collect();
        if let Some(file) = &args.models.preset {
            for preset in self.again.presets::<Args>(file)? {
                let Preset { name, model, mut args } = preset;
                let words = [model.as_deref(), args.model_draft.as_deref()];
                let Some([model, draft]) = self.files_of(&name, words)? else { continue };
                args.model_draft = draft;
                let known = items.iter_mut().chain(&mut items_of_folder).find(|item| item.id == name);
                let aliases: Vec<String> = args.names().collect();
                match (known, model) {
                    (Some(item), model) => {
                        item.path = model.or(item.path.take());
                        (item.args, item.aliases) = (Arc::new(args), aliases);
                    }
                    (None, Some(path)) => {
                        let args = Arc::new(args);
                        let (is_named, is_fetched) = (false, false);
                        items.push(Item { id: name, aliases, path: Some(path), args, is_named, is_fetched });
                    }
                    (None, None) => {
                        let message = format!(
                            "`{}`: [{name}] has no `model`, and no model has that name",
                            file.display()
                        );
                        return Err(Usage(message).into());
                    }
                }
            }
        }
        // A file that a preset names is listed under that name.
        items_of_folder.retain(|item| !items.iter().any(|named| named.path == item.path));
        items.extend(items_of_folder);
        Ok(items)
    }

    /// Adds the models and names of clients. Names that the server's own models have stay theirs.
    fn add(&self, items: &mut Vec<Item>, args: &Arc<Args>) {
        let added: Vec<Vec<String>> =
            items.iter().map(|item| self.added.names_for(&item.id, item.path.as_deref())).collect();
        for (i, names) in added.into_iter().enumerate() {
            for name in names {
                if !items.iter().any(|item| item.is_called(&name)) {
                    items[i].aliases.push(name);
                }
            }
        }
        for (path, mut names) in self.added.fetched() {
            names.retain(|name| !items.iter().any(|item| item.is_called(name)));
            let is_listed = items.iter().any(|item| item.path.as_ref() == Some(&path));
            // Other programs may have deleted its files.
            if !is_listed && !names.is_empty() && path.exists() {
                let (id, args) = (names.remove(0), args.clone());
                let path = Some(path);
                items.push(Item { id, aliases: names, path, args, is_named: false, is_fetched: true });
            }
        }
    }

    /// Names for models of the configuration.
    pub(super) fn aliases(&self) -> Aliases {
        self.again.aliases()
    }

    /// The files of the model and the draft of a preset. While the server starts, they are fetched; later `None` for
    /// those that have to be, which join the list once they are here.
    fn files_of(
        &self,
        preset: &str,
        words: [Option<&Path>; 2],
    ) -> anyhow::Result<Option<[Option<PathBuf>; 2]>> {
        let is_running = self.is_running.load(Ordering::Relaxed);
        let mut files = [None, None];
        for (file, word) in files.iter_mut().zip(words) {
            let Some(word) = word else { continue };
            *file = match is_running {
                false => Some(self.models.path_of(word, Role::Other)?),
                true => self.models.path_here(word)?,
            };
            if file.is_none() {
                self.fetches.begin(word, preset, &self.models, &self.ui);
                return Ok(None);
            }
        }
        Ok(Some(files))
    }

    fn offer(self: &Arc<Self>, item: Item) -> Offer {
        let Item { id, aliases, path, args, is_named, is_fetched: _ } = item;
        let (stamp, created) = stamp(path.as_deref(), &args);
        let default = if is_named { KeepAlive::Always } else { KeepAlive::DEFAULT };
        let mut offer = Offer::new(id, source(path.as_deref()), self.loader(path, args.clone()));
        (offer.aliases, offer.stamp, offer.created) = (aliases, stamp, created);
        offer.loras = args.engine.lora.files().iter().map(|file| file.display().to_string()).collect();
        offer.tags = args.tags();
        offer.keep_alive = args.models.keep_alive.unwrap_or(default);
        offer.load_at_start = args.models.load_on_startup.unwrap_or(is_named);
        offer.is_default = is_named;
        offer
    }

    fn loader(self: &Arc<Self>, path: Option<PathBuf>, args: Arc<Args>) -> Loader {
        let catalogue = self.clone();
        Arc::new(move |part| {
            let ui = match catalogue.has_started.load(Ordering::Relaxed) {
                true => catalogue.ui.without_progress(),
                false => catalogue.ui.clone(),
            };
            engine(path.as_deref(), &args, part, &ui).map_err(|error| {
                let said = chain(error.as_ref());
                let is_full = is_out_of_memory(&error);
                *catalogue.failure.lock().unwrap_or_else(|e| e.into_inner()) = Some(error);
                if is_full { LoadError::Memory(said) } else { LoadError::Other(said) }
            })
        })
    }
}

/// Loads a model.
fn engine(
    path: Option<&Path>,
    args: &Args,
    part: Part,
    ui: &Ui,
) -> anyhow::Result<(chaski::Engine, ModelOptions)> {
    let mut engine_args = args.engine.clone();
    engine_args.sequences = args.parallel;
    engine_args.service = Some(args.service());
    engine_args.part = Some(options::Part(part));
    engine_args.metadata.more.extend(args.template.changes()?);
    let mut engine = load::load(source(path), &engine_args, ui)?.engine;
    let (n_token, n_ctx) = (engine.loaded().kv_tokens(), engine.loaded().n_ctx());
    if let Some(text) = args.smaller_pool(n_token, n_ctx) {
        let name = path.map_or_else(|| "the built-in model".into(), |path| format!("`{}`", path.display()));
        ui.note(&format!("{name}: {text}"));
    }
    if let Some(file) = &args.model_draft {
        engine.set_draft(Some(load::draft(file, &engine_args, &engine, ui)?))?;
    }
    let mut sampler = SamplerParams::default();
    sampler.apply_metadata(engine.model().metadata());
    args.sampling.apply(&mut sampler);
    let options = ModelOptions {
        id: None,
        aliases: Vec::new(),
        sampler: Some(sampler),
        max_tokens: usize::try_from(args.n_predict).ok(),
        context_shift: args.context_shift,
        variables: args.variables(),
        reasoning_budget: args.reasoning_budget(),
        dialects: args.dialects.options()?,
        cache_per_key: args.cache_per_key,
        n_seq: args.parallel,
        embeddings: args.embeddings,
        suffix_first: args.spm_infill,
        pooling: args.pooling,
        lora_init_without_apply: args.lora_init_without_apply,
        speculation: args.draft.speculation(args.model_draft.is_some()),
    };
    Ok((engine, options))
}

/// A number that changes with a file and its options, and the time at which the file changed.
fn stamp(path: Option<&Path>, args: &Args) -> (u64, u64) {
    let mut hasher = DefaultHasher::new();
    // Other limits do not change a model.
    let Args { limits, .. } = args;
    format!("{args:?}").replace(&format!("{limits:?}"), "").hash(&mut hasher);
    path.hash(&mut hasher);
    // The built-in model is as old as the program.
    let file = path.map_or_else(|| std::env::current_exe().ok(), |path| Some(path.to_owned()));
    let about = file.and_then(|file| std::fs::metadata(file).ok());
    let changed = about.and_then(|about| {
        about.len().hash(&mut hasher);
        about.modified().ok()?.duration_since(UNIX_EPOCH).ok()
    });
    changed.hash(&mut hasher);
    (hasher.finish(), changed.map_or(0, |time| time.as_secs()))
}

/// The models of a folder and of the folders in it, by name. Of a model in parts, the first counts.
fn in_folder(dir: &Path) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let mut models = Vec::new();
    for entry in entries(dir)? {
        if !entry.is_dir() {
            models.extend(is_model(&entry).then(|| (model_id(&entry.display().to_string()), entry)));
            continue;
        }
        let inner: Vec<PathBuf> = entries(&entry)?.into_iter().filter(|path| is_model(path)).collect();
        let folder = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let n = inner.len();
        models.extend(inner.into_iter().map(|path| match n {
            1 => (folder.clone(), path),
            _ => (format!("{folder}/{}", model_id(&path.display().to_string())), path),
        }));
    }
    Ok(models)
}

/// The entries of a folder in the order of their names.
fn entries(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let read = || std::fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
    let mut paths = read().with_context(|| format!("the folder `{}` cannot be read", dir.display()))?;
    paths.sort();
    Ok(paths)
}

/// True for files that are models by their names: not projectors, and not further parts.
fn is_model(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let Some(stem) = name.strip_suffix(".gguf") else { return false };
    let is_part = model_id(&name) != stem;
    path.is_file() && !stem.starts_with("mmproj") && (!is_part || stem.contains("-00001-of-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_files_parts_and_folders() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "b.gguf",
            "a-00001-of-00002.gguf",
            "a-00002-of-00002.gguf",
            "mmproj-b.gguf",
            "notes.txt",
            "one/model.GGUF",
            "one/mmproj.gguf",
            "two/x.gguf",
            "two/y.gguf",
        ] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = in_folder(dir.path()).unwrap();
        let ids: Vec<&str> = found.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["a", "b", "one", "two/x", "two/y"]);
        assert!(found[0].1.ends_with("a-00001-of-00002.gguf"));
        let error = in_folder(&dir.path().join("none")).unwrap_err();
        assert!(error.to_string().contains("cannot be read"));
    }
}
