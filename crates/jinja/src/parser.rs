//! Parses statements.
//!
//! # Source
//!
//! Jinja2's `parser.py`.

use std::sync::Arc;

use super::ast::{Arg, Expr, ExprKind, Filter, For, Macro, Reads, Stmt, StmtKind, Target};
use super::environment::Dialect;
use super::fault::{Fault, Pos, Result, fail};
use super::lexer::{Token, check_size, tokenize};

/// Maximum nesting of blocks and brackets in the source. The parser recurses once for each.
const MAX_NESTING: u32 = 100;

/// Maximum levels of expressions within each other, brackets or not.
const MAX_HEIGHT: u16 = 150;

/// Maximum number of parameters of a macro; they are found by searching.
const MAX_PARAMS: usize = 255;

/// The statements of a template.
pub(super) fn parse(source: &str, dialect: Dialect) -> Result<Vec<Stmt>> {
    check_size(source)?;
    let mut parser = Parser {
        dialect,
        tokens: tokenize(source, dialect == Dialect::Code)?,
        at: 0,
        depth: 0,
        n_loop: 0,
        reads: Reads::default(),
    };
    let body = parser.body(&[]).map_err(|fault| fault.at(parser.pos()))?;
    Ok(body)
}

pub(super) struct Parser {
    dialect: Dialect,
    tokens: Vec<(Token, Pos)>,
    at: usize,
    depth: u32,
    /// Loops around the current statement.
    n_loop: u32,
    /// Special names found in the current macro.
    pub(super) reads: Reads,
}

impl Parser {
    pub(super) fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    pub(super) fn peek_second(&self) -> &Token {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].0
    }

    pub(super) fn pos(&self) -> Pos {
        self.tokens[self.at].1
    }

    pub(super) fn next(&mut self) -> Token {
        let token = std::mem::replace(&mut self.tokens[self.at].0, Token::End);
        if token == Token::End {
            return token;
        }
        self.at += 1;
        token
    }

    pub(super) fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(found) if *found == sign)
    }

    pub(super) fn is_name(&self, name: &str) -> bool {
        matches!(self.peek(), Token::Name(found) if **found == *name)
    }

    /// Passes a sign, if it is next.
    pub(super) fn skip_sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        if found {
            self.next();
        }
        found
    }

    pub(super) fn skip_name(&mut self, name: &str) -> bool {
        let found = self.is_name(name);
        if found {
            self.next();
        }
        found
    }

    pub(super) fn expect_sign(&mut self, sign: &str) -> Result<()> {
        if self.skip_sign(sign) {
            return Ok(());
        }
        fail(format!("expected '{sign}', found '{}'", self.peek().describe()))
    }

    pub(super) fn expect_name(&mut self) -> Result<Arc<str>> {
        match self.peek() {
            Token::Name(name) => {
                let name = name.clone();
                self.next();
                Ok(name)
            }
            other => fail(format!("expected a name, found '{}'", other.describe())),
        }
    }

    fn expect(&mut self, token: &Token) -> Result<()> {
        if self.peek() == token {
            self.next();
            return Ok(());
        }
        fail(format!("expected {}, found '{}'", token.describe(), self.peek().describe()))
    }

    /// Parses one level deeper.
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_NESTING {
            return Err(Fault::limit("nested blocks and brackets", MAX_NESTING.into()).at(self.pos()));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// An expression of bounded height.
    pub(super) fn node(&self, pos: Pos, kind: ExprKind) -> Result<Expr> {
        let height = 1 + children(&kind).map(|e| e.height).max().unwrap_or(0);
        if height > MAX_HEIGHT {
            return Err(Fault::limit("levels of expressions", MAX_HEIGHT.into()).at(pos));
        }
        Ok(Expr { pos, height, kind })
    }

    /// Statements up to a block that begins with one of `ends`, which is left; an empty list is the end of the
    /// template.
    fn body(&mut self, ends: &[&str]) -> Result<Vec<Stmt>> {
        let mut body = Vec::new();
        loop {
            let pos = self.pos();
            match self.next() {
                Token::Text(text) => body.push(Stmt { pos, kind: StmtKind::Text(text) }),
                Token::VariableBegin => {
                    let value = self.tuple(false)?;
                    self.expect(&Token::VariableEnd)?;
                    body.push(Stmt { pos, kind: StmtKind::Emit(value) });
                }
                Token::BlockBegin => {
                    if ends.iter().any(|end| self.is_name(end)) {
                        return Ok(body);
                    }
                    let pos = self.pos();
                    if let Some(kind) = self.nested(Self::statement)? {
                        body.push(Stmt { pos, kind });
                    }
                    self.expect(&Token::BlockEnd)?;
                }
                _ if ends.is_empty() => return Ok(body),
                _ => {
                    return fail(format!(
                        "unexpected end of template, looking for '{}'",
                        ends[ends.len() - 1]
                    ));
                }
            }
        }
    }

    /// The body of a block, from the end of its tag to the name of its end tag, which is passed.
    fn block(&mut self, end: &str) -> Result<Vec<Stmt>> {
        self.expect(&Token::BlockEnd)?;
        let body = self.body(&[end])?;
        self.next();
        Ok(body)
    }

    fn statement(&mut self) -> Result<Option<StmtKind>> {
        let name = self.expect_name()?;
        Ok(Some(match &*name {
            "for" => StmtKind::For(self.for_loop()?),
            "if" => self.if_block()?,
            "set" => self.set()?,
            "with" => self.with()?,
            "macro" => {
                let name = self.expect_name()?;
                StmtKind::Macro(self.macro_block(name, true, "endmacro")?)
            }
            "call" => self.call()?,
            "filter" => {
                let filters = self.filters(true)?;
                StmtKind::FilterBlock(filters, self.block("endfilter")?)
            }
            // It marks the assistant's text for training.
            "generation" => StmtKind::Scope(self.block("endgeneration")?),
            "autoescape" => {
                self.expression()?;
                StmtKind::Scope(self.block("endautoescape")?)
            }
            "block" => {
                let name = self.expect_name()?;
                let body = self.block("endblock")?;
                if let Token::Name(_) = self.peek() {
                    self.next();
                }
                StmtKind::Block(name, body)
            }
            "do" => StmtKind::Do(self.tuple(false)?),
            "break" | "continue" if self.n_loop == 0 => return fail(format!("'{name}' outside of a loop")),
            "break" => StmtKind::Break,
            "continue" => StmtKind::Continue,
            "include" | "import" | "from" | "extends" if self.dialect == Dialect::Chat => {
                return fail(format!("'{name}' needs another template, and a model has one"));
            }
            "include" => self.include()?,
            "import" => self.import()?,
            "from" => self.import_names()?,
            "extends" => StmtKind::Extends(self.expression()?),
            _ => return fail(format!("unknown tag '{}'", name.chars().take(40).collect::<String>())),
        }))
    }

    fn include(&mut self) -> Result<StmtKind> {
        let name = self.expression()?;
        let is_optional = self.skip_name("ignore");
        if is_optional && !self.skip_name("missing") {
            return fail("expected 'missing' after 'ignore'");
        }
        self.context()?;
        Ok(StmtKind::Include { name, is_optional })
    }

    fn import(&mut self) -> Result<StmtKind> {
        let name = self.expression()?;
        if !self.skip_name("as") {
            return fail(format!("expected 'as', found '{}'", self.peek().describe()));
        }
        let module = self.expect_name()?;
        self.context()?;
        Ok(StmtKind::Import(name, module))
    }

    fn import_names(&mut self) -> Result<StmtKind> {
        let template = self.expression()?;
        if !self.skip_name("import") {
            return fail(format!("expected 'import', found '{}'", self.peek().describe()));
        }
        let mut names = Vec::new();
        loop {
            let name = self.expect_name()?;
            let here = if self.skip_name("as") { self.expect_name()? } else { name.clone() };
            names.push((name, here));
            if !self.skip_sign(",") {
                break;
            }
        }
        self.context()?;
        Ok(StmtKind::ImportNames(template, names))
    }

    /// Passes `with context`, which is always so.
    fn context(&mut self) -> Result<()> {
        if self.is_name("without") {
            return fail("templates always see the variables around: 'without context' is unknown");
        }
        if self.skip_name("with") && !self.skip_name("context") {
            return fail("expected 'context' after 'with'");
        }
        Ok(())
    }

    fn for_loop(&mut self) -> Result<For> {
        let target = self.target(&["in"])?;
        if !self.skip_name("in") {
            return fail(format!("expected 'in', found '{}'", self.peek().describe()));
        }
        let iter = self.tuple_of(false, &["recursive"])?;
        let filter = if self.skip_name("if") { Some(self.expression()?) } else { None };
        let is_recursive = self.skip_name("recursive");
        self.expect(&Token::BlockEnd)?;
        let outer = self.n_loop;
        self.n_loop = outer + 1;
        let body = self.body(&["endfor", "else"])?;
        self.n_loop = outer;
        let otherwise = match self.skip_name("else") {
            true => self.block("endfor")?,
            false => {
                self.next();
                Vec::new()
            }
        };
        Ok(For { target, iter, filter, body, otherwise, is_recursive })
    }

    fn if_block(&mut self) -> Result<StmtKind> {
        let mut branches = Vec::new();
        loop {
            let test = self.tuple_of(false, &[])?;
            self.expect(&Token::BlockEnd)?;
            let body = self.body(&["elif", "else", "endif"])?;
            branches.push((test, body));
            if self.skip_name("elif") {
                continue;
            }
            if self.skip_name("else") {
                return Ok(StmtKind::If(branches, self.block("endif")?));
            }
            self.next();
            return Ok(StmtKind::If(branches, Vec::new()));
        }
    }

    fn set(&mut self) -> Result<StmtKind> {
        let target = self.target(&[])?;
        if self.skip_sign("=") {
            return Ok(StmtKind::Set(target, self.tuple(false)?));
        }
        let filters = self.filters(false)?;
        Ok(StmtKind::SetBlock(target, filters, self.block("endset")?))
    }

    fn with(&mut self) -> Result<StmtKind> {
        let mut assignments = Vec::new();
        while *self.peek() != Token::BlockEnd {
            if !assignments.is_empty() {
                self.expect_sign(",")?;
            }
            let target = self.target(&[])?;
            self.expect_sign("=")?;
            assignments.push((target, self.expression()?));
        }
        Ok(StmtKind::With(assignments, self.block("endwith")?))
    }

    fn call(&mut self) -> Result<StmtKind> {
        let name: Arc<str> = "caller".into();
        let has_params = self.is_sign("(");
        let at = self.at;
        if has_params {
            // The parameters come before the call, and the body behind it.
            let params = self.params()?;
            let call = self.expression()?;
            let Macro { body, reads, .. } = self.macro_block(name.clone(), false, "endcall")?;
            return Ok(StmtKind::Call(called(call)?, Macro { name, params, body, reads }));
        }
        debug_assert_eq!(at, self.at);
        let call = self.expression()?;
        Ok(StmtKind::Call(called(call)?, self.macro_block(name, false, "endcall")?))
    }

    /// A macro from its parameters, if it has any, to its end tag.
    fn macro_block(&mut self, name: Arc<str>, has_params: bool, end: &str) -> Result<Macro> {
        let outer = std::mem::take(&mut self.reads);
        let n_loop = std::mem::take(&mut self.n_loop);
        let params = if has_params { self.params()? } else { Vec::new() };
        let body = self.block(end)?;
        self.n_loop = n_loop;
        let reads = std::mem::replace(&mut self.reads, outer);
        Ok(Macro { name, params, body, reads })
    }

    fn params(&mut self) -> Result<Vec<(Arc<str>, Option<Expr>)>> {
        self.expect_sign("(")?;
        let mut params: Vec<(Arc<str>, Option<Expr>)> = Vec::new();
        while !self.skip_sign(")") {
            if !params.is_empty() {
                self.expect_sign(",")?;
            }
            let name = self.expect_name()?;
            let default = if self.skip_sign("=") { Some(self.expression()?) } else { None };
            if default.is_none() && params.last().is_some_and(|(_, default)| default.is_some()) {
                return fail("non-default argument follows default argument");
            }
            if params.len() >= MAX_PARAMS {
                return Err(Fault::limit("parameters", MAX_PARAMS as u64));
            }
            params.push((name, default));
        }
        Ok(params)
    }

    /// Filters with their `|`; the first has none if `is_first_bare`.
    fn filters(&mut self, is_first_bare: bool) -> Result<Vec<Filter>> {
        let mut filters = Vec::new();
        while (is_first_bare && filters.is_empty()) || self.skip_sign("|") {
            filters.push(self.filter()?);
        }
        Ok(filters)
    }

    /// A place of assignment, which ends before one of the names `ends`.
    fn target(&mut self, ends: &[&str]) -> Result<Target> {
        let mut targets = vec![self.target_item()?];
        let mut is_tuple = false;
        while self.skip_sign(",") {
            is_tuple = true;
            if self.is_sign("=") || ends.iter().any(|end| self.is_name(end)) {
                break;
            }
            targets.push(self.target_item()?);
        }
        Ok(match (is_tuple, targets.pop()) {
            (false, Some(target)) => target,
            (_, last) => {
                targets.extend(last);
                Target::Tuple(targets)
            }
        })
    }

    fn target_item(&mut self) -> Result<Target> {
        if self.skip_sign("(") {
            let target = self.nested(|parser| parser.target(&[]))?;
            self.expect_sign(")")?;
            return Ok(target);
        }
        let name = self.expect_name()?;
        if matches!(&*name, "true" | "false" | "none" | "True" | "False" | "None") {
            return fail(format!("can't assign to '{name}'"));
        }
        if self.skip_sign(".") {
            return Ok(Target::Attr(name, self.expect_name()?));
        }
        Ok(Target::Name(name))
    }
}

fn called(call: Expr) -> Result<Expr> {
    match call.kind {
        ExprKind::Call(..) => Ok(call),
        _ => fail("expected a call"),
    }
}

/// The expressions directly in an expression.
fn children(kind: &ExprKind) -> Box<dyn Iterator<Item = &Expr> + '_> {
    fn args(args: &[Arg]) -> impl Iterator<Item = &Expr> {
        args.iter().map(Arg::expr)
    }
    match kind {
        ExprKind::Const(_) | ExprKind::Name(_) => Box::new(std::iter::empty()),
        ExprKind::List(items)
        | ExprKind::Tuple(items)
        | ExprKind::Concat(items)
        | ExprKind::And(items)
        | ExprKind::Or(items) => Box::new(items.iter()),
        ExprKind::Dict(entries) => Box::new(entries.iter().flat_map(|(key, value)| [key, value])),
        ExprKind::Unary(_, e) | ExprKind::Attr(e, _) => Box::new(std::iter::once(&**e)),
        ExprKind::Binary(first, rest) => {
            Box::new(std::iter::once(&**first).chain(rest.iter().map(|(_, e)| e)))
        }
        ExprKind::Compare(first, rest) => {
            Box::new(std::iter::once(&**first).chain(rest.iter().map(|(_, e)| e)))
        }
        ExprKind::If { test, yes, no } => Box::new([&**test, &**yes].into_iter().chain(no.as_deref())),
        ExprKind::Item(e, key) => Box::new([&**e, &**key].into_iter()),
        ExprKind::Slice(e, bounds) => {
            Box::new(std::iter::once(&**e).chain(bounds.iter().filter_map(|bound| bound.as_deref())))
        }
        ExprKind::Call(e, list) | ExprKind::Test { value: e, args: list, .. } => {
            Box::new(std::iter::once(&**e).chain(args(list)))
        }
        ExprKind::Filter(e, filter) => Box::new(std::iter::once(&**e).chain(args(&filter.args))),
    }
}
