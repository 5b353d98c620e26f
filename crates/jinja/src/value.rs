//! Values of templates, with the behaviour of Python's.
//!
//! Values are immutable trees of bounded depth. What can change (namespaces, loops, generators) lies in tables
//! of the interpreter and is named by its index, so no value can contain itself.

use std::hash::{Hash, Hasher};
use std::ops::Range as Bytes;
use std::sync::Arc;

use indexmap::IndexMap;

use super::fault::{Fault, Result, fail};
use super::global::Global;
use super::marks::Marks;
use super::meter::{Charge, MAX_VALUE_DEPTH, Meter};

#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// The name is for messages.
    Undefined(Option<Arc<str>>),
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(Arc<Text>),
    List(Arc<Seq>),
    Tuple(Arc<Seq>),
    /// A view of a dictionary: `keys`, `values` or `items`.
    View(Arc<Seq>, &'static str),
    Dict(Arc<Dict>),
    Range(Arc<Range>),
    /// A generator; it can be iterated over once.
    Iter(usize),
    Namespace(usize),
    Macro(usize),
    /// The loop with this index and serial number.
    Loop(usize, u64),
    Cycler(usize),
    Joiner(usize),
    Global(Global),
    /// A function of the environment.
    Function(usize),
    /// The names of an imported template.
    Module(usize),
    /// A method and its object.
    Method(Arc<(Value, Arc<str>)>),
}

#[derive(Debug)]
pub(crate) struct Text {
    text: String,
    /// Bytes that come from variables.
    data: Marks,
    _charges: [Charge; 2],
}

impl Text {
    /// True if a part of it comes from variables.
    pub(super) fn has_data(&self) -> bool {
        !self.data.is_empty()
    }

    /// Where `part` lies, if it is a slice of this text.
    fn range_of(&self, part: &str) -> Option<Bytes<usize>> {
        let start = (part.as_ptr() as usize).checked_sub(self.text.as_ptr() as usize)?;
        let range = start..start + part.len();
        (range.end <= self.text.len()).then_some(range)
    }
}

impl std::ops::Deref for Text {
    type Target = str;
    fn deref(&self) -> &str {
        &self.text
    }
}

/// The items of a list, tuple or view.
#[derive(Debug)]
pub(crate) struct Seq {
    pub(super) items: Vec<Value>,
    depth: u16,
    /// Values in it, as if it shared none.
    weight: u32,
    _charge: Charge,
}

impl std::ops::Deref for Seq {
    type Target = [Value];
    fn deref(&self) -> &[Value] {
        &self.items
    }
}

/// A dictionary in order of insertion. Its keys are found with a meter.
#[derive(Debug)]
pub(crate) struct Dict {
    map: IndexMap<Value, Value>,
    depth: u16,
    _charge: Charge,
}

impl std::ops::Deref for Dict {
    type Target = indexmap::map::Slice<Value, Value>;
    fn deref(&self) -> &Self::Target {
        self.map.as_slice()
    }
}

impl Dict {
    /// The entry with a key.
    pub(super) fn find(&self, meter: &Meter, key: &Value) -> Result<Option<&Value>> {
        key.check_key(meter)?;
        Ok(self.map.get(key))
    }

    /// The entry with a key that is a text.
    pub(super) fn named(&self, meter: &Meter, name: &str) -> Result<Option<&Value>> {
        meter.read(name.len())?;
        Ok(self.map.get(&StrKey(name)))
    }
}

/// A text as a key, without making a value of it.
#[derive(Hash)]
pub(super) struct StrKey<'a>(pub(super) &'a str);

impl indexmap::Equivalent<Value> for StrKey<'_> {
    fn equivalent(&self, key: &Value) -> bool {
        key.as_str() == Some(self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub(super) start: i128,
    pub(super) stop: i128,
    pub(super) step: i128,
}

impl Range {
    pub(super) fn len(&self) -> usize {
        let n = if self.step > 0 {
            (self.stop - self.start + self.step - 1).div_euclid(self.step)
        } else {
            (self.start - self.stop - self.step - 1).div_euclid(-self.step)
        };
        n.max(0) as usize
    }

    pub(super) fn get(&self, index: usize) -> Value {
        Value::Int(self.start + index as i128 * self.step)
    }
}

/// Bytes that each text, list and dictionary occupies besides its content.
const OVERHEAD: usize = 112;
const ENTRY: usize = 2 * size_of::<Value>() + 24;

impl Value {
    /// A constant of the template, which is not charged.
    pub(super) fn constant(text: &str) -> Value {
        let (data, _charges) = (Marks::default(), Default::default());
        Value::Str(Arc::new(Text { text: text.into(), data, _charges }))
    }

    /// A text of the template or interpreter.
    pub(super) fn text(meter: &Arc<Meter>, text: impl AsRef<str>) -> Result<Value> {
        let mut builder = TextBuilder::new(meter)?;
        builder.push(text.as_ref())?;
        Ok(builder.finish())
    }

    /// A text of the caller.
    pub(super) fn data(meter: &Arc<Meter>, text: &str) -> Result<Value> {
        let mut builder = TextBuilder::new(meter)?;
        builder.push(text)?;
        builder.mark(0..text.len())?;
        Ok(builder.finish())
    }

    /// A slice of a text.
    pub(super) fn part(meter: &Arc<Meter>, of: &Text, part: &str) -> Result<Value> {
        let mut builder = TextBuilder::new(meter)?;
        builder.push_part(of, part)?;
        Ok(builder.finish())
    }

    pub(super) fn list(meter: &Arc<Meter>, items: Vec<Value>) -> Result<Value> {
        Ok(Value::List(seq(meter, items)?))
    }

    pub(super) fn tuple(meter: &Arc<Meter>, items: Vec<Value>) -> Result<Value> {
        Ok(Value::Tuple(seq(meter, items)?))
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// Counts the reading of a text. Other values take steps for each item that is visited.
    pub(super) fn read(&self, meter: &Meter) -> Result<()> {
        self.as_str().map_or(Ok(()), |text| meter.read(text.len()))
    }

    /// The value of a name that is not found. Only the part of the name that messages quote is kept.
    pub(super) fn missing(name: &str) -> Value {
        Value::Undefined(Some(name.chars().take(MAX_NAME).collect::<String>().into()))
    }

    pub(super) fn is_undefined(&self) -> bool {
        matches!(self, Value::Undefined(_))
    }

    /// As a number; `True` is 1.
    pub(super) fn as_int(&self) -> Option<i128> {
        match *self {
            Value::Int(n) => Some(n),
            Value::Bool(b) => Some(b.into()),
            _ => None,
        }
    }

    pub(super) fn as_float(&self) -> Option<f64> {
        match *self {
            Value::Float(x) => Some(x),
            _ => self.as_int().map(|n| n as f64),
        }
    }

    /// Python's `bool(value)`.
    pub(super) fn is_true(&self) -> bool {
        match self {
            Value::Undefined(_) | Value::None => false,
            Value::Bool(b) => *b,
            Value::Int(n) => *n != 0,
            Value::Float(x) => *x != 0.0,
            Value::Str(text) => !text.is_empty(),
            Value::List(items) | Value::Tuple(items) | Value::View(items, _) => !items.is_empty(),
            Value::Dict(dict) => !dict.is_empty(),
            Value::Range(range) => range.len() > 0,
            _ => true,
        }
    }

    /// Python's `len(value)`.
    pub(super) fn len(&self) -> Option<usize> {
        match self {
            Value::Undefined(_) => Some(0),
            Value::Str(text) => Some(text.chars().count()),
            Value::List(items) | Value::Tuple(items) | Value::View(items, _) => Some(items.len()),
            Value::Dict(dict) => Some(dict.len()),
            Value::Range(range) => Some(range.len()),
            _ => None,
        }
    }

    /// True if it has a length, which takes time to count in a text.
    pub(super) fn has_len(&self) -> bool {
        matches!(self, Value::Str(_)) || self.len().is_some()
    }

    /// The name of its type in Python.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Value::Undefined(_) => "Undefined",
            Value::None => "NoneType",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Str(_) => "str",
            Value::List(_) => "list",
            Value::Tuple(_) => "tuple",
            Value::View(_, name) => name,
            Value::Dict(_) => "dict",
            Value::Range(_) => "range",
            Value::Iter(_) => "generator",
            Value::Namespace(_) => "Namespace",
            Value::Macro(_) => "Macro",
            Value::Loop(..) => "LoopContext",
            Value::Cycler(_) => "Cycler",
            Value::Joiner(_) => "Joiner",
            Value::Global(_) | Value::Function(_) => "function",
            Value::Module(_) => "module",
            Value::Method(_) => "builtin_function_or_method",
        }
    }

    /// Levels of values in it.
    fn depth(&self) -> u16 {
        match self {
            Value::List(seq) | Value::Tuple(seq) | Value::View(seq, _) => seq.depth,
            Value::Dict(dict) => dict.depth,
            Value::Method(method) => method.0.depth() + 1,
            _ => 0,
        }
    }

    fn weight(&self) -> u32 {
        match self {
            Value::Tuple(items) => items.weight,
            _ => 1,
        }
    }

    /// Fails for values that cannot be keys, and counts the reading of others. Tuples that share their parts would
    /// take for ever to be hashed.
    fn check_key(&self, meter: &Meter) -> Result<()> {
        match self {
            Value::List(_) | Value::Dict(_) | Value::View(..) => {
                fail(format!("unhashable type: '{}'", self.type_name()))
            }
            Value::Tuple(items) if items.weight > MAX_KEY => {
                Err(Fault::limit("values in a key", MAX_KEY.into()))
            }
            Value::Tuple(items) => {
                meter.step(items.len() as u64)?;
                items.iter().try_for_each(|item| item.check_key(meter))
            }
            _ => self.read(meter),
        }
    }
}

/// Characters of a name that an undefined value keeps.
const MAX_NAME: usize = 60;

/// Maximum number of values in a tuple that is a key.
const MAX_KEY: u32 = 1000;

fn weight(items: &[Value]) -> u32 {
    items.iter().fold(1, |weight, item| weight.saturating_add(item.weight()))
}

/// One level above `depth`.
fn level(depth: u16) -> Result<u16> {
    if depth >= MAX_VALUE_DEPTH {
        return Err(Fault::limit("levels of nested values", MAX_VALUE_DEPTH.into()));
    }
    Ok(depth + 1)
}

/// Items as the content of a list.
pub(super) fn seq(meter: &Arc<Meter>, items: Vec<Value>) -> Result<Arc<Seq>> {
    let charge = meter.charge(OVERHEAD + items.capacity() * size_of::<Value>())?;
    let depth = level(items.iter().map(Value::depth).max().unwrap_or(0))?;
    meter.step(items.len() as u64)?;
    Ok(Arc::new(Seq { weight: weight(&items), items, depth, _charge: charge }))
}

/// A method of `object`.
pub(super) fn method(object: Value, name: Arc<str>) -> Result<Value> {
    level(object.depth())?;
    Ok(Value::Method(Arc::new((object, name))))
}

/// Python's `==`. Both sides have bounded depth, but may share parts, so the comparison is metered.
pub(super) fn equal(meter: &Meter, a: &Value, b: &Value) -> Result<bool> {
    meter.step(1)?;
    let all = |a: &[Value], b: &[Value]| -> Result<bool> {
        if a.len() != b.len() {
            return Ok(false);
        }
        for (a, b) in a.iter().zip(b) {
            if !equal(meter, a, b)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    Ok(match (a, b) {
        (Value::List(a), Value::List(b)) | (Value::Tuple(a), Value::Tuple(b)) => {
            Arc::ptr_eq(a, b) || all(a, b)?
        }
        (Value::Dict(a), Value::Dict(b)) => {
            if Arc::ptr_eq(a, b) {
                return Ok(true);
            }
            if a.len() != b.len() {
                return Ok(false);
            }
            for (key, value) in a.iter() {
                match b.find(meter, key)? {
                    Some(other) if equal(meter, value, other)? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
        (Value::Str(a), Value::Str(b)) => {
            meter.read(a.len().min(b.len()))?;
            ***a == ***b
        }
        (Value::Float(x), Value::Float(y)) => x == y,
        _ => a == b,
    })
}

/// Equality as of keys: numbers by value, others by type and content. Lists and dictionaries are no keys.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Undefined(_), Value::Undefined(_)) | (Value::None, Value::None) => true,
            (Value::Str(a), Value::Str(b)) => ***a == ***b,
            (Value::Tuple(a), Value::Tuple(b)) => a.items == b.items,
            (Value::Range(a), Value::Range(b)) => a == b,
            (Value::Iter(a), Value::Iter(b))
            | (Value::Namespace(a), Value::Namespace(b))
            | (Value::Macro(a), Value::Macro(b))
            | (Value::Function(a), Value::Function(b))
            | (Value::Module(a), Value::Module(b))
            | (Value::Cycler(a), Value::Cycler(b))
            | (Value::Joiner(a), Value::Joiner(b)) => a == b,
            (Value::Loop(a, m), Value::Loop(b, n)) => (a, m) == (b, n),
            (Value::Global(a), Value::Global(b)) => a == b,
            (Value::Method(a), Value::Method(b)) => Arc::ptr_eq(a, b),
            _ => match (self.as_int(), other.as_int()) {
                (Some(a), Some(b)) => a == b,
                _ => match (self.as_float(), other.as_float()) {
                    // As the same object is in Python; keys that equal none would take quadratic time.
                    (Some(a), Some(b)) => a == b || a.is_nan() && b.is_nan(),
                    _ => false,
                },
            },
        }
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            // As `StrKey`.
            Value::Str(text) => text.hash(state),
            // With the length: others with the same leaves differ.
            Value::Tuple(items) => items.items.hash(state),
            Value::Range(range) => (range.start, range.stop, range.step).hash(state),
            Value::Iter(id)
            | Value::Namespace(id)
            | Value::Macro(id)
            | Value::Cycler(id)
            | Value::Joiner(id) => {
                id.hash(state);
            }
            Value::Method(method) => Arc::as_ptr(method).hash(state),
            Value::Float(x) if x.fract() != 0.0 || x.abs() >= 1e30 => x.to_bits().hash(state),
            Value::Float(x) => (*x as i128).hash(state),
            _ => self.as_int().unwrap_or_default().hash(state),
        }
    }
}

/// A text under construction.
#[derive(Debug)]
pub(super) struct TextBuilder {
    text: String,
    charge: Charge,
    /// Bytes that come from variables.
    data: Marks,
    data_charge: Charge,
}

impl TextBuilder {
    pub(super) fn new(meter: &Arc<Meter>) -> Result<TextBuilder> {
        let (charge, data_charge) = (meter.charge(OVERHEAD)?, meter.charge(0)?);
        Ok(TextBuilder { text: String::new(), charge, data: Marks::default(), data_charge })
    }

    /// Appends text of the template or interpreter.
    pub(super) fn push(&mut self, piece: &str) -> Result<()> {
        self.reserve(piece.len())?;
        self.text.push_str(piece);
        Ok(())
    }

    /// Appends a text with its marks.
    pub(super) fn push_text(&mut self, text: &Text) -> Result<()> {
        self.push_part(text, text)
    }

    /// Appends a slice of `text` with its marks.
    pub(super) fn push_part(&mut self, text: &Text, part: &str) -> Result<()> {
        let start = self.len();
        self.push(part)?;
        match text.range_of(part) {
            Some(range) => text
                .data
                .within(range)
                .try_for_each(|range| self.mark(start + range.start..start + range.end)),
            None => self.mark_since(start, text),
        }
    }

    /// Marks all text from `start` on as data, if a part of its source is data.
    pub(super) fn mark_since(&mut self, start: usize, source: &Text) -> Result<()> {
        if source.has_data() { self.mark(start..self.len()) } else { Ok(()) }
    }

    fn mark(&mut self, range: Bytes<usize>) -> Result<()> {
        if self.data.is_apart(&range) {
            // Room is made by doubling.
            self.data_charge.grow(2 * Marks::N_BYTE)?;
        }
        self.data.add(range);
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn push_char(&mut self, c: char) -> Result<()> {
        self.push(c.encode_utf8(&mut [0; 4]))
    }

    pub(super) fn push_repeated(&mut self, piece: &str, n: usize) -> Result<()> {
        self.reserve(n.saturating_mul(piece.len()))?;
        if !piece.is_empty() {
            (0..n).for_each(|_| self.text.push_str(piece));
        }
        Ok(())
    }

    pub(super) fn push_n(&mut self, c: char, n: usize) -> Result<()> {
        self.reserve(n.saturating_mul(c.len_utf8()))?;
        self.text.extend(std::iter::repeat_n(c, n));
        Ok(())
    }

    fn reserve(&mut self, n_byte: usize) -> Result<()> {
        let needed = self.text.len().saturating_add(n_byte);
        let paid = self.charge.n_byte() - OVERHEAD;
        if needed > paid {
            let more = needed.max(paid + paid / 2) - paid;
            self.charge.grow(more)?;
            self.text.reserve_exact(paid + more - self.text.len());
        }
        Ok(())
    }

    /// Counts the work for digits of a number.
    pub(super) fn compute(&self, n_digit: usize) -> Result<()> {
        self.charge.meter.as_ref().map_or(Ok(()), |meter| meter.step(n_digit as u64 / 2))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn finish(self) -> Value {
        let _charges = [self.charge, self.data_charge];
        Value::Str(Arc::new(Text { text: self.text, data: self.data, _charges }))
    }

    /// The text, and the ranges of it that come from variables.
    pub(super) fn into_parts(self) -> (String, Vec<Bytes<usize>>) {
        (self.text, self.data.into_ranges())
    }
}

/// A list under construction.
pub(super) struct ListBuilder<'m> {
    items: Vec<Value>,
    charge: Charge,
    meter: &'m Arc<Meter>,
}

impl<'m> ListBuilder<'m> {
    pub(super) fn new(meter: &'m Arc<Meter>) -> Result<ListBuilder<'m>> {
        Ok(ListBuilder { items: Vec::new(), charge: meter.charge(0)?, meter })
    }

    pub(super) fn push(&mut self, item: Value) -> Result<()> {
        if self.items.len() == self.items.capacity() {
            let more = 4.max(self.items.len() / 2);
            self.charge.grow(more * size_of::<Value>())?;
            self.items.reserve_exact(more);
        }
        self.meter.step(1)?;
        self.items.push(item);
        Ok(())
    }

    pub(super) fn extend(&mut self, items: &[Value]) -> Result<()> {
        items.iter().try_for_each(|item| self.push(item.clone()))
    }

    pub(super) fn items(&self) -> &[Value] {
        &self.items
    }

    pub(super) fn seq(self) -> Result<Arc<Seq>> {
        let depth = level(self.items.iter().map(Value::depth).max().unwrap_or(0))?;
        let mut charge = self.charge;
        charge.grow(OVERHEAD)?;
        Ok(Arc::new(Seq { weight: weight(&self.items), items: self.items, depth, _charge: charge }))
    }

    pub(super) fn list(self) -> Result<Value> {
        self.seq().map(Value::List)
    }

    pub(super) fn tuple(self) -> Result<Value> {
        self.seq().map(Value::Tuple)
    }
}

/// A dictionary under construction.
pub(super) struct DictBuilder {
    map: IndexMap<Value, Value>,
    depth: u16,
    charge: Charge,
    meter: Arc<Meter>,
}

impl DictBuilder {
    pub(super) fn new(meter: &Arc<Meter>) -> Result<DictBuilder> {
        let charge = meter.charge(OVERHEAD)?;
        Ok(DictBuilder { map: IndexMap::new(), depth: 0, charge, meter: meter.clone() })
    }

    pub(super) fn insert(&mut self, key: Value, value: Value) -> Result<()> {
        key.check_key(&self.meter)?;
        // The table grows by doubling, and copies itself when it does.
        self.charge.grow(2 * ENTRY)?;
        self.depth = self.depth.max(key.depth()).max(value.depth());
        self.map.insert(key, value);
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.map.len()
    }

    pub(super) fn finish(self) -> Result<Value> {
        let depth = level(self.depth)?;
        Ok(Value::Dict(Arc::new(Dict { map: self.map, depth, _charge: self.charge })))
    }
}
