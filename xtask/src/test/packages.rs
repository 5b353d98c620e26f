//! The workspace's packages: features, dependencies, and the packages that a change affects.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;

use super::cmd::Cmd;

/// A package of the workspace.
struct Package {
    /// Relative to the repository's root.
    folder: PathBuf,
    features: Vec<String>,
    /// Packages of the workspace that it uses, including for tests and build scripts.
    uses: BTreeSet<String>,
}

/// All packages of the workspace, by name.
pub(super) struct Packages(BTreeMap<String, Package>);

/// Packages whose tests read files outside all packages, by folder of the files. Other files there affect all packages.
const READERS: &[(&str, &[&str])] = &[
    ("fixtures/archs", &["chaski", "xtask"]),
    ("fixtures/quants", &["ggml-format", "chaski-runtime"]),
    ("fixtures/server", &["chaski-server"]),
    ("fixtures/weights", &["chaski", "chaski-checkpoint", "chaski-cli", "chaski-hub", "chaski-web"]),
    ("fixtures/expressions.json", &["chaski-text", "chaski-web"]),
    ("docs/ops.md", &["chaski-kernels", "xtask"]),
    ("docs", &["xtask"]),
    (".github", &["xtask"]),
    (
        "fuzz",
        &[
            "chaski-checkpoint",
            "chaski-hub",
            "chaski-models",
            "chaski-swarm",
            "chaski-text",
            "chaski-wire",
            "ggml-format",
            "wgsl-pre",
        ],
    ),
];

impl Packages {
    /// Queries cargo.
    pub(super) fn read() -> anyhow::Result<Packages> {
        let text = Cmd::cargo(&["metadata", "--no-deps", "--format-version", "1"]).output()?;
        let metadata: Value = serde_json::from_str(&text).context("the answer of `cargo metadata`")?;
        let all = metadata["packages"].as_array().context("`cargo metadata` lists packages")?;
        let packages = all.iter().map(package).collect::<anyhow::Result<BTreeMap<_, _>>>()?;
        Ok(Packages(packages))
    }

    /// Every package with features, with none of them and with each alone.
    pub(super) fn feature_sets(&self) -> Vec<(&str, Option<&str>)> {
        let mut sets = Vec::new();
        for (name, package) in self.0.iter().filter(|(_, p)| !p.features.is_empty()) {
            sets.push((name.as_str(), None));
            sets.extend(package.features.iter().map(|f| (name.as_str(), Some(f.as_str()))));
        }
        sets
    }

    /// Every feature of all packages but those of this name, as cargo reads them: `package/feature`, with commas.
    pub(super) fn features_but(&self, left_out: &str) -> String {
        let all = self.0.iter().flat_map(|(name, p)| p.features.iter().map(move |f| (name, f)));
        let all = all.filter(|(_, feature)| *feature != left_out);
        all.map(|(name, feature)| format!("{name}/{feature}")).collect::<Vec<_>>().join(",")
    }

    /// The packages that files belong to, and their dependents; `None` if a file may affect any package.
    fn touched(&self, files: &[String]) -> Option<BTreeSet<String>> {
        let mut found = BTreeSet::new();
        for file in files {
            found.extend(self.owners(Path::new(file))?);
        }
        loop {
            let n = found.len();
            let users =
                self.0.iter().filter(|(_, p)| !p.uses.is_disjoint(&found)).map(|(name, _)| name.clone());
            let users: Vec<String> = users.collect();
            found.extend(users);
            if found.len() == n {
                return Some(found);
            }
        }
    }

    /// The packages that a file belongs to.
    fn owners(&self, file: &Path) -> Option<Vec<String>> {
        if let Some((name, _)) = self.0.iter().find(|(_, p)| file.starts_with(&p.folder)) {
            return Some(vec![name.clone()]);
        }
        if let Some((_, names)) = READERS.iter().find(|(folder, _)| file.starts_with(folder)) {
            return Some(names.iter().map(|n| (*n).to_owned()).collect());
        }
        // README.md and other texts in the root.
        let is_text = file.extension().is_some_and(|e| e == "md") && file.components().count() == 1;
        is_text.then(|| vec!["xtask".to_owned()])
    }
}

/// Name and contents of a package, from cargo's metadata.
fn package(entry: &Value) -> anyhow::Result<(String, Package)> {
    let name = entry["name"].as_str().context("a package has a name")?;
    let manifest = Path::new(entry["manifest_path"].as_str().context("a package has a manifest")?);
    let folder = manifest.parent().context("a manifest lies in a folder")?;
    let features = entry["features"].as_object().context("a package has features")?;
    let uses = entry["dependencies"].as_array().context("a package has dependencies")?.iter();
    // Dependencies from elsewhere have a source.
    let uses = uses.filter(|d| d["source"].is_null()).filter_map(|d| d["name"].as_str());
    let package = Package {
        folder: folder.strip_prefix(crate::root()).unwrap_or(folder).to_owned(),
        features: features.keys().filter(|f| *f != "default").cloned().collect(),
        uses: uses.filter(|used| *used != name).map(str::to_owned).collect(),
    };
    Ok((name.to_owned(), package))
}

/// The packages that the working tree changes against `main`, and their dependents; `None` for all packages.
pub(super) fn changed(packages: &Packages) -> anyhow::Result<Option<BTreeSet<String>>> {
    let git = |args: &[&str]| -> anyhow::Result<Vec<String>> {
        let args = args.iter().map(|a| (*a).to_owned()).collect();
        let text = Cmd { env: vec![], program: "git".into(), args }.output()?;
        Ok(text.lines().map(str::to_owned).collect())
    };
    // On main itself this is the last commit. A clone may have no local main.
    let base = ["main", "origin/main"].iter().find_map(|main| git(&["merge-base", "HEAD", main]).ok());
    let base = base.and_then(|lines| lines.first().cloned()).unwrap_or_else(|| "HEAD".to_owned());
    let mut files = git(&["diff", "--name-only", &base])?;
    files.extend(git(&["ls-files", "--others", "--exclude-standard"])?);
    let touched = packages.touched(&files);
    let names = touched.as_ref().map(|names| names.iter().cloned().collect::<Vec<_>>().join(", "));
    println!("{} files differ from {base}; packages: {}", files.len(), names.as_deref().unwrap_or("all"));
    Ok(touched)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(files: &[&str]) -> Option<Vec<String>> {
        let packages = Packages::read().expect("cargo's metadata");
        let files: Vec<String> = files.iter().map(|f| (*f).to_owned()).collect();
        packages.touched(&files).map(|names| names.into_iter().collect())
    }

    #[test]
    fn a_change_concerns_a_package_and_all_that_use_it() {
        assert_eq!(touched(&[]), Some(vec![]));
        assert_eq!(touched(&["xtask/src/main.rs", "README.md"]), Some(vec!["xtask".into()]));
        let text = touched(&["crates/text/src/lib.rs"]).expect("some packages");
        let has = |name: &str| text.iter().any(|t| t == name);
        assert!(has("chaski-text") && has("chaski-models") && has("chaski-cli"), "{text:?}");
        assert!(!has("chaski-kernels") && !has("chaski-runtime"), "{text:?}");
    }

    #[test]
    fn a_change_to_what_all_packages_have_concerns_all() {
        for file in ["Cargo.lock", "Cargo.toml", ".cargo/config.toml", "clippy.toml", "fixtures/other.json"] {
            assert_eq!(touched(&["README.md", file]), None, "{file}");
        }
    }

    #[test]
    fn features_of_a_name_are_left_out_of_all_packages() {
        let packages = Packages::read().expect("cargo's metadata");
        let all = packages.features_but("no such feature");
        let some = packages.features_but(super::super::LEFT_OUT);
        let n = |list: &str| list.split(',').count();
        assert!(n(&some) < n(&all) && !some.contains(super::super::LEFT_OUT), "{some}");
        assert!(some.split(',').any(|f| f == "chaski-text/constraint"), "{some}");
    }

    #[test]
    fn readers_of_files_are_packages() {
        let packages = Packages::read().expect("cargo's metadata");
        let names = READERS.iter().flat_map(|(_, names)| *names);
        assert!(names.clone().all(|name| packages.0.contains_key(*name)));
        assert!(READERS.iter().all(|(path, _)| crate::root().join(path).exists()));
        let drives = |package: &Package| {
            let test = crate::root().join(&package.folder).join("tests/random.rs");
            std::fs::read_to_string(test).is_ok_and(|source| source.contains("fuzz/drive.rs"))
        };
        let found: Vec<&str> =
            packages.0.iter().filter(|(_, package)| drives(package)).map(|(name, _)| name.as_str()).collect();
        let listed = READERS.iter().find(|(path, _)| *path == "fuzz").map(|(_, names)| *names);
        assert_eq!(listed, Some(&*found), "packages whose tests drive targets of `fuzz`");
    }
}
