//! Arguments of functions, filters, tests and methods.

use std::sync::Arc;

use super::fault::{Fault, Result, fail};
use super::meter::Meter;
use super::value::{Text, Value};

/// Maximum number of keyword arguments; they are found by searching.
const MAX_NAMED: usize = 1000;

/// Maximum length of their names in bytes.
const MAX_NAME: usize = 1000;

#[derive(Debug, Default)]
pub(super) struct Args {
    pub(super) positional: Vec<Value>,
    pub(super) named: Vec<(Arc<str>, Value)>,
}

impl Args {
    pub(super) fn of(positional: Vec<Value>) -> Args {
        Args { positional, named: Vec::new() }
    }

    /// Counts the reading of the texts, which filters, methods and functions may read from end to end.
    pub(super) fn read(&self, meter: &Meter) -> Result<()> {
        meter.step(self.positional.len() as u64 / 16)?;
        let named = self.named.iter().map(|(_, value)| value);
        self.positional.iter().chain(named).try_for_each(|value| value.read(meter))
    }

    pub(super) fn name(&mut self, meter: &Meter, name: &str, value: Value) -> Result<()> {
        if name.len() > MAX_NAME {
            return Err(Fault::limit("bytes of a keyword", MAX_NAME as u64));
        }
        meter.read(name.len() * self.named.len())?;
        if self.named.iter().any(|(found, _)| **found == *name) {
            return fail(format!("keyword argument repeated: {name}"));
        }
        if self.named.len() >= MAX_NAMED {
            return Err(Fault::limit("keyword arguments", MAX_NAMED as u64));
        }
        self.named.push((name.into(), value));
        Ok(())
    }

    /// The values of `params`, of which the first `n_required` must be given.
    pub(super) fn bind<const N: usize>(
        self,
        function: &str,
        params: [&str; N],
        n_required: usize,
    ) -> Result<[Option<Value>; N]> {
        bind(self.positional, self.named, function, params, n_required)
    }
}

/// An argument that is an integer.
pub(super) fn as_int(value: Option<&Value>, default: i128) -> Result<i128> {
    match value {
        None => Ok(default),
        Some(value) => match value.as_int() {
            Some(n) => Ok(n),
            None => fail(format!("expected an integer, found '{}'", value.type_name())),
        },
    }
}

/// An argument that is a text.
pub(super) fn as_text<'v>(value: Option<&'v Value>, default: &'v str) -> Result<&'v str> {
    match value {
        None => Ok(default),
        Some(Value::Str(text)) => Ok(text),
        Some(value) => fail(format!("expected a text, found '{}'", value.type_name())),
    }
}

/// The same as a text with its marks, for an argument that must be there.
pub(super) fn text(value: Option<Value>) -> Result<Arc<Text>> {
    match value {
        Some(Value::Str(text)) => Ok(text),
        value => fail(format!("expected a text, found '{}'", value.unwrap_or(Value::None).type_name())),
    }
}

/// An argument that is true or false.
pub(super) fn as_bool(value: Option<&Value>, default: bool) -> bool {
    value.map_or(default, Value::is_true)
}

/// `None` for Python's `None` and for missing arguments.
pub(super) fn given(value: Option<Value>) -> Option<Value> {
    value.filter(|value| !matches!(value, Value::None))
}

/// The number of an argument of a filter.
pub(super) fn count(value: Option<&Value>, default: i128) -> Result<usize> {
    Ok(as_int(value, default)?.clamp(0, 1 << 40) as usize)
}

/// [`Args::bind`] for values of any kind.
pub(super) fn bind<T, const N: usize>(
    positional: Vec<T>,
    named: Vec<(Arc<str>, T)>,
    function: &str,
    params: [&str; N],
    n_required: usize,
) -> Result<[Option<T>; N]> {
    if positional.len() > N {
        return fail(format!("{function}() takes at most {N} arguments ({} given)", positional.len()));
    }
    let mut values = [const { None }; N];
    for (place, value) in values.iter_mut().zip(positional) {
        *place = Some(value);
    }
    for (name, value) in named {
        let Some(at) = params.iter().position(|param| **param == *name) else {
            return fail(format!("{function}() got an unexpected keyword argument '{name}'"));
        };
        if values[at].is_some() {
            return fail(format!("{function}() got multiple values for argument '{name}'"));
        }
        values[at] = Some(value);
    }
    if let Some(at) = values[..n_required].iter().position(Option::is_none) {
        return fail(format!("{function}() missing required argument: '{}'", params[at]));
    }
    Ok(values)
}
