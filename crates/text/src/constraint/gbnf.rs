//! Translates llama.cpp's grammar notation (GBNF) to llguidance's.
//!
//! Every character becomes a separate terminal. Longer terminals would be matched greedily, as in programming
//! languages, which would forbid some texts that the grammar allows.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::ConstraintError;

/// Maximum nesting depth of groups.
const MAX_DEPTH: usize = 64;
/// Maximum number of repetitions; each takes memory.
const MAX_REPEAT: u32 = 10_000;

/// Translates a grammar to llguidance's notation.
///
/// # Errors
///
/// [`ConstraintError::Gbnf`] with the location.
///
/// # Source
///
/// llama.cpp `grammars/README.md`: `name ::= alternatives`, literals, classes, `.`, groups, `* + ? {m,n}`,
/// comments; `root` is the start rule.
pub(super) fn to_lark(source: &str) -> Result<String, ConstraintError> {
    let mut parser =
        Parser { source, at: 0, numbers: BTreeMap::new(), uses: BTreeMap::new(), rules: BTreeMap::new() };
    parser.space(true);
    while !parser.rest().is_empty() {
        parser.rule()?;
    }
    for (number, &at) in &parser.uses {
        if !parser.rules.contains_key(number) {
            let name = parser.numbers.iter().find(|(_, n)| *n == number).map_or("", |(name, _)| *name);
            return Err(parser.error(at, format!("rule `{name}` is used but not defined")));
        }
    }
    let Some(root) = parser.numbers.get("root").filter(|root| parser.rules.contains_key(root)) else {
        return Err(parser.error(source.len(), "rule `root` is missing".into()));
    };
    let mut out = format!("start: r{root}\n");
    for (number, body) in &parser.rules {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "r{number}: {body}");
    }
    Ok(out)
}

struct Parser<'t> {
    source: &'t str,
    /// Offset in bytes.
    at: usize,
    /// Rules by name; they are renamed in the target notation.
    numbers: BTreeMap<&'t str, usize>,
    /// Offset of the first use of each rule.
    uses: BTreeMap<usize, usize>,
    rules: BTreeMap<usize, String>,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        &self.source[self.at..]
    }

    fn error(&self, at: usize, what: String) -> ConstraintError {
        let before = &self.source[..at];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        ConstraintError::Gbnf {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            what,
        }
    }

    fn expected<T>(&self, what: &str) -> Result<T, ConstraintError> {
        let found = match self.rest().chars().next() {
            Some(c) => format!("{c:?}"),
            None => "the end of the grammar".to_owned(),
        };
        Err(self.error(self.at, format!("expected {what}, found {found}")))
    }

    /// Skips white space and comments, and line endings if `lines`.
    fn space(&mut self, lines: bool) {
        loop {
            let is_space = |c: char| matches!(c, ' ' | '\t') || (lines && matches!(c, '\n' | '\r'));
            let rest = self.rest().trim_start_matches(is_space);
            self.at = self.source.len() - rest.len();
            if !rest.starts_with('#') {
                return;
            }
            self.at += rest.find('\n').unwrap_or(rest.len());
        }
    }

    fn take(&mut self, text: &str) -> bool {
        let is_there = self.rest().starts_with(text);
        if is_there {
            self.at += text.len();
        }
        is_there
    }

    fn name(&mut self) -> Option<&'t str> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
        let name = &rest[..end.unwrap_or(rest.len())];
        self.at += name.len();
        (!name.is_empty()).then_some(name)
    }

    fn number(&mut self, name: &'t str) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(name).or_insert(next)
    }

    fn rule(&mut self) -> Result<(), ConstraintError> {
        let start = self.at;
        let Some(name) = self.name() else { return self.expected("a rule name") };
        let number = self.number(name);
        self.space(false);
        if !self.take("::=") {
            return self.expected("`::=`");
        }
        self.space(true);
        let body = self.alternatives(0)?;
        if self.rules.insert(number, body).is_some() {
            return Err(self.error(start, format!("rule `{name}` is defined twice")));
        }
        if !self.rest().is_empty() && !self.rest().starts_with(['\n', '\r']) {
            return self.expected("the end of the line");
        }
        self.space(true);
        Ok(())
    }

    /// Alternatives separated by `|`; within a group, lines may end anywhere.
    fn alternatives(&mut self, depth: usize) -> Result<String, ConstraintError> {
        if depth > MAX_DEPTH {
            return Err(self.error(self.at, format!("groups are nested deeper than {MAX_DEPTH}")));
        }
        let mut out = self.sequence(depth)?;
        while self.take("|") {
            self.space(true);
            out += " | ";
            out += &self.sequence(depth)?;
        }
        Ok(out)
    }

    fn sequence(&mut self, depth: usize) -> Result<String, ConstraintError> {
        let mut out = String::new();
        loop {
            let at = self.at;
            let element = match self.rest().chars().next() {
                Some('"') => self.literal()?,
                Some('[') => self.class()?,
                Some('.') => {
                    self.at += 1;
                    "/(?s:.)/".to_owned()
                }
                Some('(') => {
                    self.at += 1;
                    self.space(true);
                    let inner = self.alternatives(depth + 1)?;
                    if !self.take(")") {
                        return self.expected("`)`");
                    }
                    format!("({inner})")
                }
                Some(c) if c.is_ascii_alphanumeric() || c == '-' || c == '_' => {
                    let Some(name) = self.name() else { return self.expected("a rule name") };
                    let number = self.number(name);
                    self.uses.entry(number).or_insert(at);
                    format!("r{number}")
                }
                _ => return Ok(out),
            };
            self.space(depth > 0);
            let element = self.repeated(element)?;
            self.space(depth > 0);
            if !out.is_empty() {
                out.push(' ');
            }
            out += &element;
        }
    }

    /// `element` with its repetition operator, if any.
    fn repeated(&mut self, element: String) -> Result<String, ConstraintError> {
        for operator in ["*", "+", "?"] {
            if self.take(operator) {
                return Ok(format!("{element}{operator}"));
            }
        }
        let start = self.at;
        if !self.take("{") {
            return Ok(element);
        }
        self.space(true);
        let Some(min) = self.count()? else { return self.expected("a number") };
        self.space(true);
        let mut max = Some(min);
        if self.take(",") {
            self.space(true);
            max = self.count()?;
            self.space(true);
        }
        if !self.take("}") {
            return self.expected("`}`");
        }
        match max {
            Some(max) if max < min => Err(self.error(start, format!("{{{min},{max}}} is empty"))),
            Some(0) => Ok("()".into()),
            Some(max) => Ok(format!("{element}{{{min},{max}}}")),
            None => Ok(format!("{element}{{{min},}}")),
        }
    }

    fn count(&mut self) -> Result<Option<u32>, ConstraintError> {
        let rest = self.rest();
        let digits = &rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())];
        if digits.is_empty() {
            return Ok(None);
        }
        match digits.parse() {
            Ok(n) if n <= MAX_REPEAT => {
                self.at += digits.len();
                Ok(Some(n))
            }
            _ => Err(self.error(self.at, format!("{digits} repetitions exceed the limit of {MAX_REPEAT}"))),
        }
    }

    fn literal(&mut self) -> Result<String, ConstraintError> {
        self.at += 1;
        let mut out = String::from("(");
        while !self.take("\"") {
            let c = self.character("`\"`")?;
            if out.len() > 1 {
                out.push(' ');
            }
            let _ = write!(out, "/{}/", one(c));
        }
        out.push(')');
        Ok(out)
    }

    fn class(&mut self) -> Result<String, ConstraintError> {
        self.at += 1;
        let mut out = String::from(if self.take("^") { "/[^" } else { "/[" });
        let mut is_empty = true;
        while !self.take("]") {
            let at = self.at;
            let from = self.character("`]`")?;
            out += &one(from);
            if self.rest().starts_with('-') && !self.rest().starts_with("-]") {
                self.at += 1;
                let to = self.character("`]`")?;
                if to < from {
                    return Err(self.error(at, format!("the range {from:?}-{to:?} is empty")));
                }
                out.push('-');
                out += &one(to);
            }
            is_empty = false;
        }
        if is_empty {
            return Err(self.error(self.at, "the class is empty".into()));
        }
        out += "]/";
        Ok(out)
    }

    /// One character of a literal or class that ends with `closing`.
    fn character(&mut self, closing: &str) -> Result<char, ConstraintError> {
        let Some(c) = self.rest().chars().next() else { return self.expected(closing) };
        self.at += c.len_utf8();
        if c != '\\' {
            return Ok(c);
        }
        let Some(escape) = self.rest().chars().next() else { return self.expected("an escape") };
        let n_digit = match escape {
            'n' | 'r' | 't' | '\\' | '"' | '[' | ']' | '-' | '^' | '/' => {
                self.at += 1;
                return Ok(match escape {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    other => other,
                });
            }
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => return self.expected("an escape (n r t \\ \" [ ] x u U)"),
        };
        self.at += 1;
        let digits =
            self.rest().get(..n_digit).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).and_then(char::from_u32);
        let Some(c) = code else {
            return self.expected(&format!("{n_digit} hexadecimal digits of a character"));
        };
        self.at += n_digit;
        Ok(c)
    }
}

/// One character as a regular expression.
fn one(c: char) -> String {
    format!("\\x{{{:X}}}", u32::from(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_numbered_and_characters_are_terminals() {
        let lark = to_lark(
            "# yes or no\nroot ::= \"hi\" digits? |\n  [^a-c\\]] # end\ndigits ::= ([0-9]\n | .){2,3}\n",
        );
        assert_eq!(
            lark.unwrap(),
            "start: r0\nr0: (/\\x{68}/ /\\x{69}/) r1? | /[^\\x{61}-\\x{63}\\x{5D}]/\n\
             r1: (/[\\x{30}-\\x{39}]/ | /(?s:.)/){2,3}\n"
        );
    }

    #[test]
    fn errors_say_where() {
        for (source, error) in [
            ("root := x", "line 1, column 6: expected `::=`, found ':'"),
            ("root ::= x", "line 1, column 10: rule `x` is used but not defined"),
            ("x ::= \"a\"", "line 1, column 10: rule `root` is missing"),
            ("\nroot ::= \"a", "line 2, column 12: expected `\"`, found the end of the grammar"),
            ("root ::= (\"a\"", "line 1, column 14: expected `)`, found the end of the grammar"),
            ("root ::= [b-a]", "line 1, column 11: the range 'b'-'a' is empty"),
            ("root ::= \"a\"{3,2}", "line 1, column 13: {3,2} is empty"),
            ("root ::= \"a\"{99999}", "line 1, column 14: 99999 repetitions exceed the limit of 10000"),
            ("root ::= \"\\q\"", "line 1, column 12: expected an escape (n r t \\ \" [ ] x u U), found 'q'"),
            ("root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: rule `root` is defined twice"),
            ("root ::= \"a\" )", "line 1, column 14: expected the end of the line, found ')'"),
        ] {
            assert_eq!(
                to_lark(source).unwrap_err().to_string(),
                format!("GBNF grammar, {error}"),
                "{source}"
            );
        }
        let deep = format!("root ::= {}", "(".repeat(1000));
        assert!(to_lark(&deep).unwrap_err().to_string().ends_with("groups are nested deeper than 64"));
    }
}
