//! Imports between the modules of a crate, and their cycles.
//!
//! The module tree is examined folder by folder: an import from below one child to below another is an arrow between
//! the two, and the arrows of a folder must be acyclic. To its siblings a folder is a unit, so its files may use what
//! the folder's own file defines, as the cases of an operation use the operation.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::source::{Modules, Named};

/// The path of a module within its crate.
type Path = Vec<String>;

/// An import of a sibling module.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Arrow {
    from: Path,
    to: Path,
    /// The path in the source, with its file and line.
    because: String,
}

impl fmt::Display for Arrow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Arrow { from, to, because } = self;
        write!(f, "{} -> {} ({because})", from.join("::"), to.join("::"))
    }
}

/// The arrows of a crate that are part of a cycle.
pub(super) fn cycles(modules: &Modules) -> Vec<Arrow> {
    let arrows = arrows(modules);
    let mut next: BTreeMap<&Path, Vec<&Path>> = BTreeMap::new();
    arrows.iter().for_each(|a| next.entry(&a.from).or_default().push(&a.to));
    let leads = |from: &Path, to: &Path| {
        let (mut open, mut seen) = (vec![from], BTreeSet::from([from]));
        while let Some(at) = open.pop() {
            if at == to {
                return true;
            }
            open.extend(next.get(at).into_iter().flatten().copied().filter(|n| seen.insert(n)));
        }
        false
    };
    arrows.iter().filter(|a| leads(&a.to, &a.from)).cloned().collect()
}

/// All arrows between siblings, the first import of each.
fn arrows(modules: &Modules) -> Vec<Arrow> {
    let mut out: Vec<Arrow> = Vec::new();
    for (at, module) in modules {
        for Named { path, line } in &module.named {
            let Some(target) = resolve(modules, at, path, 0).map(|found| found.0) else { continue };
            let shared = at.iter().zip(&target).take_while(|(a, b)| a == b).count();
            if shared == at.len() || shared == target.len() {
                continue;
            }
            let (from, to) = (at[..=shared].to_vec(), target[..=shared].to_vec());
            if out.iter().all(|a| a.from != from || a.to != to) {
                let because = format!("{}:{line}: {}", module.file.display(), path.join("::"));
                out.push(Arrow { from, to, because });
            }
        }
    }
    out
}

/// The module that a path leads to, or that defines the item, and whether the path is the module itself.
fn resolve(modules: &Modules, at: &Path, path: &[String], depth: usize) -> Option<(Path, bool)> {
    // Names that import each other resolve to nothing.
    if depth > 20 {
        return None;
    }
    let mut found = at.clone();
    let mut rest = path;
    while let [first, more @ ..] = rest {
        match first.as_str() {
            "crate" => found = Path::new(),
            "self" => {}
            "super" => drop(found.pop()),
            _ => break,
        }
        rest = more;
    }
    let is_relative = rest.len() < path.len();
    for (i, name) in rest.iter().enumerate() {
        let child = [&found[..], std::slice::from_ref(name)].concat();
        let module = modules.get(&found)?;
        if modules.contains_key(&child) {
            found = child;
        } else if let Some(to) = module.uses.get(name).filter(|to| *to != path) {
            let (target, is_module) = resolve(modules, &found, to, depth + 1)?;
            found = target;
            if !is_module {
                return Some((found, false));
            }
        } else if module.items.contains(name) {
            return Some((found, false));
        } else {
            let mut globs = module.globs.iter();
            let of = |glob: &Path| {
                let is_own = |path: &[String]| ["crate", "self", "super"].iter().any(|s| path[0] == *s);
                let is_child = |path: &[String]| modules.contains_key(&[&found[..], &path[..1]].concat());
                if !is_own(glob) && !is_child(glob) {
                    return None;
                }
                let (target, _) = resolve(modules, &found, glob, depth + 1).filter(|t| t.0 != found)?;
                resolve(modules, &target, &[&["self".to_owned()], &rest[i..]].concat(), depth + 1)
            };
            // A path of another crate, unless it started in this one.
            return globs.find_map(of).or_else(|| (is_relative || i > 0).then_some((found.clone(), false)));
        }
    }
    Some((found, true))
}
