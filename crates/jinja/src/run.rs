//! Runs statements.

use std::sync::Arc;

use indexmap::IndexMap;

use super::ast::{Expr, Filter, For, Macro, Stmt, StmtKind, Target};
use super::environment::{Dialect, Environment};
use super::fault::{Fault, Result, fail};
use super::meter::{Charge, MAX_CALL_DEPTH, Meter};
use super::time::LocalTime;
use super::value::{ListBuilder, Seq, StrKey, TextBuilder, Value, equal};
use super::{Program, Rendered};

/// The state of one rendering.
pub(super) struct Run<'p> {
    pub(super) meter: Arc<Meter>,
    out: TextBuilder,
    /// Scopes on the stack; the first holds the variables of the caller.
    frames: Vec<Frame<'p>>,
    /// The current scope.
    pub(super) frame: Scope,
    /// Scopes of imported templates, which stay.
    modules: Vec<Frame<'p>>,
    pub(super) env: &'p Environment,
    pub(super) dialect: Dialect,
    /// The template that runs.
    pub(super) current: &'p Program,
    pub(super) inheritance: Inheritance<'p>,
    depth: u32,
    n_serial: u64,
    pub(super) namespaces: Vec<IndexMap<Value, Value>>,
    pub(super) macros: Vec<MacroValue<'p>>,
    loops: Vec<LoopState<'p>>,
    pub(super) iters: Vec<(Arc<Seq>, usize)>,
    /// Items of cyclers with their positions.
    pub(super) cyclers: Vec<(Arc<Seq>, usize)>,
    /// Separators of joiners; true once they are used.
    pub(super) joiners: Vec<(Value, bool)>,
    /// Memory of the tables above, whose entries stay until the end.
    pub(super) tables: Charge,
    pub(super) now: Option<LocalTime>,
}

/// The blocks of templates that extend another one.
#[derive(Default)]
pub(super) struct Inheritance<'p> {
    /// The template that the current one extends.
    pub(super) base: Option<&'p Program>,
    /// Blocks that replace those of the base.
    pub(super) blocks: Vec<(&'p str, &'p [Stmt], &'p Program)>,
}

/// A place of variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Stack(usize),
    Module(usize),
}

/// The variables of a scope.
struct Frame<'p> {
    serial: u64,
    /// The scope in which names are looked up that are not found here.
    parent: Option<(Scope, u64)>,
    vars: Vec<(&'p str, Value)>,
}

pub(super) struct MacroValue<'p> {
    pub(super) decl: &'p Macro,
    program: &'p Program,
    /// The scope in which it was defined, with its serial number.
    scope: (Scope, u64),
}

pub(super) struct LoopState<'p> {
    serial: u64,
    pub(super) items: Arc<Seq>,
    pub(super) index: usize,
    /// Levels of recursive loops around this one.
    pub(super) depth: usize,
    stmt: &'p For,
    /// The scope around the loop.
    scope: (Scope, u64),
    pub(super) last_changed: Option<Value>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Flow {
    Next,
    Break,
    Continue,
}

impl<'p> Run<'p> {
    pub(super) fn new(
        env: &'p Environment,
        dialect: Dialect,
        meter: Arc<Meter>,
        variables: Vec<(&'p str, Value)>,
        now: Option<LocalTime>,
    ) -> Result<Run<'p>> {
        let first = Frame { serial: 0, parent: None, vars: variables };
        Ok(Run {
            out: TextBuilder::new(&meter)?,
            frames: vec![first],
            frame: Scope::Stack(0),
            modules: Vec::new(),
            env,
            dialect,
            current: &NONE,
            inheritance: Inheritance::default(),
            depth: 0,
            n_serial: 0,
            namespaces: Vec::new(),
            macros: Vec::new(),
            loops: Vec::new(),
            iters: Vec::new(),
            cyclers: Vec::new(),
            joiners: Vec::new(),
            tables: meter.charge(0)?,
            now,
            meter,
        })
    }

    /// Renders a whole template.
    pub(super) fn render(mut self, program: &'p Program) -> Result<Rendered> {
        self.program(program)?;
        let (text, data) = self.out.into_parts();
        Ok(Rendered { text, data })
    }

    /// An empty text.
    pub(super) fn text(&self) -> Result<TextBuilder> {
        TextBuilder::new(&self.meter)
    }

    /// An empty list.
    pub(super) fn items(&self) -> Result<ListBuilder<'_>> {
        ListBuilder::new(&self.meter)
    }

    /// Evaluates one level deeper.
    pub(super) fn nested<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_CALL_DEPTH {
            return Err(Fault::limit("nested calls", MAX_CALL_DEPTH.into()));
        }
        self.depth += 1;
        let result = run(self);
        self.depth -= 1;
        result
    }

    pub(super) fn body(&mut self, body: &'p [Stmt]) -> Result<Flow> {
        for stmt in body {
            self.meter.step(1)?;
            if let StmtKind::Text(text) = &stmt.kind {
                self.out.push(text).map_err(|fault| fault.at(stmt.pos))?;
                continue;
            }
            let flow = self.nested(|run| run.statement(stmt)).map_err(|fault| fault.at(stmt.pos))?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, stmt: &'p Stmt) -> Result<Flow> {
        match &stmt.kind {
            StmtKind::Text(text) => self.out.push(text)?,
            StmtKind::Emit(value) => return self.emit(value),
            StmtKind::If(branches, otherwise) => {
                for (test, body) in branches {
                    let value = self.eval(test)?;
                    if self.is_true(&value).map_err(|fault| fault.at(test.pos))? {
                        return self.body(body);
                    }
                }
                return self.body(otherwise);
            }
            StmtKind::For(stmt) => self.for_loop(stmt)?,
            StmtKind::Set(target, value) => {
                let value = self.eval(value)?;
                self.assign(target, value)?;
            }
            StmtKind::SetBlock(target, filters, body) => {
                let text = self.captured(|run| run.scope(body))?;
                let text = self.filtered(text, filters)?;
                self.assign(target, text)?;
            }
            StmtKind::With(assignments, body) => return self.with(assignments, body),
            StmtKind::Scope(body) => return self.scope(body),
            StmtKind::FilterBlock(filters, body) => {
                let text = self.captured(|run| run.scope(body))?;
                let text = self.filtered(text, filters)?;
                self.print(&text)?;
            }
            StmtKind::Macro(decl) => {
                let value = self.define(decl)?;
                self.set(&decl.name, value);
            }
            StmtKind::Call(call, decl) => {
                let caller = self.define(decl)?;
                let text = self.call_with(call, Some(caller))?;
                self.print(&text)?;
            }
            StmtKind::Block(name, body) => return self.block(name, body),
            StmtKind::Include { name, is_optional } => self.include(name, *is_optional, stmt.pos)?,
            StmtKind::Import(name, module) => {
                let id = self.import(name, stmt.pos)?;
                self.set(module, Value::Module(id));
            }
            StmtKind::ImportNames(template, names) => {
                let id = self.import(template, stmt.pos)?;
                for (name, here) in names {
                    let Some(value) = self.module_attr(id, name) else {
                        return fail(format!("the template has no '{name}'"));
                    };
                    self.set(here, value);
                }
            }
            StmtKind::Extends(name) => self.extends(name, stmt.pos)?,
            StmtKind::Do(value) => drop(self.eval(value)?),
            StmtKind::Break => return Ok(Flow::Break),
            StmtKind::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn emit(&mut self, value: &'p Expr) -> Result<Flow> {
        let at = value.pos;
        let value = self.eval(value)?;
        self.print(&value).map_err(|fault| fault.at(at))?;
        Ok(Flow::Next)
    }

    fn print(&mut self, value: &Value) -> Result<()> {
        match value {
            Value::Str(text) => self.out.push_text(text),
            Value::Int(n) => self.out.push(&n.to_string()),
            Value::None if self.dialect == Dialect::Code => Err(Fault::nothing()),
            _ => {
                let Value::Str(text) = self.str(value)? else { return Ok(()) };
                self.out.push_text(&text)
            }
        }
    }

    /// The text that `run` prints.
    pub(super) fn captured<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<Value> {
        let out = std::mem::replace(&mut self.out, TextBuilder::new(&self.meter)?);
        let result = run(self);
        let text = std::mem::replace(&mut self.out, out);
        result?;
        Ok(text.finish())
    }

    fn filtered(&mut self, mut value: Value, filters: &'p [Filter]) -> Result<Value> {
        for filter in filters {
            value = self.filter(value, filter)?;
        }
        Ok(value)
    }

    // Scopes.

    fn serial(&mut self) -> u64 {
        self.n_serial += 1;
        self.n_serial
    }

    /// Runs in a scope of its own, within the scope `parent`.
    pub(super) fn in_frame<T>(
        &mut self,
        parent: Scope,
        vars: Vec<(&'p str, Value)>,
        run: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let serial = self.serial();
        self.frames.push(Frame { serial, parent: Some((parent, self.at(parent).serial)), vars });
        let outer = std::mem::replace(&mut self.frame, Scope::Stack(self.frames.len() - 1));
        let result = run(self);
        self.frames.pop();
        self.frame = outer;
        result
    }

    pub(super) fn scope(&mut self, body: &'p [Stmt]) -> Result<Flow> {
        self.in_frame(self.frame, Vec::new(), |run| run.body(body))
    }

    fn here(&self) -> (Scope, u64) {
        (self.frame, self.at(self.frame).serial)
    }

    fn at(&self, scope: Scope) -> &Frame<'p> {
        match scope {
            Scope::Stack(at) => &self.frames[at],
            Scope::Module(id) => &self.modules[id],
        }
    }

    /// A scope, or the outermost one if it has ended.
    fn alive(&self, (scope, serial): (Scope, u64)) -> Scope {
        match scope {
            Scope::Stack(at) if self.frames.get(at).is_none_or(|frame| frame.serial != serial) => {
                Scope::Stack(0)
            }
            _ => scope,
        }
    }

    /// A module without names, within the current scope.
    pub(super) fn new_module(&mut self) -> Result<usize> {
        self.tables.grow(2 * size_of::<Frame<'_>>())?;
        let frame = Frame { serial: self.serial(), parent: Some(self.here()), vars: Vec::new() };
        self.modules.push(frame);
        Ok(self.modules.len() - 1)
    }

    /// The value that a module has for a name.
    pub(super) fn module_attr(&self, id: usize, name: &str) -> Option<Value> {
        self.modules[id].vars.iter().find(|(found, _)| *found == name).map(|(_, value)| value.clone())
    }

    pub(super) fn lookup(&self, name: &str) -> Option<&Value> {
        let (mut at, mut found, mut n_var) = (Some(self.frame), None, 0);
        while let (Some(frame), None) = (at, found) {
            let frame = self.at(frame);
            n_var += 1 + frame.vars.len();
            found = frame.vars.iter().rev().find(|(found, _)| *found == name);
            at = frame.parent.map(|parent| self.alive(parent));
        }
        self.read_names(name, n_var);
        found.map(|(_, value)| value)
    }

    /// Counts comparisons of a name with `n` others.
    fn read_names(&self, name: &str, n: usize) {
        // An excess shows at the next step.
        let _ = self.meter.read(n * 2.max(name.len() / 8));
    }

    fn set(&mut self, name: &'p str, value: Value) {
        self.read_names(name, self.at(self.frame).vars.len());
        let vars = match self.frame {
            Scope::Stack(at) => &mut self.frames[at].vars,
            Scope::Module(id) => &mut self.modules[id].vars,
        };
        match vars.iter_mut().find(|(found, _)| *found == name) {
            Some((_, place)) => *place = value,
            None => vars.push((name, value)),
        }
    }

    fn assign(&mut self, target: &'p Target, value: Value) -> Result<()> {
        match target {
            Target::Name(name) => self.set(name, value),
            Target::Attr(name, attr) => match self.lookup(name) {
                Some(Value::Namespace(id)) => {
                    let id = *id;
                    self.set_in_namespace(id, attr, value)?;
                }
                _ => return fail("cannot assign attribute on non-namespace object"),
            },
            Target::Tuple(targets) => {
                let items = self.iterate(&value)?;
                if items.len() != targets.len() {
                    return fail(format!(
                        "expected {} values to unpack, found {}",
                        targets.len(),
                        items.len()
                    ));
                }
                self.meter.step(items.len() as u64)?;
                for (target, item) in targets.iter().zip(items.iter()) {
                    self.assign(target, item.clone())?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn set_in_namespace(&mut self, id: usize, attr: &str, value: Value) -> Result<()> {
        self.meter.read(attr.len())?;
        let key = match self.namespaces[id].get_key_value(&StrKey(attr)) {
            Some((key, _)) => key.clone(),
            None => {
                self.tables.grow(4 * size_of::<Value>() + attr.len())?;
                Value::constant(attr)
            }
        };
        self.namespaces[id].insert(key, value);
        Ok(())
    }

    fn with(&mut self, assignments: &'p [(Target, Expr)], body: &'p [Stmt]) -> Result<Flow> {
        // All values are those of the scope around.
        let values: Vec<Value> =
            assignments.iter().map(|(_, value)| self.eval(value)).collect::<Result<_>>()?;
        self.in_frame(self.frame, Vec::new(), |run| {
            for ((target, _), value) in assignments.iter().zip(values) {
                run.assign(target, value)?;
            }
            run.body(body)
        })
    }

    // Loops.

    fn for_loop(&mut self, stmt: &'p For) -> Result<()> {
        let value = self.eval(&stmt.iter)?;
        self.run_loop(stmt, &value, 0)
    }

    fn run_loop(&mut self, stmt: &'p For, value: &Value, depth: usize) -> Result<()> {
        let items = match &stmt.filter {
            Some(filter) => self.chosen(stmt, filter, value)?,
            None => self.iterate(value)?,
        };
        if items.is_empty() {
            return self.scope(&stmt.otherwise).map(drop);
        }
        let (serial, scope) = (self.serial(), self.here());
        let id = self.loops.len();
        self.loops.push(LoopState {
            serial,
            items: items.clone(),
            index: 0,
            depth,
            stmt,
            scope,
            last_changed: None,
        });
        let result = self.iterations(stmt, &items, id, serial);
        self.loops.truncate(id);
        result
    }

    fn iterations(&mut self, stmt: &'p For, items: &Seq, id: usize, serial: u64) -> Result<()> {
        for (index, item) in items.iter().enumerate() {
            self.meter.step(1)?;
            self.loops[id].index = index;
            let vars = vec![("loop", Value::Loop(id, serial))];
            let flow = self.in_frame(self.frame, vars, |run| {
                run.assign(&stmt.target, item.clone())?;
                run.body(&stmt.body)
            })?;
            if flow == Flow::Break {
                break;
            }
        }
        Ok(())
    }

    /// The items for which the loop's own `if` holds.
    fn chosen(&mut self, stmt: &'p For, filter: &'p Expr, value: &Value) -> Result<Arc<Seq>> {
        let items = self.iterate(value)?;
        let meter = self.meter.clone();
        let mut chosen = ListBuilder::new(&meter)?;
        for item in items.iter() {
            let holds = self.in_frame(self.frame, Vec::new(), |run| {
                run.assign(&stmt.target, item.clone())?;
                let holds = run.eval(filter)?;
                run.is_true(&holds)
            })?;
            if holds {
                chosen.push(item.clone())?;
            }
        }
        chosen.seq()
    }

    pub(super) fn loop_state(&self, id: usize, serial: u64) -> Result<&LoopState<'p>> {
        match self.loops.get(id) {
            Some(state) if state.serial == serial => Ok(state),
            _ => fail("the loop has ended"),
        }
    }

    /// `loop.changed(...)`.
    pub(super) fn loop_changed(&mut self, id: usize, serial: u64, value: Value) -> Result<bool> {
        let same = match &self.loop_state(id, serial)?.last_changed {
            Some(last) => equal(&self.meter, last, &value)?,
            None => false,
        };
        self.loops[id].last_changed = Some(value);
        Ok(!same)
    }

    /// `loop(items)` in a recursive loop.
    pub(super) fn call_loop(&mut self, id: usize, serial: u64, items: &Value) -> Result<Value> {
        let state = self.loop_state(id, serial)?;
        let (stmt, scope, depth) = (state.stmt, self.alive(state.scope), state.depth + 1);
        if !stmt.is_recursive {
            return fail("the loop must have the 'recursive' marker to be called recursively");
        }
        self.captured(|run| run.in_frame(scope, Vec::new(), |run| run.run_loop(stmt, items, depth)))
    }

    // Macros.

    fn define(&mut self, decl: &'p Macro) -> Result<Value> {
        self.tables.grow(2 * size_of::<MacroValue<'_>>())?;
        self.macros.push(MacroValue { decl, program: self.current, scope: self.here() });
        Ok(Value::Macro(self.macros.len() - 1))
    }

    /// Runs the body of a macro with bound parameters.
    pub(super) fn run_macro(&mut self, id: usize, vars: Vec<(&'p str, Value)>) -> Result<Value> {
        let decl = self.macros[id].decl;
        let scope = self.alive(self.macros[id].scope);
        let program = self.macros[id].program;
        self.captured(|run| {
            run.in_frame(scope, vars, |run| {
                run.in_program(program, |run| {
                    for (name, default) in &decl.params {
                        if run.at(run.frame).vars.iter().any(|(found, _)| *found == &**name) {
                            continue;
                        }
                        let value = match default {
                            Some(default) => run.eval(default)?,
                            None => Value::Undefined(Some(name.clone())),
                        };
                        run.set(name, value);
                    }
                    run.body(&decl.body)
                })
            })
        })
    }
}

/// The template before the first one runs.
static NONE: Program = Program { name: None, body: Vec::new() };
