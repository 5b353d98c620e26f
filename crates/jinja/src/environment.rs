//! Named templates that include, import and extend each other, with functions and filters of the program.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use super::Program;
use super::fault::{Result, fail};
use super::given::Function;

/// The behaviour of templates, by their origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Templates that come with a model: Python's printing, undefined values are empty, tight limits.
    Chat,
    /// Templates of code, which are the program's own: undefined values and printing `none` are errors,
    /// booleans are `true` and `false`, `{{ a if b }}` without `else` prints nothing, the last newline stays,
    /// limits are generous. Templates reach others by name, and imported ones see the variables of the
    /// importer.
    Code,
}

/// Finds the source of a template by its name; `None` if there is none.
pub type Loader = Box<dyn Fn(&str) -> Result<Option<String>> + Send + Sync>;

/// Templates of code by name.
///
/// ```
/// use chaski_jinja::Environment;
///
/// let mut environment = Environment::new();
/// environment.add("lib", "{% macro twice(x) %}{{ x }}{{ x }}{% endmacro %}")?;
/// environment.add("main", "{% import 'lib' as lib %}{{ lib.twice(n) }}")?;
/// let variables = serde_json::json!({ "n": 4 });
/// assert_eq!(environment.render("main", variables.as_object().unwrap())?, "44");
///
/// let fault = environment.render("main", &serde_json::Map::new()).unwrap_err();
/// assert_eq!(fault.to_string(), "lib:1:24: 'n' is undefined");
/// # Ok::<(), Box<chaski_jinja::Fault>>(())
/// ```
#[derive(Default)]
pub struct Environment {
    added: BTreeMap<String, Program>,
    loaded: Loaded,
    loader: Option<Loader>,
    pub(super) functions: Vec<(&'static str, Function)>,
    pub(super) filters: Vec<(&'static str, Function)>,
}

/// The environment of templates that are alone.
pub(super) static ALONE: Environment = Environment::new();

impl Environment {
    /// An environment without templates.
    pub const fn new() -> Environment {
        Environment {
            added: BTreeMap::new(),
            loaded: Loaded { first: OnceLock::new() },
            loader: None,
            functions: Vec::new(),
            filters: Vec::new(),
        }
    }

    /// Adds a template, or replaces the one with that name.
    ///
    /// # Errors
    ///
    /// If it does not parse.
    pub fn add(&mut self, name: &str, source: &str) -> Result<()> {
        let program = Program::named(name, source)?;
        self.added.insert(name.to_owned(), program);
        Ok(())
    }

    /// Sets the loader for templates that were not added. Each is loaded and parsed once.
    pub fn set_loader(&mut self, loader: Loader) {
        self.loaded = Loaded::default();
        self.loader = Some(loader);
    }

    /// Adds a function, which templates call by its name.
    pub fn add_function(&mut self, name: &'static str, function: Function) {
        self.functions.push((name, function));
    }

    /// Adds a filter; its first argument is the value in front of it.
    pub fn add_filter(&mut self, name: &'static str, filter: Function) {
        self.filters.push((name, filter));
    }

    /// The names of the templates that were added or loaded.
    pub fn names(&self) -> Vec<&str> {
        let loaded = self.loaded.iter().filter_map(|program| program.name.as_deref());
        self.added.keys().map(String::as_str).chain(loaded).collect()
    }

    /// The template of this name, loaded if need be.
    pub(super) fn find(&self, name: &str) -> Result<Option<&Program>> {
        let is_it = |program: &&Program| program.name.as_deref() == Some(name);
        if let Some(program) = self.added.get(name).or_else(|| self.loaded.iter().find(is_it)) {
            return Ok(Some(program));
        }
        let Some(source) = self.loader.as_ref().map_or(Ok(None), |load| load(name))? else { return Ok(None) };
        Ok(Some(self.loaded.push(Program::named(name, &source)?)))
    }
}

/// The failure for a template that does not exist.
pub(super) fn missing<T>(name: &str) -> Result<T> {
    fail(format!("template {name:?} does not exist"))
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("templates", &self.names()).finish_non_exhaustive()
    }
}

/// A list that only grows, so that its items can be borrowed while others are added.
#[derive(Default)]
struct Loaded {
    first: OnceLock<Box<Node>>,
}

struct Node {
    program: Program,
    next: OnceLock<Box<Node>>,
}

impl Loaded {
    fn iter(&self) -> impl Iterator<Item = &Program> {
        let nodes = std::iter::successors(self.first.get(), |node| node.next.get());
        nodes.map(|node| &node.program)
    }

    fn push(&self, program: Program) -> &Program {
        let mut node = Box::new(Node { program, next: OnceLock::new() });
        let mut end = &self.first;
        loop {
            // Another thread may have been first; the next place is behind its node.
            match end.set(node) {
                Ok(()) => return &end.get().expect("it was just set").program,
                Err(back) => node = back,
            }
            end = &end.get().expect("it is set already").next;
        }
    }
}

impl Drop for Loaded {
    /// One by one, since a long list would need a deep stack.
    fn drop(&mut self) {
        let mut next = self.first.take();
        while let Some(mut node) = next {
            next = node.next.take();
        }
    }
}
