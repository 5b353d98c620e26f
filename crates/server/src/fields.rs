//! The JSON of requests, read field by field: an error names the path of the field, and `null` means absent.

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::error::ApiError;

/// An object of a request.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    map: &'a Map<String, Value>,
    /// Its own path; empty for the body.
    path: String,
}

type Read<T> = Result<T, ApiError>;

impl<'a> Fields<'a> {
    /// The fields of a value.
    pub(crate) fn of(value: &'a Value, path: impl Into<String>) -> Read<Fields<'a>> {
        let path = path.into();
        match value {
            Value::Object(map) => Ok(Fields { map, path }),
            _ if path.is_empty() => Err(ApiError::field("", "the body must be a JSON object")),
            _ => Err(ApiError::field(&*path, format!("`{path}` must be an object"))),
        }
    }

    /// Path of a field.
    pub(crate) fn path(&self, name: &str) -> String {
        if self.path.is_empty() { name.into() } else { format!("{}.{name}", self.path) }
    }

    /// The error of a field.
    pub(crate) fn wrong(&self, name: &str, expected: impl Display) -> ApiError {
        let path = self.path(name);
        let message = format!("`{path}` must be {expected}");
        ApiError::field(path, message)
    }

    /// A value, if it is there and not null.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        #[cfg(test)]
        recorded::add(self.path(name));
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// All fields.
    pub(crate) fn map(&self) -> &'a Map<String, Value> {
        self.map
    }

    /// A value that must be there.
    pub(crate) fn need<T>(&self, name: &str, value: Option<T>) -> Read<T> {
        let missing = || {
            let path = self.path(name);
            let message = format!("`{path}` is missing");
            ApiError::field(path, message)
        };
        value.ok_or_else(missing)
    }

    fn read<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Read<Option<T>> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| self.wrong(name, expected)),
        }
    }

    /// A string.
    pub(crate) fn text(&self, name: &str) -> Read<Option<&'a str>> {
        self.read(name, "a string", Value::as_str)
    }

    /// A truth value.
    pub(crate) fn flag(&self, name: &str) -> Read<Option<bool>> {
        self.read(name, "true or false", Value::as_bool)
    }

    /// A list.
    pub(crate) fn list(&self, name: &str) -> Read<Option<&'a [Value]>> {
        self.read(name, "a list", |value| value.as_array().map(Vec::as_slice))
    }

    /// An object.
    pub(crate) fn object(&self, name: &str) -> Read<Option<Fields<'a>>> {
        self.get(name).map(|value| Fields::of(value, self.path(name))).transpose()
    }

    /// A number within these bounds.
    pub(crate) fn number(&self, name: &str, range: RangeInclusive<f64>) -> Read<Option<f64>> {
        let Some(value) = self.read(name, "a number", Value::as_f64)? else { return Ok(None) };
        if range.contains(&value) { Ok(Some(value)) } else { Err(self.outside(name, &range)) }
    }

    /// An integer within these bounds; `3.0` is one, too.
    pub(crate) fn integer(&self, name: &str, range: RangeInclusive<i64>) -> Read<Option<i64>> {
        let whole = |value: &Value| {
            let float = || value.as_f64().filter(|x| x.fract() == 0.0 && x.abs() < 9e15).map(|x| x as i64);
            value.as_i64().or_else(float)
        };
        let Some(value) = self.read(name, "an integer", whole)? else { return Ok(None) };
        match range.contains(&value) {
            true => Ok(Some(value)),
            false if *range.end() == i64::MAX => Err(self.wrong(name, format!("at least {}", range.start()))),
            false => Err(self.outside(name, &range)),
        }
    }

    fn outside(&self, name: &str, range: &RangeInclusive<impl Display>) -> ApiError {
        self.wrong(name, format!("between {} and {}", range.start(), range.end()))
    }

    /// A string, or a list of strings, of at most `most`.
    pub(crate) fn texts(&self, name: &str, most: usize) -> Read<Option<Vec<String>>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let list = match value {
            Value::String(text) => Some(vec![text.clone()]),
            Value::Array(list) => list.iter().map(|v| v.as_str().map(String::from)).collect(),
            _ => None,
        };
        match list {
            None => Err(self.wrong(name, "a string or a list of strings")),
            Some(list) if list.len() > most => Err(self.wrong(name, format!("of at most {most} strings"))),
            list => Ok(list),
        }
    }
}

/// The paths of the fields that were read on a thread, for the test that compares them with the document of the API.
#[cfg(test)]
pub(crate) mod recorded {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    thread_local!(static PATHS: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) });

    pub(super) fn add(path: String) {
        PATHS.with_borrow_mut(|paths| paths.insert(path));
    }

    /// The paths since the last time.
    pub(crate) fn take() -> BTreeSet<String> {
        PATHS.take()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_name_the_path_and_null_is_absent() {
        let body = json!({"a": null, "b": {"c": "x", "d": 3.0, "e": 1.5}});
        let body = Fields::of(&body, "").unwrap();
        assert_eq!(body.text("a").unwrap(), None);
        let b = body.object("b").unwrap().unwrap();
        assert_eq!(b.integer("d", 0..=5).unwrap(), Some(3));
        assert_eq!(b.integer("e", 0..=5).unwrap_err().param.unwrap(), "b.e");
        assert_eq!(b.integer("d", 4..=5).unwrap_err().message, "`b.d` must be between 4 and 5");
        assert_eq!(b.integer("d", 4..=i64::MAX).unwrap_err().message, "`b.d` must be at least 4");
        assert_eq!(b.number("c", 0.0..=1.0).unwrap_err().message, "`b.c` must be a number");
        assert_eq!(b.need("f", None::<i64>).unwrap_err().message, "`b.f` is missing");
    }
}
