//! Metadata values, viewed in the bytes of the file.

use std::fmt;

use super::error::GgufError;

/// The type of a metadata value.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ValueType {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    Str,
    Array,
    U64,
    I64,
    F64,
}

/// Types in the order of their ids: name, and bytes of a value (a minimum for strings and arrays).
const VALUE_TYPES: [(ValueType, &str, usize); 13] = [
    (ValueType::U8, "u8", 1),
    (ValueType::I8, "i8", 1),
    (ValueType::U16, "u16", 2),
    (ValueType::I16, "i16", 2),
    (ValueType::U32, "u32", 4),
    (ValueType::I32, "i32", 4),
    (ValueType::F32, "f32", 4),
    (ValueType::Bool, "bool", 1),
    (ValueType::Str, "string", 8),
    (ValueType::Array, "array", 12),
    (ValueType::U64, "u64", 8),
    (ValueType::I64, "i64", 8),
    (ValueType::F64, "f64", 8),
];

impl ValueType {
    /// The type with this id in a file.
    pub fn from_id(id: u32) -> Option<ValueType> {
        VALUE_TYPES.get(id as usize).map(|row| row.0)
    }

    /// The id of the type in a file.
    pub fn id(self) -> u32 {
        self as u32
    }

    /// The type's name, such as `u32`.
    pub fn name(self) -> &'static str {
        VALUE_TYPES[self as usize].1
    }

    /// Bytes of a value in a file; for strings and arrays, the bytes of an empty one.
    pub fn min_n_byte(self) -> usize {
        VALUE_TYPES[self as usize].2
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A metadata value; strings and arrays borrow from the file's bytes.
#[derive(Copy, Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Value<'a> {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    Str(&'a str),
    Array(ArrayView<'a>),
    U64(u64),
    I64(i64),
    F64(f64),
}

impl<'a> Value<'a> {
    /// The type of the value.
    pub fn ty(self) -> ValueType {
        match self {
            Value::U8(_) => ValueType::U8,
            Value::I8(_) => ValueType::I8,
            Value::U16(_) => ValueType::U16,
            Value::I16(_) => ValueType::I16,
            Value::U32(_) => ValueType::U32,
            Value::I32(_) => ValueType::I32,
            Value::F32(_) => ValueType::F32,
            Value::Bool(_) => ValueType::Bool,
            Value::Str(_) => ValueType::Str,
            Value::Array(_) => ValueType::Array,
            Value::U64(_) => ValueType::U64,
            Value::I64(_) => ValueType::I64,
            Value::F64(_) => ValueType::F64,
        }
    }

    /// The value as a `T`, if the conversion is lossless; any integer type that fits is accepted.
    pub fn to<T: FromValue<'a>>(self) -> Option<T> {
        T::from_value(self)
    }

    /// Reads a scalar or string from the front of `bytes`, whose content was checked when the file was read.
    pub(super) fn decode(ty: ValueType, bytes: &'a [u8]) -> (Value<'a>, &'a [u8]) {
        fn number<const N: usize>(bytes: &[u8]) -> ([u8; N], &[u8]) {
            let (head, rest) = bytes.split_first_chunk().expect("the value's length was checked on reading");
            (*head, rest)
        }
        macro_rules! number {
            ($variant:ident, $ty:ty) => {{
                let (head, rest) = number(bytes);
                (Value::$variant(<$ty>::from_le_bytes(head)), rest)
            }};
        }
        match ty {
            ValueType::U8 => number!(U8, u8),
            ValueType::I8 => number!(I8, i8),
            ValueType::U16 => number!(U16, u16),
            ValueType::I16 => number!(I16, i16),
            ValueType::U32 => number!(U32, u32),
            ValueType::I32 => number!(I32, i32),
            ValueType::F32 => number!(F32, f32),
            ValueType::U64 => number!(U64, u64),
            ValueType::I64 => number!(I64, i64),
            ValueType::F64 => number!(F64, f64),
            ValueType::Bool => {
                let ([byte], rest) = number(bytes);
                (Value::Bool(byte != 0), rest)
            }
            ValueType::Str => {
                let (n_byte, rest) = number(bytes);
                let (text, rest) = rest.split_at(u64::from_le_bytes(n_byte) as usize);
                (Value::Str(std::str::from_utf8(text).expect("the text was checked on reading")), rest)
            }
            ValueType::Array => unreachable!("arrays are views, and arrays of arrays are refused on reading"),
        }
    }

    /// Appends the value as stored in a file, without its type.
    pub(super) fn encode(self, out: &mut Vec<u8>) {
        match self {
            Value::U8(v) => out.push(v),
            Value::I8(v) => out.extend(v.to_le_bytes()),
            Value::U16(v) => out.extend(v.to_le_bytes()),
            Value::I16(v) => out.extend(v.to_le_bytes()),
            Value::U32(v) => out.extend(v.to_le_bytes()),
            Value::I32(v) => out.extend(v.to_le_bytes()),
            Value::F32(v) => out.extend(v.to_le_bytes()),
            Value::U64(v) => out.extend(v.to_le_bytes()),
            Value::I64(v) => out.extend(v.to_le_bytes()),
            Value::F64(v) => out.extend(v.to_le_bytes()),
            Value::Bool(v) => out.push(u8::from(v)),
            Value::Str(v) => {
                out.extend((v.len() as u64).to_le_bytes());
                out.extend(v.as_bytes());
            }
            Value::Array(v) => {
                out.extend(v.elem.id().to_le_bytes());
                out.extend(v.len.to_le_bytes());
                out.extend(v.bytes);
            }
        }
    }

    /// The value for an error message: its type and, if short, its content.
    pub(super) fn describe(self) -> String {
        match self {
            Value::Str(text) if text.len() <= 40 => format!("string {text:?}"),
            Value::Str(text) => format!("string of {} bytes", text.len()),
            Value::Array(array) => format!("array of {} {}", array.len, array.elem),
            scalar => match scalar.to::<i128>() {
                Some(v) => format!("{} {v}", scalar.ty()),
                None => match scalar {
                    Value::F32(v) => format!("f32 {v}"),
                    Value::F64(v) => format!("f64 {v}"),
                    other => other.ty().to_string(),
                },
            },
        }
    }
}

/// A type that a [`Value`] can be converted to without loss.
pub trait FromValue<'a>: Sized {
    /// The expected value with its article, for error messages.
    const EXPECTED: &'static str;

    /// The value as `Self`; `None` if it has another type or does not fit.
    fn from_value(value: Value<'a>) -> Option<Self>;
}

macro_rules! from_integer {
    ($($int:ty, $expected:literal;)*) => {$(
        impl<'a> FromValue<'a> for $int {
            const EXPECTED: &'static str = $expected;

            fn from_value(value: Value<'a>) -> Option<$int> {
                match value {
                    Value::U8(v) => v.try_into().ok(),
                    Value::I8(v) => v.try_into().ok(),
                    Value::U16(v) => v.try_into().ok(),
                    Value::I16(v) => v.try_into().ok(),
                    Value::U32(v) => v.try_into().ok(),
                    Value::I32(v) => v.try_into().ok(),
                    Value::U64(v) => v.try_into().ok(),
                    Value::I64(v) => v.try_into().ok(),
                    Value::Bool(v) => Some(v.into()),
                    Value::F32(_) | Value::F64(_) | Value::Str(_) | Value::Array(_) => None,
                }
            }
        }
    )*};
}

from_integer! {
    u8, "an integer from 0 to 2^8 - 1";
    i8, "an integer from -2^7 to 2^7 - 1";
    u16, "an integer from 0 to 2^16 - 1";
    i16, "an integer from -2^15 to 2^15 - 1";
    u32, "an integer from 0 to 2^32 - 1";
    i32, "an integer from -2^31 to 2^31 - 1";
    u64, "an integer from 0 to 2^64 - 1";
    i64, "an integer from -2^63 to 2^63 - 1";
    i128, "an integer";
    usize, "an integer that fits into memory";
}

impl<'a> FromValue<'a> for f64 {
    const EXPECTED: &'static str = "a number";

    fn from_value(value: Value<'a>) -> Option<f64> {
        match value {
            Value::F32(v) => Some(v.into()),
            Value::F64(v) => Some(v),
            Value::Bool(_) => None,
            integer => integer.to::<i128>().map(|v| v as f64),
        }
    }
}

impl<'a> FromValue<'a> for f32 {
    const EXPECTED: &'static str = "a number";

    /// An f64 or a large integer is rounded.
    fn from_value(value: Value<'a>) -> Option<f32> {
        match value {
            Value::F32(v) => Some(v),
            other => other.to::<f64>().map(|v| v as f32),
        }
    }
}

impl<'a> FromValue<'a> for bool {
    const EXPECTED: &'static str = "a bool";

    fn from_value(value: Value<'a>) -> Option<bool> {
        match value.to::<i128>()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl<'a> FromValue<'a> for &'a str {
    const EXPECTED: &'static str = "a string";

    fn from_value(value: Value<'a>) -> Option<&'a str> {
        match value {
            Value::Str(v) => Some(v),
            _ => None,
        }
    }
}

impl<'a> FromValue<'a> for String {
    const EXPECTED: &'static str = "a string";

    fn from_value(value: Value<'a>) -> Option<String> {
        value.to::<&str>().map(str::to_owned)
    }
}

impl<'a> FromValue<'a> for ArrayView<'a> {
    const EXPECTED: &'static str = "an array";

    fn from_value(value: Value<'a>) -> Option<ArrayView<'a>> {
        match value {
            Value::Array(v) => Some(v),
            _ => None,
        }
    }
}

/// An array of scalars or strings, still in the bytes of the file.
#[derive(Copy, Clone, Debug)]
pub struct ArrayView<'a> {
    pub(super) key: &'a str,
    pub(super) elem: ValueType,
    pub(super) len: u64,
    /// The elements only; their content was checked.
    pub(super) bytes: &'a [u8],
    /// Offset of the elements in the file.
    pub(super) offset: u64,
}

/// Arrays of the same elements are equal, whatever their keys.
impl PartialEq for ArrayView<'_> {
    fn eq(&self, other: &ArrayView<'_>) -> bool {
        (self.elem, self.len) == (other.elem, other.len) && self.bytes == other.bytes
    }
}

impl<'a> ArrayView<'a> {
    /// The type of the elements; never an array.
    pub fn elem(&self) -> ValueType {
        self.elem
    }

    /// Number of elements.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements as values.
    pub fn iter(&self) -> ArrayIter<'a> {
        ArrayIter { elem: self.elem, n_left: self.len, bytes: self.bytes }
    }

    /// The elements as strings.
    ///
    /// # Errors
    /// [`GgufError::KeyType`] if they are not strings.
    pub fn strings(&self) -> Result<StrIter<'a>, GgufError> {
        if self.elem == ValueType::Str {
            return Ok(StrIter(self.iter()));
        }
        Err(GgufError::KeyType {
            key: self.key.to_owned(),
            offset: self.offset,
            expected: "an array of strings",
            found: Value::Array(*self).describe(),
        })
    }

    /// The elements as a vector of `T`; any integer type is accepted if its values fit.
    ///
    /// # Errors
    /// [`GgufError::ElementType`] for the first element that is not a `T`.
    pub fn to_vec<T: FromValue<'a>>(&self) -> Result<Vec<T>, GgufError> {
        // The elements are in memory, and each takes at least a byte, so the length fits.
        let mut out = Vec::with_capacity(self.len as usize);
        for (index, value) in self.iter().enumerate() {
            out.push(value.to().ok_or_else(|| GgufError::ElementType {
                key: self.key.to_owned(),
                index: index as u64,
                offset: self.offset,
                expected: T::EXPECTED,
                found: value.describe(),
            })?);
        }
        Ok(out)
    }
}

impl<'a> IntoIterator for ArrayView<'a> {
    type Item = Value<'a>;
    type IntoIter = ArrayIter<'a>;

    fn into_iter(self) -> ArrayIter<'a> {
        self.iter()
    }
}

/// The elements of an [`ArrayView`], in order.
#[derive(Clone, Debug)]
pub struct ArrayIter<'a> {
    elem: ValueType,
    n_left: u64,
    bytes: &'a [u8],
}

impl<'a> Iterator for ArrayIter<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        self.n_left = self.n_left.checked_sub(1)?;
        let (value, rest) = Value::decode(self.elem, self.bytes);
        self.bytes = rest;
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.n_left as usize, Some(self.n_left as usize))
    }
}

impl ExactSizeIterator for ArrayIter<'_> {}

/// The elements of an array of strings, in order.
#[derive(Clone, Debug)]
pub struct StrIter<'a>(ArrayIter<'a>);

impl<'a> Iterator for StrIter<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        match self.0.next()? {
            Value::Str(text) => Some(text),
            _ => unreachable!("the element type was checked when the iterator was made"),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for StrIter<'_> {}
