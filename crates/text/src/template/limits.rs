//! Resource limits of templates: a template is a program that comes with a model, and need not terminate.
//!
//! The engine counts steps, and this module counts bytes of text: where values are printed, in the filters
//! and methods whose result can be many times as large as their input, and behind the operators `~`, `+` and
//! `*` (`counted`). Filters on text that print a list first are not counted, nor are those whose result is no
//! longer than their input.

use std::fmt::{self, Write as _};

use minijinja::value::{Kwargs, Rest, StringInput, Value};
use minijinja::{Environment, Error, ErrorKind, Output, State};
use minijinja_contrib::pycompat;

/// Maximum number of engine instructions per rendering: enough for a hundred thousand messages, and takes
/// only seconds.
pub(super) const MAX_STEPS: u64 = 20_000_000;

/// Maximum bytes of text produced in one rendering, including intermediate text: more than fits any context.
pub(super) const MAX_BYTES: usize = 1 << 26;

/// Sets the limits, and replaces uncounted filters by counted ones.
pub(super) fn set(env: &mut Environment<'_>) {
    env.set_fuel(Some(MAX_STEPS));
    env.set_formatter(print);
    env.set_unknown_method_callback(method);
    env.add_filter(COUNTED, counted);
    env.add_filter("string", string);
    env.add_filter("join", join);
    env.add_filter("replace", replace);
    env.add_filter("indent", indent);
}

/// Bytes produced so far.
struct Made(usize);

/// Bytes that may still be produced.
pub(super) fn n_byte_left(state: &mut State<'_, '_>) -> usize {
    MAX_BYTES - state.get_or_insert_extension(Made(0)).0
}

/// Counts produced bytes.
///
/// # Errors
/// [`ErrorKind::WriteFailure`] if the limit is exceeded.
pub(super) fn count(state: &mut State<'_, '_>, n_byte: usize) -> Result<(), Error> {
    if n_byte > n_byte_left(state) {
        return Err(too_large());
    }
    state.get_or_insert_extension(Made(0)).0 += n_byte;
    Ok(())
}

/// The error for too much text.
pub(super) fn too_large() -> Error {
    ErrorKind::WriteFailure.into()
}

/// Text up to a number of bytes; the text of a list may be far larger than the list.
struct Bounded {
    text: String,
    max: usize,
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        if piece.len() > self.max - self.text.len() {
            return Err(fmt::Error);
        }
        self.text.push_str(piece);
        Ok(())
    }
}

/// The filter that counts the output of operators.
pub(super) const COUNTED: &str = "__counted";

/// Maximum number of items in a list: each takes some 64 bytes with its container.
const MAX_ITEMS: usize = MAX_BYTES / 64;

/// Counts the text produced by an operator, and checks the length of lists.
fn counted(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    if let Some(text) = value.as_str() {
        count(state, text.len())?;
    } else if value.len().is_some_and(|n| n > MAX_ITEMS) {
        return Err(too_large());
    }
    Ok(value)
}

/// A value as text, counted.
fn text(state: &mut State<'_, '_>, value: &Value) -> Result<String, Error> {
    let mut out = Bounded { text: String::new(), max: n_byte_left(state) };
    write!(out, "{value}").map_err(|_| too_large())?;
    count(state, out.text.len())?;
    Ok(out.text)
}

fn string(state: &mut State<'_, '_>, value: &Value) -> Result<Value, Error> {
    if value.as_str().is_some() { Ok(value.clone()) } else { text(state, value).map(Value::from) }
}

/// Prints a value into the result, or into the capture of a block or macro.
fn print(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    match value.as_str() {
        Some(text) => {
            count(state, text.len())?;
            out.write_str(text)?;
        }
        None => out.write_str(&text(state, value)?)?,
    }
    Ok(())
}

/// Counts the result of joining the items of a list with `joiner`.
fn count_joined(state: &mut State<'_, '_>, items: &Value, joiner: &str) -> Result<(), Error> {
    for item in items.try_iter()? {
        match item.as_str() {
            Some(text) => count(state, text.len())?,
            None => drop(text(state, &item)?),
        }
        count(state, joiner.len())?;
    }
    Ok(())
}

fn join(
    state: &mut State<'_, '_>,
    items: &Value,
    joiner: Option<StringInput<'_>>,
    attribute: Option<&str>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    let named = if kwargs.has("d") { kwargs.get::<Option<StringInput<'_>>>("d")? } else { None };
    // The engine reports the error if a value is not a list.
    if items.try_iter().is_ok() {
        let joiner = joiner.as_ref().or(named.as_ref());
        count_joined(state, items, joiner.map(StringInput::as_str).unwrap_or_default())?;
    }
    minijinja::filters::join(state, items, joiner, attribute, kwargs)
}

/// Counts the result of a replacement.
fn count_replaced(state: &mut State<'_, '_>, text: &str, from: &str, to: &str) -> Result<(), Error> {
    let n_byte = text.matches(from).count().saturating_mul(to.len());
    count(state, text.len().saturating_add(n_byte))
}

fn replace(
    state: &mut State<'_, '_>,
    text: StringInput<'_>,
    from: StringInput<'_>,
    to: StringInput<'_>,
) -> Result<Value, Error> {
    count_replaced(state, text.as_str(), from.as_str(), to.as_str())?;
    minijinja::filters::replace(state, text, from, to)
}

fn indent(
    state: &mut State<'_, '_>,
    text: StringInput<'_>,
    positional: Rest<Value>,
    kwargs: Kwargs,
) -> Result<Value, Error> {
    if positional.len() > 3 {
        return Err(ErrorKind::TooManyArguments.into());
    }
    let argument = |index: usize| positional.get(index).filter(|value| !value.is_none());
    let width = argument(0).map(|width| usize::try_from(width.clone())).transpose()?;
    let (first, blank) = (argument(1).map(Value::is_true), argument(2).map(Value::is_true));
    let named = if kwargs.has("width") { kwargs.get::<Option<usize>>("width")? } else { None };
    let width_or_default = width.or(named).unwrap_or(4);
    let n_line = text.as_str().split('\n').count();
    count(state, text.as_str().len().saturating_add(n_line.saturating_mul(width_or_default)))?;
    minijinja::filters::indent(text, width, first, blank, kwargs)
}

/// Python's methods.
fn method(state: &mut State<'_, '_>, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    match (value.as_str(), name, args) {
        (Some(joiner), "join", [items]) => count_joined(state, items, joiner)?,
        (Some(text), "replace", [from, to, ..]) => {
            if let (Some(from), Some(to)) = (from.as_str(), to.as_str()) {
                count_replaced(state, text, from, to)?;
            }
        }
        _ => {}
    }
    pycompat::unknown_method_callback(state, value, name, args)
}
