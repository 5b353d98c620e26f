//! Experts of an engine that workers compute.

use std::sync::Arc;

use chaski::experts::{ExpertCall, ExpertFuture, Experts, Home};
use tokio::runtime::Runtime;

use super::awake::Awake;
use super::driver::Core;
use super::status;
use crate::ui::Ui;

/// The workers of a hub, which runs until this is dropped.
pub(crate) struct Remote {
    core: Arc<Core>,
    awake: Arc<Awake>,
    runtime: Option<Runtime>,
    ui: Ui,
}

impl Remote {
    /// Experts of a hub whose tasks are on `runtime`, kept awake by `awake`.
    pub(super) fn new(core: Arc<Core>, awake: Arc<Awake>, runtime: Runtime, ui: Ui) -> Remote {
        Remote { core, awake, runtime: Some(runtime), ui }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.ui.detail(&format!("swarm: {}", status::of(&self.core).counters));
        self.core.account().iter().for_each(|line| self.ui.detail(&format!("swarm, {line}")));
        // An engine may be dropped on a thread that must not block.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Experts for Remote {
    fn homes(&mut self, layer: u16, wanted: &[u16]) -> Vec<Home> {
        self.core.homes(layer, wanted)
    }

    fn call(&mut self, call: ExpertCall) -> ExpertFuture {
        self.awake.touch();
        Box::pin(self.awake.clone().wait(self.core.call(call).rows()))
    }
}
