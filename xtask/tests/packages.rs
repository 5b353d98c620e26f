//! Tests of the packages for crates.io: manifests, contents, and no references outside.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Members of the workspace that are not published. A new crate is published unless it is listed here.
const PRIVATE: [&str; 5] = ["chaski-cases", "chaski-folder", "chaski-grammar", "chaski-web", "xtask"];

/// Fields that all packages inherit from the workspace.
const SHARED: [&str; 6] = ["version", "edition", "rust-version", "license", "repository", "authors"];

/// Categories of crates.io that may apply; it silently ignores unknown ones.
const CATEGORIES: [&str; 16] = [
    "algorithms",
    "caching",
    "command-line-utilities",
    "concurrency",
    "data-structures",
    "development-tools",
    "encoding",
    "mathematics",
    "network-programming",
    "parser-implementations",
    "rendering",
    "science",
    "template-engine",
    "text-processing",
    "wasm",
    "web-programming",
];

/// Files that every package must have.
const REQUIRED: [&str; 5] = ["Cargo.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE", "src/"];

/// Files that cargo adds to an archive.
const ADDED: [&str; 3] = [".cargo_vcs_info.json", "Cargo.lock", "Cargo.toml.orig"];

/// Maximum bytes of a package's files. The default model takes 4.3 MB; test data does not belong in a package.
fn most_bytes(name: &str) -> u64 {
    if name == "chaski" { 6 << 20 } else { 2 << 20 }
}

/// A published package.
struct Package {
    name: String,
    folder: PathBuf,
    /// Its entry in the output of `cargo metadata`.
    metadata: Value,
}

impl Package {
    fn word(&self, field: &str) -> &str {
        self.metadata[field].as_str().unwrap_or_default()
    }

    fn words(&self, field: &str) -> Vec<&str> {
        self.metadata[field].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.folder.join(file)).unwrap_or_else(|e| panic!("{}: {file}: {e}", self.name))
    }

    /// Files of the archive that also exist in its folder.
    fn files(&self) -> BTreeSet<String> {
        // Excluding the lock file avoids an index of crates.io.
        let list =
            ["package", "--list", "--exclude-lockfile", "--allow-dirty", "--offline", "-p", &self.name];
        let files: BTreeSet<String> = cargo(&list).lines().map(|line| line.replace('\\', "/")).collect();
        files.into_iter().filter(|file| !ADDED.contains(&file.as_str())).collect()
    }
}

/// The root of the repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository")
}

/// The output of a cargo command.
fn cargo(args: &[&str]) -> String {
    let out = Command::new(env!("CARGO")).args(args).current_dir(root()).output().expect("cargo runs");
    assert!(out.status.success(), "`cargo {}`: {}", args.join(" "), String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("cargo writes UTF-8")
}

/// Members of the workspace: published packages, and the names of the others.
fn members() -> (Vec<Package>, Vec<String>) {
    let text = cargo(&["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let all: Value = serde_json::from_str(&text).expect("`cargo metadata` writes JSON");
    let (mut published, mut private) = (Vec::new(), Vec::new());
    for metadata in all["packages"].as_array().expect("a list of packages").iter().cloned() {
        let name = metadata["name"].as_str().expect("a package has a name").to_owned();
        // `publish = false` becomes an empty list of registries.
        if metadata["publish"].as_array().is_some_and(Vec::is_empty) {
            private.push(name);
            continue;
        }
        let manifest = Path::new(metadata["manifest_path"].as_str().expect("a package has a manifest"));
        let folder = manifest.parent().expect("a manifest lies in a folder").to_owned();
        published.push(Package { name, folder, metadata });
    }
    private.sort();
    (published, private)
}

/// Fails with all problems at once.
fn conclude(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

/// A path without `.` and `..`; `None` if it leaves the folder it is relative to.
fn normal(path: &Path) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()?),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

/// Paths in `include_str!("...")` and `include_bytes!("...")`.
fn included(source: &str) -> impl Iterator<Item = &str> {
    let after = ["include_str!(\"", "include_bytes!(\""];
    let rests = after.into_iter().flat_map(|call| source.split(call).skip(1));
    rests.filter_map(|rest| rest.split('"').next())
}

#[test]
fn only_the_parts_of_the_workspace_that_nobody_depends_on_are_private() {
    let (published, private) = members();
    assert_eq!(private, PRIVATE);
    for package in &published {
        for dependency in package.metadata["dependencies"].as_array().into_iter().flatten() {
            let name = dependency["name"].as_str().unwrap_or_default();
            assert!(!PRIVATE.contains(&name), "{} depends on {name}, which is not published", package.name);
            // Cargo drops development dependencies that have only a path.
            let is_ours = !dependency["path"].is_null() && dependency["kind"] != "dev";
            let has_version = dependency["req"] != "*";
            assert!(!is_ours || has_version, "{} depends on {name} without a version", package.name);
        }
    }
}

#[test]
fn manifests_say_what_crates_io_shows() {
    let mut problems = Vec::new();
    for package in members().0 {
        let mut check = |is_right: bool, problem: &str| {
            if !is_right {
                problems.push(format!("{}: {problem}", package.name));
            }
        };
        let manifest = package.read("Cargo.toml");
        for field in SHARED {
            let line = format!("{field}.workspace = true");
            check(manifest.lines().any(|l| l == line), &format!("no line `{line}`"));
        }
        check(!package.word("description").is_empty(), "no description");
        check(!package.word("description").ends_with('.'), "a description ends with a full stop");
        check(package.word("readme") == "README.md", "expected `readme = \"README.md\"`");

        let keywords = package.words("keywords");
        check((1..=5).contains(&keywords.len()), &format!("{} keywords, expected 1 to 5", keywords.len()));
        for word in keywords {
            let is_right = word.len() <= 20
                && word.starts_with(|c: char| c.is_ascii_alphabetic())
                && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            check(is_right, &format!("keyword `{word}`: expected up to 20 of a-z, 0-9 and -"));
        }
        let categories = package.words("categories");
        check(
            (1..=5).contains(&categories.len()),
            &format!("{} categories, expected 1 to 5", categories.len()),
        );
        for slug in categories {
            check(CATEGORIES.contains(&slug), &format!("category `{slug}` is not in the list of this test"));
        }

        let has_features = package.metadata["features"].as_object().is_some_and(|f| !f.is_empty());
        let all = &package.metadata["metadata"]["docs"]["rs"]["all-features"];
        check(!has_features || *all == true, "features, but no `all-features = true` for docs.rs");
    }
    conclude(&problems);
}

#[test]
fn readmes_have_a_title_an_example_and_the_licence() {
    let mut problems = Vec::new();
    for package in members().0 {
        let text = package.read("README.md");
        let mut check = |is_right: bool, problem: &str| {
            if !is_right {
                problems.push(format!("{}: README.md: {problem}", package.name));
            }
        };
        check(text.starts_with(&format!("# {}\n", package.name)), "the title is not the package's name");
        check(text.contains("under MIT or Apache-2.0"), "no licence");
        check(text.lines().count() >= 20, "fewer than 20 lines");
        let is_library = package.folder.join("src/lib.rs").exists();
        check(text.contains(if is_library { "\n```rust" } else { "\n```sh" }), "no example");
        // Readme examples are tests, so that they stay correct.
        let runs = is_library && package.read("src/lib.rs").contains("include_str!(\"../README.md\")");
        check(runs || !is_library, "src/lib.rs does not run its examples");
    }
    conclude(&problems);
}

#[test]
fn archives_have_their_files_and_none_from_outside() {
    let mut problems = Vec::new();
    for package in members().0 {
        let files = package.files();
        for required in REQUIRED {
            if !files.iter().any(|f| f == required || required.ends_with('/') && f.starts_with(required)) {
                problems.push(format!("{}: {required} is missing", package.name));
            }
        }
        let mut n_byte = 0;
        for file in &files {
            match fs::metadata(package.folder.join(file)) {
                Ok(found) if found.is_file() => n_byte += found.len(),
                _ => problems.push(format!("{}: {file} is not a file of the package's folder", package.name)),
            }
            if normal(Path::new(file)).as_ref() != Some(file) {
                problems.push(format!("{}: {file} lies outside of the package", package.name));
            }
        }
        let most = most_bytes(&package.name);
        if n_byte > most {
            problems.push(format!("{}: {n_byte} bytes of files, expected at most {most}", package.name));
        }
        for file in files.iter().filter(|f| f.ends_with(".rs")) {
            for path in included(&package.read(file)) {
                let path = Path::new(file).parent().expect("a file lies in a folder").join(path);
                if normal(&path).is_none_or(|path| !files.contains(&path)) {
                    problems.push(format!(
                        "{}: {file} includes {}, which the archive lacks",
                        package.name,
                        path.display()
                    ));
                }
            }
        }
    }
    conclude(&problems);
}

#[test]
fn licences_are_those_of_the_repository() {
    let mut problems = Vec::new();
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        let ours = fs::read_to_string(root().join(name)).expect("the repository has its licences");
        for package in members().0 {
            let found = package.read(name);
            if found.trim_end().ends_with(&format!("../{name}")) {
                // The harness hides what macros print.
                let line = format!("SKIPPED: {name} of {}: git wrote a link as text", package.name);
                writeln!(std::io::stderr(), "{line} (core.symlinks)").expect("stderr can be written");
            } else if found != ours {
                problems.push(format!("{}: {name} is not the repository's", package.name));
            }
        }
    }
    conclude(&problems);
}

#[test]
fn paths_of_included_files_are_found() {
    let source = "include_str!(\"a.txt\"), include_bytes!(\"../b/c.bin\"), include!(\"no.rs\")";
    assert_eq!(included(source).collect::<Vec<_>>(), ["a.txt", "../b/c.bin"]);
    assert_eq!(normal(Path::new("src/./ops/../a.txt")).as_deref(), Some("src/a.txt"));
    assert_eq!(normal(Path::new("src/../../a.txt")), None);
}
