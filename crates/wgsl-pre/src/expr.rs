//! The integer expressions of `#if` and `#elif`.

use std::rc::Rc;

use crate::error::ErrorKind;
use crate::expand::{self, Budget, Failure};
use crate::lex::{self, Kind, Token};
use crate::macros::Table;

/// Maximum nesting depth of parentheses, signs and macros.
const MAX_DEPTH: u32 = 100;

/// The value of an expression, or the reason why it has none and the byte offset in the line.
pub(crate) type Result<T> = std::result::Result<T, (ErrorKind, usize)>;

/// Evaluates the expression `tokens`, the rest of a line without comments; `end` is the offset of their end.
pub(crate) fn evaluate(tokens: &[Token], end: usize, table: &Table) -> Result<i64> {
    let (active, budget) = (&mut Vec::new(), &mut Budget::new());
    Evaluator { tokens, at: 0, end, table, active, budget, depth: 0, dead: 0 }.whole()
}

struct Evaluator<'a> {
    tokens: &'a [Token],
    at: usize,
    end: usize,
    table: &'a Table,
    /// The macros being evaluated.
    active: &'a mut Vec<Rc<str>>,
    /// The limit on the total size of macro values: each use of a macro evaluates its value again.
    budget: &'a mut Budget,
    depth: u32,
    /// Greater than zero in an operand that is not evaluated, such as the right one in `0 && x`.
    dead: u32,
}

/// The precedence of a binary operator; `None` for other tokens.
fn precedence(operator: &str) -> Option<u32> {
    Some(match operator {
        "||" => 1,
        "&&" => 2,
        "|" => 3,
        "^" => 4,
        "&" => 5,
        "==" | "!=" => 6,
        "<" | ">" | "<=" | ">=" => 7,
        "<<" | ">>" => 8,
        "+" | "-" => 9,
        "*" | "/" | "%" => 10,
        _ => return None,
    })
}

/// Wrapping 64-bit arithmetic; shifts by too many bits give zero. `None` for a division by zero.
fn apply(operator: &str, left: i64, right: i64) -> Option<i64> {
    let shift = u32::try_from(right).unwrap_or(u32::MAX);
    Some(match operator {
        "||" => (left != 0 || right != 0).into(),
        "&&" => (left != 0 && right != 0).into(),
        "|" => left | right,
        "^" => left ^ right,
        "&" => left & right,
        "==" => (left == right).into(),
        "!=" => (left != right).into(),
        "<" => (left < right).into(),
        ">" => (left > right).into(),
        "<=" => (left <= right).into(),
        ">=" => (left >= right).into(),
        "<<" => left.checked_shl(shift).unwrap_or(0),
        ">>" => left.checked_shr(shift).unwrap_or(if left < 0 { -1 } else { 0 }),
        "+" => left.wrapping_add(right),
        "-" => left.wrapping_sub(right),
        "*" => left.wrapping_mul(right),
        "/" | "%" if right == 0 => return None,
        "/" => left.wrapping_div(right),
        "%" => left.wrapping_rem(right),
        _ => unreachable!("`precedence` covers every operator"),
    })
}

impl Evaluator<'_> {
    fn whole(mut self) -> Result<i64> {
        let value = self.binary(1)?;
        match self.peek() {
            None => Ok(value),
            Some(token) => Err((ErrorKind::ExpectedOperator { found: token.text.to_string() }, token.at)),
        }
    }

    fn peek(&mut self) -> Option<&Token> {
        while self.tokens.get(self.at).is_some_and(Token::is_space) {
            self.at += 1;
        }
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.at += 1;
        token
    }

    fn accept(&mut self, punct: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.is(punct));
        if found {
            self.at += 1;
        }
        found
    }

    /// The offset of the next token, and its text for an error message.
    fn found(&mut self) -> (String, usize) {
        let end = self.end;
        match self.peek() {
            Some(token) => (format!("`{}`", token.text), token.at),
            None => ("the end of the line".into(), end),
        }
    }

    fn deeper<T>(&mut self, at: usize, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err((ErrorKind::ExpressionTooDeep { limit: MAX_DEPTH }, at));
        }
        self.depth += 1;
        let value = inner(self);
        self.depth -= 1;
        value
    }

    fn binary(&mut self, min: u32) -> Result<i64> {
        let mut left = self.unary()?;
        while let Some(token) = self.peek() {
            let Some(binds) = precedence(&token.text).filter(|&binds| binds >= min) else { break };
            let (operator, at) = (token.text.clone(), token.at);
            self.at += 1;
            let decided = match &*operator {
                "&&" => left == 0,
                "||" => left != 0,
                _ => false,
            };
            self.dead += u32::from(decided);
            let right = self.binary(binds + 1);
            self.dead -= u32::from(decided);
            left = match apply(&operator, left, right?) {
                Some(value) => value,
                None if self.dead > 0 => 0,
                None => return Err((ErrorKind::DivisionByZero, at)),
            };
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<i64> {
        let (found, at) = self.found();
        let Some(token) = self.next() else { return Err((ErrorKind::ExpectedValue { found }, at)) };
        match (token.kind, &*token.text) {
            (Kind::Punct, "!") => Ok((self.deeper(at, Self::unary)? == 0).into()),
            (Kind::Punct, "-") => Ok(self.deeper(at, Self::unary)?.wrapping_neg()),
            (Kind::Punct, "+") => self.deeper(at, Self::unary),
            (Kind::Punct, "~") => Ok(!self.deeper(at, Self::unary)?),
            (Kind::Punct, "(") => {
                let value = self.deeper(at, |this| this.binary(1))?;
                self.close()?;
                Ok(value)
            }
            (Kind::Number, text) => {
                number(text).ok_or_else(|| (ErrorKind::BadNumber { text: text.into() }, at))
            }
            (Kind::Ident, "defined") => self.defined(),
            (Kind::Ident, _) => self.identifier(&token),
            _ => Err((ErrorKind::ExpectedValue { found }, at)),
        }
    }

    fn close(&mut self) -> Result<()> {
        if self.accept(")") {
            return Ok(());
        }
        let (found, at) = self.found();
        Err((ErrorKind::ExpectedClose { found }, at))
    }

    fn defined(&mut self) -> Result<i64> {
        let in_parentheses = self.accept("(");
        let (found, at) = self.found();
        let name = self.next().filter(|token| token.kind == Kind::Ident);
        let Some(name) = name else { return Err((ErrorKind::ExpectedDefinedName { found }, at)) };
        if in_parentheses {
            self.close()?;
        }
        Ok(self.table.contains(&name.text).into())
    }

    fn identifier(&mut self, name: &Token) -> Result<i64> {
        let table = self.table;
        let Some(definition) = table.get(&name.text) else {
            return Ok((&*name.text == "true").into());
        };
        let value = if definition.params.is_some() {
            if !self.peek().is_some_and(|token| token.is("(")) {
                return Ok(0);
            }
            let call = self.call(name);
            if self.dead > 0 {
                return Ok(0);
            }
            expand::expand_within(call, table, self.budget).map_err(Failure::into_error)?
        } else {
            if self.dead > 0 {
                return Ok(0);
            }
            self.budget.spend(&definition.body, &name.text).map_err(|kind| (kind, name.at))?;
            definition.body.clone()
        };
        if value.is_empty() {
            return Ok(1);
        }
        if self.active.contains(&name.text) {
            return Err((ErrorKind::RecursiveMacro { name: name.text.to_string() }, name.at));
        }
        self.deeper(name.at, |this| {
            this.active.push(name.text.clone());
            let inner = Evaluator {
                tokens: &value,
                at: 0,
                end: 0,
                table,
                active: this.active,
                budget: this.budget,
                depth: this.depth,
                dead: 0,
            };
            let result = inner.whole();
            this.active.pop();
            result.map_err(|(kind, _)| match kind {
                ErrorKind::RecursiveMacro { .. }
                | ErrorKind::ExpressionTooDeep { .. }
                | ErrorKind::ExpansionTooLarge { .. }
                | ErrorKind::DivisionByZero
                | ErrorKind::MacroValue { .. } => (kind, name.at),
                _ => {
                    let kind =
                        ErrorKind::MacroValue { name: name.text.to_string(), value: expand::join(&value) };
                    (kind, name.at)
                }
            })
        })
    }

    /// The tokens of `name(…)`, up to the matching parenthesis.
    fn call(&mut self, name: &Token) -> Vec<Token> {
        let mut tokens = vec![name.clone()];
        let mut depth = 0;
        while let Some(token) = self.tokens.get(self.at).cloned() {
            self.at += 1;
            depth += i32::from(token.is("(")) - i32::from(token.is(")"));
            let closed = token.is(")") && depth == 0;
            tokens.push(token);
            if closed {
                break;
            }
        }
        tokens
    }
}

/// Parses a decimal or hexadecimal integer with an optional `u` or `i` suffix.
fn number(text: &str) -> Option<i64> {
    let digits = text.strip_suffix(['u', 'U', 'i']).unwrap_or(text);
    let (digits, radix) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (digits, 10),
    };
    i64::from_str_radix(digits, radix).ok()
}

/// The tokens of a text, without comments.
pub(crate) fn tokens(text: &str, from: usize) -> Vec<Token> {
    lex::lex(text.get(from..).unwrap_or_default(), &mut 0)
        .into_iter()
        .filter(|lexeme| lexeme.kind != Kind::Comment)
        .map(|lexeme| Token { at: from + lexeme.at, ..lexeme.into() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::macros::{Definition, Macros};

    fn value(text: &str) -> std::result::Result<i64, String> {
        let macros = Macros::parse([
            "EMPTY",
            "FOUR=4",
            "SUM=1 + 1",
            "TYPE=vec4<u32>",
            "YES=true",
            "LOOP=POOL",
            "POOL=LOOP",
        ]);
        let mut table = Table::new(&macros.unwrap(), &Macros::new()).unwrap();
        table.define("DOUBLE", Definition::new(Some(vec!["x".into()]), "((x) * 2)"));
        evaluate(&tokens(text, 0), text.len(), &table).map_err(|(kind, at)| format!("{at}: {kind}"))
    }

    #[test]
    fn operators_bind_as_in_c() {
        for (text, expected) in [
            ("1 + 2 * 3", 7),
            ("(1 + 2) * 3", 9),
            ("10 - 4 - 3", 3),
            ("2 * 7 % 4", 2),
            ("7 / 2", 3),
            ("-7 / 2", -3),
            ("-7 % 3", -1),
            ("1 << 3 + 1", 16),
            ("256 >> 4", 16),
            ("1 << 2 < 5", 1),
            ("3 > 2 == 1", 1),
            ("1 == 1 && 2 != 2 || 1", 1),
            ("1 || 0 && 0", 1),
            ("6 & 3 | 8 ^ 1", 11),
            ("!0 + !5", 1),
            ("-+-3", 3),
            ("~0", -1),
            ("0xFFu", 255),
            ("7i == 7u", 1),
            ("0xffffffff", 0xffff_ffff),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn arithmetic_wraps_around() {
        for (text, expected) in [
            ("0 && 5 / 0", 0),
            ("1 || 5 % 0", 1),
            ("1 << 64", 0),
            ("1 << -1", 0),
            ("-1 >> 100", -1),
            ("9223372036854775807 + 1", i64::MIN),
            ("(-9223372036854775807 - 1) / -1", i64::MIN),
            ("(-9223372036854775807 - 1) % -1", 0),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn macros_have_the_value_of_their_expression() {
        for (text, expected) in [
            ("UNDEFINED", 0),
            ("EMPTY", 1),
            ("FOUR == 4", 1),
            ("SUM * 2", 4),
            ("YES && !false", 1),
            ("defined(FOUR) && defined EMPTY && !defined ( UNDEFINED )", 1),
            ("DOUBLE(FOUR + 1)", 10),
            ("DOUBLE", 0),
            ("defined(DOUBLE)", 1),
            ("0 && TYPE", 0),
            ("1 || LOOP || DOUBLE(1, 2)", 1),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn macros_that_double_in_each_step_are_refused() {
        let mut table = Table::default();
        table.define("A0", Definition::new(None, "1"));
        for i in 1..60 {
            let value = format!("A{} + A{}", i - 1, i - 1);
            table.define(&format!("A{i}"), Definition::new(None, &value));
        }
        let value = |text: &str| {
            evaluate(&tokens(text, 0), text.len(), &table).map_err(|(kind, at)| format!("{at}: {kind}"))
        };
        assert_eq!(value("A10"), Ok(1024));
        let error = value("2 + A59").unwrap_err();
        assert!(
            error.starts_with("4: macro `A") && error.ends_with("` makes this line too large"),
            "{error}"
        );
    }

    #[test]
    fn errors_point_at_the_token() {
        for (text, expected) in [
            ("", "0: expected a value, found the end of the line"),
            ("1 +", "3: expected a value, found the end of the line"),
            ("1 + * 2", "4: expected a value, found `*`"),
            ("(1 + 2", "6: expected `)`, found the end of the line"),
            ("1 2", "2: expected an operator, found `2`"),
            ("1 $ 2", "2: expected an operator, found `$`"),
            ("1.5", "0: `1.5` is not a valid integer in `#if`"),
            ("0x", "0: `0x` is not a valid integer in `#if`"),
            ("99999999999999999999", "0: `99999999999999999999` is not a valid integer in `#if`"),
            ("defined(1)", "8: expected a name after `defined`, found `1`"),
            ("defined(A", "9: expected `)`, found the end of the line"),
            ("1 + TYPE", "4: macro `TYPE` is `vec4<u32>`, which is no integer expression"),
            ("1 + 5 / 0", "6: division by zero"),
            ("5 % (2 - 2)", "2: division by zero"),
            ("LOOP", "0: macro `LOOP` is recursive"),
            ("DOUBLE(1, 2)", "0: macro `DOUBLE` takes 1 argument, found 2"),
            ("DOUBLE(1", "0: unclosed call of macro `DOUBLE`"),
        ] {
            assert_eq!(value(text), Err(expected.to_owned()), "{text}");
        }
        assert!(value(&"(".repeat(10_000)).unwrap_err().contains("deeper than 100"));
        assert!(value(&"!".repeat(10_000)).unwrap_err().contains("deeper than 100"));
    }
}
