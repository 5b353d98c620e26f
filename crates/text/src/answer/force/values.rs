//! Values in the notations of Gemma and Python, by JSON schema.

use std::collections::HashMap;

use serde_json::Value;

use super::error::Fault;
use super::lark::{Lark, quoted};
use super::tools::properties;
use crate::answer::schema::{choices, definition};
use crate::answer::syntax::GEMMA_QUOTE;

/// A notation of values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    /// `{key:<|"|>text<|"|>,other:[1,true]}`
    Gemma,
    /// `{"key": "text", "other": [1, True]}`
    Python,
}

/// `-1.5e10`; an exponent of three digits would exceed what numbers can hold.
const NUMBER: &str = r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?([eE][+-]?[0-9]{1,2})?";
const INTEGER: &str = "-?(0|[1-9][0-9]{0,17})";
/// Maximum nesting of schemas.
const MAX_DEPTH: usize = 64;

/// Writes the values of a schema, all parts of which are in `root`.
pub(super) struct Values<'a> {
    pub(super) lark: &'a mut Lark,
    pub(super) notation: Notation,
    root: &'a Value,
    /// The rules of references.
    rules: HashMap<String, String>,
    /// The rule of any value.
    any: Option<String>,
    depth: usize,
}

/// A field of an object, and true if it is required.
pub(super) type Field = (String, bool);

impl<'a> Values<'a> {
    pub(super) fn new(lark: &'a mut Lark, notation: Notation, root: &'a Value) -> Values<'a> {
        Values { lark, notation, root, rules: HashMap::new(), any: None, depth: 0 }
    }

    /// The fields of the arguments without their brackets.
    pub(super) fn arguments(&mut self, properties: &[(&str, &Value, bool)]) -> Result<String, Fault> {
        let equals = if self.notation == Notation::Python { "=" } else { ":" };
        let mut fields = Vec::new();
        for (key, schema, is_required) in properties {
            let field = format!("{} \"{equals}\" {}", self.key(key, true)?, self.value(schema)?);
            fields.push((field, *is_required));
        }
        Ok(self.fields(&fields))
    }

    fn value(&mut self, schema: &Value) -> Result<String, Fault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Fault::Schema("is too deep".to_owned()));
        }
        let value = self.value_inside(schema);
        self.depth -= 1;
        value
    }

    fn value_inside(&mut self, schema: &Value) -> Result<String, Fault> {
        if let Some(reference) = schema["$ref"].as_str() {
            return self.reference(reference);
        }
        if let Some(values) = choices(schema) {
            let all: Result<Vec<_>, _> = values.into_iter().map(|value| self.constant(value)).collect();
            return Ok(self.any_of(&all?));
        }
        for key in ["anyOf", "oneOf", "allOf"] {
            match &schema[key] {
                Value::Array(all) if key != "allOf" || all.len() == 1 => {
                    let all: Result<Vec<_>, _> = all.iter().map(|schema| self.value(schema)).collect();
                    return Ok(self.any_of(&all?));
                }
                Value::Null => {}
                _ => {
                    return Err(Fault::Schema(format!(
                        "has an `{key}`, which this notation does not support"
                    )));
                }
            }
        }
        match &schema["type"] {
            Value::String(name) => self.typed(name, schema),
            Value::Array(names) => {
                let names = names.iter().filter_map(Value::as_str);
                let all: Result<Vec<_>, _> = names.map(|name| self.typed(name, schema)).collect();
                Ok(self.any_of(&all?))
            }
            _ if schema.get("properties").is_some() => self.typed("object", schema),
            _ if schema.get("items").is_some() => self.typed("array", schema),
            _ => self.any(),
        }
    }

    fn any_of(&mut self, all: &[String]) -> String {
        self.lark.rule(&all.join(" | "))
    }

    fn reference(&mut self, to: &str) -> Result<String, Fault> {
        if let Some(name) = self.rules.get(to) {
            return Ok(name.clone());
        }
        let root = self.root;
        let Some(schema) = definition(root, to) else {
            return Err(Fault::Schema(format!("refers to `{to}`, which does not exist")));
        };
        let name = self.lark.reserve("r");
        self.rules.insert(to.to_owned(), name.clone());
        let body = self.value(schema)?;
        self.lark.set(&name, &body);
        Ok(name)
    }

    fn typed(&mut self, name: &str, schema: &Value) -> Result<String, Fault> {
        let is_bounded = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]
            .iter()
            .any(|key| schema.get(key).is_some());
        Ok(match name {
            "null" => quoted(self.word("null")),
            "boolean" => format!("({} | {})", quoted(self.word("true")), quoted(self.word("false"))),
            "integer" | "number" if is_bounded => {
                let mut schema = schema.clone();
                schema["type"] = name.into();
                self.lark.json(&schema)
            }
            "integer" => self.lark.regex(INTEGER),
            "number" => self.lark.regex(NUMBER),
            "string" => self.string(),
            "array" => self.array(schema)?,
            "object" => self.object(schema)?,
            _ => return Err(Fault::Schema(format!("has the unknown type `{name}`"))),
        })
    }

    fn word<'w>(&self, word: &'w str) -> &'w str {
        match (self.notation, word) {
            (Notation::Python, "null") => "None",
            (Notation::Python, "true") => "True",
            (Notation::Python, "false") => "False",
            _ => word,
        }
    }

    fn string(&mut self) -> String {
        match self.notation {
            Notation::Gemma => {
                let text = self.lark.until(GEMMA_QUOTE);
                format!("{} {text}", self.lark.marker(GEMMA_QUOTE))
            }
            Notation::Python => {
                let double = self.lark.regex(r#""([^"\\\x00-\x1F]|\\["'\\nrt])*""#);
                let single = self.lark.regex(r"'([^'\\\x00-\x1F]|\\[\x22'\\nrt])*'");
                format!("({double} | {single})")
            }
        }
    }

    fn constant(&mut self, value: &Value) -> Result<String, Fault> {
        Ok(match value {
            Value::String(text) if self.notation == Notation::Python => quoted(&python_string(text)),
            Value::String(text) if text.contains(GEMMA_QUOTE) => {
                return Err(Fault::Schema(format!("lists a text with the marker `{GEMMA_QUOTE}`")));
            }
            Value::String(text) => {
                let quote = self.lark.marker(GEMMA_QUOTE);
                format!("{quote} {} {quote}", quoted(text))
            }
            Value::Array(items) => {
                let items: Result<Vec<_>, _> = items.iter().map(|item| self.constant(item)).collect();
                let separator = self.comma();
                format!("\"[\" {} \"]\"", items?.join(&format!(" {separator} ")))
            }
            Value::Object(entries) => {
                let mut fields = Vec::new();
                for (key, value) in entries {
                    fields.push((
                        format!("{} {} {}", self.key(key, false)?, self.colon(), self.constant(value)?),
                        true,
                    ));
                }
                format!("\"{{\" {} \"}}\"", self.fields(&fields))
            }
            Value::Null => quoted(self.word("null")),
            Value::Bool(is) => quoted(self.word(if *is { "true" } else { "false" })),
            Value::Number(number) => quoted(&number.to_string()),
        })
    }

    /// A key: a word, or a string where words cannot be keys or the key is no word.
    fn key(&mut self, key: &str, is_argument: bool) -> Result<String, Fault> {
        let is_word = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || c == '_');
        match is_word && (is_argument || self.notation == Notation::Gemma) {
            true => Ok(quoted(key)),
            false => self.constant(&Value::String(key.to_owned())),
        }
    }

    fn comma(&mut self) -> String {
        format!("\",\" {}", self.lark.space())
    }

    fn colon(&mut self) -> String {
        format!("\":\" {}", self.lark.space())
    }

    fn array(&mut self, schema: &Value) -> Result<String, Fault> {
        let item = match schema.get("items") {
            Some(items) => self.value(items)?,
            None => self.any()?,
        };
        // It is written twice.
        let item = self.lark.rule(&item);
        let count = |key: &str| schema[key].as_u64();
        let (min, max) = (count("minItems").unwrap_or(0), count("maxItems"));
        Ok(match max {
            Some(max) if max < min => return Err(Fault::Schema("allows no number of items".to_owned())),
            Some(0) => "\"[\" \"]\"".to_owned(),
            _ => {
                let more = max.map_or(String::new(), |max| (max - 1).to_string());
                let comma = self.comma();
                let items = format!("{item} ({comma} {item}){{{},{more}}}", min.saturating_sub(1));
                format!("\"[\" ({items}){} \"]\"", if min == 0 { "?" } else { "" })
            }
        })
    }

    fn object(&mut self, schema: &Value) -> Result<String, Fault> {
        let properties = properties(schema);
        if properties.is_empty() {
            return match &schema["additionalProperties"] {
                Value::Bool(false) => Ok("\"{\" \"}\"".to_owned()),
                Value::Object(_) => {
                    let value = self.value(&schema["additionalProperties"])?;
                    Ok(self.map(&value))
                }
                _ => {
                    let value = self.any()?;
                    Ok(self.map(&value))
                }
            };
        }
        let mut fields = Vec::new();
        for (key, schema, is_required) in properties {
            let field = format!("{} {} {}", self.key(key, false)?, self.colon(), self.value(schema)?);
            fields.push((field, is_required));
        }
        Ok(format!("\"{{\" {} \"}}\"", self.fields(&fields)))
    }

    /// An object with any keys.
    fn map(&mut self, value: &str) -> String {
        let key = match self.notation {
            Notation::Gemma => self.lark.regex("[A-Za-z_][A-Za-z0-9_]*"),
            Notation::Python => self.string(),
        };
        let (comma, colon) = (self.comma(), self.colon());
        let field = self.lark.rule(&format!("{key} {colon} {value}"));
        format!("\"{{\" ({field} ({comma} {field})*)? \"}}\"")
    }

    /// The required fields, then the optional ones, with commas between them.
    fn fields(&mut self, fields: &[Field]) -> String {
        let comma = self.comma();
        let (required, optional): (Vec<&Field>, Vec<&Field>) =
            fields.iter().partition(|(_, is_required)| *is_required);
        // Rules for what may follow the field before each optional one.
        let mut begins = Vec::new();
        let mut rest = String::new();
        for (field, _) in optional.into_iter().rev() {
            let field = self.lark.rule(field);
            begins.push(format!("{field} {rest}"));
            rest = self.lark.rule(&format!("({comma} {field})? {rest}"));
        }
        if required.is_empty() {
            begins.reverse();
            return if begins.is_empty() { String::new() } else { format!("({})?", begins.join(" | ")) };
        }
        let required: Vec<_> = required.into_iter().map(|(field, _)| field.as_str()).collect();
        format!("{} {rest}", required.join(&format!(" {comma} ")))
    }

    /// Any value.
    fn any(&mut self) -> Result<String, Fault> {
        if let Some(name) = &self.any {
            return Ok(name.clone());
        }
        let name = self.lark.reserve("r");
        self.any = Some(name.clone());
        let mut all = vec![self.map(&name)];
        let comma = self.comma();
        all.push(format!("\"[\" ({name} ({comma} {name})*)? \"]\""));
        for kind in ["string", "number", "boolean", "null"] {
            all.push(self.typed(kind, &Value::Null)?);
        }
        self.lark.set(&name, &all.join(" | "));
        Ok(name)
    }
}

/// A string as Python writes it.
fn python_string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out += "\\n",
            '\r' => out += "\\r",
            '\t' => out += "\\t",
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}
