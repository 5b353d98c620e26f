//! Metadata values that own their content, for writing.

use super::error::GgufError;
use super::value::{ArrayView, Value, ValueType};

/// A metadata value that owns its strings and elements.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum OwnedValue {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    Str(String),
    Array(ArrayBuf),
    U64(u64),
    I64(i64),
    F64(f64),
}

impl OwnedValue {
    /// A view of the value.
    pub fn as_value(&self) -> Value<'_> {
        match self {
            &OwnedValue::U8(v) => Value::U8(v),
            &OwnedValue::I8(v) => Value::I8(v),
            &OwnedValue::U16(v) => Value::U16(v),
            &OwnedValue::I16(v) => Value::I16(v),
            &OwnedValue::U32(v) => Value::U32(v),
            &OwnedValue::I32(v) => Value::I32(v),
            &OwnedValue::F32(v) => Value::F32(v),
            &OwnedValue::Bool(v) => Value::Bool(v),
            OwnedValue::Str(v) => Value::Str(v),
            OwnedValue::Array(v) => Value::Array(v.view()),
            &OwnedValue::U64(v) => Value::U64(v),
            &OwnedValue::I64(v) => Value::I64(v),
            &OwnedValue::F64(v) => Value::F64(v),
        }
    }
}

impl From<Value<'_>> for OwnedValue {
    fn from(value: Value<'_>) -> OwnedValue {
        match value {
            Value::U8(v) => OwnedValue::U8(v),
            Value::I8(v) => OwnedValue::I8(v),
            Value::U16(v) => OwnedValue::U16(v),
            Value::I16(v) => OwnedValue::I16(v),
            Value::U32(v) => OwnedValue::U32(v),
            Value::I32(v) => OwnedValue::I32(v),
            Value::F32(v) => OwnedValue::F32(v),
            Value::Bool(v) => OwnedValue::Bool(v),
            Value::Str(v) => OwnedValue::Str(v.to_owned()),
            Value::Array(v) => {
                OwnedValue::Array(ArrayBuf { elem: v.elem, len: v.len, bytes: v.bytes.to_vec() })
            }
            Value::U64(v) => OwnedValue::U64(v),
            Value::I64(v) => OwnedValue::I64(v),
            Value::F64(v) => OwnedValue::F64(v),
        }
    }
}

/// An array that owns its elements, encoded as in a file.
#[derive(Clone, PartialEq, Debug)]
pub struct ArrayBuf {
    elem: ValueType,
    len: u64,
    bytes: Vec<u8>,
}

impl ArrayBuf {
    /// An empty array.
    ///
    /// # Errors
    /// [`GgufError::NestedArray`] if the element type is an array.
    pub fn new(elem: ValueType) -> Result<ArrayBuf, GgufError> {
        if elem == ValueType::Array {
            return Err(GgufError::NestedArray { key: String::new(), offset: 0 });
        }
        Ok(ArrayBuf { elem, len: 0, bytes: Vec::new() })
    }

    /// A view of the array.
    pub fn view(&self) -> ArrayView<'_> {
        ArrayView { key: "", elem: self.elem, len: self.len, bytes: &self.bytes, offset: 0 }
    }

    fn of<'a>(elem: ValueType, values: impl Iterator<Item = Value<'a>>) -> ArrayBuf {
        let mut array = ArrayBuf { elem, len: 0, bytes: Vec::new() };
        for value in values {
            value.encode(&mut array.bytes);
            array.len += 1;
        }
        array
    }
}

macro_rules! from_scalar {
    ($($variant:ident($ty:ty);)*) => {$(
        impl From<$ty> for OwnedValue {
            fn from(v: $ty) -> OwnedValue {
                OwnedValue::$variant(v)
            }
        }

        impl From<&[$ty]> for OwnedValue {
            fn from(v: &[$ty]) -> OwnedValue {
                OwnedValue::Array(ArrayBuf::of(ValueType::$variant, v.iter().map(|&v| Value::$variant(v))))
            }
        }

        impl From<Vec<$ty>> for OwnedValue {
            fn from(v: Vec<$ty>) -> OwnedValue {
                OwnedValue::from(v.as_slice())
            }
        }
    )*};
}

from_scalar! {
    U8(u8);
    I8(i8);
    U16(u16);
    I16(i16);
    U32(u32);
    I32(i32);
    F32(f32);
    Bool(bool);
    U64(u64);
    I64(i64);
    F64(f64);
}

impl From<String> for OwnedValue {
    fn from(v: String) -> OwnedValue {
        OwnedValue::Str(v)
    }
}

impl From<&str> for OwnedValue {
    fn from(v: &str) -> OwnedValue {
        OwnedValue::Str(v.to_owned())
    }
}

impl From<&[&str]> for OwnedValue {
    fn from(v: &[&str]) -> OwnedValue {
        OwnedValue::Array(ArrayBuf::of(ValueType::Str, v.iter().map(|v| Value::Str(v))))
    }
}

impl From<&[String]> for OwnedValue {
    fn from(v: &[String]) -> OwnedValue {
        OwnedValue::Array(ArrayBuf::of(ValueType::Str, v.iter().map(|v| Value::Str(v))))
    }
}

impl From<Vec<&str>> for OwnedValue {
    fn from(v: Vec<&str>) -> OwnedValue {
        OwnedValue::from(v.as_slice())
    }
}

impl From<Vec<String>> for OwnedValue {
    fn from(v: Vec<String>) -> OwnedValue {
        OwnedValue::from(v.as_slice())
    }
}
