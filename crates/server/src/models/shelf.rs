//! Which models are loaded, which are asked for, and which make room. It loads nothing itself, and has no clock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::offer::{KeepAlive, LoadError, Offer};
use crate::error::{ApiError, Kind};
use crate::model::Size;

/// For this long a model that cannot be loaded is not tried again.
const FAILED: Duration = Duration::from_secs(30);

/// Room for models.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Room {
    /// Models at once; `None` for any number.
    pub(crate) n_model: Option<usize>,
    /// Bytes at once; `None` for a part of what the devices have, where they tell it.
    pub(crate) n_byte: Option<u64>,
}

/// Bytes that loaded models may take.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Budget {
    /// The operator's: no model is loaded beyond it.
    Fixed(u64),
    /// A part of the devices' memory: others make room first, but the devices say what fits.
    Devices(u64),
}

/// The state of a model.
#[derive(Clone, Debug)]
pub(crate) enum State<T> {
    /// Its program is about to load it; nobody waits.
    Starting,
    Unloaded,
    /// Asked for; those who came first are loaded first.
    Queued {
        ticket: u64,
    },
    /// The part that is done.
    Loading(f32),
    Loaded(Loaded<T>),
    /// Its requests may end, others wait until it is loaded again. If it leaves only to make room, it stays after all
    /// if nobody needs that any more.
    Leaving {
        loaded: Loaded<T>,
        for_room: bool,
    },
    /// It is being freed; its bytes still count.
    Ending {
        size: Size,
    },
    Failed {
        error: ApiError,
        until: Instant,
    },
}

/// A model in memory.
#[derive(Debug)]
pub(crate) struct Loaded<T> {
    pub(crate) model: Arc<T>,
    pub(crate) size: Size,
}

impl<T> Clone for Loaded<T> {
    fn clone(&self) -> Self {
        Loaded { model: self.model.clone(), size: self.size }
    }
}

/// A model and its state.
pub(crate) struct Entry<T> {
    pub(crate) offer: Arc<Offer>,
    pub(crate) state: State<T>,
    /// How long it stays; a request may change it.
    pub(crate) keep_alive: KeepAlive,
    /// End of its last request.
    pub(crate) used: Instant,
    /// Bytes that it took when it was last loaded.
    known: Option<Size>,
    /// Requests that use it.
    pub(crate) n_user: usize,
    /// Requests that wait for it.
    n_waiter: usize,
    /// It is to be loaded although no request waits.
    is_ordered: bool,
    /// Its program added it, loaded: it is no offer.
    is_added: bool,
    /// Its offer when it is no longer used, or its removal.
    next: Option<Option<Arc<Offer>>>,
}

/// The answer to a request for a model.
pub(crate) enum Asked<T> {
    Ready(Arc<T>),
    /// Something has to change first.
    Wait,
    Refused(ApiError),
}

/// The next thing to do.
pub(crate) enum Step<T> {
    Load(Arc<Offer>),
    /// Free a model that nobody uses, and say so ([`Shelf::ended`]).
    End(String, Arc<T>),
    /// Tell those who wait for a model for which there is no room.
    Tell,
}

/// All models.
pub(crate) struct Shelf<T> {
    room: Room,
    /// Bytes of each device for models.
    devices: BTreeMap<String, u64>,
    entries: Vec<Entry<T>>,
    n_ticket: u64,
}

impl<T> Entry<T> {
    fn new(offer: Arc<Offer>, now: Instant) -> Entry<T> {
        let state = if offer.load_at_start { State::Starting } else { State::Unloaded };
        let keep_alive = offer.keep_alive;
        Entry {
            offer,
            state,
            keep_alive,
            used: now,
            known: None,
            n_user: 0,
            n_waiter: 0,
            is_ordered: false,
            is_added: false,
            next: None,
        }
    }

    /// Its offer from now on; `None` for a model that is no longer offered.
    pub(crate) fn offered(&self) -> Option<&Arc<Offer>> {
        self.next.as_ref().map_or(Some(&self.offer), Option::as_ref)
    }

    /// Bytes that it takes, as far as they are known.
    fn size(&self) -> Size {
        match &self.state {
            State::Loaded(loaded) | State::Leaving { loaded, .. } => loaded.size,
            State::Ending { size } => *size,
            State::Loading(_) => self.wanted(),
            _ => Size::default(),
        }
    }

    /// Bytes that it is going to take: those of the last time, else those of its weights, if its file has been read. It
    /// is not read here.
    fn wanted(&self) -> Size {
        self.known.unwrap_or_else(|| {
            let about = self.offer.about.get().and_then(|about| about.as_ref().ok());
            let n_byte = about.map_or(0, |about| about.n_byte);
            Size { n_byte, n_device: n_byte }
        })
    }

    fn has_place(&self) -> bool {
        matches!(
            self.state,
            State::Loaded(_) | State::Leaving { .. } | State::Ending { .. } | State::Loading(_)
        )
    }

    /// The time at which it goes, if it is loaded and nobody uses it.
    fn end(&self) -> Option<Instant> {
        match (&self.state, self.keep_alive) {
            (State::Loaded(_), KeepAlive::For(time)) if self.n_user + self.n_waiter == 0 => {
                self.used.checked_add(time)
            }
            _ => None,
        }
    }

    /// Makes it leave, if it is loaded.
    fn leave(&mut self, for_room: bool) {
        let state = std::mem::replace(&mut self.state, State::Unloaded);
        self.state = match state {
            State::Loaded(loaded) => State::Leaving { loaded, for_room },
            State::Leaving { loaded, for_room: before } => {
                State::Leaving { loaded, for_room: before && for_room }
            }
            other => other,
        };
    }

    fn is_wanted(&self) -> bool {
        self.n_waiter > 0 || self.is_ordered
    }
}

impl<T> Shelf<T> {
    pub(crate) fn new(room: Room) -> Shelf<T> {
        Shelf { room, devices: BTreeMap::new(), entries: Vec::new(), n_ticket: 0 }
    }

    /// Takes note of devices that models run on, with the bytes that they have for models.
    pub(crate) fn know(&mut self, devices: impl IntoIterator<Item = (String, u64)>) {
        self.devices.extend(devices);
    }

    /// Bytes that loaded models may take, if they are limited.
    pub(crate) fn budget(&self) -> Option<Budget> {
        let of_devices = || (!self.devices.is_empty()).then(|| Budget::Devices(self.devices.values().sum()));
        self.room.n_byte.map(Budget::Fixed).or_else(of_devices)
    }

    /// All models in the order of their offers.
    pub(crate) fn entries(&self) -> &[Entry<T>] {
        &self.entries
    }

    fn entry(&mut self, id: &str) -> Option<&mut Entry<T>> {
        self.entries.iter_mut().find(|entry| entry.offer.id == id)
    }

    /// The models from now on. Those that are no longer offered, or in another way, go when nobody uses them.
    pub(crate) fn offer(&mut self, offers: Vec<Offer>, now: Instant) {
        for entry in self.entries.iter_mut().filter(|entry| !entry.is_added) {
            if !offers.iter().any(|offer| offer.id == entry.offer.id) {
                entry.next = Some(None);
                entry.leave(false);
            }
        }
        for offer in offers {
            match self.entry(&offer.id) {
                None => self.entries.push(Entry::new(Arc::new(offer), now)),
                Some(entry) if entry.is_added => {}
                Some(entry) if entry.offer.stamp == offer.stamp => {
                    entry.next = None;
                    // Its file need not be read again.
                    let about = entry.offer.about.clone();
                    entry.offer = Arc::new(Offer { about, ..offer });
                }
                Some(entry) => {
                    entry.next = Some(Some(Arc::new(offer)));
                    entry.leave(false);
                }
            }
        }
        self.settle();
    }

    /// Puts offers in force that waited for the end of a model.
    fn settle(&mut self) {
        for entry in &mut self.entries {
            if !entry.has_place()
                && let Some(Some(offer)) = entry.next.take_if(|next| next.is_some())
            {
                (entry.keep_alive, entry.offer, entry.known) = (offer.keep_alive, offer, None);
                if matches!(entry.state, State::Failed { .. }) {
                    entry.state = State::Unloaded;
                }
            }
        }
        self.entries.retain(|entry| entry.has_place() || entry.offered().is_some());
    }

    /// A loaded model without another way to get it: it stays.
    pub(crate) fn put(&mut self, offer: Offer, model: T, size: Size, now: Instant) {
        let mut entry = Entry::new(Arc::new(offer), now);
        entry.state = State::Loaded(Loaded { model: Arc::new(model), size });
        entry.is_added = true;
        self.entries.push(entry);
    }

    /// Counts a request that waits for a model until [`Self::part`].
    pub(crate) fn join(&mut self, id: &str) {
        if let Some(entry) = self.entry(id) {
            entry.n_waiter += 1;
        }
    }

    /// The end of the wait.
    pub(crate) fn part(&mut self, id: &str) {
        if let Some(entry) = self.entry(id) {
            entry.n_waiter = entry.n_waiter.saturating_sub(1);
        }
    }

    /// Loads a model although no request waits for it.
    ///
    /// # Errors
    /// As the refusals of [`Self::ask`].
    pub(crate) fn order(&mut self, id: &str, now: Instant) -> Result<(), ApiError> {
        match self.ask(id, now) {
            Asked::Ready(_) => self.release(id, now),
            Asked::Refused(error) => return Err(error),
            Asked::Wait => {
                if let Some(entry) = self.entry(id) {
                    entry.is_ordered = true;
                }
            }
        }
        Ok(())
    }

    /// Asks for a model, for a request that waits ([`Self::join`]). If it is ready, it is used until [`Self::release`].
    pub(crate) fn ask(&mut self, id: &str, now: Instant) -> Asked<T> {
        let ticket = self.n_ticket;
        let Some(entry) = self.entry(id) else {
            return Asked::Refused(ApiError::new(
                Kind::Model,
                format!("the model `{id}` is no longer there"),
            ));
        };
        match &entry.state {
            State::Loaded(loaded) => {
                entry.n_user += 1;
                return Asked::Ready(loaded.model.clone());
            }
            State::Starting => {
                return Asked::Refused(ApiError::new(Kind::Loading, "Loading model").retry(1));
            }
            State::Failed { error, until } if now < *until => return Asked::Refused(error.clone()),
            State::Unloaded | State::Failed { .. } => {
                entry.state = State::Queued { ticket };
                self.n_ticket += 1;
            }
            State::Leaving { .. } | State::Ending { .. } | State::Queued { .. } | State::Loading(_) => {}
        }
        Asked::Wait
    }

    /// The end of a request that used a model.
    pub(crate) fn release(&mut self, id: &str, now: Instant) {
        if let Some(entry) = self.entry(id) {
            entry.n_user = entry.n_user.saturating_sub(1);
            entry.used = now;
        }
    }

    /// How long a model stays from now on.
    pub(crate) fn keep(&mut self, id: &str, keep_alive: KeepAlive) {
        if let Some(entry) = self.entry(id) {
            entry.keep_alive = keep_alive;
        }
    }

    /// Frees a model when nobody uses it.
    ///
    /// # Errors
    /// A model that is not loaded.
    pub(crate) fn unload(&mut self, id: &str) -> Result<(), ApiError> {
        match self.entry(id) {
            Some(entry) if entry.has_place() && !matches!(entry.state, State::Loading(_)) => {
                entry.is_ordered = false;
                entry.leave(false);
                Ok(())
            }
            _ => Err(ApiError::field("model", format!("the model `{id}` is not loaded"))),
        }
    }

    /// Progress of loading.
    pub(crate) fn progress(&mut self, id: &str, part: f32) {
        if let Some(Entry { state: State::Loading(done), .. }) = self.entry(id) {
            *done = part;
        }
    }

    /// A model that its program loads itself.
    pub(crate) fn begin(&mut self, id: &str) -> Option<Arc<Offer>> {
        let entry = self.entry(id).filter(|entry| matches!(entry.state, State::Starting))?;
        Some(entry.offer.clone())
    }

    /// A model is loaded.
    pub(crate) fn loaded(&mut self, id: &str, model: T, size: Size, now: Instant) {
        if let Some(entry) = self.entry(id) {
            (entry.used, entry.is_ordered, entry.known) = (now, false, Some(size));
            entry.state = State::Loaded(Loaded { model: Arc::new(model), size });
            if entry.next.is_some() {
                entry.leave(false);
            }
        }
    }

    /// A model cannot be loaded. Where memory was missing, it is tried again once others have made room.
    pub(crate) fn failed(&mut self, id: &str, error: &LoadError, now: Instant) {
        let can_wait = matches!(error, LoadError::Memory(_)) && self.make_room();
        let Some(entry) = self.entry(id) else { return };
        entry.state = if can_wait {
            // It stays ahead of those that came later.
            State::Queued { ticket: 0 }
        } else {
            entry.is_ordered = false;
            let kind = if matches!(error, LoadError::Memory(_)) { Kind::Memory } else { Kind::Internal };
            let error = ApiError::new(kind, format!("the model `{id}` cannot be loaded: {error}"));
            State::Failed { error: error.retry(FAILED.as_secs()), until: now + FAILED }
        };
        self.settle();
    }

    /// A model is freed.
    pub(crate) fn ended(&mut self, id: &str) {
        let ticket = self.n_ticket;
        if let Some(entry) = self.entry(id) {
            entry.state = if entry.is_wanted() { State::Queued { ticket } } else { State::Unloaded };
            self.n_ticket += 1;
        }
        self.settle();
    }

    /// Makes the model leave that was not used for longest. True if one leaves already, does now, or may soon.
    fn make_room(&mut self) -> bool {
        let leaves = |entry: &Entry<T>| matches!(entry.state, State::Leaving { .. } | State::Ending { .. });
        if self.entries.iter().any(leaves) {
            return true;
        }
        let may_go = |entry: &&mut Entry<T>| {
            matches!(entry.state, State::Loaded(_)) && entry.keep_alive != KeepAlive::Always
        };
        // Requests that waited for a model use it first; one that nobody uses is free at once.
        let order = |entry: &&mut Entry<T>| (entry.n_waiter > 0, entry.n_user > 0, entry.used);
        let Some(oldest) = self.entries.iter_mut().filter(may_go).min_by_key(order) else { return false };
        if oldest.n_waiter == 0 {
            oldest.leave(true);
        }
        true
    }

    /// True if there is a place for one more model.
    fn has_place(&self) -> bool {
        let n_model = self.entries.iter().filter(|entry| entry.has_place()).count();
        self.room.n_model.is_none_or(|most| n_model < most)
    }

    /// True if the models that are loaded and one that wants so many bytes are within the budget.
    fn fits(&self, wanted: Size) -> bool {
        let sizes = self.entries.iter().map(Entry::size).chain([wanted]);
        match self.budget() {
            None => true,
            Some(Budget::Fixed(most)) => sizes.fold(0, |n, size| size.n_byte.saturating_add(n)) <= most,
            Some(Budget::Devices(most)) => sizes.fold(0, |n, size| size.n_device.saturating_add(n)) <= most,
        }
    }

    /// Begins to load a model.
    fn load(&mut self, offer: Arc<Offer>) -> Option<Step<T>> {
        self.entry(&offer.id)?.state = State::Loading(0.0);
        Some(Step::Load(offer))
    }

    /// Gives up what nobody waits for any more, and what nobody has used for long enough.
    fn tidy(&mut self, now: Instant) {
        for entry in &mut self.entries {
            if matches!(entry.state, State::Queued { .. }) && !entry.is_wanted() {
                entry.state = State::Unloaded;
            }
            if entry.end().is_some_and(|end| end <= now) {
                entry.leave(false);
            }
        }
        self.shrink();
        if self.entries.iter().any(|entry| matches!(entry.state, State::Queued { .. })) {
            return;
        }
        for entry in &mut self.entries {
            if let State::Leaving { loaded, for_room: true } = &entry.state {
                entry.state = State::Loaded(loaded.clone());
            }
        }
    }

    /// Makes a model leave that nobody uses, and that was not used for longest, where caches made a model larger than
    /// its weights told and the operator's budget is exceeded. The last that was used stays.
    fn shrink(&mut self) {
        let leaves = |entry: &Entry<T>| matches!(entry.state, State::Leaving { .. } | State::Ending { .. });
        let is_fixed = matches!(self.budget(), Some(Budget::Fixed(_)));
        if !is_fixed || self.fits(Size::default()) || self.entries.iter().any(leaves) {
            return;
        }
        let is_loaded = |entry: &&mut Entry<T>| matches!(entry.state, State::Loaded(_));
        let mut loaded: Vec<&mut Entry<T>> = self.entries.iter_mut().filter(is_loaded).collect();
        loaded.sort_by_key(|entry| (entry.n_user + entry.n_waiter > 0, entry.used));
        loaded.pop();
        let may_go = |entry: &&mut &mut Entry<T>| {
            entry.n_user + entry.n_waiter == 0 && entry.keep_alive != KeepAlive::Always
        };
        if let Some(entry) = loaded.iter_mut().find(may_go) {
            entry.leave(false);
        }
    }

    /// The next thing to do, if there is one now.
    pub(crate) fn next(&mut self, now: Instant) -> Option<Step<T>> {
        self.tidy(now);
        if let Some(step) = self.end_one() {
            return Some(step);
        }
        // One after the other: each needs what memory there is.
        if self.entries.iter().any(|entry| matches!(entry.state, State::Loading(_))) {
            return None;
        }
        let ticket = |entry: &Entry<T>| match entry.state {
            State::Queued { ticket } => Some(ticket),
            _ => None,
        };
        let first = self.entries.iter().filter(|entry| ticket(entry).is_some()).min_by_key(|e| ticket(e))?;
        let (offer, wanted) = (first.offer.clone(), first.wanted());
        if self.has_place() && self.fits(wanted) {
            return self.load(offer);
        }
        if self.make_room() {
            return self.end_one();
        }
        // Where all others stay, the devices decide.
        if self.has_place() && matches!(self.budget(), Some(Budget::Devices(_))) {
            return self.load(offer);
        }
        let error = ApiError::new(Kind::Memory, self.no_room(&offer.id, wanted));
        self.entry(&offer.id)?.state =
            State::Failed { error: error.retry(FAILED.as_secs()), until: now + FAILED };
        Some(Step::Tell)
    }

    /// A model that leaves, and that nobody uses any more.
    fn end_one(&mut self) -> Option<Step<T>> {
        let is_free =
            |entry: &&mut Entry<T>| entry.n_user == 0 && matches!(entry.state, State::Leaving { .. });
        let entry = self.entries.iter_mut().find(is_free)?;
        let size = entry.size();
        match std::mem::replace(&mut entry.state, State::Ending { size }) {
            State::Leaving { loaded, .. } => Some(Step::End(entry.offer.id.clone(), loaded.model)),
            _ => None,
        }
    }

    fn no_room(&self, id: &str, wanted: Size) -> String {
        let n_model = self.entries.iter().filter(|entry| entry.has_place()).count();
        let n_byte: u64 = self.entries.iter().map(|entry| entry.size().n_byte).sum();
        match self.room.n_model.filter(|most| n_model >= *most) {
            Some(most) => format!(
                "the model `{id}` cannot be loaded: there is room for {most} models, and {n_model} stay loaded"
            ),
            None => format!(
                "the model `{id}` cannot be loaded: it takes at least {} bytes, there is room for {}, and those that stay loaded take {n_byte}",
                wanted.n_byte,
                self.room.n_byte.unwrap_or(u64::MAX),
            ),
        }
    }

    /// The time at which the next model goes, if one will.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.entries.iter().filter_map(Entry::end).min()
    }

    /// Takes all loaded models out.
    pub(crate) fn clear(&mut self) -> Vec<Arc<T>> {
        let entries = self.entries.drain(..);
        entries
            .filter_map(|entry| match entry.state {
                State::Loaded(loaded) | State::Leaving { loaded, .. } => Some(loaded.model),
                _ => None,
            })
            .collect()
    }
}
