//! The models of a server: loaded when a request asks for them, and freed when nobody does.

mod listed;
mod news;
mod offer;
mod shelf;
mod store;

#[cfg(test)]
mod tests;

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};

use crate::error::{ApiError, Kind};
use crate::model::{ModelOptions, Served};

pub(crate) use listed::Listed;
pub(crate) use news::News;
pub use offer::{KeepAlive, KeepAliveError, LoadError, Loader, Offer, Part, model_id};
pub(crate) use shelf::{Budget, Entry, Room, State};
pub use store::{PullEvent, Removal, Store, StoreError};

use shelf::{Asked, Shelf, Step};

/// Offers of models as they are now.
pub type Offers = Arc<dyn Fn() -> Vec<Offer> + Send + Sync>;

/// Tells the operator something.
pub(crate) type Note = Box<dyn Fn(String) + Send + Sync>;

/// The shortest time between two readings of the offers.
const REFRESH: Duration = Duration::from_secs(1);

/// All models.
pub(crate) struct Models {
    shelf: Mutex<Shelf<Served>>,
    /// Something has changed.
    changed: watch::Sender<()>,
    /// Something may be to be done.
    wake: Notify,
    offers: Option<Offers>,
    refreshed: Mutex<Option<Instant>>,
    /// Load models when requests ask for them.
    autoload: bool,
    note: Note,
}

/// A model in use.
pub(crate) struct Lease {
    served: Arc<Served>,
    models: Arc<Models>,
    id: String,
}

impl Deref for Lease {
    type Target = Arc<Served>;

    fn deref(&self) -> &Arc<Served> {
        &self.served
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.models.shelf().release(&self.id, Instant::now());
        self.models.wake.notify_one();
    }
}

/// A request that waits.
struct Waiter<'m>(&'m Models, &'m str);

impl<'m> Waiter<'m> {
    fn new(models: &'m Models, id: &'m str) -> Waiter<'m> {
        models.shelf().join(id);
        Waiter(models, id)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.shelf().part(self.1);
        self.0.wake.notify_one();
    }
}

impl Models {
    pub(crate) fn new(room: Room, autoload: bool, offers: Option<Offers>, note: Note) -> Models {
        let models = Models {
            shelf: Mutex::new(Shelf::new(room)),
            changed: watch::Sender::new(()),
            wake: Notify::new(),
            offers,
            refreshed: Mutex::default(),
            autoload,
            note,
        };
        models.refresh();
        models
    }

    pub(crate) fn shelf(&self) -> MutexGuard<'_, Shelf<Served>> {
        self.shelf.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Tells those who wait, and the loader, that something has changed.
    fn tell(&self) {
        self.changed.send_replace(());
        self.wake.notify_one();
    }

    /// Adds a loaded model, which stays.
    pub(crate) fn add(&self, served: Served) {
        let (facts, size, devices) = (served.facts.clone(), served.size, served.devices.clone());
        let never: Loader = Arc::new(|_| Err(LoadError::Other("it was not loaded by the server".into())));
        let source = chaski::Source::path(&facts.file);
        let offer = Offer {
            aliases: facts.aliases.clone(),
            loras: facts.loras.files(),
            created: facts.created,
            keep_alive: KeepAlive::Always,
            is_default: true,
            ..Offer::new(&*facts.id, source, never)
        };
        // The file need not be read again for what it says.
        let _ = offer.about.set(Ok(facts.about.clone()));
        let mut shelf = self.shelf();
        shelf.know(devices);
        shelf.put(offer, served, size, Instant::now());
        drop(shelf);
        self.tell();
    }

    /// Reads the offers again.
    pub(crate) fn refresh(&self) {
        let Some(offers) = &self.offers else { return };
        let offers = offers();
        *self.refreshed.lock().unwrap_or_else(|e| e.into_inner()) = Some(Instant::now());
        self.shelf().offer(offers, Instant::now());
        self.tell();
    }

    /// Reads the offers again, unless that was just done.
    pub(crate) async fn refresh_soon(self: &Arc<Self>) {
        let last = *self.refreshed.lock().unwrap_or_else(|e| e.into_inner());
        if self.offers.is_none() || last.is_some_and(|last| last.elapsed() < REFRESH) {
            return;
        }
        let models = self.clone();
        // It reads folders.
        if tokio::task::spawn_blocking(move || models.refresh()).await.is_err() {
            (self.note)("the list of models cannot be read again".into());
        }
    }

    /// The name of the model that a request means.
    ///
    /// # Errors
    /// [`Kind::Loading`] before there is one; [`Kind::Model`] for an unknown name.
    fn resolve(&self, name: Option<&str>, takes_any: bool) -> Result<String, ApiError> {
        let shelf = self.shelf();
        // A model that leaves has other names than the one that takes its place.
        let all: Vec<&Arc<Offer>> = shelf.entries().iter().filter_map(Entry::offered).collect();
        let id = |offer: &&Arc<Offer>| offer.id.clone();
        let default = || all.iter().find(|offer| offer.is_default).or(all.first().filter(|_| all.len() == 1));
        let known = || all.iter().map(id).collect::<Vec<_>>().join(", ");
        if all.is_empty() && self.offers.is_none() {
            return Err(ApiError::new(Kind::Loading, "Loading model").retry(1));
        }
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            let missing =
                || ApiError::field("model", format!("`model` has to name a model (known: {})", known()));
            return default().map(id).ok_or_else(missing);
        };
        let called = all.iter().find(|offer| offer.is_called(name));
        let has_lora = || all.iter().find(|offer| offer.lora_called(name).is_some());
        if let Some(offer) = called.or_else(has_lora) {
            return Ok(id(offer));
        }
        match default().filter(|_| takes_any) {
            Some(offer) => Ok(id(offer)),
            None => {
                let message = format!("the model `{name}` does not exist (known: {})", known());
                Err(ApiError { param: Some("model".into()), ..ApiError::new(Kind::Model, message) })
            }
        }
    }

    /// The id of a model. Offers are read again for a name that is not known.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(crate) async fn find(
        self: &Arc<Self>,
        name: Option<&str>,
        takes_any: bool,
    ) -> Result<String, ApiError> {
        match self.resolve(name, takes_any) {
            Err(error) if error.kind == Kind::Model => {
                self.refresh_soon().await;
                self.resolve(name, takes_any)
            }
            found => found,
        }
    }

    /// A model for a request, which waits while it is loaded.
    ///
    /// # Errors
    /// [`Kind::Loading`] before the server is ready; [`Kind::Model`] for an unknown name; that it cannot be loaded.
    pub(crate) async fn get(
        self: &Arc<Self>,
        name: Option<&str>,
        takes_any: bool,
    ) -> Result<Lease, ApiError> {
        let id = self.find(name, takes_any).await?;
        self.weigh(&id).await;
        let _waiter = Waiter::new(self, &id);
        let mut changed = self.changed.subscribe();
        loop {
            // Changes from here on end the wait below.
            changed.borrow_and_update();
            if let Some(served) = self.ask(&id)? {
                return Ok(Lease { served, models: self.clone(), id: id.clone() });
            }
            self.wake.notify_one();
            if changed.changed().await.is_err() {
                return Err(ApiError::new(Kind::Draining, "the server is shutting down"));
            }
        }
    }

    /// A model, if it is loaded; `None` if it will be.
    fn ask(&self, id: &str) -> Result<Option<Arc<Served>>, ApiError> {
        let mut shelf = self.shelf();
        let is_loaded = |entry: &Entry<Served>| {
            entry.offer.id == id && !matches!(entry.state, State::Unloaded | State::Failed { .. })
        };
        if !self.autoload && !shelf.entries().iter().any(is_loaded) {
            let message = format!("the model `{id}` is not loaded (POST /models/load loads it)");
            return Err(ApiError::field("model", message));
        }
        match shelf.ask(id, Instant::now()) {
            Asked::Ready(served) => Ok(Some(served)),
            Asked::Wait => Ok(None),
            Asked::Refused(error) => Err(error),
        }
    }

    /// Reads the size of a model, where that counts. The shelf is not locked meanwhile.
    async fn weigh(&self, id: &str) {
        let offer = {
            let shelf = self.shelf();
            let entry = shelf.entries().iter().find(|entry| entry.offer.id == id);
            entry.filter(|_| shelf.budget().is_some()).map(|entry| entry.offer.clone())
        };
        if let Some(offer) = offer.filter(|offer| offer.about.get().is_none()) {
            // A file that cannot be read is an error when it is loaded.
            let _ = tokio::task::spawn_blocking(move || offer.about().is_ok()).await;
        }
    }

    /// Starts to load a model.
    ///
    /// # Errors
    /// That it cannot be loaded.
    pub(crate) async fn load(&self, id: &str) -> Result<(), ApiError> {
        self.weigh(id).await;
        let ordered = self.shelf().order(id, Instant::now());
        self.tell();
        ordered
    }

    /// Frees a model when nobody uses it.
    ///
    /// # Errors
    /// A model that is not loaded.
    pub(crate) fn unload(&self, id: &str) -> Result<(), ApiError> {
        let unloaded = self.shelf().unload(id);
        self.tell();
        unloaded
    }

    /// How long a model stays from now on.
    pub(crate) fn keep(&self, id: &str, keep_alive: KeepAlive) {
        self.shelf().keep(id, keep_alive);
        self.tell();
    }

    /// True if no model is missing that its program loads at the start.
    pub(crate) fn is_ready(&self) -> bool {
        let shelf = self.shelf();
        let has_any = self.offers.is_some() || !shelf.entries().is_empty();
        has_any && !shelf.entries().iter().any(|entry| matches!(entry.state, State::Starting))
    }

    /// All models as programs are told of them.
    pub(crate) fn listed(&self) -> Vec<Listed> {
        self.shelf().entries().iter().map(Listed::of).collect()
    }

    /// Bytes that loaded models may take, if they are limited: `u64::MAX` of the options is no limit.
    pub(crate) fn n_byte(&self) -> Option<u64> {
        let n_byte = |budget| match budget {
            Budget::Fixed(n_byte) | Budget::Devices(n_byte) => n_byte,
        };
        self.shelf().budget().map(n_byte).filter(|n| *n < u64::MAX)
    }

    /// Loaded models.
    pub(crate) fn loaded(&self) -> Vec<Arc<Served>> {
        let shelf = self.shelf();
        let loaded = |entry: &Entry<Served>| match &entry.state {
            State::Loaded(loaded) | State::Leaving { loaded, .. } => Some(loaded.model.clone()),
            _ => None,
        };
        shelf.entries().iter().filter_map(loaded).collect()
    }

    /// The model with this id, if it is loaded.
    pub(crate) fn served(&self, id: &str) -> Option<Arc<Served>> {
        self.loaded().into_iter().find(|served| served.facts.id == id)
    }

    /// Loads a model on this thread, for a program that starts with it.
    ///
    /// # Errors
    /// [`LoadError`]; a model that was not offered so.
    pub(crate) fn start(self: &Arc<Self>, id: &str) -> Result<Arc<Served>, LoadError> {
        let missing = || LoadError::Other(format!("no model `{id}` is loaded at the start"));
        let offer = self.shelf().begin(id).ok_or_else(missing)?;
        let loaded = load(self, &offer);
        let result = loaded.as_ref().map(drop).map_err(Clone::clone);
        self.put(id, loaded);
        result?;
        self.served(id).ok_or_else(missing)
    }

    /// Loads and frees models. Never ready.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            let (step, deadline) = {
                let mut shelf = self.shelf();
                (shelf.next(Instant::now()), shelf.deadline())
            };
            match step {
                Some(Step::Load(offer)) => {
                    self.changed.send_replace(());
                    let models = self.clone();
                    tokio::task::spawn_blocking(move || models.load_now(&offer));
                }
                Some(Step::End(id, served)) => {
                    self.changed.send_replace(());
                    let models = self.clone();
                    tokio::task::spawn_blocking(move || models.end_now(&id, served));
                }
                Some(Step::Tell) => self.changed.send_modify(|()| ()),
                None => {
                    let far = Instant::now() + Duration::from_secs(24 * 3600);
                    let until = tokio::time::sleep_until(deadline.unwrap_or(far).into());
                    tokio::select! {
                        () = self.wake.notified() => {}
                        () = until => {}
                    }
                }
            }
        }
    }

    fn load_now(self: &Arc<Self>, offer: &Arc<Offer>) {
        let start = Instant::now();
        (self.note)(format!("loading {}", offer.id));
        let loaded = load(self, offer);
        let id = &*offer.id;
        (self.note)(match &loaded {
            Ok(_) => format!("{id} is loaded after {:.1} s", start.elapsed().as_secs_f64()),
            Err(error) => format!("{id} cannot be loaded: {error}"),
        });
        self.put(id, loaded);
    }

    /// Takes note of a model that has been loaded, or not.
    fn put(&self, id: &str, loaded: Result<Served, LoadError>) {
        let now = Instant::now();
        match loaded {
            Ok(served) => {
                let mut shelf = self.shelf();
                shelf.know(served.devices.clone());
                let size = served.size;
                shelf.loaded(id, served, size, now);
            }
            Err(error) => self.shelf().failed(id, &error, now),
        }
        self.tell();
    }

    fn end_now(&self, id: &str, served: Arc<Served>) {
        // A metric that is being read holds it for a moment.
        if let Some(served) = alone(served, Instant::now() + Duration::from_secs(5)) {
            served.end();
        }
        (self.note)(format!("{id} is unloaded"));
        self.shelf().ended(id);
        self.tell();
    }

    /// Waits until a model is no longer there; false if its requests take too long.
    pub(crate) async fn gone(&self, id: &str, limit: Duration) -> bool {
        let mut changed = self.changed.subscribe();
        let gone = async {
            loop {
                changed.borrow_and_update();
                if !self.shelf().entries().iter().any(|entry| entry.offer.id == id) {
                    return;
                }
                if changed.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::time::timeout(limit, gone).await.is_ok()
    }

    /// Told at each change.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }
}

/// The only owner of a model, once others have let go of it.
pub(crate) fn alone(mut served: Arc<Served>, deadline: Instant) -> Option<Served> {
    loop {
        match Arc::try_unwrap(served) {
            Ok(served) => return Some(served),
            Err(_) if Instant::now() > deadline => return None,
            Err(shared) => served = shared,
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Loads a model; a loader that panics is an error.
fn load(models: &Arc<Models>, offer: &Arc<Offer>) -> Result<Served, LoadError> {
    let (told, id) = (models.clone(), offer.id.clone());
    let progress = move |part: f32| {
        told.shelf().progress(&id, part);
        told.changed.send_replace(());
    };
    let attempt =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (offer.loader)(Arc::new(progress))));
    let (engine, options) =
        attempt.unwrap_or_else(|_| Err(LoadError::Other("loading it panicked".into())))?;
    let options = ModelOptions { id: Some(offer.id.clone()), aliases: offer.aliases.clone(), ..options };
    Served::new(engine, options).map_err(|error| LoadError::Other(crate::error::chain(&error)))
}
