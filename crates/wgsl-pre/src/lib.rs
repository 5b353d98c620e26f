//! A preprocessor for WGSL, which has none of its own: two languages that make one shader text out of several.
//!
//! * [`Renderer`] renders **Jinja** templates, with filters that write WGSL literals. This is for shaders that are
//!   generated: loops, tables, variants from data.
//! * [`Preprocessor`] carries out **directives**, `#include`, `#define`, `#if` and their kin, as C has them and as the
//!   shaders written for *pre-wgsl* use them. This is for shaders that are written and share pieces.
//!
//! Either is used without the other. Both say of every error where it is, by file, line and column, and through which
//! includes it was reached; [`Output::locate`] takes the lines that a WGSL compiler complains about back to the files
//! they came from. Neither reads files on its own: templates are added or asked of a function, includes are asked of a
//! [`Loader`], and a map of texts is one. The crate has no unsafe code and runs on the web.
//!
//! # The directives
//!
//! | directive | does |
//! | --- | --- |
//! | `#include "file"` | puts the processed file here; a file that includes itself is an error, unless it is guarded |
//! | `#pragma once` | lets further includes of this file do nothing |
//! | `#define NAME text` | lets `NAME` stand for the text; a later definition replaces an earlier one |
//! | `#define NAME(a, b) text` | the same with parameters; `#a` quotes an argument, `a ## b` joins two tokens |
//! | `#undef NAME` | forgets the macro |
//! | `#if`, `#elif` expression | keeps the lines up to the next branch if the value is not zero |
//! | `#ifdef NAME`, `#ifndef NAME` | the same, if the macro is, or is not, defined |
//! | `#else`, `#endif` | the other branch, and the end |
//! | `#error text` | fails with the text |
//!
//! A directive is a line whose first character other than a blank is `#`; a backslash at its end joins the next line.
//! In branches that are left out, directives other than conditionals do nothing. Conditionals end in the file that
//! they begin in.
//!
//! **Macros** are replaced on all other lines where they stand as whole identifiers, again and again until none is
//! left; one that comes up in its own text is an error. Comments and `"quoted"` texts stay as they are. A macro with
//! parameters is only replaced in front of `(`, which must be on the same line; its arguments may go on over lines.
//! Commas separate arguments unless they are in parentheses: `F((vec2<f32>(a, b)))` is one argument, and so is
//! `F(vec2<f32>(a, b))`, but `F(array<f32, 4>)` is two.
//!
//! **Expressions** are made of integers (`7`, `0xff`, with or without `u` or `i`), `defined(NAME)`, `defined NAME`,
//! names, and, from loose to tight, `||`, `&&`, `|`, `^`, `&`, `== !=`, `< > <= >=`, `<< >>`, `+ -`, `* / %`, then
//! `! - + ~`, and parentheses. Values have 64 bits and wrap around; division by zero gives zero. A name has the value of
//! its macro's text as an expression of its own: after `#define SUM 1 + 1`, `SUM * 2` is 4. An empty macro has the
//! value 1, an undefined name 0, except for `true`, which is 1.
//!
//! # Cargo features
//!
//! * `fs`: `Dirs`, a loader that reads directories.
//! * `cli`: the command `wgsl-pre`.
//! * `wasm`: the functions `preprocess` and `render` for JavaScript.

#![forbid(unsafe_code)]

mod error;
mod expand;
mod expr;
mod jinja;
mod lex;
mod literal;
mod load;
mod macros;
mod output;
mod process;
#[cfg(feature = "wasm")]
mod wasm;
mod words;

pub use error::{Error, ErrorKind, Location};
pub use jinja::Renderer;
#[cfg(feature = "fs")]
pub use load::Dirs;
pub use load::{LoadError, Loader, NoFiles, Source};
pub use macros::Macros;
pub use output::{LineMap, Output};
pub use process::{Options, Preprocessor};
#[cfg(feature = "wasm")]
pub use wasm::{Processed, preprocess, render};

/// Runs the examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
