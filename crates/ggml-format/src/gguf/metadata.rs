//! The key-value pairs of a file: their positions, and typed access.

use std::cmp::Ordering;

use super::cursor::{Cursor, Field};
use super::error::GgufError;
use super::header_bytes::HeaderBytes;
use super::value::{ArrayView, FromValue, Value, ValueType};
use super::{DEFAULT_ALIGNMENT, StrIter};

/// Bytes of the shortest pair: a key of one byte, a type and a value of one byte.
const MIN_KV_BYTES: u64 = 8 + 1 + 4 + 1;

/// Upper limit on the layers that one scalar may apply to: far more than models have, and few enough to hold
/// a value for each.
const MAX_LAYERS: usize = 1 << 16;

/// One pair, as positions in the file.
#[derive(Copy, Clone, Debug)]
struct Entry {
    key: Span,
    ty: ValueType,
    /// For arrays: type and number of the elements.
    elem: (ValueType, u64),
    /// The value as stored; for arrays only the elements.
    value: Span,
}

#[derive(Copy, Clone, Debug)]
struct Span {
    start: usize,
    end: usize,
}

impl Span {
    fn of<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.start..self.end]
    }
}

/// All pairs in file order, and their indices sorted by key.
#[derive(Clone, Debug)]
pub(super) struct Entries {
    list: Vec<Entry>,
    by_key: Vec<u32>,
}

fn key_of<'a>(entry: &Entry, bytes: &'a [u8]) -> &'a str {
    std::str::from_utf8(entry.key.of(bytes)).expect("the key was checked on reading")
}

impl Entries {
    pub(super) fn read(cursor: &mut Cursor<'_>, n_kv: u64) -> Result<Entries, GgufError> {
        cursor.expect_in_file(n_kv, MIN_KV_BYTES, Field::KvCount)?;
        let mut keys: Vec<&str> = Vec::new();
        let mut list = Vec::new();
        for index in 0..n_kv {
            let offset = cursor.position();
            let key = cursor.str(Field::Key(index))?;
            let key_end = cursor.position() as usize;
            if key.is_empty() {
                return Err(GgufError::EmptyKey { index, offset });
            }
            let ty = value_type(cursor, key, Field::ValueType(key))?;
            let (elem, value) = skip_value(cursor, key, ty)?;
            keys.push(key);
            list.push(Entry { key: Span { start: key_end - key.len(), end: key_end }, ty, elem, value });
        }
        let by_key = in_order(&keys);
        for pair in by_key.windows(2) {
            let [first, second] = [pair[0] as usize, pair[1] as usize];
            if keys[first] == keys[second] {
                return Err(GgufError::DuplicateKey {
                    key: keys[second].to_owned(),
                    offset: list[second].key.start as u64,
                    first: list[first].key.start as u64,
                });
            }
        }
        Ok(Entries { list, by_key })
    }

    /// The value of `general.alignment`, or the default.
    pub(super) fn alignment(&self, bytes: &[u8]) -> Result<u32, GgufError> {
        match self.find("general.alignment", bytes) {
            None => Ok(DEFAULT_ALIGNMENT),
            Some(entry) => match value_of(entry, bytes) {
                Value::U32(n) if n.is_power_of_two() => Ok(n),
                other => {
                    Err(GgufError::Alignment { offset: entry.value.start as u64, found: other.describe() })
                }
            },
        }
    }

    fn find(&self, key: &str, bytes: &[u8]) -> Option<&Entry> {
        let compare = |&i: &u32| -> Ordering { key_of(&self.list[i as usize], bytes).cmp(key) };
        let at = self.by_key.binary_search_by(compare).ok()?;
        Some(&self.list[self.by_key[at] as usize])
    }
}

/// The indices of the keys in sorted order, ties in file order. A heap sort: the standard library's sort
/// would add 13 kB to the download of a web page.
fn in_order(keys: &[&str]) -> Vec<u32> {
    let mut heap: Vec<u32> = (0..keys.len() as u32).collect();
    let rank = |i: u32| (keys[i as usize], i);
    let sink = |heap: &mut [u32], mut at: usize| {
        while let Some(&left) = heap.get(2 * at + 1) {
            let right = heap.get(2 * at + 2).is_some_and(|&right| rank(right) > rank(left));
            let child = 2 * at + 1 + usize::from(right);
            if rank(heap[child]) <= rank(heap[at]) {
                break;
            }
            heap.swap(at, child);
            at = child;
        }
    };
    for at in (0..heap.len() / 2).rev() {
        sink(&mut heap, at);
    }
    for end in (1..heap.len()).rev() {
        heap.swap(0, end);
        sink(&mut heap[..end], 0);
    }
    heap
}

fn value_type(cursor: &mut Cursor<'_>, key: &str, field: Field<'_>) -> Result<ValueType, GgufError> {
    let offset = cursor.position();
    let found = cursor.u32(field)?;
    ValueType::from_id(found).ok_or_else(|| GgufError::ValueTypeId { key: key.to_owned(), offset, found })
}

/// Checks and skips a value.
fn skip_value(
    cursor: &mut Cursor<'_>,
    key: &str,
    ty: ValueType,
) -> Result<((ValueType, u64), Span), GgufError> {
    let mut start = cursor.position() as usize;
    let mut elem = (ty, 1);
    match ty {
        ValueType::Str => {
            cursor.str(Field::Value(key))?;
        }
        ValueType::Array => {
            let offset = cursor.position();
            let elem_ty = value_type(cursor, key, Field::ElementType(key))?;
            if elem_ty == ValueType::Array {
                return Err(GgufError::NestedArray { key: key.to_owned(), offset });
            }
            let n = cursor.u64(Field::ElementCount(key))?;
            elem = (elem_ty, n);
            start = cursor.position() as usize;
            let n_byte = cursor.expect_in_file(n, elem_ty.min_n_byte() as u64, Field::Value(key))?;
            if elem_ty == ValueType::Str {
                for i in 0..n {
                    cursor.str(Field::Element(key, i))?;
                }
            } else {
                cursor.take(n_byte, Field::Value(key))?;
            }
        }
        _ => {
            cursor.take(ty.min_n_byte() as u64, Field::Value(key))?;
        }
    }
    Ok((elem, Span { start, end: cursor.position() as usize }))
}

fn value_of<'a>(entry: &Entry, bytes: &'a [u8]) -> Value<'a> {
    match entry.ty {
        ValueType::Array => Value::Array(ArrayView {
            key: key_of(entry, bytes),
            elem: entry.elem.0,
            len: entry.elem.1,
            bytes: entry.value.of(bytes),
            offset: entry.value.start as u64,
        }),
        ty => Value::decode(ty, entry.value.of(bytes)).0,
    }
}

/// The metadata of a file: keys and values.
///
/// The getters are lenient where no information is lost: any integer type that fits is accepted as an
/// integer, and the numbers 0 and 1 as a bool. `opt_…` returns `None` for a missing key.
#[derive(Clone, Debug)]
pub struct Metadata {
    bytes: HeaderBytes,
    entries: Entries,
}

impl Metadata {
    pub(super) fn new(bytes: HeaderBytes, entries: Entries) -> Metadata {
        Metadata { bytes, entries }
    }

    /// A copy with other values for some keys, present or not; of two values for a key the last one counts.
    ///
    /// # Examples
    /// ```
    /// use ggml_format::{GgufWriter, Gguf, Value};
    ///
    /// let mut writer = GgufWriter::new();
    /// writer.set("llama.rope.freq_base", 10_000f32).unwrap();
    /// let bytes = writer.begin(Vec::new()).unwrap().finish().unwrap();
    /// let file = Gguf::parse(bytes.clone().into(), bytes.len() as u64).unwrap();
    /// let changes = [("llama.rope.freq_base", Value::F32(1e6)), ("general.name", Value::Str("x"))];
    /// let changed = file.metadata().with(changes);
    /// assert_eq!(changed.f32("llama.rope.freq_base").unwrap(), 1e6);
    /// assert_eq!(changed.str("general.name").unwrap(), "x");
    /// ```
    pub fn with<'v>(&self, changes: impl IntoIterator<Item = (&'v str, Value<'v>)>) -> Metadata {
        let mut list = self.entries.list.clone();
        let end = list.iter().map(|entry| entry.key.end.max(entry.value.end)).max().unwrap_or(0);
        let mut bytes = self.bytes[..end].to_vec();
        for (key, value) in changes {
            let start = bytes.len();
            bytes.extend(key.as_bytes());
            let key = Span { start, end: bytes.len() };
            let (elem, n_head) = match value {
                // Type and number of the elements precede them.
                Value::Array(array) => ((array.elem, array.len), 4 + 8),
                scalar => ((scalar.ty(), 1), 0),
            };
            let start = bytes.len() + n_head;
            value.encode(&mut bytes);
            let entry = Entry { key, ty: value.ty(), elem, value: Span { start, end: bytes.len() } };
            match list.iter_mut().find(|old| old.key.of(&bytes) == key.of(&bytes)) {
                Some(old) => *old = entry,
                None => list.push(entry),
            }
        }
        let keys: Vec<&str> = list.iter().map(|entry| key_of(entry, &bytes)).collect();
        let by_key = in_order(&keys);
        Metadata { entries: Entries { list, by_key }, bytes: bytes.into() }
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.entries.list.len()
    }

    /// True if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.entries.list.is_empty()
    }

    /// All pairs, in file order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Value<'_>)> {
        self.entries.list.iter().map(|e| (key_of(e, &self.bytes), value_of(e, &self.bytes)))
    }

    /// True if the key exists.
    pub fn contains(&self, key: &str) -> bool {
        self.entries.find(key, &self.bytes).is_some()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<Value<'_>> {
        self.entries.find(key, &self.bytes).map(|entry| value_of(entry, &self.bytes))
    }

    /// The value of a key as a `T`.
    ///
    /// # Errors
    /// [`GgufError::MissingKey`]; [`GgufError::KeyType`] if the value is not a `T`.
    pub fn value<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<T, GgufError> {
        self.opt_value(key)?
            .ok_or_else(|| GgufError::MissingKey { key: key.to_owned(), expected: T::EXPECTED })
    }

    /// The value of a key as a `T`, if the key exists.
    ///
    /// # Errors
    /// [`GgufError::KeyType`] if the value is not a `T`.
    pub fn opt_value<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<Option<T>, GgufError> {
        let Some(entry) = self.entries.find(key, &self.bytes) else { return Ok(None) };
        let value = value_of(entry, &self.bytes);
        value.to().map(Some).ok_or_else(|| GgufError::KeyType {
            key: key.to_owned(),
            offset: entry.value.start as u64,
            expected: T::EXPECTED,
            found: value.describe(),
        })
    }

    /// The elements of an array as a vector.
    ///
    /// # Errors
    /// As [`Metadata::value`]; [`GgufError::ElementType`] for the first element that is not a `T`.
    pub fn vec<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<Vec<T>, GgufError> {
        self.array(key)?.to_vec()
    }

    /// The elements of an array as a vector, if the key exists.
    ///
    /// # Errors
    /// As [`Metadata::vec`], except for the missing key.
    pub fn opt_vec<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<Option<Vec<T>>, GgufError> {
        self.opt_array(key)?.map(|array| array.to_vec()).transpose()
    }

    /// The strings of an array.
    ///
    /// # Errors
    /// As [`Metadata::value`]; [`GgufError::KeyType`] if the elements are not strings.
    pub fn strings(&self, key: &str) -> Result<StrIter<'_>, GgufError> {
        self.array(key)?.strings()
    }

    /// The strings of an array, if the key exists.
    ///
    /// # Errors
    /// [`GgufError::KeyType`] if the value is not an array of strings.
    pub fn opt_strings(&self, key: &str) -> Result<Option<StrIter<'_>>, GgufError> {
        self.opt_array(key)?.map(|array| array.strings()).transpose()
    }

    /// A value for each of `n` layers: an array of that length, or one scalar repeated.
    ///
    /// # Errors
    /// As [`Metadata::vec`]; [`GgufError::ElementCount`] for an array of another length;
    /// [`GgufError::LayerCount`] for a scalar that would apply to more than 65536 layers, because a file must
    /// not control the size of an allocation.
    pub fn per_layer<'a, T: FromValue<'a> + Clone>(
        &'a self,
        key: &str,
        n: usize,
    ) -> Result<Vec<T>, GgufError> {
        match self.get(key) {
            Some(Value::Array(array)) if array.len() == n as u64 => array.to_vec(),
            Some(Value::Array(array)) => Err(GgufError::ElementCount {
                key: key.to_owned(),
                offset: array.offset,
                expected: n as u64,
                found: array.len(),
            }),
            _ if n > MAX_LAYERS => {
                Err(GgufError::LayerCount { key: key.to_owned(), limit: MAX_LAYERS, found: n })
            }
            _ => Ok(vec![self.value(key)?; n]),
        }
    }
}

macro_rules! getters {
    ($($name:ident, $opt:ident: $ty:ty, $what:literal;)*) => {
        impl Metadata {$(
            #[doc = concat!("The value of a key: ", $what, ".\n\n# Errors\nAs [`Metadata::value`].")]
            pub fn $name(&self, key: &str) -> Result<$ty, GgufError> {
                self.value(key)
            }

            #[doc = concat!("The value of a key, if the key exists: ", $what, ".\n\n# Errors\nAs [`Metadata::opt_value`].")]
            pub fn $opt(&self, key: &str) -> Result<Option<$ty>, GgufError> {
                self.opt_value(key)
            }
        )*}
    };
}

getters! {
    u16, opt_u16: u16, "any integer that fits a u16";
    u32, opt_u32: u32, "any integer that fits a u32";
    u64, opt_u64: u64, "any integer that fits a u64";
    i64, opt_i64: i64, "any integer that fits an i64";
    f32, opt_f32: f32, "a number";
    bool, opt_bool: bool, "a bool, or 0 or 1";
    str, opt_str: &str, "a string";
    array, opt_array: ArrayView<'_>, "an array";
}
