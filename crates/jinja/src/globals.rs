//! Functions that every template has.

use std::sync::Arc;

use indexmap::IndexMap;

use super::args::{Args, as_int, given, text};
use super::fault::{Fault, Result, fail};
use super::global::Global;
use super::run::Run;
use super::value::{DictBuilder, Range, Value, seq};

/// Maximum length of a range, as in Jinja2's sandbox.
const MAX_RANGE: usize = 100_000;

/// Calls the function.
pub(super) fn call(global: Global, run: &mut Run<'_>, args: Args) -> Result<Value> {
    match global {
        Global::Range => range(args),
        Global::Dict => dict(run, args),
        Global::Namespace => namespace(run, args),
        Global::Cycler => {
            if args.positional.is_empty() {
                return fail("at least one item has to be provided");
            }
            run.tables.grow(64)?;
            let items = seq(&run.meter, args.positional)?;
            run.cyclers.push((items, 0));
            Ok(Value::Cycler(run.cyclers.len() - 1))
        }
        Global::Joiner => {
            let [separator] = args.bind("joiner", ["sep"], 0)?;
            run.tables.grow(64)?;
            run.joiners.push((separator.unwrap_or_else(|| Value::constant(", ")), false));
            Ok(Value::Joiner(run.joiners.len() - 1))
        }
        Global::RaiseException => {
            let [message] = args.bind("raise_exception", ["message"], 1)?;
            let message = run.str(&message.unwrap_or(Value::None))?;
            Err(Fault::raised(message.as_str().unwrap_or_default().to_owned()))
        }
        Global::Lipsum => fail("lipsum() makes random text, and the same prompt should have the same text"),
        Global::StrftimeNow => {
            let [format] = args.bind("strftime_now", ["format"], 1)?;
            let Some(now) = run.now else { return fail("there is no time") };
            let format = text(format)?;
            // The longest conversion writes some thirty bytes.
            let _charge = run.meter.charge(format.len().saturating_mul(32))?;
            let mut out = run.text()?;
            out.push(&now.strftime(&format))?;
            out.mark_since(0, &format)?;
            Ok(out.finish())
        }
    }
}

fn range(args: Args) -> Result<Value> {
    let [a, b, step] = args.bind("range", ["start", "stop", "step"], 1)?;
    let first = as_int(a.as_ref(), 0)?;
    let (start, stop) = match &b {
        Some(_) => (first, as_int(b.as_ref(), 0)?),
        None => (0, first),
    };
    let step = as_int(step.as_ref(), 1)?;
    if step == 0 {
        return fail("range() arg 3 must not be zero");
    }
    let is_small = |n: i128| n.unsigned_abs() < 1 << 64;
    let range = Range { start, stop, step };
    if !(is_small(start) && is_small(stop) && is_small(step)) || range.len() > MAX_RANGE {
        return fail(format!("range too big: the maximum is {MAX_RANGE}"));
    }
    Ok(Value::Range(Arc::new(range)))
}

/// `dict(other, key=value, ...)`; the other may be a list of pairs.
fn dict(run: &mut Run<'_>, args: Args) -> Result<Value> {
    let mut dict = DictBuilder::new(&run.meter)?;
    for (key, value) in entries(run, args)? {
        dict.insert(key, value)?;
    }
    dict.finish()
}

fn entries(run: &mut Run<'_>, args: Args) -> Result<Vec<(Value, Value)>> {
    if args.positional.len() > 1 {
        return fail("expected at most 1 argument");
    }
    let mut entries = Vec::new();
    match args.positional.into_iter().next() {
        None => {}
        Some(Value::Dict(dict)) => {
            let _charge = run.meter.charge(dict.len() * size_of::<(Value, Value)>())?;
            entries.extend(dict.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        Some(pairs) => {
            for pair in run.iterate(&pairs)?.iter() {
                let pair = run.iterate(pair)?;
                let [key, value] = &**pair else {
                    return fail("expected pairs of keys and values");
                };
                entries.push((key.clone(), value.clone()));
            }
        }
    }
    entries.extend(args.named.into_iter().map(|(name, value)| (Value::constant(&name), value)));
    Ok(entries)
}

fn namespace(run: &mut Run<'_>, args: Args) -> Result<Value> {
    run.tables.grow(128)?;
    let entries = entries(run, args)?;
    run.namespaces.push(IndexMap::new());
    let id = run.namespaces.len() - 1;
    for (key, value) in entries {
        let Some(name) = key.as_str() else { return fail("names in a namespace must be strings") };
        run.set_in_namespace(id, name, value)?;
    }
    Ok(Value::Namespace(id))
}

impl Run<'_> {
    /// The attribute of a cycler.
    pub(super) fn cycler_attr(&self, id: usize, name: &str) -> Option<Value> {
        let (items, at) = &self.cyclers[id];
        (name == "current").then(|| items[*at].clone())
    }

    pub(super) fn cycler_call(&mut self, id: usize, name: &str) -> Result<Value> {
        let (items, at) = &mut self.cyclers[id];
        if name == "reset" {
            *at = 0;
            return Ok(Value::None);
        }
        let item = items[*at].clone();
        *at = (*at + 1) % items.len();
        Ok(item)
    }
}

/// An argument that may be missing or `None`.
pub(super) fn int_or_none(value: Option<Value>) -> Result<Option<i128>> {
    given(value).map(|value| as_int(Some(&value), 0)).transpose()
}
