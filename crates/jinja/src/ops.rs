//! Operators and subscripts.

use std::cmp::Ordering;
use std::sync::Arc;

use super::ast::{BinaryOp, CompareOp, UnaryOp};
use super::environment::Dialect;
use super::fault::{Fault, Result, fail};
use super::meter::Meter;
use super::run::Run;
use super::value::{ListBuilder, Range, Text, Value, equal};

/// The failure for a value that is not defined.
pub(super) fn undefined<T>(name: Option<&Arc<str>>) -> Result<T> {
    match name {
        Some(name) => fail(format!("'{}' is undefined", name.chars().take(60).collect::<String>())),
        None => fail("a value is undefined"),
    }
}

/// Fails for an undefined value.
pub(super) fn defined(value: &Value) -> Result<()> {
    match value {
        Value::Undefined(name) => undefined(name.as_ref()),
        _ => Ok(()),
    }
}

fn too_large<T>() -> Result<T> {
    Err(Fault::limit("bits of an integer", 127))
}

pub(super) fn int(n: Option<i128>) -> Result<Value> {
    n.map_or_else(too_large, |n| Ok(Value::Int(n)))
}

impl Run<'_> {
    /// Fails for an undefined value in templates of code.
    pub(super) fn check(&self, value: &Value) -> Result<()> {
        if self.dialect == Dialect::Code { defined(value) } else { Ok(()) }
    }

    /// The truth of a value, which in templates of code must be defined.
    pub(super) fn is_true(&self, value: &Value) -> Result<bool> {
        self.check(value)?;
        Ok(value.is_true())
    }

    pub(super) fn unary(&self, op: UnaryOp, value: &Value) -> Result<Value> {
        if op == UnaryOp::Not {
            return Ok(Value::Bool(!self.is_true(value)?));
        }
        defined(value)?;
        match (value, value.as_int()) {
            (Value::Float(x), _) => Ok(Value::Float(if op == UnaryOp::Minus { -x } else { *x })),
            (_, Some(n)) if op == UnaryOp::Minus => int(n.checked_neg()),
            (_, Some(n)) => Ok(Value::Int(n)),
            _ => fail(format!("bad operand type for a sign: '{}'", value.type_name())),
        }
    }

    pub(super) fn binary(&mut self, op: BinaryOp, a: &Value, b: &Value) -> Result<Value> {
        defined(a)?;
        defined(b)?;
        if let (Some(m), Some(n)) = (a.as_int(), b.as_int()) {
            return integers(op, m, n);
        }
        if let (Some(x), Some(y)) = (a.as_float(), b.as_float()) {
            return floats(op, x, y).map(Value::Float);
        }
        match (op, a, b) {
            (BinaryOp::Rem, Value::Str(format), _) => {
                self.meter.read(format.len())?;
                self.format_percent(format, b)
            }
            (BinaryOp::Add, Value::Str(a), Value::Str(b)) => {
                let mut out = self.text()?;
                out.push_text(a)?;
                out.push_text(b)?;
                Ok(out.finish())
            }
            (BinaryOp::Add, Value::List(a), Value::List(b)) => joined(&self.meter, a, b)?.list(),
            (BinaryOp::Add, Value::Tuple(a), Value::Tuple(b)) => joined(&self.meter, a, b)?.tuple(),
            (BinaryOp::Mul, _, _) => match (a.as_int(), b.as_int()) {
                (_, Some(n)) => self.repeat(a, n).unwrap_or_else(|| unsupported(op, a, b)),
                (Some(n), _) => self.repeat(b, n).unwrap_or_else(|| unsupported(op, a, b)),
                _ => unsupported(op, a, b),
            },
            _ => unsupported(op, a, b),
        }
    }

    /// A text or list `n` times; `None` for other values.
    fn repeat(&self, value: &Value, n: i128) -> Option<Result<Value>> {
        let n = n.clamp(0, 1 << 40) as u64;
        let items = |items: &[Value]| -> Result<ListBuilder<'_>> {
            let mut list = ListBuilder::new(&self.meter)?;
            if !items.is_empty() {
                (0..n).try_for_each(|_| list.extend(items))?;
            }
            Ok(list)
        };
        Some(match value {
            Value::Str(text) => self.text().and_then(|mut out| {
                match text.has_data() {
                    true => (0..n).try_for_each(|_| out.push_text(text))?,
                    false => out.push_repeated(text, n as usize)?,
                }
                Ok(out.finish())
            }),
            Value::List(list) => items(list).and_then(ListBuilder::list),
            Value::Tuple(list) => items(list).and_then(ListBuilder::tuple),
            _ => return None,
        })
    }

    pub(super) fn compare(&self, op: CompareOp, a: &Value, b: &Value) -> Result<bool> {
        Ok(match op {
            CompareOp::Eq => equal(&self.meter, a, b)?,
            CompareOp::Ne => !equal(&self.meter, a, b)?,
            CompareOp::In => self.contains(b, a)?,
            CompareOp::NotIn => !self.contains(b, a)?,
            CompareOp::Lt => order(&self.meter, a, b)?.is_some_and(Ordering::is_lt),
            CompareOp::Le => order(&self.meter, a, b)?.is_some_and(Ordering::is_le),
            CompareOp::Gt => order(&self.meter, a, b)?.is_some_and(Ordering::is_gt),
            CompareOp::Ge => order(&self.meter, a, b)?.is_some_and(Ordering::is_ge),
        })
    }

    /// `item in container`.
    pub(super) fn contains(&self, container: &Value, item: &Value) -> Result<bool> {
        let in_items = |items: &[Value]| -> Result<bool> {
            for found in items {
                if equal(&self.meter, found, item)? {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        match container {
            Value::Undefined(_) => self.check(container).map(|()| false),
            Value::Str(text) => match item {
                Value::Str(part) => {
                    self.meter.read(text.len() + part.len())?;
                    Ok(text.contains(&***part))
                }
                _ => {
                    defined(item)?;
                    fail(format!("'in <string>' requires string as left operand, not {}", item.type_name()))
                }
            },
            Value::List(items) | Value::Tuple(items) | Value::View(items, _) => in_items(items),
            Value::Dict(dict) => Ok(dict.find(&self.meter, item)?.is_some()),
            Value::Range(range) => {
                let offset = item.as_int().and_then(|n| n.checked_sub(range.start));
                Ok(offset.is_some_and(|offset| {
                    offset.checked_rem(range.step) == Some(0)
                        && (0..range.len() as i128).contains(&(offset / range.step))
                }))
            }
            Value::Iter(_) => fail("a generator cannot be searched; make it a list"),
            _ => fail(format!("argument of type '{}' is not iterable", container.type_name())),
        }
    }

    /// `value[key]`, or undefined.
    pub(super) fn item(&self, value: &Value, key: &Value) -> Result<Value> {
        let indexed = |items: &[Value]| position(key, items.len()).map(|at| items[at].clone());
        let found = match value {
            Value::Undefined(name) => return undefined(name.as_ref()),
            // Lists and dictionaries are no keys. An excess shows at the next step.
            Value::Dict(dict) => dict.find(&self.meter, key).unwrap_or(None).cloned(),
            Value::List(items) | Value::Tuple(items) => indexed(items),
            Value::Range(range) => position(key, range.len()).map(|at| range.get(at)),
            Value::Str(text) if key.as_int().is_some() => {
                self.meter.read(text.len())?;
                match position(key, text.chars().count()).and_then(|at| text.char_indices().nth(at)) {
                    Some((at, c)) => Some(Value::part(&self.meter, text, &text[at..at + c.len_utf8()])?),
                    None => None,
                }
            }
            _ => None,
        };
        match (found, key) {
            (Some(found), _) => Ok(found),
            // Subscripts find attributes, too.
            (None, Value::Str(name)) => {
                Ok(self.own_attr(value, name)?.unwrap_or_else(|| Value::missing(name)))
            }
            _ => Ok(Value::Undefined(None)),
        }
    }

    pub(super) fn slice(&self, value: &Value, bounds: [Option<Value>; 3]) -> Result<Value> {
        defined(value)?;
        let mut numbers = [None; 3];
        for (number, bound) in numbers.iter_mut().zip(bounds) {
            *number = match bound {
                None | Some(Value::None) => None,
                Some(bound) => match bound.as_int() {
                    Some(n) => Some(n.clamp(-(1 << 62), 1 << 62)),
                    None => return fail("slice indices must be integers or None"),
                },
            };
        }
        let of = |n: usize| -> Result<Range> { indices(numbers, n as i128) };
        let picked = |items: &[Value]| -> Result<ListBuilder<'_>> {
            let range = of(items.len())?;
            let mut list = ListBuilder::new(&self.meter)?;
            for i in 0..range.len() {
                list.push(items[(range.start + i as i128 * range.step) as usize].clone())?;
            }
            Ok(list)
        };
        match value {
            Value::List(items) => picked(items)?.list(),
            Value::Tuple(items) => picked(items)?.tuple(),
            Value::Str(text) => self.slice_text(text, of),
            Value::Range(range) => {
                let of = of(range.len())?;
                let at = |i: i128| range.start + i * range.step;
                let step = range.step.saturating_mul(of.step).clamp(-(1 << 90), 1 << 90);
                Ok(Value::Range(Arc::new(Range { start: at(of.start), stop: at(of.stop), step })))
            }
            _ => Ok(Value::Undefined(None)),
        }
    }

    fn slice_text(&self, text: &Text, of: impl Fn(usize) -> Result<Range>) -> Result<Value> {
        self.meter.read(text.len())?;
        let range = of(text.chars().count())?;
        let mut out = self.text()?;
        if range.step == 1 {
            let start = byte_offset(text, range.start as usize);
            let end = start + byte_offset(&text[start..], range.len());
            out.push_part(text, &text[start..end])?;
            return Ok(out.finish());
        }
        let chars: Vec<char> = {
            let _charge = self.meter.charge(text.len() * size_of::<char>())?;
            text.chars().collect()
        };
        self.meter.step(range.len() as u64)?;
        for i in 0..range.len() {
            out.push_char(chars[(range.start + i as i128 * range.step) as usize])?;
        }
        out.mark_since(0, text)?;
        Ok(out.finish())
    }
}

/// The byte where character `n` begins.
fn byte_offset(text: &str, n: usize) -> usize {
    text.char_indices().nth(n).map_or(text.len(), |(at, _)| at)
}

/// The position that an index means, negative ones from the end.
fn position(key: &Value, len: usize) -> Option<usize> {
    let n = key.as_int()?;
    let n = if n < 0 { n.checked_add(len as i128)? } else { n };
    usize::try_from(n).ok().filter(|n| *n < len)
}

/// Python's `slice.indices`.
fn indices([start, stop, step]: [Option<i128>; 3], len: i128) -> Result<Range> {
    let step = step.unwrap_or(1);
    if step == 0 {
        return fail("slice step cannot be zero");
    }
    let (low, high) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let clamp = |n: i128| (if n < 0 { n + len } else { n }).clamp(low, high);
    let (first, last) = if step > 0 { (low, high) } else { (high, low) };
    Ok(Range { start: start.map_or(first, clamp), stop: stop.map_or(last, clamp), step })
}

fn joined<'m>(meter: &'m Arc<Meter>, a: &[Value], b: &[Value]) -> Result<ListBuilder<'m>> {
    let mut list = ListBuilder::new(meter)?;
    list.extend(a)?;
    list.extend(b)?;
    Ok(list)
}

fn unsupported<T>(op: BinaryOp, a: &Value, b: &Value) -> Result<T> {
    let (a, b) = (a.type_name(), b.type_name());
    fail(format!("unsupported operand type(s) for {}: '{a}' and '{b}'", op.sign()))
}

fn integers(op: BinaryOp, m: i128, n: i128) -> Result<Value> {
    match op {
        BinaryOp::Add => int(m.checked_add(n)),
        BinaryOp::Sub => int(m.checked_sub(n)),
        BinaryOp::Mul => int(m.checked_mul(n)),
        BinaryOp::Pow if n >= 0 => match u32::try_from(n) {
            Ok(n) => int(m.checked_pow(n)),
            Err(_) if matches!(m, 0 | 1) => Ok(Value::Int(m)),
            Err(_) => too_large(),
        },
        BinaryOp::Div | BinaryOp::Pow => floats(op, m as f64, n as f64).map(Value::Float),
        BinaryOp::FloorDiv | BinaryOp::Rem if n == 0 => fail("integer division or modulo by zero"),
        BinaryOp::FloorDiv => {
            let Some(quotient) = m.checked_div(n) else { return too_large() };
            Ok(Value::Int(quotient - i128::from(m % n != 0 && (m < 0) != (n < 0))))
        }
        BinaryOp::Rem => {
            let rest = m.checked_rem(n).unwrap_or(0);
            Ok(Value::Int(if rest != 0 && (rest < 0) != (n < 0) { rest + n } else { rest }))
        }
    }
}

fn floats(op: BinaryOp, x: f64, y: f64) -> Result<f64> {
    if y == 0.0 && matches!(op, BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::Rem) {
        return fail("division by zero");
    }
    Ok(match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        BinaryOp::Mul => x * y,
        BinaryOp::Div => x / y,
        BinaryOp::FloorDiv => {
            let rest = modulo(x, y);
            ((x - rest) / y).round()
        }
        BinaryOp::Rem => modulo(x, y),
        BinaryOp::Pow if x == 0.0 && y < 0.0 => return fail("0.0 cannot be raised to a negative power"),
        BinaryOp::Pow => x.powf(y),
    })
}

/// Python's `%`, which has the sign of `y`.
fn modulo(x: f64, y: f64) -> f64 {
    let rest = x % y;
    if rest != 0.0 && (rest < 0.0) != (y < 0.0) { rest + y } else { rest }
}

/// The order of two values, as Python's `<` has it; `None` if a number is NaN.
pub(super) fn order(meter: &Meter, a: &Value, b: &Value) -> Result<Option<Ordering>> {
    defined(a)?;
    defined(b)?;
    meter.step(1)?;
    if let (Some(m), Some(n)) = (a.as_int(), b.as_int()) {
        return Ok(Some(m.cmp(&n)));
    }
    if let (Some(x), Some(y)) = (a.as_float(), b.as_float()) {
        return Ok(x.partial_cmp(&y));
    }
    match (a, b) {
        (Value::Str(a), Value::Str(b)) => {
            meter.read(a.len().min(b.len()))?;
            Ok(Some((***a).cmp(&***b)))
        }
        (Value::List(a), Value::List(b)) | (Value::Tuple(a), Value::Tuple(b)) => {
            for (a, b) in a.iter().zip(b.iter()) {
                if !equal(meter, a, b)? {
                    return order(meter, a, b);
                }
            }
            Ok(Some(a.len().cmp(&b.len())))
        }
        _ => fail(format!("'<' not supported between '{}' and '{}'", a.type_name(), b.type_name())),
    }
}
