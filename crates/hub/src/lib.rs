//! Models by name: from the Hugging Face hub, other addresses, and folders of other programs.
//!
//! [`ModelName`] reads a name, [`select`] chooses the files of a repository that it means, and [`Plan`] says what of
//! them is missing: plain data, also for browsers. Natively, [`Hub`] does the rest: it asks the hub, downloads with
//! resumption, verifies every file that has a digest, and keeps it in the cache that huggingface_hub and llama.cpp
//! share.
//!
//! Nothing here prints or reads the environment: a [`HubConfig`] has the settings, events tell the progress.

#![forbid(unsafe_code)]

mod address;
mod bytes;
mod digest;
mod error;
mod listing;
mod name;
mod paths;
mod plan;
mod quote;
mod select;
mod tree;

#[cfg(not(target_arch = "wasm32"))]
mod cache;
#[cfg(not(target_arch = "wasm32"))]
mod client;
#[cfg(not(target_arch = "wasm32"))]
mod config;
#[cfg(not(target_arch = "wasm32"))]
mod download;
#[cfg(not(target_arch = "wasm32"))]
mod event;
#[cfg(not(target_arch = "wasm32"))]
mod foreign;
#[cfg(not(target_arch = "wasm32"))]
mod hub;
#[cfg(not(target_arch = "wasm32"))]
mod job;
#[cfg(not(target_arch = "wasm32"))]
mod lock;

pub use address::Address;
pub use bytes::Bytes;
pub use digest::{Digest, strong_etag};
pub use error::{FailureKind, HubError};
pub use listing::Listing;
pub use name::{HubName, ModelName, OllamaName, Pick, RepoId};
pub use paths::{System, check as check_path};
pub use plan::{Origin, Plan, PlannedFile};
pub use quote::{path as quote_path, segment as quote_segment};
pub use select::{Form, Selection, Split, is_candidate, projector, select};
pub use tree::{TreeFile, next_page, read_commit, read_page};

#[cfg(not(target_arch = "wasm32"))]
pub use self::{
    cache::{CachedFile, CachedModel, CachedRevision, Place, Pruned, Removed, Verdict, Verified},
    config::{HubConfig, Limits, Links, Proxies, Roots, Token},
    event::{Event, Wait},
    foreign::OllamaModel,
    hub::{Found, Hub, RemoteFile},
    job::Watch,
};

/// Runs the examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
