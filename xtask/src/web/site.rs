//! The site with the engine in its page: a folder of static files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use super::build::{copy, package};

/// Puts the chat page with the package and the default model into `target/web-page`, which any server can serve.
///
/// # Errors
/// If a file cannot be read or written, or lacks what is changed in it.
pub(super) fn assemble() -> anyhow::Result<()> {
    let root = crate::root();
    let site = root.join("target/web-page");
    if site.is_dir() {
        fs::remove_dir_all(&site).with_context(|| format!("could not empty {}", site.display()))?;
    }
    // The server's page, with the engine in the place of the server.
    copy(&root.join("crates/server/page"), &site)?;
    copy(&root.join("crates/web/demo"), &site)?;
    for part in ["index.js", "worker.js", "src", "wasm"] {
        copy(&package().join(part), &site.join("chaski").join(part))?;
    }
    let model = "storyteller-Q4_K_M.gguf";
    one_style(&site)?;
    preload(&site)?;
    first_screen(&site)?;
    // The service worker keeps all of these from the start: not the models, nor the modules of which it keeps what the
    // page uses.
    let mut files = Vec::new();
    list(&site, "", &mut files)?;
    let is_later = |name: &String| {
        ["grammar_bg.wasm", "folder_bg.wasm", "threads_bg.wasm"].iter().any(|end| name.ends_with(end))
    };
    files.retain(|name| !is_later(name));
    files.sort();
    write(&site.join("files.json"), &serde_json::to_string(&files)?)?;
    copy(&root.join("crates/chaski/model").join(model), &site.join("models").join(model))?;
    println!("the page is in {}", site.display());
    Ok(())
}

/// Replaces a part of a file that has to be there.
fn replace(path: &Path, part: &str, by: &str) -> anyhow::Result<()> {
    let text = read(path)?;
    ensure!(text.contains(part), "{}: no {part}", path.display());
    write(path, &text.replace(part, by))
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("could not write {}", path.display()))
}

/// Makes one file of the styles, which the first paint waits for.
fn one_style(site: &Path) -> anyhow::Result<()> {
    let [style, text] = ["style.css", "text.css"].map(|name| site.join(name));
    write(&style, &(read(&style)? + &read(&text)?))?;
    fs::remove_file(&text).with_context(|| format!("could not remove {}", text.display()))?;
    replace(&site.join("index.html"), "<link rel=\"stylesheet\" href=\"text.css\">\n", "")
}

/// Cards on the first screen, and lines of an empty one that is as high as they are.
const CARDS: usize = 6;
const LINES: usize = 7;

/// Puts the first screen into the page, which shows it before its scripts are there: its words, and empty cards in
/// the places of those to come.
fn first_screen(site: &Path) -> anyhow::Result<()> {
    let model = read(&site.join("model.js"))?;
    let word = |name: &str| field(&model, name).with_context(|| format!("model.js: no {name}"));
    let (headline, lead, more) = (word("headline")?, word("lead")?, word("moreLabel")?);
    let icon =
        "<svg class=\"icon\" aria-hidden=\"true\" focusable=\"false\"><use href=\"#i-chaski\"></use></svg>";
    let card = format!("<li class=\"card\">{}</li>", "<p class=\"detail\">&nbsp;</p>".repeat(LINES));
    let screen = format!(
        "<div class=\"mark\">{icon}</div><h2 class=\"headline\">{headline}</h2><p class=\"lead\">{lead}</p>\
         <ul class=\"cards\" aria-hidden=\"true\">{}</ul><button type=\"button\" class=\"quiet\" disabled>{more}</button>",
        card.repeat(CARDS)
    );
    let begin = "<section id=\"welcome\" aria-label=\"Welcome\">";
    replace(&site.join("index.html"), begin, &format!("{begin}{screen}"))
}

/// The text of a field of a class: `  name = "text";`.
fn field<'t>(module: &'t str, name: &str) -> Option<&'t str> {
    let begin = format!("  {name} = \"");
    module.lines().find_map(|line| line.strip_prefix(&begin)?.strip_suffix("\";"))
}

/// Names all modules that the page imports in its head, so that a browser need not read one to learn of the next.
/// They come after the style.
fn preload(site: &Path) -> anyhow::Result<()> {
    let mut modules = vec![PathBuf::from("chat.js"), PathBuf::from("chaski/src/catalogue.js")];
    let mut at = 0;
    while let Some(module) = modules.get(at).cloned() {
        at += 1;
        let path = site.join(&module);
        let text = read(&path)?;
        let folder = module.parent().expect("a module lies in a folder");
        for name in text.lines().filter_map(imported) {
            let import = folder.join(name.trim_start_matches("./"));
            if !modules.contains(&import) {
                modules.push(import);
            }
        }
    }
    let link = |m: &PathBuf| {
        format!("<link rel=\"modulepreload\" fetchpriority=\"low\" href=\"{}\">\n", m.display())
    };
    let links: String = modules.iter().map(link).collect();
    let script = "<script type=\"module\" src=\"chat.js\">";
    replace(&site.join("index.html"), script, &format!("{links}{script}"))
}

/// The module that a line imports or exports from, as written: lines of several lines' imports end with it.
fn imported(line: &str) -> Option<&str> {
    let is_one = ["import ", "export ", "} from "].iter().any(|start| line.starts_with(start));
    let (_, name) = line.trim_end_matches(';').rsplit_once(" from ").filter(|_| is_one)?;
    name.strip_prefix('"')?.strip_suffix('"')
}

#[test]
fn modules_are_found_in_imports_and_exports() {
    assert_eq!(imported("import { a } from \"./b.js\";"), Some("./b.js"));
    assert_eq!(imported("export * from \"./b.js\";"), Some("./b.js"));
    assert_eq!(imported("} from \"../c.js\";"), Some("../c.js"));
    // A parameter with a default, and a word of a text.
    assert_eq!(imported("export function patch(parent, nodes, from = 0) {"), None);
    assert_eq!(imported("const from = \" from \";"), None);
}

#[test]
fn fields_of_a_class_are_read_as_they_are_written() {
    let class = "class A {\n  lead = \"One: two.\";\n  leader = \"x\";\n    lead = \"y\";\n}\n";
    assert_eq!(field(class, "lead"), Some("One: two."));
    assert_eq!(field(class, "headline"), None);
}

/// Adds the paths of all files of a folder, with a prefix.
fn list(folder: &Path, prefix: &str, out: &mut Vec<String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("could not list {}", folder.display()))? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().display());
        match entry.path().is_dir() {
            true => list(&entry.path(), &format!("{name}/"), out)?,
            false => out.push(name),
        }
    }
    Ok(())
}
