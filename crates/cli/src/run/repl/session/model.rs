//! Another model for a chat.

use std::path::PathBuf;

use chaski::Source;

use super::Session;
use crate::load::{self, Loaded};
use crate::model_names::Role;
use crate::ui::{one_line, tell};
use crate::{failure, options};

impl Session<'_> {
    /// The same chat with another model. If that cannot be loaded, this says why, and the model stays.
    ///
    /// # Errors
    /// If memory was too small for both models at once, and the old one could not be loaded again.
    pub(in crate::run::repl) fn with_model(mut self, path: PathBuf) -> anyhow::Result<Self> {
        if let Some(options) = self.models.options_of_main(&path) {
            self.ui.note(&format!(
                "{options} of the command line: not for another model; `hf:ORG/REPO@REVISION/FILE` names its own"
            ));
        }
        let path = match self.models.path_of(&path, Role::Other) {
            Ok(path) => path,
            Err(e) => {
                self.keep_model(&e);
                return Ok(self);
            }
        };
        // A file that is no model is an error before anything else happens.
        let opened = pollster::block_on(Source::path(&path).open()).map_err(anyhow::Error::from);
        let loaded = opened.and_then(|_| load::load(Source::path(&path), &self.engine_args, self.ui));
        match loaded {
            Ok(loaded) => self.take_model(loaded, path),
            Err(e) if is_out_of_memory(&e) => return self.in_place(path),
            Err(e) => self.keep_model(&e),
        }
        Ok(self)
    }

    /// Goes on with a loaded model, unless its chat template is unusable.
    fn take_model(&mut self, loaded: Loaded, path: PathBuf) {
        let old = std::mem::replace(&mut self.engine, loaded.engine);
        if let Err(e) = self.begin() {
            self.engine = old;
            return self.keep_model(&e.into());
        }
        (self.file, self.times, self.n_token) = (Some(path), loaded.times, 0);
        self.conversation.see_all();
        if std::mem::take(&mut self.has_draft) {
            self.ui.note("the draft model belonged to the other model and is no longer used");
        }
        self.greet();
    }

    fn keep_model(&self, e: &anyhow::Error) {
        let _ = failure::report(e, self.ui);
        tell(&format!("The chat goes on with `{}`.", one_line(&self.engine.info().file)));
    }

    /// Unloads the model before it loads the other one; if that fails, loads the old one again.
    fn in_place(self, path: PathBuf) -> anyhow::Result<Self> {
        self.ui.note("memory does not hold both models, so the current one is unloaded first");
        drop(self.engine);
        let loaded = load::load(Source::path(&path), &self.engine_args, self.ui);
        let (loaded, file) = match loaded {
            Ok(loaded) => (loaded, Some(path)),
            Err(e) => {
                let _ = failure::report(&e, self.ui);
                let old = options::source(self.file.as_deref());
                (load::load(old, &self.engine_args, self.ui)?, self.file)
            }
        };
        let Loaded { engine, times } = loaded;
        let mut session = Session { engine, times, file, has_draft: false, n_token: 0, ..self };
        session.conversation.see_all();
        session.begin()?;
        session.greet();
        Ok(session)
    }
}

fn is_out_of_memory(e: &anyhow::Error) -> bool {
    e.chain().filter_map(|c| c.downcast_ref::<chaski::Error>()).any(chaski::Error::is_out_of_memory)
}
