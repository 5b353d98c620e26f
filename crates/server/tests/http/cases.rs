//! The recorded cases.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// A request, the recorded response, and what to compare.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) request: Value,
    pub(crate) response: Value,
    pub(crate) compare: Value,
}

/// The folder of golden data that are not in the repository.
pub(crate) fn data() -> PathBuf {
    let base = std::env::var_os("CHASKI_TEST_DATA").map(PathBuf::from);
    base.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"))
}

/// The options of llama-server in each group of cases: the first that has the word is the group's.
const GROUPS: [(&str, &str); 5] = [
    ("emb", "--embeddings"),
    ("auth", "--api-key"),
    ("tools", "--jinja"),
    ("shift", "--context-shift"),
    ("story", "--metrics"),
];

fn group(server: &Value) -> &'static str {
    let has = |word: &str| server["args"].as_array().is_some_and(|args| args.iter().any(|arg| arg == word));
    GROUPS.iter().find(|(_, word)| has(word)).map_or("small", |(name, _)| *name)
}

/// The cases of a group in order. `None` without their models, with the line by which `cargo xtask test` counts the
/// test as skipped.
pub(crate) fn all(of: &str) -> Option<Vec<Case>> {
    if !data().join("models").is_dir() {
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("a test");
        say(&format!("SKIPPED {test}: for want of models (set CHASKI_TEST_DATA)"));
        return None;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/server");
    let entries = std::fs::read_dir(&folder).expect("the fixtures are there");
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("the folder can be read").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ext| ext == "json"));
    paths.sort_by_key(|path| path.file_stem().map(ToOwned::to_owned));
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut case: Value =
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let is_it = group(&case["server"]) == of;
        is_it.then(|| Case {
            name: case["name"].as_str().expect("cases have names").to_owned(),
            request: case["request"].take(),
            response: case["response"].take(),
            compare: case["compare"].take(),
        })
    };
    Some(paths.iter().filter_map(read).collect())
}

/// Prints a line past the test harness, which hides what passing tests print.
pub(crate) fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").expect("stderr can be written");
}
