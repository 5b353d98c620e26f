//! Splits a template into text and tokens, with `trim_blocks` and `lstrip_blocks`.
//!
//! # Source
//!
//! Jinja2's `lexer.py`.

use std::sync::Arc;

use super::fault::{Fault, Pos, Result, fail};
use super::platform;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Text(Arc<str>),
    BlockBegin,
    BlockEnd,
    VariableBegin,
    VariableEnd,
    Name(Arc<str>),
    Int(i128),
    Float(f64),
    Str(String),
    /// An operator or bracket.
    Sign(&'static str),
    End,
}

impl Token {
    /// The token in messages.
    pub(super) fn describe(&self) -> String {
        let short = |text: &str| text.chars().take(40).collect::<String>();
        match self {
            Token::Text(_) => "text".into(),
            Token::BlockBegin => "{%".into(),
            Token::BlockEnd => "end of statement block".into(),
            Token::VariableBegin => "{{".into(),
            Token::VariableEnd => "end of print statement".into(),
            Token::Name(name) => short(name),
            Token::Int(n) => n.to_string(),
            Token::Float(x) => x.to_string(),
            Token::Str(text) => format!("{:?}", short(text)),
            Token::Sign(sign) => (*sign).into(),
            Token::End => "end of template".into(),
        }
    }
}

/// Longer signs first.
const SIGNS: [&str; 26] = [
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<",
    "=", ".", ":", "|", ",", ";",
];

/// Tokens with their lines.
pub(super) fn tokenize(source: &str, keeps_newline: bool) -> Result<Vec<(Token, Pos)>> {
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let end = if keeps_newline { None } else { source.strip_suffix('\n') };
    let source = end.unwrap_or(&source);
    let mut lexer =
        Lexer { rest: source, pos: Pos { line: 1, column: 1 }, is_line_start: true, tokens: Vec::new() };
    lexer.template().map_err(|fault| fault.at(lexer.pos))?;
    let pos = lexer.pos;
    lexer.tokens.push((Token::End, pos));
    Ok(lexer.tokens)
}

struct Lexer<'s> {
    rest: &'s str,
    pos: Pos,
    /// The last match ended with a line break.
    is_line_start: bool,
    tokens: Vec<(Token, Pos)>,
}

/// The openings of what is not text.
#[derive(Clone, Copy, PartialEq)]
enum Opening {
    Variable,
    Block,
    Comment,
}

impl<'s> Lexer<'s> {
    fn push(&mut self, token: Token) {
        self.tokens.push((token, self.pos));
    }

    /// Moves past `n` bytes.
    fn skip(&mut self, n: usize) -> &'s str {
        let (passed, rest) = self.rest.split_at(n);
        let mut line = passed;
        if let Some(end) = passed.rfind('\n') {
            self.pos.line += passed.bytes().filter(|&b| b == b'\n').count() as u32;
            self.pos.column = 1;
            line = &passed[end + 1..];
        }
        self.pos.column += line.chars().count() as u32;
        self.rest = rest;
        if let Some(last) = passed.bytes().last() {
            self.is_line_start = last == b'\n';
        }
        passed
    }

    fn skip_space(&mut self) {
        let n = self.rest.len() - self.rest.trim_start().len();
        self.skip(n);
    }

    fn template(&mut self) -> Result<()> {
        while !self.rest.is_empty() {
            let Some((at, opening)) = find_opening(self.rest) else {
                let text = self.skip(self.rest.len());
                self.push(Token::Text(text.into()));
                return Ok(());
            };
            self.text(at, opening);
            match opening {
                Opening::Comment => self.comment()?,
                Opening::Variable => {
                    self.push(Token::VariableBegin);
                    self.expression(false)?;
                }
                Opening::Block => match self.raw_begin() {
                    true => self.raw()?,
                    false => {
                        self.push(Token::BlockBegin);
                        self.expression(true)?;
                    }
                },
            }
        }
        Ok(())
    }

    /// The text before an opening, and the opening with its sign.
    fn text(&mut self, n: usize, opening: Opening) {
        let is_line_start = self.is_line_start;
        let pos = self.pos;
        let text = self.skip(n);
        let sign = self.rest[2..].chars().next().filter(|c| matches!(c, '-' | '+'));
        let is_variable = opening == Opening::Variable;
        let text = strip_right(text, sign.filter(|c| !is_variable || *c == '-'), !is_variable, is_line_start);
        if !text.is_empty() {
            self.tokens.push((Token::Text(text.into()), pos));
        }
        // `{{+1` is a number.
        let n_sign = usize::from(sign.is_some_and(|c| c == '-' || !is_variable));
        self.skip(2 + n_sign);
    }

    fn comment(&mut self) -> Result<()> {
        let Some(end) = self.rest.find("#}") else { return fail("missing end of comment tag") };
        let sign = self.rest[..end].chars().next_back();
        self.skip(end + 2);
        self.behind_block(sign);
        Ok(())
    }

    /// White space behind the end of a block or comment with `sign`.
    fn behind_block(&mut self, sign: Option<char>) {
        match sign {
            Some('-') => self.skip_space(),
            Some('+') => {}
            _ if self.rest.starts_with('\n') => {
                self.skip(1);
            }
            _ => {}
        }
    }

    /// Passes the rest of a `raw` tag, if this is one.
    fn raw_begin(&mut self) -> bool {
        let Some(rest) = self.rest.trim_start().strip_prefix("raw") else { return false };
        let rest = rest.trim_start();
        let is_stripped = rest.starts_with('-');
        let Some(rest) = rest.strip_prefix('-').unwrap_or(rest).strip_prefix("%}") else { return false };
        self.skip(self.rest.len() - rest.len());
        if is_stripped {
            self.skip_space();
        }
        true
    }

    fn raw(&mut self) -> Result<()> {
        let mut from = 0;
        while let Some(found) = self.rest[from..].find("{%") {
            let at = from + found;
            let tag = &self.rest[at + 2..];
            let sign = tag.chars().next().filter(|c| matches!(c, '-' | '+'));
            let inner = tag[sign.map_or(0, |_| 1)..].trim_start();
            if let Some(inner) = inner.strip_prefix("endraw") {
                let inner = inner.trim_start();
                let end_sign = inner.chars().next().filter(|c| matches!(c, '-' | '+'));
                if let Some(behind) = inner[end_sign.map_or(0, |_| 1)..].strip_prefix("%}") {
                    let (is_line_start, pos) = (self.is_line_start, self.pos);
                    let n = self.rest.len() - behind.len();
                    let passed = self.skip(n);
                    let text = strip_right(&passed[..at], sign, true, is_line_start);
                    self.tokens.push((Token::Text(text.into()), pos));
                    self.behind_block(end_sign);
                    return Ok(());
                }
            }
            from = at + 2;
        }
        fail("missing end of raw directive")
    }

    /// The tokens of a block or variable, up to its end. Ends within brackets do not count.
    fn expression(&mut self, is_block: bool) -> Result<()> {
        let (end, end_token) = if is_block { ("%}", Token::BlockEnd) } else { ("}}", Token::VariableEnd) };
        let mut brackets: Vec<char> = Vec::new();
        loop {
            self.skip_space();
            if brackets.is_empty() {
                let sign = self.rest.chars().next().filter(|c| *c == '-' || (*c == '+' && is_block));
                if self.rest[sign.map_or(0, |_| 1)..].starts_with(end) {
                    self.push(end_token);
                    self.skip(end.len() + sign.map_or(0, |_| 1));
                    match is_block {
                        true => self.behind_block(sign),
                        false if sign.is_some() => self.skip_space(),
                        false => {}
                    }
                    return Ok(());
                }
            }
            self.token(&mut brackets)?;
        }
    }

    fn token(&mut self, brackets: &mut Vec<char>) -> Result<()> {
        let Some(first) = self.rest.chars().next() else { return fail("unexpected end of template") };
        let token = match first {
            '0'..='9' => return self.number(),
            '"' | '\'' => return self.string(first),
            c if c.is_alphabetic() || c == '_' => {
                let n = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
                Token::Name(self.rest[..n].into())
            }
            _ => match SIGNS.iter().find(|sign| self.rest.starts_with(**sign)) {
                Some(sign) => Token::Sign(sign),
                None => return fail(format!("unexpected char {first:?}")),
            },
        };
        let n = match &token {
            Token::Name(name) => name.len(),
            Token::Sign(sign) => sign.len(),
            _ => 0,
        };
        if let '(' | '[' | '{' = first {
            brackets.push(first);
        } else if let Some(open) = [(')', '('), (']', '['), ('}', '{')].iter().find(|(c, _)| *c == first) {
            match brackets.pop() {
                Some(found) if found == open.1 => {}
                Some(found) => return fail(format!("unexpected '{first}', '{found}' is open")),
                None => return fail(format!("unexpected '{first}'")),
            }
        }
        self.push(token);
        self.skip(n);
        Ok(())
    }

    fn number(&mut self) -> Result<()> {
        let digits = |text: &str| text.bytes().take_while(|b| b.is_ascii_digit() || *b == b'_').count();
        let text = self.rest;
        for (prefixes, radix) in [(["0x", "0X"], 16), (["0o", "0O"], 8), (["0b", "0B"], 2)] {
            if let Some(rest) = prefixes.iter().find_map(|p| text.strip_prefix(p)) {
                let n = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
                let value = i128::from_str_radix(&rest[..n].replace('_', ""), radix);
                let Ok(value) = value else { return fail("invalid number") };
                self.push(Token::Int(value));
                self.skip(2 + n);
                return Ok(());
            }
        }
        let mut n = digits(text);
        // Behind a dot, a number is an index: `a.0.1`.
        let is_index = matches!(self.tokens.last(), Some((Token::Sign("."), _)));
        let mut is_float = false;
        if !is_index {
            if text[n..].starts_with('.') && text[n + 1..].starts_with(|c: char| c.is_ascii_digit()) {
                n += 1 + digits(&text[n + 1..]);
                is_float = true;
            }
            if let Some(rest) = text[n..].strip_prefix(['e', 'E']) {
                let unsigned = rest.strip_prefix(['+', '-']).unwrap_or(rest);
                if unsigned.starts_with(|c: char| c.is_ascii_digit()) {
                    n += 1 + (rest.len() - unsigned.len()) + digits(unsigned);
                    is_float = true;
                }
            }
        }
        let plain = text[..n].replace('_', "");
        let token = match is_float {
            true => platform::parse_float(&plain).map(Token::Float),
            false => plain.parse().map(Token::Int).ok(),
        };
        let Some(token) = token else { return fail("number is too large") };
        self.push(token);
        self.skip(n);
        Ok(())
    }

    fn string(&mut self, quote: char) -> Result<()> {
        let bytes = self.rest.as_bytes();
        let mut end = 1;
        while end < bytes.len() && bytes[end] != quote as u8 {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        if end >= bytes.len() {
            return fail("unexpected char: a string is not closed");
        }
        let text = unescape(&self.rest[1..end])?;
        self.push(Token::Str(text));
        self.skip(end + 1);
        Ok(())
    }
}

/// The first `{{`, `{%` or `{#`.
fn find_opening(text: &str) -> Option<(usize, Opening)> {
    let bytes = text.as_bytes();
    bytes.windows(2).position(|w| w[0] == b'{' && matches!(w[1], b'{' | b'%' | b'#')).map(|at| {
        let opening = match bytes[at + 1] {
            b'{' => Opening::Variable,
            b'%' => Opening::Block,
            _ => Opening::Comment,
        };
        (at, opening)
    })
}

/// The text before a tag with `sign`.
fn strip_right(text: &str, sign: Option<char>, lstrip: bool, is_line_start: bool) -> &str {
    match sign {
        Some('-') => text.trim_end(),
        None if lstrip => {
            let start = text.rfind('\n').map_or(0, |at| at + 1);
            let is_blank = text[start..].chars().all(char::is_whitespace);
            if (start > 0 || is_line_start) && is_blank { &text[..start] } else { text }
        }
        _ => text,
    }
}

/// Python's escapes in texts; unknown ones stay.
fn unescape(text: &str) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(c) = rest.chars().next() else { return fail("a string ends in a backslash") };
        rest = &rest[c.len_utf8()..];
        let simple = match c {
            'n' => Some('\n'),
            't' => Some('\t'),
            'r' => Some('\r'),
            'a' => Some('\x07'),
            'b' => Some('\x08'),
            'f' => Some('\x0c'),
            'v' => Some('\x0b'),
            '\\' | '\'' | '"' => Some(c),
            _ => None,
        };
        let n_digit = match c {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        if let Some(simple) = simple {
            out.push(simple);
        } else if c == '\n' {
            // A line break behind a backslash is no part of the text.
        } else if n_digit > 0 {
            let code = rest.get(..n_digit).and_then(|digits| u32::from_str_radix(digits, 16).ok());
            let Some(found) = code.and_then(char::from_u32) else {
                return fail("invalid escape in a string");
            };
            out.push(found);
            rest = &rest[n_digit..];
        } else if c.is_digit(8) {
            let n = rest.bytes().take(2).take_while(|b| (b'0'..=b'7').contains(b)).count();
            let code = u32::from_str_radix(&rest[..n], 8).unwrap_or(0)
                + c.to_digit(8).unwrap_or(0) * 8u32.pow(n as u32);
            out.extend(char::from_u32(code));
            rest = &rest[n..];
        } else {
            out.push('\\');
            out.push(c);
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// The failure for sources that are too large to be parsed.
pub(super) fn check_size(source: &str) -> Result<()> {
    if source.len() > MAX_SOURCE {
        return Err(Fault::limit("bytes of source", MAX_SOURCE as u64));
    }
    Ok(())
}

/// Maximum length of a template: thirty times the longest that is known. A syntax tree can take a hundred
/// times the memory of its source.
const MAX_SOURCE: usize = 1 << 19;
