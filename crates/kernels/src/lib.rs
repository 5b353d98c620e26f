//! The catalogue of Chaski's GPU operations.
//!
//! An operation lives in one folder under `ops/`: definition and dispatch (`mod.rs`), GPU code (`*.wgsl.jinja`), a
//! reference that follows the formula (`reference.rs`) and test shapes (`cases.rs`). It is one row of [`OPS`]. A weight
//! format is one row of [`FORMATS`] and one template under `quant/` that implements the format contract; operations
//! import the contract by the format's name and never ask which format it is.
//!
//! [`Kernel::find`] renders a template on first use. `cargo xtask gen-kernels` and a test render all of them and
//! validate them with naga; `rendered/` holds samples. The device's compiler sees the rest as WGSL `override`
//! constants: shapes, strides, thread counts. A [`Dispatch`] names a kernel, its constants and its grid; it is a pure
//! function of the shapes, the formats and the device's [`Caps`], so nothing in this crate needs a GPU.

#[macro_use]
mod templates;

mod act;
mod affine;
mod call;
mod caps;
mod case;
mod catalogue;
mod codebook;
mod compare;
mod data;
mod dispatch;
mod encode;
mod format;
pub mod grid;
mod kernel;
mod kv;
mod matrix_state;
mod op;
pub mod ops;
mod probe;
mod reduce;
mod render;
mod rng;
pub mod rope;
mod route;
mod runs;
#[cfg(test)]
mod shorter;
mod state;
pub mod step;
mod tensor;
mod tuning;
mod values;

#[cfg(feature = "check")]
pub mod check;

pub use affine::{Affine, AffineBy};
pub use caps::{Caps, CoopShape, FeatureSet, Features};
pub use case::{Case, CaseBuffer, CaseSteps, PlacedStep};
pub use catalogue::OPS;
pub use compare::{Comparison, Expected};
pub use data::Data;
pub use dispatch::{Dispatch, DispatchError, Step};
pub use format::{DeviceLayout, FORMATS, Format, Matrix, Plane};
pub use kernel::{Access, Binding, Dialect, Kernel, Unit};
pub use kv::{KV_TYPES, KvLayout, RopeKv};
pub use op::{Op, Value, Variant};
pub use probe::probes;
pub use rng::{Rng, random_values};
pub use route::{Experts, Route};
pub use tensor::Tensor;
pub use tuning::vendor;
pub use tuning::{MatVecTune, ProductClass, Tuned, Tuning};

/// Runs the examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
