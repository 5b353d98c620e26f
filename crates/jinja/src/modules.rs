//! Runs templates within templates: `include`, `import` and `extends`.

use super::Program;
use super::ast::{Expr, Stmt, StmtKind};
use super::environment::missing;
use super::fault::{Fault, Pos, Result, fail};
use super::meter::MAX_CALL_DEPTH;
use super::run::{Flow, Run, Scope};
use super::value::Value;

impl<'p> Run<'p> {
    /// Runs a template, and the ones that it extends.
    pub(super) fn program(&mut self, program: &'p Program) -> Result<()> {
        let outer = std::mem::take(&mut self.inheritance);
        let result = self.chain(program);
        self.inheritance = outer;
        result
    }

    fn chain(&mut self, program: &'p Program) -> Result<()> {
        let mut current = program;
        for _ in 0..MAX_CALL_DEPTH {
            self.inheritance.base = None;
            let extends = current.body.iter().any(|stmt| matches!(stmt.kind, StmtKind::Extends(_)));
            let result = self.in_program(current, |run| match extends {
                // Besides blocks, it prints nothing.
                true => run.captured(|run| run.body(&current.body)).map(drop),
                false => run.body(&current.body).map(drop),
            });
            result?;
            match self.inheritance.base {
                Some(base) => current = base,
                None => return Ok(()),
            }
        }
        Err(Fault::limit("templates that extend each other", MAX_CALL_DEPTH.into()))
    }

    /// Runs a part of `program`, which then is the template of failures and macros.
    pub(super) fn in_program<T>(
        &mut self,
        program: &'p Program,
        run: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let outer = std::mem::replace(&mut self.current, program);
        let result = run(self);
        self.current = outer;
        result.map_err(|fault| fault.within(program.name.as_ref()))
    }

    /// The template with the name that `expr` has; `None` if there is none.
    fn find(&mut self, expr: &'p Expr, pos: Pos) -> Result<(Value, Option<&'p Program>)> {
        let value = self.eval(expr)?;
        let Some(name) = value.as_str() else {
            return fail(format!("expected the name of a template, found '{}'", value.type_name()));
        };
        // A template that does not parse has a place of its own.
        let found = self.env.find(name).map_err(|fault| match fault.place.template {
            Some(_) => fault.included_at(pos),
            None => fault,
        })?;
        Ok((value, found))
    }

    fn required(&mut self, expr: &'p Expr, pos: Pos) -> Result<&'p Program> {
        match self.find(expr, pos)? {
            (_, Some(program)) => Ok(program),
            (name, None) => missing(name.as_str().unwrap_or_default()),
        }
    }

    pub(super) fn include(&mut self, name: &'p Expr, is_optional: bool, pos: Pos) -> Result<()> {
        let program = match is_optional {
            true => self.find(name, pos)?.1,
            false => Some(self.required(name, pos)?),
        };
        let Some(program) = program else { return Ok(()) };
        self.in_frame(self.frame, Vec::new(), |run| run.program(program))
            .map_err(|fault| fault.included_at(pos))
    }

    /// Runs a template for its names: the module with them.
    pub(super) fn import(&mut self, name: &'p Expr, pos: Pos) -> Result<usize> {
        let program = self.required(name, pos)?;
        let id = self.new_module()?;
        let outer = std::mem::replace(&mut self.frame, Scope::Module(id));
        let result = self.captured(|run| run.program(program));
        self.frame = outer;
        result.map_err(|fault| fault.included_at(pos))?;
        Ok(id)
    }

    pub(super) fn extends(&mut self, name: &'p Expr, pos: Pos) -> Result<()> {
        if self.inheritance.base.is_some() {
            return fail("a template can extend only one other");
        }
        self.inheritance.base = Some(self.required(name, pos)?);
        Ok(())
    }

    pub(super) fn block(&mut self, name: &'p str, body: &'p [Stmt]) -> Result<Flow> {
        let found = self.inheritance.blocks.iter().find(|(found, ..)| *found == name).copied();
        match (found, self.inheritance.base) {
            (Some(_), Some(_)) => Ok(Flow::Next),
            (None, Some(_)) => {
                self.inheritance.blocks.push((name, body, self.current));
                Ok(Flow::Next)
            }
            (Some((_, body, program)), None) => self.in_program(program, |run| run.scope(body)),
            (None, None) => self.scope(body),
        }
    }
}
