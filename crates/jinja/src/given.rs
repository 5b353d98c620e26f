//! Values as functions and filters of the program see them.

use std::fmt;
use std::sync::Arc;

use super::args::Args;
use super::fault::Result;
use super::print;
use super::run::Run;
use super::value::Value;

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
            Given::Float(x) => f.write_str(&print::float(*x)),
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
    positional: Vec<Given>,
    named: Vec<(Arc<str>, Given)>,
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
        super::args::bind(self.positional, self.named, function, params, n_required)
    }
}

impl Run<'_> {
    /// Calls a function of the environment.
    pub(super) fn call_custom(
        &mut self,
        function: Function,
        value: Option<Value>,
        args: Args,
    ) -> Result<Value> {
        let positional =
            value.iter().chain(&args.positional).map(|v| self.given(v)).collect::<Result<_>>()?;
        let named = args.named.iter().map(|(name, v)| Ok((name.clone(), self.given(v)?)));
        let named = named.collect::<Result<_>>()?;
        let result = function(Arguments { positional, named })?;
        self.taken(result)
    }

    fn given(&mut self, value: &Value) -> Result<Given> {
        Ok(match value {
            Value::Undefined(_) => Given::Undefined,
            Value::None => Given::None,
            Value::Bool(b) => Given::Bool(*b),
            Value::Int(n) => Given::Int(*n),
            Value::Float(x) => Given::Float(*x),
            Value::Str(text) => Given::Text(text.to_string()),
            Value::List(_) | Value::Tuple(_) | Value::View(..) | Value::Range(_) => {
                let items = self.iterate(value)?;
                Given::List(items.iter().map(|item| self.given(item)).collect::<Result<_>>()?)
            }
            other => Given::Other(self.str(other)?.as_str().unwrap_or_default().to_owned()),
        })
    }

    fn taken(&self, given: Given) -> Result<Value> {
        Ok(match given {
            Given::Undefined => Value::Undefined(None),
            Given::None => Value::None,
            Given::Bool(b) => Value::Bool(b),
            Given::Int(n) => Value::Int(n),
            Given::Float(x) => Value::Float(x),
            Given::Text(text) | Given::Other(text) => Value::text(&self.meter, text)?,
            Given::List(items) => {
                let items = items.into_iter().map(|item| self.taken(item)).collect::<Result<_>>()?;
                Value::list(&self.meter, items)?
            }
        })
    }
}
