//! An interpreter of Jinja for chat templates, which come with models and are not trusted ([`Program`]), and for
//! templates of code, which are the program's own and reach each other by name ([`Environment`]).
//!
//! For chat templates it does what Jinja2's immutable sandbox does in transformers, within bounds that hold by
//! construction: the parser refuses deep sources (`parser`), values cannot nest deeply or contain themselves
//! (`value`), and memory and time are metered (`meter`). Nothing recurses further than these bounds, so a rendering fits a
//! stack of 1 MB.

mod args;
mod ast;
mod custom;
mod decimal;
mod environment;
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
mod given;
mod global;
mod globals;
mod json;
mod lexer;
mod meter;
mod methods;
mod modules;
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

pub use environment::{Dialect, Environment, Loader};
pub use fault::{Fault, FaultKind, Place, Pos, Result};
pub use given::{Arguments, Function, Given};
pub use time::LocalTime;

use meter::Meter;
use value::{DictBuilder, ListBuilder, Value};

/// A parsed chat template.
#[derive(Debug)]
pub struct Program {
    name: Option<Arc<str>>,
    body: Vec<ast::Stmt>,
}

impl Program {
    /// Parses a chat template.
    ///
    /// # Errors
    ///
    /// If it is no valid template, or too large or too deep.
    pub fn parse(source: &str) -> Result<Program> {
        parser::parse(source, Dialect::Chat).map(|body| Program { name: None, body })
    }

    /// Parses a template of code.
    fn named(name: &str, source: &str) -> Result<Program> {
        let name: Option<Arc<str>> = Some(name.into());
        match parser::parse(source, Dialect::Code) {
            Ok(body) => Ok(Program { name, body }),
            Err(fault) => Err(fault.within(name.as_ref())),
        }
    }

    /// Renders with `variables`, of which later ones override earlier ones; `strftime_now` prints `now`.
    ///
    /// # Errors
    ///
    /// If the template refuses them, fails, or exceeds a limit.
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
        run::Run::new(&environment::ALONE, Dialect::Chat, Arc::new(Meter::default()), values, now)?
            .render(self)
    }
}

impl Environment {
    /// Renders a template.
    ///
    /// # Errors
    ///
    /// The failure with its place, and the places that include it.
    pub fn render(
        &self,
        name: &str,
        variables: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<String> {
        let Some(program) = self.find(name)? else { return environment::missing(name) };
        let unlimited = Arc::new(Meter::unlimited());
        let values = variables.iter().map(|(name, json)| Ok((name.as_str(), from_json(&unlimited, json)?)));
        let values = values.collect::<Result<Vec<_>>>()?;
        run::Run::new(self, Dialect::Code, Arc::new(Meter::generous()), values, None)?.render(program)
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

/// Runs the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
