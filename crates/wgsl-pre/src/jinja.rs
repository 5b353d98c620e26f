//! Jinja templates for WGSL, with strict names and filters that write WGSL literals.

use std::borrow::Cow;
use std::fmt;

use chaski_jinja::{Arguments, Environment, Fault, FaultKind, Function, Given, Place};
use serde::Serialize;
use serde_json::Value as Json;

use crate::error::{Error, ErrorKind, Location};
use crate::literal::{self, Literal, Mismatch};
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
/// assert_eq!(error.to_string(), "main:2:18: 'ty' is undefined");
/// # Ok::<(), wgsl_pre::Error>(())
/// ```
pub struct Renderer {
    env: Environment,
}

impl Renderer {
    /// A renderer without templates.
    pub fn new() -> Self {
        let mut env = Environment::new();
        env.add_function("raise", raise);
        for (name, filter) in FILTERS {
            env.add_filter(name, filter);
        }
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
        self.env.add(&name.into(), &source.into()).map_err(|fault| from_jinja(*fault))
    }

    /// Sets the loader for templates that were not added; it is called without an including file.
    pub fn set_loader(&mut self, loader: impl Loader + 'static) {
        self.env.set_loader(Box::new(move |name| match loader.load(name, None) {
            Ok(source) => Ok(Some(source.text)),
            Err(LoadError::NotFound { .. }) => Ok(None),
            Err(reason) => Err(Fault::custom(ErrorKind::Load { path: name.to_owned(), reason })),
        }));
    }

    /// Renders a template with `vars`, a struct or a map (`()` for no variables).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Template`] for an unknown template or an undefined name, [`ErrorKind::Filter`] for a
    /// value that a filter cannot write, [`ErrorKind::Raised`] if the template calls `raise`; each includes
    /// the line.
    pub fn render(&self, name: &str, vars: &(impl Serialize + ?Sized)) -> Result<String, Error> {
        let unusable = |message: String| Error::new(ErrorKind::Template { message }, None, Vec::new());
        let vars = match serde_json::to_value(vars).map_err(|e| unusable(format!("variables: {e}")))? {
            Json::Object(vars) => vars,
            Json::Null => serde_json::Map::new(),
            _ => return Err(unusable("the variables are neither a struct nor a map".into())),
        };
        self.env.render(name, &vars).map(|text| tidy(&text)).map_err(|fault| from_jinja(*fault))
    }
}

impl Default for Renderer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Renderer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = self.env.names();
        names.sort_unstable();
        f.debug_struct("Renderer").field("templates", &names).finish()
    }
}

/// The filters that write WGSL.
const FILTERS: [(&str, Function); 10] = [
    ("f32", |args| single(args, "f32", literal::f32)),
    ("f16", |args| single(args, "f16", literal::f16)),
    ("u32", |args| single(args, "u32", literal::u32)),
    ("i32", |args| single(args, "i32", literal::i32)),
    ("hex", |args| {
        let [value, n_digit] = args.bind("hex", ["value", "n_digit"], 1)?;
        let n_digit = n_digit.map_or(Ok(0), |n| size("hex", &n))?;
        named("hex", literal::hex(&of(value), n_digit.min(8)))
    }),
    ("vec", |args| {
        let [value, n, ty] = args.bind("vec", ["value", "n", "type"], 3)?;
        named("vec", literal::vector(&of(value), size("vec", &of(n))?, &word("vec", of(ty))?))
    }),
    ("vec_type", |args| {
        let [scalar, n] = args.bind("vec_type", ["scalar", "n"], 2)?;
        named("vec_type", literal::vec_type(&word("vec_type", of(scalar))?, size("vec_type", &of(n))?))
    }),
    ("array_literal", |args| {
        let [value, ty, hex] = args.bind("array_literal", ["value", "type", "hex"], 2)?;
        let (ty, hex) =
            (word("array_literal", of(ty))?, hex.map_or(Ok(false), |b| flag("array_literal", b))?);
        named("array_literal", literal::array(&of(value), &ty, hex))
    }),
    ("log2", |args| {
        let [value] = args.bind("log2", ["value"], 1)?;
        match literal::log2(&of(value)) {
            Ok(n) => Ok(Given::Int(n.into())),
            Err(mismatch) => named("log2", Err(mismatch)),
        }
    }),
    ("ident", |args| single(args, "ident", ident)),
];

type Found<T> = Result<T, Box<Fault>>;

/// A filter of a value alone.
fn single(args: Arguments, name: &'static str, filter: fn(&Given) -> Literal) -> Found<Given> {
    let [value] = args.bind(name, ["value"], 1)?;
    named(name, filter(&of(value)))
}

/// An argument that must be given, and so is.
fn of(value: Option<Given>) -> Given {
    value.unwrap_or(Given::Undefined)
}

fn named(filter: &'static str, result: Literal) -> Found<Given> {
    result.map(Given::Text).map_err(|mismatch| refused(filter, mismatch))
}

fn refused(filter: &'static str, Mismatch { expected, found }: Mismatch) -> Box<Fault> {
    Fault::custom(ErrorKind::Filter { filter, expected, found })
}

fn size(filter: &'static str, value: &Given) -> Found<usize> {
    match literal::integer(value, 0..=u32::MAX.into(), "an integer") {
        Ok(n) => Ok(n as usize),
        Err(mismatch) => Err(refused(filter, mismatch)),
    }
}

fn word(filter: &'static str, value: Given) -> Found<String> {
    match value {
        Given::Text(text) => Ok(text),
        other => Err(refused(filter, literal::mismatch("a string", literal::describe(&other)))),
    }
}

fn flag(filter: &'static str, value: Given) -> Found<bool> {
    match value {
        Given::Bool(b) => Ok(b),
        other => Err(refused(filter, literal::mismatch("a boolean", literal::describe(&other)))),
    }
}

fn ident(value: &Given) -> Literal {
    let found = match value {
        Given::Text(text) => match words::ident_problem(text) {
            None => return Ok(text.clone()),
            Some(why) => format!("{text:?}, {why}"),
        },
        other => literal::describe(other),
    };
    Err(literal::mismatch("a WGSL identifier", found))
}

fn raise(args: Arguments) -> Found<Given> {
    let [message] = args.bind("raise", ["message"], 1)?;
    Err(Fault::custom(ErrorKind::Raised { message: of(message).to_string() }))
}

fn from_jinja(fault: Fault) -> Error {
    let kind = match fault.kind {
        FaultKind::Custom(error) => match error.downcast_ref::<ErrorKind>() {
            Some(kind) => kind.clone(),
            None => ErrorKind::Template { message: error.to_string() },
        },
        FaultKind::Raised(message) => ErrorKind::Raised { message },
        FaultKind::Nothing => ErrorKind::Nothing,
        kind => ErrorKind::Template { message: kind.to_string() },
    };
    let included_from = fault.included_from.into_iter().filter_map(location).collect();
    Error::new(kind, location(fault.place), included_from)
}

fn location(place: Place) -> Option<Location> {
    let file = place.template?.to_string();
    Some(Location { file, line: place.pos.line, column: Some(place.pos.column) })
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
