//! Parses expressions, with Jinja2's precedences.

use std::sync::Arc;

use super::ast::{Arg, BinaryOp, CompareOp, Expr, ExprKind, Filter, UnaryOp};
use super::fault::{Result, fail};
use super::lexer::Token;
use super::parser::Parser;
use super::value::Value;

/// Binary operators, from the weakest level to the strongest. `~` is between the first two.
const LEVELS: [&[(&str, BinaryOp)]; 3] = [
    &[("+", BinaryOp::Add), ("-", BinaryOp::Sub)],
    &[("*", BinaryOp::Mul), ("/", BinaryOp::Div), ("//", BinaryOp::FloorDiv), ("%", BinaryOp::Rem)],
    &[("**", BinaryOp::Pow)],
];

const COMPARISONS: [(&str, CompareOp); 6] = [
    ("==", CompareOp::Eq),
    ("!=", CompareOp::Ne),
    ("<", CompareOp::Lt),
    ("<=", CompareOp::Le),
    (">", CompareOp::Gt),
    (">=", CompareOp::Ge),
];

impl Parser {
    /// An expression, or several with commas between them, which make a tuple.
    pub(super) fn tuple(&mut self, in_brackets: bool) -> Result<Expr> {
        self.tuple_or(in_brackets, true, &[])
    }

    /// As [`Parser::tuple`], but without `if ... else`, and up to one of the names `ends`.
    pub(super) fn tuple_of(&mut self, in_brackets: bool, ends: &[&str]) -> Result<Expr> {
        // Only the sequence of a loop must leave its `if` alone; it is the one with ends.
        self.tuple_or(in_brackets, ends.is_empty(), ends)
    }

    fn tuple_or(&mut self, in_brackets: bool, with_if: bool, ends: &[&str]) -> Result<Expr> {
        let pos = self.pos();
        let mut items = Vec::new();
        let mut is_tuple = false;
        loop {
            let is_end = matches!(self.peek(), Token::VariableEnd | Token::BlockEnd)
                || self.is_sign(")")
                || ends.iter().any(|end| self.is_name(end));
            if is_end {
                break;
            }
            items.push(if with_if { self.expression()? } else { self.or()? });
            if !self.skip_sign(",") {
                break;
            }
            is_tuple = true;
        }
        match (is_tuple, items.pop()) {
            (false, Some(item)) => Ok(item),
            (false, None) if !in_brackets => {
                fail(format!("expected an expression, found '{}'", self.peek().describe()))
            }
            (_, last) => {
                items.extend(last);
                self.node(pos, ExprKind::Tuple(items))
            }
        }
    }

    pub(super) fn expression(&mut self) -> Result<Expr> {
        let pos = self.pos();
        let mut value = self.or()?;
        while self.skip_name("if") {
            let test = Box::new(self.or()?);
            let no = match self.skip_name("else") {
                true => Some(Box::new(self.nested(Self::expression)?)),
                false => None,
            };
            value = self.node(pos, ExprKind::If { test, yes: Box::new(value), no })?;
        }
        Ok(value)
    }

    fn or(&mut self) -> Result<Expr> {
        let pos = self.pos();
        let first = self.and()?;
        if !self.is_name("or") {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.skip_name("or") {
            items.push(self.and()?);
        }
        self.node(pos, ExprKind::Or(items))
    }

    fn and(&mut self) -> Result<Expr> {
        let pos = self.pos();
        let first = self.not()?;
        if !self.is_name("and") {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.skip_name("and") {
            items.push(self.not()?);
        }
        self.node(pos, ExprKind::And(items))
    }

    fn not(&mut self) -> Result<Expr> {
        let pos = self.pos();
        if self.skip_name("not") {
            let value = self.nested(Self::not)?;
            return self.node(pos, ExprKind::Unary(UnaryOp::Not, Box::new(value)));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Expr> {
        let pos = self.pos();
        let first = self.binary(0)?;
        let mut rest = Vec::new();
        loop {
            let op = match self.peek() {
                Token::Sign(sign) => COMPARISONS.iter().find(|(found, _)| found == sign).map(|(_, op)| *op),
                Token::Name(name) if **name == *"in" => Some(CompareOp::In),
                Token::Name(name) if **name == *"not" => match self.peek_second() {
                    Token::Name(second) if **second == *"in" => Some(CompareOp::NotIn),
                    _ => None,
                },
                _ => None,
            };
            let Some(op) = op else { break };
            self.next();
            if op == CompareOp::NotIn {
                self.next();
            }
            rest.push((op, self.binary(0)?));
        }
        if rest.is_empty() {
            return Ok(first);
        }
        self.node(pos, ExprKind::Compare(Box::new(first), rest))
    }

    fn binary(&mut self, level: usize) -> Result<Expr> {
        let Some(ops) = LEVELS.get(level) else { return self.unary(true) };
        let pos = self.pos();
        let operand = |parser: &mut Self| match level {
            0 => parser.concat(),
            _ => parser.binary(level + 1),
        };
        let first = operand(self)?;
        let mut rest = Vec::new();
        while let Token::Sign(sign) = self.peek() {
            let Some((_, op)) = ops.iter().find(|(found, _)| found == sign) else { break };
            self.next();
            rest.push((*op, operand(self)?));
        }
        if rest.is_empty() {
            return Ok(first);
        }
        self.node(pos, ExprKind::Binary(Box::new(first), rest))
    }

    fn concat(&mut self) -> Result<Expr> {
        let pos = self.pos();
        let first = self.binary(1)?;
        if !self.is_sign("~") {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.skip_sign("~") {
            items.push(self.binary(1)?);
        }
        self.node(pos, ExprKind::Concat(items))
    }

    fn unary(&mut self, with_filter: bool) -> Result<Expr> {
        let pos = self.pos();
        let op = match self.peek() {
            Token::Sign("-") => Some(UnaryOp::Minus),
            Token::Sign("+") => Some(UnaryOp::Plus),
            _ => None,
        };
        let mut value = match op {
            Some(op) => {
                self.next();
                let operand = self.nested(|parser| parser.unary(false))?;
                self.node(pos, ExprKind::Unary(op, Box::new(operand)))?
            }
            None => self.primary()?,
        };
        value = self.postfix(value)?;
        if with_filter { self.filters_and_tests(value) } else { Ok(value) }
    }

    fn primary(&mut self) -> Result<Expr> {
        let pos = self.pos();
        let kind = match self.next() {
            Token::Name(name) => match &*name {
                "true" | "True" => ExprKind::Const(Value::Bool(true)),
                "false" | "False" => ExprKind::Const(Value::Bool(false)),
                "none" | "None" => ExprKind::Const(Value::None),
                _ => {
                    self.reads.varargs |= *name == *"varargs";
                    self.reads.kwargs |= *name == *"kwargs";
                    self.reads.caller |= *name == *"caller";
                    ExprKind::Name(name)
                }
            },
            Token::Str(mut text) => {
                while let Token::Str(_) = self.peek() {
                    if let Token::Str(more) = self.next() {
                        text.push_str(&more);
                    }
                }
                ExprKind::Const(Value::constant(&text))
            }
            Token::Int(n) => ExprKind::Const(Value::Int(n)),
            Token::Float(x) => ExprKind::Const(Value::Float(x)),
            Token::Sign("(") => {
                let value = self.nested(|parser| parser.tuple(true))?;
                self.expect_sign(")")?;
                return Ok(value);
            }
            Token::Sign("[") => ExprKind::List(self.nested(Self::list)?),
            Token::Sign("{") => ExprKind::Dict(self.nested(Self::dict)?),
            other => return fail(format!("unexpected '{}'", other.describe())),
        };
        self.node(pos, kind)
    }

    /// The items of a list, and its bracket.
    fn list(&mut self) -> Result<Vec<Expr>> {
        let mut items = Vec::new();
        while !self.skip_sign("]") {
            if !items.is_empty() {
                self.expect_sign(",")?;
                if self.skip_sign("]") {
                    break;
                }
            }
            items.push(self.expression()?);
        }
        Ok(items)
    }

    fn dict(&mut self) -> Result<Vec<(Expr, Expr)>> {
        let mut entries = Vec::new();
        while !self.skip_sign("}") {
            if !entries.is_empty() {
                self.expect_sign(",")?;
                if self.skip_sign("}") {
                    break;
                }
            }
            let key = self.expression()?;
            self.expect_sign(":")?;
            entries.push((key, self.expression()?));
        }
        Ok(entries)
    }

    fn postfix(&mut self, mut value: Expr) -> Result<Expr> {
        loop {
            let pos = value.pos;
            let kind = if self.skip_sign(".") {
                match self.next() {
                    Token::Name(name) => ExprKind::Attr(Box::new(value), name),
                    Token::Int(n) => {
                        let index = self.node(pos, ExprKind::Const(Value::Int(n)))?;
                        ExprKind::Item(Box::new(value), Box::new(index))
                    }
                    _ => return fail("expected name or number"),
                }
            } else if self.skip_sign("[") {
                self.nested(|parser| parser.subscript(value))?
            } else if self.is_sign("(") {
                ExprKind::Call(Box::new(value), self.nested(Self::args)?)
            } else {
                return Ok(value);
            };
            value = self.node(pos, kind)?;
        }
    }

    /// A subscript of `value` behind its bracket.
    fn subscript(&mut self, value: Expr) -> Result<ExprKind> {
        let pos = self.pos();
        let value = Box::new(value);
        let mut bounds = [None, None, None];
        let mut n_colon = 0;
        loop {
            if self.skip_sign(":") {
                n_colon += 1;
                if n_colon > 2 {
                    return fail("a slice has at most three parts");
                }
            } else if self.skip_sign("]") {
                break;
            } else if n_colon == 0 && bounds[0].is_some() && self.is_sign(",") {
                let mut items: Vec<Expr> = bounds[0].take().map(|e: Box<Expr>| *e).into_iter().collect();
                while self.skip_sign(",") {
                    items.push(self.expression()?);
                }
                bounds[0] = Some(Box::new(self.node(pos, ExprKind::Tuple(items))?));
            } else if bounds[n_colon].is_none() {
                bounds[n_colon] = Some(Box::new(self.expression()?));
            } else {
                return fail(format!("expected ']', found '{}'", self.peek().describe()));
            }
        }
        if n_colon > 0 {
            return Ok(ExprKind::Slice(value, bounds));
        }
        match bounds {
            [Some(key), ..] => Ok(ExprKind::Item(value, key)),
            _ => fail("expected subscript expression"),
        }
    }

    /// Arguments with their brackets.
    fn args(&mut self) -> Result<Vec<Arg>> {
        self.expect_sign("(")?;
        let mut args = Vec::new();
        let mut has_named = false;
        while !self.skip_sign(")") {
            if !args.is_empty() {
                self.expect_sign(",")?;
                if self.skip_sign(")") {
                    break;
                }
            }
            let is_named = matches!((self.peek(), self.peek_second()), (Token::Name(_), Token::Sign("=")));
            let arg = if self.skip_sign("**") {
                Arg::NamedSplat(self.expression()?)
            } else if self.skip_sign("*") {
                Arg::Splat(self.expression()?)
            } else if is_named {
                let name = self.expect_name()?;
                self.next();
                Arg::Named(name, self.expression()?)
            } else if has_named {
                return fail("positional argument follows keyword argument");
            } else {
                Arg::Positional(self.expression()?)
            };
            has_named |= matches!(arg, Arg::Named(..) | Arg::NamedSplat(_));
            args.push(arg);
        }
        Ok(args)
    }

    /// A filter behind its `|`.
    pub(super) fn filter(&mut self) -> Result<Filter> {
        let pos = self.pos();
        let name = self.dotted_name()?;
        let args = if self.is_sign("(") { self.nested(Self::args)? } else { Vec::new() };
        Ok(Filter { name, args, pos })
    }

    fn dotted_name(&mut self) -> Result<Arc<str>> {
        let mut name = self.expect_name()?;
        while self.skip_sign(".") {
            name = format!("{name}.{}", self.expect_name()?).into();
        }
        Ok(name)
    }

    fn filters_and_tests(&mut self, mut value: Expr) -> Result<Expr> {
        loop {
            let pos = self.pos();
            let kind = if self.skip_sign("|") {
                ExprKind::Filter(Box::new(value), self.filter()?)
            } else if self.skip_name("is") {
                self.test(value)?
            } else if self.is_sign("(") {
                // Calls are valid behind filters: `f|attr('x')()`.
                ExprKind::Call(Box::new(value), self.nested(Self::args)?)
            } else {
                return Ok(value);
            };
            value = self.node(pos, kind)?;
        }
    }

    /// A test behind its `is`.
    fn test(&mut self, value: Expr) -> Result<ExprKind> {
        let negated = self.skip_name("not");
        let name = self.dotted_name()?;
        let is_bare_arg = match self.peek() {
            Token::Name(name) => !matches!(&**name, "else" | "or" | "and" | "is" | "in" | "not" | "if"),
            Token::Str(_) | Token::Int(_) | Token::Float(_) | Token::Sign("[" | "{") => true,
            _ => false,
        };
        if self.is_name("is") {
            return fail("you cannot chain multiple tests with is");
        }
        let args = if self.is_sign("(") {
            self.nested(Self::args)?
        } else if is_bare_arg {
            let arg = self.primary()?;
            vec![Arg::Positional(self.postfix(arg)?)]
        } else {
            Vec::new()
        };
        Ok(ExprKind::Test { value: Box::new(value), name, args, negated })
    }
}
