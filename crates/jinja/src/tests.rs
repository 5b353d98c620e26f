//! Jinja's tests: `value is name(args)`.

use super::args::Args;
use super::ast::CompareOp;
use super::fault::{Result, fail};
use super::run::Run;
use super::value::Value;
use super::{filters, ops};

pub(super) const NAMES: [&str; 39] = [
    "boolean",
    "callable",
    "defined",
    "divisibleby",
    "escaped",
    "even",
    "false",
    "filter",
    "float",
    "in",
    "integer",
    "iterable",
    "lower",
    "mapping",
    "none",
    "number",
    "odd",
    "sameas",
    "sequence",
    "string",
    "test",
    "true",
    "undefined",
    "upper",
    "==",
    "eq",
    "equalto",
    "!=",
    "ne",
    "<",
    "lt",
    "lessthan",
    "<=",
    "le",
    ">",
    "gt",
    "greaterthan",
    ">=",
    "ge",
];

fn comparison(name: &str) -> Option<CompareOp> {
    Some(match name {
        "==" | "eq" | "equalto" => CompareOp::Eq,
        "!=" | "ne" => CompareOp::Ne,
        "<" | "lt" | "lessthan" => CompareOp::Lt,
        "<=" | "le" => CompareOp::Le,
        ">" | "gt" | "greaterthan" => CompareOp::Gt,
        ">=" | "ge" => CompareOp::Ge,
        "in" => CompareOp::In,
        _ => return None,
    })
}

impl Run<'_> {
    /// True if the test holds for `value`.
    pub(super) fn holds(&mut self, name: &str, value: &Value, args: Args) -> Result<bool> {
        if let Some(op) = comparison(name) {
            let [other] = args.bind(name, ["other"], 1)?;
            return self.compare(op, value, &other.unwrap_or(Value::None));
        }
        match name {
            "divisibleby" => {
                let [by] = args.bind(name, ["num"], 1)?;
                let by = by.unwrap_or(Value::None);
                let rest = self.binary(super::ast::BinaryOp::Rem, value, &by)?;
                return Ok(!rest.is_true());
            }
            "sameas" => {
                let [other] = args.bind(name, ["other"], 1)?;
                value.read(&self.meter)?;
                return Ok(is_same(value, &other.unwrap_or(Value::None)));
            }
            _ => {}
        }
        let [] = args.bind(name, [], 0)?;
        Ok(match name {
            "boolean" => matches!(value, Value::Bool(_)),
            "callable" => {
                matches!(
                    value,
                    Value::Macro(_)
                        | Value::Global(_)
                        | Value::Method(_)
                        | Value::Joiner(_)
                        | Value::Loop(..)
                        | Value::Undefined(_)
                )
            }
            "defined" => !value.is_undefined(),
            "undefined" => value.is_undefined(),
            "escaped" => false,
            "even" | "odd" => {
                ops::defined(value)?;
                let rest = self.binary(super::ast::BinaryOp::Rem, value, &Value::Int(2))?;
                rest.as_float() == Some(if name == "odd" { 1.0 } else { 0.0 })
            }
            "false" => matches!(value, Value::Bool(false)),
            "true" => matches!(value, Value::Bool(true)),
            "filter" => value.as_str().is_some_and(|name| filters::find(name).is_some()),
            "test" => value.as_str().is_some_and(|name| NAMES.contains(&name)),
            "float" => matches!(value, Value::Float(_)),
            "integer" => matches!(value, Value::Int(_)),
            "number" => value.as_float().is_some(),
            "iterable" => matches!(value, Value::Iter(_)) || value.has_len(),
            "sequence" => value.has_len() && !matches!(value, Value::View(..)),
            "mapping" => matches!(value, Value::Dict(_)),
            "none" => matches!(value, Value::None),
            "string" => matches!(value, Value::Str(_)),
            "lower" | "upper" => {
                let text = self.str(value)?;
                let text = text.as_str().unwrap_or_default();
                self.meter.read_closely(text)?;
                let (lower, upper) =
                    (text.chars().any(char::is_lowercase), text.chars().any(char::is_uppercase));
                if name == "lower" { lower && !upper } else { upper && !lower }
            }
            _ => return fail(format!("no test named '{}'", name.chars().take(40).collect::<String>())),
        })
    }
}

/// Python's `is`.
fn is_same(a: &Value, b: &Value) -> bool {
    use std::sync::Arc;
    match (a, b) {
        (Value::List(a), Value::List(b)) | (Value::Tuple(a), Value::Tuple(b)) => Arc::ptr_eq(a, b),
        (Value::Dict(a), Value::Dict(b)) => Arc::ptr_eq(a, b),
        (Value::Bool(_), Value::Bool(_)) | (Value::Int(_), Value::Int(_)) => a == b,
        (Value::Bool(_), _) | (_, Value::Bool(_)) => false,
        (Value::Float(_), Value::Int(_)) | (Value::Int(_), Value::Float(_)) => false,
        _ => a == b,
    }
}
