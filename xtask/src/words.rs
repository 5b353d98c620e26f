//! A check of the style of comments (CONTRIBUTING.md): they begin with their subject.

use std::path::Path;

/// Words that no comment begins with: its subject comes first.
const NOT_FIRST: [&str; 3] = ["What", "Whether", "Who"];

/// Extensions of files with comments of `//`, `/*` and `{#`.
const EXTENSIONS: [&str; 5] = ["rs", "jinja", "js", "ts", "wgsl"];

/// Folders with files of others, or generated ones.
const SKIPPED: [&str; 4] = ["target", "node_modules", "wasm", ".git"];

/// Finds comments in a text that begin with one of [`NOT_FIRST`]: their line numbers.
fn in_text(text: &str) -> Vec<usize> {
    let mut before = "";
    let mut found = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let body = ["///", "//!", "//", "/**", "/*", "{#"].iter().find_map(|mark| line.strip_prefix(mark));
        let first = body.and_then(|b| b.split_whitespace().next());
        // The line may go on with the sentence of the line before it.
        let goes_on = before.starts_with("//") && !before.ends_with(['.', ':', '?', '/', '!']);
        if first.is_some_and(|word| NOT_FIRST.contains(&word)) && !goes_on {
            found.push(i + 1);
        }
        before = line.trim_end();
    }
    found
}

/// Lines `file:line` of all such comments below a folder.
fn below(folder: &Path, found: &mut Vec<String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if path.is_dir() {
            if !SKIPPED.contains(&name) {
                below(&path, found)?;
            }
        } else if path.extension().and_then(|e| e.to_str()).is_some_and(|e| EXTENSIONS.contains(&e)) {
            let text = std::fs::read_to_string(&path)?;
            let shown = path.strip_prefix(crate::root()).unwrap_or(&path).display();
            found.extend(in_text(&text).iter().map(|line| format!("{shown}:{line}")));
        }
    }
    Ok(())
}

#[test]
fn comments_begin_with_their_subject() {
    let mut found = Vec::new();
    for folder in ["crates", "xtask", "fuzz"] {
        below(&crate::root().join(folder), &mut found).expect("the tree can be read");
    }
    found.sort();
    assert!(found.is_empty(), "comments that begin with {NOT_FIRST:?}:\n{}", found.join("\n"));
}

#[test]
fn the_first_word_of_a_comment_is_found() {
    let text = "/// What it does.\nfn f() {} // What is this?\n    // Whether it can.\n//! Who knows.\n/** What */\n\
                {# Whether\n/// Whatever.\n/// A sentence that asks\n/// What comes next.\n//\n// What now";
    assert_eq!(in_text(text), [1, 3, 4, 5, 6, 11]);
}
