//! JSON schemas of arguments: references, and the types of values that a schema allows.

use serde_json::Value;

/// Maximum length of a chain of references and combinations that is followed.
const MAX_DEPTH: usize = 16;
/// Maximum number of schemas that are looked at for the types of one: definitions may refer to each other in many ways.
const MAX_VISITS: usize = 200;

/// Types of JSON values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Types(u8);

/// The types by their names in schemas; a number without a fraction is an `integer` and a `number`.
const NAMES: [(&str, Types); 7] = [
    ("null", Types(1)),
    ("boolean", Types(2)),
    ("integer", Types(4)),
    ("number", Types(4 | 8)),
    ("string", Types(16)),
    ("array", Types(32)),
    ("object", Types(64)),
];

impl Types {
    pub(super) const ANY: Types = Types(127);
    pub(super) const STRING: Types = Types(16);

    /// The types that `schema` allows, which is a part of `root`.
    pub(super) fn of(schema: &Value, root: &Value) -> Types {
        Types::at(schema, root, &mut { MAX_VISITS })
    }

    fn at(schema: &Value, root: &Value, visits: &mut usize) -> Types {
        let mut types = Types::ANY;
        let Some(fields) = schema.as_object().filter(|_| *visits > 0) else { return types };
        *visits -= 1;
        for (key, value) in fields {
            let found = match key.as_str() {
                "type" => any(value, &mut |name| name.as_str().map_or(Types::ANY, Types::named)),
                "enum" => any(value, &mut Types::of_value),
                "const" => Types::of_value(value),
                "anyOf" | "oneOf" => any(value, &mut |part| Types::at(part, root, visits)),
                "allOf" => {
                    let mut all = Types::ANY;
                    any(value, &mut |part| {
                        all.0 &= Types::at(part, root, visits).0;
                        all
                    });
                    all
                }
                "$ref" => match value.as_str().and_then(|to| definition(root, to)) {
                    Some(to) => Types::at(to, root, visits),
                    None => continue,
                },
                _ => continue,
            };
            types.0 &= found.0;
        }
        types
    }

    fn named(name: &str) -> Types {
        NAMES.iter().find(|(known, _)| *known == name).map_or(Types::ANY, |(_, types)| *types)
    }

    /// The type of `value`.
    pub(super) fn of_value(value: &Value) -> Types {
        Types(match value {
            Value::Null => 1,
            Value::Bool(_) => 2,
            Value::Number(number) if number.is_f64() && number.as_f64().is_some_and(|x| x.fract() != 0.0) => {
                8
            }
            Value::Number(_) => 4,
            Value::String(_) => 16,
            Value::Array(_) => 32,
            Value::Object(_) => 64,
        })
    }

    /// True if some type is in both.
    pub(super) fn meets(self, other: Types) -> bool {
        self.0 & other.0 != 0
    }

    /// True if strings are the only type: `Some(true)`, or no type: `Some(false)`.
    pub(super) fn is_string(self) -> Option<bool> {
        match self.meets(Types::STRING) {
            true => (self == Types::STRING).then_some(true),
            false => Some(false),
        }
    }
}

/// The types of all values of a list, or of a value that is none.
fn any(value: &Value, of: &mut dyn FnMut(&Value) -> Types) -> Types {
    match value {
        Value::Array(values) => values.iter().fold(Types(0), |all, value| Types(all.0 | of(value).0)),
        value => of(value),
    }
}

/// The values that `schema` lists, if it does.
pub(super) fn choices(schema: &Value) -> Option<Vec<&Value>> {
    match (schema.get("const"), &schema["enum"]) {
        (Some(value), _) => Some(vec![value]),
        (None, Value::Array(values)) => Some(values.iter().collect()),
        _ => None,
    }
}

/// The part of `root` that a reference such as `#/$defs/a` leads to.
pub(super) fn definition<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    root.pointer(reference.strip_prefix('#')?)
}

/// The schema behind the references that `schema` consists of.
pub(super) fn resolved<'s>(schema: &'s Value, root: &'s Value) -> &'s Value {
    let mut schema = schema;
    for _ in 0..MAX_DEPTH {
        match schema["$ref"].as_str().and_then(|to| definition(root, to)) {
            Some(to) => schema = to,
            None => break,
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_are_those_that_all_keywords_allow() {
        let root = json!({"$defs": {"word": {"enum": ["a", "b"]}, "loop": {"$ref": "#/$defs/loop"}}});
        let is_string = |schema: Value| Types::of(&schema, &root).is_string();
        for schema in [
            json!({"type": "string"}),
            json!({"type": ["string"]}),
            json!({"enum": ["a"]}),
            json!({"const": "a"}),
            json!({"$ref": "#/$defs/word"}),
            json!({"anyOf": [{"$ref": "#/$defs/word"}, {"type": "string", "maxLength": 2}]}),
            json!({"type": ["string", "null"], "enum": ["a"]}),
            json!({"allOf": [{}, {"type": "string"}]}),
        ] {
            assert_eq!(is_string(schema.clone()), Some(true), "{schema}");
        }
        for schema in
            [json!({"type": "integer"}), json!({"enum": [1, null]}), json!({"type": ["null", "array"]})]
        {
            assert_eq!(is_string(schema.clone()), Some(false), "{schema}");
        }
        for schema in
            [json!({}), json!(true), json!({"type": ["string", "null"]}), json!({"$ref": "#/$defs/loop"})]
        {
            assert_eq!(is_string(schema.clone()), None, "{schema}");
        }
        let all: Vec<_> = (0..20).map(|_| json!({"$ref": "#/$defs/all"})).collect();
        let many = json!({"$defs": {"all": {"anyOf": all}}});
        assert_eq!(Types::of(&many["$defs"]["all"], &many).is_string(), None);
        let integer = Types::of(&json!({"type": "integer"}), &root);
        assert!(integer.meets(Types::of_value(&json!(3))) && !integer.meets(Types::of_value(&json!(3.5))));
        let number = Types::of(&json!({"type": "number"}), &root);
        assert!(number.meets(Types::of_value(&json!(3))) && number.meets(Types::of_value(&json!(3.5))));
    }
}
