//! Filters on lists and dictionaries.

use std::cmp::Ordering;
use std::sync::Arc;

#[cfg(feature = "rare-filters")]
use super::args::count;
use super::args::{Args, as_bool, as_text, given};
use super::ast::BinaryOp;
use super::fault::{Fault, Result, fail};
use super::ops::{defined, order};
use super::run::Run;
use super::text_methods::change_case;
#[cfg(feature = "rare-filters")]
use super::value::equal;
use super::value::{ListBuilder, Seq, Value};

pub(super) fn length(_: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [] = args.bind("length", [], 0)?;
    match value.len() {
        Some(n) => Ok(Value::Int(n as i128)),
        None => fail(format!("object of type '{}' has no len()", value.type_name())),
    }
}

pub(super) fn list(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [] = args.bind("list", [], 0)?;
    run.iterate(&value).map(Value::List)
}

/// `default(default_value='', boolean=false)`.
pub(super) fn default(_: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [default, boolean] = args.bind("default", ["default_value", "boolean"], 0)?;
    let is_missing = value.is_undefined() || (as_bool(boolean.as_ref(), false) && !value.is_true());
    Ok(if is_missing { default.unwrap_or_else(|| Value::constant("")) } else { value })
}

pub(super) fn attr(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [name] = args.bind("attr", ["name"], 1)?;
    let name = as_text(name.as_ref(), "")?;
    Ok(run.own_attr(&value, name)?.unwrap_or_else(|| Value::missing(name)))
}

pub(super) fn first(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [] = args.bind("first", [], 0)?;
    let none = || Value::Undefined(Some("first item of an empty sequence".into()));
    if let Value::Iter(id) = value {
        let (items, at) = &mut run.iters[id];
        let item = items.get(*at).cloned();
        *at = (*at + 1).min(items.len());
        return Ok(item.unwrap_or_else(none));
    }
    Ok(run.iterate(&value)?.first().cloned().unwrap_or_else(none))
}

pub(super) fn last(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [] = args.bind("last", [], 0)?;
    if let Value::Iter(_) = value {
        return fail("'generator' object is not reversible");
    }
    let none = || Value::Undefined(Some("last item of an empty sequence".into()));
    Ok(run.iterate(&value)?.last().cloned().unwrap_or_else(none))
}

/// Jinja chooses at random; here a rendering depends on nothing but its input, so it is the middle item.
#[cfg(feature = "rare-filters")]
pub(super) fn random(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [] = args.bind("random", [], 0)?;
    let items = run.iterate(&value)?;
    Ok(items.get(items.len() / 2).cloned().unwrap_or(Value::Undefined(None)))
}

pub(super) fn items(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [] = args.bind("items", [], 0)?;
    let pairs = match &value {
        Value::Undefined(_) => run.iterate(&value)?,
        Value::Dict(_) => {
            let view = super::methods::call(run, &value, "items", Args::default())?;
            run.iterate(&view)?
        }
        _ => return fail("can only get item pairs from a mapping"),
    };
    run.generator(pairs)
}

pub(super) fn reverse(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [] = args.bind("reverse", [], 0)?;
    if let Value::Str(text) = &value {
        let mut out = run.text()?;
        text.chars().rev().try_for_each(|c| out.push_char(c))?;
        out.mark_since(0, text)?;
        return Ok(out.finish());
    }
    let items = run.iterate(&value)?;
    let reversed = reversed(run, &items)?;
    run.generator(reversed)
}

fn reversed(run: &Run<'_>, items: &[Value]) -> Result<Arc<Seq>> {
    let mut reversed = run.items()?;
    items.iter().rev().try_for_each(|item| reversed.push(item.clone()))?;
    reversed.seq()
}

/// `join(d='', attribute=None)`.
pub(super) fn join(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [separator, path] = args.bind("join", ["d", "attribute"], 0)?;
    let items = run.iterate(&value)?;
    let separator = run.str(&separator.unwrap_or_else(|| Value::constant("")))?;
    let path = given(path);
    let mut out = run.text()?;
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            run.write_str(&separator, &mut out)?;
        }
        run.meter.step(1)?;
        match &path {
            Some(path) => run.write_str(&run.path(item, path)?, &mut out)?,
            None => run.write_str(item, &mut out)?,
        }
    }
    Ok(out.finish())
}

/// `batch(linecount, fill_with=None)`.
#[cfg(feature = "rare-filters")]
pub(super) fn batch(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [n, fill] = args.bind("batch", ["linecount", "fill_with"], 1)?;
    let n = count(n.as_ref(), 1)?;
    if n == 0 {
        return fail("batches have at least one item");
    }
    let items = run.iterate(&value)?;
    let meter = run.meter.clone();
    let mut batches = ListBuilder::new(&meter)?;
    for chunk in items.chunks(n) {
        let mut batch = ListBuilder::new(&meter)?;
        batch.extend(chunk)?;
        if let Some(fill) = given(fill.clone()) {
            (chunk.len()..n).try_for_each(|_| batch.push(fill.clone()))?;
        }
        batches.push(batch.list()?)?;
    }
    let batches = batches.seq()?;
    run.generator(batches)
}

/// `slice(slices, fill_with=None)`: columns of nearly equal length.
#[cfg(feature = "rare-filters")]
pub(super) fn slice(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [n, fill] = args.bind("slice", ["slices", "fill_with"], 1)?;
    let n = count(n.as_ref(), 1)?;
    if n == 0 {
        return fail("integer division or modulo by zero");
    }
    let items = run.iterate(&value)?;
    let (per_slice, n_longer) = (items.len() / n, items.len() % n);
    let meter = run.meter.clone();
    let mut slices = ListBuilder::new(&meter)?;
    let mut at = 0;
    for i in 0..n {
        let len = per_slice + usize::from(i < n_longer);
        let mut slice = ListBuilder::new(&meter)?;
        slice.extend(&items[at..at + len])?;
        at += len;
        if let Some(fill) = given(fill.clone()).filter(|_| i >= n_longer) {
            slice.push(fill)?;
        }
        slices.push(slice.list()?)?;
    }
    let slices = slices.seq()?;
    run.generator(slices)
}

/// `sum(attribute=None, start=0)`.
pub(super) fn sum(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [path, start] = args.bind("sum", ["attribute", "start"], 0)?;
    let items = run.iterate(&value)?;
    let path = given(path);
    let mut sum = start.unwrap_or(Value::Int(0));
    for item in items.iter() {
        run.meter.step(1)?;
        let item = match &path {
            Some(path) => run.path(item, path)?,
            None => item.clone(),
        };
        sum = run.binary(BinaryOp::Add, &sum, &item)?;
    }
    Ok(sum)
}

// Order.

impl Run<'_> {
    /// The key by which an item is sorted: without regard to case, unless that is asked for.
    fn sort_key(&self, item: &Value, paths: Option<&Value>, case_sensitive: bool) -> Result<Value> {
        let fold = |value: Value| match &value {
            Value::Str(text) if !case_sensitive => change_case(self, text, "lower"),
            _ => Ok(value),
        };
        match paths {
            None => fold(item.clone()),
            Some(Value::Str(paths)) if paths.contains(',') => {
                let keys = paths.split(',').map(|path| {
                    let path = Value::text(&self.meter, path)?;
                    fold(self.path(item, &path)?)
                });
                Value::list(&self.meter, keys.collect::<Result<_>>()?)
            }
            Some(path) => fold(self.path(item, path)?),
        }
    }

    /// Items with their keys in the order of these.
    fn sorted(&self, items: Vec<(Value, Value)>, is_reversed: bool) -> Result<Arc<Seq>> {
        let _scratch = self.meter.charge(2 * items.len() * size_of::<(Value, Value)>())?;
        let mut items = items;
        let mut fault: Option<Box<Fault>> = None;
        let mut compare = |a: &Value, b: &Value| match order(&self.meter, a, b) {
            Ok(order) => order.unwrap_or(Ordering::Equal),
            Err(e) => {
                fault.get_or_insert(e);
                Ordering::Equal
            }
        };
        // Without a total order, such as of NaN, the standard library's sort may panic; this one does not.
        merge_sort(&mut items, &mut |a, b| {
            let order = compare(&a.0, &b.0);
            if is_reversed { order.reverse() } else { order }
        });
        if let Some(fault) = fault {
            return Err(fault);
        }
        let mut sorted = self.items()?;
        items.into_iter().try_for_each(|(_, item)| sorted.push(item))?;
        sorted.seq()
    }
}

/// A stable sort for comparisons that need not be consistent.
pub(super) fn merge_sort<T>(items: &mut Vec<T>, compare: &mut impl FnMut(&T, &T) -> Ordering) {
    if items.len() < 2 {
        return;
    }
    let mut right = items.split_off(items.len() / 2);
    merge_sort(items, compare);
    merge_sort(&mut right, compare);
    let left = std::mem::replace(items, Vec::with_capacity(items.len() + right.len()));
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let next = if compare(b, a).is_lt() { right.next() } else { left.next() };
        items.extend(next);
    }
    items.extend(left);
    items.extend(right);
}

/// `sort(reverse=false, case_sensitive=false, attribute=None)`.
pub(super) fn sort(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [reverse, case, path] = args.bind("sort", ["reverse", "case_sensitive", "attribute"], 0)?;
    let (case, path) = (as_bool(case.as_ref(), false), given(path));
    let items = run.iterate(&value)?;
    let _scratch = run.meter.charge(items.len() * size_of::<(Value, Value)>())?;
    let keyed = items.iter().map(|item| Ok((run.sort_key(item, path.as_ref(), case)?, item.clone())));
    let keyed = keyed.collect::<Result<_>>()?;
    run.sorted(keyed, as_bool(reverse.as_ref(), false)).map(Value::List)
}

/// `dictsort(case_sensitive=false, by='key', reverse=false)`.
pub(super) fn dictsort(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [case, by, reverse] = args.bind("dictsort", ["case_sensitive", "by", "reverse"], 0)?;
    let at = match as_text(by.as_ref(), "key")? {
        "key" => 0,
        "value" => 1,
        _ => return fail("you can only sort by either \"key\" or \"value\""),
    };
    let case = as_bool(case.as_ref(), false);
    let Value::Dict(_) = value else {
        defined(&value)?;
        return fail(format!("'{}' object has no attribute 'items'", value.type_name()));
    };
    let pairs = super::methods::call(run, &value, "items", Args::default())?;
    let pairs = run.iterate(&pairs)?;
    let _scratch = run.meter.charge(pairs.len() * size_of::<(Value, Value)>())?;
    let keyed = pairs.iter().map(|pair| {
        let part = run.item(pair, &Value::Int(at))?;
        Ok((run.sort_key(&part, None, case)?, pair.clone()))
    });
    let keyed = keyed.collect::<Result<_>>()?;
    run.sorted(keyed, as_bool(reverse.as_ref(), false)).map(Value::List)
}

pub(super) fn min(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    extreme(run, &value, args, Ordering::Less)
}

pub(super) fn max(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    extreme(run, &value, args, Ordering::Greater)
}

/// The first item that no other is before in `direction`.
fn extreme(run: &mut Run<'_>, value: &Value, args: Args, direction: Ordering) -> Result<Value> {
    let [case, path] = args.bind("min", ["case_sensitive", "attribute"], 0)?;
    let (case, path) = (as_bool(case.as_ref(), false), given(path));
    let mut best: Option<(Value, Value)> = None;
    for item in run.iterate(value)?.iter() {
        let key = run.sort_key(item, path.as_ref(), case)?;
        let is_better = match &best {
            Some((found, _)) => order(&run.meter, &key, found)? == Some(direction),
            None => true,
        };
        if is_better {
            best = Some((key, item.clone()));
        }
    }
    Ok(best.map_or_else(|| Value::Undefined(Some("item of an empty sequence".into())), |(_, item)| item))
}

/// `unique(case_sensitive=false, attribute=None)`.
pub(super) fn unique(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [case, path] = args.bind("unique", ["case_sensitive", "attribute"], 0)?;
    let (case, path) = (as_bool(case.as_ref(), false), given(path));
    let items = run.iterate(&value)?;
    let meter = run.meter.clone();
    let mut seen = super::value::DictBuilder::new(&meter)?;
    let mut unique = ListBuilder::new(&meter)?;
    for item in items.iter() {
        let key = run.sort_key(item, path.as_ref(), case)?;
        let n = seen.len();
        seen.insert(key, Value::None)?;
        if seen.len() > n {
            unique.push(item.clone())?;
        }
    }
    let unique = unique.seq()?;
    run.generator(unique)
}

/// `groupby(attribute, default=None, case_sensitive=false)`: pairs of keys and items.
#[cfg(feature = "rare-filters")]
pub(super) fn groupby(run: &mut Run<'_>, value: Value, args: Args) -> Result<Value> {
    let [path, default, case] = args.bind("groupby", ["attribute", "default", "case_sensitive"], 1)?;
    let (path, default) = (path.unwrap_or(Value::None), given(default));
    let case = as_bool(case.as_ref(), false);
    let items = run.iterate(&value)?;
    let _scratch = run.meter.charge(items.len() * size_of::<(Value, Value)>())?;
    let key_of = |run: &Run<'_>, item: &Value| -> Result<Value> {
        let found = run.path(item, &path)?;
        Ok(if found.is_undefined() { default.clone().unwrap_or(found) } else { found })
    };
    let keyed = items.iter().map(|item| Ok((run.sort_key(&key_of(run, item)?, None, case)?, item.clone())));
    let keyed = keyed.collect::<Result<_>>()?;
    let sorted = run.sorted(keyed, false)?;
    let mut groups = run.items()?;
    let mut at = 0;
    while at < sorted.len() {
        let key = key_of(run, &sorted[at])?;
        let folded = run.sort_key(&key, None, case)?;
        let mut group = run.items()?;
        while at < sorted.len()
            && equal(&run.meter, &run.sort_key(&key_of(run, &sorted[at])?, None, case)?, &folded)?
        {
            group.push(sorted[at].clone())?;
            at += 1;
        }
        groups.push(Value::tuple(&run.meter, vec![key, group.list()?])?)?;
    }
    groups.list()
}
