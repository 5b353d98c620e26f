//! Models that clients of a server fetched, and names that they gave.
//!
//! They are in the list until a client deletes them: a file keeps them for the next server.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chaski_hub::ModelName;

use super::kept::{Fetched, Kept, State};

/// Models and names that clients added to the list.
#[derive(Default)]
pub(super) struct Added {
    state: Mutex<State>,
    /// The file that keeps them, if there is one.
    kept: Option<Kept>,
}

impl Added {
    /// Those that a file has.
    pub(super) fn kept(kept: Kept) -> Added {
        Added { state: Mutex::default(), kept: Some(kept) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the file again, which other servers may have changed.
    pub(super) fn renew(&self) {
        let mut state = self.state();
        if let Some(now) = self.kept.as_ref().and_then(Kept::changed) {
            *state = now;
        }
    }

    /// Changes the models and names, also those in the file.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state();
        match &self.kept {
            None => change(&mut state),
            Some(kept) => kept.change(&mut state, change),
        }
    }

    /// Names for the model with this id and file: those of copies, and of a fetched model that is the same file.
    pub(super) fn names_for(&self, id: &str, path: Option<&Path>) -> Vec<String> {
        let state = self.state();
        let copies = state.copies.iter().filter(|(_, of)| of == id).map(|(name, _)| name.clone());
        let same = state.fetched.iter().filter(|fetched| Some(&*fetched.path) == path);
        copies.chain(same.flat_map(|fetched| fetched.names.clone())).collect()
    }

    /// The models that were fetched: files, ids, and further names.
    pub(super) fn fetched(&self) -> Vec<(PathBuf, Vec<String>)> {
        self.state().fetched.iter().map(|fetched| (fetched.path.clone(), fetched.names.clone())).collect()
    }

    /// True if clients gave this name, also without the tag that ollama adds.
    pub(super) fn is_given(&self, name: &str) -> bool {
        self.state().given(name).is_some()
    }

    /// Adds a fetched model, or a name of it. A name that meant another version of it means this one from now on.
    /// `files`: those to delete with it, if they are in the cache.
    pub(super) fn fetch(&self, name: &str, path: &Path, files: Option<ModelName>) {
        self.change(|state| {
            state.forget(name);
            match state.fetched.iter_mut().find(|fetched| fetched.path == path) {
                Some(fetched) => fetched.names.push(name.to_owned()),
                None => {
                    let (names, path) = (vec![name.to_owned()], path.to_owned());
                    state.fetched.push(Fetched { names, path, files });
                }
            }
        });
    }

    /// Gives the model with this id a name, which means no other from now on.
    pub(super) fn copy(&self, id: &str, name: &str) {
        self.change(|state| {
            // Its first name may be that of another model of this server.
            let is_it = |fetched: &Fetched| fetched.names.iter().any(|known| known == id);
            let own = state.fetched.iter().find(|fetched| is_it(fetched));
            if own.is_some_and(|own| own.names.iter().any(|known| known == name)) {
                return;
            }
            state.forget(name);
            match state.fetched.iter_mut().find(|fetched| is_it(fetched)) {
                Some(fetched) => fetched.names.push(name.to_owned()),
                None => state.copies.push((name.to_owned(), id.to_owned())),
            }
        });
    }

    /// Takes a name away. If it was the last one of a fetched model, returns its files, if they are in the cache.
    pub(super) fn forget(&self, name: &str) -> Option<Option<ModelName>> {
        self.change(|state| {
            let given = state.given(name)?.to_owned();
            state.forget(&given).map(|fetched| fetched.files)
        })
    }
}

impl State {
    /// Takes a name away; returns the model whose last one it was.
    fn forget(&mut self, name: &str) -> Option<Fetched> {
        self.copies.retain(|(copy, _)| copy != name);
        let at = self.fetched.iter().position(|fetched| fetched.names.iter().any(|known| known == name))?;
        self.fetched[at].names.retain(|known| known != name);
        self.fetched[at].names.is_empty().then(|| self.fetched.remove(at))
    }

    /// The name that clients gave, also without the tag that ollama adds.
    fn given<'n>(&self, name: &'n str) -> Option<&'n str> {
        let is_given = |name: &&str| {
            let of_fetched = self.fetched.iter().flat_map(|fetched| &fetched.names);
            of_fetched.chain(self.copies.iter().map(|(copy, _)| copy)).any(|known| known == name)
        };
        [Some(name), name.strip_suffix(":latest")].into_iter().flatten().find(is_given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_goes_with_its_last_name() {
        let added = Added::default();
        let files = ModelName::parse("hf:a/b/c.gguf").unwrap();
        added.fetch("one", Path::new("c.gguf"), Some(files.clone()));
        added.fetch("two", Path::new("c.gguf"), None);
        added.copy("one", "three");
        added.copy("one", "three");
        added.copy("own", "four");
        assert_eq!(
            added.fetched(),
            [(PathBuf::from("c.gguf"), ["one", "two", "three"].map(String::from).into())]
        );
        assert_eq!(added.names_for("own", None), ["four"]);
        assert!(added.is_given("four:latest") && !added.is_given("own"));
        // A name that is given anew leaves the model that had it.
        added.copy("own", "two");
        assert_eq!(added.names_for("own", Some(Path::new("c.gguf"))), ["four", "two", "one", "three"]);
        assert!(added.forget("one").is_none() && added.forget("one").is_none());
        assert_eq!(added.forget("three:latest"), Some(Some(files)));
        assert!(added.fetched().is_empty() && added.forget("four").is_none());
        assert_eq!(added.names_for("own", None), ["two"]);
    }

    #[test]
    fn servers_with_one_file_keep_each_others_models() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deeper/models.json");
        let added = || Added::kept(Kept::new(path.clone(), |note| panic!("{note}")));
        let (one, two) = (added(), added());
        let files = ModelName::parse("hf:a/b@v1/c.gguf").unwrap();
        one.fetch("one", Path::new("c.gguf"), Some(files.clone()));
        two.copy("own", "two");
        one.copy("one", "three");
        for (added, expected) in
            [(&one, ["one", "three"]), (&two, ["one", "three"]), (&added(), ["one", "three"])]
        {
            added.renew();
            assert_eq!(added.fetched(), [(PathBuf::from("c.gguf"), expected.map(String::from).into())]);
            assert_eq!(added.names_for("own", None), ["two"]);
        }
        assert!(two.forget("one").is_none());
        assert_eq!(added_anew(&added()).forget("three"), Some(Some(files)));
        one.renew();
        assert!(one.fetched().is_empty() && one.is_given("two"));
        let names: Vec<_> = std::fs::read_dir(folder.path().join("deeper"))
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        assert_eq!(names.len(), 2, "the file and its lock: {names:?}");
    }

    fn added_anew(added: &Added) -> &Added {
        added.renew();
        added
    }

    #[test]
    fn a_file_that_cannot_be_read_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("models.json");
        for text in ["{\"version\": 1, \"fetched\": [", "{\"version\": 2, \"fetched\": [], \"names\": {}}"] {
            std::fs::write(&path, text).unwrap();
            let notes = std::sync::Arc::<Mutex<Vec<String>>>::default();
            let told = notes.clone();
            let added =
                Added::kept(Kept::new(path.clone(), move |note| told.lock().unwrap().push(note.to_owned())));
            added.renew();
            added.renew();
            added.copy("own", "two");
            assert_eq!(
                (added.names_for("own", None), std::fs::read_to_string(&path).unwrap()),
                (vec!["two".to_owned()], text.to_owned())
            );
            let notes = notes.lock().unwrap();
            assert!(notes.len() == 2 && notes.iter().all(|note| note.contains("models.json")), "{notes:?}");
        }
    }

    #[test]
    fn a_name_means_the_newest_version() {
        let added = Added::default();
        added.fetch("one", Path::new("old.gguf"), None);
        added.fetch("one", Path::new("new.gguf"), None);
        assert_eq!(added.fetched(), [(PathBuf::from("new.gguf"), vec!["one".to_owned()])]);
    }
}
