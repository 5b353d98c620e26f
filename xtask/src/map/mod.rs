//! `map`: compares the map in ARCHITECTURE.md with the code.
//!
//! The picture shows every crate of the workspace above its dependencies, the list below it names the arrows, and the
//! modules of a crate import each other in one direction.

mod modules;
mod source;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// Compares the map with the workspace's manifests and sources.
///
/// # Errors
/// Names arrows that are missing, superfluous, upward, or part of a cycle.
pub(crate) fn check() -> anyhow::Result<()> {
    let crates = workspace()?;
    let page = crate::root().join("ARCHITECTURE.md");
    let page = std::fs::read_to_string(&page).with_context(|| page.display().to_string())?;
    let mut wrong = crate_arrows(&page, &crates)?;
    for (name, package) in &crates {
        let read = |path: &Path| Ok(std::fs::read_to_string(crate::root().join(path))?);
        let modules = source::modules(&package.root, &read)?;
        wrong.extend(modules::cycles(&modules).iter().map(|arrow| format!("{name}: a cycle has {arrow}")));
    }
    ensure!(wrong.is_empty(), "the code does not match the map:\n{}", wrong.join("\n"));
    Ok(())
}

/// A crate of the workspace.
struct Package {
    /// Its `lib.rs` or `main.rs`.
    root: PathBuf,
    /// Crates of the workspace that it depends on, except for tests.
    arrows: Vec<String>,
}

/// The crates of the workspace, by their names on the map.
fn workspace() -> anyhow::Result<BTreeMap<String, Package>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let args = ["metadata", "--format-version", "1", "--no-deps", "--offline"];
    let output =
        Command::new(cargo).args(args).current_dir(crate::root()).output().context("cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let all: Value = serde_json::from_slice(&output.stdout)?;
    let list = |v: &Value, key: &str| v[key].as_array().cloned().unwrap_or_default();
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let is_lib =
        |target: &Value| list(target, "kind").iter().any(|k| k == "lib" || k == "cdylib" || k == "rlib");
    let mut out = BTreeMap::new();
    for package in list(&all, "packages") {
        let targets = list(&package, "targets");
        let is_bin = |target: &Value| list(target, "kind").iter().any(|k| k == "bin");
        let target = targets.iter().find(|t| is_lib(t)).or_else(|| targets.iter().find(|t| is_bin(t)));
        let root = PathBuf::from(text(&target.context("a package has a target")?["src_path"]));
        let root = root.strip_prefix(crate::root()).map(Path::to_owned).unwrap_or(root);
        let mut arrows = Vec::new();
        for dependency in list(&package, "dependencies") {
            if dependency["kind"] != "dev" && dependency["path"].is_string() {
                arrows.push(on_map(&text(&dependency["name"])));
            }
        }
        arrows.sort();
        arrows.dedup();
        out.insert(on_map(&text(&package["name"])), Package { root, arrows });
    }
    Ok(out)
}

/// The name of a package on the map.
fn on_map(package: &str) -> String {
    package.strip_prefix("chaski-").unwrap_or(package).to_owned()
}

/// Mismatches of the picture and the list of arrows.
fn crate_arrows(page: &str, crates: &BTreeMap<String, Package>) -> anyhow::Result<Vec<String>> {
    let map = page.split("\n## ").find(|s| s.starts_with("The map")).context("no section `The map`")?;
    let mut blocks = map.split("```").skip(1).step_by(2);
    let (picture, list) = blocks.next().zip(blocks.next()).context("no picture and list of arrows")?;
    let row = |name: &str| {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        picture.lines().position(|line| line.split(|c| !is_name(c)).any(|word| word == name))
    };
    let listed: BTreeMap<&str, Vec<&str>> = list
        .lines()
        .filter_map(|line| line.split_once("->"))
        .map(|(from, to)| (from.trim(), to.split(',').map(str::trim).filter(|t| !t.is_empty()).collect()))
        .collect();
    let mut wrong = Vec::new();
    for (name, package) in crates {
        // Nothing may depend on the tools; they may depend on anything.
        if name == "xtask" {
            continue;
        }
        let from = row(name);
        if from.is_none() {
            wrong.push(format!("the picture lacks {name}"));
        }
        for to in &package.arrows {
            if row(to) <= from {
                wrong.push(format!("the picture does not have {to} below {name}, which depends on it"));
            }
            if listed.get(&name[..]).is_none_or(|all| !all.contains(&&to[..])) {
                wrong.push(format!("the list of arrows lacks {name} -> {to}"));
            }
        }
        for to in listed.get(&name[..]).into_iter().flatten() {
            if !package.arrows.iter().any(|arrow| arrow == to) {
                wrong.push(format!("the manifests lack {name} -> {to}, which the list has"));
            }
        }
    }
    let strangers = listed.keys().filter(|name| !crates.contains_key(**name));
    wrong.extend(strangers.map(|name| format!("the list of arrows has {name}, which is no crate")));
    Ok(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_keeps_to_the_map() {
        check().unwrap_or_else(|e| panic!("{e}"));
    }

    fn cycles(files: &[(&str, &str)]) -> Vec<String> {
        let read = |path: &Path| {
            let text = files.iter().find(|f| Path::new(f.0) == path).context("no such file")?;
            Ok(text.1.to_owned())
        };
        let modules = source::modules(Path::new("src/lib.rs"), &read).expect("Rust");
        modules::cycles(&modules).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_circle_of_modules_is_found_by_the_names_of_its_arrows() {
        let found = cycles(&[
            ("src/lib.rs", "mod a; mod b; mod c; pub use b::Public;"),
            ("src/a/mod.rs", "pub mod deep; pub struct Own; use crate::b::thing;"),
            ("src/a/deep.rs", "use super::Own; fn f() -> super::Own { crate::c::g() }"),
            ("src/b.rs", "pub struct Public; pub fn thing() {}"),
            ("src/c.rs", "pub fn g() { let x = vec![crate::a::deep::f()]; }"),
        ]);
        let want = ["a -> c (src/a/deep.rs:1: crate::c::g)", "c -> a (src/c.rs:1: crate::a::deep::f)"];
        assert_eq!(found, want);
    }

    #[test]
    fn names_lead_through_re_exports_aliases_and_blocks() {
        let found = cycles(&[
            ("src/lib.rs", "mod a;\nmod b;\nmod list { pub use crate::b::*; }\npub use a::Thing as Other;"),
            ("src/a.rs", "pub struct Thing;\nuse crate::list::find;"),
            ("src/b.rs", "pub fn find() {}\nuse crate::Other;"),
        ]);
        let want = ["a -> b (src/a.rs:2: crate::list::find)", "b -> a (src/b.rs:2: crate::Other)"];
        assert_eq!(found, want);
        let found = cycles(&[
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a.rs", "use crate::b as other; fn f() { other::g() } mod test_data { fn h() {} }"),
            ("src/b.rs", "pub fn g() { use super::{a::{self}}; a::f() }"),
        ]);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn comments_strings_tests_and_other_crates_draw_no_arrows() {
        let found = cycles(&[
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a.rs", "use crate::b; use std::a::x;"),
            (
                "src/b.rs",
                "// crate::a
                 /// [`crate::a`]
                 pub const TEXT: &str = \"crate::a\"; pub const C: char = '\"';
                 #[cfg(test)] use crate::{a};
                 #[cfg(test)] mod tests { use crate::a; }
                 #[cfg(test)] fn f() { crate::a::g() }
                 fn g<'a>(x: &'a str) { b::a::c(x) }",
            ),
        ]);
        assert_eq!(found, [""; 0]);
    }

    fn page(picture: &str, list: &str) -> String {
        format!("# A\n\n## The map: down\n\n```\n{picture}\n```\n\n```\n{list}\n```\n\n## Next\n")
    }

    #[test]
    fn wrong_arrows_of_crates_are_named() {
        let package = |arrows: &[&str]| Package {
            root: PathBuf::new(),
            arrows: arrows.iter().map(ToString::to_string).collect(),
        };
        let crates = || {
            let all = [("cli", package(&["engine"])), ("engine", package(&["file"])), ("file", package(&[]))];
            all.map(|(name, p)| (name.to_owned(), p)).into()
        };
        let wrong = |page: &str| crate_arrows(page, &crates()).expect("a map");
        assert_eq!(wrong(&page("cli\n |\nengine\n |\nfile", "cli -> engine\nengine -> file")), [""; 0]);
        assert_eq!(
            wrong(&page("cli  engine\n file", "cli -> engine, file\nengine -> file\nold -> cli")),
            [
                "the picture does not have engine below cli, which depends on it",
                "the manifests lack cli -> file, which the list has",
                "the list of arrows has old, which is no crate",
            ]
        );
        assert_eq!(
            wrong(&page("cli\nengine", "cli -> engine\nengine ->")),
            [
                "the picture does not have file below engine, which depends on it",
                "the list of arrows lacks engine -> file",
                "the picture lacks file",
            ]
        );
    }
}
