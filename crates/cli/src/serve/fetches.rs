//! Downloads beside a running server: models of presets that came with a new list.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::hub::Models;
use crate::ui::{Ui, one_line};

/// Models that are fetched, and those that could not be, by name.
#[derive(Default)]
pub(super) struct Fetches(Mutex<BTreeMap<PathBuf, State>>);

#[derive(Copy, Clone, PartialEq, Eq)]
enum State {
    Running,
    Failed,
}

impl Fetches {
    fn states(&self) -> MutexGuard<'_, BTreeMap<PathBuf, State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fetches a model on a thread of its own, unless that runs or has failed.
    pub(super) fn begin(self: &Arc<Self>, word: &Path, preset: &str, models: &Models, ui: &Ui) {
        match self.states().entry(word.to_owned()) {
            Entry::Occupied(_) => return,
            Entry::Vacant(state) => drop(state.insert(State::Running)),
        }
        let (fetches, models, notes) = (self.clone(), models.clone(), ui.clone());
        let (word, preset) = (word.to_owned(), one_line(preset));
        let shown = one_line(&word.display().to_string());
        ui.note(&format!("`{preset}`: `{shown}` is fetched; the model joins the list once it is here"));
        let of_thread = word.clone();
        let work = move || match models.fetch_silently(&of_thread) {
            Ok(()) => {
                fetches.states().remove(&of_thread);
                notes.note(&format!("`{preset}`: `{shown}` is here"));
            }
            Err(error) => {
                fetches.states().insert(of_thread, State::Failed);
                notes.note(&format!("`{preset}` is not in the list: {error:#}"));
            }
        };
        if let Err(error) = std::thread::Builder::new().name("fetch".into()).spawn(work) {
            self.states().insert(word, State::Failed);
            ui.note(&format!("no model is fetched: {error}"));
        }
    }

    /// Lets models that could not be fetched be tried again.
    #[cfg(unix)]
    pub(super) fn forget_failures(&self) {
        self.states().retain(|_, state| *state == State::Running);
    }
}
