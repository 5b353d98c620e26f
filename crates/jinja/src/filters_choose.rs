//! The filters `map`, `select`, `reject`, `selectattr` and `rejectattr`, which give generators.

use std::sync::Arc;

use super::args::Args;
use super::fault::{Result, fail};
use super::run::Run;
use super::value::{ListBuilder, Seq, Value};

impl Run<'_> {
    /// The value at a path such as `function.name`, whose numbers are indices.
    pub(super) fn path(&self, value: &Value, path: &Value) -> Result<Value> {
        let Value::Str(text) = path else { return self.item(value, path) };
        let mut value = value.clone();
        for part in text.split('.') {
            self.meter.step(1)?;
            let key = match part.parse::<u32>() {
                Ok(n) => Value::Int(n.into()),
                Err(_) => Value::text(&self.meter, part)?,
            };
            // As `environment.getitem`, which fails for undefined values.
            value = self.item(&value, &key)?;
        }
        Ok(value)
    }
}

/// `map(filter, args...)`, or `map(attribute=path, default=value)`.
pub(super) fn map(run: &mut Run<'_>, value: Value, mut args: Args) -> Result<Value> {
    let items = items_if_true(run, &value)?;
    let meter = run.meter.clone();
    let mut mapped = ListBuilder::new(&meter)?;
    let is_path = args.positional.is_empty() && args.named.iter().any(|(name, _)| **name == *"attribute");
    if is_path {
        let [path, default] = args.bind("map", ["attribute", "default"], 0)?;
        let path = path.unwrap_or(Value::None);
        // One for all, whose memory is that of one.
        let mut missing = None;
        for item in items.iter() {
            let found = run.path(item, &path)?;
            mapped.push(match (&default, found.is_undefined()) {
                (Some(default), true) => default.clone(),
                (None, true) => missing.get_or_insert(found).clone(),
                _ => found,
            })?;
        }
    } else {
        if args.positional.is_empty() {
            return fail("map requires a filter argument");
        }
        let name = args.positional.remove(0);
        let Value::Str(name) = name else { return fail("the filter of map must be a name") };
        for item in items.iter() {
            let value = run.nested(|run| run.apply(&name, item.clone(), copy(&args)))?;
            mapped.push(value)?;
        }
    }
    let mapped = mapped.seq()?;
    run.generator(mapped)
}

/// The items of a value; none if it is false, whatever its type.
fn items_if_true(run: &mut Run<'_>, value: &Value) -> Result<Arc<Seq>> {
    if value.is_true() { run.iterate(value) } else { run.items()?.seq() }
}

fn copy(args: &Args) -> Args {
    Args { positional: args.positional.clone(), named: args.named.clone() }
}

pub(super) fn select(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    choose(run, &value, args, false, true)
}

pub(super) fn reject(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    choose(run, &value, args, false, false)
}

pub(super) fn selectattr(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    choose(run, &value, args, true, true)
}

pub(super) fn rejectattr(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    choose(run, &value, args, true, false)
}

/// The items that pass a test, or whose attribute does; without a test, those that are true.
fn choose(run: &mut Run<'_>, value: &Value, mut args: Args, by_attr: bool, keep: bool) -> Result<Value> {
    let items = items_if_true(run, value)?;
    let path = match by_attr {
        true if args.positional.is_empty() => return fail("missing parameter for attribute name"),
        true => Some(args.positional.remove(0)),
        false => None,
    };
    let test = if args.positional.is_empty() { None } else { Some(args.positional.remove(0)) };
    let meter = run.meter.clone();
    let mut chosen = ListBuilder::new(&meter)?;
    for item in items.iter() {
        meter.step(1)?;
        let subject = match &path {
            Some(path) => run.path(item, path)?,
            None => item.clone(),
        };
        let holds = match &test {
            Some(Value::Str(name)) => run.holds(name, &subject, copy(&args))?,
            Some(_) => return fail("the test must be a name"),
            None => subject.is_true(),
        };
        if holds == keep {
            chosen.push(item.clone())?;
        }
    }
    let chosen = chosen.seq()?;
    run.generator(chosen)
}
