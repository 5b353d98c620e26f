//! Values as functions and filters of the program see them.

use std::fmt;
use std::sync::Arc;

use super::args::bind;
use super::decimal::float;
use super::fault::Result;

/// A function or filter of the program.
pub type Function = fn(Arguments) -> Result<Given>;

/// A value that a function receives or returns.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// A name without a value.
    Undefined,
    /// `none`.
    None,
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i128),
    /// A number with a fraction.
    Float(f64),
    /// A text.
    Text(String),
    /// The items of a list, a tuple or a range.
    List(Vec<Given>),
    /// Any other value, as text.
    Other(String),
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Given::Undefined => Ok(()),
            Given::None => f.write_str("none"),
            Given::Bool(b) => b.fmt(f),
            Given::Int(n) => n.fmt(f),
            Given::Float(x) => f.write_str(&float(*x)),
            Given::Text(text) | Given::Other(text) => f.write_str(text),
            Given::List(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    f.write_str(if i > 0 { ", " } else { "" })?;
                    match item {
                        Given::Text(text) => write!(f, "{text:?}")?,
                        _ => item.fmt(f)?,
                    }
                }
                f.write_str("]")
            }
        }
    }
}

/// The arguments of a call. A filter's first one is the value in front of it.
#[derive(Debug)]
pub struct Arguments {
    pub(super) positional: Vec<Given>,
    pub(super) named: Vec<(Arc<str>, Given)>,
}

impl Arguments {
    /// The values of `params`, of which the first `n_required` must be given.
    ///
    /// # Errors
    ///
    /// If one of these is missing, or there are others.
    pub fn bind<const N: usize>(
        self,
        function: &str,
        params: [&str; N],
        n_required: usize,
    ) -> Result<[Option<Given>; N]> {
        bind(self.positional, self.named, function, params, n_required)
    }
}
