//! Checks of the style of comments (CONTRIBUTING.md): they begin with their subject, and have 120 columns at most.
//! The performance log has tables instead of results in telegram style.

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

/// Most columns of a comment in Rust.
const COLUMNS: usize = 120;

/// Finds lines of comments that are too long: their numbers. Rows of tables and links cannot be broken.
fn too_long(text: &str) -> Vec<usize> {
    let is_whole = |body: &str| body.starts_with(['|', '[']) || !body.contains(' ');
    let is_long = |(_, line): &(usize, &str)| {
        let body = ["///", "//!", "//"].iter().find_map(|mark| line.trim_start().strip_prefix(mark));
        line.chars().count() > COLUMNS && body.is_some_and(|body| !is_whole(body.trim()))
    };
    text.lines().enumerate().filter(is_long).map(|(i, _)| i + 1).collect()
}

/// Telegram style that the performance log does not use: it has tables of change, expected, measured, decision.
const NOT_IN_LOG: [&str; 3] = ["Came:", "came:", "Kept."];

/// Finds lines of a text with one of [`NOT_IN_LOG`]: their numbers.
fn telegrams(text: &str) -> Vec<usize> {
    let is_telegram = |(_, line): &(usize, &str)| NOT_IN_LOG.iter().any(|word| line.contains(*word));
    text.lines().enumerate().filter(is_telegram).map(|(i, _)| i + 1).collect()
}

/// Lines `file:line` of all comments below a folder that a check finds in files of these extensions.
fn below(
    folder: &Path,
    extensions: &[&str],
    check: fn(&str) -> Vec<usize>,
    found: &mut Vec<String>,
) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if path.is_dir() {
            if !SKIPPED.contains(&name) {
                below(&path, extensions, check, found)?;
            }
        } else if path.extension().and_then(|e| e.to_str()).is_some_and(|e| extensions.contains(&e)) {
            let text = std::fs::read_to_string(&path)?;
            let shown = path.strip_prefix(crate::root()).unwrap_or(&path).display();
            found.extend(check(&text).iter().map(|line| format!("{shown}:{line}")));
        }
    }
    Ok(())
}

/// Comments of the tree that a check finds.
fn in_tree(extensions: &[&str], check: fn(&str) -> Vec<usize>) -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["crates", "xtask", "fuzz"] {
        below(&crate::root().join(folder), extensions, check, &mut found).expect("the tree can be read");
    }
    found.sort();
    found
}

#[test]
fn comments_have_120_columns_at_most() {
    let found = in_tree(&["rs"], too_long);
    assert!(found.is_empty(), "comments of more than {COLUMNS} columns:\n{}", found.join("\n"));
}

#[test]
fn long_comments_are_found() {
    let (word, line) = ("word ".repeat(23), "wörd ".repeat(23));
    let text = format!(
        "/// {word}\n    // {line}word\n/// {word}word\n//! | {word}word\n// {}\nlet x = 1; // {word}",
        "x".repeat(130)
    );
    assert_eq!(too_long(&text), [2, 3]);
}

#[test]
fn comments_begin_with_their_subject() {
    let found = in_tree(&EXTENSIONS, in_text);
    assert!(found.is_empty(), "comments that begin with {NOT_FIRST:?}:\n{}", found.join("\n"));
}

#[test]
fn the_first_word_of_a_comment_is_found() {
    let text = "/// What it does.\nfn f() {} // What is this?\n    // Whether it can.\n//! Who knows.\n/** What */\n\
                {# Whether\n/// Whatever.\n/// A sentence that asks\n/// What comes next.\n//\n// What now";
    assert_eq!(in_text(text), [1, 3, 4, 5, 6, 11]);
}

#[test]
fn the_performance_log_is_tables() {
    let path = crate::root().join("docs/performance-log.md");
    let found = telegrams(&std::fs::read_to_string(path).expect("the log can be read"));
    assert!(found.is_empty(), "lines of docs/performance-log.md with one of {NOT_IN_LOG:?}: {found:?}");
}

#[test]
fn telegrams_of_the_log_are_found() {
    let text = "Expected: half. Came: a third.\n| x | half | a third | kept |\nit came: 3\nKept.\nKept as is";
    assert_eq!(telegrams(text), [1, 3, 4]);
}
