//! An interpreter of Jinja for chat templates, which come with models and are not trusted ([`Program`]), and for
//! templates of code, which are the program's own and reach each other by name ([`Environment`]).
//!
//! For chat templates it does what Jinja2's immutable sandbox does in transformers, within bounds that hold by
//! construction: the parser refuses deep sources (`parser`), values cannot nest deeply or contain themselves
//! (`value`), and memory and time are metered (`meter`). Nothing recurses further than these bounds, so a rendering
//! fits a stack of 1 MB.

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
#[cfg(feature = "rare-filters")]
mod filters_links;
mod filters_number;
#[cfg(feature = "rare-filters")]
mod filters_pages;
mod filters_text;
#[cfg(feature = "rare-filters")]
mod filters_wrap;
mod format;
mod format_spec;
mod given;
mod global;
mod globals;
mod json;
mod lexer;
mod marks;
mod meter;
mod methods;
mod modules;
mod ops;
mod parser;
mod platform;
mod print;
mod run;
#[cfg(test)]
mod scope_tests;
mod split;
mod tests;
mod text_methods;
mod time;
mod value;

use std::sync::Arc;

pub use environment::{Dialect, Environment, Loader};
pub use fault::{Fault, FaultKind, Place, Pos, Result};
pub use given::{Arguments, Function, Given};
pub use platform::{lower, parse_float, upper};
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
        let variables = variables.iter().map(|(name, json)| (*name, json, Origin::Template));
        Ok(self.render_traced(variables, now)?.text)
    }

    /// The same with the parts of the text that come from variables of [`Origin::Data`], however the template changes,
    /// splits and joins them.
    ///
    /// # Errors
    ///
    /// As [`Self::render`].
    pub fn render_traced<'p, 'v>(
        &'p self,
        variables: impl IntoIterator<Item = (&'p str, &'v serde_json::Value, Origin)>,
        now: Option<LocalTime>,
    ) -> Result<Rendered> {
        let unlimited = Arc::new(Meter::unlimited());
        let mut values = Vec::new();
        for (name, json, origin) in variables {
            values.push((name, from_json(&unlimited, json, origin)?));
        }
        run::Run::new(&environment::ALONE, Dialect::Chat, Arc::new(Meter::default()), values, now)?
            .render(self)
    }
}

/// Whose text a variable holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The template's author, or a program that vouches for the text.
    Template,
    /// Anyone. Names of fields count as data too; in fields of the names `words`, texts that are one word of ASCII
    /// letters, digits, `_` and `-` do not.
    Data {
        /// Names of fields.
        words: &'static [&'static str],
    },
}

impl Origin {
    /// The text of a field.
    fn text(self, meter: &Arc<Meter>, field: Option<&str>, text: &str) -> Result<Value> {
        let is_word = || text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
        match self {
            Origin::Data { words } if !(field.is_some_and(|name| words.contains(&name)) && is_word()) => {
                Value::data(meter, text)
            }
            _ => Value::text(meter, text),
        }
    }
}

/// A text, and the bytes of it that come from data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendered {
    /// The text.
    pub text: String,
    /// Ranges of its bytes that come from variables of [`Origin::Data`], in order.
    pub data: Vec<std::ops::Range<usize>>,
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
        let from_json = |json| from_json(&unlimited, json, Origin::Template);
        let values = variables.iter().map(|(name, json)| Ok((name.as_str(), from_json(json)?)));
        let values = values.collect::<Result<Vec<_>>>()?;
        let run = run::Run::new(self, Dialect::Code, Arc::new(Meter::generous()), values, None)?;
        Ok(run.render(program)?.text)
    }
}

/// JSON as a value. Its depth is bounded as that of all values.
fn from_json(meter: &Arc<Meter>, json: &serde_json::Value, origin: Origin) -> Result<Value> {
    fn convert(
        meter: &Arc<Meter>,
        json: &serde_json::Value,
        origin: Origin,
        field: Option<&str>,
        depth: u16,
    ) -> Result<Value> {
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
            serde_json::Value::String(text) => origin.text(meter, field, text),
            serde_json::Value::Array(items) => {
                let mut list = ListBuilder::new(meter)?;
                items
                    .iter()
                    .try_for_each(|item| list.push(convert(meter, item, origin, None, depth + 1)?))?;
                list.list()
            }
            serde_json::Value::Object(entries) => {
                let mut dict = DictBuilder::new(meter)?;
                for (key, value) in entries {
                    let value = convert(meter, value, origin, Some(key), depth + 1)?;
                    dict.insert(origin.text(meter, None, key)?, value)?;
                }
                dict.finish()
            }
        }
    }
    convert(meter, json, origin, None, 0)
}

/// Runs the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
