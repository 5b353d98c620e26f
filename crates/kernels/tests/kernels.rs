//! Every kernel renders and passes naga. Those for browsers are compiled by one: crates/web/npm/test/kernels.test.js.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Write as _;
use std::path::Path;

use chaski_kernels::{Kernel, check};

/// By default naga validates one kernel in eight and the first of each operation; the others' texts are those in the
/// index, which `cargo xtask gen-kernels` writes once it has validated all of them.
#[test]
fn every_kernel_is_valid_and_in_the_index() {
    let names = Kernel::names();
    let op = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let is_one = |i: usize| i % 8 == 0;
    let is_first = |i: usize| i == 0 || op(names[i - 1]) != op(names[i]);
    let (valid, rest): (Vec<usize>, Vec<usize>) =
        (0..names.len()).partition(|i| is_full() || is_one(*i) || is_first(*i));
    let rest: Vec<&str> = rest.into_iter().map(|i| names[i]).collect();
    let chosen: Vec<&str> = valid.into_iter().map(|i| names[i]).collect();
    let index = check::check_these(&chosen).unwrap_or_else(|e| panic!("{e}"));
    let hashes = check::hashes(&rest).unwrap_or_else(|e| panic!("{e}"));
    if !rest.is_empty() {
        say(&format!(
            "SKIPPED: validation of {} of {} kernels, with --full",
            names.len() - chosen.len(),
            names.len()
        ));
    }
    let lines = index.values().flat_map(|lines| lines.lines());
    let mut sorted: Vec<&str> = lines.filter_map(|line| line.split(" | ").next()).collect();
    sorted.sort_unstable();
    assert_eq!(sorted, chosen);
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("rendered/index");
    let read = |op: &str| fs::read_to_string(dir.join(format!("{op}.txt"))).unwrap_or_default();
    let (mut listed, mut known_hashes) = (Vec::new(), HashMap::new());
    let mut changed: Vec<String> = index
        .iter()
        .filter_map(|(op, lines)| {
            let found = read(op);
            for line in found.lines() {
                let name = line.split(" | ").next().unwrap_or(line).to_owned();
                listed.push(name.clone());
                known_hashes.insert(name, line.rsplit(" | ").next().unwrap_or_default().to_owned());
            }
            let known: HashSet<&str> = found.lines().collect();
            let new = lines.lines().find(|line| !known.contains(line));
            new.map(|line| format!("{op}: {line}"))
        })
        .collect();
    let is_known = |(name, hash): &&(&str, u64)| {
        known_hashes.get(*name).is_some_and(|known| *known == format!("{hash:016x}"))
    };
    changed.extend(hashes.iter().filter(|one| !is_known(one)).map(|(name, _)| (*name).to_owned()));
    let stale = "run `cargo xtask gen-kernels`, the index is stale";
    assert!(changed.is_empty(), "{stale}:\n{}", changed.join("\n"));
    listed.sort_unstable();
    assert!(listed == names, "{stale}: it lists other kernels");
    let n_file = fs::read_dir(&dir).expect("the index").count();
    assert_eq!(n_file, index.len(), "files of operations that are gone");
}

/// Prints a line that is visible although the test passes.
fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").expect("standard error");
}

fn is_full() -> bool {
    std::env::var_os("CHASKI_TEST_FULL").is_some_and(|v| v != "0")
}

#[test]
fn samples_are_rendered_as_they_are_now() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("rendered");
    let mut n_sample = 0;
    for entry in fs::read_dir(&dir).expect("the samples") {
        let path = entry.expect("a sample").path();
        if path.is_dir() {
            continue;
        }
        let file = path.file_name().expect("a file").to_string_lossy().into_owned();
        let name = file.strip_suffix(".wgsl").unwrap_or_else(|| panic!("{file} is no sample"));
        let kernel = Kernel::find(name).unwrap_or_else(|| panic!("{file}: no such kernel"));
        let found = fs::read_to_string(&path).expect("a text");
        assert!(found == kernel.source, "{file} is stale: run `cargo xtask gen-kernels`");
        n_sample += 1;
    }
    assert!(n_sample > 0, "no samples");
}
