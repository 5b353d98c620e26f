//! The modules of a crate as parsed from source: definitions, imports and paths.
//!
//! Sources are read as tokens, which excludes comments and strings. Test items and attributes are ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A path in the source and its line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Named {
    /// Its segments, such as `crate`, `a`, `b`.
    pub(super) path: Vec<String>,
    /// Line in the file.
    pub(super) line: usize,
}

/// A module: a file, or a block in one.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// Its file.
    pub(super) file: PathBuf,
    /// Names imported by `use`, with their paths.
    pub(super) uses: BTreeMap<String, Vec<String>>,
    /// Modules imported with `use path::*`.
    pub(super) globs: Vec<Vec<String>>,
    /// Names that the module defines.
    pub(super) items: BTreeSet<String>,
    /// All paths in its code, including `use`.
    pub(super) named: Vec<Named>,
}

/// Modules by their path within the crate; the root's is empty.
pub(super) type Modules = BTreeMap<Vec<String>, Module>;

/// Reads the modules of a crate; `read` returns sources by path.
///
/// # Errors
/// A file is missing or not Rust.
pub(super) fn modules(
    root: &Path,
    read: &dyn Fn(&Path) -> anyhow::Result<String>,
) -> anyhow::Result<Modules> {
    let mut out = Modules::new();
    // A module, its file, and the folder of its children's files.
    let folder = root.parent().expect("a file is in a folder").to_owned();
    let mut open = vec![(Vec::new(), root.to_owned(), folder)];
    while let Some((path, file, folder)) = open.pop() {
        let text = read(&file).with_context(|| file.display().to_string())?;
        let tokens: TokenStream = text
            .parse()
            .map_err(|e| anyhow::anyhow!("{e}"))
            .with_context(|| format!("{} is no Rust", file.display()))?;
        let mut scan = Scan { file: &file, modules: &mut out, children: Vec::new() };
        scan.block(tokens, &path, true);
        for (child, at) in scan.children {
            let name = child.last().expect("a child has a name");
            if let Some(at) = at {
                let file = file.with_file_name(at);
                let folder = file.parent().expect("a file is in a folder").to_owned();
                open.push((child, file, folder));
                continue;
            }
            // Inline modules between the file and the child are folders, too.
            let folder = child[path.len()..child.len() - 1].iter().fold(folder.clone(), |f, s| f.join(s));
            let (alone, inside) = (folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs"));
            let file = if read(&alone).is_ok() { alone } else { inside };
            let folder = folder.join(name);
            open.push((child, file, folder));
        }
    }
    Ok(out)
}

/// Words before the name of an item.
const ITEMS: [&str; 9] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static", "macro_rules"];

struct Scan<'a> {
    file: &'a Path,
    modules: &'a mut Modules,
    /// Modules in files of their own, with the file that a `path` attribute names.
    children: Vec<(Vec<String>, Option<String>)>,
}

impl Scan<'_> {
    /// Reads tokens of a module; `top` at its top level, where definitions and imports belong to the module.
    fn block(&mut self, tokens: TokenStream, module: &[String], top: bool) {
        self.at(module);
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let (mut i, mut at) = (0, None);
        while i < tokens.len() {
            if let Some(attribute) = attribute(&tokens[i..]) {
                at = at.or(file_of(&attribute));
                i += if is_for_tests(attribute) { 2 + item_len(&tokens[i + 2..]) } else { 2 };
                continue;
            }
            match &tokens[i] {
                TokenTree::Ident(word) if word == "use" => {
                    let n = tokens[i..].iter().take_while(|t| !is_punct(t, ';')).count();
                    self.import(&tokens[i + 1..i + n], module, Vec::new());
                    i += n + 1;
                }
                TokenTree::Ident(word) if word == "mod" => {
                    let Some(TokenTree::Ident(name)) = tokens.get(i + 1) else {
                        i += 1;
                        continue;
                    };
                    let child = [module, &[plain(name)]].concat();
                    if let Some(TokenTree::Group(body)) = tokens.get(i + 2) {
                        self.block(body.stream(), &child, true);
                    } else {
                        self.children.push((child, at.take()));
                    }
                    i += 3;
                }
                TokenTree::Ident(word) => {
                    if top && ITEMS.iter().any(|w| word == w) {
                        let name = tokens[i + 1..].iter().find_map(|t| match t {
                            TokenTree::Ident(name) => Some(plain(name)),
                            _ => None,
                        });
                        self.at(module).items.extend(name);
                    }
                    let path = path_at(&tokens[i..]);
                    let n = 3 * path.len() - 2;
                    let is_method = i > 0 && is_punct(&tokens[i - 1], '.');
                    if path.len() > 1 && !is_method {
                        let line = word.span().start().line;
                        self.at(module).named.push(Named { path, line });
                    }
                    i += n;
                }
                TokenTree::Group(group) => {
                    self.block(group.stream(), module, false);
                    i += 1;
                }
                _ => i += 1,
            }
        }
    }

    /// Parses the tokens between `use` and its semicolon, or part of them.
    fn import(&mut self, tokens: &[TokenTree], module: &[String], mut path: Vec<String>) {
        let line = tokens.first().map_or(0, |t| t.span().start().line);
        let mut bound = None;
        for (i, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => {
                    let all: Vec<TokenTree> = group.stream().into_iter().collect();
                    for part in all.split(|t| is_punct(t, ',')).filter(|part| !part.is_empty()) {
                        self.import(part, module, path.clone());
                    }
                    return;
                }
                TokenTree::Ident(word) if word == "as" => {
                    bound = tokens.get(i + 1).map(ToString::to_string);
                    break;
                }
                TokenTree::Ident(word) => path.push(plain(word)),
                _ if is_punct(token, '*') => {
                    let module = self.at(module);
                    module.named.push(Named { path: path.clone(), line });
                    module.globs.push(path);
                    return;
                }
                _ => {}
            }
        }
        // `a::{self}` is `a`.
        if path.len() > 1 && path.last().is_some_and(|s| s == "self") {
            path.pop();
        }
        let name = bound.or_else(|| path.last().cloned()).unwrap_or_default();
        let module = self.at(module);
        module.named.push(Named { path: path.clone(), line });
        module.uses.insert(name, path);
    }

    fn at(&mut self, module: &[String]) -> &mut Module {
        let file = self.file;
        let new = || Module { file: file.to_owned(), ..Module::default() };
        self.modules.entry(module.to_vec()).or_insert_with(new)
    }
}

fn is_punct(token: &TokenTree, c: char) -> bool {
    matches!(token, TokenTree::Punct(p) if p.as_char() == c)
}

/// An identifier without the `r#` of raw ones.
fn plain(ident: &proc_macro2::Ident) -> String {
    ident.to_string().trim_start_matches("r#").to_owned()
}

/// Identifiers at the start, joined by `::`.
fn path_at(tokens: &[TokenTree]) -> Vec<String> {
    let mut path = Vec::new();
    for part in tokens.chunks(3) {
        match part {
            [TokenTree::Ident(word), rest @ ..] => {
                path.push(plain(word));
                let next = tokens.get(3 * path.len());
                let joined = rest.len() == 2 && rest.iter().all(|t| is_punct(t, ':'));
                if !joined || !matches!(next, Some(TokenTree::Ident(_))) {
                    break;
                }
            }
            _ => break,
        }
    }
    path
}

/// Tokens in the brackets of the attribute at the start.
fn attribute(tokens: &[TokenTree]) -> Option<TokenStream> {
    match tokens {
        [hash, TokenTree::Group(group), ..]
            if is_punct(hash, '#') && group.delimiter() == Delimiter::Bracket =>
        {
            Some(group.stream())
        }
        _ => None,
    }
}

/// The file that a `path` attribute names.
fn file_of(attribute: &TokenStream) -> Option<String> {
    let text = attribute.to_string();
    Some(text.strip_prefix("path = \"")?.strip_suffix('"')?.to_owned())
}

/// True for attributes that restrict an item to tests: `cfg(test)`, `cfg(all(test, ..))`.
fn is_for_tests(attribute: TokenStream) -> bool {
    let text = attribute.to_string().replace(' ', "");
    text == "cfg(test)" || text.starts_with("cfg(all(test,") || text == "test"
}

/// Number of tokens of the item at the start, attributes included.
fn item_len(tokens: &[TokenTree]) -> usize {
    let is_use = |t: &TokenTree| matches!(t, TokenTree::Ident(word) if word == "use");
    let ends_in_brace = !tokens.iter().take_while(|t| !is_punct(t, ';')).any(is_use);
    let is_end = |t: &TokenTree| match t {
        TokenTree::Group(group) => ends_in_brace && group.delimiter() == Delimiter::Brace,
        _ => is_punct(t, ';'),
    };
    tokens.iter().position(is_end).map_or(tokens.len(), |i| i + 1)
}
