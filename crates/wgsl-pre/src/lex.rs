//! Lines and tokens, shared by directives and macro expansion.

use std::borrow::Cow;
use std::rc::Rc;

use crate::words::{is_ident_continue, is_ident_start};

/// The kind of a token, as far as a preprocessor distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Ident,
    /// Anything that starts like a number, with its suffix: `1u`, `0xff`, `.5`, `1e`.
    Number,
    /// `"quoted"`, closed on its line; not part of WGSL, but used by `#include` and `#`.
    Text,
    Space,
    /// A comment, or its part on this line.
    Comment,
    Punct,
}

/// A piece of a line; the pieces concatenate to the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lexeme<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    /// Byte offset in the line.
    pub(crate) at: usize,
}

/// A lexeme that outlives its line, as in macro bodies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) text: Rc<str>,
    /// Byte offset in the line of code it came from, for error messages.
    pub(crate) at: usize,
}

impl Token {
    pub(crate) fn is(&self, punct: &str) -> bool {
        self.kind == Kind::Punct && &*self.text == punct
    }

    pub(crate) fn is_space(&self) -> bool {
        self.kind == Kind::Space
    }
}

impl From<Lexeme<'_>> for Token {
    fn from(lexeme: Lexeme<'_>) -> Self {
        Self { kind: lexeme.kind, text: lexeme.text.into(), at: lexeme.at }
    }
}

/// Two-character operators; all other operators are single characters.
const PAIRS: [&str; 18] = [
    "##", "&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "->", "++", "--", "+=", "-=", "*=", "/=", "%=",
    "^=",
];

/// Splits `text` into lexemes. `comment_depth` counts the open block comments, which nest in WGSL; it carries
/// over from line to line.
pub(crate) fn lex<'a>(text: &'a str, comment_depth: &mut u32) -> Vec<Lexeme<'a>> {
    let mut lexemes = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let (kind, len) = next(&text[at..], comment_depth);
        lexemes.push(Lexeme { kind, text: &text[at..at + len], at });
        at += len;
    }
    lexemes
}

fn next(rest: &str, comment_depth: &mut u32) -> (Kind, usize) {
    if *comment_depth > 0 {
        return (Kind::Comment, block_comment(rest, comment_depth));
    }
    let span = |accept: &dyn Fn(char) -> bool| rest.find(|c| !accept(c)).unwrap_or(rest.len());
    let mut chars = rest.chars();
    let Some(first) = chars.next() else { return (Kind::Space, 0) };
    let second = chars.next();
    if first.is_whitespace() {
        return (Kind::Space, span(&char::is_whitespace));
    }
    if is_ident_start(first) {
        return (Kind::Ident, span(&is_ident_continue));
    }
    if first.is_ascii_digit() || (first == '.' && second.is_some_and(|c| c.is_ascii_digit())) {
        return (Kind::Number, span(&|c| c == '.' || is_ident_continue(c)));
    }
    match (first, second) {
        ('/', Some('/')) => (Kind::Comment, rest.find('\n').unwrap_or(rest.len())),
        ('/', Some('*')) => (Kind::Comment, block_comment(rest, comment_depth)),
        ('"', _) => match rest[1..].find(['"', '\n']) {
            Some(end) if rest[1 + end..].starts_with('"') => (Kind::Text, end + 2),
            _ => (Kind::Punct, 1),
        },
        _ if PAIRS.iter().any(|pair| rest.starts_with(pair)) => (Kind::Punct, 2),
        _ => (Kind::Punct, first.len_utf8()),
    }
}

/// The length of the block comment that starts at `rest` or contains it.
fn block_comment(rest: &str, depth: &mut u32) -> usize {
    let bytes = rest.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match &bytes[at..bytes.len().min(at + 2)] {
            b"/*" => {
                *depth += 1;
                at += 2;
            }
            b"*/" => {
                *depth -= 1;
                at += 2;
                if *depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    at
}

/// Splits a line from its line ending: `\n`, `\r\n` or none.
pub(crate) fn split_ending(line: &str) -> (&str, &str) {
    let content = line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line));
    line.split_at(content.len())
}

/// A logical line: one or more lines of a file that are read as one.
#[derive(Debug)]
pub(crate) struct Logical<'a> {
    pub(crate) text: Cow<'a, str>,
    /// The number of the first line, from one.
    pub(crate) line: u32,
    /// Offsets in `text` of the continuation lines.
    later: Vec<usize>,
}

impl<'a> Logical<'a> {
    pub(crate) fn new(text: &'a str, line: u32) -> Self {
        Self { text: Cow::Borrowed(text), line, later: Vec::new() }
    }

    /// Appends the next line, after `glue`.
    pub(crate) fn join(&mut self, glue: &str, text: &str) {
        let own = self.text.to_mut();
        own.push_str(glue);
        self.later.push(own.len());
        own.push_str(text);
    }

    /// Removes a trailing backslash and the spaces after it; `false` if there is none.
    pub(crate) fn drop_continuation(&mut self) -> bool {
        let Some(content) = self.text.trim_end().strip_suffix('\\') else { return false };
        let n_byte = content.len();
        self.text.to_mut().truncate(n_byte);
        true
    }

    /// The line and column of a byte offset in the text.
    pub(crate) fn place(&self, at: usize) -> (u32, u32) {
        let n_before = self.later.partition_point(|&start| start <= at);
        let start = if n_before == 0 { 0 } else { self.later[n_before - 1] };
        let column = self.text.get(start..at).map_or(0, |before| before.chars().count()) + 1;
        (self.line + n_before as u32, column as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(Kind, &str)> {
        lex(text, &mut 0).into_iter().map(|lexeme| (lexeme.kind, lexeme.text)).collect()
    }

    #[test]
    fn numbers_keep_their_suffix_and_operators_are_whole() {
        use Kind::*;
        assert_eq!(
            kinds("x1=0xffu+.5f--1e5"),
            [
                (Ident, "x1"),
                (Punct, "="),
                (Number, "0xffu"),
                (Punct, "+"),
                (Number, ".5f"),
                (Punct, "--"),
                (Number, "1e5")
            ]
        );
        assert_eq!(kinds("a // b \"c\""), [(Ident, "a"), (Space, " "), (Comment, "// b \"c\"")]);
        assert_eq!(kinds("\"a//b\"\"c"), [(Text, "\"a//b\""), (Punct, "\""), (Ident, "c")]);
    }

    #[test]
    fn block_comments_nest_and_go_on_from_line_to_line() {
        let mut depth = 0;
        let first = lex("a /* b /* c */", &mut depth);
        assert_eq!((first.len(), depth), (3, 1));
        let second = lex("é */ d", &mut depth);
        assert_eq!((second[0].text, second[0].kind, depth), ("é */", Kind::Comment, 0));
        assert_eq!(second[2].text, "d");
    }

    #[test]
    fn places_in_joined_lines_are_those_of_the_file() {
        let mut logical = Logical::new("#if é \\  ", 7);
        assert!(logical.drop_continuation());
        logical.join("", "  b");
        assert_eq!(logical.text, "#if é   b");
        assert_eq!(logical.place(logical.text.find('é').unwrap()), (7, 5));
        assert_eq!(logical.place(logical.text.find('b').unwrap()), (8, 3));
    }
}
