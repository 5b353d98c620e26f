//! The hub as programs use it: find, plan, fetch, and care for what is here.

mod care;
mod fetch;
mod find;
mod plan;
mod remote;

use std::sync::Arc;

use crate::cache::Cache;
use crate::client::Client;
use crate::config::HubConfig;
use crate::error::HubError;
use crate::job::{Job, Watch};
use crate::name::ModelName;
use crate::plan::Plan;

pub use find::Found;
pub use remote::RemoteFile;

/// Models by name, with the cache and the network. Clones share both.
///
/// Calls block. Work runs on threads of its own: when the caller's flag is set, a call returns at once, and what came
/// is kept.
///
/// ```no_run
/// use chaski_hub::{Hub, HubConfig, ModelName, Watch};
///
/// let hub = Hub::new(HubConfig::new("cache"))?;
/// let name = ModelName::parse("hf:org/repo-GGUF:Q4_K_M")?;
/// let mut tell = |event| drop(event);
/// let model = hub.get(&name, &mut Watch { cancel: Default::default(), tell: &mut tell })?;
/// assert!(model.path.exists());
/// # Ok::<(), chaski_hub::HubError>(())
/// ```
#[derive(Clone)]
pub struct Hub(Arc<Inner>);

/// State that all threads share.
pub(crate) struct Inner {
    pub(crate) config: HubConfig,
    pub(crate) client: Client,
    pub(crate) cache: Cache,
}

impl Hub {
    /// A hub with these settings; asks nothing yet.
    ///
    /// # Errors
    /// [`HubError::Setting`].
    pub fn new(config: HubConfig) -> Result<Hub, HubError> {
        let client = Client::new(&config)?;
        let cache = Cache::new(config.cache.clone(), config.links);
        Ok(Hub(Arc::new(Inner { config, client, cache })))
    }

    /// The settings.
    pub fn config(&self) -> &HubConfig {
        &self.0.config
    }

    /// Free bytes of the disk with the cache, if the system tells them.
    pub fn free_space(&self) -> Option<u64> {
        let existing = self.0.config.cache.ancestors().find(|folder| folder.is_dir())?;
        fs4::available_space(existing).ok()
    }

    /// Finds a model that is here, without a request; `None` if the network must be asked.
    ///
    /// # Errors
    /// Those of names and of other programs' folders.
    pub fn find(&self, name: &ModelName) -> Result<Option<Found>, HubError> {
        self.0.find(name)
    }

    /// Asks for the files of a model, and what of them is missing. Offline, the plan is of what is here.
    ///
    /// # Errors
    /// [`HubError`].
    pub fn plan(&self, name: &ModelName, watch: &mut Watch<'_>) -> Result<Plan, HubError> {
        let (inner, name) = (self.0.clone(), name.clone());
        Job::run(watch, move |job| inner.plan(&name, false, job))
    }

    /// The same with the vision part of the model, if its repository has one.
    ///
    /// # Errors
    /// [`HubError`].
    pub fn plan_with_projector(&self, name: &ModelName, watch: &mut Watch<'_>) -> Result<Plan, HubError> {
        let (inner, name) = (self.0.clone(), name.clone());
        Job::run(watch, move |job| inner.plan(&name, true, job))
    }

    /// Fetches what a plan lacks, verifies it, and puts it into the cache.
    ///
    /// # Errors
    /// [`HubError`].
    pub fn fetch(&self, plan: &Plan, watch: &mut Watch<'_>) -> Result<Found, HubError> {
        let (inner, plan) = (self.0.clone(), plan.clone());
        Job::run(watch, move |job| inner.fetch(&plan, job))
    }

    /// Finds a model, or plans and fetches it.
    ///
    /// # Errors
    /// [`HubError`].
    pub fn get(&self, name: &ModelName, watch: &mut Watch<'_>) -> Result<Found, HubError> {
        if let Some(found) = self.find(name)? {
            return Ok(found);
        }
        let plan = self.plan(name, watch)?;
        self.fetch(&plan, watch)
    }
}
