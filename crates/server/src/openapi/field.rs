//! Fields of bodies, and their JSON schemas.

use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::fields::Fields;

/// Values that a field takes.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Kind {
    /// Any value.
    Any,
    Text,
    Flag,
    /// Within these bounds; those of the type are none.
    Integer(i64, i64),
    /// Within these bounds; infinite ones are none.
    Number(f64, f64),
    /// One of these texts.
    Words(&'static [&'static str]),
    List(&'static Kind),
    /// An object with these fields.
    Object(fn() -> Vec<Field>),
    /// An object with other names.
    Map,
    /// A value of one of these kinds.
    Either(&'static [Kind]),
    /// No value but null.
    Null,
}

/// An integer without bounds.
pub(crate) const INTEGER: Kind = Kind::Integer(i64::MIN, i64::MAX);
/// A number of things.
pub(crate) const COUNT: Kind = Kind::Integer(0, i64::MAX);
/// A number without bounds.
pub(crate) const NUMBER: Kind = Kind::Number(f64::NEG_INFINITY, f64::INFINITY);

/// A field of an object.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Others may be absent, or null.
    pub(crate) is_needed: bool,
    pub(crate) about: &'static str,
}

/// A field that may be absent.
pub(crate) const fn may(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, is_needed: false, about }
}

/// A field that is always there.
pub(crate) const fn needs(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, is_needed: true, about }
}

/// A body with a name.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) name: &'static str,
    pub(crate) fields: fn() -> Vec<Field>,
    pub(crate) form: Form,
    /// A request may choose some of the fields, also of objects in them: they lie in one object then.
    pub(crate) is_chosen: bool,
}

/// The way in which a body consists of objects.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    One,
    List,
    /// A list if a request has several prompts.
    OneOrList,
}

impl Body {
    pub(crate) const fn new(name: &'static str, fields: fn() -> Vec<Field>) -> Body {
        Body { name, fields, form: Form::One, is_chosen: false }
    }

    pub(crate) const fn list(name: &'static str, fields: fn() -> Vec<Field>) -> Body {
        Body { form: Form::List, ..Body::new(name, fields) }
    }

    pub(crate) const fn one_or_list(name: &'static str, fields: fn() -> Vec<Field>) -> Body {
        Body { form: Form::OneOrList, ..Body::new(name, fields) }
    }

    /// Its schema.
    pub(super) fn schema(&self) -> Value {
        let mut object = object(&(self.fields)());
        if self.is_chosen {
            object["description"] = "With `response_fields` only these, by their paths".into();
            object["additionalProperties"] = true.into();
            if let Some(object) = object.as_object_mut() {
                object.remove("required");
            }
        }
        let list = || json!({"type": "array", "items": object});
        match self.form {
            Form::One => object,
            Form::List => list(),
            Form::OneOrList => json!({"anyOf": [object, list()]}),
        }
    }
}

impl Kind {
    fn schema(self) -> Value {
        match self {
            Kind::Any => json!({}),
            Kind::Text => json!({"type": "string"}),
            Kind::Flag => json!({"type": "boolean"}),
            Kind::Integer(from, to) => {
                let from = (from > i64::MIN).then(|| from.into());
                bounded("integer", from, (to < i64::MAX).then(|| to.into()))
            }
            Kind::Number(from, to) => {
                let finite = |x: f64| x.is_finite().then(|| x.into());
                bounded("number", finite(from), finite(to))
            }
            Kind::Words(words) => json!({"type": "string", "enum": words}),
            Kind::List(kind) => json!({"type": "array", "items": kind.schema()}),
            Kind::Object(fields) => object(&fields()),
            Kind::Map => json!({"type": "object"}),
            Kind::Either(kinds) => {
                json!({"anyOf": kinds.iter().map(|kind| kind.schema()).collect::<Vec<_>>()})
            }
            Kind::Null => json!({"type": "null"}),
        }
    }
}

/// Reads fields that have no effect, since the server does what their values here say. Others would not be honoured.
///
/// # Errors
/// The path of a field with another value, and what it has to be.
pub(crate) fn check(fields: &Fields<'_>, known: &[Field]) -> Result<(), ApiError> {
    for Field { name, kind, .. } in known {
        match *kind {
            Kind::Text => drop(fields.text(name)?),
            Kind::Flag => drop(fields.flag(name)?),
            Kind::Map => drop(fields.object(name)?),
            Kind::Integer(from, to) => drop(fields.integer(name, from..=to)?),
            Kind::Number(from, to) => drop(fields.number(name, from..=to)?),
            Kind::Words(words) => {
                if fields.text(name)?.is_some_and(|word| !words.contains(&word)) {
                    return Err(fields.wrong(name, format!("one of {}", words.join(", "))));
                }
            }
            Kind::List(&Kind::Words(words)) => {
                let is_known = |value: &Value| value.as_str().is_some_and(|word| words.contains(&word));
                if fields.list(name)?.is_some_and(|list| !list.iter().all(is_known)) {
                    return Err(fields.wrong(name, format!("a list of {}", words.join(", "))));
                }
            }
            Kind::Null if fields.get(name).is_some() => {
                return Err(fields.wrong(name, "absent: this server does not do that"));
            }
            Kind::Null => {}
            Kind::Any | Kind::List(_) | Kind::Object(_) | Kind::Either(_) => {
                unreachable!("the tables have none of these kinds")
            }
        }
    }
    Ok(())
}

fn bounded(kind: &str, from: Option<Value>, to: Option<Value>) -> Value {
    let mut schema = json!({"type": kind});
    for (name, bound) in [("minimum", from), ("maximum", to)] {
        if let Some(bound) = bound {
            schema[name] = bound;
        }
    }
    schema
}

/// An object with fields, and perhaps others.
fn object(fields: &[Field]) -> Value {
    let properties: Map<String, Value> =
        fields.iter().map(|field| (field.name.to_owned(), field.schema())).collect();
    let needed: Vec<&str> = fields.iter().filter(|field| field.is_needed).map(|field| field.name).collect();
    let mut object = json!({"type": "object", "properties": properties});
    if !needed.is_empty() {
        object["required"] = needed.into();
    }
    object
}

impl Field {
    /// Its schema.
    pub(super) fn schema(&self) -> Value {
        let mut schema = self.kind.schema();
        if !self.is_needed {
            or_null(&mut schema);
        }
        schema["description"] = self.about.into();
        schema
    }
}

/// Lets a schema take null, too.
fn or_null(schema: &mut Value) {
    if let Some(kinds) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        kinds.push(json!({"type": "null"}));
    }
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.push(Value::Null);
    }
    if let Some(kind) = schema.get("type").filter(|kind| **kind != "null").cloned() {
        schema["type"] = json!([kind, "null"]);
    }
}
