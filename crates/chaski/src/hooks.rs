//! Callbacks that an engine stores. Natively they move to the thread of a service with it.

use chaski_runtime::gpu::{AdapterSummary, Progress};
use chaski_runtime::kernels::Tuning;

#[cfg(not(target_arch = "wasm32"))]
mod kinds {
    use super::*;
    pub(crate) type TuningFor = Box<dyn Fn(&AdapterSummary) -> Tuning + Send + Sync>;
    pub(crate) type IsTrusted = Box<dyn Fn(&AdapterSummary) -> bool + Send + Sync>;
    pub(crate) type OnProgress = Box<dyn FnMut(Progress) + Send + Sync>;
}

#[cfg(target_arch = "wasm32")]
mod kinds {
    use super::*;
    pub(crate) type TuningFor = Box<dyn Fn(&AdapterSummary) -> Tuning>;
    pub(crate) type IsTrusted = Box<dyn Fn(&AdapterSummary) -> bool>;
    pub(crate) type OnProgress = Box<dyn FnMut(Progress)>;
}

pub(crate) use kinds::{IsTrusted, OnProgress, TuningFor};
