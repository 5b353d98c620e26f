//! The tables of the page: functions from measurements to Markdown.

mod beside;
mod device;
mod pages;
mod runs;
mod speed;
mod start;
mod variants;

pub(super) use beside::{batches, browser, cpu, depths};
pub(super) use device::{formats, peaks, products};
pub(super) use pages::within;
pub(super) use runs::runs;
pub(super) use speed::{families, host, kernels, roofline, speed, split};
pub(super) use start::{loading, start};
pub(super) use variants::{ablation, features};
