//! Macro expansion in the tokens of a line.

use std::collections::HashSet;
use std::rc::Rc;

use crate::error::ErrorKind;
use crate::lex::{self, Kind, Token};
use crate::macros::{Definition, Table};
use crate::words::is_ident_continue;

/// Upper limit on the total bytes of the expansions in one line, so that a few lines of macros cannot exhaust
/// memory.
const MAX_BYTES: usize = 1 << 22;

/// Maximum nesting depth of calls in the arguments of calls.
const MAX_DEPTH: u32 = 100;

/// The reason why an expansion failed, and the byte offset in the line.
#[derive(Debug)]
pub(crate) enum Failure {
    Error {
        kind: ErrorKind,
        at: usize,
    },
    /// An unclosed call of `name`: `depth` parentheses are open at the end of the tokens.
    Unclosed {
        name: Rc<str>,
        at: usize,
        depth: usize,
    },
}

impl Failure {
    /// The error to report if no further line can close the call.
    pub(crate) fn into_error(self) -> (ErrorKind, usize) {
        match self {
            Self::Error { kind, at } => (kind, at),
            Self::Unclosed { name, at, .. } => (ErrorKind::UnclosedCall { name: name.to_string() }, at),
        }
    }
}

fn fail<T>(kind: ErrorKind, at: usize) -> Result<T, Failure> {
    Err(Failure::Error { kind, at })
}

/// Expands the macros in `tokens` until none is left.
pub(crate) fn expand(tokens: Vec<Token>, table: &Table) -> Result<Vec<Token>, Failure> {
    expand_within(tokens, table, &mut Budget::new())
}

/// [`expand`] for one of several expansions in a line, which share a budget.
pub(crate) fn expand_within(
    tokens: Vec<Token>,
    table: &Table,
    budget: &mut Budget,
) -> Result<Vec<Token>, Failure> {
    Expander { table, budget, active: HashSet::new() }.expand(tokens, 0)
}

/// The remaining text that macros may expand to in a line.
pub(crate) struct Budget {
    n_byte_left: usize,
}

impl Budget {
    pub(crate) fn new() -> Budget {
        Budget { n_byte_left: MAX_BYTES }
    }

    /// Charges the expansion of the macro `name`.
    pub(crate) fn spend(&mut self, replaced: &[Token], name: &str) -> Result<(), ErrorKind> {
        let n_byte = replaced.iter().map(|token| token.text.len() + 1).sum::<usize>();
        let left = self.n_byte_left.checked_sub(n_byte);
        self.n_byte_left = left.ok_or_else(|| ErrorKind::ExpansionTooLarge { name: name.to_owned() })?;
        Ok(())
    }
}

/// The text of the tokens, with a space where two of them would merge into one.
pub(crate) fn join(tokens: &[Token]) -> String {
    let mut text = String::new();
    let mut last: Option<&Token> = None;
    for token in tokens.iter().filter(|token| !token.text.is_empty()) {
        if last.is_some_and(|last| would_fuse(last, token)) {
            text.push(' ');
        }
        text.push_str(&token.text);
        last = Some(token);
    }
    text
}

fn would_fuse(left: &Token, right: &Token) -> bool {
    match left.kind {
        Kind::Ident | Kind::Number => {
            matches!(right.kind, Kind::Ident | Kind::Number) && right.text.starts_with(is_ident_continue)
        }
        Kind::Punct => {
            // The lexer reads these pairs as one token, so as two tokens they come from different macros.
            matches!((&*left.text, &*right.text), ("-", "-") | ("+", "+") | ("&", "&") | ("/", "/" | "*"))
                || (&*left.text == "/" && right.kind == Kind::Comment)
        }
        _ => false,
    }
}

/// A token to read, or the end of a macro's text.
enum Item {
    Token(Token),
    End(Rc<str>),
}

struct Expander<'a> {
    table: &'a Table,
    budget: &'a mut Budget,
    /// The macros being expanded; one that recurs would never end.
    active: HashSet<Rc<str>>,
}

impl Expander<'_> {
    fn expand(&mut self, tokens: Vec<Token>, depth: u32) -> Result<Vec<Token>, Failure> {
        let mut done = Vec::with_capacity(tokens.len());
        // A stack: the next item is the last.
        let mut input: Vec<Item> = tokens.into_iter().rev().map(Item::Token).collect();
        while let Some(item) = input.pop() {
            let token = match item {
                Item::Token(token) => token,
                Item::End(name) => {
                    self.active.remove(&name);
                    continue;
                }
            };
            let definition = match token.kind {
                Kind::Ident => self.table.get(&token.text),
                _ => None,
            };
            let Some(definition) = definition else {
                done.push(token);
                continue;
            };
            let replaced = match &definition.params {
                None => {
                    self.activate(&token)?;
                    substitute(definition, &[], &[])
                }
                Some(params) => {
                    if !next_is_call(&input) {
                        done.push(token);
                        continue;
                    }
                    let args = self.arguments(&mut input, &token, params.len())?;
                    let expanded = self.expand_arguments(&args, &token, depth)?;
                    self.activate(&token)?;
                    substitute(definition, &args, &expanded)
                }
            };
            if let Err(kind) = self.budget.spend(&replaced, &token.text) {
                return fail(kind, token.at);
            }
            input.push(Item::End(token.text));
            input.extend(replaced.into_iter().rev().map(|new| Item::Token(Token { at: token.at, ..new })));
        }
        Ok(done)
    }

    fn activate(&mut self, name: &Token) -> Result<(), Failure> {
        if self.active.insert(name.text.clone()) {
            Ok(())
        } else {
            fail(ErrorKind::RecursiveMacro { name: name.text.to_string() }, name.at)
        }
    }

    /// Consumes `( … , … )` from the input.
    fn arguments(
        &mut self,
        input: &mut Vec<Item>,
        name: &Token,
        n_param: usize,
    ) -> Result<Vec<Vec<Token>>, Failure> {
        let mut args: Vec<Vec<Token>> = vec![Vec::new()];
        let mut depth = 0;
        loop {
            let mut token = match input.pop() {
                Some(Item::Token(token)) => token,
                Some(Item::End(name)) => {
                    self.active.remove(&name);
                    continue;
                }
                None => return Err(Failure::Unclosed { name: name.text.clone(), at: name.at, depth }),
            };
            if token.is("(") {
                depth += 1;
                if depth == 1 {
                    continue;
                }
            } else if token.is(")") {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            } else if token.is(",") && depth == 1 {
                args.push(Vec::new());
                continue;
            } else if matches!(token.kind, Kind::Space | Kind::Comment) {
                if depth == 0 {
                    continue;
                }
                token = Token { kind: Kind::Space, text: " ".into(), at: token.at };
            }
            let arg = args.last_mut().expect("there is always a first argument");
            if !token.is_space() || arg.last().is_some_and(|last| !last.is_space()) {
                arg.push(token);
            }
        }
        for arg in &mut args {
            if arg.last().is_some_and(Token::is_space) {
                arg.pop();
            }
        }
        if n_param == 0 && args.len() == 1 && args[0].is_empty() {
            args.clear();
        }
        if args.len() != n_param {
            let kind = ErrorKind::ArgumentCount {
                name: name.text.to_string(),
                expected: n_param,
                found: args.len(),
            };
            return fail(kind, name.at);
        }
        Ok(args)
    }

    fn expand_arguments(
        &mut self,
        args: &[Vec<Token>],
        name: &Token,
        depth: u32,
    ) -> Result<Vec<Vec<Token>>, Failure> {
        if depth >= MAX_DEPTH {
            return fail(ErrorKind::CallsTooDeep { name: name.text.to_string(), limit: MAX_DEPTH }, name.at);
        }
        args.iter()
            .map(|arg| {
                // No later line can close a call that is left open in an argument.
                self.expand(arg.clone(), depth + 1).map_err(|failure| {
                    let (kind, at) = failure.into_error();
                    Failure::Error { kind, at }
                })
            })
            .collect()
    }
}

/// True if the next item, ignoring spaces, is an opening parenthesis.
fn next_is_call(input: &[Item]) -> bool {
    let next = input.iter().rev().find_map(|item| match item {
        Item::Token(token) if !matches!(token.kind, Kind::Space | Kind::Comment) => Some(token),
        _ => None,
    });
    next.is_some_and(|token| token.is("("))
}

/// Substitutes the parameters in a body: unexpanded arguments next to `#` and `##`, expanded ones elsewhere.
fn substitute(definition: &Definition, args: &[Vec<Token>], expanded: &[Vec<Token>]) -> Vec<Token> {
    let body = &definition.body;
    let param_idx = |token: &Token| {
        let params = definition.params.as_ref()?;
        params.iter().position(|param| token.kind == Kind::Ident && *param == token.text)
    };
    let next_solid = |from: usize| (from..body.len()).find(|&idx| !body[idx].is_space());
    let mut out: Vec<Token> = Vec::with_capacity(body.len());
    let mut idx = 0;
    while idx < body.len() {
        let token = &body[idx];
        let next = next_solid(idx + 1);
        idx += 1;
        if let Some(next_idx) = next {
            if token.is("#") && definition.params.is_some() {
                let arg = param_idx(&body[next_idx]).expect("checked when the macro was defined");
                out.push(stringise(&args[arg]));
                idx = next_idx + 1;
                continue;
            }
            if token.is("##") {
                let right = match param_idx(&body[next_idx]) {
                    Some(arg) => args[arg].clone(),
                    None => vec![body[next_idx].clone()],
                };
                paste(&mut out, right);
                idx = next_idx + 1;
                continue;
            }
        }
        match param_idx(token) {
            Some(arg) if next.is_some_and(|next| body[next].is("##")) => {
                out.extend_from_slice(&args[arg]);
                if args[arg].is_empty() {
                    out.push(nothing(token.at));
                }
            }
            Some(arg) => out.extend_from_slice(&expanded[arg]),
            None => out.push(token.clone()),
        }
    }
    out
}

/// The empty token for an empty argument next to `##`.
fn nothing(at: usize) -> Token {
    Token { kind: Kind::Space, text: "".into(), at }
}

fn stringise(arg: &[Token]) -> Token {
    let mut text = String::from("\"");
    for c in arg.iter().flat_map(|token| token.text.chars()) {
        if matches!(c, '"' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
    text.push('"');
    Token { kind: Kind::Text, text: text.into(), at: 0 }
}

/// Pastes the last token of `out` and the first of `right`.
fn paste(out: &mut Vec<Token>, right: Vec<Token>) {
    while out.last().is_some_and(|last| last.is_space() && !last.text.is_empty()) {
        out.pop();
    }
    let left = out.pop().unwrap_or_else(|| nothing(0));
    let mut right = right.into_iter();
    let first = right.next().unwrap_or_else(|| nothing(0));
    let glued = format!("{}{}", left.text, first.text);
    if glued.is_empty() {
        out.push(nothing(left.at));
    } else {
        out.extend(lex::lex(&glued, &mut 0).into_iter().map(Token::from));
    }
    out.extend(right);
}
