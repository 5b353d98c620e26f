//! Models by name: settings from options and environment, names on command lines, downloads with progress, and the
//! commands for what is here.

mod args;
mod list;
mod models;
mod prune;
mod pull;
mod remote;
mod rm;
mod settings;
mod transfer;
mod verify;

pub(crate) use args::HubArgs;
pub(crate) use models::Models;
pub(crate) use remote::{Described, Remote};
pub(crate) use {list::list, prune::prune, pull::pull, rm::rm, verify::verify};

pub(crate) use list::Args as ListArgs;
pub(crate) use prune::Args as PruneArgs;
pub(crate) use pull::{Args as PullArgs, LONG as PULL_LONG};
pub(crate) use rm::Args as RmArgs;
pub(crate) use verify::Args as VerifyArgs;
