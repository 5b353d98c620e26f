//! Compares our grids of cases with the list that ggml's test program prints.
#![allow(clippy::print_stdout, reason = "a test says what it compares")]

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use chaski_kernels::OPS;
use chaski_kernels::grid::expand;

/// Prints what is not compared, past the test harness, which hides the output of passing tests.
fn skip(line: &str) {
    writeln!(std::io::stderr(), "{line}").expect("stderr can be written");
}

/// The line by which `cargo xtask test` counts the only test here as skipped.
fn skip_all(want: &str) -> Option<BTreeMap<String, Vec<String>>> {
    skip(&format!("SKIPPED grids_hold_every_case_of_ggml: for want of {want}"));
    None
}

/// Cases that ggml lists, by operation; the file is compressed with gzip.
fn ggml_cases() -> Option<BTreeMap<String, Vec<String>>> {
    let base = std::env::var_os("CHASKI_TEST_DATA").map(PathBuf::from);
    let base = base.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"));
    let file = base.join("op-cases.csv.gz");
    if !file.is_file() {
        return skip_all("op-cases.csv.gz (set CHASKI_TEST_DATA)");
    }
    let Ok(out) = Command::new("gzip").arg("-dc").arg(&file).output() else {
        return skip_all("the command gzip");
    };
    assert!(out.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).expect("text");
    let mut cases: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.trim_matches('"').split("\",\"").collect();
        let [_, op, params, ..] = fields[..] else { panic!("a line of at least three fields: {line}") };
        cases.entry(op.to_owned()).or_default().push(params.to_owned());
    }
    Some(cases)
}

#[test]
fn grids_hold_every_case_of_ggml() {
    let Some(theirs) = ggml_cases() else { return };
    assert!(theirs.values().map(Vec::len).sum::<usize>() > 20_000, "the whole list");
    let (mut missing, none) = (Vec::new(), HashSet::new());
    // Several rows of the table may share an operation's cases.
    let mut ours: BTreeMap<String, HashSet<String>> = BTreeMap::new();
    for grid in OPS.iter().filter_map(|op| op.grid) {
        for p in expand(grid.text).expect("a grid") {
            ours.entry(p.op).or_default().insert(p.text);
        }
    }
    for name in OPS.iter().flat_map(|op| op.ggml).copied().collect::<BTreeSet<_>>() {
        // ggml prints some cases twice.
        let ours = ours.get(name).unwrap_or(&none);
        let theirs: HashSet<&String> = theirs.get(name).into_iter().flatten().collect();
        println!("{name:20} {} cases of ggml's, {} of ours", theirs.len(), ours.len());
        missing.extend(theirs.iter().filter(|p| !ours.contains(**p)).map(|p| format!("{name} {p}")));
    }
    let done: HashSet<&str> = OPS.iter().flat_map(|op| op.ggml).copied().collect();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ops.md");
    let page = std::fs::read_to_string(page).expect("the page of operations");
    let (_, list) = page.split_once("\nNot done: ").expect("the list of what is not done");
    let said: HashSet<&str> = list.trim_end().trim_end_matches('.').split(", ").collect();
    for (name, cases) in theirs.iter().filter(|(name, _)| !done.contains(name.as_str())) {
        skip(&format!("SKIPPED: {} cases of {name}", cases.len()));
        if !said.contains(name.as_str()) {
            missing.push(format!("docs/ops.md: {name} is not done"));
        }
    }
    for name in said.iter().filter(|name| done.contains(**name)) {
        missing.push(format!("docs/ops.md: {name} is done"));
    }
    for name in said.iter().filter(|name| !theirs.contains_key(**name)) {
        missing.push(format!("docs/ops.md: {name} is no operation of ggml's"));
    }
    assert!(missing.is_empty(), "{} things are missing:\n{}", missing.len(), missing.join("\n"));
}
