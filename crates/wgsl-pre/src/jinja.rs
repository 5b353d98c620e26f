//! Jinja templates for WGSL, with strict names and filters that write WGSL literals.

use std::borrow::Cow;
use std::fmt;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde, ValueKind};
use minijinja::{Environment, UndefinedBehavior, Value};
use serde::Serialize;

use crate::error::{Error, ErrorKind, Location};
use crate::literal::{self, Mismatch};
use crate::load::{LoadError, Loader};
use crate::words;

/// Renders Jinja templates into WGSL.
///
/// Templates include, import and extend each other by name. Undefined names are errors, and so is writing
/// `none`; booleans are written as `true` and `false`; nothing is escaped; a line with only a block tag
/// produces no output line, and `{% break %}` and `{% continue %}` are supported. The output is deterministic
/// if maps among the variables are ordered: structs and `BTreeMap`s are, a `HashMap` is not.
///
/// The output is tidied: no trailing spaces, no two consecutive empty lines, none at the top, and one newline
/// at the end.
///
/// # Filters and functions
///
/// In addition to Jinja's own:
///
/// | call | result |
/// | --- | --- |
/// | `1 \| f32`, `0.5 \| f16` | `1.0f`, `0.5h`: the shortest literal that parses to the nearest value |
/// | `7 \| u32`, `-7 \| i32` | `7u`, `-7i` |
/// | `255 \| hex`, `255 \| hex(8)` | `0xffu`, `0x000000ffu` |
/// | `[1, 2] \| vec(2, "u32")`, `1 \| vec(4, "f32")` | `vec2<u32>(1u, 2u)`, `vec4<f32>(1.0f)`; a scalar for one component |
/// | `"f32" \| vec_type(4)` | `vec4<f32>`; the scalar type for one component |
/// | `[1, 2] \| array_literal("u32")` | `array<u32, 2>(1u, 2u)`; types as above, or `vec2<f32>` for a list of lists; `hex=true` for `0x1u` |
/// | `"x" \| ident` | `x`, if it is a valid WGSL identifier |
/// | `32 \| log2` | `5` |
/// | `raise("why")` | an error with this message |
///
/// A value that a filter cannot write is an error: a fraction as `u32`, infinity as `f32`, a word as a
/// number.
///
/// # Example
///
/// ```
/// use serde::Serialize;
/// use wgsl_pre::Renderer;
///
/// #[derive(Serialize)]
/// struct Vars { ty: &'static str, scale: f32, n: u32 }
///
/// let mut renderer = Renderer::new();
/// renderer.add_template("scale.inc", "{% macro scaled(x) %}{{ x }} * {{ scale | f32 }}{% endmacro %}")?;
/// renderer.add_template("main", "\
/// {% from 'scale.inc' import scaled with context %}
/// fn f(x: array<{{ ty }}, {{ n }}>) -> {{ ty }} {
///     {% for i in range(n) %}
///     acc += {{ scaled('x[' ~ i ~ ']') }};
///     {% endfor %}
/// }")?;
///
/// let text = renderer.render("main", &Vars { ty: "f32", scale: 0.5, n: 2 })?;
/// assert_eq!(text, "\
/// fn f(x: array<f32, 2>) -> f32 {
///     acc += x[0] * 0.5f;
///     acc += x[1] * 0.5f;
/// }
/// ");
///
/// let error = renderer.render("main", &()).unwrap_err();
/// assert_eq!(error.to_string(), "main:2:18: undefined value: `ty` is undefined");
/// # Ok::<(), wgsl_pre::Error>(())
/// ```
pub struct Renderer {
    env: Environment<'static>,
}

impl Renderer {
    /// A renderer without templates.
    pub fn new() -> Self {
        let mut env = Environment::new();
        env.set_undefined_behavior(UndefinedBehavior::Strict);
        env.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        let mut syntax = SyntaxConfig::builder();
        syntax.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
        env.set_syntax(syntax.build().expect("the default delimiters are valid"));
        // Enables columns and the names of undefined expressions in error messages.
        env.set_debug(true);
        env.set_formatter(|out, state, value| match value.kind() {
            // Jinja writes `True`, like Python.
            ValueKind::Bool => Ok(write!(out, "{}", value.is_true())?),
            ValueKind::None => Err(carry(ErrorKind::Nothing)),
            _ => minijinja::escape_formatter(out, state, value),
        });
        add_filters(&mut env);
        Self { env }
    }

    /// Adds a template, or replaces the one with that name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Template`] if it does not parse; the error includes the line.
    pub fn add_template(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        source: impl Into<Cow<'static, str>>,
    ) -> Result<(), Error> {
        self.env.add_template_owned(name, source).map_err(|e| from_jinja(&e))
    }

    /// Sets the loader for templates that were not added; it is called without an including file.
    pub fn set_loader(&mut self, loader: impl Loader + 'static) {
        self.env.set_loader(move |name| match loader.load(name, None) {
            Ok(source) => Ok(Some(source.text)),
            Err(LoadError::NotFound { .. }) => Ok(None),
            Err(reason) => Err(carry(ErrorKind::Load { path: name.to_owned(), reason })),
        });
    }

    /// Renders a template with `vars`, a struct or a map (`()` for no variables).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Template`] for an unknown template or an undefined name, [`ErrorKind::Filter`] for a
    /// value that a filter cannot write, [`ErrorKind::Raised`] if the template calls `raise`; each includes
    /// the line.
    pub fn render(&self, name: &str, vars: &(impl Serialize + ?Sized)) -> Result<String, Error> {
        let vars = Value::from(Serde(vars));
        let rendered = self.env.get_template(name).and_then(|template| template.render(vars));
        rendered.map(|text| tidy(&text)).map_err(|e| from_jinja(&e))
    }
}

impl Default for Renderer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Renderer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<_> = self.env.templates().map(|(name, _)| name).collect();
        names.sort_unstable();
        f.debug_struct("Renderer").field("templates", &names).finish()
    }
}

fn add_filters(env: &mut Environment<'static>) {
    env.add_function("raise", |message: String| -> Result<Value, minijinja::Error> {
        Err(carry(ErrorKind::Raised { message }))
    });
    env.add_filter("f32", |value: Value| named("f32", literal::f32(&value)));
    env.add_filter("f16", |value: Value| named("f16", literal::f16(&value)));
    env.add_filter("u32", |value: Value| named("u32", literal::u32(&value)));
    env.add_filter("i32", |value: Value| named("i32", literal::i32(&value)));
    env.add_filter("hex", |value: Value, n_digit: Option<usize>| {
        named("hex", literal::hex(&value, n_digit.unwrap_or(0).min(8)))
    });
    env.add_filter("vec", |value: Value, n: usize, ty: String| named("vec", literal::vector(&value, n, &ty)));
    env.add_filter("vec_type", |scalar: String, n: usize| named("vec_type", literal::vec_type(&scalar, n)));
    env.add_filter("array_literal", |value: Value, ty: String, options: Kwargs| {
        let hexadecimal = options.get::<Option<bool>>("hex")?.unwrap_or(false);
        options.assert_all_used()?;
        named("array_literal", literal::array(&value, &ty, hexadecimal))
    });
    env.add_filter("log2", |value: Value| named("log2", literal::log2(&value)));
    env.add_filter("ident", |value: Value| {
        let problem = match value.as_str() {
            Some(text) => words::ident_problem(text).map(|why| format!("{text:?}, {why}")),
            None => Some(literal::describe(&value)),
        };
        match problem {
            None => Ok(value),
            Some(found) => named("ident", Err(literal::mismatch("a WGSL identifier", found))),
        }
    });
}

fn named<T>(filter: &'static str, result: Result<T, Mismatch>) -> Result<T, minijinja::Error> {
    result.map_err(|Mismatch { expected, found }| carry(ErrorKind::Filter { filter, expected, found }))
}

/// Wraps one of our errors in a Jinja error, which adds the location; [`from_jinja`] unwraps it.
fn carry(kind: ErrorKind) -> minijinja::Error {
    minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, kind.to_string()).with_source(kind)
}

fn from_jinja(error: &minijinja::Error) -> Error {
    use std::error::Error as _;
    let mut included_from = Vec::new();
    let mut innermost = error;
    while innermost.kind() == minijinja::ErrorKind::BadInclude {
        let Some(source) = innermost.source().and_then(|e| e.downcast_ref::<minijinja::Error>()) else {
            break;
        };
        included_from.extend(location(innermost));
        innermost = source;
    }
    included_from.reverse();
    let kind = match innermost.source().and_then(|e| e.downcast_ref::<ErrorKind>()) {
        Some(kind) => kind.clone(),
        None => ErrorKind::Template {
            message: match innermost.detail() {
                Some(detail) => format!("{}: {detail}", innermost.kind()),
                None => innermost.kind().to_string(),
            },
        },
    };
    Error::new(kind, location(innermost), included_from)
}

fn location(error: &minijinja::Error) -> Option<Location> {
    let column = error.template_source().zip(error.range()).and_then(|(source, range)| {
        let before = source.get(..range.start)?;
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        u32::try_from(before[line_start..].chars().count() + 1).ok()
    });
    Some(Location { file: error.name()?.to_owned(), line: u32::try_from(error.line()?).ok()?, column })
}

/// Removes the traces of block tags from a rendered text.
fn tidy(text: &str) -> String {
    let mut tidied = String::with_capacity(text.len());
    let mut empty_lines = 0;
    for line in text.lines().map(str::trim_end) {
        if line.is_empty() {
            empty_lines += 1;
            continue;
        }
        if empty_lines > 0 && !tidied.is_empty() {
            tidied.push('\n');
        }
        empty_lines = 0;
        tidied.push_str(line);
        tidied.push('\n');
    }
    tidied
}
