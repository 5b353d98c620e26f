//! An interpreter of Jinja for chat templates, which come with models and are not trusted.
//!
//! It does what Jinja2's immutable sandbox does in transformers, within bounds that hold by construction: the
//! parser refuses deep sources (`parser`), values cannot nest deeply or contain themselves (`value`), and
//! memory and time are metered (`meter`). Nothing recurses further than these bounds, so a rendering fits a
//! stack of 1 MB.

mod args;
mod ast;
mod eval;
mod expressions;
mod fault;
mod filters;
mod filters_choose;
mod filters_items;
mod filters_number;
mod filters_text;
mod format;
mod format_spec;
mod global;
mod globals;
mod json;
mod lexer;
mod meter;
mod methods;
mod ops;
mod parser;
mod print;
mod run;
mod split;
mod tests;
mod text_methods;
mod time;
mod value;

use std::sync::Arc;

pub use fault::{Fault, FaultKind, Result};
pub use time::LocalTime;

use meter::Meter;
use value::{DictBuilder, ListBuilder, Value};

/// A parsed template.
#[derive(Debug)]
pub struct Program {
    body: Vec<ast::Stmt>,
}

impl Program {
    pub fn parse(source: &str) -> Result<Program> {
        parser::parse(source).map(|body| Program { body })
    }

    /// Renders with `variables`, of which later ones override earlier ones.
    pub fn render<'p>(
        &'p self,
        variables: &[(&'p str, serde_json::Value)],
        now: Option<LocalTime>,
    ) -> Result<String> {
        let unlimited = Arc::new(Meter::unlimited());
        let mut values = Vec::with_capacity(variables.len());
        for (name, json) in variables {
            values.push((*name, from_json(&unlimited, json)?));
        }
        run::Run::new(Arc::new(Meter::default()), values, now)?.render(&self.body)
    }
}

/// JSON as a value. Its depth is bounded as that of all values.
fn from_json(meter: &Arc<Meter>, json: &serde_json::Value) -> Result<Value> {
    fn convert(meter: &Arc<Meter>, json: &serde_json::Value, depth: u16) -> Result<Value> {
        if depth > meter::MAX_VALUE_DEPTH {
            return Err(Fault::limit("levels of nested values", meter::MAX_VALUE_DEPTH.into()));
        }
        match json {
            serde_json::Value::Null => Ok(Value::None),
            serde_json::Value::Bool(b) => Ok(Value::Bool(*b)),
            serde_json::Value::Number(n) => Ok(match (n.as_i64(), n.as_u64()) {
                (Some(n), _) => Value::Int(n.into()),
                (_, Some(n)) => Value::Int(n.into()),
                _ => Value::Float(n.as_f64().unwrap_or(f64::NAN)),
            }),
            serde_json::Value::String(text) => Value::text(meter, text),
            serde_json::Value::Array(items) => {
                let mut list = ListBuilder::new(meter)?;
                items.iter().try_for_each(|item| list.push(convert(meter, item, depth + 1)?))?;
                list.list()
            }
            serde_json::Value::Object(entries) => {
                let mut dict = DictBuilder::new(meter)?;
                for (key, value) in entries {
                    dict.insert(Value::text(meter, key)?, convert(meter, value, depth + 1)?)?;
                }
                dict.finish()
            }
        }
    }
    convert(meter, json, 0)
}
