//! JavaScript bindings of the two languages.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Value;
use wasm_bindgen::prelude::*;

#[cfg(feature = "jinja")]
use crate::Renderer;
use crate::{Macros, Options, Output, Preprocessor};

/// A text without directives and macros, and the origin of its lines.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Processed {
    output: Output,
}

#[wasm_bindgen]
impl Processed {
    /// The text.
    #[wasm_bindgen(getter)]
    pub fn text(&self) -> String {
        self.output.text.clone()
    }

    /// `file:line` for a line of the text, both counted from one; `undefined` past the end.
    pub fn locate(&self, line: u32) -> Option<String> {
        self.output.locate(line).map(|(file, line)| format!("{file}:{line}"))
    }
}

/// Executes the directives of `source`.
///
/// `macros_json` is an object of names and values, where `null` defines an empty macro; `files_json` is an
/// object that maps the names of includable files to their texts. Errors refer to the source as `main`.
///
/// # Errors
///
/// A JavaScript `Error` whose message contains the location and the chain of includes.
#[wasm_bindgen]
pub fn preprocess(source: &str, macros_json: &str, files_json: &str) -> Result<Processed, JsError> {
    let values: BTreeMap<String, Value> = object("macros", macros_json)?;
    let macros: Macros = values
        .into_iter()
        .map(|(name, value)| match value {
            Value::String(text) => Ok((name, text)),
            Value::Null => Ok((name, String::new())),
            Value::Number(_) | Value::Bool(_) => Ok((name, value.to_string())),
            _ => Err(JsError::new(&format!("macro `{name}`: expected a string, number, boolean or null"))),
        })
        .collect::<Result<_, _>>()?;
    let files: BTreeMap<String, String> = object("files", files_json)?;
    let output = Preprocessor::new(Options::default().loader(files)).process("main", source, &macros)?;
    Ok(Processed { output })
}

/// Renders a Jinja template.
///
/// `templates_json` maps the names of all templates to their sources, `vars_json` is an object of variables.
///
/// # Errors
///
/// A JavaScript `Error` whose message contains the location and the chain of includes.
#[cfg(feature = "jinja")]
#[wasm_bindgen]
pub fn render(templates_json: &str, name: &str, vars_json: &str) -> Result<String, JsError> {
    let templates: BTreeMap<String, String> = object("templates", templates_json)?;
    let vars: Value = object("vars", vars_json)?;
    let mut renderer = Renderer::new();
    for (name, source) in templates {
        renderer.add_template(name, source)?;
    }
    Ok(renderer.render(name, &vars)?)
}

fn object<T: DeserializeOwned>(what: &str, json: &str) -> Result<T, JsError> {
    let json = if json.trim().is_empty() { "{}" } else { json };
    serde_json::from_str(json).map_err(|e| JsError::new(&format!("{what}: {e}")))
}
