//! The directives, which select the lines and files of the output.

use std::collections::HashSet;
use std::fmt;
use std::rc::Rc;

use crate::error::{Error, ErrorKind, Location};
use crate::expand::{self, Failure};
use crate::expr;
use crate::lex::{self, Kind, Lexeme, Logical, Token};
use crate::load::{Loader, NoFiles};
use crate::macros::{Definition, Macros, Table, is_macro_name};
use crate::output::Output;
use crate::words::is_ident_continue;

/// Maximum nesting depth of includes.
const MAX_DEPTH: usize = 100;

/// Maximum number of includes in one text.
const MAX_COUNT: usize = 100_000;

/// Options shared by all texts of a [`Preprocessor`].
pub struct Options {
    macros: Macros,
    loader: Box<dyn Loader>,
}

impl Options {
    /// Predefines macros in every text.
    #[must_use]
    pub fn macros(self, macros: Macros) -> Self {
        Self { macros, ..self }
    }

    /// Sets the loader of included files.
    #[must_use]
    pub fn loader(self, loader: impl Loader + 'static) -> Self {
        Self { loader: Box::new(loader), ..self }
    }
}

impl Default for Options {
    /// No macros and no files.
    fn default() -> Self {
        Self { macros: Macros::new(), loader: Box::new(NoFiles) }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("macros", &self.macros).finish_non_exhaustive()
    }
}

/// Executes directives and expands macros; see the [crate documentation](crate) for the language.
///
/// Macros come from the options and from each call; those of the call win, and calls do not see each other's
/// macros. A text can neither redefine nor undefine either kind.
///
/// ```
/// use wgsl_pre::{Macros, Options, Preprocessor};
///
/// let preprocessor = Preprocessor::new(Options::default().macros(Macros::new().with("WG_SIZE", 64)));
/// let text = "\
/// #define LAST (WG_SIZE - 1)
/// #if WG_SIZE > 32 && defined(TYPE)
/// var<workgroup> tile: array<TYPE, WG_SIZE>;
/// #endif
/// const last = LAST;
/// ";
/// let output = preprocessor.process("tile.wgsl", text, &Macros::new().with("TYPE", "vec4<f32>"))?;
/// assert_eq!(output.text, "var<workgroup> tile: array<vec4<f32>, 64>;\nconst last = (64 - 1);\n");
///
/// let error = preprocessor.process("tile.wgsl", "a\n#if WG_SIZE\n", &Macros::new()).unwrap_err();
/// assert_eq!(error.to_string(), "tile.wgsl:2:1: `#if` has no `#endif`");
/// # Ok::<(), wgsl_pre::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Preprocessor {
    options: Options,
}

impl Preprocessor {
    /// A preprocessor with these options.
    pub fn new(options: Options) -> Self {
        Self { options }
    }

    /// Processes a text; `name` identifies it in errors and in the line map, and its includes are relative to
    /// it.
    ///
    /// # Errors
    ///
    /// Any [`ErrorKind`] except those of templates, with its location.
    pub fn process(&self, name: &str, text: &str, macros: &Macros) -> Result<Output, Error> {
        let mut run = Run {
            loader: &*self.options.loader,
            table: Table::new(&self.options.macros, macros)?,
            output: Output::default(),
            stack: Vec::new(),
            once: HashSet::new(),
            n_include: 0,
        };
        run.file(name, text)?;
        Ok(run.output)
    }

    /// Loads a file with the loader of the options and processes it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Load`] if the file cannot be loaded; see [`process`](Self::process) for the others.
    pub fn process_file(&self, path: &str, macros: &Macros) -> Result<Output, Error> {
        let source = self.options.loader.load(path, None).map_err(|reason| {
            Error::new(ErrorKind::Load { path: path.to_owned(), reason }, None, Vec::new())
        })?;
        self.process(&source.name, &source.text, macros)
    }
}

/// An open conditional.
struct Conditional {
    directive: &'static str,
    line: u32,
    column: u32,
    /// True if the surrounding lines are active.
    outer_active: bool,
    /// True if the lines of this branch are active.
    active: bool,
    /// True if the condition of some branch so far was met.
    taken: bool,
    else_line: Option<u32>,
}

/// A file being read.
struct Frame {
    name: String,
    file_idx: usize,
    /// The line of the `#include` being processed.
    include_line: u32,
}

/// The state of one call.
struct Run<'a> {
    loader: &'a dyn Loader,
    table: Table,
    output: Output,
    /// The files being read, innermost last.
    stack: Vec<Frame>,
    /// The files with `#pragma once`.
    once: HashSet<String>,
    n_include: usize,
}

/// A parsed directive line.
struct Directive<'a> {
    line: &'a Logical<'a>,
    /// The line with its comments replaced by spaces, byte for byte.
    clean: String,
    /// Offset of the `#`.
    start: usize,
    /// Offset of the text after the directive's name.
    rest: usize,
}

impl Directive<'_> {
    fn rest(&self) -> &str {
        &self.clean[self.rest..]
    }

    fn name(&self) -> &str {
        self.clean[self.start + 1..self.rest].trim()
    }

    /// The offset of the first item after the name, and its text for an error message.
    fn found(&self, from: usize) -> (String, usize) {
        let tokens = expr::tokens(&self.clean, from);
        match tokens.iter().find(|token| !token.is_space()) {
            Some(token) => (format!("`{}`", token.text), token.at),
            None => ("the end of the line".into(), self.clean.trim_end().len()),
        }
    }
}

/// Reads the lines of a file.
struct Lines<'a> {
    lines: std::iter::Peekable<std::str::SplitInclusive<'a, char>>,
    n_read: u32,
}

impl<'a> Lines<'a> {
    fn next(&mut self) -> Option<(u32, &'a str, &'a str)> {
        let (content, ending) = lex::split_ending(self.lines.next()?);
        self.n_read += 1;
        Some((self.n_read, content, ending))
    }

    /// True if a call ends in front of the next line; directives do not begin in a comment.
    fn next_is_directive(&mut self, comment_depth: u32) -> bool {
        comment_depth == 0 && self.lines.peek().is_some_and(|line| is_directive(line))
    }
}

fn is_directive(line: &str) -> bool {
    line.trim_start().starts_with('#')
}

/// State built up from the lines of a file so far.
#[derive(Default)]
struct FileState {
    comment_depth: u32,
    conditionals: Vec<Conditional>,
}

impl FileState {
    fn active(&self) -> bool {
        self.conditionals.last().is_none_or(|conditional| conditional.active)
    }
}

impl Run<'_> {
    fn file(&mut self, name: &str, text: &str) -> Result<(), Error> {
        let file_idx = self.output.line_map.file_idx(name);
        self.stack.push(Frame { name: name.to_owned(), file_idx, include_line: 0 });
        let mut lines = Lines { lines: text.split_inclusive('\n').peekable(), n_read: 0 };
        let mut state = FileState::default();
        while let Some((line, content, ending)) = lines.next() {
            let mut logical = Logical::new(content, line);
            if state.comment_depth == 0 && is_directive(content) {
                while logical.drop_continuation() {
                    let Some((_, next, _)) = lines.next() else { break };
                    logical.join("", next);
                }
                self.directive(&logical, &mut state)?;
            } else if state.active() {
                self.code(logical, ending, &mut lines, &mut state.comment_depth)?;
            } else {
                lex::lex(content, &mut state.comment_depth);
            }
        }
        if let Some(open) = state.conditionals.last() {
            let kind = ErrorKind::UnclosedConditional { directive: open.directive };
            return Err(self.error(kind, open.line, Some(open.column)));
        }
        self.stack.pop();
        Ok(())
    }

    /// An error in the innermost file.
    fn error(&self, kind: ErrorKind, line: u32, column: Option<u32>) -> Error {
        let mut frames = self.stack.iter().rev();
        let at = frames.next().map(|frame| Location { file: frame.name.clone(), line, column });
        let included_from = frames
            .map(|frame| Location { file: frame.name.clone(), line: frame.include_line, column: None })
            .collect();
        Error::new(kind, at, included_from)
    }

    fn error_at(&self, line: &Logical<'_>, kind: ErrorKind, at: usize) -> Error {
        let (line, column) = line.place(at);
        self.error(kind, line, Some(column))
    }

    fn code<'b>(
        &mut self,
        mut logical: Logical<'b>,
        mut ending: &'b str,
        lines: &mut Lines<'b>,
        comment_depth: &mut u32,
    ) -> Result<(), Error> {
        let file_idx = self.stack.last().expect("a file is being read").file_idx;
        let start_depth = *comment_depth;
        loop {
            *comment_depth = start_depth;
            let lexemes = lex::lex(&logical.text, comment_depth);
            let is_macro =
                |lexeme: &Lexeme<'_>| lexeme.kind == Kind::Ident && self.table.contains(lexeme.text);
            if !lexemes.iter().any(is_macro) {
                let text = [&logical.text, ending].concat();
                self.output.push(file_idx, logical.line, &text);
                return Ok(());
            }
            let tokens = lexemes.into_iter().map(Token::from).collect();
            match expand::expand(tokens, &self.table) {
                Ok(tokens) => {
                    let text = expand::join(&tokens) + ending;
                    self.output.push(file_idx, logical.line, &text);
                    return Ok(());
                }
                Err(failure) => {
                    // An open call continues over lines until its parentheses close.
                    let mut open = match &failure {
                        Failure::Unclosed { depth, .. } => *depth,
                        Failure::Error { .. } => 0,
                    };
                    if open == 0 || lines.next_is_directive(*comment_depth) {
                        let (kind, at) = failure.into_error();
                        return Err(self.error_at(&logical, kind, at));
                    }
                    while open > 0 {
                        let next = if lines.next_is_directive(*comment_depth) { None } else { lines.next() };
                        let Some((_, content, next_ending)) = next else {
                            let (kind, at) = failure.into_error();
                            return Err(self.error_at(&logical, kind, at));
                        };
                        for lexeme in lex::lex(content, comment_depth) {
                            match (lexeme.kind, lexeme.text) {
                                (Kind::Punct, "(") => open += 1,
                                (Kind::Punct, ")") => open = open.saturating_sub(1),
                                _ => {}
                            }
                        }
                        logical.join("\n", content);
                        ending = next_ending;
                    }
                }
            }
        }
    }

    fn directive(&mut self, line: &Logical<'_>, state: &mut FileState) -> Result<(), Error> {
        let mut clean = String::with_capacity(line.text.len());
        for lexeme in lex::lex(&line.text, &mut state.comment_depth) {
            match lexeme.kind {
                Kind::Comment => clean.extend(std::iter::repeat_n(' ', lexeme.text.len())),
                _ => clean.push_str(lexeme.text),
            }
        }
        let start = clean.find('#').expect("directives begin with it");
        let name_start = clean.len() - clean[start + 1..].trim_start().len();
        let name_len =
            clean[name_start..].find(|c| !is_ident_continue(c)).unwrap_or(clean.len() - name_start);
        let directive = Directive { line, clean, start, rest: name_start + name_len };
        match directive.name() {
            "if" => self.open("#if", &directive, state, |run| run.condition(&directive)),
            "ifdef" => self.open("#ifdef", &directive, state, |run| run.is_defined("#ifdef", &directive)),
            "ifndef" => {
                self.open("#ifndef", &directive, state, |run| Ok(!run.is_defined("#ifndef", &directive)?))
            }
            "elif" => {
                self.next_branch("#elif", &directive, state)?;
                let last = state.conditionals.last().expect("checked by `next_branch`");
                if last.outer_active && !last.taken {
                    let met = self.condition(&directive)?;
                    let last = state.conditionals.last_mut().expect("checked by `next_branch`");
                    (last.active, last.taken) = (met, met);
                }
                Ok(())
            }
            "else" => {
                self.next_branch("#else", &directive, state)?;
                self.expect_end("#else", &directive, directive.rest)?;
                let last = state.conditionals.last_mut().expect("checked by `next_branch`");
                last.active = last.outer_active && !last.taken;
                last.taken = true;
                last.else_line = Some(line.line);
                Ok(())
            }
            "endif" => {
                if state.conditionals.pop().is_none() {
                    let kind = ErrorKind::UnmatchedDirective { directive: "#endif" };
                    return Err(self.error_at(line, kind, directive.start));
                }
                self.expect_end("#endif", &directive, directive.rest)
            }
            _ if !state.active() => Ok(()),
            "include" => self.include(&directive),
            "define" => self.define(&directive),
            "undef" => {
                let (name, end) = self.macro_name("#undef", &directive)?;
                self.expect_end("#undef", &directive, end)?;
                self.table.undefine(&name);
                Ok(())
            }
            "error" => {
                let message = line.text[directive.rest..].trim();
                let message = if message.is_empty() { "#error" } else { message };
                Err(self.error_at(line, ErrorKind::User { message: message.to_owned() }, directive.start))
            }
            "pragma" if directive.rest().trim() == "once" => {
                let frame = self.stack.last().expect("a file is being read");
                self.once.insert(frame.name.clone());
                Ok(())
            }
            name => {
                let directive_text = match name {
                    "pragma" => format!("#pragma {}", directive.rest().trim()),
                    // Text that is not a name is shown up to the next space.
                    "" => format!("#{}", directive.rest().split_whitespace().next().unwrap_or_default()),
                    _ => format!("#{name}"),
                };
                let kind = ErrorKind::UnknownDirective { directive: directive_text.trim().to_owned() };
                Err(self.error_at(line, kind, directive.start))
            }
        }
    }

    /// Opens a conditional; its condition is only evaluated in active lines.
    fn open(
        &mut self,
        name: &'static str,
        directive: &Directive<'_>,
        state: &mut FileState,
        condition: impl FnOnce(&mut Self) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let outer_active = state.active();
        let met = outer_active && condition(self)?;
        let (line, column) = directive.line.place(directive.start);
        state.conditionals.push(Conditional {
            directive: name,
            line,
            column,
            outer_active,
            active: met,
            taken: met,
            else_line: None,
        });
        Ok(())
    }

    /// Ends the current branch, for `#elif` and `#else`.
    fn next_branch(
        &mut self,
        name: &'static str,
        directive: &Directive<'_>,
        state: &mut FileState,
    ) -> Result<(), Error> {
        let kind = match state.conditionals.last_mut() {
            None => ErrorKind::UnmatchedDirective { directive: name },
            Some(Conditional { else_line: Some(else_line), .. }) => {
                ErrorKind::AfterElse { directive: name, else_line: *else_line }
            }
            Some(conditional) => {
                conditional.active = false;
                return Ok(());
            }
        };
        Err(self.error_at(directive.line, kind, directive.start))
    }

    fn condition(&mut self, directive: &Directive<'_>) -> Result<bool, Error> {
        let end = directive.clean.trim_end().len();
        let tokens = expr::tokens(&directive.clean, directive.rest);
        match expr::evaluate(&tokens, end, &self.table) {
            Ok(value) => Ok(value != 0),
            Err((kind, at)) => Err(self.error_at(directive.line, kind, at)),
        }
    }

    fn is_defined(&mut self, name: &'static str, directive: &Directive<'_>) -> Result<bool, Error> {
        let (macro_name, end) = self.macro_name(name, directive)?;
        self.expect_end(name, directive, end)?;
        Ok(self.table.contains(&macro_name))
    }

    /// The macro name after a directive, and the offset of its end.
    fn macro_name(
        &mut self,
        name: &'static str,
        directive: &Directive<'_>,
    ) -> Result<(Rc<str>, usize), Error> {
        let tokens = expr::tokens(&directive.clean, directive.rest);
        match tokens.into_iter().find(|token| !token.is_space()) {
            Some(token) if token.kind == Kind::Ident && is_macro_name(&token.text) => {
                let end = token.at + token.text.len();
                Ok((token.text, end))
            }
            _ => {
                let (found, at) = directive.found(directive.rest);
                Err(self.error_at(directive.line, ErrorKind::ExpectedName { directive: name, found }, at))
            }
        }
    }

    fn expect_end(
        &mut self,
        name: &'static str,
        directive: &Directive<'_>,
        from: usize,
    ) -> Result<(), Error> {
        let found = directive.clean[from..].trim();
        if found.is_empty() {
            return Ok(());
        }
        let at = directive.clean.len() - directive.clean[from..].trim_start().len();
        let kind = ErrorKind::UnexpectedText { directive: name, found: found.to_owned() };
        Err(self.error_at(directive.line, kind, at))
    }

    fn define(&mut self, directive: &Directive<'_>) -> Result<(), Error> {
        let (name, end) = self.macro_name("#define", directive)?;
        let fail = |run: &Self, kind, at| Err(run.error_at(directive.line, kind, at));
        let clean = &directive.clean;
        let (params, body_start) = if clean[end..].starts_with('(') {
            match parameters(clean, end) {
                Ok((params, body_start)) => (Some(params), body_start),
                Err((found, at)) => {
                    return fail(self, ErrorKind::BadParameters { name: name.to_string(), found }, at);
                }
            }
        } else {
            (None, end)
        };
        let definition = Definition::new(params, &clean[body_start..]);
        let solid: Vec<&Token> = definition.body.iter().filter(|token| !token.is_space()).collect();
        if solid.first().is_some_and(|token| token.is("##"))
            || solid.last().is_some_and(|token| token.is("##"))
        {
            return fail(self, ErrorKind::PasteAtEnd { name: name.to_string() }, directive.start);
        }
        if let Some(params) = &definition.params {
            let is_param = |token: &Token| token.kind == Kind::Ident && params.contains(&token.text);
            for (idx, token) in solid.iter().enumerate() {
                if token.is("#") && !solid.get(idx + 1).is_some_and(|next| is_param(next)) {
                    return fail(
                        self,
                        ErrorKind::HashWithoutParameter { name: name.to_string() },
                        directive.start,
                    );
                }
            }
        }
        self.table.define(&name, definition);
        Ok(())
    }

    fn include(&mut self, directive: &Directive<'_>) -> Result<(), Error> {
        let tokens = expr::tokens(&directive.clean, directive.rest);
        let path = tokens.iter().find(|token| !token.is_space()).filter(|token| token.kind == Kind::Text);
        let Some(path) = path else {
            let (found, at) = directive.found(directive.rest);
            return Err(self.error_at(directive.line, ErrorKind::ExpectedFileName { found }, at));
        };
        self.expect_end("#include", directive, path.at + path.text.len())?;
        let (at, path) = (path.at, path.text.trim_matches('"'));

        let frame = self.stack.last_mut().expect("a file is being read");
        frame.include_line = directive.line.line;
        let loaded = self.loader.load(path, Some(&frame.name));
        let source = loaded.map_err(|reason| {
            self.error_at(directive.line, ErrorKind::Load { path: path.to_owned(), reason }, at)
        })?;
        if self.once.contains(&source.name) {
            return Ok(());
        }
        if self.stack.iter().any(|frame| frame.name == source.name) {
            if self.is_guarded(&source.text) {
                return Ok(());
            }
            return Err(self.error_at(directive.line, ErrorKind::RecursiveInclude { path: source.name }, at));
        }
        self.n_include += 1;
        if self.stack.len() > MAX_DEPTH || self.n_include > MAX_COUNT {
            let kind = ErrorKind::TooManyIncludes { max_depth: MAX_DEPTH, max_count: MAX_COUNT };
            return Err(self.error_at(directive.line, kind, at));
        }
        self.file(&source.name, &source.text)
    }

    /// True if a text begins with the `#ifndef` of an include guard that is already set.
    fn is_guarded(&self, text: &str) -> bool {
        let mut comment_depth = 0;
        for line in text.lines() {
            let solid = lex::lex(line, &mut comment_depth)
                .into_iter()
                .filter(|lexeme| !matches!(lexeme.kind, Kind::Space | Kind::Comment))
                .map(|lexeme| lexeme.text)
                .collect::<Vec<_>>();
            match solid[..] {
                [] => {}
                ["#", "ifndef", guard] => return self.table.contains(guard),
                _ => return false,
            }
        }
        false
    }
}

/// An item in a line with the offset of its end, or the offset of an error.
type At<T> = (T, usize);

/// Parses `(a, b)` at `start`: the names and the offset of the list's end, or the error and its offset.
fn parameters(clean: &str, start: usize) -> Result<At<Vec<Rc<str>>>, At<String>> {
    let tokens = expr::tokens(clean, start + 1);
    let mut solid = tokens.into_iter().filter(|token| !token.is_space());
    let mut params: Vec<Rc<str>> = Vec::new();
    loop {
        let end = || ("the end of the line".to_owned(), clean.trim_end().len());
        let shown = |token: &Token| (format!("`{}`", token.text), token.at);
        let token = solid.next().ok_or_else(end)?;
        if token.is(")") && params.is_empty() {
            return Ok((params, token.at + 1));
        }
        if token.kind != Kind::Ident || params.contains(&token.text) {
            return Err(shown(&token));
        }
        params.push(token.text);
        let token = solid.next().ok_or_else(end)?;
        if token.is(")") {
            return Ok((params, token.at + 1));
        }
        if !token.is(",") {
            return Err(shown(&token));
        }
    }
}
