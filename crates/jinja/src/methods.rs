//! Attributes, and the methods of lists, dictionaries and loops. Methods that change their object do not exist,
//! as in Jinja2's immutable sandbox.

use std::sync::Arc;

use super::args::{Args, as_int};
use super::fault::{Result, fail};
use super::ops::undefined;
use super::run::Run;
use super::value::{StrKey, Value, equal, method};
use super::{text_methods, value};

/// Methods of Python's lists and dictionaries that would change them.
const UNSAFE_LIST: [&str; 8] = ["append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"];
const UNSAFE_DICT: [&str; 5] = ["clear", "pop", "popitem", "setdefault", "update"];

const LIST: [&str; 3] = ["count", "index", "copy"];
const TUPLE: [&str; 2] = ["count", "index"];
const DICT: [&str; 6] = ["get", "items", "keys", "values", "copy", "fromkeys"];
const LOOP: [&str; 2] = ["cycle", "changed"];
const CYCLER: [&str; 2] = ["next", "reset"];

/// True if values of this type have a method `name`, even one that must not be called.
pub(super) fn exists(value: &Value, name: &str) -> bool {
    is_safe(value, name) || is_unsafe(value, name)
}

fn is_unsafe(value: &Value, name: &str) -> bool {
    match value {
        Value::List(_) => UNSAFE_LIST.contains(&name),
        Value::Dict(_) => UNSAFE_DICT.contains(&name),
        _ => false,
    }
}

fn is_safe(value: &Value, name: &str) -> bool {
    match value {
        Value::Str(_) => text_methods::NAMES.contains(&name),
        Value::List(_) => LIST.contains(&name),
        Value::Tuple(_) | Value::Range(_) => TUPLE.contains(&name),
        Value::Dict(_) => DICT.contains(&name),
        Value::Loop(..) => LOOP.contains(&name),
        Value::Cycler(_) => CYCLER.contains(&name),
        _ => false,
    }
}

impl Run<'_> {
    /// `value.name`, or undefined.
    pub(super) fn attr(&self, value: &Value, name: &Arc<str>) -> Result<Value> {
        if let Value::Undefined(found) = value {
            return undefined(found.as_ref());
        }
        if let Some(found) = self.own_attr(value, name)? {
            return Ok(found);
        }
        let found = match value {
            Value::Dict(dict) => dict.named(&self.meter, name)?.cloned(),
            _ => None,
        };
        Ok(found.unwrap_or_else(|| Value::Undefined(Some(name.clone()))))
    }

    /// An attribute that is no item: a method, or a variable of an object of Jinja's.
    pub(super) fn own_attr(&self, value: &Value, name: &str) -> Result<Option<Value>> {
        if is_safe(value, name) {
            return method(value.clone(), name.into()).map(Some);
        }
        if is_unsafe(value, name) {
            return Ok(Some(Value::missing(name)));
        }
        self.meter.read(name.len())?;
        Ok(match value {
            Value::Namespace(id) => self.namespaces[*id].get(&StrKey(name)).cloned(),
            Value::Loop(id, serial) => self.loop_attr(*id, *serial, name)?,
            Value::Cycler(id) => self.cycler_attr(*id, name),
            Value::Module(id) => self.module_attr(*id, name),
            Value::Macro(id) if name == "name" => Some(Value::constant(&self.macros[*id].decl.name)),
            Value::Range(range) => match name {
                "start" => Some(Value::Int(range.start)),
                "stop" => Some(Value::Int(range.stop)),
                "step" => Some(Value::Int(range.step)),
                _ => None,
            },
            _ => None,
        })
    }

    fn loop_attr(&self, id: usize, serial: u64, name: &str) -> Result<Option<Value>> {
        let state = self.loop_state(id, serial)?;
        let (index, n) = (state.index, state.items.len());
        let int = |n: usize| Some(Value::Int(n as i128));
        let item = |at: Option<usize>| match at.and_then(|at| state.items.get(at)) {
            Some(item) => Some(item.clone()),
            None => Some(Value::Undefined(Some(name.into()))),
        };
        Ok(match name {
            "index" => int(index + 1),
            "index0" => int(index),
            "revindex" => int(n - index),
            "revindex0" => int(n - index - 1),
            "first" => Some(Value::Bool(index == 0)),
            "last" => Some(Value::Bool(index + 1 == n)),
            "length" => int(n),
            "depth" => int(state.depth + 1),
            "depth0" => int(state.depth),
            "previtem" => item(index.checked_sub(1)),
            "nextitem" => item(Some(index + 1)),
            _ => None,
        })
    }
}

/// Calls a method that exists.
pub(super) fn call(run: &mut Run<'_>, value: &Value, name: &str, args: Args) -> Result<Value> {
    if is_unsafe(value, name) {
        let of = value.type_name();
        return fail(format!(
            "access to attribute '{name}' of '{of}' object is unsafe: values cannot change"
        ));
    }
    args.read(&run.meter)?;
    match value {
        Value::Str(text) => text_methods::call(run, text, name, args),
        Value::List(items) if name == "copy" => {
            let [] = args.bind(name, [], 0)?;
            Ok(Value::List(items.clone()))
        }
        Value::List(_) | Value::Tuple(_) | Value::Range(_) => search(run, value, name, args),
        Value::Dict(dict) => call_dict(run, dict, name, args),
        Value::Cycler(id) => {
            let [] = args.bind(name, [], 0)?;
            run.cycler_call(*id, name)
        }
        Value::Loop(id, serial) if name == "cycle" => {
            let state = run.loop_state(*id, *serial)?;
            let Some(n) = state.index.checked_rem(args.positional.len()) else {
                return fail("no items for cycling given");
            };
            Ok(args.positional[n].clone())
        }
        Value::Loop(id, serial) => {
            let items = Value::tuple(&run.meter, args.positional)?;
            run.loop_changed(*id, *serial, items).map(Value::Bool)
        }
        _ => fail(format!("'{}' has no method '{name}'", value.type_name())),
    }
}

/// `count` and `index` of lists.
fn search(run: &mut Run<'_>, value: &Value, name: &str, args: Args) -> Result<Value> {
    let [item, start, stop] = args.bind(name, ["value", "start", "stop"], 1)?;
    let item = item.unwrap_or(Value::None);
    let items = run.iterate(value)?;
    let len = items.len() as i128;
    let bound = |n: i128| (if n < 0 { n + len } else { n }).clamp(0, len) as usize;
    let start = bound(as_int(start.as_ref(), 0)?);
    let stop = bound(as_int(stop.as_ref(), len)?);
    let mut n = 0;
    for (i, found) in items.iter().enumerate().take(stop).skip(start) {
        if !equal(&run.meter, found, &item)? {
            continue;
        }
        if name == "index" {
            return Ok(Value::Int(i as i128));
        }
        n += 1;
    }
    if name == "index" { fail("value is not in list") } else { Ok(Value::Int(n)) }
}

fn call_dict(run: &mut Run<'_>, dict: &Arc<value::Dict>, name: &str, args: Args) -> Result<Value> {
    match name {
        "get" => {
            let [key, default] = args.bind(name, ["key", "default"], 1)?;
            let key = key.unwrap_or(Value::None);
            Ok(dict.find(&run.meter, &key)?.cloned().or(default).unwrap_or(Value::None))
        }
        "copy" => {
            let [] = args.bind(name, [], 0)?;
            Ok(Value::Dict(dict.clone()))
        }
        "fromkeys" => {
            let [keys, value] = args.bind(name, ["iterable", "value"], 1)?;
            let keys = run.iterate(&keys.unwrap_or(Value::None))?;
            let value = value.unwrap_or(Value::None);
            let mut made = value::DictBuilder::new(&run.meter)?;
            keys.iter().try_for_each(|key| made.insert(key.clone(), value.clone()))?;
            made.finish()
        }
        _ => {
            let [] = args.bind(name, [], 0)?;
            let mut items = run.items()?;
            for (key, value) in dict.iter() {
                items.push(match name {
                    "keys" => key.clone(),
                    "values" => value.clone(),
                    _ => Value::tuple(&run.meter, vec![key.clone(), value.clone()])?,
                })?;
            }
            let type_name = match name {
                "keys" => "dict_keys",
                "values" => "dict_values",
                _ => "dict_items",
            };
            Ok(Value::View(items.seq()?, type_name))
        }
    }
}
