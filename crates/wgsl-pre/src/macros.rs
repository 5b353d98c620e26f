//! Macros: predefined ones, and the table of those defined at one point of a text.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::rc::Rc;

use crate::error::{Error, ErrorKind};
use crate::lex::{self, Kind, Token};
use crate::words::is_ident_pattern;

/// Predefined macros: names with values, which may be empty.
///
/// ```
/// use wgsl_pre::Macros;
///
/// let macros = Macros::new().flag("USE_F16").with("WG_SIZE", 64).with("TYPE", "vec4<u32>");
/// let parsed = Macros::parse(["USE_F16", "WG_SIZE=64", "TYPE = vec4<u32>"])?;
/// assert_eq!(macros, parsed);
/// # Ok::<(), wgsl_pre::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Macros {
    values: BTreeMap<String, String>,
}

impl Macros {
    /// No macros.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses macros in the form `NAME` or `NAME=value`; of several with the same name the last one wins.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::MacroName`] if a name is not an identifier.
    pub fn parse<S: AsRef<str>>(definitions: impl IntoIterator<Item = S>) -> Result<Self, Error> {
        let mut macros = Self::new();
        for definition in definitions {
            let (name, value) = definition.as_ref().split_once('=').unwrap_or((definition.as_ref(), ""));
            macros = macros.with(name.trim(), value.trim());
        }
        macros.check()?;
        Ok(macros)
    }

    /// Adds a macro with a value.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Display) -> Self {
        self.values.insert(name.into(), value.to_string());
        self
    }

    /// Adds an empty macro.
    #[must_use]
    pub fn flag(self, name: impl Into<String>) -> Self {
        self.with(name, "")
    }

    /// The names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    fn check(&self) -> Result<(), Error> {
        match self.values.keys().find(|name| !is_macro_name(name)) {
            Some(name) => Err(Error::new(ErrorKind::MacroName { name: name.clone() }, None, Vec::new())),
            None => Ok(()),
        }
    }
}

impl<K: Into<String>, V: Display> FromIterator<(K, V)> for Macros {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        pairs.into_iter().fold(Self::new(), |macros, (name, value)| macros.with(name, value))
    }
}

/// `defined` is an operator of `#if`, so no macro has that name.
pub(crate) fn is_macro_name(name: &str) -> bool {
    is_ident_pattern(name) && name != "defined"
}

/// The definition of a macro.
#[derive(Debug)]
pub(crate) struct Definition {
    /// The names of its parameters; `None` for a macro without a parameter list.
    pub(crate) params: Option<Vec<Rc<str>>>,
    /// Its tokens, without comments and surrounding spaces, and with a single space where there were several.
    pub(crate) body: Vec<Token>,
    /// True if predefined: files cannot change it.
    given: bool,
}

impl Definition {
    pub(crate) fn new(params: Option<Vec<Rc<str>>>, value: &str) -> Self {
        Self { params, body: body(value), given: false }
    }
}

fn body(value: &str) -> Vec<Token> {
    let mut body: Vec<Token> = Vec::new();
    for lexeme in lex::lex(value.trim(), &mut 0) {
        if !matches!(lexeme.kind, Kind::Space | Kind::Comment) {
            body.push(lexeme.into());
        } else if body.last().is_some_and(|last| !last.is_space()) {
            body.push(Token { kind: Kind::Space, text: " ".into(), at: lexeme.at });
        }
    }
    if body.last().is_some_and(Token::is_space) {
        body.pop();
    }
    body
}

/// The macros defined at one point of a text.
#[derive(Debug, Default)]
pub(crate) struct Table {
    definitions: HashMap<Rc<str>, Rc<Definition>>,
}

impl Table {
    /// The macros of the options and of one call; those of the call win.
    pub(crate) fn new(options: &Macros, call: &Macros) -> Result<Self, Error> {
        let mut table = Self::default();
        for macros in [options, call] {
            macros.check()?;
            for (name, value) in macros.iter() {
                let definition = Definition { given: true, ..Definition::new(None, value) };
                table.definitions.insert(name.into(), Rc::new(definition));
            }
        }
        Ok(table)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Rc<Definition>> {
        self.definitions.get(name)
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.definitions.contains_key(name)
    }

    /// Defines a macro, unless one with that name is predefined.
    pub(crate) fn define(&mut self, name: &str, definition: Definition) {
        if !self.is_given(name) {
            self.definitions.insert(name.into(), Rc::new(definition));
        }
    }

    /// Removes a macro, unless it is predefined.
    pub(crate) fn undefine(&mut self, name: &str) {
        if !self.is_given(name) {
            self.definitions.remove(name);
        }
    }

    fn is_given(&self, name: &str) -> bool {
        self.get(name).is_some_and(|definition| definition.given)
    }
}
