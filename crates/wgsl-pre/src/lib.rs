//! A preprocessor for WGSL, which has none of its own: two languages that assemble one shader from several
//! texts.
//!
//! * [`Renderer`] renders **Jinja** templates, with filters that write WGSL literals. Use it for generated
//!   shaders: loops, tables, variants from data.
//! * [`Preprocessor`] executes **directives**, `#include`, `#define`, `#if` and so on, as in C and as in
//!   shaders written for *pre-wgsl*. Use it for handwritten shaders that share code.
//!
//! The two are independent. Both report every error with file, line, column and chain of includes;
//! [`Output::locate`] maps the lines in a WGSL compiler's messages back to the files they came from. Neither
//! reads files on its own: templates are added or loaded by a function, and includes are loaded by a
//! [`Loader`], which can be a map of texts. The crate has no unsafe code and runs on the web.
//!
//! # The directives
//!
//! | directive | effect |
//! | --- | --- |
//! | `#include "file"` | inserts the processed file; a file that includes itself is an error, unless it has an include guard |
//! | `#pragma once` | ignores further includes of this file |
//! | `#define NAME text` | defines `NAME` as the text; a later definition replaces an earlier one |
//! | `#define NAME(a, b) text` | the same with parameters; `#a` quotes an argument, `a ## b` joins two tokens |
//! | `#undef NAME` | removes the macro |
//! | `#if`, `#elif` expression | keeps the lines up to the next branch if the value is nonzero |
//! | `#ifdef NAME`, `#ifndef NAME` | the same, if the macro is defined or undefined |
//! | `#else`, `#endif` | the alternative branch, and the end |
//! | `#error text` | fails with the text |
//!
//! A directive is a line whose first non-blank character is `#`; a backslash at its end continues it on the
//! next line. In inactive branches, only conditionals are processed. A conditional ends in the file that it
//! begins in.
//!
//! **Macros** are expanded on all other lines, where they occur as whole identifiers, until none is left; a
//! recursive macro is an error. Comments and `"quoted"` texts are not expanded. A macro with parameters is
//! only expanded in front of `(`, which must be on the same line; its arguments may span lines. Commas
//! separate arguments unless they are in parentheses: `F((vec2<f32>(a, b)))` is one argument, and so is
//! `F(vec2<f32>(a, b))`, but `F(array<f32, 4>)` is two.
//!
//! **Expressions** consist of integers (`7`, `0xff`, with or without `u` or `i`), `defined(NAME)`,
//! `defined NAME`, names, and, in order of increasing precedence, `||`, `&&`, `|`, `^`, `&`, `== !=`,
//! `< > <= >=`, `<< >>`, `+ -`, `* / %`, then `! - + ~`, and parentheses. Values are 64-bit integers and wrap
//! around; division by zero is an error unless `&&` or `||` have decided before it. A name has the value of its macro's
//! text as a separate expression: after `#define SUM 1 + 1`, `SUM * 2` is 4. An empty macro has the value 1, an
//! undefined name 0, except for `true`, which is 1.
//!
//! # Cargo features
//!
//! * `jinja` (default): `Renderer`; without it there are only the directives.
//! * `fs`: `Dirs`, a loader that reads directories.
//! * `cli`: the command `wgsl-pre`.
//! * `wasm`: the functions `preprocess` and `render` for JavaScript.

#![forbid(unsafe_code)]

mod error;
mod expand;
mod expr;
#[cfg(feature = "jinja")]
mod jinja;
mod lex;
#[cfg(feature = "jinja")]
mod literal;
mod load;
mod macros;
mod output;
mod process;
#[cfg(feature = "wasm")]
mod wasm;
mod words;

pub use error::{Error, ErrorKind, Location};
#[cfg(feature = "jinja")]
pub use jinja::Renderer;
#[cfg(feature = "fs")]
pub use load::Dirs;
pub use load::{LoadError, Loader, NoFiles, Source};
pub use macros::Macros;
pub use output::{LineMap, Output};
pub use process::{Options, Preprocessor};
#[cfg(all(feature = "wasm", feature = "jinja"))]
pub use wasm::render;
#[cfg(feature = "wasm")]
pub use wasm::{Processed, preprocess};

/// Runs the examples in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
