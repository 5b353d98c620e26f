//! The licences in the package: ours, and those of the crates compiled into the module.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::MODULES;

/// The file of third-party notices.
const NOTICES: &str = "THIRD-PARTY-NOTICES.txt";
const TARGET: &str = "wasm32-unknown-unknown";

/// Puts our licences and the others' into the package.
///
/// # Errors
/// Cargo does not report the dependencies, a crate has no licence, or a file cannot be written.
pub(crate) fn write(package: &Path) -> anyhow::Result<()> {
    for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
        fs::copy(crate::root().join(file), package.join(file))
            .with_context(|| format!("could not copy {file}"))?;
    }
    let names = compiled()?;
    let metadata = cargo(&["metadata", "--format-version", "1", "--filter-platform", TARGET])?;
    let metadata: Value = serde_json::from_str(&metadata).context("output of `cargo metadata`")?;
    // Crates by licence text. Many texts differ only in the year or the name, which is significant.
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut plain = Vec::new();
    let (mut n, empty) = (0, Vec::new());
    for p in metadata["packages"].as_array().unwrap_or(&empty) {
        let word = |key: &str| p[key].as_str().unwrap_or_default();
        let name = format!("{} {}", word("name"), word("version"));
        if p["source"].is_null() || !names.contains(&name) {
            continue;
        }
        let licence = word("license");
        ensure!(!licence.is_empty(), "{name} declares no licence");
        let folder = Path::new(word("manifest_path")).parent().context("a manifest lies in a folder")?;
        let files = chosen(folder, licence)?;
        if files.is_empty() {
            plain.push(format!("{name}: {licence}"));
        }
        for text in files {
            texts.entry(text).or_default().push(format!("{name} ({licence})"));
        }
        n += 1;
    }
    ensure!(n == names.len(), "of {} crates `cargo metadata` knows {n}", names.len());
    let mut out = "The modules of this package have code of the crates below, and of Rust's standard library (Copyright (c) The \
                   Rust Project Contributors), which are under the licences below. MIT was chosen where there is a choice.\n"
        .to_owned();
    for (text, of) in texts {
        out += &format!("\n{}\n{}\n\n{text}\n", "=".repeat(80), of.join("\n"));
    }
    if !plain.is_empty() {
        let line = "=".repeat(80);
        out += &format!(
            "\n{line}\n{}\n\nThese come without a text: it is that of LICENSE-MIT or LICENSE-APACHE.\n",
            plain.join("\n")
        );
    }
    fs::write(package.join(NOTICES), out).with_context(|| format!("could not write {NOTICES}"))
}

/// Names and versions of all crates in the modules.
fn compiled() -> anyhow::Result<BTreeSet<String>> {
    let mut args = vec!["tree", "--target", TARGET, "-e", "normal,no-proc-macro", "--prefix", "none"];
    args.extend(MODULES.iter().flat_map(|(name, _)| ["-p", *name]));
    let tree = cargo(&args)?;
    let mut out = BTreeSet::new();
    for line in tree.lines() {
        let mut words = line.split(' ');
        if let (Some(name), Some(version)) = (words.next(), words.next().and_then(|v| v.strip_prefix('v'))) {
            // Workspace crates are followed by a path.
            if !line.contains(['/', '\\']) {
                out.insert(format!("{name} {version}"));
            }
        }
    }
    Ok(out)
}

/// Licence texts of a crate: MIT if there is a choice, and those that always apply.
fn chosen(folder: &Path, licence: &str) -> anyhow::Result<Vec<String>> {
    let (mut all, mut mit) = (Vec::new(), Vec::new());
    let entries = fs::read_dir(folder).with_context(|| format!("could not list {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_file() && ["LICEN", "NOTICE", "COPYRIGHT"].iter().any(|w| name.starts_with(w)) {
            let text =
                fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
            let text = text.trim().replace("\r\n", "\n");
            if !["APACHE", "ZLIB", "BSD"].iter().any(|w| name.contains(w)) && name != "LICENSE" {
                mit.push(text.clone());
            }
            all.push(text);
        }
    }
    let is_choice = licence.contains("MIT") && (licence.contains(" OR ") || licence.contains('/'));
    let mut out = if is_choice && !mit.is_empty() { mit } else { all };
    out.sort();
    Ok(out)
}

fn cargo(args: &[&str]) -> anyhow::Result<String> {
    let out = Command::new("cargo")
        .args(args)
        .current_dir(crate::root())
        .output()
        .context("could not run cargo")?;
    ensure!(out.status.success(), "`cargo {}`: {}", args.join(" "), String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).context("output of cargo")
}
